//! Follows a run on a server to its end: its events as they arrive, then its outcome.
//!
//! The events come from a server-sent event stream; after a disconnect the client resumes with the next event. If a server
//! has no stream, because it is older or has no free slot for another reader, the client polls. Events are for people: the
//! finished run has the outcome. ADR 0021 explains why the parser is our own.

use std::time::Duration;

use http::{Method, StatusCode, header::CONTENT_TYPE};
use model::{Faulty, Outcome, RunEvent, RunId, What};
use serde::Deserialize;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::{
    client::{RemoteRun, Server},
    error::{ClientError, RUN_MAX},
    http::HttpResponse,
    tolerant,
};
use crate::run::Line;

/// How long a server may fail to respond about a run before the client gives up. A live stream sends a keep-alive every five
/// seconds.
pub(super) const SILENCE_MAX: Duration = Duration::from_secs(12);
/// The polling interval for a run.
const POLL: Duration = Duration::from_millis(100);
/// The upper bound for one line of an event stream, in bytes.
const LINE_BYTES_MAX: usize = 1 << 20;
/// The media type of an event stream.
const LIVE: &str = "text/event-stream";
/// The name of the last event of a stream.
const END: &str = "end";

#[derive(Debug, Deserialize)]
struct NumberedEvent {
    n: i64,
    event: RunEvent,
}

/// The result of reading an event stream.
enum StreamEnd {
    /// The stream ended: the run has ended, or the client can resume the stream.
    Events,
    /// This server offers no stream, or not now.
    Nothing,
}

/// The state of a run that is followed.
struct FollowedRun<'a> {
    run: RunId,
    line: &'a Line,
    /// The number of the last event that was shown.
    last: i64,
    heard: Instant,
    until: Instant,
}

impl Server {
    /// Follows a run to its end, and shows its events.
    pub(super) async fn follow(&self, run: RunId, line: &Line) -> Result<Outcome, ClientError> {
        let began = Instant::now();
        let mut followed = FollowedRun { run, line, last: 0, heard: began, until: began + RUN_MAX };
        let mut is_live = true;
        while Instant::now() < followed.until {
            if is_live {
                is_live = !matches!(self.live(&mut followed).await, Ok(StreamEnd::Nothing));
            } else if let Err(error) = self.listed(&mut followed).await {
                tracing::debug!(%error, "the events of a run could not be read");
            }
            match self.outcome(run).await {
                Ok(Some(outcome)) => return Ok(outcome),
                Ok(None) => followed.heard = Instant::now(),
                // The run continues on the server, and the server may recover.
                Err(error) if may_wait(&error, followed.heard) => {}
                Err(error) => return Err(error),
            }
            sleep(POLL).await;
        }
        Err(ClientError::TooLong { run })
    }

    async fn outcome(&self, run: RunId) -> Result<Option<Outcome>, ClientError> {
        let read = self.request_in_project(Method::GET, &format!("/api/v1/runs/{run}"));
        Ok(self.send::<RemoteRun>(read).await?.outcome)
    }

    /// Shows events as they arrive, until the run has ended or the stream is silent.
    async fn live(&self, followed: &mut FollowedRun<'_>) -> Result<StreamEnd, ClientError> {
        let path = format!("/api/v1/runs/{}/events", followed.run);
        let request = self.request_in_project(Method::GET, &path).header("accept", LIVE);
        let request = request.header("last-event-id", &followed.last.to_string());
        let Ok(answer) = timeout(SILENCE_MAX, self.http.send(request)).await else {
            return Ok(StreamEnd::Events);
        };
        let answer = answer.map_err(|reason| self.unreachable(reason))?;
        let kind = answer.headers.get(CONTENT_TYPE);
        let is_live = kind.is_some_and(|kind| kind.as_bytes().starts_with(LIVE.as_bytes()));
        match answer.status {
            StatusCode::OK if is_live => Ok(followed.read(answer).await),
            StatusCode::NO_CONTENT => Ok(StreamEnd::Events),
            status if status.is_server_error() => Ok(StreamEnd::Events),
            _ => Ok(StreamEnd::Nothing),
        }
    }

    /// Polls and shows the events since the last one.
    async fn listed(&self, followed: &mut FollowedRun<'_>) -> Result<(), ClientError> {
        let path = format!("/api/v1/runs/{}/events", followed.run);
        let request = self.request_in_project(Method::GET, &path);
        let request = request.query(&[("after", &followed.last.to_string())]);
        let events: Vec<serde_json::Value> = self.send(request).await?;
        for event in events {
            followed.tell(&event.to_string());
        }
        Ok(())
    }
}

impl FollowedRun<'_> {
    /// Reads an event stream, until it ends or is silent.
    async fn read(&mut self, mut answer: HttpResponse) -> StreamEnd {
        let mut sent = EventStreamParser::default();
        loop {
            let silent = (Instant::now() + SILENCE_MAX).min(self.until);
            let Ok(Ok(Some(chunk))) = timeout_at(silent, answer.chunk()).await else {
                return StreamEnd::Events;
            };
            self.heard = Instant::now();
            for byte in chunk {
                match sent.take(byte) {
                    ParseStep::Part => {}
                    ParseStep::Whole { kind, .. } if kind == END => return StreamEnd::Events,
                    ParseStep::Whole { data, .. } => self.tell(&data),
                    ParseStep::TooLong => return StreamEnd::Nothing,
                }
            }
        }
    }

    /// Shows an event, if this version knows its type.
    fn tell(&mut self, event: &str) {
        let Ok(NumberedEvent { n, event }) = tolerant::read(event.as_bytes()) else { return };
        if n <= self.last {
            return;
        }
        self.last = n;
        let words = match &event.what {
            What::Provisional { verdict } => {
                Some(format!("{} so far, until it is final", verdict.as_str()))
            }
            what => crate::run::words(what),
        };
        if let Some(words) = words {
            self.line.say(&words);
        }
    }
}

/// A parser for an event stream, byte by byte.
#[derive(Debug, Default)]
struct EventStreamParser {
    line: Vec<u8>,
    kind: String,
    data: String,
}

/// The result of parsing one byte.
#[derive(Debug, PartialEq, Eq)]
enum ParseStep {
    Part,
    Whole { kind: String, data: String },
    TooLong,
}

impl EventStreamParser {
    fn take(&mut self, byte: u8) -> ParseStep {
        if byte != b'\n' {
            self.line.push(byte);
            let bytes = self.line.len() + self.data.len();
            return if bytes > LINE_BYTES_MAX { ParseStep::TooLong } else { ParseStep::Part };
        }
        let line = String::from_utf8_lossy(&self.line).trim_end_matches('\r').to_owned();
        self.line.clear();
        if line.is_empty() {
            let Self { kind, data, .. } = std::mem::take(self);
            return if data.is_empty() { ParseStep::Part } else { ParseStep::Whole { kind, data } };
        }
        let (name, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "event" => self.kind = value.to_owned(),
            "data" => {
                if !self.data.is_empty() {
                    self.data.push('\n');
                }
                self.data.push_str(value);
            }
            // Comments, and fields that this version does not know. The number is in the data too.
            _ => {}
        }
        ParseStep::Part
    }
}

/// Whether a request may be retried: the server responded not long ago, and its runs continue without this client.
pub(super) fn may_wait(error: &ClientError, heard: Instant) -> bool {
    error.fault().is_transient() && heard.elapsed() < SILENCE_MAX
}

#[cfg(test)]
mod tests {
    use super::{EventStreamParser, LINE_BYTES_MAX, ParseStep};

    #[test]
    fn a_live_answer_is_read_whatever_comes_between() {
        let text = ":\n\n: the server stops\n\nid: 1\nevent: accepted\ndata: {\"n\":1}\n\nretry: 5\n\n\
                    event:end\r\nmood: good\r\ndata:a\r\ndata: b\r\n\r\nevent: cut\ndata: c\n";
        let mut sent = EventStreamParser::default();
        let taken =
            text.bytes().map(|byte| sent.take(byte)).filter(|taken| *taken != ParseStep::Part);
        let whole =
            |kind: &str, data: &str| ParseStep::Whole { kind: kind.into(), data: data.into() };
        let expected = [whole("accepted", "{\"n\":1}"), whole("end", "a\nb")];
        assert_eq!(taken.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_line_without_an_end_is_given_up() {
        let mut sent = EventStreamParser::default();
        let mut bytes = std::iter::repeat_n(b'x', LINE_BYTES_MAX + 1).map(|byte| sent.take(byte));
        assert!(bytes.by_ref().take(LINE_BYTES_MAX).all(|taken| taken == ParseStep::Part));
        assert_eq!(bytes.next(), Some(ParseStep::TooLong));
    }
}
