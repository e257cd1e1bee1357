//! Answers the workers of other servers: they announce traces with external ids, and request what the receiver has seen.

use std::{sync::Arc, time::Duration};

use bus::PeerRequest;
use drivers::receiver::ReceiverStats;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::interests::Interests;
use crate::{
    database::{
        announcements::{InterestAnswer, PeerMessage},
        peers::Peers,
        receiver_reports::ReceiverReport,
        sharing,
    },
    span_bus::SpanBus,
};

/// The pause until the server takes part in the bus.
const PAUSE: Duration = Duration::from_millis(100);

/// Answers until the server stops.
pub(crate) async fn answer(
    (interests, peers, bus): (Interests, Peers, Arc<SpanBus>),
    stats: ReceiverStats,
    stop: CancellationToken,
) {
    let answering = async {
        let mut requests = loop {
            match bus.requests().await {
                Some(requests) => break requests,
                None => sleep(PAUSE).await,
            }
        };
        loop {
            let request = requests.next().await;
            if let Some(answer) = answer_to(&request, &interests, (&peers, &bus, &stats)) {
                request.answer(&answer).await;
            }
        }
    };
    tokio::select! {
        () = answering => {}
        () = stop.cancelled() => {}
    }
}

/// Returns the answer; none to what a later version requests.
fn answer_to(
    request: &PeerRequest,
    interests: &Interests,
    (peers, bus, stats): (&Peers, &SpanBus, &ReceiverStats),
) -> Option<Vec<u8>> {
    let is_known = match serde_json::from_slice(&request.body).ok()? {
        PeerMessage::Announce(trace) => interests.announced(trace.awaited()?),
        PeerMessage::Check(trace) => interests.is_known_from_start(&trace.awaited()?),
        PeerMessage::Sharing(trace) => {
            return sharing::answer(bus, peers.process(), &trace.awaited()?);
        }
        PeerMessage::Seen { project } => {
            let report = ReceiverReport::new(peers.process(), &stats.seen(&project));
            return serde_json::to_vec(&report).ok().filter(|_| peers.receives());
        }
    };
    serde_json::to_vec(&InterestAnswer::new(peers.process(), is_known)).ok()
}
