//! Answers other servers: their workers announce traces with external ids, and request what the receiver has seen; their API
//! requests what active runs have of their traces.

use std::{sync::Arc, time::Duration};

use drivers::receiver::ReceiverStats;
use runner::Pool;
use tokio::{task::JoinSet, time::sleep};
use tokio_util::sync::CancellationToken;

use super::interests::Interests;
use crate::{
    database::{
        announcements::{InterestAnswer, PeerMessage},
        peers::Peers,
        receiver_reports::ReceiverReport,
        sharing,
    },
    live::snapshots::Snapshots,
    span_bus::SpanBus,
};

/// The pause until the server takes part in the bus.
const PAUSE: Duration = Duration::from_millis(100);

/// The maximum number of snapshots of runs that are made at a time for other servers.
const SNAPSHOTS_MAX: usize = 8;

/// Answers until the server stops.
pub(crate) async fn answer(
    (interests, peers, bus): (Interests, Peers, Arc<SpanBus>),
    stats: ReceiverStats,
    (snapshots, pool): (Snapshots, Pool),
    stop: CancellationToken,
) {
    let answering = async {
        let mut requests = loop {
            match bus.requests().await {
                Some(requests) => break requests,
                None => sleep(PAUSE).await,
            }
        };
        let mut making = JoinSet::new();
        loop {
            let request = requests.next().await;
            let Ok(message) = serde_json::from_slice(&request.body) else { continue };
            if let PeerMessage::Snapshot { project, run, needs_spans } = message {
                // A run takes a moment to answer, and no other request waits for it.
                while making.try_join_next().is_some() {}
                if making.len() < SNAPSHOTS_MAX {
                    let (snapshots, share) = (snapshots.clone(), pool.share(project.clone()));
                    making.spawn(async move {
                        let made = snapshots.answer((&project, run), needs_spans, &share).await;
                        if let Some(answer) = made.and_then(|it| serde_json::to_vec(&it).ok()) {
                            request.answer(&answer).await;
                        }
                    });
                }
            } else if let Some(answer) = answer_to(message, &interests, (&peers, &bus, &stats)) {
                request.answer(&answer).await;
            }
        }
    };
    tokio::select! {
        () = answering => {}
        () = stop.cancelled() => {}
    }
}

/// Returns the answer; none to what this server cannot answer.
fn answer_to(
    message: PeerMessage,
    interests: &Interests,
    (peers, bus, stats): (&Peers, &SpanBus, &ReceiverStats),
) -> Option<Vec<u8>> {
    let is_known = match message {
        PeerMessage::Announce(trace) => interests.announced(trace.awaited()?),
        PeerMessage::Check(trace) => interests.is_known_from_start(&trace.awaited()?),
        PeerMessage::Sharing(trace) => {
            return sharing::answer(bus, peers.process(), &trace.awaited()?);
        }
        PeerMessage::Seen { project } => {
            let report = ReceiverReport::new(peers.process(), &stats.seen(&project));
            return serde_json::to_vec(&report).ok().filter(|_| peers.receives());
        }
        PeerMessage::Snapshot { .. } => return None,
    };
    serde_json::to_vec(&InterestAnswer::new(peers.process(), is_known)).ok()
}
