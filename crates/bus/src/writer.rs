//! The writer thread: it writes published batches to the journal in groups, then adds them for subscribers, then acknowledges the
//! publishers.
//!
//! Batches that are published while a group is written go into the next group, so that many publishers share the cost of a write.
//! A forgotten trace is settled in the journal, behind a record of that: a batch that was settled behind an unsettled one is read
//! again when the journal is opened, and that record with it. Space on disk is freed from the front, so live traces that have
//! been there for long are copied to the end before they block too much settled space.

use std::sync::Arc;

use journal::{Journal, Stretch, Why};
use model::{Timestamp, TraceId};
use tokio::sync::{mpsc, oneshot};

use crate::{
    Batch, Channel, PublishError,
    record::Record,
    refusals::BatchDigest,
    seal::Sealer,
    spans::Spans,
    traces::{BatchSize, NoRoom, PendingBatches, ReleasedTrace, StoredBatch},
};

/// The upper bound of publishers in one group.
const GROUP_MAX: usize = 256;

/// The fill ratio of the journal from which old batches are copied to its end. The journal is four times as large as the stored
/// batches, so at least half of it is settled by then, and a copy frees more than it takes.
const COPY_FROM: f64 = 0.5;

/// Bytes that are copied at a time, so that no publisher waits for long.
const COPY_BYTES_MAX: usize = 8 << 20;

/// A command to the writer thread.
#[derive(Debug)]
pub(crate) enum Command {
    Publish(Publish),
    /// A trace was forgotten.
    Release,
    /// Try to write to the journal.
    Try,
}

/// A publish request.
#[derive(Debug)]
pub(crate) struct Publish {
    pub(crate) now: Timestamp,
    pub(crate) batches: Vec<Batch>,
    pub(crate) reply: oneshot::Sender<Result<(), PublishError>>,
}

/// The state of the writer thread.
#[derive(Debug)]
pub(crate) struct Writer {
    pub(crate) journal: Arc<Journal>,
    pub(crate) spans: Spans,
    /// The number of the next batch.
    pub(crate) next: u64,
    pub(crate) sealer: Sealer,
    pub(crate) buffer: Vec<u8>,
}

/// Batches that are appended and not flushed.
#[derive(Default)]
struct Group {
    coming: PendingBatches,
    batches: Vec<(Timestamp, TraceId, StoredBatch)>,
}

/// The pending acknowledgement of a publisher.
struct Ack {
    reply: oneshot::Sender<Result<(), PublishError>>,
    result: Result<(), PublishError>,
    /// Whether the group contains at least one of its batches.
    has_some: bool,
}

impl Writer {
    /// Writes until all senders are dropped.
    pub(crate) fn run(mut self, mut commands: mpsc::Receiver<Command>) {
        let mut round = Vec::new();
        while commands.blocking_recv_many(&mut round, GROUP_MAX) > 0 {
            self.round(round.drain(..));
        }
        self.round([].into_iter());
    }

    fn round(&mut self, commands: impl Iterator<Item = Command>) {
        let mut group = Group::default();
        let mut told = Vec::new();
        let mut is_tried = false;
        for command in commands {
            match command {
                Command::Publish(publish) => told.push(self.take(publish, &mut group)),
                Command::Release => {}
                Command::Try => is_tried = true,
            }
        }
        let mut released = std::mem::take(&mut self.spans.lock().released);
        if is_tried {
            released.extend(nothing_released());
        }
        let settled = self.bury(released);
        let written = self.journal.flush();
        match &written {
            Ok(()) => self.add(group),
            Err(_) => self.give_up(group),
        }
        for stretch in settled {
            self.journal.settle(stretch);
        }
        for Ack { reply, mut result, has_some } in told {
            if let Err(error) = &written
                && has_some
            {
                result = Err(PublishError::Journal { reason: error.to_string() });
            }
            // A publisher that does not wait any more has been cancelled.
            reply.send(result).ok();
        }
        self.copy_oldest();
    }

    /// Appends the batches for which there is room.
    fn take(&mut self, publish: Publish, group: &mut Group) -> Ack {
        let Publish { now, batches, reply } = publish;
        let limits = self.spans.limits;
        self.spans.lock().expire(now, limits.age_max);
        let mut told = Ack { reply, result: Ok(()), has_some: false };
        // An empty batch would cost its slot and carry no data.
        for batch in batches.into_iter().filter(|batch| !batch.bytes.is_empty()) {
            let Batch { channel: Channel { trace, .. }, spans, bytes, projects, .. } = &batch;
            if !self.spans.lock().is_open_to(*trace, projects.as_deref(), *spans) {
                continue;
            }
            let size = BatchSize { trace: *trace, spans: *spans, bytes: bytes.len() };
            let room = self.spans.lock().make_room(&limits, &mut group.coming, size);
            let appended = match room {
                Ok(()) => self.append(&batch),
                Err(NoRoom::Trace | NoRoom::Project) => Err(Why::TooLarge),
                Err(NoRoom::Bus) => Err(Why::Full),
            };
            match appended {
                Ok(stored) => {
                    group.batches.push((now, *trace, stored));
                    told.has_some = true;
                }
                Err(why) => {
                    let mut kept = self.spans.lock();
                    if why == Why::TooLarge {
                        kept.lose(now, *trace);
                        kept.over_spans += u64::from(*spans);
                        continue;
                    }
                    kept.refuse(now, *trace, BatchDigest::of(bytes));
                    told.result = Err(match room {
                        Err(_) => PublishError::Full { bytes_max: limits.bytes_max },
                        Ok(()) => PublishError::Journal { reason: "it is full".to_owned() },
                    });
                }
            }
        }
        told
    }

    fn append(&mut self, batch: &Batch) -> Result<StoredBatch, Why> {
        let number = self.next;
        let stretch = self.put(number, batch.channel.trace, batch.spans, &batch.bytes)?;
        self.next += 1;
        Ok(StoredBatch { number, spans: batch.spans, bytes: batch.bytes.clone(), stretch })
    }

    fn put(
        &mut self,
        number: u64,
        trace: TraceId,
        spans: u32,
        bytes: &[u8],
    ) -> Result<Stretch, Why> {
        Record::Batch { number, trace, bytes: &[] }.write(&mut self.buffer);
        self.sealer.seal(&mut self.buffer, bytes).ok_or(Why::TooLarge)?;
        let stretch = self.journal.append_at(spans, &self.buffer);
        // One large batch is no reason to keep as much memory for all later ones.
        self.buffer.shrink_to(BUFFER_BYTES_MAX);
        stretch
    }

    fn add(&self, group: Group) {
        let mut kept = self.spans.lock();
        for (now, trace, stored) in group.batches {
            kept.add(now, trace, stored);
        }
    }

    /// Refuses and settles a group that could not be written: the next replay of the journal must not find it.
    fn give_up(&self, group: Group) {
        for (now, trace, stored) in group.batches {
            self.spans.lock().refuse(now, trace, BatchDigest::of(&stored.bytes));
            self.journal.settle(stored.stretch);
        }
    }

    /// Records forgotten traces, and returns the stretches to settle once the records are written. If there is no room for a
    /// record, a restart may replay a forgotten trace, until it is too old.
    fn bury(&mut self, released: Vec<ReleasedTrace>) -> Vec<Stretch> {
        let mut settled = Vec::new();
        for ReleasedTrace { trace, before, stretches } in released {
            Record::Forgotten { before, trace }.write(&mut self.buffer);
            settled.extend(self.journal.append_at(0, &self.buffer));
            settled.extend(stretches);
        }
        settled
    }

    /// Copies the oldest batches to the end of the journal, where they block too much space.
    fn copy_oldest(&mut self) {
        if self.journal.pressure() < COPY_FROM {
            return;
        }
        let oldest = self.spans.lock().oldest(COPY_BYTES_MAX);
        let mut copies = Vec::new();
        for (trace, batches) in oldest {
            for StoredBatch { number, spans, bytes, .. } in batches {
                match self.put(number, trace, spans, &bytes) {
                    Ok(copy) => copies.push((trace, number, copy)),
                    Err(_) => break,
                }
            }
        }
        let is_written = self.journal.flush().is_ok();
        for (trace, number, copy) in copies {
            let before = match is_written {
                true => self.spans.lock().moved(trace, number, copy),
                false => None,
            };
            // A copy of a trace that was forgotten meanwhile, or one that was not written, is not needed.
            self.journal.settle(before.unwrap_or(copy));
        }
    }
}

/// Returns a release without effect: of a trace id that is never used, and without batches.
fn nothing_released() -> Option<ReleasedTrace> {
    let trace = TraceId::from_bytes([0xff; 16])?;
    Some(ReleasedTrace { trace, before: 0, stretches: Vec::new() })
}

/// The capacity of the buffer that is kept between records.
const BUFFER_BYTES_MAX: usize = 64 * 1024;
