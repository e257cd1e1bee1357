//! The demo shop of this process: opens and closes it, and stores its first test.
//!
//! Deliberately absent: the shop, which the program passes to the server, and whether it is offered, which `shop` decides.

use std::net::SocketAddr;

use axum::{Json, http::StatusCode};
use db::Precondition;
use model::{DocumentKind, Fault, Faulty, Project, TestId};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{documents, openapi};
use crate::{
    http::{
        app::App,
        extract::{Document, QueryParams, RequestContext},
        problem::Problem,
    },
    shop::{DemoError, DemoFault, DemoShop},
    telemetry::call::Call,
};

/// The id of the first test.
const TEST: &str = "checkout";
/// The file name in the locations of its diagnostics and evidence.
const FILE: &str = "checkout.yaml";

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(read, open, close))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct DemoQuery {
    /// The project of the first test.
    #[serde(default)]
    #[param(schema_with = openapi::word, required = false)]
    project: Project,
}

/// How the shop is opened; the body may be empty.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = StartDemo)]
pub(super) struct DemoStart {
    /// The faults to switch on, by name; none by default.
    #[serde(default)]
    #[schema(max_items = 16)]
    faults: Vec<String>,
}

/// The demo shop of this server process.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Demo)]
pub(super) struct DemoState {
    /// Whether it may be started.
    is_offered: bool,
    /// Why it may not, and what to do; null if it may.
    reason: Option<String>,
    /// Where its gateway listens, such as `http://127.0.0.1:41634`; null if it is not open in this process.
    url: Option<String>,
    /// The faults that are switched on.
    faults: Vec<&'static str>,
    /// All faults that can be switched on.
    known_faults: Vec<DemoFaultFacts>,
    /// Its first test in this project; null if it is not stored.
    test: Option<DemoTest>,
    /// Other servers on the same database. Each has its own shop or none, and a run that one of them takes does not reach this one.
    other_servers: usize,
}

/// A fault of the demo shop.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = DemoFault)]
pub(super) struct DemoFaultFacts {
    name: &'static str,
    /// What is wrong with the shop then.
    about: &'static str,
}

/// The first test of the shop.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = DemoTest)]
pub(super) struct DemoTest {
    #[schema(schema_with = openapi::word)]
    id: TestId,
    /// Its version, from 1.
    version: i32,
    /// Whether it calls the shop that is open here. A test that was changed by hand keeps its address.
    is_of_shop: bool,
}

/// The demo shop: whether it is offered and open here, and its faults.
#[utoipa::path(
    get,
    path = "/api/v1/demo",
    tag = "demo",
    operation_id = "readDemo",
    params(DemoQuery),
    responses((status = 200, description = "The shop.", body = DemoState)),
)]
async fn read(
    heard: RequestContext,
    QueryParams(DemoQuery { project }): QueryParams<DemoQuery>,
) -> Result<Json<DemoState>, Problem> {
    Ok(Json(state(&heard, &project).await?))
}

/// Opens the demo shop in this process, or opens it again with other faults, and stores its first test `checkout` unless the project
/// has a test with that id.
#[utoipa::path(
    post,
    path = "/api/v1/demo",
    tag = "demo",
    operation_id = "startDemo",
    params(DemoQuery),
    request_body(content = Option<DemoStart>, description = "How it is opened."),
    responses((status = 200, description = "The shop is open.", body = DemoState)),
)]
async fn open(
    heard: RequestContext,
    QueryParams(DemoQuery { project }): QueryParams<DemoQuery>,
    Document(body): Document,
) -> Result<Json<DemoState>, Problem> {
    let DemoStart { faults } = DemoStart::read(&body)?;
    let shop = heard.app.shop.offered().map_err(|error| refused(&error))?;
    let open = heard.app.shop.open(&faults, &project).await.map_err(|error| {
        // The names of the faults are in no schema.
        let problem = refused(&error);
        match error.fault {
            Fault::Invalid => problem.with_status(StatusCode::UNPROCESSABLE_ENTITY),
            _ => problem,
        }
    })?;
    store_test(&heard, &project, (shop, open.address)).await?;
    Ok(Json(state(&heard, &project).await?))
}

/// Closes the demo shop of this process. Its test stays.
#[utoipa::path(
    delete,
    path = "/api/v1/demo",
    tag = "demo",
    operation_id = "stopDemo",
    params(DemoQuery),
    responses((status = 200, description = "The shop is closed.", body = DemoState)),
)]
async fn close(
    heard: RequestContext,
    QueryParams(DemoQuery { project }): QueryParams<DemoQuery>,
) -> Result<Json<DemoState>, Problem> {
    heard.app.shop.close().await.map_err(|error| refused(&error))?;
    Ok(Json(state(&heard, &project).await?))
}

impl DemoStart {
    fn read(body: &str) -> Result<Self, Problem> {
        if body.trim().is_empty() {
            return Ok(Self::default());
        }
        let start: Option<Self> = serde_json::from_str(body).map_err(|error| {
            let detail = format!("the body does not describe how to open the shop: {error}");
            Problem::new(Fault::Invalid, detail)
        })?;
        Ok(start.unwrap_or_default())
    }
}

async fn state(heard: &RequestContext, project: &Project) -> Result<DemoState, Problem> {
    let RequestContext { app, context, .. } = heard;
    let shop = match app.shop.offered() {
        Ok(shop) => shop,
        Err(DemoError { reason, .. }) => return Ok(DemoState::not_offered(reason)),
    };
    let open = app.shop.window().await;
    let others = app.receivers.other_servers(&app.db);
    let other_servers = app.watch.db(*context, Call("SELECT", "servers"), others).await?;
    let test = stored_test(heard, project).await?.map(|(id, stored)| DemoTest {
        id,
        version: stored.version,
        is_of_shop: open.as_ref().is_some_and(|open| {
            address_in(&stored.document).is_some_and(|address| address == open.address)
        }),
    });
    let known = (shop.faults)();
    let is_on = |it: &&DemoFault| {
        open.as_ref().is_some_and(|open| open.faults.iter().any(|name| name == it.name))
    };
    Ok(DemoState {
        is_offered: true,
        reason: None,
        url: open.as_ref().map(|open| format!("http://{}", open.address)),
        faults: known.iter().filter(is_on).map(|it| it.name).collect(),
        known_faults: known
            .iter()
            .map(|it| DemoFaultFacts { name: it.name, about: it.about })
            .collect(),
        test,
        other_servers,
    })
}

impl DemoState {
    fn not_offered(reason: String) -> Self {
        Self {
            is_offered: false,
            reason: Some(reason),
            url: None,
            faults: Vec::new(),
            known_faults: Vec::new(),
            test: None,
            other_servers: 0,
        }
    }
}

/// Returns the stored test with the id of the first test.
async fn stored_test(
    heard: &RequestContext,
    project: &Project,
) -> Result<Option<(TestId, db::StoredDocument)>, Problem> {
    let RequestContext { app, context, .. } = heard;
    let id: TestId = TEST.parse().map_err(|error: model::InvalidId| refused(&error))?;
    let stored = app.db.document(project, DocumentKind::Test, &id, None);
    let stored = app.watch.db(*context, Call("SELECT", "documents"), stored).await?;
    Ok(stored.map(|stored| (id, stored)))
}

/// Stores the first test of a shop at this address. A test that is there stays, unless it is the first test of a shop at another
/// address, as an earlier process of this server had it.
async fn store_test(
    heard: &RequestContext,
    project: &Project,
    (shop, address): (DemoShop, SocketAddr),
) -> Result<(), Problem> {
    let read = async |address| {
        let file = Some(FILE.to_owned());
        documents::read_file(heard, project, (shop.test)(address), file).await
    };
    let expected = match stored_test(heard, project).await? {
        None => Precondition::Nothing,
        Some((_, stored)) => {
            let Some(other) = address_in(&stored.document).filter(|other| *other != address) else {
                return Ok(());
            };
            let (of_other, ..) = read(other).await?;
            if of_other.iter().all(|it| it.document != stored.document) {
                return Ok(());
            }
            Precondition::Version(stored.version)
        }
    };
    let (test, _notices, file) = read(address).await?;
    match documents::keep(heard, test, (project, &file, expected)).await {
        // Another request has stored one at the same time.
        Err(problem) if problem.status() == axum::http::StatusCode::PRECONDITION_FAILED => Ok(()),
        kept => kept.map(drop),
    }
}

/// Returns the first loopback address of an URL in a document.
fn address_in(document: &str) -> Option<SocketAddr> {
    const BEFORE: &str = "http://127.0.0.1:";
    let (_, after) = document.split_once(BEFORE)?;
    let end = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
    format!("127.0.0.1:{}", &after[..end]).parse().ok()
}

fn refused(error: &impl Faulty) -> Problem {
    Problem::new(error.fault(), error.to_string())
}

#[cfg(test)]
mod tests {
    use super::address_in;

    #[test]
    fn the_shop_of_a_test_is_found_by_its_address() {
        let cases = [
            ("url: http://127.0.0.1:4000/orders\n", Some("127.0.0.1:4000")),
            ("url: http://127.0.0.1:4000", Some("127.0.0.1:4000")),
            ("a: http://localhost:1/, b: http://127.0.0.1:2/", Some("127.0.0.1:2")),
            ("url: http://127.0.0.1:/orders", None),
            ("url: http://127.0.0.1:70000/orders", None),
            ("url: https://example.com/", None),
            ("", None),
        ];
        for (document, expected) in cases {
            let found = address_in(document).map(|address| address.to_string());
            assert_eq!(found.as_deref(), expected, "{document}");
        }
    }
}
