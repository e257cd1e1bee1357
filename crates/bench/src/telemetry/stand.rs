//! The test stand of one subject: a sink, a Collector in front of it, and emitters that start and end.

use std::{
    fs,
    future::Future,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;
use tokio::{
    process::{Child, Command},
    task::JoinSet,
    time::{Instant, sleep},
};

use super::{
    ended::{self, EndedSpan},
    subject::{EmitterLoad, EmitterOrder, EmitterOutcome, Subject, Transport, Within},
};
use crate::parts::{Relay, Sink, unix_nanos};

/// The timeout of our shutdown with a running Collector.
const SHUTDOWN_MS: u64 = 30_000;
/// Our default throttle.
const THROTTLE_MS: u64 = 1000;
/// The idle time after which no more spans are expected.
const QUIET: Duration = Duration::from_millis(400);
/// The timeout for the first span of a process.
const BEGIN_MAX: Duration = Duration::from_secs(20);

/// All parts that one subject needs, shared with no other.
#[derive(Debug)]
pub struct TelemetryStand {
    /// The measured subject.
    pub subject: Subject,
    /// The end of the pipeline.
    pub sink: Sink,
    /// The Collector, not started.
    pub relay: Relay,
    program: PathBuf,
    folder: TempDir,
}

/// An emitter that runs until it is killed, finished or dropped.
#[derive(Debug)]
pub struct Emitter {
    child: Child,
    ended: PathBuf,
}

impl TelemetryStand {
    /// Creates a stand for this subject; `program` is this benchmark's own, which also runs as the emitter.
    pub async fn new(program: &Path, subject: Subject) -> Result<Self> {
        let sink = Sink::start().await?;
        let relay = Relay::new(sink.port)?;
        Ok(Self { subject, sink, relay, program: program.to_owned(), folder: TempDir::new()? })
    }

    /// Returns an order for an emitter on this stand.
    pub fn order(&self, load: EmitterLoad) -> EmitterOrder {
        EmitterOrder {
            subject: self.subject,
            port: port(&self.relay, self.subject.transport),
            ended: self.folder.path().join("ended"),
            directory: self.folder.path().join("telemetry"),
            load,
            within: Within::Thread,
            change: None,
            shutdown_ms: SHUTDOWN_MS,
            throttle_ms: THROTTLE_MS,
            gzip: true,
            lossy: false,
        }
    }

    /// Starts an emitter.
    pub fn emit(&self, order: &EmitterOrder) -> Result<Emitter> {
        // The emitter before wrote to the same file: its spans do not count for this one.
        if order.ended.exists() {
            fs::remove_file(&order.ended)?;
        }
        let child = Command::new(&self.program)
            .arg("telemetry:emit")
            .arg(serde_json::to_string(order)?)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot start `{}`", self.program.display()))?;
        Ok(Emitter { child, ended: order.ended.clone() })
    }

    /// Restarts ours on its remaining files, and waits until it has delivered them and ended. Stock leaves none.
    pub async fn restart(&self) -> Result<Option<EmitterOutcome>> {
        if !self.subject.is_ours() {
            return Ok(None);
        }
        let mut order = self.order(EmitterLoad::Nothing);
        order.ended.set_extension("restart");
        self.emit(&order)?.finish().await.map(Some)
    }

    /// Waits until no more spans arrive.
    pub async fn quiet(&self) {
        let mut before = None;
        loop {
            let now = self.sink.received().spans_total;
            if before.replace(now) == Some(now) {
                return;
            }
            sleep(QUIET).await;
        }
    }

    /// Returns the spans that the sink does not have.
    pub fn lost(&self, ended: &[EndedSpan]) -> Vec<EndedSpan> {
        let received = self.sink.received();
        ended.iter().filter(|ended| !received.spans.contains_key(&ended.id)).copied().collect()
    }
}

impl Emitter {
    /// Waits for its first span.
    pub async fn began(&mut self) -> Result<()> {
        let began = Instant::now();
        while fs::metadata(&self.ended).map_or(0, |file| file.len()) == 0 {
            ensure!(self.child.try_wait()?.is_none(), "the emitter ended before its first span");
            ensure!(began.elapsed() < BEGIN_MAX, "the emitter does not emit");
            sleep(Duration::from_millis(5)).await;
        }
        Ok(())
    }

    /// Kills it; returns the time, in nanoseconds since the epoch, and the spans ended until then.
    pub async fn kill(mut self) -> Result<(u64, Vec<EndedSpan>)> {
        self.child.start_kill()?;
        let at = unix_nanos();
        self.child.wait().await?;
        Ok((at, ended::read(&self.ended)?))
    }

    /// Waits for its end.
    pub async fn finish(self) -> Result<EmitterOutcome> {
        let output = self.child.wait_with_output().await?;
        let said = String::from_utf8_lossy(&output.stdout);
        ensure!(output.status.success(), "the emitter failed: {said}");
        Ok(serde_json::from_slice(&output.stdout)?)
    }
}

/// The port of a Collector for this transport.
pub(crate) fn port(relay: &Relay, transport: Transport) -> u16 {
    match transport {
        Transport::Grpc => relay.grpc,
        Transport::Http => relay.http,
    }
}

/// Runs all concurrently, each begun `apart` after the one before; returns the results in the given order.
pub(crate) async fn together<T: Send + 'static>(
    runs: Vec<impl Future<Output = Result<T>> + Send + 'static>,
    apart: Duration,
) -> Result<Vec<T>> {
    let mut tasks = JoinSet::new();
    for (at, run) in runs.into_iter().enumerate() {
        tasks.spawn(async move {
            sleep(apart * at as u32).await;
            (at, run.await)
        });
    }
    let mut results = tasks.join_all().await;
    results.sort_by_key(|(at, _)| *at);
    results.into_iter().map(|(_, result)| result).collect()
}
