//! The OpenAPI 3.1 document of the API. It is generated from the handlers, served at `/api/v1/openapi.json` and stored in
//! `docs/api/openapi.json`, where a test compares it.
//!
//! This module adds what all operations share: the error response with its one format. Deliberately absent:
//! probes and metrics; their clients know them.

use std::collections::BTreeMap;

use axum::{
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        ComponentsBuilder, ContentBuilder, InfoBuilder, KnownFormat, ObjectBuilder, OneOfBuilder,
        OpenApi, Ref, RefOr, ResponseBuilder, ResponsesBuilder, SchemaFormat,
        path::Operation,
        schema::{Schema, SchemaType, Type},
    },
};

use crate::http::problem;

/// The version of the API, which is in its paths.
pub const API_VERSION: &str = "v1";

/// The path of the document.
pub(super) const PATH: &str = "/api/v1/openapi.json";

/// The pattern of a word, such as a project or the id of a test.
const WORD: &str = "^[A-Za-z0-9._-]{1,128}$";

/// The pattern of a file name.
const FILE: &str = "^[^\\u0000-\\u001f\\u007f-\\u009f]{1,1024}$";
/// What is accepted as a text to search for.
const SEARCH_TEXT: &str = r"^[^\u0000-\u001f\u007f-\u009f]{0,200}$";

/// The schemas of outcomes and events, by name. A test compares them with the output of the model.
const OUTCOME: &str = include_str!("outcome.schemas.json");

/// Completes the document of these operations: adds a title, and the error response of each.
pub(super) fn document(mut api: OpenApi) -> OpenApi {
    api.info = InfoBuilder::new()
        .title("Qualitytrace")
        .version(API_VERSION)
        .description(Some(
            "Tests, runs and what they found. Fields may be added to answers at any time: a client passes over those \
             that it does not know. Requests with unknown fields are refused.",
        ))
        .build();
    for item in api.paths.paths.values_mut() {
        for operation in operations(item) {
            let known = std::mem::take(&mut operation.responses);
            operation.responses = ResponsesBuilder::from(known)
                .response(
                    "default",
                    ResponseBuilder::new()
                        .description("What went wrong, as RFC 9457 has it.")
                        .content(
                            problem::CONTENT_TYPE,
                            ContentBuilder::new()
                                .schema(Some(Ref::from_schema_name(problem::ProblemBody::name())))
                                .build(),
                        )
                        .build(),
                )
                .build();
        }
    }
    let mut schemas = Vec::new();
    problem::ProblemBody::schemas(&mut schemas);
    schemas.push((problem::ProblemBody::name().into_owned(), problem::ProblemBody::schema()));
    schemas.extend(of_the_model());
    let components = api.components.take().unwrap_or_default();
    api.components = Some(ComponentsBuilder::from(components).schemas_from_iter(schemas).build());
    api
}

/// Returns the schemas of the model's types, since the model does not depend on this document.
fn of_the_model() -> BTreeMap<String, RefOr<Schema>> {
    serde_json::from_str(OUTCOME).expect("the file of schemas is one of schemas")
}

fn operations(item: &mut utoipa::openapi::PathItem) -> impl Iterator<Item = &mut Operation> {
    [&mut item.get, &mut item.put, &mut item.post, &mut item.delete, &mut item.patch]
        .into_iter()
        .flatten()
}

/// Renders the document as JSON.
pub(super) fn text(api: &OpenApi) -> String {
    // A document of plain strings can always be serialized.
    let text = api.to_pretty_json().unwrap_or_default();
    format!("{text}\n")
}

/// Returns a response with the document.
pub(super) fn answer(text: &'static str) -> Response {
    (StatusCode::OK, [(header::CONTENT_TYPE, "application/json")], text).into_response()
}

/// A word: a project, the id of a test or of another document.
pub(super) struct Word;

/// The id of a run.
pub(super) struct RunId;

/// The id of a span.
pub(super) struct SpanId;

impl PartialSchema for Word {
    fn schema() -> RefOr<Schema> {
        word()
    }
}

impl ToSchema for Word {}

impl PartialSchema for RunId {
    fn schema() -> RefOr<Schema> {
        run_id()
    }
}

impl ToSchema for RunId {}

impl PartialSchema for SpanId {
    fn schema() -> RefOr<Schema> {
        let pattern = Some("^(?!0{16})[0-9a-f]{16}$");
        ObjectBuilder::new().schema_type(Type::String).pattern(pattern).build().into()
    }
}

impl ToSchema for SpanId {}

/// The schema of an idempotency key.
pub(super) fn key() -> RefOr<Schema> {
    ObjectBuilder::new().schema_type(Type::String).pattern(Some("^[!-~]{1,255}$")).build().into()
}

/// The schema of a [`Word`].
pub(super) fn word() -> RefOr<Schema> {
    ObjectBuilder::new().schema_type(Type::String).pattern(Some(WORD)).build().into()
}

/// The schema of a [`RunId`].
pub(super) fn run_id() -> RefOr<Schema> {
    text_as(SchemaFormat::Custom("uuid".to_owned()))
}

/// The schema of a timestamp, RFC 3339 in UTC.
pub(super) fn moment() -> RefOr<Schema> {
    text_as(SchemaFormat::KnownFormat(KnownFormat::DateTime))
}

/// The schema of a timestamp, or null if it is unknown.
pub(super) fn moment_or_null() -> RefOr<Schema> {
    let types = SchemaType::from_iter([Type::String, Type::Null]);
    let format = SchemaFormat::KnownFormat(KnownFormat::DateTime);
    ObjectBuilder::new().schema_type(types).format(Some(format)).build().into()
}

/// The schema of a run's outcome.
pub(super) fn outcome() -> RefOr<Schema> {
    Ref::from_schema_name("Outcome").into()
}

/// The schema of an outcome, or null if the run has not ended.
pub(super) fn outcome_or_null() -> RefOr<Schema> {
    or_null("Outcome")
}

/// The schema of a verdict, or null if there is none yet.
pub(super) fn verdict_or_null() -> RefOr<Schema> {
    or_null("Verdict")
}

/// The schema of an event of a run.
pub(super) fn event() -> RefOr<Schema> {
    Ref::from_schema_name("Event").into()
}

fn or_null(name: &str) -> RefOr<Schema> {
    let null = ObjectBuilder::new().schema_type(Type::Null);
    OneOfBuilder::new().item(null).item(Ref::from_schema_name(name)).into()
}

/// Binary data.
pub(super) struct Bytes;

impl PartialSchema for Bytes {
    fn schema() -> RefOr<Schema> {
        text_as(SchemaFormat::KnownFormat(KnownFormat::Binary))
    }
}

impl ToSchema for Bytes {}

/// The schema of a file name, as [`given::file`](super::given::file) accepts it.
pub(super) fn file() -> RefOr<Schema> {
    ObjectBuilder::new().schema_type(Type::String).pattern(Some(FILE)).build().into()
}

/// The schema of a text to search for.
pub(super) fn search_text() -> RefOr<Schema> {
    ObjectBuilder::new().schema_type(Type::String).pattern(Some(SEARCH_TEXT)).build().into()
}

/// The schema of an opaque string that the server issues: an ETag, or a cursor.
pub(super) fn opaque() -> RefOr<Schema> {
    ObjectBuilder::new().schema_type(Type::String).build().into()
}

fn text_as(format: SchemaFormat) -> RefOr<Schema> {
    ObjectBuilder::new().schema_type(Type::String).format(Some(format)).build().into()
}
