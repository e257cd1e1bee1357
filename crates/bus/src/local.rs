//! The bus of one process: spans in memory for subscribers, and in a journal for the restart after a crash.
//!
//! Published batches are written to the operating system before the publisher gets its acknowledgement: the end of the process,
//! however sudden, loses nothing. The bus does not wait for the storage device: the end of the machine may lose data that it had
//! not written yet.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
    thread::{self, JoinHandle},
    time::Instant,
};

use journal::{Durability, Full, Journal};
use model::{Fault, Faulty, Project, Timestamp};
use thiserror::Error;
use tokio::sync::{mpsc, oneshot};

use crate::{
    Batch, Bus, Channel, Doubt, Era, Hints, Limits, PublishError, ReplaySummary, SealKeys, Signal,
    Subject, Subscription, hints,
    notices::Notices,
    record::{HEAD, PREFIX_BYTES},
    replay::replay,
    seal::SEAL_BYTES,
    spans::Spans,
    writer::{Command, Publish, Writer},
};

/// The ratio of the disk bound to the memory bound: half of the journal may be settled before live batches are copied.
const DISK_FACTOR: u64 = 4;

/// The lower bound of the journal on disk; a journal frees space by sixteenths.
const DISK_BYTES_MIN: u64 = 4 << 20;

/// The memory of the journal itself, beside one batch of the largest size.
const JOURNAL_BYTES: usize = 4 << 20;

/// Publishers in the queue of the writer. Further publishers wait for a slot in the queue.
const COMMANDS_MAX: usize = 1024;

/// The options of a bus.
#[derive(Clone, Debug)]
pub struct Options {
    /// The directory of the journal.
    pub directory: PathBuf,
    /// The upper bounds of stored spans; the journal may use four times as much on disk.
    pub limits: Limits,
    /// The largest batch; a larger one counts as too large for its trace.
    pub batch_bytes_max: usize,
    /// The keys under which spans are sealed in the journal.
    pub keys: SealKeys,
}

/// A bus that shares spans and hints within one process.
#[derive(Debug)]
pub struct Local {
    spans: Spans,
    hints: hints::Sender,
    notices: Notices,
    journal: Arc<Journal>,
    replayed: ReplaySummary,
    /// None only during drop.
    commands: Option<mpsc::Sender<Command>>,
    writer: Option<JoinHandle<()>>,
}

/// A snapshot of the counters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Known traces.
    pub traces: usize,
    /// The memory cost of the stored batches in bytes.
    pub bytes: usize,
    /// The size of the journal on disk in bytes.
    pub journal_bytes: u64,
    /// Spans that were discarded because their trace or their project was at its bound.
    pub over_spans: u64,
    /// Spans without a subscriber that were discarded to make room for others.
    pub displaced_spans: u64,
    /// Spans that were discarded because their senders may not write to the project of the trace.
    pub foreign_spans: u64,
    /// The last write error of the journal, unless a later write succeeded.
    pub journal_error: Option<String>,
}

/// The reason why a bus cannot be opened.
#[derive(Debug, Error)]
pub enum OpenError {
    /// Its journal cannot be opened.
    #[error(transparent)]
    Journal(#[from] journal::OpenError),
    /// The system cannot start a thread.
    #[error("the thread that writes spans to their journal cannot be started: {0}")]
    Thread(#[from] io::Error),
}

impl Faulty for OpenError {
    fn fault(&self) -> Fault {
        match self {
            Self::Journal(_) => Fault::Invalid,
            Self::Thread(_) => Fault::Overloaded,
        }
    }
}

impl Local {
    /// Opens the bus with all batches that its journal holds. Reads files, so it blocks.
    pub fn open(options: Options, now: Timestamp) -> Result<Self, OpenError> {
        let Options { directory, limits, batch_bytes_max, keys } = options;
        let disk_max = (limits.bytes_max as u64).saturating_mul(DISK_FACTOR).max(DISK_BYTES_MIN);
        let memory_max =
            batch_bytes_max.saturating_add(PREFIX_BYTES + SEAL_BYTES + JOURNAL_BYTES) as u64;
        let options = journal::Options {
            memory_max,
            // Flushed once for a complete group, by the writer.
            durability: Durability::Memory,
            full: Full::Count,
            ..journal::Options::in_directory(directory, clock)
        };
        let journal = Arc::new(Journal::open(options.disk_max(disk_max), HEAD)?);
        let (kept, next, replayed) = replay(&journal, &limits, &mut keys.opener(), now);
        let spans = Spans::new(limits, kept);
        let (commands, receiver) = mpsc::channel(COMMANDS_MAX);
        let writer = Writer {
            journal: Arc::clone(&journal),
            spans: spans.clone(),
            next,
            sealer: keys.sealer(),
            buffer: Vec::new(),
        };
        let writer =
            thread::Builder::new().name("bus".to_owned()).spawn(move || writer.run(receiver))?;
        Ok(Self {
            spans,
            hints: hints::Sender::new(),
            notices: Notices::default(),
            journal,
            replayed,
            commands: Some(commands),
            writer: Some(writer),
        })
    }

    /// Returns the summary of the journal replay at startup.
    pub fn replayed(&self) -> ReplaySummary {
        self.replayed
    }

    /// Returns the folder that belongs to this bus exclusively while it is open; the next bus to open there finds its batches.
    pub fn folder(&self) -> Option<&Path> {
        self.journal.folder()
    }

    /// Tries whether the journal accepts writes again after an error: `counts` returns the result. While the server is not ready
    /// no sender may send, so that no other write would try it.
    pub fn try_journal(&self) {
        // If the queue is full, it holds other commands, which try the journal too.
        self.commands.as_ref().map(|commands| commands.try_send(Command::Try).ok());
    }

    /// Returns a snapshot of the counters.
    pub fn counts(&self) -> Counts {
        let journal = self.journal.counts();
        let kept = self.spans.lock();
        Counts {
            traces: kept.traces.len(),
            bytes: kept.bytes,
            journal_bytes: journal.disk_bytes,
            over_spans: kept.over_spans,
            displaced_spans: kept.displaced_spans,
            foreign_spans: kept.foreign_spans,
            journal_error: journal.last_write_error,
        }
    }
}

impl Bus for Local {
    type Subscription = Subscription;

    async fn publish(&self, now: Timestamp, batches: Vec<Batch>) -> Result<(), PublishError> {
        let (reply, told) = oneshot::channel();
        let publish = Command::Publish(Publish { now, batches, reply });
        let commands = self.commands.as_ref().ok_or(PublishError::Closed)?;
        commands.send(publish).await.map_err(|_| PublishError::Closed)?;
        told.await.unwrap_or(Err(PublishError::Closed))
    }

    fn subscribe(&self, channel: Channel, project: &Project) -> Subscription {
        self.spans.subscribe(channel.trace, project)
    }

    fn expect(&self, channel: Channel) {
        self.spans.expect(channel.trace, 0);
    }

    fn state(&self, _channel: Channel) -> Option<String> {
        None
    }

    fn resume(&self, _channel: Channel, _since: Timestamp, _state: Option<&str>) {}

    async fn proved(&self, channel: Channel) -> Result<u64, Doubt> {
        self.spans.batches(channel.trace, &Era::default())
    }

    fn doubt(&self, channel: Channel) -> Option<Doubt> {
        self.spans.batches(channel.trace, &Era::default()).err()
    }

    fn lose(&self, now: Timestamp, channel: Channel) {
        self.spans.lose(now, channel.trace);
    }

    fn lose_unread(&self, signal: Signal, projects: Option<&[Project]>) {
        self.notices.lose_unread(signal, projects, 1);
    }

    fn unread(&self, signal: Signal, project: &Project) -> u64 {
        self.notices.unread(signal, project)
    }

    fn log(&self, channel: Channel) {
        self.notices.log(channel.trace, 1);
    }

    fn logs(&self, channel: Channel) -> u64 {
        self.notices.logs(channel.trace)
    }

    async fn flush(&self) -> Result<(), PublishError> {
        Ok(())
    }

    fn forget(&self, channel: Channel) {
        self.spans.lock().forget(channel.trace);
        // If the queue is full, it holds other commands, and the journal processes the release with them.
        self.commands.as_ref().map(|commands| commands.try_send(Command::Release).ok());
    }

    fn hint(&self, subject: Subject) {
        self.hints.send(subject);
    }

    fn hint_one(&self, subject: Subject) {
        self.hint(subject);
    }

    fn set_available(&self, _is_available: bool) {}

    fn hints(&self) -> Hints {
        self.hints.listen()
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        drop(self.commands.take());
        if let Some(writer) = self.writer.take() {
            // A writer that panicked has ended as well; every batch that it acknowledged is written.
            writer.join().ok();
        }
        self.journal.close();
    }
}

/// The clock by which the journal measures age.
fn clock() -> Instant {
    tokio::time::Instant::now().into_std()
}
