//! An interruption of NATS: which runs of its time are in doubt, and which are not.

use anyhow::{Context, Result, ensure};
use bench::parts::{Database, NatsCluster, Target};
use tokio::time::{Instant, sleep};

use super::{ENDED_MAX, NOTHING_DELETED, ONE_DELETED, apply, judged, send, serve, start};

/// The runs that begin right after the interruption: more than one until the next heartbeat of a server.
const RUNS_AFTER: usize = 4;

#[tokio::test(flavor = "multi_thread")]
async fn an_interruption_concerns_only_traces_whose_spans_were_refused() -> Result<()> {
    let database = Database::create("bus_interrupted").await?;
    let mut nats = NatsCluster::start(1, true).await?;
    let (one, other) = (serve(&database, &nats, "").await?, serve(&database, &nats, "").await?);
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
            sleep(std::time::Duration::from_millis(20)).await;
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
    // NATS may store what it did not acknowledge: then one span is there, and there may be more of them.
    let [nothing, one_of_them, looked_at] = verdicts;
    assert_ne!(nothing, "passed", "{run:#}");
    assert_eq!([one_of_them, looked_at], ["inconclusive", "passed"], "{run:#}");
    let unsettled = run["outcome"]["settlement"]["unsettled"].to_string();
    assert!(unsettled.contains("spansLost"), "{unsettled}");
    one.server.terminate().await?.context("it ended in order")?;
    other.server.terminate().await?.context("it ended in order")?;
    database.remove().await
}
