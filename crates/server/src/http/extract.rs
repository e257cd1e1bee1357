//! Extractors for the query, path and body of a request. All refuse invalid input with the same error format.

use std::{str::FromStr, time::Duration};

use axum::{
    RequestPartsExt,
    extract::{FromRequest, FromRequestParts, Path, Query, Request, rejection::StringRejection},
    http::{HeaderMap, StatusCode, request::Parts},
};
use model::{Fault, InvalidId};
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use super::{app::App, problem::Problem};
use crate::{access::Caller, telemetry::traceparent::TraceParent};

/// How long a body may take to arrive.
const BODY_MAX: Duration = Duration::from_secs(15);

/// The query of a request. Its type MUST refuse unknown fields: a misspelt `project` must not select the default project.
pub(crate) struct QueryParams<T>(pub(crate) T);

/// The only id in a path.
pub(crate) struct PathId<T>(pub(crate) T);

/// Both ids in a path.
pub(crate) struct PathIds<T, U>(pub(crate) T, pub(crate) U);

/// The context of a document handler: the application state, the trace context, the caller, and the request headers.
pub(crate) struct RequestContext {
    pub(crate) app: App,
    pub(crate) context: TraceParent,
    pub(crate) caller: Caller,
    pub(crate) headers: HeaderMap,
}

/// A text body.
pub(crate) struct Document(pub(crate) String);

/// The maximum length of a file name, in characters.
const FILE_CHARACTERS_MAX: usize = 1024;

/// Validates the file name that a caller sent.
pub(crate) fn file(name: Option<String>) -> Result<String, Problem> {
    let name = name.unwrap_or_else(|| "document.yaml".to_owned());
    let is_plain = !name.is_empty() && !name.contains(char::is_control);
    if !is_plain || name.chars().count() > FILE_CHARACTERS_MAX {
        let detail = format!(
            "`file` is no name: expected 1 to {FILE_CHARACTERS_MAX} characters, none of them a control character"
        );
        return Err(Problem::new(Fault::Invalid, detail));
    }
    Ok(name)
}

impl<T: DeserializeOwned + Send + 'static> FromRequestParts<App> for QueryParams<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _app: &App) -> Result<Self, Problem> {
        let query = parts.extract::<Query<T>>().await;
        query.map(|Query(asked)| Self(asked)).map_err(|rejection| {
            Problem::new(Fault::Invalid, rejection.body_text()).with_status(rejection.status())
        })
    }
}

impl<T: FromStr<Err = InvalidId>> FromRequestParts<App> for PathId<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _app: &App) -> Result<Self, Problem> {
        let Path(text) = parts.extract::<Path<String>>().await.map_err(|rejection| {
            Problem::new(Fault::Invalid, rejection.body_text()).with_status(rejection.status())
        })?;
        Ok(Self(id(&text)?))
    }
}

impl<T, U> FromRequestParts<App> for PathIds<T, U>
where
    T: FromStr<Err = InvalidId>,
    U: FromStr<Err = InvalidId>,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _app: &App) -> Result<Self, Problem> {
        let path = parts.extract::<Path<(String, String)>>().await;
        let Path((first, second)) = path.map_err(|rejection| {
            Problem::new(Fault::Invalid, rejection.body_text()).with_status(rejection.status())
        })?;
        Ok(Self(id(&first)?, id(&second)?))
    }
}

fn id<T: FromStr<Err = InvalidId>>(text: &str) -> Result<T, Problem> {
    text.parse().map_err(|error: InvalidId| Problem::new(Fault::Invalid, error.to_string()))
}

impl FromRequestParts<App> for RequestContext {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        // The middlewares that observe and authenticate run before every route.
        let context = parts.extensions.get::<TraceParent>().copied();
        let caller = parts.extensions.get::<Caller>().cloned();
        let (context, caller) = context
            .zip(caller)
            .ok_or_else(|| Problem::new(Fault::Internal, "the request has no context"))?;
        Ok(Self { app: app.clone(), context, caller, headers: parts.headers.clone() })
    }
}

impl FromRequest<App> for Document {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        let body = timeout(BODY_MAX, String::from_request(request, app)).await.map_err(|_| {
            let detail = format!("the body did not arrive within {} s", BODY_MAX.as_secs());
            Problem::new(Fault::Invalid, detail).with_status(StatusCode::REQUEST_TIMEOUT)
        })?;
        body.map(Self).map_err(|rejection: StringRejection| {
            Problem::new(Fault::Invalid, rejection.body_text()).with_status(rejection.status())
        })
    }
}
