//! Lists of a server, which come in pages.

use serde::Deserialize;
use serde_json::Value;

use super::{client::Server, error::ClientError, http::Request};

/// The maximum number of items of a page.
const PAGE_MAX: usize = 500;

#[derive(Debug, Deserialize)]
struct Page {
    items: Vec<Value>,
    next: Option<String>,
}

impl Server {
    /// Returns the items of a list, at most this many. `first` makes the request for its first page.
    pub(super) async fn pages(
        &self,
        first: impl Fn() -> Request,
        items_max: usize,
    ) -> Result<Vec<Value>, ClientError> {
        let mut all = Vec::new();
        let mut cursor: Option<String> = None;
        loop {
            let limit = (items_max - all.len()).min(PAGE_MAX).to_string();
            let mut request = first().query(&[("limit", &limit)]);
            if let Some(cursor) = &cursor {
                request = request.query(&[("cursor", cursor)]);
            }
            let Page { items, next } = self.send(request).await?;
            all.extend(items);
            all.truncate(items_max);
            match next.filter(|_| all.len() < items_max) {
                Some(next) => cursor = Some(next),
                None => return Ok(all),
            }
        }
    }
}
