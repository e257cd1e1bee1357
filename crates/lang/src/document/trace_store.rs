//! Trace stores: the backends that store the traces of a system, and how to connect to them.
//!
//! Texts are as written: `store_config` fills in their `${env:…}`. Deliberately absent: queries.

use std::{collections::BTreeMap, time::Duration};

use model::Secret;
use source::{Diagnostics, Fields, Item, Span};

use super::{is_blank, read_name, read_wait, take_others, take_read_only, tell_other, text, texts};

/// A backend that stores the traces of a system.
#[derive(Clone, Debug)]
pub struct TraceStore {
    /// The id under which it is stored.
    pub id: Option<String>,
    /// The display name.
    pub name: Option<String>,
    /// Whether it is queried for tests that name no store.
    pub is_default: bool,
    /// How long after its arrival at the store a span may be missing from its answers, if the user knows it.
    pub lag: Option<Duration>,
    /// The type of the store and its configuration.
    pub store: Store,
    /// The span of its type.
    pub(super) head: Span,
}

/// The type of a trace store and its configuration.
#[derive(Clone, Debug)]
pub enum Store {
    /// Spans arrive by OTLP, exported by the system or by a Collector: the type as written, such as `otlp` or `honeycomb`.
    Otlp(String),
    /// Jaeger, by gRPC, or by HTTP if its address is a URL.
    Jaeger(GrpcClient),
    /// Tempo, by gRPC or HTTP.
    Tempo(Client),
    /// OpenSearch.
    OpenSearch(SearchClient),
    /// Elasticsearch.
    Elasticsearch(SearchClient),
    /// Elastic APM, whose spans are in Elasticsearch.
    ElasticApm(SearchClient),
    /// ClickHouse, with the tables of the Collector's exporter.
    ClickHouse(ClickHouse),
    /// Zipkin.
    Zipkin(HttpClient),
    /// SignalFx.
    SignalFx(SignalFx),
    /// AWS X-Ray.
    XRay(XRay),
    /// Azure Application Insights.
    AzureAppInsights(Azure),
    /// Sumo Logic.
    SumoLogic(SumoLogic),
}

/// The protocol for querying Tempo.
#[derive(Clone, Debug)]
pub enum Client {
    /// `type: grpc`
    Grpc(GrpcClient),
    /// `type: http`
    Http(HttpClient),
}

/// The configuration of a gRPC client.
#[derive(Clone, Debug)]
pub struct GrpcClient {
    /// `host:port`, or for Jaeger the URL of its HTTP API.
    pub endpoint: String,
    /// The headers of every call.
    pub headers: BTreeMap<String, Secret>,
    /// The TLS configuration.
    pub tls: StoreTls,
}

/// The configuration of an HTTP client.
#[derive(Clone, Debug)]
pub struct HttpClient {
    /// The base URL.
    pub url: String,
    /// The headers of every request.
    pub headers: BTreeMap<String, Secret>,
    /// The TLS configuration.
    pub tls: StoreTls,
}

/// The TLS configuration of a client.
#[derive(Clone, Debug, Default)]
pub struct StoreTls {
    /// Whether TLS is off.
    pub is_insecure: bool,
    /// Whether the client accepts any server certificate.
    pub skip_verify: bool,
    /// The server name that the certificate must have.
    pub server_name: Option<String>,
    /// The file with the trusted CA certificates.
    pub ca_file: Option<String>,
    /// The file with the client certificate.
    pub cert_file: Option<String>,
    /// The file with the key of the client certificate.
    pub key_file: Option<String>,
    /// Why the versions that the document demands cannot be used.
    pub refusal: Option<String>,
}

/// The configuration of OpenSearch or of Elasticsearch.
#[derive(Clone, Debug)]
pub struct SearchClient {
    /// The URLs of its nodes.
    pub addresses: Vec<String>,
    /// The user name.
    pub username: Option<String>,
    /// The password.
    pub password: Option<Secret>,
    /// The index of the spans, or a pattern of indices.
    pub index: String,
    /// The trusted certificate, PEM.
    pub certificate: Option<String>,
    /// Whether the client accepts any server certificate.
    pub skip_verify: bool,
}

/// The configuration of ClickHouse.
#[derive(Clone, Debug)]
pub struct ClickHouse {
    /// How its HTTP interface is reached.
    pub client: HttpClient,
    /// The database.
    pub database: Option<String>,
    /// The table of the spans.
    pub table: Option<String>,
    /// The user name.
    pub username: Option<String>,
    /// The password.
    pub password: Option<Secret>,
}

/// The configuration of SignalFx.
#[derive(Clone, Debug)]
pub struct SignalFx {
    /// The realm, such as `us1`.
    pub realm: String,
    /// The API token.
    pub token: Secret,
}

/// The configuration of AWS X-Ray.
#[derive(Clone, Debug)]
pub struct XRay {
    /// The region, such as `us-west-2`.
    pub region: String,
    /// The id of the access key.
    pub access_key_id: Option<String>,
    /// The secret access key.
    pub secret_access_key: Option<Secret>,
    /// The token of a temporary session.
    pub session_token: Option<Secret>,
    /// Whether the credentials come from the environment.
    pub use_default_auth: bool,
}

/// The configuration of Azure Application Insights.
#[derive(Clone, Debug)]
pub struct Azure {
    /// Whether the identity comes from the environment.
    pub use_active_directory: bool,
    /// The access token that is used otherwise.
    pub access_token: Option<Secret>,
    /// Whether spans arrive through a Collector instead.
    pub is_collector: bool,
    /// The resource with the spans.
    pub resource_arm_id: Option<String>,
}

/// The configuration of Sumo Logic.
#[derive(Clone, Debug)]
pub struct SumoLogic {
    /// The URL of its API.
    pub url: String,
    /// The id of the access key.
    pub access_id: String,
    /// The access key.
    pub access_key: Secret,
}

/// Types that export by OTLP and have no section.
const OTLP_TYPES: &[&str] = &[
    "otlp",
    "agent",
    "dash0",
    "datadog",
    "dynatrace",
    "honeycomb",
    "instana",
    "lightstep",
    "newrelic",
    "signoz",
];

/// Types with a section of the same name.
const SECTIONS: &[&str] = &[
    "jaeger",
    "tempo",
    "opensearch",
    "elasticsearch",
    "elasticapm",
    "clickhouse",
    "zipkin",
    "signalfx",
    "awsxray",
    "azureappinsights",
    "sumologic",
];

const COMPRESSIONS: &[(&str, bool)] = &[
    ("gzip", true),
    ("zlib", true),
    ("deflate", true),
    ("snappy", true),
    ("zstd", true),
    ("none", false),
];

/// The versions that a document may name as the oldest and as the newest: TLS 1.2 and 1.3 are spoken.
const OLDEST: &[&str] = &["1.0", "1.1", "1.2"];
const NEWEST: &[&str] = &["1.3"];

impl TraceStore {
    pub(super) fn read(item: &Item<'_>, found: &Diagnostics) -> Option<Self> {
        let mut fields = item.fields()?;
        let (id, name) = read_name(&mut fields);
        let is_default = fields.boolean("default").unwrap_or(false);
        let lag = fields.take("lag").and_then(|lag| read_wait(&lag, found));
        let types: Vec<_> = SECTIONS.iter().chain(OTLP_TYPES).map(|kind| (*kind, *kind)).collect();
        let written = fields.require("type");
        let head = written.as_ref().map_or(item.head(), |kind| kind.node.span);
        let kind = written.and_then(|kind| kind.choice(&types));
        let section = kind.filter(|kind| SECTIONS.contains(kind)).map(|kind| fields.require(kind));
        let others: Vec<_> =
            SECTIONS.iter().copied().filter(|other| Some(*other) != kind).collect();
        take_others(&mut fields, &others, "data store", found);
        take_read_only(&mut fields, &["createdAt"]);
        fields.finish();
        let kind = kind?;
        let store = match section {
            None => Store::Otlp(kind.to_owned()),
            Some(section) => read_store(kind, &section?, found)?,
        };
        let written = |scalar: &source::Scalar| scalar.text.clone();
        let (id, name) = (id.map(written), name.map(written));
        Some(Self { id, name, is_default, lag, store, head })
    }
}

fn read_store(kind: &str, item: &Item<'_>, found: &Diagnostics) -> Option<Store> {
    let mut fields = item.fields()?;
    let store = match kind {
        "jaeger" => read_grpc(&mut fields, found).map(Store::Jaeger),
        "tempo" => read_client(&mut fields, found).map(Store::Tempo),
        "opensearch" => read_search(&mut fields).map(Store::OpenSearch),
        "elasticsearch" => read_search(&mut fields).map(Store::Elasticsearch),
        "elasticapm" => read_search(&mut fields).map(Store::ElasticApm),
        "clickhouse" => read_clickhouse(&mut fields, found).map(Store::ClickHouse),
        "zipkin" => read_http(&mut fields, found).map(Store::Zipkin),
        "signalfx" => read_signalfx(&mut fields).map(Store::SignalFx),
        "awsxray" => read_xray(&mut fields).map(Store::XRay),
        "azureappinsights" => Some(Store::AzureAppInsights(read_azure(&mut fields))),
        _ => read_sumologic(&mut fields).map(Store::SumoLogic),
    };
    fields.finish();
    store
}

fn read_grpc(fields: &mut Fields<'_>, found: &Diagnostics) -> Option<GrpcClient> {
    let endpoint = required(fields, "endpoint");
    take_tuning(fields, found);
    let (headers, tls) = (read_headers(fields), read_tls(fields, found));
    Some(GrpcClient { headers, tls, endpoint: endpoint? })
}

/// Takes the keys that tune Tracetest's client: they change no answer.
fn take_tuning(fields: &mut Fields<'_>, found: &Diagnostics) {
    let mut take = |key, is_set: fn(&Item<'_>) -> bool| {
        if let Some(item) = fields.take(key).filter(is_set) {
            let span = found.text().first_line(item.node.span);
            let message = format!("`{key}` has no effect: it tunes Tracetest's client");
            found.push(found.warning(span, message).help("take it out"));
        }
    };
    let has_size = |item: &Item<'_>| item.integer(0..=1_u64 << 30).is_some_and(|size| size > 0);
    take("readBufferSize", has_size);
    take("writeBufferSize", has_size);
    take("waitForReady", |item| item.boolean() == Some(true));
    take("balancerName", |item| !is_blank(item.node) && item.text().is_some());
    take("compression", |item| {
        !is_blank(item.node) && item.choice(COMPRESSIONS).is_some_and(|is_compressed| is_compressed)
    });
}

fn read_client(fields: &mut Fields<'_>, found: &Diagnostics) -> Option<Client> {
    let (grpc, http) = (fields.take("grpc"), fields.take("http"));
    let kinds = [("grpc", "grpc"), ("http", "http")];
    let kind = match (fields.take("type"), &grpc, &http) {
        (Some(kind), _, _) => kind.choice(&kinds),
        (None, Some(_), None) => Some("grpc"),
        (None, None, Some(_)) => Some("http"),
        (None, _, _) => fields.require("type").and(None),
    };
    let kind = kind?;
    let (chosen, other) = if kind == "grpc" { (grpc, http) } else { (http, grpc) };
    let section = chosen.or_else(|| fields.require(kind)).and_then(|section| section.fields());
    tell_other(other.as_ref(), "client", found);
    let mut section = section?;
    let client = if kind == "grpc" {
        read_grpc(&mut section, found).map(Client::Grpc)
    } else {
        read_http(&mut section, found).map(Client::Http)
    };
    section.finish();
    client
}

fn read_http(fields: &mut Fields<'_>, found: &Diagnostics) -> Option<HttpClient> {
    let url = required(fields, "url");
    let (headers, tls) = (read_headers(fields), read_tls(fields, found));
    Some(HttpClient { headers, tls, url: url? })
}

fn read_headers(fields: &mut Fields<'_>) -> BTreeMap<String, Secret> {
    let Some(mut headers) = fields.table("headers") else { return BTreeMap::new() };
    let rest = headers.rest();
    headers.finish();
    // An export writes an empty header if there is none.
    let written = rest.iter().filter(|(key, _)| !key.text.is_empty());
    written
        .filter_map(|(key, value)| Some((key.text.clone(), Secret::new(&value.text()?.text))))
        .collect()
}

fn read_tls(fields: &mut Fields<'_>, found: &Diagnostics) -> StoreTls {
    let Some(mut tls) = fields.table("tls") else { return StoreTls::default() };
    let read = StoreTls {
        is_insecure: tls.boolean("insecure").unwrap_or(false),
        skip_verify: tls.boolean("insecureSkipVerify").unwrap_or(false),
        server_name: text(&mut tls, "serverName"),
        ..StoreTls::default()
    };
    let mut settings = tls.section("settings");
    let mut version = |key, allowed: &[&str]| {
        let item = settings.take(key).filter(|item| !is_blank(item.node))?;
        let version = item.text()?.text.clone();
        if allowed.contains(&version.as_str()) {
            return None;
        }
        let reason = format!("`{key}: {version}` cannot be honoured: TLS 1.2 and 1.3 are spoken");
        let span = found.text().first_line(item.node.span);
        found.push(found.warning(span, reason.as_str()).help("take it out"));
        Some(reason)
    };
    let refusal = version("minVersion", OLDEST).or(version("maxVersion", NEWEST));
    let read = StoreTls {
        ca_file: text(&mut settings, "cAFile"),
        cert_file: text(&mut settings, "certFile"),
        key_file: text(&mut settings, "keyFile"),
        refusal,
        ..read
    };
    settings.finish();
    tls.finish();
    read
}

fn read_search(fields: &mut Fields<'_>) -> Option<SearchClient> {
    let index = required(fields, "index");
    Some(SearchClient {
        addresses: texts(fields, "addresses").into_iter().map(|address| address.text).collect(),
        username: text(fields, "username"),
        password: text(fields, "password").map(Secret::new),
        certificate: text(fields, "certificate"),
        skip_verify: fields.boolean("insecureSkipVerify").unwrap_or(false),
        index: index?,
    })
}

fn read_clickhouse(fields: &mut Fields<'_>, found: &Diagnostics) -> Option<ClickHouse> {
    let client = read_http(fields, found);
    Some(ClickHouse {
        database: text(fields, "database"),
        table: text(fields, "table"),
        username: text(fields, "username"),
        password: text(fields, "password").map(Secret::new),
        client: client?,
    })
}

fn read_signalfx(fields: &mut Fields<'_>) -> Option<SignalFx> {
    let (realm, token) = (required(fields, "realm"), required(fields, "token"));
    Some(SignalFx { realm: realm?, token: Secret::new(token?) })
}

fn read_xray(fields: &mut Fields<'_>) -> Option<XRay> {
    let region = required(fields, "region");
    Some(XRay {
        access_key_id: text(fields, "accessKeyId"),
        secret_access_key: text(fields, "secretAccessKey").map(Secret::new),
        session_token: text(fields, "sessionToken").map(Secret::new),
        use_default_auth: fields.boolean("useDefaultAuth").unwrap_or(false),
        region: region?,
    })
}

fn read_azure(fields: &mut Fields<'_>) -> Azure {
    let connection = fields.choice("connectionType", &[("direct", false), ("collector", true)]);
    Azure {
        use_active_directory: fields.boolean("useAzureActiveDirectoryAuth").unwrap_or(false),
        access_token: text(fields, "accessToken").map(Secret::new),
        is_collector: connection.unwrap_or(false),
        resource_arm_id: text(fields, "resourceArmId"),
    }
}

fn read_sumologic(fields: &mut Fields<'_>) -> Option<SumoLogic> {
    let url = required(fields, "url");
    let (id, key) = (required(fields, "accessID"), required(fields, "accessKey"));
    Some(SumoLogic { url: url?, access_id: id?, access_key: Secret::new(key?) })
}

fn required(fields: &mut Fields<'_>, key: &str) -> Option<String> {
    fields.require(key)?.text().map(|scalar| scalar.text.clone())
}
