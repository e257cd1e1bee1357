//! The status of the server's own exporters. It is served on the control runtime, since it explains why others block.

use axum::{Json, extract::State};
use serde::Serialize;
use telemetry::Status;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{http::app::App, telemetry::own_endpoint::OwnEndpoint};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(read))
}

/// How the server's own telemetry is doing.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct TelemetryStatus {
    /// Its exporters, in the order of the configuration.
    exporters: Vec<ExporterStatus>,
}

/// How one exporter is doing.
#[derive(Debug, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ExporterStatus {
    /// The key that made it, such as `tracer.otel`.
    name: String,
    /// Where it sends, without secrets.
    destination: String,
    /// `waiting` (nothing was tried so far), `delivering`, `failing`, `catching-up` (what was kept is being sent), `rejecting` (the destination
    /// refuses for good all that it gets), or `not-sending`
    /// (its default endpoint is this server's own receiver).
    state: &'static str,
    /// For how long it has been failing.
    failing_seconds: Option<f64>,
    /// Why something does not get through, or cannot be kept.
    reason: Option<String>,
    /// Spans and log records that it was given.
    accepted: u64,
    /// Of these, acknowledged by the destination.
    delivered: u64,
    /// Still to be delivered.
    queued: u64,
    /// Refused by the destination for good.
    rejected: u64,
    /// Given up for lack of room.
    dropped: u64,
    /// How full its buffer is, from 0 to 1.
    buffer: f64,
    /// Threads of the server that wait for room in it.
    holding: u64,
}

/// The short state of an exporter, for `/readyz`.
#[derive(Debug, Serialize)]
pub(super) struct ExporterState {
    name: String,
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl From<Status> for ExporterStatus {
    fn from(status: Status) -> Self {
        let Status { destination, state, failing_for, buffer, counts } = status;
        Self {
            name: counts.exporter,
            destination,
            state: state.as_str(),
            failing_seconds: failing_for.map(|time| time.as_secs_f64()),
            reason: counts.trouble,
            accepted: counts.accepted,
            delivered: counts.delivered,
            queued: counts.queued,
            rejected: counts.rejected,
            dropped: counts.dropped,
            buffer,
            holding: counts.holding,
        }
    }
}

impl From<OwnEndpoint> for ExporterStatus {
    fn from(own: OwnEndpoint) -> Self {
        let reason = Some(own.to_string());
        let OwnEndpoint { exporter: name, endpoint: destination, .. } = own;
        Self { name, destination, state: "not-sending", reason, ..Self::default() }
    }
}

fn all(app: &App) -> Vec<ExporterStatus> {
    let telemetry = &app.watch.telemetry;
    let sending = telemetry.library().status().into_iter().map(ExporterStatus::from);
    sending.chain(telemetry.not_sending().into_iter().map(ExporterStatus::from)).collect()
}

/// Returns the short state of each exporter.
pub(super) fn states(app: &App) -> Vec<ExporterState> {
    let state = |ExporterStatus { name, state, reason, .. }| ExporterState { name, state, reason };
    all(app).into_iter().map(state).collect()
}

/// How the exporters of the server's own telemetry are doing.
#[utoipa::path(
    get,
    path = "/api/v1/telemetry",
    tag = "server",
    operation_id = "readTelemetry",
    responses((status = 200, description = "The exporters.", body = TelemetryStatus)),
)]
pub(super) async fn read(State(app): State<App>) -> Json<TelemetryStatus> {
    Json(TelemetryStatus { exporters: all(&app) })
}
