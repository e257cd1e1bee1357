//! The pages of errors: where the `type` of a problem leads.

use axum::{
    Router,
    extract::Path,
    response::{IntoResponse, Response},
    routing::get,
};
use model::{ErrorCode, ErrorPage, Fault};

use crate::http::{app::App, problem::Problem};

pub(super) fn routes() -> Router<App> {
    Router::new().route("/errors/{code}", get(page))
}

/// Explains an error, as a text.
async fn page(Path(name): Path<String>) -> Response {
    let Some(code) = ErrorCode::parse(&name) else {
        let detail = format!(
            "there is no error `{name}`: its page is in the documentation of another version"
        );
        return Problem::new(Fault::Missing, detail).into_response();
    };
    let ErrorPage { message, cause, advice } = code.page();
    format!("{code}\n\n{message}\n\nCause: {cause}\n\nWhat to do: {advice}\n").into_response()
}
