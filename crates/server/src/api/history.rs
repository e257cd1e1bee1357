//! Runs over time: lists, searches, and the trend of a test's verdicts.

use axum::{Extension, Json, extract::State};
use db::{ListedRun, RunFilter};
use model::{Fault, Project, RunId, TestId, Timestamp, TraceId, Verdict};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    openapi,
    page::{self, Page},
};
use crate::{
    http::{
        app::App,
        extract::{PathId, QueryParams},
        problem::Problem,
    },
    plant::{Plant, is_planted},
    telemetry::{call::Call, traceparent::TraceParent},
};

/// The default number of runs in a trend.
const LAST_DEFAULT: u32 = 50;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(trend))
}

/// A run in a list.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ListedRun)]
pub(super) struct Item {
    #[schema(schema_with = openapi::run_id)]
    id: RunId,
    #[schema(schema_with = openapi::word)]
    test: TestId,
    /// The version of the test that it runs.
    version: i32,
    /// `queued`, `running` or `ended`.
    state: &'static str,
    #[schema(schema_with = openapi::moment)]
    accepted_at: Timestamp,
    /// When it ended; null before.
    #[schema(schema_with = openapi::moment_or_null)]
    ended_at: Option<Timestamp>,
    /// The trace under test, once the attempt is recorded.
    #[schema(value_type = Option<String>)]
    trace_id: Option<TraceId>,
    /// `passed`, `failed` or `inconclusive`, once it ended.
    #[schema(value_type = Option<String>)]
    verdict: Option<Verdict>,
    /// The verdict for now, while the run lingers and spans may change it.
    #[schema(value_type = Option<String>)]
    provisional_verdict: Option<Verdict>,
    /// The revision of the system under test, if the caller named one.
    revision: Option<String>,
}

/// How the last runs of a test went.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Trend {
    /// The number of runs with a verdict that this is computed from.
    runs: usize,
    passed: usize,
    failed: usize,
    inconclusive: usize,
    /// How often a verdict differs from the one before, of runs of the same version of the test.
    flips: usize,
    /// How many of those flips are between two runs of the same revision: nothing changed but the verdict.
    flaky: usize,
    /// The median from being accepted to the verdict, in nanoseconds; null without runs.
    #[schema(required)]
    median_ns: Option<u64>,
    /// The runs, the newest first.
    last: Vec<Item>,
}

/// The query parameters of the list of runs.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Filter {
    /// The project of the runs.
    #[serde(default)]
    #[param(schema_with = openapi::word, required = false)]
    project: Project,
    /// Only runs of this test.
    #[param(schema_with = openapi::word, required = false)]
    test: Option<TestId>,
    /// With this verdict.
    #[param(value_type = Option<String>, pattern = "^(passed|failed|inconclusive)$")]
    verdict: Option<Verdict>,
    /// Of this trace; then nothing else narrows the list.
    #[param(value_type = Option<String>, pattern = "^(?!0{32})[0-9a-f]{32}$")]
    trace: Option<TraceId>,
    /// Only runs that were accepted at this time or later.
    #[param(schema_with = openapi::moment, required = false)]
    from: Option<Timestamp>,
    /// Only runs that were accepted before this time.
    #[param(schema_with = openapi::moment, required = false)]
    until: Option<Timestamp>,
    /// Items of a page.
    #[param(minimum = 1, maximum = 500)]
    limit: Option<u32>,
    /// Where to go on: the `next` of the page before.
    cursor: Option<String>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Last {
    /// The project of the test.
    #[serde(default)]
    #[param(schema_with = openapi::word, required = false)]
    project: Project,
    /// How many runs are looked at.
    #[param(minimum = 1, maximum = 500)]
    last: Option<u32>,
}

impl From<ListedRun> for Item {
    fn from(run: ListedRun) -> Self {
        Self {
            id: run.id,
            test: run.test,
            version: run.version,
            state: run.state.as_str(),
            accepted_at: run.accepted_at,
            ended_at: run.ended_at,
            trace_id: run.trace_id,
            verdict: run.verdict,
            provisional_verdict: run.provisional,
            revision: run.revision,
        }
    }
}

/// Runs, the newest first.
#[utoipa::path(
    get,
    path = "/api/v1/runs",
    tag = "runs",
    operation_id = "listRuns",
    params(Filter),
    responses((status = 200, description = "A page of runs.", body = Page<Item>)),
)]
pub(super) async fn list(
    State(app): State<App>,
    QueryParams(filter): QueryParams<Filter>,
    Extension(context): Extension<TraceParent>,
) -> Result<Json<Page<Item>>, Problem> {
    let limit = page::limit(filter.limit)?;
    let asked = Call("SELECT", "runs");
    let project = filter.project.clone();
    let runs = match filter.trace {
        Some(trace) => {
            let runs = app.db.runs_of_trace(&filter.project, trace, limit);
            app.watch.db(context, asked, runs).await?
        }
        None => {
            let wanted = RunFilter {
                project: filter.project,
                test: filter.test,
                verdict: filter.verdict,
                from: filter.from,
                until: filter.until,
                before: page::key(filter.cursor.as_deref())?,
                limit: limit + 1,
            };
            app.watch.db(context, asked, app.db.runs(&wanted)).await?
        }
    };
    if is_planted(Plant::NPlusOne) {
        for run in &runs {
            let one = app.db.run(&project, run.id);
            app.watch.db(context, asked, one).await?;
        }
    }
    if is_planted(Plant::SlowList) {
        tokio::time::sleep(std::time::Duration::from_secs(3)).await;
    }
    let items = runs.into_iter().map(Item::from).collect();
    Ok(Json(Page::new(items, limit, |item: &Item| item.id.to_string())))
}

/// How the last runs of a test went.
#[utoipa::path(
    get,
    path = "/api/v1/tests/{test}/trend",
    tag = "runs",
    operation_id = "readTrend",
    params(Last, ("test" = inline(openapi::Word), Path, description = "The test.")),
    responses((status = 200, description = "The trend.", body = Trend)),
)]
pub(super) async fn trend(
    State(app): State<App>,
    QueryParams(Last { project, last }): QueryParams<Last>,
    Extension(context): Extension<TraceParent>,
    PathId(test): PathId<TestId>,
) -> Result<Json<Trend>, Problem> {
    let limit = page::limit(last.or(Some(LAST_DEFAULT)))?;
    let wanted = RunFilter { project, test: Some(test.clone()), limit, ..RunFilter::default() };
    let runs = app.watch.db(context, Call("SELECT", "runs"), app.db.runs(&wanted)).await?;
    if runs.is_empty() {
        let known = app.db.test(&wanted.project, &test);
        if app.watch.db(context, Call("SELECT", "tests"), known).await?.is_none() {
            return Err(Problem::new(Fault::Missing, format!("there is no test `{test}`")));
        }
    }
    Ok(Json(trend_of(runs)))
}

/// Returns the trend of runs of one test, the newest first.
pub(super) fn trend_of(runs: Vec<ListedRun>) -> Trend {
    let ended: Vec<&ListedRun> = runs.iter().filter(|run| run.verdict.is_some()).collect();
    let count = |verdict| ended.iter().filter(|run| run.verdict == Some(verdict)).count();
    let is_flip = |pair: &&[&ListedRun]| {
        pair[0].verdict != pair[1].verdict && pair[0].version == pair[1].version
    };
    let is_flaky = |pair: &&[&ListedRun]| {
        is_flip(pair) && pair[0].revision.is_some() && pair[0].revision == pair[1].revision
    };
    let times = ended.iter().filter_map(|run| Some(run.ended_at?.since(run.accepted_at)));
    let mut times: Vec<u64> =
        times.map(|time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)).collect();
    times.sort_unstable();
    Trend {
        runs: ended.len(),
        passed: count(Verdict::Passed),
        failed: count(Verdict::Failed),
        inconclusive: count(Verdict::Inconclusive),
        flips: ended.windows(2).filter(is_flip).count(),
        flaky: ended.windows(2).filter(is_flaky).count(),
        median_ns: times.get(times.len() / 2).copied(),
        last: runs.into_iter().map(Item::from).collect(),
    }
}
