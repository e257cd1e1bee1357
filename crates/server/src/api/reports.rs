//! Reports of what ended: the same texts that `qualitytrace run --report` writes, from the record.
//!
//! A page is made of what strangers wrote and has scripts of ours, so it is served as if from nowhere: in a sandbox, it
//! reaches neither this server nor a cookie. Deliberately absent: what a report looks like, which is `report`'s.

use axum::{
    Extension,
    extract::State,
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use db::StepOutcome;
use model::{Fault, Outcome, Project, RunId};
use report::{Format, Waterfall};
use serde::Deserialize;
use source::Colour;
use utoipa::{
    IntoParams, PartialSchema, ToSchema,
    openapi::{ObjectBuilder, RefOr, schema::Schema, schema::Type},
};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    App,
    given::{PathId, QueryParams},
    openapi,
    place::ReaderPermit,
    problem::Problem,
    runs, suite_runs,
};
use crate::{own_spans::Call, traceparent::TraceParent};

/// What a browser may make of a page: scripts and styles of its own, and nothing of this origin.
const PAGE_POLICY: &str = "sandbox allow-scripts; default-src 'none'; style-src 'unsafe-inline'; \
                           script-src 'unsafe-inline'; frame-ancestors 'none'";

/// Media types that a request may ask for instead of naming a form, in the order of how much each tells.
const ACCEPTED: &[(&str, Format)] = &[
    ("application/json", Format::Json),
    ("application/x-ndjson", Format::Ndjson),
    ("application/xml", Format::Junit),
    ("text/xml", Format::Junit),
    ("text/markdown", Format::Markdown),
    ("text/html", Format::Html),
    ("text/plain", Format::Plain),
];

/// Steps of a suite in one report at the most: all of their outcomes are in memory at once.
const STEPS_MAX: usize = 200;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(of_run)).routes(routes!(of_suite_run))
}

/// A report that is text.
struct Text;

impl PartialSchema for Text {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new().schema_type(Type::String).build().into()
    }
}

impl ToSchema for Text {}

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
    /// Whose it is.
    #[serde(default)]
    #[param(schema_with = openapi::word, required = false)]
    project: Project,
    /// The form; where it is left out, `Accept` decides, and `json` is what anybody gets.
    #[serde(default)]
    #[param(schema_with = formats, required = false)]
    format: Option<String>,
}

fn formats() -> RefOr<Schema> {
    let names = Format::ALL.map(Format::as_str);
    ObjectBuilder::new().schema_type(Type::String).enum_values(Some(names)).build().into()
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
        content(
            (JsonReport = "application/json"),
            (inline(Text) = "application/x-ndjson"),
            (inline(Text) = "application/xml"),
            (inline(Text) = "text/markdown"),
            (inline(Text) = "text/html"),
            (inline(Text) = "text/plain"),
        ),
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
        content(
            (JsonReport = "application/json"),
            (inline(Text) = "application/x-ndjson"),
            (inline(Text) = "application/xml"),
            (inline(Text) = "text/markdown"),
            (inline(Text) = "text/html"),
            (inline(Text) = "text/plain"),
        ),
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
            // Of a run that is not kept any longer, that the suite had it is all there is to tell.
            None => {
                let why = reason.unwrap_or_else(|| "its run is not kept any longer".to_owned());
                (Outcome::open(name, why), None)
            }
        });
    }
    source.answer(outcomes, format, place).await
}

impl ReportQuery {
    fn format(&self, headers: &HeaderMap) -> Result<Format, Problem> {
        let Some(name) = &self.format else { return Ok(accepted(headers)) };
        Format::parse(name).ok_or_else(|| {
            let known = Format::ALL.map(Format::as_str).join("`, `");
            let detail = format!("there is no form `{name}` of a report: expected `{known}`");
            Problem::new(Fault::Invalid, detail)
        })
    }
}

/// The first form that a request says to accept.
fn accepted(headers: &HeaderMap) -> Format {
    let accepts = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let types = accepts.flat_map(|value| value.split(','));
    let mut named = types.filter_map(|named| {
        let named = named.split(';').next().unwrap_or_default().trim();
        ACCEPTED.iter().find(|(known, _)| known.eq_ignore_ascii_case(named))
    });
    named.next().map_or(Format::Json, |(_, format)| *format)
}

fn media_type(format: Format, outcomes: usize) -> &'static str {
    match format {
        // An object a line.
        Format::Json if outcomes != 1 => "application/x-ndjson",
        Format::Json => "application/json",
        Format::Ndjson => "application/x-ndjson",
        Format::Junit => "application/xml",
        Format::Markdown => "text/markdown; charset=utf-8",
        Format::Html => "text/html; charset=utf-8",
        Format::Pretty | Format::Plain | Format::Tap | Format::Github => {
            "text/plain; charset=utf-8"
        }
    }
}

pub(super) fn under_way(id: RunId) -> Problem {
    let detail = format!(
        "`{id}` has not ended, and only of what ended is there something to tell: ask again later"
    );
    Problem::new(Fault::Conflict, detail)
}

/// Where outcomes and traces come from.
struct Source<'a> {
    app: &'a App,
    context: TraceParent,
    project: &'a Project,
}

impl Source<'_> {
    /// What a run ended with, without a large answer; none where it is not kept any longer.
    async fn outcome(&self, run: RunId) -> Result<Option<Outcome>, Problem> {
        let stored = self.app.db.run(self.project, run);
        let stored = self.app.watch.db(self.context, Call("SELECT", "runs"), stored).await?;
        Ok(stored.and_then(|stored| stored.outcome))
    }

    /// The report, written where nobody waits.
    async fn answer(
        &self,
        outcomes: Vec<(Outcome, Option<RunId>)>,
        format: Format,
        mut place: ReaderPermit,
    ) -> Result<Response, Problem> {
        let mut waterfalls = Vec::new();
        if format == Format::Html {
            for (outcome, run) in &outcomes {
                let (kept, drawn) = self.waterfall(*run, outcome, place).await?;
                place = kept;
                waterfalls.push(drawn);
            }
        }
        let outcomes: Vec<_> = outcomes.into_iter().map(|(outcome, _)| outcome).collect();
        let kind = [(header::CONTENT_TYPE, media_type(format, outcomes.len()))];
        let write = move || match format {
            Format::Html => report::html(&outcomes, &waterfalls),
            format => report::render(format, &outcomes, Colour::Never),
        };
        let (place, text) = place.work(write).await;
        let mut response = (kind, place.held(text.into_bytes())).into_response();
        if format == Format::Html {
            let policy = HeaderValue::from_static(PAGE_POLICY);
            response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
        }
        Ok(response)
    }

    /// The trace of a run as a page draws it; none where none is kept.
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
        // What nobody may see was taken out before it was kept.
        let draw = move || Some(Waterfall::of(&trace, &outcome, &|text| text.into()));
        Ok(place.work(draw).await)
    }
}
