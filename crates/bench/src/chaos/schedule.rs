//! The faults of a chaos proof, and when they happen.
//!
//! The seed decides the schedule and nothing else: processes and the network decide how it interleaves with the runs. So a seed
//! repeats the faults, and not always what they find.

use std::{fmt, ops::RangeInclusive};

use serde::{Deserialize, Serialize};

/// Milliseconds between two faults.
const PAUSE_MS: RangeInclusive<u64> = 2_000..=6_000;
/// How long a process is suspended, in milliseconds.
const SUSPEND_MS: RangeInclusive<u64> = 1_000..=20_000;
/// How long something that was killed is away, in milliseconds.
const AWAY_MS: RangeInclusive<u64> = 500..=4_000;
/// How long a server is cut off, in milliseconds.
const CUT_MS: RangeInclusive<u64> = 1_000..=15_000;
/// How long a part is left alone after a fault, in milliseconds: it starts and connects.
const REST_MS: u64 = 4_000;
/// How many workers, and how many replicas, may be in trouble at a time.
const TROUBLED_MAX: usize = 2;

/// Workers, and as many replicas and NATS nodes.
pub const EACH: u8 = 3;

/// What happens to a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FaultKind {
    /// SIGKILL, and a start a little later.
    Kill,
    /// The same for the node that leads the stream of spans.
    KillLeader,
    /// SIGSTOP, and SIGCONT a little later.
    Suspend,
    /// A shutdown that disconnects all clients, and a start a little later.
    Restart,
    /// Silence between the part and all others.
    CutOff,
    /// Silence between the part and NATS.
    CutNats,
    /// All NATS nodes are killed, and start with empty folders.
    Wipe,
}

/// A part that can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Component {
    /// A server with the role `worker`.
    Worker(u8),
    /// A server with the roles `api` and `ingest`.
    Replica(u8),
    /// A NATS node.
    NatsNode(u8),
    /// The database.
    Postgres,
    /// JetStream as a whole; in a schedule also the leader, whichever node that is.
    Store,
}

/// A fault of the schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedFault {
    /// Milliseconds since the first fault could happen.
    pub at_ms: u64,
    /// Its kind.
    pub kind: FaultKind,
    /// What it happens to.
    pub component: Component,
    /// Milliseconds until it is repaired.
    pub for_ms: u64,
}

/// How long the schedule is, and what it contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScheduleForm {
    /// Faults of all kinds for this many milliseconds, and one wipe.
    Long(u64),
    /// One fault of each of five kinds, in an order by the seed.
    Short,
}

/// A random generator that is the same for a seed on every machine (SplitMix64).
#[derive(Clone, Debug)]
pub struct SeededRandom(u64);

impl SeededRandom {
    /// Creates the generator of a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the next number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// Returns a number of this range.
    pub fn of(&mut self, range: &RangeInclusive<u64>) -> u64 {
        range.start() + self.number() % (range.end() - range.start() + 1)
    }
}

/// Returns the faults of a seed, in the order of their times.
pub fn schedule(seed: u64, form: ScheduleForm) -> Vec<PlannedFault> {
    let mut random = SeededRandom::new(seed);
    match form {
        ScheduleForm::Long(length_ms) => long(&mut random, length_ms),
        ScheduleForm::Short => short(&mut random),
    }
}

/// One fault every few seconds. The wipe is in the middle third.
fn long(random: &mut SeededRandom, length_ms: u64) -> Vec<PlannedFault> {
    let wipe_at = length_ms / 3 + random.number() % (length_ms / 3).max(1);
    let mut faults: Vec<PlannedFault> = Vec::new();
    let (mut at_ms, mut is_wiped) = (0, false);
    loop {
        at_ms += random.of(&PAUSE_MS);
        if at_ms >= length_ms {
            return faults;
        }
        if at_ms >= wipe_at && !is_wiped && is_free(&faults, Component::Store, at_ms) {
            is_wiped = true;
            let for_ms = random.of(&AWAY_MS);
            faults.push(PlannedFault {
                at_ms,
                kind: FaultKind::Wipe,
                component: Component::Store,
                for_ms,
            });
            continue;
        }
        // A busy part gets no second fault: another one is drawn, for which there is room most of the time.
        for _ in 0..8 {
            let (kind, component) = draw(random);
            if is_free(&faults, component, at_ms) {
                let for_ms = random.of(&length_of(kind));
                faults.push(PlannedFault { at_ms, kind, component, for_ms });
                break;
            }
        }
    }
}

/// Worker killed, replica killed, leader killed, worker suspended, a server cut off: three seconds apart.
fn short(random: &mut SeededRandom) -> Vec<PlannedFault> {
    let number = |random: &mut SeededRandom| (random.number() % u64::from(EACH)) as u8;
    let (worker, replica) = (number(random), number(random));
    let cuts = [
        (FaultKind::CutOff, Component::Replica((replica + 1) % EACH), 3_000),
        (FaultKind::CutNats, Component::Replica((replica + 1) % EACH), 3_000),
        (FaultKind::CutNats, Component::Worker((worker + 2) % EACH), 3_000),
    ];
    let mut kinds = vec![
        (FaultKind::Kill, Component::Worker(worker), 1_000),
        (FaultKind::Kill, Component::Replica(replica), 1_000),
        (FaultKind::KillLeader, Component::Store, 1_500),
        (FaultKind::Suspend, Component::Worker((worker + 1) % EACH), 4_000),
        cuts[usize::from(number(random))],
    ];
    let mut faults = Vec::new();
    for at in 0..5 {
        let next = random.number() as usize % kinds.len();
        let (kind, component, for_ms) = kinds.swap_remove(next);
        faults.push(PlannedFault { at_ms: 500 + 3_000 * at, kind, component, for_ms });
    }
    faults
}

/// Draws a kind and a part.
fn draw(random: &mut SeededRandom) -> (FaultKind, Component) {
    let number = (random.number() % u64::from(EACH)) as u8;
    let (worker, replica, node) =
        (Component::Worker(number), Component::Replica(number), Component::NatsNode(number));
    let choices = [
        (FaultKind::Kill, worker),
        (FaultKind::Kill, replica),
        (FaultKind::Kill, node),
        (FaultKind::KillLeader, Component::Store),
        (FaultKind::Suspend, worker),
        (FaultKind::Suspend, replica),
        (FaultKind::Suspend, node),
        (FaultKind::Restart, Component::Postgres),
        (FaultKind::CutOff, worker),
        (FaultKind::CutOff, replica),
        (FaultKind::CutNats, worker),
        (FaultKind::CutNats, replica),
    ];
    choices[(random.number() % choices.len() as u64) as usize]
}

fn length_of(kind: FaultKind) -> RangeInclusive<u64> {
    match kind {
        FaultKind::Suspend => SUSPEND_MS,
        FaultKind::CutOff | FaultKind::CutNats => CUT_MS,
        FaultKind::Kill | FaultKind::KillLeader | FaultKind::Restart | FaultKind::Wipe => AWAY_MS,
    }
}

/// Whether a fault may happen to this part at this time: one NATS node at a time, and at most two workers and two replicas.
fn is_free(faults: &[PlannedFault], component: Component, at_ms: u64) -> bool {
    let troubled = faults.iter().filter(|fault| fault.at_ms + fault.for_ms + REST_MS > at_ms);
    let troubled: Vec<Component> = troubled.map(|fault| fault.component).collect();
    let of_group = troubled.iter().filter(|other| group(**other) == group(component)).count();
    let max = match component {
        Component::Worker(_) | Component::Replica(_) => TROUBLED_MAX,
        Component::NatsNode(_) | Component::Store | Component::Postgres => 1,
    };
    of_group < max && !troubled.contains(&component)
}

fn group(component: Component) -> u8 {
    match component {
        Component::Worker(_) => 0,
        Component::Replica(_) => 1,
        Component::NatsNode(_) | Component::Store => 2,
        Component::Postgres => 3,
    }
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Kill => "killed",
            Self::KillLeader => "killed as leader",
            Self::Suspend => "suspended",
            Self::Restart => "restarted",
            Self::CutOff => "cut off from everything",
            Self::CutNats => "cut off from NATS",
            Self::Wipe => "wiped",
        })
    }
}

impl Component {
    /// Returns the name of its kind.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Worker(_) => "worker",
            Self::Replica(_) => "replica",
            Self::NatsNode(_) => "NATS node",
            Self::Postgres => "Postgres",
            Self::Store => "JetStream",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const TEN_MINUTES: ScheduleForm = ScheduleForm::Long(600_000);

    #[test]
    fn a_seed_repeats_its_schedule_and_another_one_does_not() {
        for form in [TEN_MINUTES, ScheduleForm::Short] {
            assert_eq!(schedule(7, form), schedule(7, form));
            assert_ne!(schedule(7, form), schedule(8, form));
        }
    }

    #[test]
    fn a_long_schedule_has_a_fault_every_few_seconds_one_wipe_and_all_kinds() {
        for seed in 0..50 {
            let faults = schedule(seed, TEN_MINUTES);
            assert!(faults.len() >= 100, "{seed}: {}", faults.len());
            let wipes = faults.iter().filter(|fault| fault.kind == FaultKind::Wipe).count();
            assert_eq!(wipes, 1, "{seed}");
            let kinds: BTreeSet<_> =
                faults.iter().map(|fault| (fault.kind, fault.component.kind())).collect();
            assert_eq!(kinds.len(), 13, "{seed}: {kinds:?}");
            for pair in faults.windows(2) {
                assert!(pair[1].at_ms - pair[0].at_ms >= *PAUSE_MS.start(), "{seed}: {pair:?}");
            }
        }
    }

    #[test]
    fn one_nats_node_and_two_servers_of_a_role_are_in_trouble_at_most() {
        for seed in 0..50 {
            let faults = schedule(seed, TEN_MINUTES);
            for (at, fault) in faults.iter().enumerate() {
                let troubled: Vec<_> = faults[..=at]
                    .iter()
                    .filter(|other| other.at_ms + other.for_ms >= fault.at_ms)
                    .map(|other| group(other.component))
                    .collect();
                for (of, max) in [(0, 2), (1, 2), (2, 1), (3, 1)] {
                    let count = troubled.iter().filter(|group| **group == of).count();
                    assert!(count <= max, "{seed}: {count} of group {of} at {fault:?}");
                }
            }
        }
    }

    #[test]
    fn a_short_schedule_has_each_of_five_faults_once() {
        for seed in 0..20 {
            let faults = schedule(seed, ScheduleForm::Short);
            let kinds: BTreeSet<_> =
                faults.iter().map(|fault| (fault.kind, fault.component.kind())).collect();
            assert_eq!(kinds.len(), 5, "{faults:?}");
            let end = faults.iter().map(|fault| fault.at_ms + fault.for_ms).max().unwrap();
            assert!(end <= 17_000, "{faults:?}");
        }
    }
}
