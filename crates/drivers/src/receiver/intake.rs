//! One export, whichever way it came.

use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use otlp::DecodeError;
use thiserror::Error;
use tokio::{sync::Semaphore, time::timeout};

use super::{Config, Refused, Sink};

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

/// [`Counts`] that grow.
#[derive(Debug, Default)]
pub(super) struct Counters {
    kept: AtomicU64,
    foreign: AtomicU64,
    invalid: AtomicU64,
    logs: AtomicU64,
    metrics: AtomicU64,
    refused: AtomicU64,
}

/// What an export carries.
#[derive(Clone, Copy, Debug)]
pub(super) enum Signal {
    Traces,
    Logs,
    Metrics,
}

/// Why an export was not taken.
#[derive(Debug, Error)]
pub(super) enum NotTaken {
    #[error(transparent)]
    Undecodable(#[from] DecodeError),
    #[error("the message has more than {0} bytes; send smaller batches")]
    TooLarge(usize),
    #[error(transparent)]
    Refused(#[from] Refused),
    #[error("the export was not done within {0:?}; send it again")]
    Late(Duration),
}

/// What both ports put their messages into.
#[derive(Debug)]
pub(super) struct Intake<S> {
    pub(super) message_bytes_max: usize,
    messages: Semaphore,
    export_timeout: Duration,
    sink: Arc<S>,
    counters: Arc<Counters>,
}

impl<S: Sink> Intake<S> {
    pub(super) fn new(config: &Config, sink: Arc<S>, counters: Arc<Counters>) -> Self {
        Self {
            message_bytes_max: config.message_bytes_max,
            messages: Semaphore::new(config.messages_max.min(Semaphore::MAX_PERMITS)),
            export_timeout: config.export_timeout,
            sink,
            counters,
        }
    }

    /// Does the work of an export, reading its message included, when there is room for it and while there is time.
    pub(super) async fn admit<T>(&self, work: impl Future<Output = T>) -> Result<T, NotTaken> {
        let work = async {
            let _room = self.messages.acquire().await;
            work.await
        };
        timeout(self.export_timeout, work).await.map_err(|_| NotTaken::Late(self.export_timeout))
    }

    /// Takes a message, and says what to answer.
    pub(super) async fn take(&self, signal: Signal, message: &[u8]) -> Result<Bytes, NotTaken> {
        match signal {
            Signal::Traces => return self.take_traces(message).await,
            Signal::Logs => add(&self.counters.logs, otlp::count_logs(message)?),
            Signal::Metrics => add(&self.counters.metrics, otlp::count_metrics(message)?),
        }
        Ok(Bytes::new())
    }

    async fn take_traces(&self, message: &[u8]) -> Result<Bytes, NotTaken> {
        let split = otlp::split(message, |trace_id| self.sink.wants(trace_id))?;
        // Before anything can be refused or dropped: a sender may give up and never come back with the rest.
        for trace_id in &split.damaged {
            self.sink.lost(trace_id);
        }
        if !split.batches.is_empty()
            && let Err(refused) = self.sink.accept(split.batches).await
        {
            add(&self.counters.refused, split.kept);
            return Err(refused.into());
        }
        // Counted only here, since a sender that was refused sends the same again.
        add(&self.counters.kept, split.kept);
        add(&self.counters.foreign, split.foreign);
        add(&self.counters.invalid, split.invalid);
        if split.invalid == 0 {
            return Ok(Bytes::new());
        }
        let reason = format!("{} spans whose ids are malformed", split.invalid);
        Ok(otlp::partial_success(split.invalid, &reason).into())
    }
}

impl Counters {
    pub(super) fn counts(&self) -> Counts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counts {
            kept: read(&self.kept),
            foreign: read(&self.foreign),
            invalid: read(&self.invalid),
            logs: read(&self.logs),
            metrics: read(&self.metrics),
            refused: read(&self.refused),
        }
    }
}

fn add(counter: &AtomicU64, more: u64) {
    counter.fetch_add(more, Ordering::Relaxed);
}
