//! The journal: what producers, the reader and the owner call.

use std::{
    fmt, io,
    sync::{Arc, Condvar, Mutex},
    thread::{self, JoinHandle},
};

use crate::{
    batch::{Batch, Max},
    counts::{Appended, Closed, Counts},
    flusher,
    folder::{Folder, OpenError},
    format::{self, HEADER_BYTES},
    limits::Limits,
    options::{Durability, Full, Options, Ready},
    recover::Recovered,
    shared::{Shared, lock, tell},
    state::State,
};

/// A bounded queue of records between many producers and one reader.
pub struct Journal {
    shared: Arc<Shared>,
    flusher: Mutex<Option<JoinHandle<()>>>,
    closed: Mutex<Option<Closed>>,
}

impl Journal {
    /// Opens a journal under a head: bytes that say to the reader what all records have in common. With a directory, what
    /// was left there by journals that are gone comes first, under the heads of its time.
    pub fn open(options: Options, head: &[u8]) -> Result<Self, OpenError> {
        let now = options.now;
        let opened = now();
        let folder = options.directory.as_deref().map(Folder::take).transpose()?;
        let durability = if folder.is_some() { options.durability } else { Durability::Memory };
        let recovered = match &folder {
            Some(folder) => Recovered::find(folder, Limits::of(&options).disk_max.unwrap_or(0))?,
            None => Recovered::default(),
        };
        let path = options.directory.clone().unwrap_or_default();
        let state = State::new(&options, recovered, head, opened);
        let shared = Arc::new(Shared {
            state: Mutex::new(state),
            room: Condvar::new(),
            work: Condvar::new(),
            writer: Mutex::default(),
            slots: Mutex::default(),
            reader: Mutex::default(),
            folder,
            durability,
            now,
            opened,
        });
        let flusher = if durability == Durability::Memory {
            None
        } else {
            let shared = Arc::clone(&shared);
            let thread = thread::Builder::new().name("journal-flush".to_owned());
            Some(thread.spawn(move || flusher::run(&shared)).map_err(OpenError::at(&path))?)
        };
        let journal = Self { shared, flusher: Mutex::new(flusher), closed: Mutex::default() };
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

    /// When the reader is told from now on that there is something to read.
    pub fn set_ready(&self, ready: Ready) {
        let mut state = lock(&self.shared.state);
        let (reader, end) = (state.reader, state.end);
        let reached = state.ready.replace(ready, reader, end);
        tell(state, reached);
    }

    /// Takes a record that stands for so many items. Waits for room if [`Full`] says so.
    pub fn append(&self, items: u32, record: &[u8]) -> Appended {
        let shared = &*self.shared;
        let header = if shared.folder.is_some() {
            format::checked_header(items, record)
        } else {
            format::unchecked_header(items, record)
        };
        let bytes = (HEADER_BYTES + record.len()) as u64;
        // Asked for before the lock, which is no place to wait for a clock.
        let now = match shared.durability {
            Durability::Process | Durability::Host => Some((shared.now)()),
            Durability::Memory | Durability::WriteThrough => None,
        };
        let mut state = lock(&shared.state);
        if bytes > state.room {
            state = match shared.wait_for_room(state, bytes) {
                Ok(state) => state,
                Err((mut state, why)) => {
                    state.tally.refused += u64::from(items);
                    return Appended::Dropped(why);
                }
            };
        }
        let reached = state.push(items, &header, record);
        match (now, shared.durability) {
            (Some(now), _) => shared.write_if_due(state, reached, now),
            (None, Durability::WriteThrough) => shared.write_through(state, reached),
            (None, _) => tell(state, reached),
        }
        Appended::Kept
    }

    /// The next unread records, all under one head: no more items and bytes than these, but one record at the least.
    pub fn read(&self, items_max: u64, bytes_max: usize) -> Option<Batch> {
        self.shared.read(Max { items: items_max, bytes: bytes_max })
    }

    /// The reader is done with a batch. In any order, and more than once is as good as once.
    pub fn acknowledge(&self, batch: &Batch) {
        let mut state = lock(&self.shared.state);
        if state.closed {
            return;
        }
        state.acknowledge(batch.from(), batch.to());
        drop(state);
        self.shared.after_settling();
    }

    /// What was read and not acknowledged is unread again.
    pub fn rewind(&self) {
        let _no_read = lock(&self.shared.reader);
        let mut state = lock(&self.shared.state);
        let (reader, end) = (state.settled.cursor(), state.end);
        state.reader = reader;
        let reached = state.ready.moved(reader, end);
        tell(state, reached);
    }

    /// Writes everything that was accepted, and syncs it under [`Durability::Host`]. Does nothing without a directory.
    pub fn flush(&self) -> io::Result<()> {
        self.shared.restore_files();
        let target = lock(&self.shared.state).end.at;
        self.shared.write_up_to(&mut lock(&self.shared.writer), target)?;
        if self.shared.durability == Durability::Host { self.shared.sync() } else { Ok(()) }
    }

    /// Ends the journal: producers that wait get their records back as dropped, everything is written, and the folder is
    /// free for others. What is in memory only is dropped, and counted.
    pub fn close(&self) -> Closed {
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
        // No read goes on in files that are not ours any more.
        let _no_read = lock(&shared.reader);
        let (left, last) = {
            let mut state = lock(&shared.state);
            let dropped = state.abandon();
            state.end();
            (Closed { queued: state.queued(), dropped }, state.settled_last())
        };
        if let Some(folder) = &shared.folder {
            // Whoever began to write before the end has finished when these are free.
            drop((lock(&shared.writer), lock(&shared.slots)));
            shared.delete_doomed();
            if let Some(id) = last {
                // Left behind, it is found to be empty by the next one.
                let _found = folder.remove(id);
            }
            folder.release();
        }
        *closed = Some(left);
        left
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
