//! How to query a trace store, from its document.
//!
//! Values of the environment and files come from the caller. What a document demands and no query honours is refused by name.

use model::{Identity, Secret, StoreConfig, Tls, Verify};

use super::trace_store::{Client, GrpcClient, HttpClient, Store, StoreTls, TraceStore};

/// What the configuration of a store is completed with.
pub trait StoreInputs {
    /// Returns the value of `${env:NAME}`.
    fn variable(&self, name: &str) -> Option<String>;

    /// Returns the content of a file, or why it cannot be read.
    fn file(&self, path: &str) -> Result<String, String>;
}

impl TraceStore {
    /// Returns the name that people and tests use.
    pub fn key(&self) -> &str {
        let key = self.id.as_deref().or(self.name.as_deref());
        key.unwrap_or_else(|| self.store.name())
    }

    /// Whether the store has to be queried: its spans do not arrive by OTLP.
    pub fn is_queried(&self) -> bool {
        self.store.is_queried()
    }

    /// Whether this version queries stores of this type.
    pub fn can_be_queried(&self) -> bool {
        matches!(self.store, Store::Jaeger(_) | Store::Tempo(_))
    }

    /// Returns how to query the store, or why it cannot be queried.
    pub fn config(&self, inputs: &dyn StoreInputs) -> Result<StoreConfig, String> {
        let (url, is_grpc, headers, tls) = match &self.store {
            Store::Jaeger(GrpcClient { endpoint, headers, tls }) => {
                let (url, is_grpc) = grpc_or_http(endpoint, tls);
                (url, is_grpc, headers, tls)
            }
            Store::Tempo(Client::Http(HttpClient { url, headers, tls })) => {
                (url.clone(), false, headers, tls)
            }
            Store::Tempo(Client::Grpc(client)) => return Err(tempo_by_grpc(client)),
            other => {
                return Err(format!(
                    "a store of type `{}` is not queried by this version",
                    other.name()
                ));
            }
        };
        let filled = |text: &str| fill(text, inputs);
        let (written, url) = (url.as_str(), filled(&url)?);
        if tls.is_insecure && url.starts_with("https://") {
            // Not as it is filled in: a variable may be a secret.
            return Err(format!(
                "`tls.insecure: true` means no TLS, and `{written}` begins with `https://`: write `http://`, or \
                 `insecureSkipVerify: true` if any certificate is to be accepted"
            ));
        }
        let header = |(name, value): (&String, &Secret)| {
            Ok((name.clone(), Secret::new(filled(value.expose())?)))
        };
        Ok(StoreConfig {
            name: self.key().to_owned(),
            kind: self.store.name().to_owned(),
            url,
            is_grpc,
            headers: headers.iter().map(header).collect::<Result<_, String>>()?,
            tls: tls_of(tls, inputs)?,
            index: None,
            lag: self.lag,
        })
    }
}

/// Returns the URL of an address, and whether it is queried by gRPC: an address with a scheme is that of an HTTP API.
fn grpc_or_http(endpoint: &str, tls: &StoreTls) -> (String, bool) {
    if endpoint.contains("://") {
        return (endpoint.to_owned(), false);
    }
    let scheme = if tls.is_insecure { "http" } else { "https" };
    (format!("{scheme}://{endpoint}"), true)
}

pub(super) fn tempo_by_grpc(client: &GrpcClient) -> String {
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

/// Fills in every `${env:NAME}` of a text.
fn fill(text: &str, inputs: &dyn StoreInputs) -> Result<String, String> {
    const OPENING: &str = "${env:";
    let (mut filled, mut rest) = (String::new(), text);
    while let Some((before, behind)) = rest.split_once(OPENING) {
        let (name, behind) =
            behind.split_once('}').ok_or_else(|| "a `${env:` has no `}`".to_owned())?;
        let value = inputs.variable(name.trim());
        filled.push_str(before);
        filled.push_str(&value.ok_or_else(|| format!("`${{env:{name}}}` has no value here"))?);
        rest = behind;
    }
    filled.push_str(rest);
    Ok(filled)
}
