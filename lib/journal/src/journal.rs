//! The journal: what producers, the reader and the owner call.

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
    /// Opens a journal under a head: bytes that say to the reader what all records have in common. With a directory, what
    /// was left there by journals that are gone comes first, under the heads of its time.
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

    /// Later appends go under this head.
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

    /// What happens from now on to a record that finds no room; those that wait are decided anew.
    pub fn set_full(&self, full: Full) {
        lock(&self.shared.state).full = full;
        self.shared.room.notify_all();
    }

    /// Bounds and durability are from now on those of these options; the directory stays. What is over a smaller bound
    /// is kept, and producers wait until it is read. On an error, which is a lack of threads, the durability stays.
    pub fn set_bounds(&self, options: &Options) -> io::Result<()> {
        let shared = &*self.shared;
        // Whether there is one is all that matters.
        let directory = shared.folder.as_ref().map(|_| PathBuf::new());
        let mut state = lock(&shared.state);
        state.limits = Limits::of(&Options { directory, ..options.clone() });
        // Whoever appends next asks for room by the new ones.
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

    /// When the reader is told from now on that there is something to read.
    pub fn set_ready(&self, ready: Ready) {
        let mut state = lock(&self.shared.state);
        let (reader, end) = (state.reader, state.end);
        let reached = state.ready.replace(ready, reader, end);
        tell(state, reached);
    }

    /// Takes a record that stands for so many items. Waits for room if [`Full`] says so.
    pub fn append(&self, items: u32, record: &[u8]) -> AppendResult {
        self.append_at(items, record).map_or_else(AppendResult::Dropped, |_| AppendResult::Kept)
    }

    /// The same, and says where the record stands, for an owner that keeps its records elsewhere as well: it need not
    /// read one to [`settle`](Self::settle) it.
    pub fn append_at(&self, items: u32, record: &[u8]) -> Result<Stretch, Why> {
        let shared = &*self.shared;
        let header = if shared.folder.is_some() {
            format::checked_header(items, record)
        } else {
            format::unchecked_header(items, record)
        };
        let bytes = (HEADER_BYTES + record.len()) as u64;
        // Asked for before the lock, which is no place to wait for a clock.
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

    /// The next unread records, all under one head: no more items and bytes than these, but one record at the least.
    pub fn read(&self, items_max: u64, bytes_max: usize) -> Option<Batch> {
        self.shared.read(Max { items: items_max, bytes: bytes_max })
    }

    /// The reader is done with a batch. In any order, and more than once is as good as once. Says how many items this
    /// call has settled: none of those that were before, and none once the journal is closed.
    pub fn acknowledge(&self, batch: &Batch) -> u64 {
        self.settle(batch.stretch())
    }

    /// The same for what stands in this stretch, read or not.
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

    /// What was read and not acknowledged is unread again.
    pub fn rewind(&self) {
        let no_read = lock(&self.shared.reader);
        let mut state = lock(&self.shared.state);
        let (reader, end) = (state.settled.cursor(), state.end);
        state.reader = reader;
        let reached = state.ready.moved(reader, end);
        drop(no_read);
        tell(state, reached);
    }

    /// Takes over what was left by journals of this directory that are gone by now, behind everything that is here
    /// already, and says how many items that are: they count as recovered. Does nothing without a directory.
    pub fn adopt(&self) -> Result<u64, OpenError> {
        self.shared.adopt()
    }

    /// Writes everything that was accepted, and syncs it under [`Durability::Host`]. Does nothing without a directory.
    pub fn flush(&self) -> io::Result<()> {
        self.shared.restore_files();
        let target = lock(&self.shared.state).end.at;
        self.shared.write_up_to(&mut lock(&self.shared.writer), target)?;
        if self.shared.durability.get() == Durability::Host { self.shared.sync() } else { Ok(()) }
    }

    /// Ends the journal: producers that wait get their records back as dropped, everything is written, and the folder is
    /// free for others. What is in memory only is dropped, and counted.
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
            // A flusher that panicked has left its work to us as well.
            let _joined = flusher.join();
        }
        // What could not be written is counted below.
        let _counted = self.flush();
        // Nobody goes on in files that are not ours any more.
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
                // What is counted as dropped must not be found by the next one.
                let _cut = folder.cut(id, length);
            }
            if let Some((id, slot)) = slot {
                shared.put_slot(&mut slots, id, slot);
            }
            shared.delete(&slots);
            if let Some(id) = last {
                // Left behind, it is found to be empty by the next one.
                let _found = folder.remove(id);
            }
            folder.release();
        }
        *closed = Some(left);
        left
    }

    /// The folder that is this journal's alone until it is closed; none where nothing is written to disk. Files in it that
    /// are not named as segments are left alone.
    pub fn folder(&self) -> Option<&Path> {
        self.shared.folder.as_ref().map(Folder::path)
    }

    /// The numbers of this moment.
    pub fn counts(&self) -> Counts {
        let now = (self.shared.now)();
        lock(&self.shared.state).counts(now, self.shared.opened)
    }

    /// How full the journal is, from 0 to 1.
    pub fn pressure(&self) -> f64 {
        lock(&self.shared.state).pressure()
    }

    /// Starts the thread that writes on its own account, where there is none and the durability needs one.
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
