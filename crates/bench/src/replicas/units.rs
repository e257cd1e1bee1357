//! What one request, one span and one run cost, to be multiplied out.
//!
//! Requests of several sizes give a line: what a request costs without spans, and what each span adds.

use std::{fs, path::Path, time::Duration};

use anyhow::{Context, Result, ensure};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use model::TraceId;
use rustls::{RootCertStore, pki_types::CertificateDer};
use serde_json::json;
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

use super::{
    ReplicaExtent, at_most,
    fit::CostLine,
    row,
    shop::ReplicaShop,
    stand::{ReplicaStand, end},
    workers::{self, RunCosts},
};
use crate::{
    ingest::load::{self, ExportLoad, Way},
    parts::{Api, Server, proc},
    table::{Row, median},
};

/// The numbers of spans of a foreign request.
pub(super) const SIZES: [usize; 4] = [1, 10, 100, 512];
/// The numbers of spans of a request of a run.
pub(super) const OWN_SIZES: [usize; 3] = [1, 10, 100];
/// The largest error of a line that still describes its points.
const ERROR_MAX: f64 = 0.35;
/// How long the trigger of a run has fired before its spans are sent, and how long they may take to be read.
const FIRED: Duration = Duration::from_millis(300);
const READ: Duration = Duration::from_millis(500);
/// The requests that a cost is measured over, at least.
const REQUESTS_MIN: u64 = 20;
const ENDED_MAX: Duration = Duration::from_secs(60);
/// A run without spans waits for more than twice this time.
const SETTLE: &str = "timeout: 60s, flush: 4s";

/// How foreign requests arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Carriage {
    Plain,
    Tls,
    Gzip,
}

const WAYS: [(&str, Way, Carriage); 6] = [
    ("gRPC", Way::Grpc, Carriage::Plain),
    ("gRPC, TLS", Way::Grpc, Carriage::Tls),
    ("gRPC, gzip", Way::Grpc, Carriage::Gzip),
    ("HTTP/1.1", Way::Http, Carriage::Plain),
    ("HTTP/1.1, TLS", Way::Http, Carriage::Tls),
    ("HTTP/1.1, gzip", Way::Http, Carriage::Gzip),
];

/// The cost of foreign requests that arrive in one way.
pub(super) struct ForeignCost {
    pub(super) name: &'static str,
    /// Nanoseconds of CPU for a request of each of [`SIZES`].
    pub(super) requests: Vec<f64>,
    /// The bytes of its body.
    pub(super) bytes: Vec<f64>,
    pub(super) line: CostLine,
}

/// The cost of a request with spans of a run, by the process that pays it, in nanoseconds of CPU.
pub(super) struct OwnCost {
    pub(super) name: &'static str,
    pub(super) requests: Vec<f64>,
    pub(super) line: CostLine,
}

/// All costs of one run of the bench.
pub(super) struct UnitCosts {
    pub(super) foreign: Vec<ForeignCost>,
    pub(super) own: Vec<OwnCost>,
    pub(super) run: RunCosts,
}

pub(super) async fn measure(binary: &Path, extent: ReplicaExtent) -> Result<UnitCosts> {
    let stand = ReplicaStand::start(binary, extent).await?;
    Ok(UnitCosts {
        foreign: foreign(&stand, extent).await?,
        own: own(&stand, extent).await?,
        run: workers::load(&stand, 1, extent.pick(4000, 400, 40)).await?,
    })
}

/// Measures all ways and sizes in turns.
async fn foreign(stand: &ReplicaStand, extent: ReplicaExtent) -> Result<Vec<ForeignCost>> {
    let (rounds, time) = extent.pick((5, 1000), (1, 400), (1, 100));
    let time = Duration::from_millis(time);
    stand.create_database("units").await?;
    let (certificates, roots) = certificates()?;
    let folder = certificates.path().display();
    let tls =
        format!("server: {{otlpTls: {{cert: '{folder}/cert.pem', key: '{folder}/key.pem'}}}}");
    let servers = vec![stand.serve("units", "").await?, stand.serve("units", &tls).await?];
    let mut loads = Vec::new();
    for way in [Way::Grpc, Way::Http] {
        for spans in SIZES {
            let plain = ExportLoad::foreign(way, spans)?;
            loads.push((way, Carriage::Gzip, plain.gzipped()?));
            loads.push((way, Carriage::Tls, plain.over_tls(roots.clone())));
            loads.push((way, Carriage::Plain, plain));
        }
    }
    let mut costs = vec![Vec::new(); loads.len()];
    for _ in 0..rounds {
        for ((_, carriage, load), costs) in loads.iter().zip(&mut costs) {
            let server = &servers[usize::from(*carriage == Carriage::Tls)];
            costs.push(request_cost(server, load, time).await?);
        }
    }
    end(servers).await?;
    let mut all = Vec::new();
    for (name, way, carriage) in WAYS {
        let is_it = |(of, by, _): &(Way, Carriage, ExportLoad)| (*of, *by) == (way, carriage);
        let found = loads.iter().zip(&costs).filter(|(load, _)| is_it(load));
        let (bytes, requests): (Vec<f64>, Vec<f64>) =
            found.map(|(load, costs)| (load.2.body_bytes(), median(costs.clone()))).unzip();
        let line = CostLine::fit(&points(&SIZES, &requests));
        all.push(ForeignCost { name, requests, bytes, line });
    }
    Ok(all)
}

/// Returns the CPU time of a server for a request, in nanoseconds.
async fn request_cost(server: &Server, load: &ExportLoad, time: Duration) -> Result<f64> {
    let id = server.id().context("it runs")?;
    let running = load::start(server.otlp_grpc, load).await?;
    sleep(time / 3).await;
    let (cpu, sent) = (proc::cpu(id)?, running.sent());
    let began = Instant::now();
    // On a slow machine it takes longer until there is anything to divide by.
    while began.elapsed() < time
        || (running.sent() < sent + REQUESTS_MIN && began.elapsed() < ENDED_MAX)
    {
        sleep(time / 10).await;
    }
    let (cpu, sent) = (proc::cpu(id)?.saturating_sub(cpu), running.sent() - sent);
    let refused = running.stop().await?;
    ensure!(refused == 0 && sent > 0, "{sent} requests were accepted, {refused} refused");
    Ok(cpu.as_nanos() as f64 / sent as f64)
}

/// Measures requests with spans of a run, which one server receives and another one judges.
async fn own(stand: &ReplicaStand, extent: ReplicaExtent) -> Result<Vec<OwnCost>> {
    let rounds = extent.pick(3, 1, 1);
    let requests: [usize; 3] = extent.pick([8000, 6000, 1200], [1000, 400, 80], [100, 30, 5]);
    stand.create_database("own").await?;
    let receiver = stand.serve("own", "server: {roles: [api, ingest]}").await?;
    let worker = stand.serve("own", "server: {roles: [worker]}").await?;
    let shop = ReplicaShop::start(receiver.otlp_grpc, FIRED).await?;
    let api = Api::new(&receiver.api)?;
    let claim = "count(span[name=\"a span that is never sent\"]) = 0";
    api.apply(&shop.document("own", "silent", claim, SETTLE)).await?;
    let mut costs = vec![vec![Vec::new(); OWN_SIZES.len()]; OWN_NAMES.len()];
    for _ in 0..rounds {
        for (at, (spans, requests)) in OWN_SIZES.into_iter().zip(requests).enumerate() {
            let parts = own_cost(stand, (&receiver, &worker), &api, (spans, requests)).await?;
            for (part, cost) in parts.into_iter().enumerate() {
                costs[part][at].push(cost);
            }
        }
    }
    end(vec![receiver, worker]).await?;
    let own = OWN_NAMES.into_iter().zip(costs).map(|(name, costs)| {
        let requests: Vec<f64> = costs.into_iter().map(median).collect();
        OwnCost { name, line: CostLine::fit(&points(&OWN_SIZES, &requests)), requests }
    });
    Ok(own.collect())
}

const OWN_NAMES: [&str; 3] = ["the server that receives", "the server that judges", "NATS"];

/// Sends spans of one run, and returns the CPU time for a request of each of [`OWN_NAMES`], in nanoseconds, beyond that of an idle
/// time of the same length.
async fn own_cost(
    stand: &ReplicaStand,
    (receiver, worker): (&Server, &Server),
    api: &Api,
    (spans, requests): (usize, usize),
) -> Result<[f64; 3]> {
    let id = api.start("own", &json!({})).await?;
    let began = Instant::now();
    let trace = loop {
        if let Some(trace) = api.run(&id).await?["traceId"].as_str() {
            break trace.parse::<TraceId>()?;
        }
        ensure!(began.elapsed() < ENDED_MAX, "the run has no trace");
        sleep(Duration::from_millis(10)).await;
    };
    let load = ExportLoad::of_trace(Way::Grpc, spans, requests, trace)?;
    sleep(FIRED).await;
    let cpu = || {
        let cpu = |server: &Server| proc::cpu(server.id().context("it runs")?);
        anyhow::Ok([cpu(receiver)?, cpu(worker)?, stand.nats.cpu()?])
    };
    let (before, sending) = (cpu()?, Instant::now());
    load::send(receiver.otlp_grpc, &load, requests).await?;
    sleep(READ).await;
    let (after, took) = (cpu()?, sending.elapsed());
    sleep(took.min(READ)).await;
    let idle = cpu()?;
    let run = api.ended(&id, ENDED_MAX).await?;
    ensure!(run["verdict"] == "passed", "a span that was not sent is absent: {run:#}");
    let read = &run["outcome"]["settlement"]["spans"];
    ensure!(read.as_u64() == Some((spans * requests) as u64), "{read} spans were read");
    let share = took.as_secs_f64() / took.min(READ).as_secs_f64();
    Ok(std::array::from_fn(|at| {
        let busy = after[at].saturating_sub(before[at]).as_nanos() as f64;
        let idle = idle[at].saturating_sub(after[at]).as_nanos() as f64 * share;
        // The clock of `/proc` has ticks of 10 ms: what costs less than one may have no cost here.
        (busy - idle).max(1.0) / requests as f64
    }))
}

fn points(sizes: &[usize], costs: &[f64]) -> Vec<(f64, f64)> {
    sizes.iter().map(|size| *size as f64).zip(costs.iter().copied()).collect()
}

/// Writes a certificate for `localhost` and its key, and returns what trusts it.
fn certificates() -> Result<(TempDir, RootCertStore)> {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()])?;
    let folder = TempDir::new()?;
    let pem = |kind: &str, der: &[u8]| {
        let text = BASE64_STANDARD.encode(der);
        format!("-----BEGIN {kind}-----\n{text}\n-----END {kind}-----\n")
    };
    fs::write(folder.path().join("cert.pem"), pem("CERTIFICATE", made.cert.der()))?;
    let key = made.signing_key.serialize_der();
    fs::write(folder.path().join("key.pem"), pem("PRIVATE KEY", &key))?;
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(made.cert.der().to_vec()))?;
    Ok((folder, roots))
}

impl UnitCosts {
    /// One row for each figure.
    pub(super) fn rows(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        for ForeignCost { name, requests, line, .. } in &self.foreign {
            for (size, cost) in SIZES.iter().zip(requests) {
                let name = format!("units: foreign request of {size}, {name}");
                rows.push(row(&name, cost / 1e3, "CPU us"));
            }
            rows.extend(line_rows(&format!("units: foreign, {name}"), *line));
        }
        for OwnCost { name, requests, line } in &self.own {
            for (size, cost) in OWN_SIZES.iter().zip(requests) {
                let name = format!("units: request of {size} spans of a run, {name}");
                rows.push(row(&name, cost / 1e3, "CPU us"));
            }
            rows.extend(line_rows(&format!("units: spans of a run, {name}"), *line));
        }
        let RunCosts { runs, front, workers, postgres, nats, .. } = self.run;
        rows.extend([
            row("units: runs", runs as f64, "runs"),
            row("units: a run, servers", front + workers, "CPU ms"),
            row("units: a run, Postgres", postgres, "CPU ms"),
            row("units: a run, NATS", nats, "CPU ms"),
        ]);
        rows
    }
}

fn line_rows(name: &str, line: CostLine) -> [Row; 3] {
    [
        row(&format!("{name}: a request"), line.request / 1e3, "CPU us"),
        row(&format!("{name}: a span"), line.span, "CPU ns"),
        at_most(ERROR_MAX, row(&format!("{name}: largest error of the line"), line.error, "")),
    ]
}
