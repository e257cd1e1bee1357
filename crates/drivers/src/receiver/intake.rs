//! One export, whichever way it came.

use std::{future::Future, net::IpAddr, sync::Arc, time::Duration};

use ::http::{HeaderMap, Request};
use bytes::Bytes;
use tokio::time::timeout;

use crate::{
    priority::give_way,
    shares::{Permit, Shares},
};

use super::{
    Config, Gate, LostSignal, Sender, Sink,
    error::ExportError,
    grpc, http,
    room::{Buffer, Room},
    stats::{ReceiverCounters, add},
};

/// What a request may carry that is not read, by its path. Where that does not tell, it may be spans: an exporter that has
/// a wrong address has them too.
pub(super) fn carried<B: hyper::body::Body>(request: &Request<B>) -> Option<LostSignal> {
    let path = request.uri().path().trim_end_matches('/');
    if [http::TRACES, grpc::TRACES].contains(&path) && !request.body().is_end_stream() {
        return Some(LostSignal::Spans);
    }
    let is_of = |names: &[&str]| names.iter().any(|name| path.ends_with(name));
    let is_nothing = request.body().is_end_stream()
        || path.starts_with("/grpc.")
        || is_of(&["/v1/metrics", "/v1development/profiles"])
        || is_of(&["MetricsService/Export", "ProfilesService/Export"]);
    match is_of(&["/v1/logs", "LogsService/Export"]) {
        _ if is_nothing => None,
        true => Some(LostSignal::Logs),
        false => Some(LostSignal::Spans),
    }
}

/// What JSON takes while it is read, beyond its text: an entry of a list or an object, and the node of a tree in which an
/// object begins.
const JSON_ENTRY_BYTES: usize = 64;
const JSON_OBJECT_BYTES: usize = 700;
/// From how many bytes on a message is decoded on a thread for what takes long, so that others are heard meanwhile. Protobuf is
/// read many times faster than JSON.
const LARGE_JSON_BYTES: usize = 64 * 1024;
const LARGE_PROTOBUF_BYTES: usize = 1024 * 1024;

/// What a receiver has received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Spans that the sink took.
    pub kept: u64,
    /// Spans of traces that nobody wants.
    pub foreign: u64,
    /// Spans whose ids are malformed: their trace's, their own or their parent's.
    pub invalid: u64,
    /// Log records.
    pub logs: u64,
    /// Data points of metrics.
    pub metrics: u64,
    /// Spans that the sink refused, each time that they were offered.
    pub refused: u64,
}

/// What an export carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Signal {
    Traces,
    Logs,
    Metrics,
}

/// How much of an export was not taken for good, and why. Zero is success.
#[derive(Debug, Default)]
pub(super) struct PartialSuccess {
    pub(super) items: u64,
    pub(super) reason: String,
}

/// What all connections put their messages into.
#[derive(Debug)]
pub(super) struct Intake<S> {
    pub(super) message_bytes_max: usize,
    pub(super) header_timeout: Duration,
    pub(super) watch: Arc<ReceiverCounters>,
    gate: Option<Gate>,
    export_timeout: Duration,
    sink: Arc<S>,
    buffer: Buffer,
    large: Shares<Sender>,
    gives_way: bool,
}

impl<S: Sink> Intake<S> {
    pub(super) fn new(config: &Config, sink: Arc<S>, watch: Arc<ReceiverCounters>) -> Self {
        Self {
            message_bytes_max: config.message_bytes_max,
            header_timeout: config.header_timeout,
            watch,
            gate: config.gate.clone(),
            export_timeout: config.export_timeout,
            sink,
            buffer: Buffer::new(config.buffered_bytes_max, config.gate.is_some()),
            large: Shares::new(config.decoders),
            gives_way: config.gives_way,
        }
    }

    /// Lets a request in whose sender may send, before its body is read.
    pub(super) async fn admit(
        &self,
        headers: &HeaderMap,
        peer: IpAddr,
    ) -> Result<Sender, ExportError> {
        match &self.gate {
            Some(gate) => self.in_time(gate.pass(headers, peer)).await,
            None => Ok(Sender::of_all()),
        }
    }

    /// Does the work of an export, reading its message included, while there is time.
    pub(super) async fn in_time<T>(
        &self,
        work: impl Future<Output = Result<T, ExportError>>,
    ) -> Result<T, ExportError> {
        let done = timeout(self.export_timeout, work).await;
        done.unwrap_or(Err(ExportError::Late(self.export_timeout)))
    }

    /// Takes note of a request that is refused, and gives the words for it.
    ///
    /// The spans in it may be those of a run, which then must not conclude anything from their absence: the sender may
    /// not come back, or not in time. What the sink refused it knows itself; and who may not send, or is not known to be
    /// allowed to, has no say in what a run concludes: else any stranger could spoil all runs.
    pub(super) fn refused(
        &self,
        carried: Option<LostSignal>,
        sender: Option<&Sender>,
        error: &ExportError,
    ) -> String {
        if let (Some(sender), Some(carried)) = (sender, carried)
            && !matches!(error, ExportError::Refused(_))
        {
            self.sink.lost_unread(sender, carried);
        }
        let said = error.to_string();
        self.watch.refusal(&said, sender);
        said
    }

    /// Takes note of a client that did not come as far as a request. Where anybody may send, it may have had spans.
    pub(super) fn not_understood(&self, what: &str) {
        if self.gate.is_none() {
            self.sink.lost_unread(&Sender::of_all(), LostSignal::Spans);
        }
        self.watch.refusal(what, None);
    }

    /// Room for a message, which is as yet empty.
    pub(super) fn room(&self, sender: &Sender) -> Room<'_> {
        self.buffer.room(sender)
    }

    /// Takes a message of protobuf.
    pub(super) async fn take(
        &self,
        (signal, sender): (Signal, &Sender),
        message: &Bytes,
    ) -> Result<PartialSuccess, ExportError> {
        let turn = self.turn(message, LARGE_PROTOBUF_BYTES, sender).await;
        match signal {
            Signal::Traces => return self.take_traces(message, sender, turn).await,
            Signal::Logs => {
                let records = decode(message, turn.as_ref(), |it| otlp::read_logs(it)).await??;
                self.take_logs(&records, sender);
            }
            Signal::Metrics => {
                let points = decode(message, turn.as_ref(), |it| otlp::count_metrics(it)).await??;
                add(&self.watch.metrics, points);
            }
        }
        Ok(PartialSuccess::default())
    }

    /// Takes a message of JSON.
    pub(super) async fn take_json(
        &self,
        (signal, sender): (Signal, &Sender),
        message: &Bytes,
        room: &mut Room<'_>,
    ) -> Result<PartialSuccess, ExportError> {
        // What waits for its turn has no more room than its text.
        let turn = self.turn(message, LARGE_JSON_BYTES, sender).await;
        let cost = decode(message, turn.as_ref(), |it| json_cost(it)).await?;
        if cost > self.buffer.share() {
            // To wait for room would be to wait for ever.
            return Err(ExportError::TooIntricate(self.buffer.share()));
        }
        room.grow(cost)?;
        match signal {
            Signal::Traces => {
                let message =
                    decode(message, turn.as_ref(), |it| otlp::traces_from_json(it)).await??;
                return self.take_traces(&message.into(), sender, turn).await;
            }
            Signal::Logs => {
                let records =
                    decode(message, turn.as_ref(), |it| otlp::read_logs_json(it)).await??;
                self.take_logs(&records, sender);
            }
            Signal::Metrics => {
                let points =
                    decode(message, turn.as_ref(), |it| otlp::count_metrics_json(it)).await??;
                add(&self.watch.metrics, points);
            }
        }
        Ok(PartialSuccess::default())
    }

    /// Log records are counted; that a run's trace has some is what it is told.
    fn take_logs(&self, records: &otlp::LogRecords, sender: &Sender) {
        add(&self.watch.logs, records.count);
        for trace_id in records.traces.iter().filter(|trace_id| self.sink.wants(trace_id, sender)) {
            self.sink.logged(trace_id, sender);
        }
    }

    /// Waits until a large message may be decoded on a thread of its own; a small one is decoded where it is.
    async fn turn(&self, message: &Bytes, large_bytes: usize, sender: &Sender) -> Option<Turn> {
        if message.len() < large_bytes {
            return None;
        }
        let permit = Arc::new(self.large.acquire(sender).await);
        Some(Turn { permit, gives_way: self.gives_way })
    }

    async fn take_traces(
        &self,
        message: &Bytes,
        sender: &Sender,
        turn: Option<Turn>,
    ) -> Result<PartialSuccess, ExportError> {
        let split = match turn {
            None => otlp::split(message, |trace| self.sink.wants(trace, sender))?,
            Some(turn) => {
                let (sink, of) = (Arc::clone(&self.sink), sender.clone());
                let split = move |it: &Bytes| otlp::split(it, |trace| sink.wants(trace, &of));
                decode(message, Some(&turn), split).await??
            }
        };
        // Before anything can be refused or dropped: a sender may give up and never come back with the rest.
        for trace_id in &split.damaged {
            self.sink.lost(trace_id, sender);
        }
        if !split.batches.is_empty()
            && let Err(refused) = self.sink.accept(split.batches, sender).await
        {
            self.watch.refused_spans(split.kept, sender);
            return Err(refused.into());
        }
        // Counted only here, since a sender that was refused sends the same again.
        if split.kept > 0 {
            add(&self.watch.kept, split.kept);
        }
        if split.foreign > 0 {
            add(&self.watch.foreign, split.foreign);
            self.watch.keep_foreign(message, sender);
        }
        if split.invalid == 0 {
            return Ok(PartialSuccess::default());
        }
        self.watch.invalid_spans(split.invalid, sender);
        if split.nameless > 0 {
            self.sink.lost_unread(sender, LostSignal::Spans);
        }
        let reason = format!("{} spans whose ids are malformed", split.invalid);
        self.watch.refusal(&reason, Some(sender));
        Ok(PartialSuccess { items: split.invalid, reason })
    }
}

/// The right to decode a large message.
struct Turn {
    permit: Arc<Permit>,
    gives_way: bool,
}

/// Decodes a message, on a thread for what takes long if it has a turn.
async fn decode<T: Send + 'static>(
    message: &Bytes,
    turn: Option<&Turn>,
    read: impl FnOnce(&Bytes) -> T + Send + 'static,
) -> Result<T, ExportError> {
    let Some(Turn { permit, gives_way }) = turn else { return Ok(read(message)) };
    let (message, permit, gives_way) = (message.clone(), Arc::clone(permit), *gives_way);
    let read = move || {
        // It goes with the work, which goes on if nobody waits for it any more.
        let _permit = permit;
        if gives_way {
            give_way();
        }
        read(&message)
    };
    let done = tokio::task::spawn_blocking(read).await;
    done.map_err(|error| ExportError::Broken(error.to_string()))
}

/// The memory that JSON takes at the most while it is read. What stands in texts is counted too, which is safe.
fn json_cost(message: &[u8]) -> usize {
    let cost = |byte: &u8| match byte {
        b'{' => JSON_OBJECT_BYTES,
        b',' | b'[' | b':' => JSON_ENTRY_BYTES,
        _ => 1,
    };
    message.iter().map(cost).sum()
}
