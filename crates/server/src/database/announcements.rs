//! Messages among servers about traces with external ids, which no server recognizes by itself.
//!
//! A worker announces the trace to all servers before it records its attempt, which is what users see. A server that starts later
//! reads the recorded attempts before it accepts spans. One that did neither is counted as a server that does not share its spans.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use db::AwaitedTrace;
use model::{BusSlot, Project, RunId};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::identity::hex;
use crate::span_bus::SpanBus;

/// How long servers may take to answer.
const ANSWER_MAX: Duration = Duration::from_secs(1);

/// The identity of a process.
pub(crate) type ProcessId = [u8; 16];

/// A request to all servers.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub(crate) enum PeerMessage {
    /// A run waits for this trace from now on.
    Announce(TraceMessage),
    /// Whether the server has known of the trace since before it accepted spans.
    Check(TraceMessage),
    /// Whether the server has shared all spans of the trace that it received.
    Sharing(TraceMessage),
    /// What its receiver has seen of senders that reach a project.
    Seen {
        /// The project.
        project: Project,
    },
    /// What a run has of its trace: the server that executes it answers.
    Snapshot {
        /// The project of the run.
        project: Project,
        /// The run.
        run: RunId,
        /// Whether its spans are needed too.
        needs_spans: bool,
    },
}

/// A trace in a message.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct TraceMessage {
    project: Project,
    trace: String,
    slot: u16,
}

/// The answer of a server: it will pass on, or has passed on, all spans of the trace.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct InterestAnswer {
    process: String,
    is_known: bool,
}

impl TraceMessage {
    pub(super) fn of(awaited: &AwaitedTrace) -> Self {
        let AwaitedTrace { project, trace, slot } = awaited;
        let slot = slot.unwrap_or_default().0;
        Self { project: project.clone(), trace: trace.to_string(), slot }
    }

    /// Returns the trace; none if its id is damaged.
    pub(crate) fn awaited(self) -> Option<AwaitedTrace> {
        let (project, trace) = (self.project, self.trace.parse().ok()?);
        Some(AwaitedTrace { project, trace, slot: Some(BusSlot(self.slot)) })
    }
}

impl InterestAnswer {
    pub(crate) fn new(process: ProcessId, is_known: bool) -> Self {
        Self { process: hex(&process), is_known }
    }
}

/// Announces a trace to these servers, and returns those that confirm.
pub(super) async fn announce(
    bus: &SpanBus,
    awaited: &AwaitedTrace,
    to: HashSet<ProcessId>,
) -> HashSet<ProcessId> {
    gather(bus, &PeerMessage::Announce(TraceMessage::of(awaited)), to).await
}

/// Returns those of these servers that have known of a trace since before they accepted spans.
pub(super) async fn check(
    bus: &SpanBus,
    awaited: &AwaitedTrace,
    of: HashSet<ProcessId>,
) -> HashSet<ProcessId> {
    gather(bus, &PeerMessage::Check(TraceMessage::of(awaited)), of).await
}

async fn gather(
    bus: &SpanBus,
    request: &PeerMessage,
    of: HashSet<ProcessId>,
) -> HashSet<ProcessId> {
    if of.is_empty() {
        return of;
    }
    let request = serde_json::to_vec(request).unwrap_or_default();
    let has_all = |answers: &[Vec<u8>]| confirmed(answers, &of, |_| true).len() == of.len();
    let answers = bus.gather(&request, ANSWER_MAX, has_all).await;
    confirmed(&answers, &of, |answer| answer.is_known)
}

/// Returns the servers whose answers are such.
fn confirmed(
    answers: &[Vec<u8>],
    of: &HashSet<ProcessId>,
    is_such: impl Fn(&InterestAnswer) -> bool,
) -> HashSet<ProcessId> {
    let answers = by_process(answers, of, |answer: &InterestAnswer| &answer.process);
    answers.into_iter().filter(|(_, answer)| is_such(answer)).map(|(process, _)| process).collect()
}

/// Returns the answers of these servers, without those that cannot be read. `process` returns the name of the server that answers.
pub(super) fn by_process<A: DeserializeOwned>(
    answers: &[Vec<u8>],
    of: &HashSet<ProcessId>,
    process: impl Fn(&A) -> &str,
) -> HashMap<ProcessId, A> {
    let by_name: HashMap<String, ProcessId> = of.iter().map(|it| (hex(it), *it)).collect();
    let answers = answers.iter().filter_map(|answer| serde_json::from_slice(answer).ok());
    answers.filter_map(|answer| Some((*by_name.get(process(&answer))?, answer))).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::{InterestAnswer, confirmed};

    #[test]
    fn only_servers_that_were_addressed_confirm() {
        let of = HashSet::from([[1; 16], [2; 16]]);
        let answer = |process, is_known| {
            serde_json::to_vec(&InterestAnswer::new([process; 16], is_known)).expect("text")
        };
        let answers = [answer(1, true), answer(2, false), answer(3, true), b"{}".to_vec()];
        assert_eq!(confirmed(&answers, &of, |_| true), of);
        assert_eq!(confirmed(&answers, &of, |it| it.is_known), HashSet::from([[1; 16]]));
    }
}
