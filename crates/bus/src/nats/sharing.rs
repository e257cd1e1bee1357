//! Since when this process has shared all that it knows of a trace: the batches on their way to the stream, and what reached it late.
//!
//! A process that could not store something for a moment is no other server to every run of that time: a reader requests this for its
//! own trace, so that only traces are in doubt that the moment concerns.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use model::{Project, TraceId};
use tokio::time::Instant;

/// How long a batch may be on its way until this process counts as one that does not share what it knows.
pub const HELD_MAX: Duration = Duration::from_secs(1);

/// How long it is known what reached the stream late: many times what a proof takes.
const KNOWN_FOR: Duration = Duration::from_secs(120);

/// The upper bound of that. Beyond it, all traces count as shared late.
const LATE_MAX: usize = 16_384;

#[derive(Debug)]
pub(super) struct SharingLog(Mutex<SharingState>);

/// What reached the stream late.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LateShare {
    /// Spans of a trace, or that some were lost.
    Trace(TraceId),
    /// That exports of these projects could not be read; none stands for all.
    Projects(Option<Vec<Project>>),
}

#[derive(Debug)]
struct SharingState {
    next: u64,
    /// The traces of batches on their way, with the times at which they came; the oldest first.
    held: BTreeMap<u64, (Instant, Vec<TraceId>)>,
    /// The oldest first.
    late: VecDeque<(Instant, LateShare)>,
    /// Since when nothing was removed from `late` that is not old.
    complete_since: Instant,
}

/// The number of batches on their way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HeldNumber(u64);

impl SharingLog {
    /// Creates the log of a process that knows nothing yet.
    pub(super) fn new() -> Self {
        Self(Mutex::new(SharingState {
            next: 0,
            held: BTreeMap::new(),
            late: VecDeque::new(),
            complete_since: Instant::now(),
        }))
    }

    /// Records that batches of these traces are on their way, until they are released.
    pub(super) fn hold(&self, traces: Vec<TraceId>) -> HeldNumber {
        let mut state = self.state();
        let number = state.next;
        state.next += 1;
        state.held.insert(number, (Instant::now(), traces));
        HeldNumber(number)
    }

    /// Records that batches are stored, or that their loss is in the outbox.
    pub(super) fn release(&self, HeldNumber(number): HeldNumber) {
        let mut state = self.state();
        if let Some((since, traces)) = state.held.remove(&number)
            && since.elapsed() >= HELD_MAX
        {
            for trace in traces {
                state.note(LateShare::Trace(trace));
            }
        }
    }

    /// Records that something was stored that waited.
    pub(super) fn note(&self, late: LateShare) {
        self.state().note(late);
    }

    /// Whether no batch has been on its way for long.
    pub(super) fn is_current(&self) -> bool {
        let state = self.state();
        state.held.first_key_value().is_none_or(|(_, (since, _))| since.elapsed() < HELD_MAX)
    }

    /// Returns since when all of a trace is stored that this process knows; none while something is on its way.
    pub(super) fn shared_since(&self, trace: TraceId, project: &Project) -> Option<Instant> {
        let state = self.state();
        if state.held.values().any(|(_, traces)| traces.contains(&trace)) {
            return None;
        }
        let last = state.late.iter().rev().find(|(_, late)| late.is_of(trace, project));
        Some(last.map_or(state.complete_since, |(at, _)| *at))
    }

    fn state(&self) -> MutexGuard<'_, SharingState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SharingState {
    fn note(&mut self, late: LateShare) {
        let now = Instant::now();
        // Repeated while a flood lasts: one entry has the last time.
        if let Some(last) = self.late.back_mut().filter(|(_, last)| *last == late) {
            last.0 = now;
            return;
        }
        while let Some((at, _)) = self.late.front() {
            let is_old = at.elapsed() > KNOWN_FOR;
            if !is_old && self.late.len() < LATE_MAX {
                break;
            }
            if let Some((at, _)) = self.late.pop_front() {
                self.complete_since = at;
            }
        }
        self.late.push_back((now, late));
    }
}

impl LateShare {
    fn is_of(&self, trace: TraceId, project: &Project) -> bool {
        match self {
            Self::Trace(late) => *late == trace,
            Self::Projects(projects) => {
                projects.as_ref().is_none_or(|projects| projects.contains(project))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use model::{Project, TraceId};
    use tokio::time::{Instant, advance};

    use super::{HELD_MAX, LATE_MAX, LateShare, SharingLog};

    fn trace(number: u64) -> TraceId {
        let mut bytes = [1; 16];
        bytes[..8].copy_from_slice(&number.to_be_bytes());
        TraceId::from_bytes(bytes).expect("not all zero")
    }

    #[tokio::test(start_paused = true)]
    async fn only_traces_that_were_held_or_lost_are_shared_late() {
        let (log, began, project) = (SharingLog::new(), Instant::now(), Project::default());
        let since = |number| log.shared_since(trace(number), &project);
        let fast = log.hold(vec![trace(1)]);
        let slow = log.hold(vec![trace(2), trace(3)]);
        assert_eq!((since(1), since(2), since(4)), (None, None, Some(began)));
        assert!(log.is_current());
        advance(HELD_MAX / 2).await;
        log.release(fast);
        assert_eq!(since(1), Some(began), "it was not on its way for long");
        advance(HELD_MAX / 2).await;
        assert!(!log.is_current());
        log.release(slow);
        assert!(log.is_current());
        assert_eq!((since(2), since(3)), (Some(began + HELD_MAX), Some(began + HELD_MAX)));
        assert_eq!(since(4), Some(began), "the others are not concerned");
    }

    #[tokio::test(start_paused = true)]
    async fn unreadable_exports_concern_their_projects() {
        let (log, began) = (SharingLog::new(), Instant::now());
        let [one, other] = ["one", "other"].map(|name| name.parse::<Project>().expect("a name"));
        advance(Duration::from_secs(5)).await;
        log.note(LateShare::Projects(Some(vec![one.clone()])));
        let later = Instant::now();
        assert_eq!(log.shared_since(trace(1), &one), Some(later));
        assert_eq!(log.shared_since(trace(1), &other), Some(began));
        advance(Duration::from_secs(5)).await;
        log.note(LateShare::Projects(None));
        assert_eq!(log.shared_since(trace(1), &other), Some(Instant::now()));
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_removed_early_counts_for_all_traces() {
        let (log, began, project) = (SharingLog::new(), Instant::now(), Project::default());
        for number in 0..=LATE_MAX as u64 {
            advance(Duration::from_millis(1)).await;
            log.note(LateShare::Trace(trace(number)));
        }
        let removed = began + Duration::from_millis(1);
        assert_eq!(log.shared_since(trace(u64::MAX / 2), &project), Some(removed));
        assert_eq!(log.shared_since(trace(0), &project), Some(removed), "the removed one too");
    }
}
