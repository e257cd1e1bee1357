//! The error format of the API: RFC 9457, built from a fault.

use axum::{
    body::{Body, Bytes},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use db::DbError;
use model::{ErrorCode, Fault, Faulty};
use serde::Serialize;
use source::{Diagnostic, Severity};
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        ObjectBuilder, RefOr,
        schema::{Schema, Type},
    },
};

use crate::access::token;

/// The media type of a problem.
pub(crate) const CONTENT_TYPE: &str = "application/problem+json";

/// The path of the pages of errors.
pub(crate) const PAGES: &str = "/errors/";

/// The names of the errors that the API responds with.
pub(crate) struct ProblemCode;

impl PartialSchema for ProblemCode {
    fn schema() -> RefOr<Schema> {
        let codes = ErrorCode::ALL.iter().filter(|code| code.is_of_api()).map(|code| code.as_str());
        ObjectBuilder::new()
            .schema_type(Type::String)
            .description(Some("Why a request failed, in one word for programs."))
            .enum_values(Some(codes))
            .build()
            .into()
    }
}

impl ToSchema for ProblemCode {}

/// The body of a problem, for a server whose paths have a prefix.
#[derive(Clone, Debug)]
struct ProblemJson(Bytes);

/// An error response to a request.
#[derive(Debug)]
pub(crate) struct Problem {
    status: StatusCode,
    fault: Fault,
    /// A code that is more specific than the status.
    code: Option<ErrorCode>,
    detail: String,
    diagnostics: Vec<DocumentDiagnostic>,
    /// When a caller may retry, if that may help, in seconds.
    retry_s: u64,
}

/// An error, a warning or a note about a document.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DocumentDiagnostic {
    /// `error`, `warning` or `note`.
    severity: &'static str,
    message: String,
    file: String,
    /// From 1; none if it has no location.
    line: Option<u32>,
    /// In characters, from 1.
    column: Option<u32>,
}

/// Why a request failed (RFC 9457).
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Problem)]
pub(crate) struct ProblemBody<'a> {
    /// Where the error is explained: a path of this server.
    #[serde(rename = "type")]
    kind: String,
    title: &'static str,
    /// The status of the response.
    status: u16,
    /// Why the request failed, for programs. Later versions may add codes.
    #[schema(value_type = ProblemCode)]
    code: ErrorCode,
    /// What happened, and what to do; the errors of a document with their snippets.
    detail: &'a str,
    /// The errors of a document, each with its location.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    diagnostics: &'a [DocumentDiagnostic],
}

impl Problem {
    pub(crate) fn new(fault: Fault, detail: impl Into<String>) -> Self {
        Self {
            status: status(fault),
            fault,
            code: None,
            detail: token::hide(detail.into()),
            diagnostics: Vec::new(),
            retry_s: 1,
        }
    }

    /// Returns the error of a refused document, with every diagnostic in it, and all of them rendered.
    pub(crate) fn document(diagnostics: &[Diagnostic]) -> Self {
        let picture = source::draw(diagnostics, source::Colour::Never);
        Self {
            diagnostics: diagnostics.iter().map(document_diagnostic).collect(),
            // Not 400: the request itself is valid.
            ..Self::new(Fault::Invalid, picture)
                .with_status(StatusCode::UNPROCESSABLE_ENTITY)
                .with_code(ErrorCode::InvalidDocument)
        }
    }

    /// The status of the response.
    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }

    /// Returns the same problem with a status that is more specific than its fault.
    pub(crate) fn with_status(self, status: StatusCode) -> Self {
        Self { status, ..self }
    }

    /// Returns the same problem with another time in seconds after which a caller may retry.
    pub(crate) fn with_retry(self, retry_s: u64) -> Self {
        Self { retry_s, ..self }
    }

    /// Returns the same problem with a code that is more specific than its status.
    pub(crate) fn with_code(self, code: ErrorCode) -> Self {
        debug_assert!(code.is_of_api(), "`{code}` is not among the codes of the API");
        Self { code: Some(code), ..self }
    }
}

impl From<DbError> for Problem {
    fn from(error: DbError) -> Self {
        let problem = Self::new(error.fault(), error.to_string());
        match error {
            DbError::Changed { .. } => problem.with_status(StatusCode::PRECONDITION_FAILED),
            DbError::NoSecretKey { .. } => problem.with_code(ErrorCode::SecretKeyMissing),
            DbError::LostSecretKey { .. } => problem.with_code(ErrorCode::SecretKeyLost),
            _ => problem,
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        if self.fault == Fault::Internal {
            tracing::error!(detail = self.detail, "internal error");
        }
        let code = self.code.unwrap_or(ErrorCode::of_status(self.status.as_u16()));
        let form = ProblemBody {
            kind: format!("{PAGES}{}", code),
            title: self.status.canonical_reason().unwrap_or("error"),
            status: self.status.as_u16(),
            code,
            detail: &self.detail,
            diagnostics: &self.diagnostics,
        };
        // A struct of plain strings and numbers can always be serialized.
        let body = Bytes::from(serde_json::to_vec(&form).unwrap_or_default());
        let mut response =
            (self.status, [(header::CONTENT_TYPE, CONTENT_TYPE)], body.clone()).into_response();
        response.extensions_mut().insert(ProblemJson(body));
        // The span of the request reads it.
        response.extensions_mut().insert(self.fault);
        if self.fault.is_transient() {
            response
                .headers_mut()
                .insert(header::RETRY_AFTER, axum::http::HeaderValue::from(self.retry_s));
        }
        response
    }
}

/// Adds the prefix of this server's paths to the page that a problem leads to.
pub(crate) fn with_prefix(prefix: &str, mut response: Response) -> Response {
    let Some(ProblemJson(json)) = response.extensions().get::<ProblemJson>() else {
        return response;
    };
    let text = String::from_utf8_lossy(json);
    let text = text.replacen(PAGES, &format!("{prefix}{PAGES}"), 1);
    response.headers_mut().remove(header::CONTENT_LENGTH);
    *response.body_mut() = Body::from(text);
    response
}

fn status(fault: Fault) -> StatusCode {
    match fault {
        Fault::Invalid => StatusCode::BAD_REQUEST,
        Fault::Missing => StatusCode::NOT_FOUND,
        Fault::Conflict => StatusCode::CONFLICT,
        Fault::Denied => StatusCode::FORBIDDEN,
        Fault::Upstream => StatusCode::SERVICE_UNAVAILABLE,
        Fault::Overloaded => StatusCode::TOO_MANY_REQUESTS,
        Fault::Internal => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

fn document_diagnostic(diagnostic: &Diagnostic) -> DocumentDiagnostic {
    let place = diagnostic.span.map(|span| diagnostic.text.place(span.start));
    DocumentDiagnostic {
        severity: match diagnostic.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
        },
        message: diagnostic.message.clone(),
        file: diagnostic.text.name().to_owned(),
        line: place.map(|place| place.line as u32),
        column: place.map(|place| place.column as u32),
    }
}
