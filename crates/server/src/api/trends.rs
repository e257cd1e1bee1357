//! Tests with how their last runs went: found by a text, by id or the worst first.

use std::{collections::BTreeMap, fmt, str::FromStr, time::Duration};

use axum::{Extension, Json, extract::State};
use db::{ListedRun, ListedTest, TestFilter, TestOrder, VerdictRank};
use model::{Fault, Project, TestId, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    history::{Trend, trend_of},
    openapi,
    page::{self, Page},
};
use crate::{
    http::{app::App, extract::QueryParams, problem::Problem},
    telemetry::{call::Call, traceparent::TraceParent},
};

/// The number of runs in each trend.
const LAST: u32 = 30;
/// The maximum number of trends on a page.
const TRENDS_MAX: u32 = 100;
/// How old a verdict may be that ranks a test.
const VERDICT_AGE_MAX: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// The maximum length of the text to search for, in characters.
const TEXT_MAX: usize = 200;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(trends))
}

/// A test, and how its last runs went.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct TestTrend {
    #[schema(schema_with = openapi::word)]
    id: TestId,
    name: String,
    /// The current version, from 1.
    version: i32,
    /// Of at most the last 30 runs.
    trend: Trend,
    #[serde(skip)]
    rank: Option<VerdictRank>,
}

/// The order of tests.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
enum TrendSort {
    #[default]
    Id,
    Worst,
}

/// The query parameters of the list of trends.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct TrendQuery {
    /// The project of the tests.
    #[serde(default)]
    #[param(schema_with = openapi::word, required = false)]
    project: Project,
    /// Only tests whose id or name contains this text, without regard to case.
    #[serde(default)]
    #[param(schema_with = openapi::search_text, required = false)]
    q: String,
    /// `id`, the default; or `worst`: tests whose last verdict of 30 days is failed, then inconclusive, then all others, each by id. A verdict
    /// between two requests can move a test to another page.
    #[serde(default)]
    #[param(value_type = Option<String>, pattern = "^(id|worst)$", required = false)]
    sort: TrendSort,
    /// Items of a page.
    #[param(minimum = 1, maximum = 100)]
    limit: Option<u32>,
    /// Where to go on: the `next` of the page before, with the same `sort`.
    cursor: Option<String>,
}

/// The last test of a page that is sorted by rank.
struct RankedKey(VerdictRank, TestId);

impl FromStr for RankedKey {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (rank, id) = text.split_once(':').ok_or(())?;
        let rank = VerdictRank(rank.parse().map_err(|_| ())?);
        Ok(Self(rank, id.parse().map_err(|_| ())?))
    }
}

impl fmt::Display for RankedKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.0.0, self.1)
    }
}

impl TestTrend {
    fn new(test: ListedTest, runs: Vec<ListedRun>) -> Self {
        let ListedTest { id, version, name, rank } = test;
        Self { id, name, version, trend: trend_of(runs), rank }
    }

    fn key(&self) -> String {
        match self.rank {
            Some(rank) => RankedKey(rank, self.id.clone()).to_string(),
            None => self.id.to_string(),
        }
    }
}

/// Tests with how their last runs went: the statements are as many for a page as for one test.
#[utoipa::path(
    get,
    path = "/api/v1/trends",
    tag = "runs",
    operation_id = "listTrends",
    params(TrendQuery),
    responses((status = 200, description = "A page of tests.", body = Page<TestTrend>)),
)]
pub(super) async fn trends(
    State(app): State<App>,
    QueryParams(query): QueryParams<TrendQuery>,
    Extension(context): Extension<TraceParent>,
) -> Result<Json<Page<TestTrend>>, Problem> {
    let limit = page::limit(query.limit)?;
    if limit > TRENDS_MAX {
        let detail = format!("`limit` is {limit}: expected 1 to {TRENDS_MAX}");
        return Err(Problem::new(Fault::Invalid, detail));
    }
    let wanted = TestFilter {
        text: text(query.q)?,
        order: order(query.sort, query.cursor.as_deref(), app.world.now())?,
        project: query.project,
        limit: limit + 1,
    };
    let tests = app.watch.db(context, Call("SELECT", "tests"), app.db.tests(&wanted)).await?;
    let ids: Vec<TestId> = tests.iter().map(|test| test.id.clone()).collect();
    let runs = app.db.runs_of_tests(&wanted.project, &ids, LAST);
    let runs = app.watch.db(context, Call("SELECT", "runs"), runs).await?;
    let mut by_test: BTreeMap<TestId, Vec<ListedRun>> = BTreeMap::new();
    for run in runs {
        by_test.entry(run.test.clone()).or_default().push(run);
    }
    let items = tests.into_iter().map(|test| {
        let runs = by_test.remove(&test.id).unwrap_or_default();
        TestTrend::new(test, runs)
    });
    Ok(Json(Page::new(items.collect(), limit, TestTrend::key)))
}

fn order(sort: TrendSort, cursor: Option<&str>, now: Timestamp) -> Result<TestOrder, Problem> {
    Ok(match sort {
        TrendSort::Id => TestOrder::Id(page::key(cursor)?),
        TrendSort::Worst => {
            let after: Option<RankedKey> = page::key(cursor)?;
            let after = after.map(|RankedKey(rank, id)| (rank, id));
            TestOrder::WorstFirst { after, since: now.minus(VERDICT_AGE_MAX) }
        }
    })
}

fn text(text: String) -> Result<String, Problem> {
    if text.contains(char::is_control) || text.chars().count() > TEXT_MAX {
        let detail = format!(
            "`q`: expected at most {TEXT_MAX} characters, none of them a control character"
        );
        return Err(Problem::new(Fault::Invalid, detail));
    }
    Ok(text)
}
