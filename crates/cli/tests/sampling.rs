//! The fraction of runs that a sampled exporter receives, of runs that were started without a trace context.

use std::{path::Path, time::Duration};

use anyhow::{Result, ensure};
use bench::parts::{
    CollectedData, Collector, Database, Server, TEST_THAT_FIRES_NOTHING, free_port,
};
use reqwest::{Client, StatusCode};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep},
};

const BINARY: &str = env!("CARGO_BIN_EXE_qualitytrace");
const RUNS: usize = 1000;
/// The number of clients that start runs concurrently.
const CLIENTS: usize = 8;
const ENDED_MAX: Duration = Duration::from_secs(45);
const WRITTEN_MAX: Duration = Duration::from_secs(20);

fn runs(collected: &CollectedData) -> usize {
    collected.named("qualitytrace.run").count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_runs_are_thinned_as_each_exporter_says() -> Result<()> {
    let database = Database::create("sampling").await?;
    let ports = [free_port()?, free_port()?, free_port()?];
    let [none, half, all] = ports;
    let config = format!(
        "{}
telemetry: {{exporters: {{half: {{sampling: 50, exporter: {{type: collector, collector: {{endpoint: '127.0.0.1:{half}'}}}}}}}}}}
tracer:
  none: {{type: open-telemetry, endpoint: '127.0.0.1:{none}', sampling: 0}}
  all: {{type: open-telemetry, endpoint: '127.0.0.1:{all}', sampling: 100}}
server: {{telemetry: {{exporter: half}}}}
",
        database.section()?
    );
    let server = Server::start_with(Path::new(BINARY), &config, "127.0.0.1:0").await?;
    let mut collectors = Vec::new();
    for port in ports {
        collectors.push(Collector::start(port, None).await?);
    }
    let client = Client::new();
    let applied = client
        .put(format!("{}/api/v1/tests", server.api))
        .body(TEST_THAT_FIRES_NOTHING)
        .send()
        .await?;
    assert_eq!(applied.status(), StatusCode::OK, "{}", applied.text().await?);

    let mut clients = JoinSet::new();
    for _ in 0..CLIENTS {
        let (client, url) = (client.clone(), format!("{}/api/v1/tests/cheap/runs", server.api));
        clients.spawn(async move {
            for _ in 0..RUNS / CLIENTS {
                let answer = client.post(&url).send().await?;
                ensure!(answer.status() == StatusCode::ACCEPTED, "{}", answer.text().await?);
            }
            Ok(())
        });
    }
    while let Some(done) = clients.join_next().await {
        done??;
    }
    let open = "select count(*) from runs where verdict is null";
    let began = Instant::now();
    while database.count(open).await? > 0 && began.elapsed() < ENDED_MAX {
        sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(
        database.count("select count(*) from runs where verdict is not null").await?,
        RUNS as i64
    );

    let everything = collectors[2].wait_for(WRITTEN_MAX, |it| runs(it) >= RUNS).await?;
    assert_eq!(runs(&everything), RUNS, "100 is all");
    // At its end the server has delivered everything to every exporter, and at their end the Collectors have written it.
    assert_eq!(server.terminate().await?, Some(0));
    let mut collected = Vec::new();
    for collector in collectors {
        collected.push(collector.terminate().await?);
    }
    assert_eq!(runs(&collected[0]), 0, "0 is none");
    let sampled = &collected[1];
    // The number of sampled runs is within four standard deviations of 500, except once in sixteen thousand times.
    assert!((437..=563).contains(&runs(sampled)), "50 gave {}", runs(sampled));
    // A trace is exported completely or not at all.
    for run in sampled.named("qualitytrace.run") {
        assert!(sampled.spans.iter().any(|span| span.span_id == run.parent_id), "{run:?}");
    }
    database.remove().await
}
