//! The events of a run: all of them at once, or live, as they happen.
//!
//! A live response is a `text/event-stream`. Each event has its number as id, so that a client that reconnects sends the last
//! number it has and gets exactly the rest. What a run has of its trace while spans arrive is an event without a number, which
//! is stored nowhere. The last event is `end`, once the run has its verdict. A stream without `end` was
//! cut: by a server shutdown, by its maximum age, by a reader that does not read, or by a database that is unavailable.

use std::{pin::pin, time::Duration};

use axum::{
    Extension, Json,
    extract::State,
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response, sse::Event as Sent},
};
use db::DbError;
use model::{Fault, Project, RunEvent, RunId, Verdict, What};
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep_until};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{openapi, runs::stored};
use crate::{
    access::Caller,
    http::{
        app::App,
        extract::{PathId, QueryParams},
        problem::Problem,
        stream::{LASTED, LIVE_MAX, LiveSender, STOPS, asks_live, live, not_live, too_many},
    },
    live::followers::Follower,
    telemetry::{
        call::Call, catalogue::attribute, log_context::within_run, traceparent::TraceParent,
    },
};

/// The maximum number of events in one response.
const EVENTS_MAX: u32 = 1000;
/// How often a client that follows what arrives gets it, while there is something, and how often it is looked for where there is
/// nothing.
const SNAPSHOT: Duration = Duration::from_millis(250);
const SNAPSHOT_ABSENT: Duration = Duration::from_secs(1);
/// The event with what a run has of its trace.
const GATHERING: &str = "gathering";
/// The largest event number that every JSON parser reads exactly.
const AFTER_MAX: i64 = (1 << 53) - 1;
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
    /// Whether a live answer also has what arrives.
    #[serde(default)]
    gathering: bool,
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
///
/// With `gathering=true` the stream also has an event `gathering` up to four times a second while spans of the run arrive: its
/// `data` is the settlement that the run would have if it ended now. It has no `id`, and is stored nowhere.
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
    QueryParams(After { project, after, gathering }): QueryParams<After>,
    Extension(context): Extension<TraceParent>,
    Extension(caller): Extension<Caller>,
    PathId(run): PathId<RunId>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let after = numbered("after", after)?;
    let is_live = asks_live(&headers);
    if gathering && !is_live {
        return Err(not_live("`gathering` is"));
    }
    let last = last_event(&headers)?.filter(|_| is_live);
    let place = match is_live {
        true => Some(app.followers.place(&project, caller.token).ok_or_else(too_many)?),
        false => None,
    };
    // Subscribe before the first read, so that no event is missed.
    let following = place.map(|place| (place, app.followers.follow(run)));
    let verdict = stored(&app, context, (&project, run)).await?.verdict;
    let after = last.unwrap_or(after);
    let mut reader = Reader { app, context, project, run, after, verdict, gathering };
    let first = reader.read().await?;
    let Some((place, follower)) = following else { return Ok(Json(first).into_response()) };
    if last.is_some() && first.is_empty() && verdict.is_some() {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let work = reader.app.work.clone();
    Ok(live(place, &work, |sender| {
        within_run(run, context, follow(reader, first, follower, sender))
    }))
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
    /// Whether its reader follows what arrives.
    gathering: bool,
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

    /// Returns what the run has of its trace, if a worker collects it.
    async fn snapshot(&self) -> Option<Sent> {
        let Self { app, project, run, .. } = self;
        let settlement = app.snapshots.settlement(&app.bus, project, *run).await?;
        let data = serde_json::to_string(&settlement).ok()?;
        Some(Sent::default().event(GATHERING).data(data))
    }
}

/// Why a live response continues or ends.
enum Wake {
    /// There may be new events.
    News,
    /// It is time for the next snapshot.
    Snapshot,
    /// It ends, with this comment.
    End(&'static str),
}

/// Sends past and new events, until the run has ended or the maximum duration is over.
async fn follow(
    mut reader: Reader,
    first: Vec<NumberedEvent>,
    mut follower: Follower,
    sender: LiveSender,
) {
    let (began, stopped) = (Instant::now(), follower.stopped());
    let (mut stopped, mut snapshot_at) = (pin!(stopped), began);
    let mut events = first;
    loop {
        let is_last = events.len() < EVENTS_MAX as usize;
        for event in events {
            if !sender.send(sent(&event)).await {
                return;
            }
        }
        if let Some(verdict) = reader.verdict.filter(|_| is_last) {
            let end = Sent::default().event("end");
            let end = end.data(format!("{{\"verdict\":\"{}\"}}", verdict.as_str()));
            sender.send(end).await;
            return;
        }
        let wake = match is_last {
            false => Wake::News,
            true => tokio::select! {
                () = follower.news(reader.after) => Wake::News,
                () = sleep_until(snapshot_at), if reader.gathering => Wake::Snapshot,
                () = &mut stopped => Wake::End(STOPS),
                () = sleep_until(began + LIVE_MAX) => Wake::End(LASTED),
            },
        };
        events = match wake {
            Wake::News => match reader.read().await {
                Ok(events) => events,
                Err(error) => {
                    tracing::debug!({ {attribute::RUN_ID} = %reader.run, %error }, "a live answer ends early");
                    return;
                }
            },
            Wake::Snapshot => {
                let snapshot = reader.snapshot().await;
                let pause = if snapshot.is_some() { SNAPSHOT } else { SNAPSHOT_ABSENT };
                snapshot_at = Instant::now() + pause;
                if let Some(snapshot) = snapshot
                    && !sender.send(snapshot).await
                {
                    return;
                }
                Vec::new()
            }
            Wake::End(comment) => {
                sender.send(Sent::default().comment(comment)).await;
                return;
            }
        };
    }
}

fn sent(event: &NumberedEvent) -> Sent {
    // An event from the database can always be serialized.
    let data = serde_json::to_string(event).unwrap_or_default();
    Sent::default().id(event.n.to_string()).event(event.event.what.as_str()).data(data)
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

#[cfg(test)]
mod tests {
    use axum::http::{HeaderMap, HeaderName};

    use super::last_event;

    fn headers(name: &'static str, value: &str) -> HeaderMap {
        [(HeaderName::from_static(name), value.parse().expect("a value"))].into_iter().collect()
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
