//! The learned profile: what earlier runs have shown about a system, so that later runs need not wait to find out.
//!
//! The observation of one run may be an accident: a lucky moment of a batch, a crash, a lost export. An observation that
//! shortens a wait therefore counts once three runs agree. One that lengthens a wait counts at once: a peer that sent a span
//! once is never treated as a leaf again.
//!
//! Deliberately absent: its storage.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use serde::{Deserialize, Serialize};

/// The number of runs that must show an observation that shortens a wait.
const RUNS_MIN: u32 = 3;

/// One absent parent in this many is more than an accident.
const PRESENT_PER_ABSENT: u32 = 4;

/// The upper bound of runs that are remembered.
const RUNS_MAX: usize = 50;

/// The upper bound of services that are remembered; nothing is learned about further ones.
const SERVICES_MAX: usize = 4096;

/// The upper bound of tests that are remembered; nothing is learned about further ones.
const TESTS_MAX: usize = 4096;

/// The upper bound of trace stores that are remembered; nothing is learned about further ones.
const STORES_MAX: usize = 64;

/// The upper bound of peers of each kind for a service; nothing is learned about further ones.
const PEERS_MAX: usize = 1024;

/// The upper bound of the length of a remembered name: longer ones are not real names.
const NAME_BYTES_MAX: usize = 512;

/// The learned profile of services and tests, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LearnedProfile {
    /// By `service.name`.
    pub services: BTreeMap<String, LearnedService>,
    /// By the id of the test.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tests: BTreeMap<String, LearnedTest>,
    /// The profiles of runs that queried trace stores, by the names of the stores. A delay that was seen through a store is none of
    /// spans that are pushed, nor the other way round.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub stores: BTreeMap<String, LearnedProfile>,
}

/// The learned profile of the runs of one test.
///
/// A gap is the time from the last arrival, or from the response if that is later, to the next arrival. Gaps depend on the work
/// that a test starts, as delays depend on the exporter of a service.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LearnedTest {
    /// The number of runs that listened until their verdict was final, up to the upper bound.
    #[serde(default)]
    pub runs: u32,
    /// The longest gap of each of these, the newest at the end, in milliseconds, rounded up; of other runs, gaps that exceed
    /// the known ones.
    #[serde(default)]
    pub gaps_ms: Vec<u64>,
}

/// The learned profile of one service.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LearnedService {
    /// The number of runs that waited for all of its spans, up to the upper bound.
    #[serde(default)]
    pub runs: u32,
    /// The largest delay of each of its last runs, the newest at the end, in nanoseconds; of other runs, delays that exceed the
    /// known ones.
    #[serde(default)]
    pub delays_ns: Vec<u64>,
    /// The longest quiet period with which no run would have missed its late spans, in nanoseconds.
    #[serde(default)]
    pub late_ns: u64,
    /// Peers that it calls and that never sent spans, each with the number of runs that show it.
    #[serde(default)]
    pub leaves: BTreeMap<String, u32>,
    /// Peers that it calls and that send spans.
    #[serde(default)]
    pub instrumented: BTreeSet<String>,
    /// The number of runs in which entry spans of the service named a parent that never arrived.
    #[serde(default)]
    pub absent_parents: u32,
    /// The number of runs in which such a parent, of another process, arrived.
    #[serde(default)]
    pub present_parents: u32,
    /// Services that appeared in runs with this one without a call that announced them: their caller is not instrumented, or
    /// passes the context on by hand, or calls several at once.
    #[serde(default)]
    pub unannounced: BTreeSet<String>,
}

/// How often the callers of a service are known to send no spans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AbsentParents {
    /// Never, or not known.
    Unknown,
    /// In some runs or for some callers, and not in others.
    Sometimes,
    /// In all observed runs.
    Always,
}

impl LearnedProfile {
    /// Adds the observations of a run.
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
        for (name, seen) in &seen.stores {
            if let Some(store) = self.store(name) {
                store.observe(seen);
            }
        }
    }

    /// Merges another profile: the result has the larger delays and the union of peers. Merging is idempotent.
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
        for (name, other) in &other.stores {
            if let Some(store) = self.store(name) {
                store.merge(other);
            }
        }
    }

    /// Returns the profile of runs that query these stores; that of pushed spans if there are none.
    pub fn through(&self, stores: &[&str]) -> Self {
        match stores {
            [] => Self { stores: BTreeMap::new(), ..self.clone() },
            names => self.stores.get(&names.join(",")).cloned().unwrap_or_default(),
        }
    }

    /// Returns what a run that queried these stores has seen, as a part of the complete profile.
    #[must_use]
    pub fn seen_through(self, stores: &[&str]) -> Self {
        match stores {
            _ if self.is_empty() => self,
            [] => self,
            names => Self { stores: [(names.join(","), self)].into(), ..Self::default() },
        }
    }

    /// Returns all services, of pushed spans and of each store.
    pub fn all_services_mut(&mut self) -> impl Iterator<Item = &mut LearnedService> {
        let stores = self.stores.values_mut().flat_map(|store| store.services.values_mut());
        self.services.values_mut().chain(stores)
    }

    /// Returns the longest delay of a service that enough runs have shown.
    pub fn longest_delay(&self) -> Option<Duration> {
        self.services.values().filter_map(LearnedService::delay).max()
    }

    /// Whether the profile is empty.
    pub fn is_empty(&self) -> bool {
        self.services.is_empty() && self.tests.is_empty() && self.stores.is_empty()
    }

    fn service(&mut self, name: &str) -> Option<&mut LearnedService> {
        let is_full = self.services.len() >= SERVICES_MAX || name.len() > NAME_BYTES_MAX;
        if is_full && !self.services.contains_key(name) {
            return None;
        }
        Some(self.services.entry(name.to_owned()).or_default())
    }

    fn store(&mut self, name: &str) -> Option<&mut LearnedProfile> {
        let is_full = self.stores.len() >= STORES_MAX || name.len() > NAME_BYTES_MAX;
        if is_full && !self.stores.contains_key(name) {
            return None;
        }
        Some(self.stores.entry(name.to_owned()).or_default())
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
    /// Returns the profile of a run with this longest gap. Only a run that listened until its verdict was final counts as a
    /// run.
    pub fn of_run(gap: Duration, is_final: bool) -> Self {
        let gap_ms = u64::try_from(gap.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX);
        Self { runs: u32::from(is_final), gaps_ms: vec![gap_ms] }
    }

    /// Returns the longest gap of its last runs.
    pub fn longest_gap(&self) -> Duration {
        Duration::from_millis(self.gaps_ms.iter().max().copied().unwrap_or(0))
    }

    /// Whether enough runs have shown their gaps to shorten the linger.
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
        // Of two lists the longer one is kept; the larger gap counts, whichever list has it.
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
    /// Returns the largest delay of its last runs, if there are enough.
    pub fn delay(&self) -> Option<Duration> {
        let largest = self.delays_ns.iter().max().filter(|_| self.runs >= RUNS_MIN);
        largest.map(|nanos| Duration::from_nanos(*nanos))
    }

    /// Whether this peer is known to send no spans.
    pub fn is_leaf(&self, peer: &str) -> bool {
        let runs = self.leaves.get(peer).copied().unwrap_or(0);
        runs >= RUNS_MIN && !self.instrumented.contains(peer)
    }

    /// Returns how often its callers are known to send no spans.
    pub fn absent_parents(&self) -> AbsentParents {
        match (self.absent_parents, self.present_parents) {
            (..RUNS_MIN, _) => AbsentParents::Unknown,
            (_, 0) => AbsentParents::Always,
            // An occasional accident is no gateway.
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
            // Old runs count for less; a parent that arrived once is never forgotten.
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
        // Of two lists the longer one is kept; the larger delay counts, whichever list has it.
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
