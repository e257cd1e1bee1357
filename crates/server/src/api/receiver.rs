//! What a person needs who connects a system: where its spans go, and whether some have arrived.

use std::time::Duration;

use axum::Json;
use model::{Project, Timestamp};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::openapi;
use crate::{
    http::{
        extract::{QueryParams, RequestContext},
        problem::Problem,
    },
    ingest::overview::{RECENT, SeenService},
};

pub(super) fn routes() -> OpenApiRouter<crate::http::app::App> {
    OpenApiRouter::new().routes(routes!(read))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ReceiverQuery {
    /// The project whose runs the spans can reach.
    #[serde(default)]
    #[param(schema_with = openapi::word, required = false)]
    project: Project,
}

/// Where senders of spans reach this server, and what they have sent lately.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Receiver)]
pub(super) struct ReceiverFacts {
    /// Null if this process receives no spans, as it has not the role `ingest`.
    endpoint: Option<Endpoint>,
    /// Whether senders have to present a token.
    is_token_required: bool,
    /// The seconds for which a service is remembered.
    recent_seconds: u64,
    /// The services that sent spans which belong to no run, the one that was seen last first; at most 64. The numbers are those of
    /// recent exports that are still here, and no totals.
    services: Vec<SeenServiceFacts>,
    /// Whether there are more services.
    has_more: bool,
    /// The newest exports that were refused, the newest first; at most 5.
    refusals: Vec<RefusalFacts>,
    /// Null if this server alone was queried.
    servers: Option<AnsweredServersFacts>,
}

/// Where senders of spans reach this process. Both ports accept both protocols.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ReceiverEndpoint)]
pub(super) struct Endpoint {
    /// The address; null if the server listens on all addresses of its machine.
    host: Option<String>,
    /// For OTLP by gRPC.
    grpc_port: u16,
    /// For OTLP by HTTP.
    http_port: u16,
    /// Whether senders have to use TLS.
    is_tls: bool,
}

/// A service that sent spans.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = SeenService)]
pub(super) struct SeenServiceFacts {
    /// Its `service.name`; null if it has none.
    name: Option<String>,
    /// The number of its spans.
    spans: u64,
    /// When the last of them arrived.
    #[schema(schema_with = openapi::moment)]
    last_at: Timestamp,
}

/// An export that was refused.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ReceiverRefusal)]
pub(super) struct RefusalFacts {
    /// When.
    #[schema(schema_with = openapi::moment)]
    at: Timestamp,
    /// Why, as its sender was answered.
    reason: String,
}

/// The servers that were queried.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = AnsweredServers)]
pub(super) struct AnsweredServersFacts {
    /// Those that answered in time.
    answered: usize,
    /// All that receive spans.
    servers: usize,
}

/// Where senders of spans reach this server, and which services have sent some lately, to any server on the bus.
#[utoipa::path(
    get,
    path = "/api/v1/receiver",
    tag = "receiver",
    operation_id = "readReceiver",
    params(ReceiverQuery),
    responses((status = 200, description = "The receiver.", body = ReceiverFacts)),
)]
async fn read(
    heard: RequestContext,
    QueryParams(ReceiverQuery { project }): QueryParams<ReceiverQuery>,
) -> Result<Json<ReceiverFacts>, Problem> {
    let RequestContext { app, .. } = &heard;
    let seen = app.receivers.seen(&app.db, &project, app.pool.share(project.clone())).await;
    let (wall, now) = (app.world.now(), Instant::now());
    let moment = |at: Instant| before(wall, now.saturating_duration_since(at));
    let service = |it: &SeenService| SeenServiceFacts {
        name: it.name.clone(),
        spans: it.spans,
        last_at: moment(it.last),
    };
    let refusal = |(at, reason): &(Instant, String)| RefusalFacts {
        at: moment(*at),
        reason: crate::access::token::hide(reason.clone()),
    };
    let servers =
        seen.servers.map(|it| AnsweredServersFacts { answered: it.answered, servers: it.servers });
    Ok(Json(ReceiverFacts {
        endpoint: app.receivers.endpoint().map(|it| Endpoint {
            host: it.host.map(|ip| ip.to_string()),
            grpc_port: it.grpc_port,
            http_port: it.http_port,
            is_tls: it.is_tls,
        }),
        is_token_required: app.receivers.is_token_required(),
        recent_seconds: RECENT.as_secs(),
        services: seen.services.iter().map(service).collect(),
        has_more: seen.has_more,
        refusals: seen.refusals.iter().map(refusal).collect(),
        servers,
    }))
}

/// Returns the time that was so long ago.
fn before(now: Timestamp, age: Duration) -> Timestamp {
    let age = u64::try_from(age.as_nanos()).unwrap_or(u64::MAX);
    Timestamp::from_nanos(now.as_nanos().saturating_sub(age))
}
