//! What is said of one exporter.

use std::time::{Duration, Instant};

use super::{
    Delivery, Line, Look,
    alarm::{Alarm, Say},
    delivery::Way,
    words::{items, kept, spoken},
};
use crate::{host::Topic, plan::Signal};

const SIGNALS: [Signal; 3] = [Signal::Spans, Signal::Logs, Signal::Metrics];
/// From where on a buffer is said to fill, and below which it no longer does.
const FILLING: f64 = 0.8;
const FILLED: f64 = 0.7;
/// How long something must be off until it is over.
const CALM: Duration = Duration::from_secs(5);

/// What a person was told of one exporter.
#[derive(Debug)]
pub(super) struct Exporter {
    ways: [Way; 3],
    filling: Alarm,
    holding: Alarm,
    drops: Alarm,
    disk: Alarm,
    /// What was dropped, and for how long producers were held, when that was last said to begin, and at the last look.
    dropped: [u64; 2],
    held: [Duration; 2],
}

impl Exporter {
    pub(super) fn new(look: &Look) -> Self {
        let calm = || Alarm::over_after(CALM);
        Self {
            ways: SIGNALS.map(|signal| Way::new(signal, look)),
            filling: calm(),
            holding: calm(),
            drops: calm(),
            disk: calm(),
            dropped: [0; 2],
            held: [Duration::ZERO; 2],
        }
    }

    pub(super) fn state(&self, look: &Look) -> Delivery {
        let has_accepted = SIGNALS.iter().any(|signal| look.way(*signal).accepted > 0);
        match () {
            () if self.ways.iter().any(Way::is_failing) => Delivery::Failing,
            () if self.ways.iter().any(Way::is_catching_up) => Delivery::CatchingUp,
            () if has_accepted => Delivery::Delivering,
            () => Delivery::Waiting,
        }
    }

    pub(super) fn failing_for(&self, now: Instant) -> Option<Duration> {
        self.ways.iter().filter_map(|way| way.failing_for(now)).max()
    }

    /// Whether producers are held, or were since the last look.
    pub(super) fn is_held(&self, look: &Look) -> bool {
        look.counts.holding > 0 || look.counts.held > self.held[1]
    }

    /// What is to be said now.
    pub(super) fn look(&mut self, look: &Look) -> Vec<Line> {
        let mut lines = Vec::new();
        for at in 0..self.ways.len() {
            let is_beside = (0..self.ways.len()).any(|it| it != at && self.ways[it].is_told());
            let said = self.ways[at].look(look, is_beside);
            lines.extend(said.map(|(is_over, line)| (Topic::Delivery, is_over, line)));
        }
        if look.is_buffered {
            lines.extend(self.disk(look).map(|(is_over, line)| (Topic::Disk, is_over, line)));
            lines.extend(self.filling(look).map(|(is_over, line)| (Topic::Buffer, is_over, line)));
            lines.extend(self.holding(look).map(|(is_over, line)| (Topic::Hold, is_over, line)));
            lines.extend(self.drops(look).map(|(is_over, line)| (Topic::Drops, is_over, line)));
        }
        (self.dropped[1], self.held[1]) = (look.counts.dropped, look.counts.held);
        lines
    }

    fn filling(&mut self, look: &Look) -> Option<(bool, String)> {
        let least = if self.filling.is_told() { FILLED } else { FILLING };
        let percent = (look.buffer * 100.0).floor();
        let what = if look.lossy { "what comes is dropped" } else { "whoever ends a span waits" };
        Some(match self.filling.look(look.now, look.buffer >= least)? {
            Say::Began { .. } => (
                false,
                format!("its buffer is {percent} % full ({}); when it is full, {what}", kept(look)),
            ),
            Say::Over => (true, format!("its buffer has room again: it is {percent} % full")),
        })
    }

    fn holding(&mut self, look: &Look) -> Option<(bool, String)> {
        match self.holding.look(look.now, self.is_held(look))? {
            Say::Began { .. } => {
                self.held[0] = self.held[1];
                let waiting = look.counts.holding.max(1);
                Some((
                    false,
                    format!(
                        "its buffer is full ({}): the program waits for room in it with {waiting} of its threads, and all that they serve; nothing else is at fault",
                        kept(look)
                    ),
                ))
            }
            Say::Over => {
                let held = spoken(look.counts.held.saturating_sub(self.held[0]));
                Some((
                    true,
                    format!(
                        "nobody waits for room in its buffer any more; threads waited {held} in all"
                    ),
                ))
            }
        }
    }

    fn drops(&mut self, look: &Look) -> Option<(bool, String)> {
        let is_on = look.counts.dropped > self.dropped[1];
        match self.drops.look(look.now, is_on)? {
            Say::Began { .. } => {
                self.dropped[0] = self.dropped[1];
                let why = if look.lossy { "`lossy: true`" } else { "`buffer.on-full`" };
                Some((
                    false,
                    format!(
                        "its buffer is full ({}), and what comes is dropped, as {why} says",
                        kept(look)
                    ),
                ))
            }
            Say::Over => {
                let dropped = look.counts.dropped - self.dropped[0];
                Some((true, format!("nothing is dropped any more; {} were", items(dropped))))
            }
        }
    }

    fn disk(&mut self, look: &Look) -> Option<(bool, String)> {
        let folder = look.folder.as_ref().map(|it| it.display().to_string()).unwrap_or_default();
        Some(match self.disk.look(look.now, look.disk.is_some())? {
            Say::Began { .. } => {
                let said = look.disk.as_deref().unwrap_or_default();
                let waits = items(look.counts.queued);
                (
                    false,
                    format!(
                        "its buffer in `{folder}` cannot be written: {said}; {waits} wait, and what comes stays in memory while there is room"
                    ),
                )
            }
            Say::Over => (true, format!("its buffer in `{folder}` can be written again")),
        })
    }
}
