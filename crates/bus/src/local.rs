//! The bus of one process: spans in memory for those who subscribe, and in a journal for whoever comes after a crash.
//!
//! What was published is written to the operating system before its publisher is told: the end of the process, however
//! sudden, costs nothing. Nothing waits for the device: the end of the machine may cost what it had not written.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
    thread::{self, JoinHandle},
    time::Instant,
};

use journal::{Durability, Full, Journal};
use model::{Fault, Faulty, Project, Timestamp, TraceId};
use thiserror::Error;
use tokio::sync::{mpsc, oneshot};

use crate::{
    Batch, Bus, Hints, Limits, PublishError, ReplaySummary, SealKeys, Subject, Subscription, hints,
    record::{HEAD, PREFIX_BYTES},
    replay::replay,
    seal::SEAL_BYTES,
    spans::Spans,
    writer::{Command, Publish, Writer},
};

/// How many times more than is kept may be on disk: half of it may be over before what is not is copied.
const DISK_FACTOR: u64 = 4;

/// The least on disk; a journal gives room back by sixteenths.
const DISK_BYTES_MIN: u64 = 4 << 20;

/// What the journal has in memory on its own account, beside one batch of the largest kind.
const JOURNAL_BYTES: usize = 4 << 20;

/// Publishers that wait to be written. Further ones wait to be among them.
const COMMANDS_MAX: usize = 1024;

/// How a bus is opened.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where the journal is.
    pub directory: PathBuf,
    /// How much is kept; four times as much may be on disk.
    pub limits: Limits,
    /// The largest batch; a larger one counts as too large for its trace.
    pub batch_bytes_max: usize,
    /// Under what spans are sealed in the journal.
    pub keys: SealKeys,
}

/// Shares spans and hints within one process.
#[derive(Debug)]
pub struct Local {
    spans: Spans,
    hints: hints::Sender,
    journal: Arc<Journal>,
    replayed: ReplaySummary,
    /// None only while it is being dropped.
    commands: Option<mpsc::Sender<Command>>,
    writer: Option<JoinHandle<()>>,
}

/// Numbers of one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Traces that are known.
    pub traces: usize,
    /// What is kept costs so many bytes.
    pub bytes: usize,
    /// Bytes on disk.
    pub journal_bytes: u64,
    /// Spans that were not kept because their trace or their project was at its bound.
    pub over_spans: u64,
    /// Spans that nobody subscribed to, and that made room for others.
    pub displaced_spans: u64,
    /// What the disk said when it last refused, unless it has taken something since.
    pub journal_error: Option<String>,
}

/// Why a bus cannot be opened.
#[derive(Debug, Error)]
pub enum OpenError {
    /// Its journal cannot.
    #[error(transparent)]
    Journal(#[from] journal::OpenError),
    /// The system has no thread to give.
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
    /// Opens the bus with all that was left in its journal. Reads files, so that it blocks.
    pub fn open(options: Options, now: Timestamp) -> Result<Self, OpenError> {
        let Options { directory, limits, batch_bytes_max, keys } = options;
        let disk_max = (limits.bytes_max as u64).saturating_mul(DISK_FACTOR).max(DISK_BYTES_MIN);
        let memory_max =
            batch_bytes_max.saturating_add(PREFIX_BYTES + SEAL_BYTES + JOURNAL_BYTES) as u64;
        let options = journal::Options {
            memory_max,
            // Written once for a whole group, by whoever flushes.
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
            journal,
            replayed,
            commands: Some(commands),
            writer: Some(writer),
        })
    }

    /// What was found when it was opened.
    pub fn replayed(&self) -> ReplaySummary {
        self.replayed
    }

    /// The folder that is this bus's alone for as long as it is open; the next one to open there finds what it left.
    pub fn folder(&self) -> Option<&Path> {
        self.journal.folder()
    }

    /// Tries whether the journal takes something again, where it did not: `counts` tells. Nobody may send while nobody is
    /// ready, so that nothing else would.
    pub fn try_journal(&self) {
        // Where there is no place for it, others are there, and try it.
        self.commands.as_ref().map(|commands| commands.try_send(Command::Try).ok());
    }

    /// The numbers of this moment.
    pub fn counts(&self) -> Counts {
        let journal = self.journal.counts();
        let kept = self.spans.lock();
        Counts {
            traces: kept.traces.len(),
            bytes: kept.bytes,
            journal_bytes: journal.disk_bytes,
            over_spans: kept.over_spans,
            displaced_spans: kept.displaced_spans,
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

    fn subscribe(&self, trace: TraceId, project: &Project) -> Subscription {
        self.spans.subscribe(trace, project)
    }

    fn expect(&self, trace: TraceId) {
        self.spans.expect(trace);
    }

    fn is_whole(&self, trace: TraceId) -> bool {
        self.spans.is_whole(trace)
    }

    fn lose(&self, now: Timestamp, trace: TraceId) {
        self.spans.lose(now, trace);
    }

    fn refused(&self, trace: TraceId) -> u64 {
        self.spans.refused(trace)
    }

    fn forget(&self, trace: TraceId) {
        self.spans.lock().forget(trace);
        // Where there is no place for it, others are there, and the journal hears of it with them.
        self.commands.as_ref().map(|commands| commands.try_send(Command::Release).ok());
    }

    fn hint(&self, subject: Subject) {
        self.hints.send(subject);
    }

    fn hints(&self) -> Hints {
        self.hints.listen()
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        drop(self.commands.take());
        if let Some(writer) = self.writer.take() {
            // One that panicked has ended as well; what it had told to be safe is written.
            writer.join().ok();
        }
        self.journal.close();
    }
}

/// The clock by which the journal tells how old things are.
fn clock() -> Instant {
    tokio::time::Instant::now().into_std()
}
