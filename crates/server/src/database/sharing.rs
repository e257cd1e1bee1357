//! Whether other servers have shared all spans of a trace over the bus: a request among servers, for a run that depends on absence
//! while one of them could not store something.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use db::AwaitedTrace;
use serde::{Deserialize, Serialize};

use super::{
    announcements::{PeerMessage, ProcessId, TraceMessage, by_process},
    identity::hex,
};
use crate::span_bus::SpanBus;

/// How long servers may take to answer.
const ANSWER_MAX: Duration = Duration::from_millis(300);

/// The answer of a server that has shared all that it knows of the trace.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SharingMessage {
    process: String,
    /// What identifies the bus.
    bus: String,
    /// For how long nothing of the trace has waited, in milliseconds; zero while something waits.
    shared_ms: u64,
}

/// What a server has shared.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SharedTrace {
    /// What identifies the bus.
    pub(super) bus: String,
    /// For how long nothing of the trace has waited.
    pub(super) shared_for: Duration,
}

/// Returns the answer of this server; none before it takes part in a shared bus.
pub(crate) fn answer(bus: &SpanBus, process: ProcessId, trace: &AwaitedTrace) -> Option<Vec<u8>> {
    let (bus, shared_for) = bus.shared_for(trace.trace, &trace.project)?;
    let shared_ms = shared_for.as_millis() as u64;
    serde_json::to_vec(&SharingMessage { process: hex(&process), bus, shared_ms }).ok()
}

/// Requests of these servers whether they have shared all spans of a trace. Returns what they answer; those that do not answer in time
/// are missing.
pub(super) async fn request(
    bus: &SpanBus,
    trace: &AwaitedTrace,
    of: &HashSet<ProcessId>,
) -> HashMap<ProcessId, SharedTrace> {
    let request = PeerMessage::Sharing(TraceMessage::of(trace));
    let request = serde_json::to_vec(&request).unwrap_or_default();
    let has_all = |answers: &[Vec<u8>]| read(answers, of).len() == of.len();
    read(&bus.gather(&request, ANSWER_MAX, has_all).await, of)
}

/// Returns the answers of these servers.
fn read(answers: &[Vec<u8>], of: &HashSet<ProcessId>) -> HashMap<ProcessId, SharedTrace> {
    let answers = by_process(answers, of, |answer: &SharingMessage| &answer.process);
    let shared = |SharingMessage { bus, shared_ms, .. }| SharedTrace {
        bus,
        shared_for: Duration::from_millis(shared_ms),
    };
    answers.into_iter().map(|(process, answer)| (process, shared(answer))).collect()
}

#[cfg(test)]
mod tests {
    use std::{
        collections::{HashMap, HashSet},
        time::Duration,
    };

    use super::{SharedTrace, SharingMessage, hex, read};

    #[test]
    fn answers_count_of_servers_that_were_addressed() {
        let of = HashSet::from([[1; 16], [2; 16]]);
        let answer = |process| {
            let process = hex(&[process; 16]);
            serde_json::to_vec(&SharingMessage {
                process,
                bus: "nats:qt:1".to_owned(),
                shared_ms: 70,
            })
            .expect("text")
        };
        let answers = [answer(1), answer(3), b"{}".to_vec()];
        let shared_for = Duration::from_millis(70);
        let sharing = SharedTrace { bus: "nats:qt:1".to_owned(), shared_for };
        assert_eq!(read(&answers, &of), HashMap::from([([1; 16], sharing)]));
    }
}
