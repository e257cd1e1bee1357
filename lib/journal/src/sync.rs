//! Syncs written records to the device.

use std::{io, mem, sync::MutexGuard};

use crate::{
    options::Durability,
    shared::{SharedJournal, lock},
    state::State,
};

/// The data under the lock for syncing: one sync at a time, so that the second caller has waited for the first.
#[derive(Debug, Default)]
pub(crate) struct SyncState {
    /// Segments that may not be on the device, each with its sync error. The device reports an error only once, so an
    /// entry stays until its segment ends.
    failed: Vec<(u64, io::Error)>,
}

impl SharedJournal {
    /// Requests that the flusher syncs the last write, under [`Durability::Host`].
    pub(crate) fn note_unsynced(&self, state: &mut MutexGuard<'_, State>) {
        if self.durability.get() == Durability::Host {
            state.unsynced = true;
            self.unpark(state);
        }
    }

    /// Syncs written data to the device. Fails as long as a segment is queued for which a sync failed once.
    pub(crate) fn sync(&self) -> io::Result<()> {
        let mut syncing = lock(&self.syncing);
        // The flag is reset first: a write from now on sets it again.
        lock(&self.state).unsynced = false;
        let mut unsynced = mem::take(&mut lock(&self.writer).unsynced);
        unsynced.extend(lock(&self.slots).unsynced.take());
        for (id, file) in unsynced {
            if let Err(error) = file.sync_data() {
                lock(&self.state).tally.blame(&error);
                syncing.failed.push((id, error));
            }
        }
        let mut state = lock(&self.state);
        syncing.failed.retain(|&(id, _)| state.segment_mut(id).is_some());
        drop(state);
        let Some((id, error)) = syncing.failed.last() else { return Ok(()) };
        let words = format!(
            "segment {id:016x} could not be synced: {error}; what it holds may not be on the device until it is acknowledged"
        );
        Err(io::Error::new(error.kind(), words))
    }
}

#[cfg(test)]
mod tests {
    use std::{fs::File, os::fd::OwnedFd, time::Instant};

    use super::*;
    use crate::{AppendResult, Journal, Options};

    #[expect(clippy::disallowed_methods, reason = "a test is a main: this is its clock")]
    fn now() -> Instant {
        Instant::now()
    }

    #[test]
    fn what_the_device_refused_is_not_forgotten() {
        let directory = tempfile::tempdir().unwrap();
        let options = Options {
            durability: Durability::Host,
            ..Options::in_directory(directory.path(), now)
        };
        let journal = Journal::open(options, b"one").unwrap();
        assert_eq!(journal.append(1, b"a"), AppendResult::Kept);
        journal.flush().unwrap();
        let shared = &journal.shared;
        let (reader, _writer) = io::pipe().unwrap();
        // A file that cannot be synced.
        let pipe = File::from(OwnedFd::from(reader));
        lock(&shared.writer).unsynced.push((0, pipe.into()));
        for _ in 0..2 {
            let error = journal.flush().unwrap_err().to_string();
            assert!(error.contains("0000000000000000 could not be synced"), "{error}");
        }
        assert_eq!(journal.counts().write_errors, 1);
        journal.set_head(b"two");
        journal.acknowledge(&journal.read(1, 1).unwrap());
        journal.flush().unwrap();
    }
}
