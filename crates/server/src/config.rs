//! The server's configuration file: `postgres`, `telemetry` and `server`, YAML or TOML by its extension.
//!
//! One reading gives either a [`Config`] or every mistake at once, each with its place. Deliberately absent so
//! far: values from the environment, reload, and the other front ends of telemetry.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    time::Duration,
};

use source::{Diagnostic, Diagnostics, Fields, Item, Node, Text, did_you_mean};

/// All that a server is configured with.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where the record is.
    pub postgres: Postgres,
    /// Where the server's own telemetry goes.
    pub telemetry: Telemetry,
    /// Where it listens.
    pub listen: Listen,
    /// How runs are worked on.
    pub workers: Workers,
}

/// How Postgres is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Postgres {
    /// Host name or address.
    pub host: String,
    /// Port.
    pub port: u16,
    /// Role.
    pub user: String,
    /// Its password.
    pub password: Secret,
    /// Database.
    pub dbname: String,
    /// Further connection parameters, such as `sslmode`.
    pub params: Vec<(String, String)>,
}

/// Which exporter carries what. Each is resolved from its name already.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Telemetry {
    /// Carries the server's own spans.
    pub exporter: Option<Exporter>,
    /// Carries the trigger span of each run.
    pub application_exporter: Option<Exporter>,
}

/// A named place where telemetry goes.
#[derive(Clone, Debug, PartialEq)]
pub struct Exporter {
    /// The name in the file.
    pub name: String,
    /// `service.name` of the resource.
    pub service_name: String,
    /// Percent of traces, 0 to 100.
    pub sampling: f64,
    /// An URL: `http://…` is plaintext, `https://…` is TLS.
    pub endpoint: String,
}

/// Addresses that the server listens on, all of them loopback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listen {
    /// The API.
    pub http: SocketAddr,
    /// OTLP by gRPC.
    pub otlp_grpc: SocketAddr,
    /// OTLP by HTTP.
    pub otlp_http: SocketAddr,
}

/// How runs are worked on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Workers {
    /// Runs in flight at the most.
    pub runs_max: usize,
    /// How long a run stays ours without renewal.
    pub lease: Duration,
    /// How often the record is asked for runs when no hint comes.
    pub poll: Duration,
}

/// A text that prints as `***`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// The text itself, for the one who must send it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl Default for Workers {
    fn default() -> Self {
        Self { runs_max: 64, lease: Duration::from_secs(10), poll: Duration::from_secs(1) }
    }
}

impl Default for Listen {
    fn default() -> Self {
        Self { http: loopback(11633), otlp_grpc: loopback(4317), otlp_http: loopback(4318) }
    }
}

/// Reads a configuration file; the name's extension tells its format.
pub fn read(text: &Text) -> (Option<Config>, Vec<Diagnostic>) {
    let (root, mistakes) = if text.name().ends_with(".toml") {
        source::read_toml(text)
    } else {
        let (documents, mut mistakes) = source::read_yaml(text);
        let mut documents = documents.into_iter();
        let first = documents.next();
        mistakes.extend(documents.map(|more| {
            Diagnostic::error(text, text.first_line(more.span), "a configuration is one document")
                .label("a second one begins here")
        }));
        (first, mistakes)
    };
    let found = Diagnostics::new(text);
    found.extend(mistakes);
    let config = match &root {
        Some(node) => config(node, &found),
        // An empty file asks for the defaults.
        None => Some(defaults()),
    };
    let config = config.filter(|_| !found.has_errors());
    (config, found.into_vec())
}

fn defaults() -> Config {
    let postgres = Postgres {
        host: "localhost".to_owned(),
        port: 5432,
        user: "postgres".to_owned(),
        password: Secret("postgres".to_owned()),
        dbname: "qualitytrace".to_owned(),
        params: Vec::new(),
    };
    Config {
        postgres,
        telemetry: Telemetry::default(),
        listen: Listen::default(),
        workers: Workers::default(),
    }
}

fn config(node: &Node, found: &Diagnostics) -> Option<Config> {
    let mut config = defaults();
    let mut root = Fields::of(node, "the configuration", found)?;
    if let Some(fields) = root.table("postgres") {
        postgres(fields, &mut config.postgres);
    }
    let exporters = root.table("telemetry").map(exporters).unwrap_or_default();
    if let Some(mut server) = root.table("server") {
        if let Some(port) = server.integer("httpPort", 1..=u16::MAX) {
            config.listen.http = loopback(port);
        }
        if let Some(mut roles) = server.table("telemetry") {
            config.telemetry.exporter = role(&mut roles, "exporter", &exporters, found);
            config.telemetry.application_exporter =
                role(&mut roles, "applicationExporter", &exporters, found);
            roles.finish();
        }
        server.finish();
    }
    root.finish();
    Some(config)
}

fn postgres(mut fields: Fields<'_>, config: &mut Postgres) {
    let set = |to: &mut String, value: Option<&str>| {
        if let Some(value) = value {
            value.clone_into(to);
        }
    };
    set(&mut config.host, fields.string("host"));
    set(&mut config.user, fields.string("user"));
    set(&mut config.password.0, fields.string("password"));
    set(&mut config.dbname, fields.string("dbname"));
    if let Some(port) = fields.integer("port", 1..=u16::MAX) {
        config.port = port;
    }
    if let Some(item) = fields.take("params") {
        config.params = params(&item);
    }
    fields.finish();
}

/// `sslmode=disable application_name=x`; `&` separates as well.
fn params(item: &Item<'_>) -> Vec<(String, String)> {
    let Some(text) = item.string() else { return Vec::new() };
    let pairs = text.split([' ', '&']).filter(|pair| !pair.is_empty());
    let parsed: Option<Vec<_>> = pairs
        .map(|pair| pair.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned())))
        .collect();
    parsed.unwrap_or_else(|| {
        item.refuse("`key=value` pairs separated by spaces, such as `sslmode=disable`");
        Vec::new()
    })
}

fn exporters(mut telemetry: Fields<'_>) -> Vec<Exporter> {
    let mut exporters = Vec::new();
    if let Some(mut named) = telemetry.table("exporters") {
        for (key, item) in named.rest() {
            exporters.extend(item.fields().and_then(|fields| exporter(&key.text, fields)));
        }
        named.finish();
    }
    telemetry.finish();
    exporters
}

fn exporter(name: &str, mut fields: Fields<'_>) -> Option<Exporter> {
    let service_name = fields.string("serviceName").unwrap_or("quality-trace").to_owned();
    let sampling = fields.number("sampling", 0.0..=100.0).unwrap_or(100.0);
    let mut endpoint = Some("http://localhost:4317".to_owned());
    if let Some(mut exporter) = fields.require("exporter").and_then(|item| item.fields()) {
        if let Some(kind) = exporter.require("type") {
            kind.choice(&[("collector", ())]);
        }
        if let Some(mut collector) = exporter.table("collector") {
            if let Some(item) = collector.take("endpoint") {
                endpoint = endpoint_url(&item);
            }
            collector.finish();
        }
        exporter.finish();
    }
    fields.finish();
    Some(Exporter { name: name.to_owned(), service_name, sampling, endpoint: endpoint? })
}

/// `host:port` and `http://…` are plaintext, `https://…` is TLS.
fn endpoint_url(item: &Item<'_>) -> Option<String> {
    let text = item.string()?;
    let url = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    let fits = url.parse::<axum::http::Uri>().is_ok_and(|uri| {
        matches!(uri.scheme_str(), Some("http" | "https"))
            && uri.host().is_some_and(|h| !h.is_empty())
    });
    if !fits {
        item.refuse("`host:port`, `http://host:port` or `https://host:port`");
    }
    fits.then_some(url)
}

/// The exporter that this role names; a name that none has is an error.
fn role(
    roles: &mut Fields<'_>,
    key: &str,
    exporters: &[Exporter],
    found: &Diagnostics,
) -> Option<Exporter> {
    let item = roles.take(key)?;
    let name = item.string()?;
    let exporter = exporters.iter().find(|exporter| exporter.name == name);
    if exporter.is_none() {
        let names = || exporters.iter().map(|exporter| exporter.name.as_str());
        let known = names().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        let diagnostic = found
            .error(item.node.span, format!("no exporter is named `{name}`"))
            .label("`telemetry.exporters` has no such name");
        found.push(match did_you_mean(name, names()) {
            Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
            None if known.is_empty() => diagnostic.help("add it under `telemetry.exporters`"),
            None => diagnostic.help(format!("there is {known}")),
        });
    }
    exporter.cloned()
}

fn loopback(port: u16) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port)
}
