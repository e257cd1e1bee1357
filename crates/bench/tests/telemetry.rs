//! The promises of telemetry, in short form: nothing is lost through an outage, and almost nothing by a kill.
//!
//! The benchmark measures the same in long form, compared with the stock exporters.

use std::{path::Path, time::Duration};

use bench::telemetry::{
    Durability, Subject, Transport,
    kill::{self, SpanLoss},
    outage::{self, Times},
    reload, shutdown,
};

const PROGRAM: &str = env!("CARGO_BIN_EXE_bench");
const KILLS: usize = 5;

#[tokio::test(flavor = "multi_thread")]
async fn an_outage_loses_nothing_over_grpc() {
    without_loss(Subject::ours(Durability::Process, Transport::Grpc)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outage_loses_nothing_over_http() {
    without_loss(Subject::ours(Durability::Memory, Transport::Http)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_process_loses_at_most_its_last_milliseconds() {
    for killed in killed(Subject::ours(Durability::Process, Transport::Grpc)).await {
        assert!(killed.oldest <= kill::LOST_MAX, "{killed:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_process_that_writes_through_loses_nothing() {
    for killed in killed(Subject::ours(Durability::WriteThrough, Transport::Http)).await {
        assert_eq!(killed.lost, 0, "{killed:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_shutdown_could_not_deliver_it_tells_and_the_next_start_delivers() {
    let subject = Subject::ours(Durability::Process, Transport::Grpc);
    let load = Duration::from_secs(2);
    let never = shutdown::never_up(Path::new(PROGRAM), subject, load).await.unwrap();
    assert!(never.emitted > 1000, "{never:?}");
    assert_eq!((never.untold, never.lost), (0, 0), "{never:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_current_thread_runtime_delivers_at_its_shutdown() {
    for transport in Transport::ALL {
        let subject = Subject::ours(Durability::Memory, transport);
        let delivered = shutdown::current_thread(Path::new(PROGRAM), subject).await.unwrap();
        assert_eq!(delivered, shutdown::FEW, "{subject}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_endpoint_loses_nothing() {
    let subject = Subject::ours(Durability::Process, Transport::Grpc);
    let load = Duration::from_secs(6);
    let changed = reload::run(Path::new(PROGRAM), subject, load).await.unwrap();
    assert_eq!(changed.lost, 0, "{changed:?}");
    assert!(changed.effective <= reload::EFFECTIVE_MAX, "{changed:?}");
}

async fn without_loss(subject: Subject) {
    let outage = outage::run(Path::new(PROGRAM), subject, Times::SHORT).await.expect("it runs");
    assert!(outage.backlog > 5000, "the Collector was away: {outage:?}");
    assert_eq!(outage.lost, 0, "{outage:?}");
    assert!(outage.drain <= outage::DRAIN_MAX, "{outage:?}");
    assert!(outage.memory_bytes() <= outage::MEMORY_BYTES_MAX, "{outage:?}");
}

async fn killed(subject: Subject) -> Vec<SpanLoss> {
    let killed = kill::healthy(Path::new(PROGRAM), subject, KILLS).await.expect("it runs");
    assert_eq!(killed.len(), KILLS);
    killed
}
