//! The ground on which one subject is measured: a sink, a Collector before it, and emitters that come and go.

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

/// How long the shutdown of ours may take when the Collector is there.
const SHUTDOWN_MS: u64 = 30_000;
/// The default of ours.
const THROTTLE_MS: u64 = 1000;
/// How long nothing may come before nothing more is expected.
const QUIET: Duration = Duration::from_millis(400);
/// How long a process may take to its first span.
const BEGIN_MAX: Duration = Duration::from_secs(20);

/// Everything that one subject needs, shared with no other.
#[derive(Debug)]
pub struct TelemetryStand {
    /// What is measured on it.
    pub subject: Subject,
    /// Where the spans end.
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
    /// One for this subject; `program` is this bench's own, which is also the emitter's.
    pub async fn new(program: &Path, subject: Subject) -> Result<Self> {
        let sink = Sink::start().await?;
        let relay = Relay::new(sink.port)?;
        Ok(Self { subject, sink, relay, program: program.to_owned(), folder: TempDir::new()? })
    }

    /// What an emitter on this stand is to do.
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
        // The one before wrote to the same file: its spans are not this one's.
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

    /// Starts ours again on what it left behind, and waits until it has delivered that and ended. Stock leaves nothing.
    pub async fn restart(&self) -> Result<Option<EmitterOutcome>> {
        if !self.subject.is_ours() {
            return Ok(None);
        }
        let mut order = self.order(EmitterLoad::Nothing);
        order.ended.set_extension("restart");
        self.emit(&order)?.finish().await.map(Some)
    }

    /// Waits until nothing more comes.
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

    /// Those that the sink does not have.
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

    /// Kills it; tells when, in nanoseconds since the epoch, and what it had ended until then.
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

/// Runs all at the same time, each begun `apart` after the one before; the results stand in the order given.
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
