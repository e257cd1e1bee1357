//! What a request gives: query, path and body, each refused in the one form of errors.

use std::str::FromStr;

use axum::{
    RequestPartsExt,
    extract::{FromRequest, FromRequestParts, Path, Query, Request, rejection::StringRejection},
    http::request::Parts,
};
use model::{Fault, InvalidId};
use serde::de::DeserializeOwned;

use super::{App, problem::Problem};

/// The query of a request. A type of it MUST refuse unknown fields: a misspelt `project` is not the default one.
pub(super) struct Asked<T>(pub(super) T);

/// The one id in a path.
pub(super) struct Named<T>(pub(super) T);

/// A body that is text.
pub(super) struct Document(pub(super) String);

impl<T: DeserializeOwned + Send + 'static> FromRequestParts<App> for Asked<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _app: &App) -> Result<Self, Problem> {
        let query = parts.extract::<Query<T>>().await;
        query.map(|Query(asked)| Self(asked)).map_err(|rejection| {
            Problem::new(Fault::Invalid, rejection.body_text()).with_status(rejection.status())
        })
    }
}

impl<T: FromStr<Err = InvalidId>> FromRequestParts<App> for Named<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _app: &App) -> Result<Self, Problem> {
        let Path(text) = parts.extract::<Path<String>>().await.map_err(|rejection| {
            Problem::new(Fault::Invalid, rejection.body_text()).with_status(rejection.status())
        })?;
        let id = text
            .parse()
            .map_err(|error: InvalidId| Problem::new(Fault::Invalid, error.to_string()))?;
        Ok(Self(id))
    }
}

impl FromRequest<App> for Document {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        let body = String::from_request(request, app).await;
        body.map(Self).map_err(|rejection: StringRejection| {
            Problem::new(Fault::Invalid, rejection.body_text()).with_status(rejection.status())
        })
    }
}
