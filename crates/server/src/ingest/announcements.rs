//! Answers the workers of other servers that announce traces with external ids.

use std::{sync::Arc, time::Duration};

use bus::PeerRequest;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::interests::Interests;
use crate::{
    database::{
        announcements::{InterestAnswer, InterestRequest},
        peers::Peers,
    },
    span_bus::SpanBus,
};

/// The pause until the server takes part in the bus.
const PAUSE: Duration = Duration::from_millis(100);

/// Answers until the server stops.
pub(crate) async fn answer(
    (interests, peers, bus): (Interests, Peers, Arc<SpanBus>),
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
            if let Some(answer) = answer_to(&request, &interests, &peers) {
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
fn answer_to(request: &PeerRequest, interests: &Interests, peers: &Peers) -> Option<Vec<u8>> {
    let is_known = match serde_json::from_slice(&request.body).ok()? {
        InterestRequest::Announce(trace) => interests.announced(trace.awaited()?),
        InterestRequest::Check(trace) => interests.is_known_from_start(&trace.awaited()?),
    };
    serde_json::to_vec(&InterestAnswer::new(peers.process(), is_known)).ok()
}
