//! An interruption of NATS: which runs of its time are in doubt, and which are not.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use bench::parts::{Database, NatsCluster, Target};
use tokio::time::{Instant, sleep};

use super::{ENDED_MAX, NOTHING_DELETED, ONE_DELETED, apply, judged, send, serve_with, start};

/// The runs that begin right after the interruption: more than one until the next heartbeat of a server.
const RUNS_AFTER: usize = 4;

/// How long NATS is suspended: longer than a batch is on its way until its server names no NATS, shorter than it is tried, and until
/// the connection counts as lost.
const SUSPENDED: Duration = Duration::from_millis(2500);

#[tokio::test(flavor = "multi_thread")]
async fn an_interruption_concerns_only_traces_whose_spans_were_refused() -> Result<()> {
    let database = Database::create("bus_interrupted").await?;
    let mut nats = NatsCluster::start(1, true).await?;
    // Else the new leader would be a doubt of its own.
    let synced = nats.section(", synced: true");
    let (one, other) =
        (serve_with(&database, &synced).await?, serve_with(&database, &synced).await?);
    let target = Target::start(Some(one.server.otlp_grpc)).await?;
    // Long enough that the run is open until NATS is back.
    apply(&one, &target, 8000).await?;
    let ((refused, trace), (repeated, trace_of_repeated)) =
        (start(&one).await?, start(&one).await?);
    nats.kill(0).await?;
    for trace in [&trace, &trace_of_repeated] {
        assert_eq!(
            send(&other, trace).await?,
            503,
            "and the server records that it shares nothing"
        );
    }
    nats.start_node(0)?;
    nats.healthy().await?;
    for server in [&one.server, &other.server] {
        let began = Instant::now();
        while reqwest::get(format!("{}/readyz", server.api)).await?.status() != 200 {
            ensure!(began.elapsed() < ENDED_MAX, "NATS is back");
            sleep(Duration::from_millis(20)).await;
        }
    }
    // Its sender repeats it, and a balancer selects another server.
    assert_eq!(send(&one, &trace_of_repeated).await?, 200);
    apply(&one, &target, 300).await?;
    for _ in 0..RUNS_AFTER {
        let (id, _) = start(&one).await?;
        let (verdicts, run) = judged(&one, &id).await?;
        assert_eq!(verdicts, NOTHING_DELETED, "no span of it was refused: {run:#}");
    }
    let (verdicts, run) = judged(&one, &repeated).await?;
    assert_eq!(verdicts, ONE_DELETED, "what was refused came again: {run:#}");
    let (verdicts, run) = judged(&one, &refused).await?;
    let unsettled = run["outcome"]["settlement"]["unsettled"].to_string();
    if unsettled == "[]" {
        // The connection stored it when NATS was back, though its sender got a refusal.
        assert_eq!(verdicts, ONE_DELETED, "{run:#}");
    } else {
        assert_eq!(verdicts, ["inconclusive", "inconclusive", "passed"], "{run:#}");
        assert!(unsettled.contains("spansLost"), "{unsettled}");
    }
    one.server.terminate().await?.context("it ended in order")?;
    other.server.terminate().await?.context("it ended in order")?;
    database.remove().await
}

/// As with the election of a stream's leader: servers hold spans for some seconds, and store them then.
#[tokio::test(flavor = "multi_thread")]
async fn spans_that_a_server_holds_for_some_seconds_are_waited_for() -> Result<()> {
    let database = Database::create("bus_held").await?;
    let nats = NatsCluster::start(1, true).await?;
    let synced = nats.section(", synced: true");
    let (one, other) =
        (serve_with(&database, &synced).await?, serve_with(&database, &synced).await?);
    let target = Target::start(Some(one.server.otlp_grpc)).await?;
    apply(&one, &target, 300).await?;
    for _ in 0..3 {
        let (held, trace) = start(&one).await?;
        let (without, _) = start(&one).await?;
        nats.signal(0, "-STOP").await?;
        let (sent, resumed) = tokio::join!(send(&other, &trace), async {
            // The duration of the fault is what is tested.
            sleep(SUSPENDED).await;
            nats.signal(0, "-CONT").await
        });
        resumed?;
        assert_eq!(sent?, 200, "it was held, and then stored");
        for (run, expected) in [(held, ONE_DELETED), (without, NOTHING_DELETED)] {
            let (verdicts, run) = judged(&one, &run).await?;
            assert_eq!(verdicts, expected, "{run:#}");
        }
    }
    one.server.terminate().await?.context("it ended in order")?;
    other.server.terminate().await?.context("it ended in order")?;
    database.remove().await
}
