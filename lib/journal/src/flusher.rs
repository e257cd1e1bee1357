//! The flusher thread: writes the records that no later producer writes, and syncs them to the device.

use std::{sync::PoisonError, time::Duration};

use crate::{
    options::Durability,
    shared::{SharedJournal, lock, wait_for},
    writer::REFUSED_PAUSE,
};

/// How long a record waits for a later producer to write it.
const TAIL: Duration = Duration::from_millis(2);

/// The number of idle rounds before the flusher parks: waking it costs the producer more than a round costs the
/// flusher.
const IDLE_ROUNDS: u32 = 16;

/// The maximum delay between writing a record and syncing it to the device.
const SYNC_INTERVAL: Duration = Duration::from_millis(100);

/// Runs until the journal is closed. `close` writes the remaining records. Under [`Durability::Memory`] the flusher is
/// parked.
pub(crate) fn run(shared: &SharedJournal) {
    let mut idle = 0;
    let mut synced = shared.opened;
    loop {
        let (target, is_unwritten) = {
            let mut state = lock(&shared.state);
            let is_done = !state.unsynced && state.written.at >= state.end.at;
            if (idle >= IDLE_ROUNDS && is_done) || shared.durability.get() == Durability::Memory {
                state.parked = true;
                while state.parked && !state.closed {
                    state = shared.work.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
                idle = 0;
            }
            let pause = if state.refused_until.is_some() { REFUSED_PAUSE } else { TAIL };
            if !state.closed {
                (state, _) = wait_for(&shared.work, state, pause);
            }
            if state.closed {
                return;
            }
            (state.end.at, state.written.at < state.end.at)
        };
        idle = if is_unwritten { 0 } else { idle + 1 };
        if is_unwritten {
            // A write error is in the counts, and the next round retries.
            let _counted = shared.write_up_to(&mut lock(&shared.writer), target);
        }
        if shared.durability.get() == Durability::Host {
            let now = (shared.now)();
            if now.saturating_duration_since(synced) >= SYNC_INTERVAL {
                synced = now;
                let _counted = shared.sync();
            }
        }
    }
}
