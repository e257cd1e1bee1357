//! What the receivers of other servers have seen, for the diagnosis of a run with an incomplete trace.
//!
//! The diagnosis needs it once, and soon: a server that does not answer within 300 ms is left out, and the diagnosis states how many
//! answered.

use std::{collections::HashMap, time::Duration};

use base64::{Engine, prelude::BASE64_STANDARD};
use drivers::receiver::{AnsweredServers, Counts, Foreign, ReceiverSnapshot, Refusal};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::identity::hex;
use crate::database::announcements::ProcessId;

/// How long servers may take to answer.
pub(super) const ANSWER_MAX: Duration = Duration::from_millis(300);

/// The maximum bytes of foreign exports in an answer: a message of NATS has a bound.
const FOREIGN_BYTES_MAX: usize = 256 * 1024;

/// What the receiver of a server has seen. Times are ages: the clocks of servers differ.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ReceiverReport {
    process: String,
    connections: u64,
    requests: u64,
    /// The counts in the order of [`Counts`].
    counts: [u64; 6],
    refusals: Vec<(u64, String)>,
    /// The newest foreign exports, in Base64.
    foreign: Vec<(u64, String)>,
}

impl ReceiverReport {
    pub(crate) fn new(process: ProcessId, seen: &ReceiverSnapshot) -> Self {
        let age = |at: Instant| at.elapsed().as_millis() as u64;
        let Counts { kept, foreign, invalid, logs, metrics, refused } = seen.counts;
        let mut room = FOREIGN_BYTES_MAX;
        let newest = seen.foreign.iter().rev().take_while(|export| {
            let is_fit = export.bytes.len() <= room;
            room = room.saturating_sub(export.bytes.len());
            is_fit
        });
        Self {
            process: hex(&process),
            connections: seen.connections,
            requests: seen.requests,
            counts: [kept, foreign, invalid, logs, metrics, refused],
            refusals: seen.refusals.iter().map(|it| (age(it.at), it.what.clone())).collect(),
            foreign: newest.map(|it| (age(it.at), BASE64_STANDARD.encode(&it.bytes))).collect(),
        }
    }

    /// Adds what the server has seen.
    fn add_to(self, all: &mut ReceiverSnapshot) {
        let at = |age: u64| {
            let now = Instant::now();
            now.checked_sub(Duration::from_millis(age)).unwrap_or(now)
        };
        all.connections += self.connections;
        all.requests += self.requests;
        let [kept, foreign, invalid, logs, metrics, refused] = self.counts;
        let counts = &mut all.counts;
        counts.kept += kept;
        counts.foreign += foreign;
        counts.invalid += invalid;
        counts.logs += logs;
        counts.metrics += metrics;
        counts.refused += refused;
        let refusals = self.refusals.into_iter();
        all.refusals.extend(refusals.map(|(age, what)| Refusal { at: at(age), what }));
        let exports = self.foreign.into_iter().filter_map(|(age, bytes)| {
            let bytes = BASE64_STANDARD.decode(bytes).ok()?.into();
            Some(Foreign { at: at(age), bytes })
        });
        all.foreign.extend(exports);
    }
}

/// Whether all of these servers have answered.
pub(super) fn have_answered(answers: &[Vec<u8>], servers: usize) -> bool {
    read(answers).len() >= servers
}

/// Adds the answers of servers to what this server has seen: `servers` is their number, with this one.
pub(super) fn merged(
    mut own: ReceiverSnapshot,
    answers: &[Vec<u8>],
    (servers, is_own_one): (usize, bool),
) -> ReceiverSnapshot {
    let reports = read(answers);
    let answered = reports.len() + usize::from(is_own_one);
    for report in reports.into_values() {
        report.add_to(&mut own);
    }
    own.refusals.sort_by_key(|refusal| refusal.at);
    own.foreign.sort_by_key(|export| export.at);
    own.servers = Some(AnsweredServers { answered, servers: servers.max(answered) });
    own
}

/// Returns one answer of each server.
fn read(answers: &[Vec<u8>]) -> HashMap<String, ReceiverReport> {
    let answers = answers.iter().filter_map(|answer| serde_json::from_slice(answer).ok());
    answers.map(|report: ReceiverReport| (report.process.clone(), report)).collect()
}

#[cfg(test)]
mod tests {
    use drivers::receiver::{AnsweredServers, Counts, Foreign, ReceiverSnapshot, Refusal};
    use tokio::time::Instant;

    use super::{FOREIGN_BYTES_MAX, ReceiverReport, have_answered, merged};

    fn snapshot(bytes: &[usize]) -> ReceiverSnapshot {
        let at = Instant::now();
        let export = |bytes: &usize| Foreign { at, bytes: vec![7; *bytes].into() };
        ReceiverSnapshot {
            counts: Counts { kept: 1, foreign: 2, invalid: 3, logs: 4, metrics: 5, refused: 6 },
            connections: 7,
            requests: 8,
            refusals: vec![Refusal { at, what: "too large".to_owned() }],
            foreign: bytes.iter().map(export).collect(),
            servers: None,
        }
    }

    #[test]
    fn what_servers_have_seen_is_one_picture() {
        let answer = |process: u8, bytes: &[usize]| {
            serde_json::to_vec(&ReceiverReport::new([process; 16], &snapshot(bytes))).expect("text")
        };
        // The second answer of one server is none, and of large exports only the newest fit.
        let answers = [
            answer(1, &[10]),
            answer(1, &[10]),
            answer(2, &[FOREIGN_BYTES_MAX, 20]),
            b"other".to_vec(),
        ];
        assert!(have_answered(&answers, 2) && !have_answered(&answers, 3));
        let all = merged(snapshot(&[5]), &answers, (4, true));
        assert_eq!((all.connections, all.requests, all.refusals.len()), (21, 24, 3));
        let counts = Counts { kept: 3, foreign: 6, invalid: 9, logs: 12, metrics: 15, refused: 18 };
        assert_eq!(all.counts, counts);
        let mut sizes: Vec<_> = all.foreign.iter().map(|export| export.bytes.len()).collect();
        sizes.sort_unstable();
        assert_eq!(sizes, [5, 10, 20]);
        assert_eq!(all.servers, Some(AnsweredServers { answered: 3, servers: 4 }));
    }
}
