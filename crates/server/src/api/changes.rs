//! What changes in a project, live, for lists that a person has open.

use std::{pin::pin, time::Duration};

use axum::{
    Extension,
    extract::State,
    http::HeaderMap,
    response::{Response, sse::Event},
};
use tokio::time::{Instant, sleep, sleep_until};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::runs::ProjectQuery;
use crate::{
    access::Caller,
    http::{
        app::App,
        extract::QueryParams,
        problem::Problem,
        stream::{LASTED, LIVE_MAX, LiveSender, STOPS, asks_live, live, not_live, too_many},
    },
    live::projects::ProjectFollower,
};

/// The event of a change: a run was accepted, or has ended.
const RUNS: &str = "runs";
/// The minimum time between two events: many changes at once are one.
const PAUSE: Duration = Duration::from_secs(1);

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(changes))
}

/// What changes in a project, as Server-Sent Events.
///
/// The event `runs` means that a run of the project was accepted or has ended: read the list again. It has no id, and an empty object as `data`, comes
/// at most once a second, and may be missed: read the list now and then without it. The request must accept
/// `text/event-stream`.
#[utoipa::path(
    get,
    path = "/api/v1/events",
    tag = "runs",
    operation_id = "followProject",
    params(ProjectQuery),
    responses((
        status = 200,
        description = "The events, until the client goes, or after some minutes.",
        content((String = "text/event-stream")),
    )),
)]
async fn changes(
    State(app): State<App>,
    QueryParams(ProjectQuery { project }): QueryParams<ProjectQuery>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    if !asks_live(&headers) {
        return Err(not_live("changes are"));
    }
    let place = app.followers.place(&project, caller.token).ok_or_else(too_many)?;
    let (follower, stopped) = (app.followers.projects.follow(project), app.followers.stopped());
    Ok(live(place, &app.work, |sender| follow(follower, sender, stopped)))
}

/// Sends changes until the maximum duration is over.
async fn follow(
    mut follower: ProjectFollower,
    sender: LiveSender,
    stopped: impl Future<Output = ()>,
) {
    let (until, mut stopped) = (Instant::now() + LIVE_MAX, pin!(stopped));
    loop {
        let change = async {
            follower.changed().await;
            Event::default().event(RUNS).data("{}")
        };
        let last = tokio::select! {
            change = change => {
                if !sender.send(change).await {
                    return;
                }
                sleep(PAUSE).await;
                continue;
            }
            () = &mut stopped => STOPS,
            () = sleep_until(until) => LASTED,
        };
        sender.send(Event::default().comment(last)).await;
        return;
    }
}
