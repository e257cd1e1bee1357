//! What earlier runs have shown of a system, so that later ones need not wait to find out.
//!
//! What one run shows may be an accident: a lucky moment of a batch, a crash, an export that was lost. So what shortens
//! a wait counts once three runs agree, and what lengthens one counts at once: a peer that sent a span once is
//! never taken for a leaf again.
//!
//! Deliberately absent: where it is kept.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use serde::{Deserialize, Serialize};

/// How many runs have to show something that shortens a wait.
const RUNS_MIN: u32 = 3;

/// Of how many parents one has to be absent for that to be more than an accident.
const PRESENT_PER_ABSENT: u32 = 4;

/// How many runs are remembered.
const RUNS_MAX: usize = 50;

/// How many services are remembered; of further ones nothing is learned.
const SERVICES_MAX: usize = 4096;

/// How many tests are remembered; of further ones nothing is learned.
const TESTS_MAX: usize = 4096;

/// How many peers of each kind are remembered of a service; of further ones nothing is learned.
const PEERS_MAX: usize = 1024;

/// How long a name may be that is remembered: longer ones are made up.
const NAME_BYTES_MAX: usize = 512;

/// What is known of services, by their names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LearnedProfile {
    /// By `service.name`.
    pub services: BTreeMap<String, LearnedService>,
    /// By the id of the test.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tests: BTreeMap<String, LearnedTest>,
}

/// What is known of the runs of one test.
///
/// A gap is the time from the last arrival, or the response where that is later, to the next arrival. Gaps follow from the
/// work that a test starts, as delays follow from the exporter of a service.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LearnedTest {
    /// Runs that listened until their verdict was final, as far as they are counted.
    #[serde(default)]
    pub runs: u32,
    /// The longest gap of each of these, the newest at the end, in milliseconds, rounded up; of other runs those that were
    /// longer than what was known.
    #[serde(default)]
    pub gaps_ms: Vec<u64>,
}

/// What is known of one service.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LearnedService {
    /// Runs that waited for all of its spans, as far as they are counted.
    #[serde(default)]
    pub runs: u32,
    /// The largest delay of each of its last runs, the newest at the end, in nanoseconds; of other runs those that were
    /// larger than what was known.
    #[serde(default)]
    pub delays_ns: Vec<u64>,
    /// The longest quiet that a run would have had to ask of it so as not to be overtaken by its spans, in nanoseconds.
    #[serde(default)]
    pub late_ns: u64,
    /// Peers that it calls and that never sent spans, each with the number of runs that show it.
    #[serde(default)]
    pub leaves: BTreeMap<String, u32>,
    /// Peers that it calls and that send spans.
    #[serde(default)]
    pub instrumented: BTreeSet<String>,
    /// Runs in which spans by which it was entered named a parent that never came.
    #[serde(default)]
    pub absent_parents: u32,
    /// Runs in which such a parent, of another process, came.
    #[serde(default)]
    pub present_parents: u32,
    /// Services that came in runs with this one though no call announced them: what called them is not instrumented, or
    /// passes the context on by hand, or calls several at once.
    #[serde(default)]
    pub unannounced: BTreeSet<String>,
}

/// How often what calls a service is known to send no spans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AbsentParents {
    /// Never, or nobody knows.
    Unknown,
    /// In some runs or by some ways, and not in others.
    Sometimes,
    /// Whenever it was looked at.
    Always,
}

impl LearnedProfile {
    /// Takes in what a run saw.
    pub fn observe(&mut self, seen: &Self) {
        for (name, seen) in &seen.services {
            if let Some(service) = self.service(name) {
                service.observe(seen);
            }
        }
        for (name, seen) in &seen.tests {
            if let Some(test) = self.test(name) {
                test.observe(seen);
            }
        }
    }

    /// Joins what was kept elsewhere: the larger delays and the union of peers hold. Joining the same again changes
    /// nothing.
    pub fn merge(&mut self, other: &Self) {
        for (name, other) in &other.services {
            if let Some(service) = self.service(name) {
                service.merge(other);
            }
        }
        for (name, other) in &other.tests {
            if let Some(test) = self.test(name) {
                test.merge(other);
            }
        }
    }

    /// Whether nothing is known at all.
    pub fn is_empty(&self) -> bool {
        self.services.is_empty() && self.tests.is_empty()
    }

    fn service(&mut self, name: &str) -> Option<&mut LearnedService> {
        let is_full = self.services.len() >= SERVICES_MAX || name.len() > NAME_BYTES_MAX;
        if is_full && !self.services.contains_key(name) {
            return None;
        }
        Some(self.services.entry(name.to_owned()).or_default())
    }

    fn test(&mut self, name: &str) -> Option<&mut LearnedTest> {
        let is_full = self.tests.len() >= TESTS_MAX || name.len() > NAME_BYTES_MAX;
        if is_full && !self.tests.contains_key(name) {
            return None;
        }
        Some(self.tests.entry(name.to_owned()).or_default())
    }
}

impl LearnedTest {
    /// What a run has shown whose longest gap was this. Only one that listened until its verdict was final counts as a run.
    pub fn of_run(gap: Duration, is_final: bool) -> Self {
        let gap_ms = u64::try_from(gap.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX);
        Self { runs: u32::from(is_final), gaps_ms: vec![gap_ms] }
    }

    /// The longest gap that its last runs have shown.
    pub fn longest_gap(&self) -> Duration {
        Duration::from_millis(self.gaps_ms.iter().max().copied().unwrap_or(0))
    }

    /// Whether enough runs have shown their gaps for a linger to become shorter by them.
    pub fn is_known(&self) -> bool {
        self.runs >= RUNS_MIN
    }

    fn observe(&mut self, seen: &Self) {
        self.runs = self.runs.saturating_add(seen.runs).min(RUNS_MAX as u32);
        self.gaps_ms.extend(&seen.gaps_ms);
        self.keep_last();
    }

    fn merge(&mut self, other: &Self) {
        let longest = self.gaps_ms.iter().chain(&other.gaps_ms).max().copied();
        // Of two lists the longer is kept; the larger gap counts, whoever saw it.
        if other.gaps_ms.len() > self.gaps_ms.len() {
            self.gaps_ms.clone_from(&other.gaps_ms);
        }
        if self.gaps_ms.iter().max().copied() < longest {
            self.gaps_ms.extend(longest);
        }
        self.runs = self.runs.max(other.runs);
        self.keep_last();
    }

    fn keep_last(&mut self) {
        let too_many = self.gaps_ms.len().saturating_sub(RUNS_MAX);
        self.gaps_ms.drain(..too_many);
    }
}

impl LearnedService {
    /// The largest delay of its last runs, where enough are known.
    pub fn delay(&self) -> Option<Duration> {
        let largest = self.delays_ns.iter().max().filter(|_| self.runs >= RUNS_MIN);
        largest.map(|nanos| Duration::from_nanos(*nanos))
    }

    /// Whether this peer is known to send no spans.
    pub fn is_leaf(&self, peer: &str) -> bool {
        let runs = self.leaves.get(peer).copied().unwrap_or(0);
        runs >= RUNS_MIN && !self.instrumented.contains(peer)
    }

    /// How often what calls it is known to send no spans.
    pub fn absent_parents(&self) -> AbsentParents {
        match (self.absent_parents, self.present_parents) {
            (..RUNS_MIN, _) => AbsentParents::Unknown,
            (_, 0) => AbsentParents::Always,
            // An accident now and then is no gateway.
            (absent, present) if absent >= present / PRESENT_PER_ABSENT => AbsentParents::Sometimes,
            _ => AbsentParents::Unknown,
        }
    }

    fn observe(&mut self, seen: &Self) {
        self.runs = self.runs.saturating_add(seen.runs).min(RUNS_MAX as u32);
        self.delays_ns.extend(&seen.delays_ns);
        self.keep_last();
        self.late_ns = self.late_ns.max(seen.late_ns);
        self.take_names(seen, |known, seen| known.saturating_add(seen).min(RUNS_MAX as u32));
        self.absent_parents = self.absent_parents.saturating_add(seen.absent_parents);
        self.present_parents = self.present_parents.saturating_add(seen.present_parents);
        if self.absent_parents.max(self.present_parents) > RUNS_MAX as u32 {
            // What is long ago counts for less; that a parent came at all is not forgotten.
            self.absent_parents /= 2;
            self.present_parents = self.present_parents.div_ceil(2);
        }
    }

    fn merge(&mut self, other: &Self) {
        // Runs count for the delays that they have shown.
        let runs = |service: &Self| if service.delays_ns.is_empty() { 0 } else { service.runs };
        self.runs = runs(self).max(runs(other));
        let largest = self.delays_ns.iter().chain(&other.delays_ns).max().copied();
        if other.delays_ns.len() > self.delays_ns.len() {
            self.delays_ns.clone_from(&other.delays_ns);
        }
        // Of two lists the longer is kept; the larger delay counts, whoever saw it.
        if self.delays_ns.iter().max().copied() < largest {
            self.delays_ns.extend(largest);
        }
        self.keep_last();
        self.take_names(other, u32::max);
        self.late_ns = self.late_ns.max(other.late_ns);
        self.absent_parents = self.absent_parents.max(other.absent_parents);
        self.present_parents = self.present_parents.max(other.present_parents);
    }

    fn take_names(&mut self, other: &Self, add: impl Fn(u32, u32) -> u32) {
        for (known, other) in [
            (&mut self.instrumented, &other.instrumented),
            (&mut self.unannounced, &other.unannounced),
        ] {
            for name in other {
                if known.len() < PEERS_MAX && name.len() <= NAME_BYTES_MAX {
                    known.insert(name.clone());
                }
            }
        }
        for (peer, runs) in &other.leaves {
            let has_room = self.leaves.len() < PEERS_MAX && peer.len() <= NAME_BYTES_MAX;
            if has_room || self.leaves.contains_key(peer) {
                let known = self.leaves.entry(peer.clone()).or_default();
                *known = add(*known, *runs);
            }
        }
        self.leaves.retain(|peer, _| !self.instrumented.contains(peer));
    }

    fn keep_last(&mut self) {
        let too_many = self.delays_ns.len().saturating_sub(RUNS_MAX);
        self.delays_ns.drain(..too_many);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{AbsentParents, LearnedProfile, LearnedService, LearnedTest, RUNS_MAX};

    fn delays(delays_ns: &[u64]) -> LearnedProfile {
        let runs = delays_ns.len() as u32;
        of(LearnedService { runs, delays_ns: delays_ns.to_vec(), ..LearnedService::default() })
    }

    fn of(service: LearnedService) -> LearnedProfile {
        LearnedProfile {
            services: [("orders".to_owned(), service)].into(),
            ..LearnedProfile::default()
        }
    }

    fn leaf(peer: &str, runs: u32) -> LearnedProfile {
        let leaves = [(peer.to_owned(), runs)].into();
        of(LearnedService { leaves, ..LearnedService::default() })
    }

    fn instrumented(peer: &str) -> LearnedProfile {
        let instrumented = [peer.to_owned()].into();
        of(LearnedService { instrumented, ..LearnedService::default() })
    }

    fn orders(learned: &LearnedProfile) -> &LearnedService {
        learned.services.get("orders").expect("known")
    }

    #[test]
    fn a_delay_counts_after_some_runs_and_is_forgotten_after_many() {
        let mut learned = LearnedProfile::default();
        for (run, delay) in [900, 100, 200].into_iter().enumerate() {
            assert_eq!(
                learned.services.get("orders").and_then(LearnedService::delay),
                None,
                "{run}"
            );
            learned.observe(&delays(&[delay]));
        }
        assert_eq!(orders(&learned).delay(), Some(Duration::from_nanos(900)));
        for _ in 0..RUNS_MAX {
            learned.observe(&delays(&[5]));
        }
        assert_eq!(orders(&learned).delay(), Some(Duration::from_nanos(5)));
        assert_eq!(orders(&learned).delays_ns.len(), RUNS_MAX);
    }

    #[test]
    fn a_leaf_is_believed_after_some_runs_and_never_again_once_it_spoke() {
        let mut learned = LearnedProfile::default();
        for expected in [false, false, true, true] {
            learned.observe(&leaf("bank:443", 1));
            assert_eq!(orders(&learned).is_leaf("bank:443"), expected);
        }
        learned.observe(&instrumented("bank:443"));
        for _ in 0..5 {
            learned.observe(&leaf("bank:443", 1));
        }
        assert!(!orders(&learned).is_leaf("bank:443"));
        assert!(orders(&learned).leaves.is_empty());
    }

    #[test]
    fn what_lengthens_a_wait_counts_at_once_and_is_no_run() {
        let mut learned = LearnedProfile::default();
        learned.observe(&of(LearnedService { delays_ns: vec![900], ..LearnedService::default() }));
        for _ in 0..3 {
            assert_eq!(orders(&learned).delay(), None);
            learned.observe(&delays(&[1]));
        }
        assert_eq!(orders(&learned).delay(), Some(Duration::from_nanos(900)));
    }

    #[test]
    fn absent_parents_are_believed_after_some_runs_unless_some_came() {
        let parents = |absent_parents, present_parents| {
            of(LearnedService { absent_parents, present_parents, ..LearnedService::default() })
        };
        let mut learned = LearnedProfile::default();
        for expected in [AbsentParents::Unknown, AbsentParents::Unknown, AbsentParents::Always] {
            learned.observe(&parents(1, 0));
            assert_eq!(orders(&learned).absent_parents(), expected);
        }
        learned.observe(&parents(0, 1));
        assert_eq!(orders(&learned).absent_parents(), AbsentParents::Sometimes);
        for _ in 0..200 {
            learned.observe(&parents(1, 0));
        }
        assert_eq!(orders(&learned).absent_parents(), AbsentParents::Sometimes, "never forgotten");
        // A crash in one run of twenty.
        let mut learned = LearnedProfile::default();
        for run in 0..200 {
            learned.observe(&parents(u32::from(run % 20 == 0), 1));
        }
        assert_eq!(orders(&learned).absent_parents(), AbsentParents::Unknown);
    }

    #[test]
    fn of_several_sources_the_larger_delay_and_the_union_of_peers_hold() {
        // (one, other, the largest delay of both)
        let cases: [(&[u64], &[u64], Option<u64>); 5] = [
            (&[1, 2, 3], &[9], Some(9)),
            (&[1, 2, 9], &[4, 4, 4, 4], Some(9)),
            (&[1, 2, 3], &[], Some(3)),
            (&[], &[], None),
            (&[1], &[2], None),
        ];
        for (one, other, expected) in cases {
            for (one, other) in [(one, other), (other, one)] {
                let mut learned = delays(one);
                learned.merge(&delays(other));
                let found = orders(&learned).delay().map(|delay| delay.as_nanos() as u64);
                assert_eq!(found, expected, "{one:?} {other:?}");
                let again = learned.clone();
                learned.merge(&delays(other));
                assert_eq!(learned, again, "{one:?} {other:?}");
            }
        }
        let mut learned = leaf("bank:443", 3);
        learned.merge(&leaf("bank:443", 2));
        assert!(orders(&learned).is_leaf("bank:443"));
        learned.merge(&instrumented("bank:443"));
        learned.merge(&leaf("bank:443", 50));
        assert!(!orders(&learned).is_leaf("bank:443"));
    }

    #[test]
    fn gaps_of_a_test_are_known_after_some_runs_and_longer_ones_at_once() {
        let of_run = |gap, is_final| {
            let test = LearnedTest::of_run(Duration::from_micros(gap), is_final);
            LearnedProfile { tests: [("buy".to_owned(), test)].into(), ..LearnedProfile::default() }
        };
        let mut learned = LearnedProfile::default();
        for (gap, is_final, known) in
            [(900_001, false, false), (100, true, false), (100, true, false), (100, true, true)]
        {
            learned.observe(&of_run(gap, is_final));
            let test = &learned.tests["buy"];
            assert_eq!((test.is_known(), test.longest_gap().as_millis()), (known, 901), "{gap}");
        }
        let mut merged = of_run(5_000, true);
        merged.merge(&learned);
        assert_eq!(merged.tests["buy"].longest_gap().as_millis(), 901);
        let again = merged.clone();
        merged.merge(&learned);
        assert_eq!(merged, again);
        for _ in 0..RUNS_MAX {
            learned.observe(&of_run(2_000, true));
        }
        assert_eq!(learned.tests["buy"].longest_gap().as_millis(), 2, "forgotten after many");
    }

    #[test]
    fn runs_that_showed_no_delay_count_for_none() {
        let mut learned =
            of(LearnedService { runs: 3, ..instrumented("x").services["orders"].clone() });
        let one = of(LearnedService { runs: 1, delays_ns: vec![5], ..LearnedService::default() });
        learned.merge(&one);
        assert_eq!(orders(&learned).delay(), None);
        let mut learned = one;
        learned.merge(&of(LearnedService { runs: 3, ..LearnedService::default() }));
        assert_eq!(orders(&learned).delay(), None);
    }
}
