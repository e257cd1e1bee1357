//! The rules of settling that are known before the first span arrives.

use std::{collections::HashSet, time::Duration};

use model::{LearnedProfile, SpanId, Timestamp};

use super::process::UNKNOWN;
use crate::started::StartedProcesses;

/// The rules that are known before the first span arrives.
#[derive(Debug)]
pub(crate) struct Rules {
    /// The trigger's own span, which is in the trace before all others.
    pub(crate) trigger: SpanId,
    /// Host and port that the trigger called; none if it called nothing that could send spans.
    pub(crate) target: Option<String>,
    /// When the attempt began, by our clock.
    pub(crate) began: Timestamp,
    /// When the trigger ended, by our clock.
    pub(crate) answered: Timestamp,
    /// Whether our trigger caused all work of the system, so that none of its spans starts earlier.
    pub(crate) is_fired: bool,
    /// The quiet period that the test declares, and the lag.
    pub(crate) flush: Option<Duration>,
    /// Whether spans come from a source that is queried.
    pub(crate) is_queried: bool,
    /// How long spans may be missing from the answers of a queried source; zero if all spans are pushed.
    pub(crate) lag: Duration,
    /// The upper bound of a quiet period that is not declared: a run must be able to become complete in time.
    pub(crate) quiet_max: Duration,
    /// The absences that the test declares: services behind a component that sends no spans, and peers that send none.
    pub(crate) absent: HashSet<String>,
    /// The learned profile of earlier runs.
    pub(crate) learned: LearnedProfile,
    /// The settings of the processes that we started.
    pub(crate) started: Option<StartedProcesses>,
    /// The longest gap between arrivals in earlier runs of the test.
    pub(crate) gap: Duration,
    /// How long after the last arrival or the response a verdict stays provisional.
    pub(crate) linger: Duration,
}

impl Rules {
    /// Returns the quiet period of a process of which nothing is known.
    pub(super) fn unknown(&self) -> Duration {
        UNKNOWN + self.lag
    }
}
