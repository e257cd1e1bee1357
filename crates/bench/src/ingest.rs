//! The cost of receiving a span: CPU time of the receiving process, ours compared with others.
//!
//! Each receiver is its own process (`receivers`) and gets the same load, which is encoded beforehand (`load`), in turns, so that
//! a busy minute affects all of them alike. The ratio within a round is the result. The CPU time of a process is the one of
//! `getrusage`, user and system, read from `/proc`.
//!
//! [`prove`] is the other check of the same receiver: a million malformed requests.

pub(crate) mod load;
pub mod prove;
mod receivers;

use std::{path::Path, process::Stdio, time::Duration};

use anyhow::{Context, Result, bail, ensure};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, BufReader},
    process::{Child, ChildStdin, ChildStdout, Command},
};

use crate::{
    parts::{self, free_port, proc},
    table::{Goal, Row, median},
};
use load::{ExportLoad, Way};
pub use receivers::receive;

pub(crate) const ROUNDS: usize = 7;
pub(crate) const ROUND: Duration = Duration::from_millis(1500);
pub(crate) const WARM_UP: Duration = Duration::from_millis(300);

/// The upper bound relative to the bare service.
const FOREIGN_MAX: f64 = 1.2;
const FOREIGN_HTTP_MAX: f64 = 1.3;
/// The upper bound relative to the Collector.
const FOREIGN_OF_COLLECTOR_MAX: f64 = 0.125;
/// The upper bound relative to the decoding service.
const WANTED_MAX: f64 = 0.7;

/// A receiver and its kind of load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IngestSubject {
    Bytes,
    Decode,
    Collector,
    Foreign,
    Wanted,
}

use IngestSubject::{Bytes, Collector, Decode, Foreign, Wanted};

/// A receiver in its own process, until it is dropped.
pub(crate) struct Receiver {
    child: Child,
    /// Closing it requests the summary of received spans.
    stdin: Option<ChildStdin>,
    stdout: Option<BufReader<ChildStdout>>,
    pub(crate) grpc: u16,
    http: u16,
    _folder: Option<TempDir>,
}

/// The receivers.
struct IngestStand {
    bytes: Receiver,
    decode: Receiver,
    ours: Receiver,
    collector: Receiver,
}

/// Measures all receivers; with `--short` one short round.
pub async fn measure(arguments: &[String]) -> Result<Vec<Row>> {
    let (rounds, time) = match arguments {
        [] => (ROUNDS, ROUND),
        [short] if short == "--short" => (1, ROUND / 3),
        _ => bail!("expected nothing or --short"),
    };
    let stand = IngestStand {
        bytes: Receiver::start("bytes").await?,
        decode: Receiver::start("decode").await?,
        ours: Receiver::start("ours").await?,
        collector: Receiver::collector().await?,
    };
    let mut rows = vec![row("our receiver, idle", stand.ours.resident_mb()?, "MB", None)];
    for (way, spans) in [(Way::Grpc, 100), (Way::Grpc, 512), (Way::Http, 100)] {
        let figures = shape(&stand, way, spans, (rounds, time)).await?;
        rows.extend(rendered(way, spans, &figures));
    }
    rows.push(row("our receiver, after it", stand.ours.resident_mb()?, "MB", None));
    stand.ours.finish().await?;
    Ok(rows)
}

/// Returns the cost of a span for each subject, in nanoseconds, by rounds.
async fn shape(
    stand: &IngestStand,
    way: Way,
    spans: usize,
    (rounds, time): (usize, Duration),
) -> Result<Vec<(IngestSubject, Vec<f64>)>> {
    let foreign = ExportLoad::foreign(way, spans)?;
    let wanted = ExportLoad::wanted(way, spans)?;
    let subjects = [Bytes, Foreign, Decode, Wanted, Collector];
    let mut figures: Vec<_> = subjects.map(|subject| (subject, Vec::new())).into();
    for _ in 0..rounds {
        for (subject, costs) in &mut figures {
            let (receiver, load) = match subject {
                Bytes => (&stand.bytes, &foreign),
                Decode => (&stand.decode, &foreign),
                Collector => (&stand.collector, &foreign),
                Foreign => (&stand.ours, &foreign),
                Wanted => (&stand.ours, &wanted),
            };
            let port = match way {
                Way::Grpc => receiver.grpc,
                Way::Http => receiver.http,
            };
            let running = load::start(port, load).await?;
            tokio::time::sleep(WARM_UP).await;
            let (cpu, sent) = (receiver.cpu_ns()?, running.sent());
            tokio::time::sleep(time).await;
            let (cpu, sent) = (receiver.cpu_ns()? - cpu, running.sent() - sent);
            let refused = running.stop().await?;
            ensure!(refused == 0, "{subject:?} refused {refused} requests");
            ensure!(sent > 0, "{subject:?} took nothing");
            costs.push(cpu / (sent * spans as u64) as f64);
        }
    }
    Ok(figures)
}

fn rendered(way: Way, spans: usize, figures: &[(IngestSubject, Vec<f64>)]) -> Vec<Row> {
    let what = match way {
        Way::Grpc => format!("gRPC, {spans} spans"),
        Way::Http => format!("HTTP/1.1, {spans} spans"),
    };
    let costs = |subject| {
        let found = figures.iter().find(|(known, _)| *known == subject);
        found.map_or(&[][..], |(_, costs)| costs)
    };
    // Figures are compared within a round, since the state of the machine lasts that long.
    let ratio = |name: &str, [over, under]: [IngestSubject; 2], goal: f64| {
        let pairs = costs(over).iter().zip(costs(under));
        let ratio = median(pairs.map(|(over, under)| over / under).collect());
        row(&format!("{what}: {name}"), ratio, "ratio", Some(Goal::AtMost(goal)))
    };
    let mut rows: Vec<_> = figures
        .iter()
        .map(|(subject, costs)| {
            let name = match subject {
                Bytes => "bare, counts bytes",
                Decode => "bare, decodes",
                Collector => "the Collector, otlp to nop",
                Foreign => "ours, foreign",
                Wanted => "ours, wanted, into a run's trace",
            };
            row(&format!("{what}: {name}"), median(costs.clone()), "CPU ns/span", None)
        })
        .collect();
    let foreign_max = if way == Way::Http { FOREIGN_HTTP_MAX } else { FOREIGN_MAX };
    rows.push(ratio("foreign over bare", [Foreign, Bytes], foreign_max));
    rows.push(ratio("foreign over the Collector", [Foreign, Collector], FOREIGN_OF_COLLECTOR_MAX));
    rows.push(ratio("wanted over decoding", [Wanted, Decode], WANTED_MAX));
    rows
}

impl Receiver {
    /// Starts one of [`receivers`].
    pub(crate) async fn start(kind: &str) -> Result<Self> {
        Self::start_from(&std::env::current_exe()?, kind).await
    }

    async fn start_from(binary: &Path, kind: &str) -> Result<Self> {
        let mut child = Command::new(binary)
            .args(["ingest:receive", kind])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let mut stdout = BufReader::new(child.stdout.take().context("its output")?);
        let mut line = String::new();
        stdout.read_line(&mut line).await?;
        let (grpc, http) = line.trim().split_once(' ').context("two ports")?;
        let (grpc, http) = (grpc.parse()?, http.parse()?);
        let stdin = child.stdin.take();
        Ok(Self { child, stdin, stdout: Some(stdout), grpc, http, _folder: None })
    }

    /// Starts a Collector that discards all spans.
    async fn collector() -> Result<Self> {
        let (grpc, http) = (free_port()?, free_port()?);
        let configuration = format!(
            "receivers:\n  otlp: {{protocols: {{grpc: {{endpoint: '127.0.0.1:{grpc}'}}, http: {{endpoint: '127.0.0.1:{http}'}}}}}}\n\
             exporters:\n  nop: {{}}\n\
             service:\n  telemetry: {{metrics: {{level: none}}, logs: {{level: warn}}}}\n  \
             pipelines: {{traces: {{receivers: [otlp], exporters: [nop]}}}}\n"
        );
        let (child, folder) = parts::collector_of(&configuration, &[grpc, http]).await?;
        Ok(Self { child, stdin: None, stdout: None, grpc, http, _folder: Some(folder) })
    }

    /// Returns its process id.
    pub(crate) fn id(&self) -> Result<u32> {
        self.child.id().context("it runs")
    }

    fn cpu_ns(&self) -> Result<f64> {
        Ok(proc::cpu(self.id()?)?.as_nanos() as f64)
    }

    fn resident_mb(&self) -> Result<f64> {
        proc::resident_mb(self.id()?)
    }

    /// Ends one of our receivers, which then reports whether every span arrived where it should.
    async fn finish(mut self) -> Result<()> {
        drop(self.stdin.take());
        let mut said = String::new();
        self.stdout.take().context("its output")?.read_to_string(&mut said).await?;
        ensure!(said.trim() == "ok", "the receiver says: {said}");
        Ok(())
    }
}

fn row(name: &str, value: f64, unit: &'static str, goal: Option<Goal>) -> Row {
    Row { name: name.to_owned(), value, unit, goal }
}
