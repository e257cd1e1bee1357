//! Readers of the live events of runs: each leaves its stream after a few events, and continues by `Last-Event-ID` on another replica.

use std::{sync::Arc, time::Duration};

use anyhow::Result;
use tokio::time::{Instant, sleep, timeout};

use super::{
    history::{HistoryFile, HistoryLine, StreamEnd, now},
    schedule::SeededRandom,
};

/// How long a stream may be silent: the server sends a comment every five seconds.
const SILENT_MAX: Duration = Duration::from_secs(8);
/// The wait before the next connection.
const RECONNECT_AFTER: Duration = Duration::from_millis(200);
/// The events after which a reader leaves.
const EVENTS: std::ops::RangeInclusive<u64> = 1..=4;

/// Readers of runs.
#[derive(Clone, Debug)]
pub(super) struct StreamReaders {
    url: String,
    client: reqwest::Client,
    history: Arc<HistoryFile>,
    deadline: Instant,
}

/// One reader while it reads.
#[derive(Debug)]
struct StreamCursor {
    reader: u64,
    run: String,
    connection: u32,
    last: u64,
    random: SeededRandom,
}

impl StreamReaders {
    /// Creates readers that read through the balancer at this port, until this time at most.
    pub(super) fn new(http: u16, history: Arc<HistoryFile>, deadline: Instant) -> Result<Self> {
        // Each connection goes to the replica that the balancer chooses.
        let client = reqwest::Client::builder().no_proxy().pool_max_idle_per_host(0).build()?;
        Ok(Self { url: format!("http://127.0.0.1:{http}/api/v1/runs"), client, history, deadline })
    }

    /// Reads the events of a run to its end.
    pub(super) async fn read(self, reader: u64, run: String) {
        let random = SeededRandom::new(reader);
        let mut cursor = StreamCursor { reader, run, connection: 0, last: 0, random };
        loop {
            let end = self.connect(&mut cursor).await;
            if let Some(end) = end {
                self.end(&cursor, end);
                if end == StreamEnd::Complete {
                    return;
                }
            }
            if Instant::now() > self.deadline {
                return self.end(&cursor, StreamEnd::Abandoned);
            }
            sleep(RECONNECT_AFTER).await;
            cursor.connection += 1;
        }
    }

    /// Reads one stream, and returns why it ended; none if there was none.
    async fn connect(&self, cursor: &mut StreamCursor) -> Option<StreamEnd> {
        let url = format!("{}/{}/events", self.url, cursor.run);
        let mut request = self.client.get(url).header("accept", "text/event-stream");
        if cursor.last > 0 {
            request = request.header("last-event-id", cursor.last);
        }
        let mut stream = timeout(SILENT_MAX, request.send()).await.ok()?.ok()?;
        match stream.status().as_u16() {
            200 => {}
            204 => return Some(StreamEnd::Complete),
            _ => return None,
        }
        let mut rest = cursor.random.of(&EVENTS);
        let (mut text, mut id) = (Vec::new(), None);
        loop {
            let Ok(Ok(Some(chunk))) = timeout(SILENT_MAX, stream.chunk()).await else {
                return Some(StreamEnd::Cut);
            };
            text.extend_from_slice(&chunk);
            while let Some(end) = text.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = text.drain(..=end).collect();
                let line = String::from_utf8_lossy(&line);
                match line.trim_end().split_once(": ") {
                    Some(("id", n)) => id = n.parse().ok(),
                    Some(("event", "end")) => return Some(StreamEnd::Complete),
                    // `data` is behind `id` and `event`, which are not looked at again.
                    Some(("event", event)) => {
                        let Some(n) = id.take() else { return Some(StreamEnd::Cut) };
                        self.event(cursor, n, event);
                        rest -= 1;
                        if rest == 0 {
                            return Some(StreamEnd::Left);
                        }
                    }
                    _ => {}
                }
            }
        }
    }

    fn event(&self, cursor: &mut StreamCursor, n: u64, event: &str) {
        let StreamCursor { reader, connection, .. } = *cursor;
        let (at, run, event) = (now(), cursor.run.clone(), event.to_owned());
        self.history.write(HistoryLine::Event { at, reader, connection, run, n, event });
        cursor.last = n;
    }

    fn end(&self, cursor: &StreamCursor, end: StreamEnd) {
        let StreamCursor { reader, connection, .. } = *cursor;
        let (at, run) = (now(), cursor.run.clone());
        self.history.write(HistoryLine::StreamEnd { at, reader, connection, run, end });
    }
}
