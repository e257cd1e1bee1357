//! The decisions of a reader, played on a virtual clock: no batch that a sender believes stored is missing in a proof.
//!
//! Cursor, markers and memory are those of the bus. The stream around them loses, repeats and reorders deliveries, gets new leaders
//! that miss what was acknowledged, is wiped, and refuses. It is a model of NATS, and proves nothing about NATS itself: `tests/nats`
//! and `cargo xtask prove bus` have the real one.

use std::{collections::HashSet, time::Duration};

use model::{Project, Timestamp, TraceId};

use super::{
    cursor::{Cursor, Delivery, StreamFacts},
    markers::Markers,
    wire::write_projects,
};
use crate::{Limits, refusals::BatchDigest, spans::Spans, traces::TraceTable};

/// A fault of the reader that a play has to find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlantedFault {
    /// A marker proves when it is stored, not when it is delivered.
    EarlyMarker,
    /// A missing delivery is not noticed.
    IgnoredGap,
    /// A new leader is not noticed.
    IgnoredLeader,
    /// A stream that was made anew is not noticed.
    IgnoredWipe,
    /// A refusal is not in the database before its sender gets it.
    LateRefusal,
    /// A server that shared nothing for a moment counts as one that always did.
    ForgottenPause,
    /// Two readers use the same numbers for their markers.
    ReusedNumber,
    /// Any batch that comes counts as the repetition of a refused one.
    ForgottenRefusal,
}

impl PlantedFault {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::EarlyMarker,
        Self::IgnoredGap,
        Self::IgnoredLeader,
        Self::IgnoredWipe,
        Self::LateRefusal,
        Self::ForgottenPause,
        Self::ReusedNumber,
        Self::ForgottenRefusal,
    ];
}

/// What happened in a play.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlayCounts {
    /// Proofs that all batches are here.
    pub proved: u64,
    /// Proofs that were refused, with a reason.
    pub doubts: u64,
    /// Proofs of a second process that resumed the trace.
    pub resumed: u64,
    /// Proofs in a trace of which batches had been refused: their senders had sent them again.
    pub repeated: u64,
}

/// The number after which the markers of a process begin that resumes the trace.
const RESUMED_MARKERS: u64 = 1_000_000;

/// The number of steps in a play.
const STEPS: u32 = 150;

/// Plays once; an error describes a batch that a proof missed.
pub fn play(seed: u64, fault: Option<PlantedFault>) -> Result<PlayCounts, String> {
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let is_synced = dice.one_in(2);
    let mut play = Play {
        stream: ModelStream::new(is_synced),
        now: Duration::ZERO,
        batches: 0,
        sent: HashSet::new(),
        outbox: Vec::new(),
        repeats: Vec::new(),
        refused: HashSet::new(),
        shared_since: Some(Duration::ZERO),
        fault,
        counts: PlayCounts::default(),
        dice,
    };
    play.run().map_err(|why| format!("seed {seed}: {why}"))?;
    Ok(play.counts)
}

/// A generator of random numbers (xorshift).
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }

    fn one_in(&mut self, number: u64) -> bool {
        self.below(number) == 0
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ModelMessage {
    Batch(u64),
    Marker(u64),
    /// This batch was refused.
    Refused(u64),
}

/// A stream, and the consumer of one reader.
struct ModelStream {
    is_synced: bool,
    created: u64,
    leader: u64,
    /// The messages, from number 1 on.
    messages: Vec<ModelMessage>,
    consumer: Option<ModelConsumer>,
}

struct ModelConsumer {
    /// The next message to deliver.
    next: u64,
    deliveries: u64,
    /// Deliveries on their way: the number of the message and of the delivery.
    on_their_way: Vec<(u64, u64)>,
}

impl ModelStream {
    fn new(is_synced: bool) -> Self {
        Self { is_synced, created: 1, leader: 1, messages: Vec::new(), consumer: None }
    }

    fn facts(&self) -> StreamFacts {
        StreamFacts {
            created: Timestamp::from_nanos(self.created),
            leader: self.leader,
            first: 1,
            last: self.messages.len() as u64,
        }
    }

    fn deliver_more(&mut self) {
        let Some(consumer) = &mut self.consumer else { return };
        if consumer.next <= self.messages.len() as u64 {
            consumer.deliveries += 1;
            consumer.on_their_way.push((consumer.next, consumer.deliveries));
            consumer.next += 1;
        }
    }

    /// A delivery is lost, comes twice, or overtakes another one.
    fn disturb(&mut self, dice: &mut Dice) {
        let Some(consumer) = &mut self.consumer else { return };
        let Some(at) = consumer.on_their_way.len().checked_sub(1) else { return };
        match dice.below(3) {
            0 => drop(consumer.on_their_way.remove(0)),
            1 => consumer.on_their_way.insert(0, consumer.on_their_way[0]),
            _ => consumer.on_their_way.swap(0, at),
        }
    }

    /// Another node leads. Without a sync it may miss what the last one acknowledged; consumers end.
    fn elect(&mut self, dice: &mut Dice) {
        self.leader += 1;
        self.consumer = None;
        if !self.is_synced {
            let kept = self.messages.len().saturating_sub(dice.below(4) as usize);
            self.messages.truncate(kept);
        }
    }

    fn wipe(&mut self) {
        self.created += 1;
        self.leader += 1;
        self.messages.clear();
        self.consumer = None;
    }
}

/// One process that reads the trace.
struct ModelReader {
    cursor: Cursor,
    markers: Markers<()>,
    spans: Spans,
    received: HashSet<u64>,
    marker: u64,
    /// The proof that was requested.
    request: Option<ProofRequest>,
    is_begun: bool,
    /// The state of the stream with which the trace began, for a reader that resumes it.
    resumes: Option<Option<String>>,
}

/// What has to be here, and when that was requested.
struct ProofRequest {
    sent: HashSet<u64>,
    at: Duration,
}

struct Play {
    stream: ModelStream,
    now: Duration,
    /// The number of batches that were published.
    batches: u64,
    /// The batches that were sent, stored or refused.
    sent: HashSet<u64>,
    /// Refusals that are not in the stream yet.
    outbox: Vec<u64>,
    /// Refused batches that their senders have not given up.
    repeats: Vec<u64>,
    /// All batches that were refused once.
    refused: HashSet<u64>,
    /// Since when the publisher's row in the database shows that it shares all; none while it does not.
    shared_since: Option<Duration>,
    fault: Option<PlantedFault>,
    counts: PlayCounts,
    dice: Dice,
}

/// The result of a step of the reader.
enum ReaderStep {
    Quiet,
    /// Those who waited for a marker that came.
    Proved,
    Doubt,
}

fn trace() -> TraceId {
    TraceId::from_random([7; 16])
}

impl Play {
    fn run(&mut self) -> Result<(), String> {
        for _ in 0..self.dice.below(5) {
            self.publish();
        }
        let mut reader = self.reader(None);
        self.reopen(&mut reader);
        let _subscription = reader.spans.subscribe(trace(), &Project::default());
        reader.spans.expect(trace(), reader.cursor.era().number);
        let state = reader.cursor.state();
        // What came before the trace is not of it.
        (self.outbox, self.shared_since) = (Vec::new(), Some(Duration::ZERO));
        self.repeats.clear();
        self.sent.clear();
        let dies_at = if self.dice.one_in(4) { self.dice.below(STEPS.into()) } else { u64::MAX };
        let mut subscription = None;
        for step in 0..STEPS {
            if u64::from(step) == dies_at {
                reader = self.reader(Some(state.clone()));
                subscription = Some(reader.spans.subscribe(trace(), &Project::default()));
                self.stream.consumer = None;
                self.counts.resumed += 1;
            }
            self.step(&mut reader)?;
        }
        drop(subscription);
        Ok(())
    }

    fn reader(&self, resumes: Option<Option<String>>) -> ModelReader {
        ModelReader {
            cursor: Cursor::new(self.is_synced()),
            markers: Markers::default(),
            spans: Spans::new(Limits::default(), TraceTable::default()),
            received: HashSet::new(),
            marker: match (&resumes, self.fault) {
                (None, _) | (_, Some(PlantedFault::ReusedNumber)) => 0,
                (Some(_), _) => RESUMED_MARKERS,
            },
            request: None,
            is_begun: false,
            resumes,
        }
    }

    fn is_synced(&self) -> bool {
        self.stream.is_synced || self.fault == Some(PlantedFault::IgnoredLeader)
    }

    fn step(&mut self, reader: &mut ModelReader) -> Result<(), String> {
        self.now += Duration::from_millis(self.dice.below(60));
        match self.dice.below(24) {
            0..3 => self.publish(),
            3 => self.repeat(),
            4..8 => self.stream.deliver_more(),
            8 => self.stream.disturb(&mut self.dice),
            9 if self.dice.one_in(12) => self.stream.elect(&mut self.dice),
            10 if self.dice.one_in(40) => self.stream.wipe(),
            11 => self.report_refusals(),
            12 if reader.request.is_none() => {
                reader.request = Some(ProofRequest { sent: self.sent.clone(), at: self.now });
                reader.markers.wait(());
            }
            13 => self.expire(reader),
            14 if self.stream.consumer.is_none() => self.reopen(reader),
            15 => self.send_marker(reader),
            _ => return self.receive(reader),
        }
        if self.fault == Some(PlantedFault::EarlyMarker)
            && reader.markers.is_on_its_way(reader.marker)
        {
            return self.conclude(reader);
        }
        Ok(())
    }

    /// Publishes a batch: it is stored and acknowledged; or stored twice; or refused, and stored in spite of that or not.
    fn publish(&mut self) {
        self.batches += 1;
        self.publish_batch(self.batches);
    }

    /// A sender repeats a refused batch, or gives it up.
    fn repeat(&mut self) {
        if self.repeats.is_empty() {
            return self.publish();
        }
        let at = self.dice.below(self.repeats.len() as u64) as usize;
        let batch = self.repeats.swap_remove(at);
        if !self.dice.one_in(3) {
            self.publish_batch(batch);
        }
    }

    fn publish_batch(&mut self, batch: u64) {
        match self.dice.below(40) {
            refused @ 0..2 => {
                self.outbox.push(batch);
                self.repeats.push(batch);
                self.refused.insert(batch);
                // Before the sender gets the refusal, the row in the database shows that this server shares nothing.
                if self.fault != Some(PlantedFault::LateRefusal) {
                    self.shared_since = None;
                }
                if refused == 1 {
                    self.stream.messages.push(ModelMessage::Batch(batch));
                }
            }
            2..5 => self.stream.messages.extend([ModelMessage::Batch(batch); 2]),
            _ => self.stream.messages.push(ModelMessage::Batch(batch)),
        }
        self.sent.insert(batch);
    }

    fn report_refusals(&mut self) {
        if let Some(batch) = self.outbox.pop() {
            self.stream.messages.push(ModelMessage::Refused(batch));
        }
        // A heartbeat shows it.
        if self.outbox.is_empty() && self.shared_since.is_none() {
            self.shared_since = Some(self.now);
        }
    }

    /// Opens the consumer as the reader does.
    fn reopen(&mut self, reader: &mut ModelReader) {
        let mut facts = self.stream.facts();
        if self.fault == Some(PlantedFault::IgnoredWipe) {
            (facts.created, facts.last) = (Timestamp::from_nanos(1), facts.last.max(u64::MAX / 2));
        }
        if !std::mem::replace(&mut reader.is_begun, true) {
            match &reader.resumes {
                None => reader.cursor.skip(self.stream.facts()),
                Some(state) => {
                    if *state == Some(facts.state(self.is_synced())) {
                        reader.spans.expect(trace(), 0);
                    }
                }
            }
        }
        let next = reader.cursor.open(facts);
        self.stream.consumer =
            Some(ModelConsumer { next, deliveries: 0, on_their_way: Vec::new() });
        if let Some(number) = reader.markers.again(self.now) {
            self.store_marker(reader, number);
        }
    }

    fn send_marker(&mut self, reader: &mut ModelReader) {
        if self.stream.consumer.is_some() && reader.markers.is_due() {
            reader.marker += 1;
            reader.markers.send(reader.marker, self.now);
            self.store_marker(reader, reader.marker);
        }
    }

    fn store_marker(&mut self, reader: &mut ModelReader, number: u64) {
        let is_stored = !self.dice.one_in(6);
        if is_stored {
            self.stream.messages.push(ModelMessage::Marker(number));
        }
        reader.markers.stored(if is_stored { Ok(()) } else { Err("refused".to_owned()) });
    }

    /// Lets those go who have waited for too long, and opens the consumer anew.
    fn expire(&mut self, reader: &mut ModelReader) {
        if reader.markers.reopen_at().is_some_and(|at| at <= self.now) {
            if reader.markers.expire(self.now).is_some() {
                reader.request = None;
                self.counts.doubts += 1;
            }
            self.reopen(reader);
        }
    }

    /// Takes the next delivery as the reader does.
    fn receive(&mut self, reader: &mut ModelReader) -> Result<(), String> {
        match self.take(reader) {
            ReaderStep::Quiet => Ok(()),
            ReaderStep::Proved => self.conclude(reader),
            ReaderStep::Doubt => {
                self.reopen(reader);
                Ok(())
            }
        }
    }

    fn take(&mut self, reader: &mut ModelReader) -> ReaderStep {
        let Some(consumer) = &mut self.stream.consumer else { return ReaderStep::Quiet };
        if consumer.on_their_way.is_empty() {
            return ReaderStep::Quiet;
        }
        let (message, delivery) = consumer.on_their_way.remove(0);
        match reader.cursor.deliver(message, delivery) {
            Delivery::Next => {}
            Delivery::Again => return ReaderStep::Quiet,
            Delivery::Gap if self.fault == Some(PlantedFault::IgnoredGap) => {}
            Delivery::Gap => return ReaderStep::Doubt,
        }
        let Some(message) = self.stream.messages.get(message as usize - 1) else {
            return ReaderStep::Quiet;
        };
        match *message {
            ModelMessage::Batch(batch) => {
                reader.received.insert(batch);
                let mut bytes = write_projects(None);
                bytes.extend(batch.to_be_bytes());
                reader.spans.store(Timestamp::from_nanos(0), trace(), 1, &bytes);
            }
            ModelMessage::Refused(batch) => {
                let number = match self.fault {
                    Some(PlantedFault::ForgottenRefusal) => reader.received.iter().next(),
                    _ => None,
                };
                let digest = BatchDigest::of(&number.unwrap_or(&batch).to_be_bytes());
                reader.spans.refuse(Timestamp::from_nanos(0), trace(), digest);
            }
            ModelMessage::Marker(number) if reader.markers.is_on_its_way(number) => {
                if !self.is_synced() {
                    reader.cursor.note(self.stream.facts());
                }
                return ReaderStep::Proved;
            }
            ModelMessage::Marker(_) => {}
        }
        ReaderStep::Quiet
    }

    /// Compares what a proof promises with what senders believe.
    fn conclude(&mut self, reader: &mut ModelReader) -> Result<(), String> {
        reader.markers.came(reader.marker);
        let Some(request) = reader.request.take() else { return Ok(()) };
        let doubt = reader.spans.batches(trace(), reader.cursor.era()).err();
        // The rows of servers are read after the proof.
        let is_shared = self.shared_since.is_some_and(|since| {
            self.fault == Some(PlantedFault::ForgottenPause) || since < request.at
        });
        if doubt.is_some() || !is_shared {
            self.counts.doubts += 1;
            return Ok(());
        }
        self.counts.proved += 1;
        self.counts.repeated += u64::from(request.sent.iter().any(|it| self.refused.contains(it)));
        let missing = request.sent.iter().find(|batch| !reader.received.contains(*batch));
        match missing {
            Some(batch) => Err(format!("the batch {batch} is missing, and there is no doubt")),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{PlantedFault, PlayCounts, play};

    /// The short form of `cargo xtask prove plays`.
    #[test]
    fn no_batch_is_missing_without_a_doubt() {
        let mut all = PlayCounts::default();
        for seed in 0..20_000 {
            let counts = play(seed, None).unwrap_or_else(|why| unreachable!("{why}"));
            all.proved += counts.proved;
            all.doubts += counts.doubts;
            all.resumed += counts.resumed;
            all.repeated += counts.repeated;
        }
        assert!(all.proved > 5_000 && all.doubts > 5_000 && all.resumed > 2_000, "{all:?}");
        assert!(all.repeated > 500, "{all:?}");
    }

    #[test]
    fn planted_faults_are_found() {
        for fault in PlantedFault::ALL {
            let is_found = (0..20_000).any(|seed| play(seed, Some(fault)).is_err());
            assert!(is_found, "{fault:?}");
        }
    }
}
