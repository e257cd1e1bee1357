//! The events of a run: all of them at once, or live, as they happen.
//!
//! A live response is a `text/event-stream`. Each event has its number as id, so that a client that reconnects sends the last
//! number it has and gets exactly the rest. The last event is `end`, once the run has its verdict. A stream without `end` was
//! cut: by a server shutdown, by its maximum age, by a reader that does not read, or by a database that is unavailable.

use std::{
    convert::Infallible,
    pin::{Pin, pin},
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    Extension, Json,
    extract::State,
    http::{HeaderMap, StatusCode, header},
    response::{
        IntoResponse, Response,
        sse::{Event as Sent, KeepAlive, Sse},
    },
};
use db::DbError;
use futures_core::Stream;
use model::{Fault, Project, RunEvent, RunId, Verdict, What};
use serde::{Deserialize, Serialize};
use tokio::{
    sync::mpsc,
    task::JoinSet,
    time::{Instant, sleep_until, timeout},
};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{openapi, runs::stored};
use crate::{
    access::Caller,
    http::{
        app::App,
        extract::{PathId, QueryParams},
        problem::Problem,
    },
    live::followers::{Follower, FollowerPlace},
    telemetry::{call::Call, traceparent::TraceParent},
};

/// The maximum number of events in one response.
const EVENTS_MAX: u32 = 1000;
/// The maximum number of events in the buffer to a reader.
const UNREAD_MAX: usize = 16;
/// How long a full buffer may wait for its reader.
const UNREAD_TIME_MAX: Duration = Duration::from_secs(10);
/// The maximum duration of a live response. A client that wants more reconnects and authenticates again.
const LIVE_MAX: Duration = Duration::from_secs(5 * 60);
/// The keep-alive interval of a live response without events.
const KEEP_ALIVE: Duration = Duration::from_secs(5);
/// The largest event number that every JSON parser reads exactly.
const AFTER_MAX: i64 = (1 << 53) - 1;
/// The media type of a live response.
const LIVE: &str = "text/event-stream";
/// The header by which a client that reconnects sends the id of its last event.
const LAST_EVENT_ID: &str = "last-event-id";

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(events))
}

/// Something that happened in a run, with its number.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = NumberedEvent)]
struct NumberedEvent {
    /// From 1, without gaps.
    n: i64,
    #[schema(schema_with = openapi::event)]
    event: RunEvent,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct After {
    /// The project of the run.
    #[serde(default)]
    #[param(schema_with = openapi::word, required = false)]
    project: Project,
    /// The last event that the caller knows.
    #[serde(default)]
    #[param(minimum = 0, maximum = 9007199254740991_i64)]
    after: i64,
}

/// The header by which a live response is resumed.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "it only describes the header, which is read by its name")]
struct LastEventId {
    /// The last event that the caller of a live answer knows; it overrules `after`, as browsers send it with the URL that
    /// they began with. Without `accept: text/event-stream` it means nothing.
    #[param(
        rename = "last-event-id",
        minimum = 0,
        maximum = 9007199254740991_i64,
        required = false
    )]
    n: i64,
}

/// The events of a run, oldest first, at most 1000 at a time; live if `accept` is `text/event-stream`.
///
/// Each event of the stream has its number as `id`, what happened as `event` (`accepted`, `taken`, `attempted`, `answered`
/// and so on), and as `data` what the JSON form has as an item. The event `end`, whose `data` has the `verdict`, comes last:
/// the run has ended, and the verdict is final. A `provisional` one that spans may still change is an event before it. If a stream ends without it, request it again with `last-event-id`. An event may come after
/// the verdict, where late spans would have changed it: a later request for the events returns it.
#[utoipa::path(
    get,
    path = "/api/v1/runs/{run}/events",
    tag = "runs",
    operation_id = "readEvents",
    params(After, LastEventId, ("run" = inline(openapi::RunId), Path, description = "The run.")),
    responses(
        (
            status = 200,
            description = "The events.",
            content((Vec<NumberedEvent> = "application/json"), (String = "text/event-stream")),
        ),
        (
            status = 204,
            description = "There is nothing after `last-event-id`, and nothing will come: the run has ended.",
        ),
    ),
)]
async fn events(
    State(app): State<App>,
    QueryParams(After { project, after }): QueryParams<After>,
    Extension(context): Extension<TraceParent>,
    Extension(caller): Extension<Caller>,
    PathId(run): PathId<RunId>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let after = numbered("after", after)?;
    let is_live = asks_live(&headers);
    let last = last_event(&headers)?.filter(|_| is_live);
    let place = match is_live {
        true => Some(app.followers.place(&project, caller.token).ok_or_else(too_many)?),
        false => None,
    };
    // Subscribe before the first read, so that no event is missed.
    let following = place.map(|place| (place, app.followers.follow(run)));
    let verdict = stored(&app, context, (&project, run)).await?.verdict;
    let mut reader = Reader { app, context, project, run, after: last.unwrap_or(after), verdict };
    let first = reader.read().await?;
    let Some((place, follower)) = following else { return Ok(Json(first).into_response()) };
    if last.is_some() && first.is_empty() && verdict.is_some() {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let work = reader.app.work.clone();
    let (sender, unread) = mpsc::channel(UNREAD_MAX);
    let mut task = JoinSet::new();
    task.spawn_on(live(reader, first, follower, sender), &work);
    let live = Live { unread, _task: task, _place: place };
    Ok(Sse::new(live).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response())
}

/// Reads the events of a run, page by page.
struct Reader {
    app: App,
    context: TraceParent,
    project: Project,
    run: RunId,
    /// The number of the last event that was read.
    after: i64,
    /// The verdict of the run, as far as it is known.
    verdict: Option<Verdict>,
}

impl Reader {
    /// Reads the next events. The query is part of the request's trace: it only runs when there is news.
    async fn read(&mut self) -> Result<Vec<NumberedEvent>, DbError> {
        let Self { app, context, project, run, after, .. } = self;
        let events = app.db.events(project, *run, *after, EVENTS_MAX);
        let events = app.watch.db(*context, Call("SELECT", "events"), events).await?;
        for (n, event) in &events {
            self.after = *n;
            if let What::Judged { verdict } = event.what {
                self.verdict = Some(verdict);
            }
        }
        Ok(events.into_iter().map(|(n, event)| NumberedEvent { n, event }).collect())
    }
}

/// Sends past and new events, until the run has ended or the maximum duration is over.
async fn live(
    mut reader: Reader,
    first: Vec<NumberedEvent>,
    mut follower: Follower,
    sender: mpsc::Sender<Sent>,
) {
    let (deadline, stopped) = (Instant::now() + LIVE_MAX, follower.stopped());
    let mut stopped = pin!(stopped);
    let mut events = first;
    loop {
        let is_last = events.len() < EVENTS_MAX as usize;
        for event in events {
            if !send(&sender, sent(&event)).await {
                return;
            }
        }
        match reader.verdict {
            Some(verdict) if is_last => {
                let end = Sent::default().event("end");
                let end = end.data(format!("{{\"verdict\":\"{}\"}}", verdict.as_str()));
                send(&sender, end).await;
                return;
            }
            None if is_last => {
                tokio::select! {
                    () = follower.news(reader.after) => {}
                    () = &mut stopped => {
                        send(&sender, Sent::default().comment("the server stops: come again")).await;
                        return;
                    }
                    () = sleep_until(deadline) => {
                        send(&sender, Sent::default().comment("this lasted long: come again")).await;
                        return;
                    }
                }
            }
            _ => {}
        }
        events = match reader.read().await {
            Ok(events) => events,
            Err(error) => {
                tracing::debug!(run = %reader.run, %error, "a live answer ends early");
                return;
            }
        };
    }
}

/// Sends an event to the reader; returns false if the reader does not read any more.
async fn send(sender: &mpsc::Sender<Sent>, event: Sent) -> bool {
    matches!(timeout(UNREAD_TIME_MAX, sender.send(event)).await, Ok(Ok(())))
}

fn sent(event: &NumberedEvent) -> Sent {
    // An event from the database can always be serialized.
    let data = serde_json::to_string(event).unwrap_or_default();
    Sent::default().id(event.n.to_string()).event(event.event.what.as_str()).data(data)
}

/// The stream of a live response. Dropping it aborts the task that fills it, and releases its permit.
struct Live {
    unread: mpsc::Receiver<Sent>,
    _task: JoinSet<()>,
    _place: FollowerPlace,
}

impl Stream for Live {
    type Item = Result<Sent, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.unread.poll_recv(context).map(|sent| sent.map(Ok))
    }
}

/// Whether a request accepts a live response.
fn asks_live(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).into_iter();
    let mut ranges =
        accepted.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','));
    ranges.any(|range| {
        let mut parts = range.split(';').map(str::trim);
        let is_named = parts.next().is_some_and(|kind| kind.eq_ignore_ascii_case(LIVE));
        is_named && !parts.any(|part| matches!(part, "q=0" | "q=0.0" | "q=0.00" | "q=0.000"))
    })
}

/// Returns the id of the last event that a client that reconnects has.
fn last_event(headers: &HeaderMap) -> Result<Option<i64>, Problem> {
    let Some(value) = headers.get(LAST_EVENT_ID) else { return Ok(None) };
    let n = value.to_str().ok().and_then(|value| value.trim().parse().ok());
    numbered(LAST_EVENT_ID, n.unwrap_or(-1)).map(Some)
}

fn numbered(name: &str, n: i64) -> Result<i64, Problem> {
    if (0..=AFTER_MAX).contains(&n) {
        return Ok(n);
    }
    let detail = format!("`{name}` is no number of an event: expected 0 to 2^53 - 1");
    Err(Problem::new(Fault::Invalid, detail))
}

fn too_many() -> Problem {
    let detail = format!(
        "as many live answers are open as there may be for this token, this project or all: ask without `accept: {LIVE}`, or later"
    );
    Problem::new(Fault::Overloaded, detail)
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderMap, HeaderName};

    use super::{asks_live, last_event};

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

    #[test]
    fn the_last_event_is_a_number() {
        assert_eq!(last_event(&HeaderMap::new()).ok(), Some(None));
        assert_eq!(last_event(&headers("last-event-id", "7")).ok(), Some(Some(7)));
        for wrong in ["", "-1", "x", "1.5", "9007199254740992"] {
            assert!(last_event(&headers("last-event-id", wrong)).is_err(), "{wrong}");
        }
    }
}
