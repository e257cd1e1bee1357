//! Which faults explain that a run is inconclusive, and for which reason.
//!
//! The list follows the table of failures in `docs/operations.md`. A pair that is not in it is a finding, also if a fault happened.

use super::{
    history::RecordedRun,
    schedule::{Component, FaultKind},
};

/// How long a fault may still show after its repair, in milliseconds: the row of a server counts for 10 s after its last renewal,
/// and an exporter waits for up to 5 s between two tries.
const ECHO_MS: u64 = 15_000;

/// The spans of a service did not arrive before the timeout of the run.
const MISSING: &[&str] =
    &["noTelemetry", "parentsAbsent", "edgesOpen", "expectedAbsent", "notQuiet"];

/// A fault with its time.
#[derive(Clone, Copy, Debug)]
pub(super) struct FaultWindow {
    pub(super) kind: FaultKind,
    pub(super) component: Component,
    pub(super) from: u64,
    pub(super) to: u64,
}

impl FaultWindow {
    /// Whether it was in the time of a run.
    pub(super) fn is_of(&self, record: &RecordedRun) -> bool {
        let ended = record.ended_at.unwrap_or(u64::MAX);
        self.from <= ended && record.accepted_at <= self.to + ECHO_MS
    }
}

/// Returns the pairs of fault and reason that explain an inconclusive run, and the reasons that no fault explains.
pub(super) fn excuse(record: &RecordedRun, faults: &[FaultWindow]) -> (Vec<String>, Vec<String>) {
    let (mut excused, mut unexplained) = (Vec::new(), Vec::new());
    for reason in reasons(record) {
        // Of several faults one of a part that all servers share, else the last one.
        let fault = faults
            .iter()
            .filter(|fault| fault.is_of(record) && is_listed(fault, &reason))
            .max_by_key(|fault| (fault.component, fault.from));
        match fault {
            Some(fault) => {
                excused.push(format!("{} {}: {reason}", fault.component.kind(), fault.kind));
            }
            None => unexplained.push(reason),
        }
    }
    (excused, unexplained)
}

/// Returns why a run is inconclusive, one word each.
fn reasons(record: &RecordedRun) -> Vec<String> {
    if record.reasons.iter().any(|reason| reason.starts_with("given up")) {
        return vec!["givenUp".to_owned()];
    }
    let mut reasons = record.unsettled.clone();
    // The reason why there is no response is more precise than that there is none.
    if let Some(kind) = &record.no_answer {
        reasons.retain(|reason| reason != "notAnswered");
        reasons.push(format!("noAnswer {kind}"));
    }
    if reasons.is_empty() {
        reasons.push(format!("other: {}", record.reasons.join("; ")));
    }
    reasons
}

/// Whether a fault of this kind and part explains this reason.
fn is_listed(fault: &FaultWindow, reason: &str) -> bool {
    use FaultKind::{CutNats, CutOff, Kill, KillLeader, Restart, Suspend, Wipe};
    let is_missing = MISSING.contains(&reason);
    match (fault.component, fault.kind) {
        // The response was not stored, or its lease was lost, also twice.
        (Component::Worker(_), Kill) => matches!(reason, "noAnswer unknown" | "givenUp"),
        // Its own proof did not arrive either. Until it knows its NATS again, all others are other servers to it.
        (Component::Worker(_), Suspend | CutOff | CutNats) => {
            matches!(reason, "noAnswer unknown" | "givenUp" | "unproved" | "otherServers")
        }
        // An export reaches the run too late, or was refused, by a server that shares nothing, and did not come again in time.
        (Component::Replica(_), CutNats | CutOff | Suspend) => {
            is_missing || matches!(reason, "spansLost" | "otherServers" | "unproved")
        }
        // An export is sent again.
        (Component::Replica(_), Kill) => is_missing,
        (Component::NatsNode(_), Kill | KillLeader | Suspend) => {
            is_missing || matches!(reason, "spansLost" | "otherServers" | "unproved")
        }
        (Component::Store, Wipe) => {
            is_missing || matches!(reason, "spansLost" | "otherServers" | "unproved")
        }
        // A lease was not renewed in time.
        (Component::Postgres, Restart) => matches!(reason, "noAnswer unknown" | "givenUp"),
        _ => false,
    }
}
