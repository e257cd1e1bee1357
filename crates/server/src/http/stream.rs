//! Live responses: Server-Sent Events that a task sends, until it ends or its reader goes.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    http::{HeaderMap, StatusCode},
    response::{
        IntoResponse, Response,
        sse::{Event, KeepAlive, Sse},
    },
};
use futures_core::Stream;
use model::Fault;
use tokio::{runtime::Handle, sync::mpsc, task::JoinSet, time::timeout};

use super::{accept, problem::Problem};
use crate::live::followers::FollowerPlace;

/// The maximum number of events in the buffer to a reader.
const UNREAD_MAX: usize = 16;
/// How long a full buffer may wait for its reader.
const UNREAD_TIME_MAX: Duration = Duration::from_secs(10);
/// The maximum duration of a live response. A client that wants more reconnects and authenticates again.
pub(crate) const LIVE_MAX: Duration = Duration::from_secs(5 * 60);
/// The keep-alive interval of a live response without events.
const KEEP_ALIVE: Duration = Duration::from_secs(5);
/// The media type of a live response.
pub(crate) const LIVE: &str = "text/event-stream";
/// The comment with which a server that stops ends a response.
pub(crate) const STOPS: &str = "the server stops: come again";
/// The comment with which a response ends after its maximum duration.
pub(crate) const LASTED: &str = "this lasted long: come again";

/// Where a task sends its events.
#[derive(Clone, Debug)]
pub(crate) struct LiveSender(mpsc::Sender<Event>);

/// The stream of a live response. Dropping it aborts the task that fills it, and releases its permit.
struct LiveStream {
    unread: mpsc::Receiver<Event>,
    _task: JoinSet<()>,
    _place: FollowerPlace,
}

/// Returns a live response with what a task sends.
pub(crate) fn live<T>(
    place: FollowerPlace,
    work: &Handle,
    task: impl FnOnce(LiveSender) -> T,
) -> Response
where
    T: Future<Output = ()> + Send + 'static,
{
    let (sender, unread) = mpsc::channel(UNREAD_MAX);
    let mut tasks = JoinSet::new();
    tasks.spawn_on(task(LiveSender(sender)), work);
    let stream = LiveStream { unread, _task: tasks, _place: place };
    Sse::new(stream).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response()
}

impl LiveSender {
    /// Sends an event to the reader; returns false if the reader does not read any more.
    pub(crate) async fn send(&self, event: Event) -> bool {
        matches!(timeout(UNREAD_TIME_MAX, self.0.send(event)).await, Ok(Ok(())))
    }
}

impl Stream for LiveStream {
    type Item = Result<Event, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.unread.poll_recv(context).map(|sent| sent.map(Ok))
    }
}

/// Whether a request accepts a live response.
pub(crate) fn asks_live(headers: &HeaderMap) -> bool {
    accept::names(headers, LIVE)
}

/// Refuses a request for what only a live response has.
pub(crate) fn not_live(what: &str) -> Problem {
    let detail = format!("{what} part of a live response only: send `accept: {LIVE}`");
    Problem::new(Fault::Invalid, detail).with_status(StatusCode::NOT_ACCEPTABLE)
}

/// The problem of a request for one more live response than there may be.
pub(crate) fn too_many() -> Problem {
    let detail = format!(
        "as many live answers are open as there may be for this token, this project or all: ask without `accept: {LIVE}`, or later"
    );
    Problem::new(Fault::Overloaded, detail)
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderMap, HeaderName};

    use super::asks_live;

    fn headers(name: &'static str, value: &str) -> HeaderMap {
        [(HeaderName::from_static(name), value.parse().expect("a value"))].into_iter().collect()
    }

    #[test]
    fn only_who_names_a_stream_gets_one() {
        for (accept, is_live) in [
            ("text/event-stream", true),
            ("Text/Event-Stream; q=0.5", true),
            ("application/json, text/event-stream", true),
            ("text/event-stream;q=0", false),
            ("application/json", false),
            ("text/*", false),
            ("*/*", false),
        ] {
            assert_eq!(asks_live(&headers("accept", accept)), is_live, "{accept}");
        }
        assert!(!asks_live(&HeaderMap::new()));
    }
}
