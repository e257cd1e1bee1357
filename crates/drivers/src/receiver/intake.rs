//! The intake of one export, over any protocol.

use std::{future::Future, net::IpAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, Request, Uri};
use hyper::body::Body;
use tokio::time::timeout;

use crate::{
    priority::give_way,
    shares::{Permit, Shares},
};

use super::{
    Config, Gate, LostSignal, Sender, Sink,
    error::ExportError,
    room::{Buffer, Room},
    stats::{ReceiverCounters, add},
};

/// The target of a request. It decides which signal is lost if the request is refused.
pub(super) struct ExportTarget {
    uri: Uri,
    has_body: bool,
}

impl ExportTarget {
    pub(super) fn of<B: Body>(request: &Request<B>) -> Self {
        Self { uri: request.uri().clone(), has_body: !request.body().is_end_stream() }
    }

    /// Returns the signal that the request may carry, by its path. If the path does not decide, it may be spans: an exporter
    /// with a wrong address sends them too.
    fn signal(&self) -> Option<LostSignal> {
        let path = self.uri.path().trim_end_matches('/');
        let is_of = |names: &[&str]| names.iter().any(|name| path.ends_with(name));
        let is_nothing = !self.has_body
            || path.starts_with("/grpc.")
            || is_of(&["/v1/metrics", "/v1development/profiles"])
            || is_of(&["MetricsService/Export", "ProfilesService/Export"]);
        match is_of(&["/v1/logs", "LogsService/Export"]) {
            _ if is_nothing => None,
            true => Some(LostSignal::Logs),
            false => Some(LostSignal::Spans),
        }
    }
}

/// The memory of parsed JSON beyond its text: for an entry of an array or object, and for the tree node of an object.
const JSON_ENTRY_BYTES: usize = 64;
const JSON_OBJECT_BYTES: usize = 700;
/// From this many bytes on, a message is decoded on a blocking thread, so that other requests are served meanwhile. Protobuf is
/// decoded many times faster than JSON.
const LARGE_JSON_BYTES: usize = 64 * 1024;
const LARGE_PROTOBUF_BYTES: usize = 1024 * 1024;

/// The counts of a receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Spans that the sink accepted.
    pub kept: u64,
    /// Foreign spans: spans of traces that no run waits for.
    pub foreign: u64,
    /// Spans with a malformed trace id, span id or parent id.
    pub invalid: u64,
    /// Log records.
    pub logs: u64,
    /// Data points of metrics.
    pub metrics: u64,
    /// Spans that the sink refused, counted at each attempt.
    pub refused: u64,
}

/// The signal of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Signal {
    Traces,
    Logs,
    Metrics,
}

/// The number of items of an export that were rejected permanently, and why. Zero is success.
#[derive(Debug, Default)]
pub(super) struct PartialSuccess {
    pub(super) items: u64,
    pub(super) reason: String,
}

/// The shared intake of all connections.
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

    /// Authorizes the sender of a request, before its body is read.
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

    /// Runs the work of an export, including reading its message, with the export timeout.
    pub(super) async fn in_time<T>(
        &self,
        work: impl Future<Output = Result<T, ExportError>>,
    ) -> Result<T, ExportError> {
        let done = timeout(self.export_timeout, work).await;
        done.unwrap_or(Err(ExportError::Late(self.export_timeout)))
    }

    /// Counts a refused request, and returns the error message.
    ///
    /// Its spans may belong to a run, which must then conclude nothing from their absence: the sender may not retry, or not in
    /// time. The sink itself counts what it refused. A sender without permission, or with unknown permission, cannot influence
    /// the conclusion of a run: otherwise any untrusted sender could spoil all runs.
    pub(super) async fn refused(
        &self,
        target: &ExportTarget,
        sender: Option<&Sender>,
        error: &ExportError,
    ) -> String {
        if let Some(sender) = sender
            && !matches!(error, ExportError::Refused(_))
            && let Some(signal) = target.signal()
        {
            self.sink.lost_unread(sender, signal);
            // The sender may give up once it has the answer. If that fails, it has an error all the same.
            self.sink.flush().await.ok();
        }
        let said = error.to_string();
        self.watch.refusal(&said, sender);
        said
    }

    /// Counts a client that did not send a valid request. Without a gate, it may have had spans.
    pub(super) fn not_understood(&self, what: &str) {
        if self.gate.is_none() {
            self.sink.lost_unread(&Sender::of_all(), LostSignal::Spans);
        }
        self.watch.refusal(what, None);
    }

    /// Returns the buffer space for a message, initially empty.
    pub(super) fn room(&self, sender: &Sender) -> Room<'_> {
        self.buffer.room(sender)
    }

    /// Processes a protobuf message.
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
                self.take_logs(&records, sender).await?;
            }
            Signal::Metrics => {
                let points = decode(message, turn.as_ref(), |it| otlp::count_metrics(it)).await??;
                add(&self.watch.metrics, points);
            }
        }
        Ok(PartialSuccess::default())
    }

    /// Processes a JSON message.
    pub(super) async fn take_json(
        &self,
        (signal, sender): (Signal, &Sender),
        message: &Bytes,
        room: &mut Room<'_>,
    ) -> Result<PartialSuccess, ExportError> {
        // While it waits for a permit, it occupies only the space of its text.
        let turn = self.turn(message, LARGE_JSON_BYTES, sender).await;
        let cost = decode(message, turn.as_ref(), |it| json_cost(it)).await?;
        if cost > self.buffer.share() {
            // A wait for space would never end.
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
                self.take_logs(&records, sender).await?;
            }
            Signal::Metrics => {
                let points =
                    decode(message, turn.as_ref(), |it| otlp::count_metrics_json(it)).await??;
                add(&self.watch.metrics, points);
            }
        }
        Ok(PartialSuccess::default())
    }

    /// Counts log records; a run only learns that its trace has some.
    async fn take_logs(
        &self,
        records: &otlp::LogRecords,
        sender: &Sender,
    ) -> Result<(), ExportError> {
        add(&self.watch.logs, records.count);
        let mut is_wanted = false;
        for trace_id in records.traces.iter().filter(|trace_id| self.sink.wants(trace_id, sender)) {
            self.sink.logged(trace_id, sender);
            is_wanted = true;
        }
        if is_wanted {
            self.sink.flush().await?;
        }
        Ok(())
    }

    /// Waits for a permit to decode a large message on another thread; a small one is decoded in place.
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
        // Before anything can be refused or dropped: a sender may give up and never retry the rest.
        for trace_id in &split.damaged {
            self.sink.lost(trace_id, sender);
        }
        if !split.batches.is_empty()
            && let Err(refused) = self.sink.accept(split.batches, sender).await
        {
            self.watch.refused_spans(split.kept, sender);
            return Err(refused.into());
        }
        // Counted only here, since a refused sender sends the same spans again.
        if split.kept > 0 {
            add(&self.watch.kept, split.kept);
        }
        if split.foreign > 0 {
            add(&self.watch.foreign, split.foreign);
            self.watch.keep_foreign(message, sender);
        }
        if split.nameless > 0 {
            self.sink.lost_unread(sender, LostSignal::Spans);
        }
        if split.nameless > 0 || !split.damaged.is_empty() {
            // With the answer the sender has done its part: a run that is judged after it must know what is missing.
            self.sink.flush().await?;
        }
        if split.invalid == 0 {
            return Ok(PartialSuccess::default());
        }
        self.watch.invalid_spans(split.invalid, sender);
        let reason = format!("{} spans whose ids are malformed", split.invalid);
        self.watch.refusal(&reason, Some(sender));
        Ok(PartialSuccess { items: split.invalid, reason })
    }
}

/// The permit to decode a large message.
struct Turn {
    permit: Arc<Permit>,
    gives_way: bool,
}

/// Decodes a message, on a blocking thread if it has a permit.
async fn decode<T: Send + 'static>(
    message: &Bytes,
    turn: Option<&Turn>,
    read: impl FnOnce(&Bytes) -> T + Send + 'static,
) -> Result<T, ExportError> {
    let Some(Turn { permit, gives_way }) = turn else { return Ok(read(message)) };
    let (message, permit, gives_way) = (message.clone(), Arc::clone(permit), *gives_way);
    let read = move || {
        // The permit moves into the work, which continues if no task waits for it any more.
        let _permit = permit;
        if gives_way {
            give_way();
        }
        read(&message)
    };
    let done = tokio::task::spawn_blocking(read).await;
    done.map_err(|error| ExportError::Broken(error.to_string()))
}

/// Returns the upper bound of the memory that parsed JSON needs. Characters in strings count too, which is safe.
fn json_cost(message: &[u8]) -> usize {
    let cost = |byte: &u8| match byte {
        b'{' => JSON_OBJECT_BYTES,
        b',' | b'[' | b':' => JSON_ENTRY_BYTES,
        _ => 1,
    };
    message.iter().map(cost).sum()
}
