//! Pagination: `?limit=&cursor=`. The response has the items and the cursor of the next page.
//!
//! A cursor is opaque to callers: its content may change with any version.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use model::Fault;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::http::problem::Problem;

/// The default number of items on a page.
pub(super) const LIMIT_DEFAULT: u32 = 50;
/// The maximum number of items on a page.
pub(super) const LIMIT_MAX: u32 = 500;

/// The query parameters of a paginated list.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Paging {
    /// Items of a page: 1 to 500, 50 by default.
    #[serde(default)]
    #[param(minimum = 1, maximum = 500)]
    pub(super) limit: Option<u32>,
    /// The `next` of the page before.
    #[serde(default)]
    pub(super) cursor: Option<String>,
}

/// A page of a list.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Page<T> {
    items: Vec<T>,
    /// The cursor of the next page; null on the last one.
    #[schema(required)]
    next: Option<String>,
}

impl<T> Page<T> {
    /// Returns a page of at most `limit` items. An additional item means that there is a next page; `key` returns the key of an
    /// item, for the cursor.
    pub(super) fn new(mut items: Vec<T>, limit: u32, key: impl Fn(&T) -> String) -> Self {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let is_last = items.len() <= limit;
        items.truncate(limit);
        let last = items.last().filter(|_| !is_last);
        let next = last.map(|last| BASE64_URL_SAFE_NO_PAD.encode(key(last)));
        Self { items, next }
    }
}

/// Validates the requested number of items.
pub(super) fn limit(asked: Option<u32>) -> Result<u32, Problem> {
    match asked.unwrap_or(LIMIT_DEFAULT) {
        limit @ 1..=LIMIT_MAX => Ok(limit),
        other => {
            let detail = format!("`limit` is {other}: expected 1 to {LIMIT_MAX}");
            Err(Problem::new(Fault::Invalid, detail))
        }
    }
}

/// Decodes the key in a cursor.
pub(super) fn key<T: std::str::FromStr>(cursor: Option<&str>) -> Result<Option<T>, Problem> {
    let Some(cursor) = cursor else { return Ok(None) };
    let bytes = BASE64_URL_SAFE_NO_PAD.decode(cursor).ok();
    let key = bytes.and_then(|bytes| String::from_utf8(bytes).ok()?.parse().ok());
    let missing = || {
        Problem::new(
            Fault::Missing,
            "there is no page at this `cursor`: take the `next` of the page before",
        )
    };
    key.map(Some).ok_or_else(missing)
}
