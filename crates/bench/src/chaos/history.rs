//! The history of a chaos proof: what clients, the system under test and the faults did, and what the database has at the end.
//!
//! A line of JSON each, in the order in which they happened. Times are milliseconds since the epoch, by the clock of the machine
//! that everything runs on. Deliberately absent: anything that only the code of the server could know.

use std::{
    fs::File,
    io::{BufWriter, Write},
    path::Path,
    sync::{Mutex, PoisonError},
};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::schedule::{Component, FaultKind};

/// One line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    tag = "kind",
    rename_all = "camelCase",
    rename_all_fields = "camelCase",
    deny_unknown_fields
)]
pub enum HistoryLine {
    /// The beginning: the seed of the schedule, and the claims of each test.
    Begin {
        /// The seed.
        seed: u64,
        /// The tests.
        tests: Vec<ChaosTest>,
    },
    /// A client requests a run, for the first time or again.
    Request {
        /// When.
        at: u64,
        /// The idempotency key.
        key: String,
        /// The test.
        test: String,
    },
    /// The response to a request; without a status, there was none.
    Reply {
        /// When.
        at: u64,
        /// The idempotency key.
        key: String,
        /// The status.
        status: Option<u16>,
        /// The run.
        run: Option<String>,
    },
    /// The system received a trigger.
    Trigger {
        /// When.
        at: u64,
        /// The idempotency key of the run, which its request carries.
        key: String,
        /// The trace.
        trace: String,
    },
    /// A service of the system ended spans of a trace.
    Emission {
        /// When.
        at: u64,
        /// The trace.
        trace: String,
        /// The service.
        service: String,
        /// The names of the spans.
        spans: Vec<String>,
        /// Whether a call announces them: then a run knows that they are missing. Otherwise they count from when their export is
        /// acknowledged.
        is_announced: bool,
    },
    /// The system responded to a trigger.
    Response {
        /// When.
        at: u64,
        /// The trace.
        trace: String,
    },
    /// A service has finished the export of all its spans of a trace: acknowledged, or given up.
    Export {
        /// When.
        at: u64,
        /// The trace.
        trace: String,
        /// The service.
        service: String,
        /// How often it was sent.
        tries: u32,
        /// Whether it was acknowledged.
        is_acknowledged: bool,
    },
    /// A fault, written when it is over.
    Fault {
        /// Its kind.
        fault: FaultKind,
        /// The part that failed. Of a leader, the node.
        component: Component,
        /// When it began.
        from: u64,
        /// When it was repaired.
        to: u64,
    },
    /// A reader received an event.
    Event {
        /// When.
        at: u64,
        /// The reader.
        reader: u64,
        /// The number of its connection.
        connection: u32,
        /// The run.
        run: String,
        /// The number of the event.
        n: u64,
        /// Its kind.
        event: String,
    },
    /// A stream ended.
    StreamEnd {
        /// When.
        at: u64,
        /// The reader.
        reader: u64,
        /// The number of its connection.
        connection: u32,
        /// The run.
        run: String,
        /// Why.
        end: StreamEnd,
    },
    /// What the database has of a run at the end.
    Record(RecordedRun),
}

/// A test, as far as the checker needs it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ChaosTest {
    /// Its id.
    pub id: String,
    /// Its claims, in the order of the document.
    pub claims: Vec<CountClaim>,
}

/// A claim about the number of spans with a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CountClaim {
    /// The name of the spans.
    pub span: String,
    /// The smallest number that satisfies the claim.
    pub least: u64,
    /// The largest one; none: there is none.
    pub most: Option<u64>,
}

/// Why a stream of events ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum StreamEnd {
    /// The server sent `end`, or 204 to a reader that had the last event.
    Complete,
    /// The reader closed it, to continue on another server.
    Left,
    /// It broke off.
    Cut,
    /// The reader did not get the end of the run before its own deadline.
    Abandoned,
}

/// What the database has of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RecordedRun {
    /// Its id.
    pub run: String,
    /// The idempotency key that it was started with.
    pub key: Option<String>,
    /// Its test.
    pub test: String,
    /// When it was accepted.
    pub accepted_at: u64,
    /// When it ended.
    pub ended_at: Option<u64>,
    /// Its verdict.
    pub verdict: Option<String>,
    /// The verdicts of the claims, in the order of the document.
    pub claims: Vec<String>,
    /// Why the trace is not complete, one word each.
    pub unsettled: Vec<String>,
    /// The kind of the missing response, if there is none.
    pub no_answer: Option<String>,
    /// Its reasons in words.
    pub reasons: Vec<String>,
    /// How many workers had it.
    pub owners: u64,
    /// Events with a final verdict.
    pub final_verdicts: u64,
    /// The number of that event.
    pub judged_at: u64,
    /// Whether its trigger was recorded.
    pub is_attempted: bool,
}

/// Writes the lines to a file, and keeps them.
#[derive(Debug)]
pub struct HistoryFile {
    state: Mutex<HistoryState>,
}

#[derive(Debug)]
struct HistoryState {
    file: BufWriter<File>,
    lines: Vec<HistoryLine>,
    error: Option<std::io::Error>,
}

impl HistoryFile {
    /// Creates the file.
    pub fn create(path: &Path) -> Result<Self> {
        let file = File::create(path).with_context(|| format!("cannot write `{}`", path.display()));
        let state = HistoryState { file: BufWriter::new(file?), lines: Vec::new(), error: None };
        Ok(Self { state: Mutex::new(state) })
    }

    /// Appends a line. An error is reported at the end.
    pub fn write(&self, line: HistoryLine) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let text = serde_json::to_string(&line).map_err(std::io::Error::from);
        let written = text.and_then(|text| writeln!(state.file, "{text}"));
        if let Err(error) = written {
            state.error.get_or_insert(error);
        }
        state.lines.push(line);
    }

    /// Flushes the file, and returns all lines.
    pub fn finish(&self) -> Result<Vec<HistoryLine>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(error) = state.error.take() {
            return Err(error).context("cannot write the history");
        }
        state.file.flush()?;
        Ok(std::mem::take(&mut state.lines))
    }
}

/// Reads the lines of a file.
pub fn read(text: &str) -> Result<Vec<HistoryLine>> {
    let line = |(at, line)| {
        serde_json::from_str(line).with_context(|| format!("line {} of the history", at + 1))
    };
    text.lines().enumerate().map(line).collect()
}

/// Returns the current time in milliseconds since the epoch.
pub(super) fn now() -> u64 {
    crate::parts::unix_nanos() / 1_000_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("history.jsonl");
        let file = HistoryFile::create(&path).unwrap();
        let lines = [
            HistoryLine::Begin { seed: 7, tests: Vec::new() },
            HistoryLine::Fault {
                fault: FaultKind::Suspend,
                component: Component::Worker(2),
                from: 1,
                to: 2,
            },
            HistoryLine::Record(RecordedRun { run: "r".to_owned(), ..RecordedRun::default() }),
        ];
        for line in lines.clone() {
            file.write(line);
        }
        assert_eq!(file.finish().unwrap(), lines);
        assert_eq!(read(&std::fs::read_to_string(path).unwrap()).unwrap(), lines);
        let error = read("{\"kind\": \"other\"}").unwrap_err();
        assert!(error.to_string().contains("line 1"), "{error}");
    }
}
