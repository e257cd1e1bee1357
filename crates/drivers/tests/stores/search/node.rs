//! A real node of OpenSearch or Elasticsearch, and a real Jaeger that writes to it.

use std::{net::SocketAddr, process::Stdio, time::Duration};

use bytes::Bytes;
use drivers::store::StoreClient;
use http::{Method, Request, StatusCode, header};
use http_body_util::{BodyExt, Full};
use model::StoreConfig;
use net::{HttpClient, HttpVersion, tls};
use serde_json::Value as Json;
use tempfile::TempDir;
use tokio::{
    net::{TcpListener, TcpStream},
    process::{Child, Command},
    time::{Instant, sleep},
};

use crate::sample::{self, address, fresh};

const JAEGER_CONFIG: &str = include_str!("jaeger-config.yaml");

/// A real node.
#[derive(Clone, Copy)]
pub(crate) struct SearchNode {
    pub(crate) kind: &'static str,
    url: &'static str,
    jaeger: &'static str,
}

pub(crate) const OPENSEARCH: SearchNode = SearchNode {
    kind: "opensearch",
    url: "QUALITYTRACE_TEST_OPENSEARCH",
    jaeger: "QUALITYTRACE_TEST_OPENSEARCH_JAEGER",
};

pub(crate) const ELASTICSEARCH: SearchNode = SearchNode {
    kind: "elasticsearch",
    url: "QUALITYTRACE_TEST_ELASTICSEARCH",
    jaeger: "QUALITYTRACE_TEST_ELASTICSEARCH_JAEGER",
};

/// Returns a name that no other test, and no other run of this one, uses.
pub(crate) fn unique(name: &str) -> String {
    format!("{name}-{}", &fresh().to_string()[..8])
}

/// Opens a store of this type.
pub(crate) fn open(kind: &str, url: &str, index: Option<&str>) -> StoreClient {
    sample::open(&config(kind, url, index))
}

/// Returns how to query a store of this type.
pub(crate) fn config(kind: &str, url: &str, index: Option<&str>) -> StoreConfig {
    StoreConfig { index: index.map(str::to_owned), ..sample::config(kind, url) }
}

/// Sends a request to a node, and returns its answer.
pub(crate) async fn call(method: Method, url: String, body: String) -> (StatusCode, Json) {
    let tls = tls::anonymous(std::sync::Arc::new(tls::RootCertStore::empty()), &[]);
    let client = HttpClient::new(tls, HttpVersion::Http1, Duration::ZERO);
    let mut request = Request::new(Full::new(Bytes::from(body)));
    *request.method_mut() = method;
    *request.uri_mut() = url.parse().expect("a URL");
    let json = header::HeaderValue::from_static("application/json");
    request.headers_mut().insert(header::CONTENT_TYPE, json);
    let (head, body) = client.send(request).await.expect("it answers").into_parts();
    let body = body.collect().await.expect("an answer").to_bytes();
    (head.status, serde_json::from_slice(&body).unwrap_or_default())
}

impl SearchNode {
    /// Returns its URL, if it is installed.
    pub(crate) fn url(self) -> Option<String> {
        address(self.url)
    }

    /// Makes an index, or puts another thing.
    pub(crate) async fn put(self, path: &str, body: &Json) {
        let url = format!("{}/{path}", self.url().expect("it is installed"));
        let (status, answer) = call(Method::PUT, url, body.to_string()).await;
        assert_eq!(status, StatusCode::OK, "{answer}");
    }

    /// Adds a document, with an id.
    pub(crate) async fn put_document(self, path: &str, document: &Json) {
        let url = format!("{}/{path}", self.url().expect("it is installed"));
        let (status, answer) = call(Method::PUT, url, document.to_string()).await;
        assert_eq!(status, StatusCode::CREATED, "{answer}");
    }

    /// Adds documents to an index.
    pub(crate) async fn add(self, index: &str, documents: &[Json]) {
        let url = format!("{}/{index}/_bulk", self.url().expect("it is installed"));
        let lines = documents.iter().map(|document| format!("{{\"create\":{{}}}}\n{document}\n"));
        let (status, answer) = call(Method::POST, url, lines.collect()).await;
        assert_eq!((status, &answer["errors"]), (StatusCode::OK, &false.into()), "{answer}");
    }

    /// Starts a Jaeger that writes to the node; none if one of them is not installed.
    pub(crate) async fn jaeger(self) -> Option<JaegerWriter> {
        let (program, url) = (address(self.jaeger)?, self.url()?);
        let folder = tempfile::tempdir().expect("a temporary folder");
        let config = folder.path().join("config.yaml");
        std::fs::write(&config, JAEGER_CONFIG.replace("BACKEND", self.kind)).expect("written");
        let [otlp, health] = free_ports().await;
        let mut command = Command::new(program);
        command.arg("--config").arg(config).kill_on_drop(true).stdin(Stdio::null());
        command.env("JAEGER_STORAGE", &url).env("JAEGER_OTLP", otlp.to_string());
        command.env("JAEGER_HEALTH", health.to_string());
        let process = command.spawn().expect("it starts");
        let end = Instant::now() + Duration::from_secs(30);
        // It listens only when it has made its index templates.
        while TcpStream::connect(otlp).await.is_err() {
            assert!(Instant::now() < end, "it does not listen");
            // A process reports nothing when it listens.
            sleep(Duration::from_millis(20)).await;
        }
        Some(JaegerWriter { otlp: otlp.to_string(), _process: process, _folder: folder })
    }
}

/// A Jaeger that writes to a node. It ends with this value.
pub(crate) struct JaegerWriter {
    /// Where it accepts OTLP over gRPC.
    pub(crate) otlp: String,
    _process: Child,
    _folder: TempDir,
}

/// Returns addresses that are free now.
async fn free_ports<const N: usize>() -> [SocketAddr; N] {
    let mut held = Vec::new();
    let mut found = [SocketAddr::from(([127, 0, 0, 1], 0)); N];
    for address in &mut found {
        let listener = TcpListener::bind(*address).await.expect("a free port");
        *address = listener.local_addr().expect("an address");
        held.push(listener);
    }
    found
}
