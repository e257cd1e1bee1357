//! The notices about one exporter.

use std::time::{Duration, Instant};

use super::{
    Delivery, Line, Snapshot,
    alarm::{AGAIN_AFTER, Alarm, Say},
    delivery::SignalWatch,
    words::{items, kept, spoken},
};
use crate::{host::Topic, plan::Signal};

/// The fill level from which a buffer is reported as filling, and the level below which this is over.
const FILLING: f64 = 0.8;
const FILLED: f64 = 0.7;
/// How long a condition must be off until it is over.
const CALM: Duration = Duration::from_secs(5);

/// The reported state of one exporter.
#[derive(Debug)]
pub(super) struct ExporterWatch {
    signals: [SignalWatch; 3],
    /// When the failure of a signal was last reported, and its kind.
    reported: Option<(Instant, String)>,
    filling: Alarm,
    holding: Alarm,
    drops: Alarm,
    disk: Alarm,
    /// The folder that last had a write error.
    unwritten: String,
    dropped: Growth<u64>,
    held: Growth<Duration>,
    ends: LastEnds,
}

/// The outcomes of the last items.
#[derive(Debug, Default)]
struct LastEnds {
    delivered: u64,
    rejected: u64,
    /// Whether all of the last ended items were rejected.
    is_rejecting: bool,
}

/// A sum that only grows, at two times.
#[derive(Debug, Default)]
struct Growth<T> {
    /// The value when its growth was last reported.
    begin: T,
    /// The value at the last snapshot.
    last: T,
}

impl ExporterWatch {
    pub(super) fn new(snapshot: &Snapshot) -> Self {
        let calm = || Alarm::over_after(CALM);
        Self {
            signals: Signal::ALL.map(|signal| SignalWatch::new(signal, snapshot)),
            reported: None,
            filling: calm(),
            holding: calm(),
            drops: calm(),
            disk: calm(),
            unwritten: String::new(),
            dropped: Growth::default(),
            held: Growth::default(),
            ends: LastEnds::default(),
        }
    }

    pub(super) fn state(&self, snapshot: &Snapshot) -> Delivery {
        let has_accepted = Signal::ALL.iter().any(|signal| snapshot.signal(*signal).accepted > 0);
        if self.signals.iter().any(SignalWatch::is_failing) {
            Delivery::Failing
        } else if self.signals.iter().any(SignalWatch::is_catching_up) {
            Delivery::CatchingUp
        } else if self.ends.is_rejecting {
            Delivery::Rejecting
        } else if has_accepted {
            Delivery::Delivering
        } else {
            Delivery::Waiting
        }
    }

    pub(super) fn failing_for(&self, now: Instant) -> Option<Duration> {
        self.signals.iter().filter_map(|signal| signal.failing_for(now)).max()
    }

    /// Returns whether producers are blocked, or were since the last snapshot.
    pub(super) fn is_held(&self, snapshot: &Snapshot) -> bool {
        snapshot.counts.holding > 0 || snapshot.counts.held > self.held.last
    }

    /// Returns the notices that are due.
    pub(super) fn observe(&mut self, snapshot: &Snapshot) -> Vec<Line> {
        self.ends.observe(snapshot);
        let mut lines = Vec::new();
        for at in 0..self.signals.len() {
            let is_beside =
                (0..self.signals.len()).any(|it| it != at && self.signals[it].is_reported());
            let kind = self.signals[at].failure_kind(snapshot);
            let is_early = self.reported.as_ref().is_some_and(|(last, reported)| {
                snapshot.now < *last + AGAIN_AFTER && *reported == kind
            });
            let said = self.signals[at].observe(snapshot, (is_beside, is_early));
            if let Some((false, _)) = said {
                self.reported = Some((snapshot.now, kind));
            }
            lines.extend(said.map(|(is_over, line)| (Topic::Delivery, is_over, line)));
        }
        if snapshot.is_buffered {
            lines.extend(self.disk(snapshot).map(|(is_over, line)| (Topic::Disk, is_over, line)));
            lines.extend(
                self.filling(snapshot).map(|(is_over, line)| (Topic::Buffer, is_over, line)),
            );
            lines
                .extend(self.holding(snapshot).map(|(is_over, line)| (Topic::Hold, is_over, line)));
            lines.extend(self.drops(snapshot).map(|(is_over, line)| (Topic::Drops, is_over, line)));
        }
        (self.dropped.last, self.held.last) = (snapshot.counts.dropped, snapshot.counts.held);
        lines
    }

    fn filling(&mut self, snapshot: &Snapshot) -> Option<(bool, String)> {
        let least = if self.filling.is_reported() { FILLED } else { FILLING };
        let percent = (snapshot.buffer * 100.0).floor();
        let what =
            if snapshot.lossy { "what comes is dropped" } else { "threads that end a span wait" };
        Some(match self.filling.observe(snapshot.now, snapshot.buffer >= least)? {
            Say::Began { .. } => (
                false,
                format!(
                    "has a buffer that is {percent} % full ({}); when it is full, {what}",
                    kept(snapshot)
                ),
            ),
            Say::Over => (true, format!("has room in its buffer again: it is {percent} % full")),
        })
    }

    fn holding(&mut self, snapshot: &Snapshot) -> Option<(bool, String)> {
        match self.holding.observe(snapshot.now, self.is_held(snapshot))? {
            Say::Began { .. } => {
                self.held.begin = self.held.last;
                let waiting = snapshot.counts.holding.max(1);
                Some((
                    false,
                    format!(
                        "has a full buffer ({}): {waiting} of the program's threads wait for room in it, and so does all that they serve; nothing else is at fault",
                        kept(snapshot)
                    ),
                ))
            }
            Say::Over => {
                let held = spoken(snapshot.counts.held.saturating_sub(self.held.begin));
                Some((
                    true,
                    format!(
                        "has room in its buffer, and no thread waits for it any more; threads waited {held} in all"
                    ),
                ))
            }
        }
    }

    fn drops(&mut self, snapshot: &Snapshot) -> Option<(bool, String)> {
        let is_on = snapshot.counts.dropped > self.dropped.last;
        match self.drops.observe(snapshot.now, is_on)? {
            Say::Began { .. } => {
                self.dropped.begin = self.dropped.last;
                let why = if snapshot.lossy { "`lossy: true`" } else { "`buffer.on-full`" };
                Some((
                    false,
                    format!(
                        "has a full buffer ({}), and drops new items, as {why} configures",
                        kept(snapshot)
                    ),
                ))
            }
            Say::Over => {
                let dropped = snapshot.counts.dropped - self.dropped.begin;
                Some((true, format!("drops nothing any more; {} dropped", items(dropped))))
            }
        }
    }

    fn disk(&mut self, snapshot: &Snapshot) -> Option<(bool, String)> {
        let observed = self.disk.observe(snapshot.now, snapshot.disk.is_some());
        if let Some((folder, _)) = &snapshot.disk {
            self.unwritten = folder.display().to_string();
        }
        let folder = &self.unwritten;
        Some(match observed? {
            Say::Began { .. } => {
                let said = snapshot.disk.as_ref().map_or("", |(_, reason)| reason);
                let waits = items(snapshot.counts.queued);
                (
                    false,
                    format!(
                        "cannot write its buffer in `{folder}`: {said}; {waits} to deliver, and new items stay in memory while there is room"
                    ),
                )
            }
            Say::Over => (true, format!("can write its buffer in `{folder}` again")),
        })
    }
}

impl LastEnds {
    fn observe(&mut self, snapshot: &Snapshot) {
        let (delivered, rejected) = (snapshot.counts.delivered, snapshot.counts.rejected);
        if delivered > self.delivered {
            self.is_rejecting = false;
        } else if rejected > self.rejected {
            self.is_rejecting = true;
        }
        (self.delivered, self.rejected) = (delivered, rejected);
    }
}
