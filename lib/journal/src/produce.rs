//! The work of a producer besides copying its record: it waits for room, and writes records when a write is due.

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

/// The age of an unwritten record at which a producer writes it.
const GROUP_AGE: Duration = Duration::from_millis(1);

/// The number of unwritten bytes at which a producer writes them, at any age.
const GROUP_BYTES: u64 = 256 * 1024;

type Guard<'a> = MutexGuard<'a, State>;

impl SharedJournal {
    /// Writes the unwritten records if they are old enough or large enough. Skips the write if another thread is
    /// writing.
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
            // A write error is in the counts, and the flusher retries.
            let _counted = self.write_up_to(&mut writer, target);
        }
    }

    /// Writes the record that was appended last, unless another thread has written it with its group.
    pub(crate) fn write_through(&self, state: Guard<'_>, reached: bool) {
        let target = state.end.at;
        let refused_until = state.refused_until;
        tell(state, reached);
        if refused_until.is_some_and(|until| (self.now)() < until) {
            return;
        }
        // A write error is in the counts, and the flusher retries.
        let _counted = self.write_up_to(&mut lock(&self.writer), target);
    }

    /// Waits until `bytes` fit. Returns the reason if they will not.
    pub(crate) fn wait_for_room<'a>(
        &'a self,
        mut state: Guard<'a>,
        bytes: u64,
    ) -> Result<Guard<'a>, (Guard<'a>, Why)> {
        let mut since = None;
        let mut entered = None;
        // Once per wait: a failed step is not retried before the condition variable is notified or times out.
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
                // Room may have become available meanwhile.
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
