//! The paths of each kind of document. All kinds behave the same. Each kind has its own operations, so that clients and the
//! access table can name them.

use axum::{Json, http::StatusCode, response::Response};
use model::{DocumentKind, TestId};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    ApplyResult, Body, Condition, DeleteQuery, ListedDocument, Listing, PutQuery, ReadQuery,
    Version,
};
use crate::{
    api::{openapi, page::Page},
    http::{
        app::App,
        extract::{Document, PathId, QueryParams, RequestContext},
        problem::Problem,
    },
};

/// Defines the operations of one kind.
macro_rules! collection {
    (
        $module:ident, $kind:ident, $tag:literal,
        $all:literal, $one:literal, $versions:literal,
        $list_id:literal, $read_id:literal, $versions_id:literal, $put_id:literal, $delete_id:literal
    ) => {
        mod $module {
            use super::*;

            const KIND: DocumentKind = DocumentKind::$kind;

            pub(super) fn routes() -> OpenApiRouter<App> {
                OpenApiRouter::new()
                    .routes(routes!(list))
                    .routes(routes!(read, put, delete))
                    .routes(routes!(versions))
            }

            /// All of them, by id, a page at a time.
            #[utoipa::path(
                get, path = $all, tag = $tag, operation_id = $list_id,
                params(Listing),
                responses((status = 200, description = "A page.", body = Page<ListedDocument>)),
            )]
            async fn list(
                heard: RequestContext,
                QueryParams(asked): QueryParams<Listing>,
            ) -> Result<Json<Page<ListedDocument>>, Problem> {
                super::super::list(KIND, &heard, &asked).await
            }

            /// One of them, as written; secrets are hidden.
            #[utoipa::path(
                get, path = $one, tag = $tag, operation_id = $read_id,
                params(ReadQuery, ("id" = inline(openapi::Word), Path, description = "Its id.")),
                responses((
                    status = 200,
                    description = "The document.",
                    content((Body = "application/json"), (Body = "application/yaml")),
                    headers(("etag" = String, description = "Its version, in quotes.")),
                )),
            )]
            async fn read(
                heard: RequestContext,
                QueryParams(asked): QueryParams<ReadQuery>,
                PathId(id): PathId<TestId>,
            ) -> Result<Response, Problem> {
                super::super::read(KIND, &heard, &asked, &id).await
            }

            /// Its versions, the newest first, a page at a time.
            #[utoipa::path(
                get, path = $versions, tag = $tag, operation_id = $versions_id,
                params(Listing, ("id" = inline(openapi::Word), Path, description = "Its id.")),
                responses((status = 200, description = "A page.", body = Page<Version>)),
            )]
            async fn versions(
                heard: RequestContext,
                QueryParams(asked): QueryParams<Listing>,
                PathId(id): PathId<TestId>,
            ) -> Result<Json<Page<Version>>, Problem> {
                super::super::versions(KIND, &heard, &asked, &id).await
            }

            /// Keeps the document: a new version where it differs from the current one.
            #[utoipa::path(
                put, path = $one, tag = $tag, operation_id = $put_id,
                params(
                    PutQuery,
                    ("id" = inline(openapi::Word), Path, description = "Its id."),
                    Condition,
                ),
                request_body(content((Body = "application/yaml"), (Body = "application/json"))),
                responses(
                    (status = 200, description = "It is kept.", body = ApplyResult, headers(("etag" = String, description = "Its version, in quotes."))),
                    (status = 201, description = "It is new.", body = ApplyResult, headers(("etag" = String, description = "Its version, in quotes."))),
                ),
            )]
            async fn put(
                heard: RequestContext,
                QueryParams(asked): QueryParams<PutQuery>,
                PathId(id): PathId<TestId>,
                Document(body): Document,
            ) -> Result<Response, Problem> {
                super::super::put(KIND, &heard, (asked, id), body).await
            }

            /// Deletes it.
            #[utoipa::path(
                delete, path = $one, tag = $tag, operation_id = $delete_id,
                params(
                    DeleteQuery,
                    ("id" = inline(openapi::Word), Path, description = "Its id."),
                    Condition,
                ),
                responses((status = 204, description = "It is gone.")),
            )]
            async fn delete(
                heard: RequestContext,
                QueryParams(asked): QueryParams<DeleteQuery>,
                PathId(id): PathId<TestId>,
            ) -> Result<StatusCode, Problem> {
                super::super::delete(KIND, &heard, &asked, &id).await
            }
        }
    };
}

collection!(
    tests,
    Test,
    "tests",
    "/api/v1/tests",
    "/api/v1/tests/{id}",
    "/api/v1/tests/{id}/versions",
    "listTests",
    "readTest",
    "listTestVersions",
    "putTest",
    "deleteTest"
);
collection!(
    test_suites,
    TestSuite,
    "test suites",
    "/api/v1/test-suites",
    "/api/v1/test-suites/{id}",
    "/api/v1/test-suites/{id}/versions",
    "listTestSuites",
    "readTestSuite",
    "listTestSuiteVersions",
    "putTestSuite",
    "deleteTestSuite"
);
collection!(
    variable_sets,
    VariableSet,
    "variable sets",
    "/api/v1/variable-sets",
    "/api/v1/variable-sets/{id}",
    "/api/v1/variable-sets/{id}/versions",
    "listVariableSets",
    "readVariableSet",
    "listVariableSetVersions",
    "putVariableSet",
    "deleteVariableSet"
);
collection!(
    trace_stores,
    TraceStore,
    "trace stores",
    "/api/v1/trace-stores",
    "/api/v1/trace-stores/{id}",
    "/api/v1/trace-stores/{id}/versions",
    "listTraceStores",
    "readTraceStore",
    "listTraceStoreVersions",
    "putTraceStore",
    "deleteTraceStore"
);
collection!(
    settle_profiles,
    SettleProfile,
    "settle profiles",
    "/api/v1/settle-profiles",
    "/api/v1/settle-profiles/{id}",
    "/api/v1/settle-profiles/{id}/versions",
    "listSettleProfiles",
    "readSettleProfile",
    "listSettleProfileVersions",
    "putSettleProfile",
    "deleteSettleProfile"
);
collection!(
    analyzers,
    Analyzer,
    "analyzers",
    "/api/v1/analyzers",
    "/api/v1/analyzers/{id}",
    "/api/v1/analyzers/{id}/versions",
    "listAnalyzers",
    "readAnalyzer",
    "listAnalyzerVersions",
    "putAnalyzer",
    "deleteAnalyzer"
);
collection!(
    quality_gates,
    QualityGate,
    "quality gates",
    "/api/v1/quality-gates",
    "/api/v1/quality-gates/{id}",
    "/api/v1/quality-gates/{id}/versions",
    "listQualityGates",
    "readQualityGate",
    "listQualityGateVersions",
    "putQualityGate",
    "deleteQualityGate"
);

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .merge(tests::routes())
        .merge(test_suites::routes())
        .merge(variable_sets::routes())
        .merge(trace_stores::routes())
        .merge(settle_profiles::routes())
        .merge(analyzers::routes())
        .merge(quality_gates::routes())
}
