//! What a producer does besides copying its record: it waits for room, and writes when that is due.

use std::{
    sync::MutexGuard,
    time::{Duration, Instant},
};

use crate::{
    counts::Why,
    options::Full,
    shared::{SharedJournal, lock, tell, wait_for},
    state::{Room, State},
    writer::REFUSED_PAUSE,
};

/// How old an unwritten record becomes before a producer writes it along.
const GROUP_AGE: Duration = Duration::from_millis(1);

/// How many unwritten bytes are written at once, however young.
const GROUP_BYTES: u64 = 256 * 1024;

type Guard<'a> = MutexGuard<'a, State>;

impl SharedJournal {
    /// Writes what is old or much enough; if somebody else does, that is enough.
    pub(crate) fn write_if_due(&self, mut state: Guard<'_>, reached: bool, now: Instant) {
        let since = *state.unwritten_since.get_or_insert(now);
        let unwritten = state.end.at - state.written.at;
        let is_due = now.saturating_duration_since(since) >= GROUP_AGE || unwritten >= GROUP_BYTES;
        let is_allowed = state.refused_until.is_none_or(|until| now >= until);
        let target = state.end.at;
        self.unpark(&mut state);
        tell(state, reached);
        if is_due
            && is_allowed
            && let Ok(mut writer) = self.writer.try_lock()
        {
            // What the disk says is in the counts, and the flusher tries again.
            let _counted = self.write_up_to(&mut writer, target);
        }
    }

    /// Writes the record that was appended last, or finds it written by somebody else's group.
    pub(crate) fn write_through(&self, state: Guard<'_>, reached: bool) {
        let target = state.end.at;
        let refused_until = state.refused_until;
        tell(state, reached);
        if refused_until.is_some_and(|until| (self.now)() < until) {
            return;
        }
        // What the disk says is in the counts, and the flusher tries again.
        let _counted = self.write_up_to(&mut lock(&self.writer), target);
    }

    /// Comes back when so many bytes fit, or with the reason why they will not.
    pub(crate) fn wait_for_room<'a>(
        &'a self,
        mut state: Guard<'a>,
        bytes: u64,
    ) -> Result<Guard<'a>, (Guard<'a>, Why)> {
        let mut since = None;
        let mut entered = None;
        // Once per wait: what has failed is not tried again before something changes.
        let (mut may_try, mut is_overdue) = (true, false);
        let result = loop {
            if state.closed {
                break Err(Why::Closed);
            }
            let now = (self.now)();
            let entered = *entered.get_or_insert(now);
            let is_refused = !is_overdue && state.refused_until.is_some_and(|until| now < until);
            match state.make_room(bytes, now) {
                Room::Made => break Ok(()),
                Room::Never => break Err(Why::TooLarge),
                step @ (Room::Delete | Room::Write)
                    if may_try && (step == Room::Delete || !is_refused) =>
                {
                    drop(state);
                    may_try = match step {
                        Room::Delete if is_overdue => self.delete_again(),
                        Room::Delete => self.delete_doomed(),
                        _ => self.write_group(&mut lock(&self.writer), u64::MAX).is_ok(),
                    };
                    state = lock(&self.state);
                    continue;
                }
                Room::None | Room::Delete | Room::Write => {}
            }
            if state.ready.press() {
                tell(state, true);
                // What happened meanwhile may have been the room.
                state = lock(&self.state);
                continue;
            }
            let held = now.saturating_duration_since(entered);
            let left = match state.full {
                Full::Count => Duration::ZERO,
                Full::HoldFor(most) => most.saturating_sub(held),
                Full::Hold => REFUSED_PAUSE,
            };
            if left.is_zero() {
                break Err(Why::Full);
            }
            if since.is_none() {
                since = Some(now);
                self.begin_hold(&mut state, now);
            }
            (state, is_overdue) = wait_for(&self.room, state, left.min(REFUSED_PAUSE));
            may_try = true;
        };
        if let Some(since) = since {
            self.end_hold(&mut state, since);
        }
        match result {
            Ok(()) => Ok(state),
            Err(why) => Err((state, why)),
        }
    }

    fn begin_hold(&self, state: &mut Guard<'_>, now: Instant) {
        state.tally.holding += 1;
        state.tally.holding_since += now.saturating_duration_since(self.opened);
    }

    fn end_hold(&self, state: &mut Guard<'_>, since: Instant) {
        let now = (self.now)();
        state.tally.holding -= 1;
        state.tally.holding_since -= since.saturating_duration_since(self.opened);
        state.tally.held += now.saturating_duration_since(since);
    }
}
