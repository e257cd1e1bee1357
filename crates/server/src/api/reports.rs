//! Reports of ended runs: the same output that `qualitytrace run --report` writes, from the database.
//!
//! A page with scripts holds text of untrusted senders and our own scripts. So a CSP sandbox gives it an opaque origin: it
//! reaches neither this server nor a cookie. Deliberately absent: the layout of a report, which is in the crate `report`.

use axum::{
    Extension,
    extract::State,
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use db::StepOutcome;
use model::{ErrorCode, Fault, Outcome, Project, RunId};
use report::{FOR_CLIENT, FORMATS, Format, ReportInput, Waterfall};
use serde::Deserialize;
use source::Colour;
use utoipa::{
    IntoParams, ToSchema,
    openapi::{ContentBuilder, ObjectBuilder, OpenApi, RefOr, schema::Schema, schema::Type},
};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{openapi, runs, suite_runs};
use crate::{
    http::{
        app::App,
        extract::{PathId, QueryParams},
        permit::ReaderPermit,
        problem::Problem,
    },
    telemetry::{call::Call, traceparent::TraceParent},
};

/// The CSP of a report with scripts: its own scripts and styles, and nothing of this origin.
const PAGE_POLICY: &str = "sandbox allow-scripts; default-src 'none'; style-src 'unsafe-inline'; \
                           script-src 'unsafe-inline'; frame-ancestors 'none'";

/// The media type that every client can show.
const PLAIN_TEXT: &str = "text/plain";

/// The maximum number of steps of a suite in one report: all of their outcomes are in memory at once.
const STEPS_MAX: usize = 200;

pub(super) fn routes() -> OpenApiRouter<App> {
    let mut router = OpenApiRouter::new().routes(routes!(of_run)).routes(routes!(of_suite_run));
    describe_media_types(router.get_openapi_mut());
    router
}

/// Adds the media types of all formats to the responses; the handlers describe only JSON, which has a schema.
fn describe_media_types(api: &mut OpenApi) {
    let types = FORMATS.iter().flat_map(|format| {
        [Some(format.media_type), format.media_type_of_several].into_iter().flatten()
    });
    let mut types: Vec<_> = types.filter_map(|it| it.split(';').next()).collect();
    // Plain text is last, since the others hold more for a program.
    types.sort_by_key(|media_type| *media_type == PLAIN_TEXT);
    let text = ObjectBuilder::new().schema_type(Type::String).build();
    let text = ContentBuilder::new().schema(Some(text)).build();
    for operation in api.paths.paths.values_mut().filter_map(|path| path.get.as_mut()) {
        let Some(RefOr::T(report)) = operation.responses.responses.get_mut("200") else { continue };
        for media_type in &types {
            report.content.entry((*media_type).to_owned()).or_insert_with(|| text.clone().into());
        }
    }
}

/// The JSON of a report of one run.
#[derive(ToSchema)]
#[schema(as = Report, rename_all = "camelCase")]
#[expect(dead_code, reason = "it only describes what `report` writes")]
struct JsonReport {
    /// Raised when a field goes away or changes its meaning.
    schema_version: u32,
    #[schema(schema_with = openapi::outcome)]
    outcome: (),
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ReportQuery {
    /// The project of the run.
    #[serde(default)]
    #[param(schema_with = openapi::word, required = false)]
    project: Project,
    /// The format; if absent, `Accept` selects it, and the default is `json`.
    #[serde(default)]
    #[param(schema_with = formats, required = false)]
    format: Option<String>,
}

fn formats() -> RefOr<Schema> {
    let names = Some(Format::names());
    ObjectBuilder::new().schema_type(Type::String).enum_values(names).build().into()
}

/// A report of a run that ended.
#[utoipa::path(
    get,
    path = "/api/v1/runs/{run}/report",
    tag = "runs",
    operation_id = "readReport",
    params(ReportQuery, ("run" = inline(openapi::RunId), Path, description = "The run.")),
    responses((
        status = 200,
        description = "The report.",
        content((JsonReport = "application/json")),
    )),
)]
async fn of_run(
    State(app): State<App>,
    QueryParams(wanted): QueryParams<ReportQuery>,
    Extension(context): Extension<TraceParent>,
    PathId(id): PathId<RunId>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let format = wanted.format(&headers)?;
    let place = ReaderPermit::take(&app, &wanted.project).await;
    let source = Source { app: &app, context, project: &wanted.project };
    let run = runs::whole(&app, context, (&wanted.project, id)).await?;
    let outcome = run.outcome.ok_or_else(|| under_way(id))?;
    source.answer(vec![(outcome, Some(id))], format, place).await
}

/// A report of a suite's run that ended: of the runs of its steps, in the order written.
///
/// Responses of more than 64 KiB are left out: the reports of the runs have them.
#[utoipa::path(
    get,
    path = "/api/v1/suite-runs/{run}/report",
    tag = "test suites",
    operation_id = "readSuiteReport",
    params(ReportQuery, ("run" = inline(openapi::RunId), Path, description = "The suite's run.")),
    responses((
        status = 200,
        description = "The report.",
        content((JsonReport = "application/json")),
    )),
)]
async fn of_suite_run(
    State(app): State<App>,
    QueryParams(wanted): QueryParams<ReportQuery>,
    Extension(context): Extension<TraceParent>,
    PathId(id): PathId<RunId>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let format = wanted.format(&headers)?;
    let place = ReaderPermit::take(&app, &wanted.project).await;
    let suite = suite_runs::stored(&app, context, (&wanted.project, id)).await?;
    if suite.verdict.is_none() {
        return Err(under_way(id));
    }
    if suite.steps.len() > STEPS_MAX {
        let detail = format!(
            "the run has {} steps, and a report of more than {STEPS_MAX} is not written: ask for those of its runs",
            suite.steps.len()
        );
        let status = StatusCode::PAYLOAD_TOO_LARGE;
        return Err(Problem::new(Fault::Invalid, detail).with_status(status));
    }
    let source = Source { app: &app, context, project: &wanted.project };
    let mut outcomes = Vec::with_capacity(suite.steps.len());
    for StepOutcome { name, run, reason, .. } in suite.steps {
        let known = match run {
            Some(run) => source.outcome(run).await?.zip(Some(run)),
            None => None,
        };
        outcomes.push(match known {
            Some((outcome, run)) => (outcome, Some(run)),
            // The run is not stored any longer: the report can only state that the suite had it.
            None => {
                let why = reason.unwrap_or_else(|| "its run is not kept any longer".to_owned());
                (Outcome::open(name, why), None)
            }
        });
    }
    source.answer(outcomes, format, place).await
}

impl ReportQuery {
    fn format(&self, headers: &HeaderMap) -> Result<&'static Format, Problem> {
        let Some(name) = &self.format else { return Ok(accepted(headers)) };
        Format::parse(name).ok_or_else(|| {
            let known = Format::names().collect::<Vec<_>>().join("`, `");
            let detail = format!("there is no form `{name}` of a report: expected `{known}`");
            Problem::new(Fault::Invalid, detail)
        })
    }
}

/// Returns the first supported format of the `Accept` header.
fn accepted(headers: &HeaderMap) -> &'static Format {
    let accepts = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let types = accepts.flat_map(|value| value.split(','));
    let mut named = types.filter_map(|named| {
        Format::of_media_type(named.split(';').next().unwrap_or_default().trim())
    });
    named.next().unwrap_or(FOR_CLIENT)
}

pub(super) fn under_way(id: RunId) -> Problem {
    let detail = format!(
        "`{id}` has not ended, and only of what ended is there something to tell: ask again later"
    );
    Problem::new(Fault::Conflict, detail).with_code(ErrorCode::RunActive)
}

/// Reads outcomes and traces for a report.
struct Source<'a> {
    app: &'a App,
    context: TraceParent,
    project: &'a Project,
}

impl Source<'_> {
    /// Reads the outcome of a run, without a large response; `None` if it is not stored any longer.
    async fn outcome(&self, run: RunId) -> Result<Option<Outcome>, Problem> {
        let stored = self.app.db.run(self.project, run);
        let stored = self.app.watch.db(self.context, Call("SELECT", "runs"), stored).await?;
        Ok(stored.and_then(|stored| stored.outcome))
    }

    /// Renders the report on the thread pool and returns it.
    async fn answer(
        &self,
        outcomes: Vec<(Outcome, Option<RunId>)>,
        format: &'static Format,
        mut place: ReaderPermit,
    ) -> Result<Response, Problem> {
        let mut waterfalls = Vec::new();
        if format.shows_traces {
            for (outcome, run) in &outcomes {
                let (kept, drawn) = self.waterfall(*run, outcome, place).await?;
                place = kept;
                waterfalls.push(drawn);
            }
        }
        let outcomes: Vec<_> = outcomes.into_iter().map(|(outcome, _)| outcome).collect();
        let kind = [(header::CONTENT_TYPE, format.media_type_of(outcomes.len()))];
        let write = move || {
            let (outcomes, waterfalls) = (&outcomes, &waterfalls);
            report::render(format, &ReportInput { outcomes, waterfalls, colour: Colour::Never })
        };
        let (place, text) = place.work(write).await;
        let mut response = (kind, place.held(text.into_bytes())).into_response();
        if format.has_scripts {
            let policy = HeaderValue::from_static(PAGE_POLICY);
            response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
        }
        Ok(response)
    }

    /// Renders the trace of a run as a waterfall for the page; `None` if no trace is stored.
    async fn waterfall(
        &self,
        run: Option<RunId>,
        outcome: &Outcome,
        place: ReaderPermit,
    ) -> Result<(ReaderPermit, Option<Waterfall>), Problem> {
        let Some(run) = run else { return Ok((place, None)) };
        let (place, trace) = place.trace(self.app, self.context, (self.project, run)).await?;
        let Some(trace) = trace else { return Ok((place, None)) };
        let outcome = outcome.clone();
        // Secrets were removed before the trace was stored.
        let draw = move || Some(Waterfall::of(&trace, &outcome, &|text| text.into()));
        Ok(place.work(draw).await)
    }
}
