//! The stored trace of a run: as OTLP, and as columns for the web page.
//!
//! A stored trace never changes, so that a client that has it gets 304. The columns of a trace that was stored without them are made
//! for its first reader. Deliberately absent: the format of columns, which is in `otlp`.

use std::sync::Arc;

use axum::{
    Extension,
    extract::State,
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::Response,
};
use db::DbError;
use model::{Fault, Faulty, Project, RunId, Trace};
use otlp::ColumnsTooLarge;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{openapi, runs::ProjectQuery};
use crate::{
    http::{
        app::App,
        compression::{Compression, gzip},
        extract::{PathId, QueryParams},
        immutable::WeakTag,
        permit::ReaderPermit,
        problem::Problem,
    },
    live::snapshots::ActiveTrace,
    telemetry::{call::Call, traceparent::TraceParent},
};

/// The media types of a trace.
const PROTOBUF: &str = "application/x-protobuf";
const COLUMNS: &str = "application/vnd.qualitytrace.columns";

const OTLP_TAG: WeakTag = WeakTag("W/\"otlp\"");
/// The number is the version of the format.
const COLUMNS_TAG: WeakTag = WeakTag("W/\"columns-1\"");

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(trace)).routes(routes!(columns))
}

/// The trace that was judged, as OTLP protobuf. It never changes.
///
/// While a run collects its spans, these are the ones that it has; then the response has no `etag`. Where the request accepts `zstd`, the response is compressed.
#[utoipa::path(
    get,
    path = "/api/v1/runs/{run}/trace",
    tag = "runs",
    operation_id = "readTrace",
    params(ProjectQuery, ("run" = inline(openapi::RunId), Path, description = "The run.")),
    responses(
        (
            status = 200,
            description = "An OTLP `TracesData` message.",
            body = inline(openapi::Bytes),
            content_type = "application/x-protobuf",
            headers(("etag" = String, description = "For `If-None-Match`.")),
        ),
        (status = 304, description = "The client has it, by its `If-None-Match`."),
    ),
)]
async fn trace(
    State(app): State<App>,
    QueryParams(ProjectQuery { project }): QueryParams<ProjectQuery>,
    Extension(context): Extension<TraceParent>,
    PathId(id): PathId<RunId>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let source = TraceSource { app: &app, context, project: &project, id };
    if OTLP_TAG.is_in(&headers) {
        return source.not_modified(OTLP_TAG).await;
    }
    let place = ReaderPermit::take(&app, &project).await;
    let compression = Compression::choose(&[Compression::Zstd], &headers);
    let bytes = match compression {
        Compression::Zstd => source.read(app.db.trace_zstd(&project, id)).await?,
        Compression::Gzip | Compression::Plain => source.read(app.db.trace(&project, id)).await?,
    };
    let Some(bytes) = bytes else {
        let (place, trace) = source.active(place).await?;
        let (place, otlp) = place.work(move || otlp::encode(&trace)).await;
        return Ok(sent((PROTOBUF, Compression::Plain), otlp, place));
    };
    Ok(OTLP_TAG.on(sent((PROTOBUF, compression), bytes, place)))
}

/// The trace that was judged as columns of numbers, for programs that show all of its spans. It never changes.
///
/// While a run collects its spans, these are the ones that it has; then the response has no `etag`. Where the request accepts `zstd` or `gzip`, the response is compressed.
#[utoipa::path(
    get,
    path = "/api/v1/runs/{run}/trace/columns",
    tag = "runs",
    operation_id = "readTraceColumns",
    params(ProjectQuery, ("run" = inline(openapi::RunId), Path, description = "The run.")),
    responses(
        (
            status = 200,
            description = "The columns, version 1: `QTCO`, the length of the head in four bytes, a JSON head, typed arrays.",
            body = inline(openapi::Bytes),
            content_type = "application/vnd.qualitytrace.columns",
            headers(("etag" = String, description = "For `If-None-Match`.")),
        ),
        (status = 304, description = "The client has them, by its `If-None-Match`."),
    ),
)]
async fn columns(
    State(app): State<App>,
    QueryParams(ProjectQuery { project }): QueryParams<ProjectQuery>,
    Extension(context): Extension<TraceParent>,
    PathId(id): PathId<RunId>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let source = TraceSource { app: &app, context, project: &project, id };
    if COLUMNS_TAG.is_in(&headers) {
        return source.not_modified(COLUMNS_TAG).await;
    }
    let place = ReaderPermit::take(&app, &project).await;
    let Some(stored) = source.read(app.db.columns(&project, id)).await? else {
        let (place, trace) = source.active(place).await?;
        let (place, columns) = place.work(move || otlp::columns(&trace)).await;
        return Ok(sent((COLUMNS, Compression::Plain), columns.map_err(unfit)?, place));
    };
    let (place, zstd) = match stored.zstd {
        Some(zstd) => (place, zstd),
        None => source.make_columns(place).await?,
    };
    let offered = [Compression::Zstd, Compression::Gzip];
    let compression = Compression::choose(&offered, &headers);
    let (place, bytes) = match compression {
        Compression::Zstd => (place, zstd),
        Compression::Plain => (place, app.db.unpack_columns(id, zstd).await.map_err(too_large)?),
        Compression::Gzip => {
            let plain = app.db.unpack_columns(id, zstd).await.map_err(too_large)?;
            let (place, packed) = place.work(move || gzip(&plain)).await;
            let failed = |error: std::io::Error| Problem::new(Fault::Internal, error.to_string());
            (place, packed.map_err(failed)?)
        }
    };
    Ok(COLUMNS_TAG.on(sent((COLUMNS, compression), bytes, place)))
}

/// Returns a response with bytes, which hold the permit.
fn sent(
    (media_type, compression): (&'static str, Compression),
    bytes: Vec<u8>,
    place: ReaderPermit,
) -> Response {
    let kind = [(header::CONTENT_TYPE, media_type)];
    let mut response = axum::response::IntoResponse::into_response((kind, place.held(bytes)));
    if let Some(name) = compression.name() {
        let value = HeaderValue::from_static(name);
        response.headers_mut().insert(header::CONTENT_ENCODING, value);
    }
    response
}

/// Reads the trace of one run.
pub(super) struct TraceSource<'a> {
    pub(super) app: &'a App,
    pub(super) context: TraceParent,
    pub(super) project: &'a Project,
    pub(super) id: RunId,
}

impl TraceSource<'_> {
    /// Runs a query of the table of traces.
    async fn read<T>(&self, query: impl Future<Output = Result<T, DbError>>) -> Result<T, Problem> {
        Ok(self.app.watch.db(self.context, Call("SELECT", "traces"), query).await?)
    }

    /// Returns the trace as an OTLP message.
    pub(super) async fn otlp(
        &self,
        place: ReaderPermit,
    ) -> Result<(ReaderPermit, Vec<u8>), Problem> {
        match self.read(self.app.db.trace(self.project, self.id)).await? {
            Some(bytes) => Ok((place, bytes)),
            None => {
                let (place, trace) = self.active(place).await?;
                Ok(place.work(move || otlp::encode(&trace)).await)
            }
        }
    }

    /// Returns the decoded trace.
    pub(super) async fn decoded(
        &self,
        place: ReaderPermit,
    ) -> Result<(ReaderPermit, Arc<Trace>), Problem> {
        match place.trace(self.app, self.context, (self.project, self.id)).await? {
            (place, Some(trace)) => Ok((place, Arc::new(trace))),
            (place, None) => self.active(place).await,
        }
    }

    /// Returns the trace of a run that still collects its spans.
    async fn active(&self, place: ReaderPermit) -> Result<(ReaderPermit, Arc<Trace>), Problem> {
        let Self { app, context, project, id } = self;
        let run = app.watch.db(*context, Call("SELECT", "runs"), app.db.run(project, *id)).await?;
        // Other servers are not disturbed for a run that has ended, or for none.
        if run.is_none_or(|run| run.verdict.is_some()) {
            return Err(absent(*id));
        }
        let active = app.snapshots.trace(&app.bus, project, *id).await;
        match active.ok_or_else(|| absent(*id))? {
            ActiveTrace::TooLarge => {
                let detail = format!(
                    "the run `{id}` still collects its spans, on another server, and they are too many to be sent on: read them \
                     when the run has ended"
                );
                let problem = Problem::new(Fault::Invalid, detail);
                Err(problem.with_status(StatusCode::PAYLOAD_TOO_LARGE))
            }
            active => {
                let (place, trace) = place.work(move || active.into_trace()).await;
                Ok((place, trace.ok_or_else(|| absent(*id))?))
            }
        }
    }

    async fn not_modified(&self, tag: WeakTag) -> Result<Response, Problem> {
        match self.read(self.app.db.has_trace(self.project, self.id)).await? {
            true => Ok(tag.not_modified()),
            false => Err(absent(self.id)),
        }
    }

    /// Makes the columns of a trace that was stored without them, and stores them. Returns them compressed.
    async fn make_columns(&self, place: ReaderPermit) -> Result<(ReaderPermit, Vec<u8>), Problem> {
        let (place, trace) = self.decoded(place).await?;
        let (place, columns) = place.work(move || otlp::columns(&trace)).await;
        let columns = columns.map_err(unfit)?;
        let kept = self.app.db.keep_columns(self.project, self.id, columns.into());
        let kept = self.app.watch.db(self.context, Call("UPDATE", "traces"), kept).await;
        Ok((place, kept.map_err(too_large)?))
    }
}

fn unfit(error: ColumnsTooLarge) -> Problem {
    Problem::new(error.fault(), error.to_string()).with_status(StatusCode::PAYLOAD_TOO_LARGE)
}

fn absent(id: RunId) -> Problem {
    let detail = format!("the run `{id}` has no trace (yet), or there is no such run");
    Problem::new(Fault::Missing, detail)
}

/// Maps an error of the database; columns beyond their bound have their own status.
fn too_large(error: DbError) -> Problem {
    let is_too_large = matches!(error, DbError::ColumnsTooLarge { .. });
    let problem = Problem::from(error);
    if is_too_large { problem.with_status(StatusCode::PAYLOAD_TOO_LARGE) } else { problem }
}
