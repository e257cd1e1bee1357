//! Data stores: where the traces of a system are kept, and how to get at them.
//!
//! Deliberately absent: fetching. Texts are as written; a `${env:…}` in them is for whoever connects.

use std::collections::BTreeMap;

use model::Secret;
use source::{Diagnostics, Fields, Item, Span};

use super::{is_blank, read_name, take_others, take_read_only, tell_other, text, texts};

/// Where the traces of a system are kept.
#[derive(Clone, Debug)]
pub struct TraceStore {
    /// Under which it is kept.
    pub id: Option<String>,
    /// For people.
    pub name: Option<String>,
    /// Whether it is the one that is asked.
    pub is_default: bool,
    /// What it is.
    pub store: Store,
    /// Where its type is written.
    pub(super) head: Span,
}

/// What a data store is.
#[derive(Clone, Debug)]
pub enum Store {
    /// Spans come by OTLP, sent by the system or by a Collector: the type as written, such as `otlp` or `honeycomb`.
    Otlp(String),
    /// Jaeger, by gRPC.
    Jaeger(GrpcClient),
    /// Tempo, by gRPC or HTTP.
    Tempo(Client),
    /// OpenSearch.
    OpenSearch(SearchClient),
    /// Elastic APM.
    ElasticApm(SearchClient),
    /// SignalFx.
    SignalFx(SignalFx),
    /// AWS X-Ray.
    XRay(XRay),
    /// Azure Application Insights.
    AzureAppInsights(Azure),
    /// Sumo Logic.
    SumoLogic(SumoLogic),
}

/// How Tempo is asked.
#[derive(Clone, Debug)]
pub enum Client {
    /// `type: grpc`
    Grpc(GrpcClient),
    /// `type: http`
    Http(HttpClient),
}

/// A gRPC client.
#[derive(Clone, Debug)]
pub struct GrpcClient {
    /// `host:port`
    pub endpoint: String,
    /// In bytes.
    pub read_buffer_size: Option<u64>,
    /// In bytes.
    pub write_buffer_size: Option<u64>,
    /// Whether a call waits for a connection.
    pub wait_for_ready: bool,
    /// Sent with every call.
    pub headers: BTreeMap<String, Secret>,
    /// How one of several addresses is chosen.
    pub balancer_name: Option<String>,
    /// `gzip` and others; none for `none`.
    pub compression: Option<String>,
    /// How the peer is known.
    pub tls: StoreTls,
}

/// An HTTP client.
#[derive(Clone, Debug)]
pub struct HttpClient {
    /// Where it is.
    pub url: String,
    /// Sent with every request.
    pub headers: BTreeMap<String, Secret>,
    /// How the peer is known.
    pub tls: StoreTls,
}

/// How a peer is known, and we to it.
#[derive(Clone, Debug, Default)]
pub struct StoreTls {
    /// Whether there is none at all.
    pub is_insecure: bool,
    /// Whether any certificate is taken.
    pub skip_verify: bool,
    /// Whose certificate it has to be.
    pub server_name: Option<String>,
    /// The file of the certificates that are trusted.
    pub ca_file: Option<String>,
    /// The file of our own certificate.
    pub cert_file: Option<String>,
    /// The file of its key.
    pub key_file: Option<String>,
    /// The oldest version that is spoken.
    pub min_version: Option<String>,
    /// The newest.
    pub max_version: Option<String>,
}

/// OpenSearch, or what Elastic APM keeps its spans in.
#[derive(Clone, Debug)]
pub struct SearchClient {
    /// URLs of its nodes.
    pub addresses: Vec<String>,
    /// Who asks.
    pub username: Option<String>,
    /// Their password.
    pub password: Option<Secret>,
    /// The index that holds the spans.
    pub index: String,
    /// The certificate that is trusted, PEM.
    pub certificate: Option<String>,
    /// Whether any certificate is taken.
    pub skip_verify: bool,
}

/// SignalFx.
#[derive(Clone, Debug)]
pub struct SignalFx {
    /// Such as `us1`.
    pub realm: String,
    /// Of its API.
    pub token: Secret,
}

/// AWS X-Ray.
#[derive(Clone, Debug)]
pub struct XRay {
    /// Such as `us-west-2`.
    pub region: String,
    /// Which key.
    pub access_key_id: Option<String>,
    /// The key.
    pub secret_access_key: Option<Secret>,
    /// Of a session that ends.
    pub session_token: Option<Secret>,
    /// Whether the keys are those of the environment.
    pub use_default_auth: bool,
}

/// Azure Application Insights.
#[derive(Clone, Debug)]
pub struct Azure {
    /// Whether the identity of the environment is used.
    pub use_active_directory: bool,
    /// Used otherwise.
    pub access_token: Option<Secret>,
    /// Whether spans come by a Collector instead.
    pub is_collector: bool,
    /// The resource that holds the spans.
    pub resource_arm_id: Option<String>,
}

/// Sumo Logic.
#[derive(Clone, Debug)]
pub struct SumoLogic {
    /// Of its API.
    pub url: String,
    /// Which key.
    pub access_id: String,
    /// The key.
    pub access_key: Secret,
}

/// Types that send by OTLP and have no section of their own.
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
    "elasticapm",
    "signalfx",
    "awsxray",
    "azureappinsights",
    "sumologic",
];

const COMPRESSIONS: &[(&str, Option<&str>)] = &[
    ("gzip", Some("gzip")),
    ("zlib", Some("zlib")),
    ("deflate", Some("deflate")),
    ("snappy", Some("snappy")),
    ("zstd", Some("zstd")),
    ("none", None),
];

impl TraceStore {
    pub(super) fn read(item: &Item<'_>, found: &Diagnostics) -> Option<Self> {
        let mut fields = item.fields()?;
        let (id, name) = read_name(&mut fields);
        let is_default = fields.boolean("default").unwrap_or(false);
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
        Some(Self { id: id.map(written), name: name.map(written), is_default, store, head })
    }
}

fn read_store(kind: &str, item: &Item<'_>, found: &Diagnostics) -> Option<Store> {
    let mut fields = item.fields()?;
    let store = match kind {
        "jaeger" => read_grpc(&mut fields).map(Store::Jaeger),
        "tempo" => read_client(&mut fields, found).map(Store::Tempo),
        "opensearch" => read_search(&mut fields).map(Store::OpenSearch),
        "elasticapm" => read_search(&mut fields).map(Store::ElasticApm),
        "signalfx" => read_signalfx(&mut fields).map(Store::SignalFx),
        "awsxray" => read_xray(&mut fields).map(Store::XRay),
        "azureappinsights" => Some(Store::AzureAppInsights(read_azure(&mut fields))),
        _ => read_sumologic(&mut fields).map(Store::SumoLogic),
    };
    fields.finish();
    store
}

fn read_grpc(fields: &mut Fields<'_>) -> Option<GrpcClient> {
    let endpoint = required(fields, "endpoint");
    let buffer = 0..=1 << 30;
    Some(GrpcClient {
        read_buffer_size: fields.integer("readBufferSize", buffer.clone()),
        write_buffer_size: fields.integer("writeBufferSize", buffer),
        wait_for_ready: fields.boolean("waitForReady").unwrap_or(false),
        headers: read_headers(fields),
        balancer_name: text(fields, "balancerName"),
        compression: fields
            .take("compression")
            .filter(|compression| !is_blank(compression.node))
            .and_then(|compression| compression.choice(COMPRESSIONS).flatten())
            .map(str::to_owned),
        tls: read_tls(fields),
        endpoint: endpoint?,
    })
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
        read_grpc(&mut section).map(Client::Grpc)
    } else {
        let url = required(&mut section, "url");
        let (headers, tls) = (read_headers(&mut section), read_tls(&mut section));
        url.map(|url| Client::Http(HttpClient { url, headers, tls }))
    };
    section.finish();
    client
}

fn read_headers(fields: &mut Fields<'_>) -> BTreeMap<String, Secret> {
    let Some(mut headers) = fields.table("headers") else { return BTreeMap::new() };
    let rest = headers.rest();
    headers.finish();
    // An export writes an empty one where there is none.
    let written = rest.iter().filter(|(key, _)| !key.text.is_empty());
    written
        .filter_map(|(key, value)| Some((key.text.clone(), Secret::new(&value.text()?.text))))
        .collect()
}

fn read_tls(fields: &mut Fields<'_>) -> StoreTls {
    let Some(mut tls) = fields.table("tls") else { return StoreTls::default() };
    let read = StoreTls {
        is_insecure: tls.boolean("insecure").unwrap_or(false),
        skip_verify: tls.boolean("insecureSkipVerify").unwrap_or(false),
        server_name: text(&mut tls, "serverName"),
        ..StoreTls::default()
    };
    let mut settings = tls.section("settings");
    let read = StoreTls {
        ca_file: text(&mut settings, "cAFile"),
        cert_file: text(&mut settings, "certFile"),
        key_file: text(&mut settings, "keyFile"),
        min_version: text(&mut settings, "minVersion"),
        max_version: text(&mut settings, "maxVersion"),
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
