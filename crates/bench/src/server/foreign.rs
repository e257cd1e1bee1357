//! The cost of a foreign span at a server's port, with any history, compared with the receiver alone.
//!
//! A foreign span reaches neither the bus nor the database, so all must cost the same, and nothing is on disk afterwards.

use std::{fs, path::Path, time::Duration};

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

use super::{history::History, row};
use crate::{
    ingest::{ROUND, ROUNDS, Receiver, WARM_UP, load},
    parts::{Cluster, Server, proc},
    table::{Goal, Row, median},
};

/// The upper bound relative to the cost without a history.
const HISTORY_MAX: f64 = 1.1;
/// The upper bound relative to the receiver alone.
const SERVED_MAX: f64 = 1.1;

const SPANS: usize = 100;

/// Measures all in turns.
pub(super) async fn measure(binary: &Path, history: &History, is_short: bool) -> Result<Vec<Row>> {
    let (rounds, time) = if is_short { (1, ROUND / 3) } else { (ROUNDS, ROUND) };
    let mut cluster = Cluster::create().await?;
    cluster.start().await?;
    let (data, old_data) = (TempDir::new()?, TempDir::new()?);
    let young = serve(binary, &cluster, &data).await?;
    let old = serve(binary, &history.cluster, &old_data).await?;
    let alone = Receiver::start("ours").await?;
    let load = load::ExportLoad::foreign(load::Way::Grpc, SPANS)?;
    let subjects = [
        (alone.id()?, alone.grpc),
        (young.id().context("it runs")?, young.otlp_grpc),
        (old.id().context("it runs")?, old.otlp_grpc),
    ];
    let mut costs = [Vec::new(), Vec::new(), Vec::new()];
    for _ in 0..rounds {
        for ((id, port), costs) in subjects.iter().zip(&mut costs) {
            costs.push(cost(*id, *port, &load, time).await?);
        }
    }
    let mut written = 0;
    for data in [&data, &old_data] {
        written += segments_bytes(&data.path().join("spans").join("0"))?;
    }
    young.terminate().await?;
    old.terminate().await?;
    cluster.stop().await?;
    let [alone, young, old] = costs;
    let ratio = |over: &[f64], under: &[f64]| {
        median(over.iter().zip(under).map(|(over, under)| over / under).collect())
    };
    let unit = "CPU ns/span";
    let most = |most| Some(Goal::AtMost(most));
    let name = format!("foreign: with {} runs", history.runs);
    Ok(vec![
        row("foreign: the receiver alone", median(alone.clone()), unit, None),
        row("foreign: with 0 runs", median(young.clone()), unit, None),
        row(&name, median(old.clone()), unit, None),
        row("foreign: history over none", ratio(&old, &young), "ratio", most(HISTORY_MAX)),
        row("foreign: server over receiver", ratio(&young, &alone), "ratio", most(SERVED_MAX)),
        row("foreign: journal after it", written as f64, "bytes", most(0.0)),
    ])
}

async fn serve(binary: &Path, cluster: &Cluster, data: &TempDir) -> Result<Server> {
    let configuration =
        format!("{}\nserver: {{dataDirectory: '{}'}}\n", cluster.section(), data.path().display());
    Server::start_with(binary, &configuration, "127.0.0.1:0").await
}

/// Returns the CPU time of a process for one span, in nanoseconds.
async fn cost(process: u32, port: u16, load: &load::ExportLoad, time: Duration) -> Result<f64> {
    let running = load::start(port, load).await?;
    tokio::time::sleep(WARM_UP).await;
    let (cpu, sent) = (proc::cpu(process)?, running.sent());
    tokio::time::sleep(time).await;
    let (cpu, sent) = (proc::cpu(process)? - cpu, running.sent() - sent);
    let refused = running.stop().await?;
    ensure!(refused == 0 && sent > 0, "{sent} requests were taken, {refused} refused");
    Ok(cpu.as_nanos() as f64 / (sent * SPANS as u64) as f64)
}

fn segments_bytes(folder: &Path) -> Result<u64> {
    let mut bytes = 0;
    for file in fs::read_dir(folder)? {
        let file = file?;
        if file.path().extension().is_some_and(|extension| extension == "segment") {
            bytes += file.metadata()?.len();
        }
    }
    Ok(bytes)
}
