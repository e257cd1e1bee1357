//! How to query a trace store, from its document.
//!
//! Values of variables and files come from the caller. What a document demands and no query honours is refused by name.

use base64::{Engine, prelude::BASE64_STANDARD};
use model::{Identity, Secret, StoreConfig, Tls, Verify};

use super::trace_store::{
    ClickHouse, Client, GrpcClient, HttpClient, SearchClient, Store, StoreTls, TraceStore,
};

/// What the configuration of a store is completed with.
pub trait StoreInputs {
    /// Returns the value of `${var:NAME}`.
    fn variable(&self, name: &str) -> Option<&str>;

    /// Returns the value of `${env:NAME}`.
    fn environment(&self, name: &str) -> Option<&str>;

    /// Returns the content of a file, or why it cannot be read.
    fn file(&self, path: &str) -> Result<String, String>;
}

impl TraceStore {
    /// Returns the name that people and tests use.
    pub fn key(&self) -> &str {
        let key = self.id.as_deref().or(self.name.as_deref());
        key.unwrap_or_else(|| self.store.name())
    }

    /// Returns the address that is queried, as written.
    pub fn address(&self) -> Option<&str> {
        match &self.store {
            Store::Jaeger(client) | Store::Tempo(Client::Grpc(client)) => Some(&client.endpoint),
            Store::Tempo(Client::Http(client)) | Store::Zipkin(client) => Some(&client.url),
            Store::ClickHouse(store) => Some(&store.client.url),
            Store::OpenSearch(search)
            | Store::Elasticsearch(search)
            | Store::ElasticApm(search) => search.addresses.first().map(String::as_str),
            _ => None,
        }
    }

    /// Whether the store has to be queried: its spans do not arrive by OTLP.
    pub fn is_queried(&self) -> bool {
        self.store.is_queried()
    }

    /// Whether this version queries stores of this type.
    pub fn can_be_queried(&self) -> bool {
        self.driver().is_some()
    }

    /// Returns the type of the driver that queries the store, if there is one.
    pub fn driver(&self) -> Option<&str> {
        self.store.kind()
    }

    /// Returns how to query the store, or why it cannot be queried.
    pub fn config(&self, inputs: &dyn StoreInputs) -> Result<StoreConfig, String> {
        if let Some(refusal) = self.store.refusal() {
            return Err(refusal);
        }
        let not_queried =
            || format!("a store of type `{}` is not queried by this version", self.store.name());
        let (kind, reach) =
            self.store.kind().zip(self.store.reach(inputs)?).ok_or_else(not_queried)?;
        let filled = |text: &str| fill(text, inputs);
        let url = filled(&reach.url)?;
        if reach.is_insecure && url.starts_with("https://") {
            // Not as it is filled in: a variable may be a secret.
            return Err(format!(
                "`tls.insecure: true` means no TLS, and `{}` begins with `https://`: write `http://`, or \
                 `insecureSkipVerify: true` if any certificate is to be accepted",
                reach.url
            ));
        }
        let index = reach.index.as_deref().map(filled).transpose()?;
        Ok(StoreConfig {
            name: self.key().to_owned(),
            kind: kind.to_owned(),
            url,
            is_grpc: reach.is_grpc,
            headers: reach.headers,
            tls: reach.tls,
            index,
            lag: self.lag,
        })
    }
}

/// How a store is reached: headers and TLS are filled in, URL and index are as written.
struct Reach {
    url: String,
    is_grpc: bool,
    is_insecure: bool,
    headers: Vec<(String, Secret)>,
    tls: Tls,
    index: Option<String>,
}

impl Store {
    /// Returns the type of the driver that queries it, if there is one.
    fn kind(&self) -> Option<&str> {
        match self {
            Self::Otlp(_)
            | Self::SignalFx(_)
            | Self::XRay(_)
            | Self::AzureAppInsights(_)
            | Self::SumoLogic(_) => None,
            // Its spans are in one.
            Self::ElasticApm(_) => Some("elasticsearch"),
            queried => Some(queried.name()),
        }
    }

    /// Returns why a document that can be read is not queried as it demands.
    pub(super) fn refusal(&self) -> Option<String> {
        match self {
            Self::Tempo(Client::Grpc(client)) => Some(tempo_by_grpc(client)),
            Self::OpenSearch(search) | Self::Elasticsearch(search) | Self::ElasticApm(search) => {
                match search.addresses.len() {
                    1 => None,
                    0 => Some("`addresses` has no URL: write one".to_owned()),
                    _ => Some(
                        "`addresses` has several URLs, and one is queried: write the one that stands for all nodes"
                            .to_owned(),
                    ),
                }
            }
            _ => None,
        }
    }

    /// Whether it names files for TLS.
    pub(super) fn names_file(&self) -> bool {
        let (Self::Jaeger(GrpcClient { tls, .. })
        | Self::Tempo(
            Client::Http(HttpClient { tls, .. }) | Client::Grpc(GrpcClient { tls, .. }),
        )
        | Self::Zipkin(HttpClient { tls, .. })
        | Self::ClickHouse(ClickHouse { client: HttpClient { tls, .. }, .. })) = self
        else {
            return false;
        };
        [&tls.ca_file, &tls.cert_file, &tls.key_file].into_iter().any(Option::is_some)
    }

    fn reach(&self, inputs: &dyn StoreInputs) -> Result<Option<Reach>, String> {
        let reach = match self {
            Self::Jaeger(GrpcClient { endpoint, headers, tls }) => {
                let (url, is_grpc) = grpc_or_http(endpoint, tls);
                let client = HttpClient { url, headers: headers.clone(), tls: tls.clone() };
                Reach { is_grpc, ..by_http(&client, inputs)? }
            }
            Self::Tempo(Client::Http(client)) | Self::Zipkin(client) => by_http(client, inputs)?,
            Self::OpenSearch(search) | Self::Elasticsearch(search) | Self::ElasticApm(search) => {
                by_search(search, inputs)?
            }
            Self::ClickHouse(store) => by_clickhouse(store, inputs)?,
            _ => return Ok(None),
        };
        Ok(Some(reach))
    }
}

fn by_http(client: &HttpClient, inputs: &dyn StoreInputs) -> Result<Reach, String> {
    let header = |(name, value): (&String, &Secret)| {
        Ok((name.clone(), Secret::new(fill(value.expose(), inputs)?)))
    };
    Ok(Reach {
        url: client.url.clone(),
        is_grpc: false,
        is_insecure: client.tls.is_insecure,
        headers: client.headers.iter().map(header).collect::<Result<_, String>>()?,
        tls: tls_of(&client.tls, inputs)?,
        index: None,
    })
}

fn by_search(search: &SearchClient, inputs: &dyn StoreInputs) -> Result<Reach, String> {
    let verify = match (search.skip_verify, &search.certificate) {
        (true, _) => Verify::Nothing,
        (false, Some(pem)) => Verify::Ca(fill(pem, inputs)?),
        (false, None) => Verify::System,
    };
    let headers = basic(&search.username, &search.password, inputs)?;
    Ok(Reach {
        url: search.addresses.first().cloned().unwrap_or_default(),
        is_grpc: false,
        is_insecure: false,
        headers: headers.into_iter().collect(),
        tls: Tls { verify, ..Tls::default() },
        index: Some(search.index.clone()),
    })
}

fn by_clickhouse(store: &ClickHouse, inputs: &dyn StoreInputs) -> Result<Reach, String> {
    let mut reach = by_http(&store.client, inputs)?;
    reach.headers.extend(basic(&store.username, &store.password, inputs)?);
    let table = store.table.as_deref().unwrap_or("otel_traces");
    reach.index = Some(match &store.database {
        Some(database) => format!("{database}.{table}"),
        None => table.to_owned(),
    });
    Ok(reach)
}

/// Returns the header with the user and the password, if a document has them.
fn basic(
    user: &Option<String>,
    password: &Option<Secret>,
    inputs: &dyn StoreInputs,
) -> Result<Option<(String, Secret)>, String> {
    let (user, password) = match (user, password) {
        (None, None) => return Ok(None),
        (None, Some(_)) => return Err("`password` needs `username`".to_owned()),
        (Some(user), password) => (user, password.as_ref().map_or("", Secret::expose)),
    };
    let text = format!("{}:{}", fill(user, inputs)?, fill(password, inputs)?);
    let value = format!("Basic {}", BASE64_STANDARD.encode(text));
    Ok(Some(("authorization".to_owned(), Secret::new(value))))
}

/// Returns the URL of an address, and whether it is queried by gRPC: an address with a scheme is that of an HTTP API.
fn grpc_or_http(endpoint: &str, tls: &StoreTls) -> (String, bool) {
    if endpoint.contains("://") {
        return (endpoint.to_owned(), false);
    }
    let scheme = if tls.is_insecure { "http" } else { "https" };
    (format!("{scheme}://{endpoint}"), true)
}

fn tempo_by_grpc(client: &GrpcClient) -> String {
    let host = client.endpoint.rsplit_once(':').map_or(client.endpoint.as_str(), |(host, _)| host);
    format!(
        "Tempo offers no gRPC to clients that fetches a trace by its id; write `tempo: {{type: http, http: {{url: \
         'http://{host}:3200'}}}}`, with the port of its HTTP API"
    )
}

/// Returns the settings of TLS, with the files that they name.
fn tls_of(tls: &StoreTls, inputs: &dyn StoreInputs) -> Result<Tls, String> {
    if let Some(refusal) = &tls.refusal {
        return Err(refusal.clone());
    }
    let read = |path: &Option<String>| {
        path.as_deref().map(|path| inputs.file(&fill(path, inputs)?)).transpose()
    };
    let verify = match (tls.skip_verify, read(&tls.ca_file)?) {
        (true, _) => Verify::Nothing,
        (false, Some(pem)) => Verify::Ca(pem),
        (false, None) => Verify::System,
    };
    let identity = match (read(&tls.cert_file)?, read(&tls.key_file)?) {
        (None, None) => None,
        (Some(certificates), Some(key)) => Some(Identity { certificates, key: Secret::new(key) }),
        (Some(_), None) => return Err("`tls.settings.certFile` needs `keyFile`".to_owned()),
        (None, Some(_)) => return Err("`tls.settings.keyFile` needs `certFile`".to_owned()),
    };
    Ok(Tls { verify, identity, server_name: tls.server_name.clone() })
}

/// Fills in every `${env:NAME}` and `${var:NAME}` of a text.
fn fill(text: &str, inputs: &dyn StoreInputs) -> Result<String, String> {
    let (mut filled, mut rest) = (String::new(), text);
    while let Some((at, scope)) = next_variable(rest) {
        let (before, behind) = (&rest[..at], &rest[at + scope.len()..]);
        let (name, behind) =
            behind.split_once('}').ok_or_else(|| format!("a `{scope}` has no `}}`"))?;
        let value = match scope == ENVIRONMENT {
            true => inputs.environment(name.trim()),
            false => inputs.variable(name.trim()),
        };
        filled.push_str(before);
        filled.push_str(value.ok_or_else(|| format!("`{scope}{name}}}` has no value here"))?);
        rest = behind;
    }
    filled.push_str(rest);
    Ok(filled)
}

const ENVIRONMENT: &str = "${env:";
const VARIABLE: &str = "${var:";

/// Returns where the next variable begins, and how.
fn next_variable(text: &str) -> Option<(usize, &'static str)> {
    [ENVIRONMENT, VARIABLE].into_iter().filter_map(|scope| Some((text.find(scope)?, scope))).min()
}
