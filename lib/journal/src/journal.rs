//! The journal: the API for producers, the reader and the owner.

use std::{
    fmt, io,
    path::{Path, PathBuf},
    sync::{Arc, Condvar, Mutex},
    thread::{self, JoinHandle},
};

use crate::{
    batch::{Batch, Max},
    counts::{AppendResult, CloseReport, Counts, Why},
    flusher,
    folder::{Folder, OpenError},
    format::{self, HEADER_BYTES},
    limits::Limits,
    options::{Durability, Full, Options, Ready},
    recover::RecoveredFolder,
    settled_ranges::Stretch,
    shared::{Chosen, SharedJournal, lock, tell},
    state::State,
};

/// A bounded queue of records between many producers and one reader.
pub struct Journal {
    pub(crate) shared: Arc<SharedJournal>,
    flusher: Mutex<Option<JoinHandle<()>>>,
    closed: Mutex<Option<CloseReport>>,
}

impl Journal {
    /// Opens a journal under a head: bytes that describe to the reader what all records have in common. With a
    /// directory, the records that dead journals left there come first, each under its original head.
    pub fn open(options: Options, head: &[u8]) -> Result<Self, OpenError> {
        let now = options.now;
        let opened = now();
        let path = options.directory.clone().unwrap_or_default();
        let directory = options.directory.as_deref();
        let take = |directory| Folder::take(directory, options.durability);
        let folder = directory.map(take).transpose()?;
        let durability = if folder.is_some() { options.durability } else { Durability::Memory };
        let recovered = match &folder {
            Some(folder) => RecoveredFolder::of(folder)?,
            None => RecoveredFolder::default(),
        };
        let mut state = State::new(&options, recovered.next_id, head);
        state.place_own(recovered, opened);
        let shared = Arc::new(SharedJournal {
            state: Mutex::new(state),
            room: Condvar::new(),
            work: Condvar::new(),
            writer: Mutex::default(),
            slots: Mutex::default(),
            reader: Mutex::default(),
            syncing: Mutex::default(),
            folder,
            durability: Chosen::new(durability),
            now,
            opened,
        });
        shared.adopt()?;
        let journal = Self { shared, flusher: Mutex::default(), closed: Mutex::default() };
        journal.have_flusher().map_err(OpenError::at(&path))?;
        journal.set_ready(options.ready);
        Ok(journal)
    }

    /// Sets the head of later appends.
    pub fn set_head(&self, head: &[u8]) {
        let mut state = lock(&self.shared.state);
        if !state.closed && *state.next_head != *head {
            state.next_head = Arc::from(head);
            state.rotate();
            state.release();
            drop(state);
            self.shared.after_settling();
        }
    }

    /// Sets what happens from now on to a record that finds no room. Waiting producers apply the new setting.
    pub fn set_full(&self, full: Full) {
        lock(&self.shared.state).full = full;
        self.shared.room.notify_all();
    }

    /// Replaces the limits and the durability with those of `options`; the directory stays. Records above a smaller
    /// limit are kept, and producers wait until the reader has drained them. If the flusher thread cannot be started,
    /// returns the error and keeps the old durability.
    pub fn set_bounds(&self, options: &Options) -> io::Result<()> {
        let shared = &*self.shared;
        // `Limits::of` only checks whether there is a directory.
        let directory = shared.folder.as_ref().map(|_| PathBuf::new());
        let mut state = lock(&shared.state);
        state.limits = Limits::of(&Options { directory, ..options.clone() });
        // The next append checks for room against the new limits.
        state.room = 0;
        drop(state);
        shared.room.notify_all();
        if shared.folder.is_none() {
            return Ok(());
        }
        let before = shared.durability.get();
        shared.durability.set(options.durability);
        let result = self.have_flusher();
        if result.is_err() {
            shared.durability.set(before);
        }
        shared.unpark(&mut lock(&shared.state));
        result
    }

    /// Sets when the reader is notified that there are records to read.
    pub fn set_ready(&self, ready: Ready) {
        let mut state = lock(&self.shared.state);
        let (reader, end) = (state.reader, state.end);
        let reached = state.ready.replace(ready, reader, end);
        tell(state, reached);
    }

    /// Appends a record that represents `items` items. Waits for room as configured by [`Full`].
    pub fn append(&self, items: u32, record: &[u8]) -> AppendResult {
        self.append_at(items, record).map_or_else(AppendResult::Dropped, |_| AppendResult::Kept)
    }

    /// Like [`append`](Self::append), but returns the position of the record, for an owner that also stores its records
    /// elsewhere: it can [`settle`](Self::settle) a record without reading it.
    pub fn append_at(&self, items: u32, record: &[u8]) -> Result<Stretch, Why> {
        let shared = &*self.shared;
        let header = if shared.folder.is_some() {
            format::checked_header(items, record)
        } else {
            format::unchecked_header(items, record)
        };
        let bytes = (HEADER_BYTES + record.len()) as u64;
        // The clock is read before the lock is acquired, to keep the lock short.
        let durability = shared.durability.get();
        let now = match durability {
            Durability::Process | Durability::Host => Some((shared.now)()),
            Durability::Memory | Durability::WriteThrough => None,
        };
        let mut state = lock(&shared.state);
        if bytes > state.room {
            state = match shared.wait_for_room(state, bytes) {
                Ok(state) => state,
                Err((mut state, why)) => {
                    state.tally.refused += u64::from(items);
                    return Err(why);
                }
            };
        }
        let from = state.end;
        let reached = state.push(items, &header, record);
        let stretch = Stretch { from, to: state.end };
        match (now, durability) {
            (Some(now), _) => shared.write_if_due(state, reached, now),
            (None, Durability::WriteThrough) => shared.write_through(state, reached),
            (None, _) => tell(state, reached),
        }
        Ok(stretch)
    }

    /// Returns the next unread records, all under one head: at most `items_max` items and `bytes_max` bytes, but at
    /// least one record.
    pub fn read(&self, items_max: u64, bytes_max: usize) -> Option<Batch> {
        self.shared.read(Max { items: items_max, bytes: bytes_max })
    }

    /// Acknowledges a batch. Batches can be acknowledged in any order, and more than once. Returns how many items this
    /// call has settled: items that were already settled do not count, and a closed journal returns 0.
    pub fn acknowledge(&self, batch: &Batch) -> u64 {
        self.settle(batch.stretch())
    }

    /// Acknowledges the records in this range, whether they were read or not. Returns the same count as
    /// [`acknowledge`](Self::acknowledge).
    pub fn settle(&self, stretch: Stretch) -> u64 {
        let mut state = lock(&self.shared.state);
        if state.is_over {
            return 0;
        }
        let fresh = state.acknowledge(stretch.from, stretch.to);
        drop(state);
        self.shared.after_settling();
        fresh
    }

    /// Makes all records unread again that were read but not acknowledged.
    pub fn rewind(&self) {
        let no_read = lock(&self.shared.reader);
        let mut state = lock(&self.shared.state);
        let (reader, end) = (state.settled.cursor(), state.end);
        state.reader = reader;
        let reached = state.ready.moved(reader, end);
        drop(no_read);
        tell(state, reached);
    }

    /// Adopts the records that dead journals left in this directory, behind all existing records. Returns how many
    /// items they have; these items count as recovered. Does nothing without a directory.
    pub fn adopt(&self) -> Result<u64, OpenError> {
        self.shared.adopt()
    }

    /// Writes all accepted records, and syncs them under [`Durability::Host`]. Does nothing without a directory.
    pub fn flush(&self) -> io::Result<()> {
        self.shared.restore_files();
        let target = lock(&self.shared.state).end.at;
        self.shared.write_up_to(&mut lock(&self.shared.writer), target)?;
        if self.shared.durability.get() == Durability::Host { self.shared.sync() } else { Ok(()) }
    }

    /// Closes the journal: waiting producers get their records back as dropped, all records are written, and the folder
    /// is released. Records that are only in memory are dropped and counted.
    pub fn close(&self) -> CloseReport {
        let mut closed = lock(&self.closed);
        if let Some(closed) = *closed {
            return closed;
        }
        let shared = &*self.shared;
        {
            let mut state = lock(&shared.state);
            state.closed = true;
            state.room = 0;
        }
        shared.room.notify_all();
        shared.work.notify_all();
        if let Some(flusher) = lock(&self.flusher).take() {
            // If the flusher panicked, `close` also does its work.
            let _joined = flusher.join();
        }
        // Records that could not be written are counted below.
        let _counted = self.flush();
        // No other thread may continue in files that we no longer own.
        let _no_read = lock(&shared.reader);
        let _no_write = lock(&shared.writer);
        let mut slots = lock(&shared.slots);
        let (left, torn, slot, last) = {
            let mut state = lock(&shared.state);
            let torn = state.half_written();
            let dropped = state.abandon();
            let slot = state.lagging_slot();
            state.end();
            (CloseReport { queued: state.queued(), dropped }, torn, slot, state.settled_last())
        };
        if let Some(folder) = &shared.folder {
            for (id, length) in torn {
                // The next journal must not recover records that are counted as dropped.
                let _cut = folder.cut(id, length);
            }
            if let Some((id, slot)) = slot {
                shared.put_slot(&mut slots, id, slot);
            }
            shared.delete(&slots);
            if let Some(id) = last {
                // If the file stays, the next journal finds it empty.
                let _found = folder.remove(id);
            }
            folder.release();
        }
        *closed = Some(left);
        left
    }

    /// The folder that this journal owns exclusively until it is closed; `None` if the journal does not write to disk.
    /// The journal does not touch files in it that are not named like segments.
    pub fn folder(&self) -> Option<&Path> {
        self.shared.folder.as_ref().map(Folder::path)
    }

    /// Returns a snapshot of the counters.
    pub fn counts(&self) -> Counts {
        let now = (self.shared.now)();
        lock(&self.shared.state).counts(now, self.shared.opened)
    }

    /// Returns how full the journal is, from 0 to 1.
    pub fn pressure(&self) -> f64 {
        lock(&self.shared.state).pressure()
    }

    /// Starts the flusher thread, if it is not running and the durability needs it.
    fn have_flusher(&self) -> io::Result<()> {
        let mut flusher = lock(&self.flusher);
        if flusher.is_none() && self.shared.durability.get() != Durability::Memory {
            let shared = Arc::clone(&self.shared);
            let thread = thread::Builder::new().name("journal-flush".to_owned());
            *flusher = Some(thread.spawn(move || flusher::run(&shared))?);
        }
        Ok(())
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        self.close();
    }
}

impl fmt::Debug for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Journal").field("counts", &self.counts()).finish_non_exhaustive()
    }
}
