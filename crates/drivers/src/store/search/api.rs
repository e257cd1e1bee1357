//! The calls of the API, and the parts of their answers that are read.

use std::{collections::BTreeMap, time::Duration};

use http::{Method, StatusCode};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value as Json, json};

use super::{
    super::{
        QueryResult,
        connection::{StoreConnection, StoreResponse},
    },
    layout::{self, FAMILIES, IndexInfo, Refresh},
};

/// How long a point in time lives after the last call that named it.
pub(super) const KEEP_ALIVE: &str = "1m";

/// The maximum bytes of the names of indices in one path. A server reads lines of 4,096 bytes.
const NAMES_BYTES_MAX: usize = 3_000;

/// The interval in which an index is refreshed by default.
const DEFAULT_REFRESH: Duration = Duration::from_secs(1);

/// The characters of names and patterns of indices that a path may not contain.
const ENCODED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'*').remove(b',');

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Product {
    OpenSearch,
    Elasticsearch,
}

#[derive(Debug)]
pub(super) struct SearchApi {
    product: Product,
    connection: StoreConnection,
}

/// An open point in time.
#[derive(Debug, Deserialize)]
pub(super) struct PointInTime {
    #[serde(alias = "pit_id")]
    pub(super) id: String,
    /// The shards that it covers. Elasticsearch fails where one is missing, and old versions state none.
    #[serde(rename = "_shards")]
    pub(super) shards: Option<ShardCounts>,
}

/// The shards of a call. A shard that is skipped is one that cannot match, and counts as successful.
#[derive(Debug, Deserialize)]
pub(super) struct ShardCounts {
    pub(super) total: u64,
    pub(super) successful: u64,
    pub(super) failed: u64,
    #[serde(default)]
    pub(super) failures: Vec<Json>,
}

/// One page of a search.
#[derive(Debug, Deserialize)]
pub(super) struct SearchPage {
    pub(super) pit_id: Option<String>,
    pub(super) timed_out: bool,
    #[serde(rename = "_shards")]
    pub(super) shards: ShardCounts,
    pub(super) hits: SearchHits,
}

#[derive(Debug, Deserialize)]
pub(super) struct SearchHits {
    pub(super) total: HitTotal,
    pub(super) hits: Vec<SearchHit>,
}

#[derive(Debug, Deserialize)]
pub(super) struct HitTotal {
    pub(super) value: u64,
    /// Whether the value is exact: `eq`.
    pub(super) relation: String,
}

/// A document.
#[derive(Debug, Deserialize)]
pub(super) struct SearchHit {
    #[serde(rename = "_index")]
    pub(super) index: String,
    #[serde(rename = "_id")]
    pub(super) id: String,
    #[serde(rename = "_source")]
    pub(super) source: Option<Json>,
    pub(super) sort: Option<Vec<Json>>,
}

#[derive(Debug, Deserialize)]
struct ErrorBody {
    error: ErrorCause,
}

#[derive(Debug, Deserialize)]
struct ErrorCause {
    r#type: String,
    reason: Option<String>,
    index: Option<String>,
}

impl Product {
    fn name(self) -> &'static str {
        match self {
            Self::OpenSearch => "OpenSearch",
            Self::Elasticsearch => "Elasticsearch",
        }
    }

    fn other(self) -> Self {
        match self {
            Self::OpenSearch => Self::Elasticsearch,
            Self::Elasticsearch => Self::OpenSearch,
        }
    }
}

impl SearchApi {
    pub(super) fn new(product: Product, connection: StoreConnection) -> Self {
        Self { product, connection }
    }

    /// Returns the indices that a pattern matches, the closed ones too.
    pub(super) async fn indices(
        &self,
        pattern: &str,
    ) -> Result<BTreeMap<String, IndexInfo>, QueryResult> {
        let names = utf8_percent_encode(pattern, ENCODED);
        // The mapping of an index may have thousands of fields.
        let fields: String =
            FAMILIES.iter().flatten().map(|it| format!(",*.mappings.properties.{it}")).collect();
        let path = format!(
            "/{names}?flat_settings=true&expand_wildcards=open,closed&filter_path=*.settings{fields}"
        );
        let response = self.connection.get(&path, "application/json").await?;
        if response.status == StatusCode::NOT_FOUND
            && let Some(cause) = cause(&response)
            && cause.r#type == "index_not_found_exception"
        {
            let index = cause.index.as_deref().unwrap_or(pattern);
            return Err(self.connection.refused(format!("it has no index `{index}`")));
        }
        match response.status {
            StatusCode::OK => self.read(&response),
            _ => Err(self.connection.without_trace(&response)),
        }
    }

    /// Returns the interval in which the cluster refreshes indices that set none. Only OpenSearch has such a setting. Without the
    /// permission to read it, it is the default of both.
    pub(super) async fn cluster_refresh(&self) -> Duration {
        if self.product == Product::Elasticsearch {
            return DEFAULT_REFRESH;
        }
        let path = "/_cluster/settings?include_defaults=true&filter_path=*.cluster.default.index";
        let Ok(response) = self.connection.get(path, "application/json").await else {
            return DEFAULT_REFRESH;
        };
        let settings: Json = serde_json::from_slice(&response.body).unwrap_or_default();
        let level =
            |name| settings[name]["cluster"]["default"]["index"]["refresh_interval"].as_str();
        let interval = ["transient", "persistent", "defaults"].into_iter().find_map(level);
        match interval.and_then(layout::interval) {
            Some(Refresh::Every(interval)) => interval,
            Some(Refresh::Never) | None => DEFAULT_REFRESH,
        }
    }

    /// Divides names of indices into parts that fit into a path.
    pub(super) fn parts(names: &[String]) -> Vec<Vec<String>> {
        let mut parts: Vec<Vec<String>> = Vec::new();
        let mut bytes = 0;
        for name in names {
            let name = utf8_percent_encode(name, ENCODED).to_string();
            bytes += name.len() + 1;
            match parts.last_mut() {
                Some(part) if bytes <= NAMES_BYTES_MAX => part.push(name),
                _ => {
                    bytes = name.len() + 1;
                    parts.push(vec![name]);
                }
            }
        }
        parts
    }

    /// Opens a point in time over these indices, whose names are encoded.
    pub(super) async fn open(&self, names: &[String]) -> Result<PointInTime, QueryResult> {
        let names = names.join(",");
        let path = match self.product {
            // A replica may lag behind its primary by more than a refresh where segments are copied.
            Product::OpenSearch => format!(
                "/{names}/_search/point_in_time?keep_alive={KEEP_ALIVE}&preference=_primary"
            ),
            Product::Elasticsearch => format!("/{names}/_pit?keep_alive={KEEP_ALIVE}"),
        };
        let response = self.connection.send_json(Method::POST, &path, None).await?;
        self.expect(&response).map_err(|failure| match failure {
            // Each does not know the path of the other.
            QueryResult::Refused { message } if response.status == StatusCode::BAD_REQUEST => {
                let other = self.product.other().name();
                QueryResult::Refused { message: format!("{message}; is it {other}?") }
            }
            other => other,
        })
    }

    /// Sends a search that names a point in time. All pages of a query together have a maximum of bytes, of which `bytes` are read.
    pub(super) async fn search(
        &self,
        request: &Json,
        bytes: &mut usize,
    ) -> Result<SearchPage, QueryResult> {
        // What some shards have is evidence, and the others are counted.
        let path = "/_search?allow_partial_search_results=true";
        let response = self.connection.send_json(Method::POST, path, Some(request)).await?;
        *bytes += response.body.len();
        match *bytes > self.connection.answer_bytes_max() {
            true => Err(self.connection.too_large()),
            false => self.expect(&response),
        }
    }

    /// Closes a point in time. A failure is of no interest: it expires.
    pub(super) async fn close(&self, point: &str) {
        let (path, body) = match self.product {
            Product::OpenSearch => ("/_search/point_in_time", json!({ "pit_id": [point] })),
            Product::Elasticsearch => ("/_pit", json!({ "id": point })),
        };
        let _closed = self.connection.send_json(Method::DELETE, path, Some(&body)).await;
    }

    fn expect<T: DeserializeOwned>(&self, response: &StoreResponse) -> Result<T, QueryResult> {
        match response.status {
            StatusCode::OK => self.read(response),
            // The indices were there a moment ago, and the point in time too.
            StatusCode::NOT_FOUND if let Some(cause) = cause(response) => {
                let reason = cause.reason.unwrap_or(cause.r#type);
                Err(self.connection.failed(format!("404 Not Found: {reason}")))
            }
            _ => Err(self.connection.without_trace(response)),
        }
    }

    fn read<T: DeserializeOwned>(&self, response: &StoreResponse) -> Result<T, QueryResult> {
        let name = self.product.name();
        serde_json::from_slice(&response.body)
            .map_err(|error| self.connection.failed(format!("not an answer of {name}: {error}")))
    }
}

fn cause(response: &StoreResponse) -> Option<ErrorCause> {
    serde_json::from_slice(&response.body).ok().map(|ErrorBody { error }| error)
}
