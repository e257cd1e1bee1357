//! What a foreign span costs at a server's own ports, where a bus and its journal stand behind the receiver, beside the
//! receiver alone. Foreign spans touch neither, so that both must cost the same, and nothing is on disk afterwards.

use std::{fs, path::Path};

use anyhow::{Result, bail, ensure};
use tempfile::TempDir;

use super::{ROUND, ROUNDS, Receiver, WARM_UP, cpu_ns_of, load, row};
use crate::{
    parts::{Database, Server},
    table::{Goal, Row, median},
};

/// Of what the receiver alone takes.
const SERVED_MAX: f64 = 1.1;

const SPANS: usize = 100;

/// Measures both in turns; `--short` one short round.
pub async fn measure(arguments: &[String]) -> Result<Vec<Row>> {
    let (rounds, time) = match arguments {
        [] => (ROUNDS, ROUND),
        [short] if short == "--short" => (1, ROUND / 3),
        _ => bail!("expected nothing or --short"),
    };
    let (database, data) = (Database::create("served").await?, TempDir::new()?);
    let configuration = format!(
        "{}\nserver: {{dataDirectory: '{}'}}\n",
        database.section()?,
        data.path().display()
    );
    let binary = Server::binary_beside_this()?;
    let server = Server::start_with(&binary, &configuration, "127.0.0.1:0").await?;
    let alone = Receiver::start("ours").await?;
    let load = load::Load::foreign(load::Way::Grpc, SPANS)?;
    let subjects = [(alone.child.id(), alone.grpc), (server.id(), server.otlp_grpc)];
    let mut costs = [Vec::new(), Vec::new()];
    for _ in 0..rounds {
        for ((id, port), costs) in subjects.iter().zip(&mut costs) {
            let running = load::start(*port, &load).await?;
            tokio::time::sleep(WARM_UP).await;
            let (cpu, sent) = (cpu_ns_of(*id)?, running.sent());
            tokio::time::sleep(time).await;
            let (cpu, sent) = (cpu_ns_of(*id)? - cpu, running.sent() - sent);
            let refused = running.stop().await?;
            ensure!(refused == 0 && sent > 0, "{sent} requests were taken, {refused} refused");
            costs.push(cpu / (sent * SPANS as u64) as f64);
        }
    }
    let written = segments_bytes(&data.path().join("spans").join("0"))?;
    ensure!(written == 0, "foreign spans are in the journal: {written} bytes");
    let [alone, served] = costs;
    let ratio = median(alone.iter().zip(&served).map(|(alone, served)| served / alone).collect());
    server.terminate().await?;
    database.remove().await?;
    Ok(vec![
        row("foreign, the receiver alone", median(alone), "CPU ns/span", None),
        row("foreign, at a server's port", median(served), "CPU ns/span", None),
        row("server over receiver", ratio, "ratio", Some(Goal::AtMost(SERVED_MAX))),
        row("journal after it", written as f64, "bytes", Some(Goal::AtMost(0.0))),
    ])
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
