//! The server's configuration file: its own sections, and the telemetry library's `telemetry`, `metrics` and `tracer`;
//! YAML or TOML by its extension.
//!
//! Parsing returns either a [`Config`] or all diagnostics at once, each with its location: in the file, or in the
//! environment. `QUALITYTRACE_…` variables override the file. Deliberately absent: the choice of the file, and flags.

mod access;
mod bounds;
mod flags;
mod key_rings;
mod keys;
mod nats;
mod reach;
mod retired;
mod roles;
mod tls;
mod web;

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::PathBuf,
};

use model::Secret;
use source::{Diagnostic, Diagnostics, Fields, Item, Text, did_you_mean};
use telemetry::{
    Roles,
    config::{self, Defaults, Overlay},
    plan::{Level, Plan},
};
use url::Url;

pub use access::{AccessConfig, Mode, OidcConfig, Role};
pub(crate) use access::{TOKEN_PREFIX, is_safe, is_token};
pub use bounds::{Limits, Retention, Workers};
pub use flags::FLAGS;
pub use key_rings::{Ids, SecretKey, Secrets};
pub use keys::{KEYS, schema};
pub use nats::Nats;
pub use reach::{Network, NetworkRules, Triggers};
pub use roles::{ServerRoles, UnknownRole};
pub use telemetry::config::Environment;
pub use tls::{CertificateFiles, OtlpTls, Tls};
pub use web::WebConfig;

/// The prefix of the environment variable of a key.
pub const PREFIX: &str = "QUALITYTRACE";
/// The default `service.name`.
const SERVICE_NAME: &str = "quality-trace";
/// The beginning of the variables by which `cargo xtask services env` passes the addresses of servers to tests. A user who has
/// them set wants no warning about each.
const OF_TESTS: &str = "QUALITYTRACE_TEST_";

/// The complete configuration of a server.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The database.
    pub postgres: Postgres,
    /// The exporters of the server's own telemetry.
    pub telemetry: TelemetryConfig,
    /// The parts of a server that this process runs.
    pub roles: ServerRoles,
    /// The addresses to listen on.
    pub listen: Listen,
    /// The URL by which browsers reach the server.
    pub public_url: Option<Url>,
    /// The web page, and the path before all URLs.
    pub web: WebConfig,
    /// The proxies with trusted forwarding headers.
    pub trusted_proxies: Vec<Network>,
    /// The TLS certificates.
    pub tls: Tls,
    /// The settings of the workers.
    pub workers: Workers,
    /// The retention of stored data.
    pub retention: Retention,
    /// The limits for requests and traces.
    pub limits: Limits,
    /// The authentication of callers.
    pub access: AccessConfig,
    /// The keys for trace ids.
    pub ids: Ids,
    /// The keys for variable sets.
    pub secrets: Secrets,
    /// The targets that tests of other people may reach.
    pub triggers: Triggers,
    /// The networks that runs may reach to query trace stores.
    pub stores: NetworkRules,
    /// The bus over which several servers share spans; without it, each keeps its own.
    pub nats: Option<Nats>,
    /// The log on stderr.
    pub log: Log,
    /// Whether a start migrates the tables.
    pub migrate: bool,
    /// The documents that are applied at every start: a file, or a folder of them.
    pub provisioning: Option<PathBuf>,
    /// The directory for data outside of the database.
    pub data_directory: PathBuf,
}

/// The result of parsing a configuration.
#[derive(Debug)]
pub struct ConfigReading {
    /// The configuration, unless it has an error.
    pub config: Option<Config>,
    /// The errors and warnings that have a location.
    pub diagnostics: Vec<Diagnostic>,
    /// The warnings without a location.
    pub notices: Vec<String>,
}

/// The connection to Postgres.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Postgres {
    /// The host name or address.
    pub host: String,
    /// The port.
    pub port: u16,
    /// The role.
    pub user: String,
    /// The role's password.
    pub password: Secret,
    /// The name of the database.
    pub dbname: String,
    /// Further connection parameters, such as `sslmode`.
    pub params: Vec<(String, String)>,
    /// The maximum number of connections for work; a few more are reserved for queries that must not wait behind it.
    pub pool_max: u32,
}

/// The exporters, and which telemetry each one exports.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TelemetryConfig {
    /// All exporters.
    pub plan: Plan,
    /// The name of the exporter in the plan that exports the server's own spans and metrics.
    pub exporter: Option<String>,
    /// The name of the exporter that exports the trigger span of each run.
    pub application_exporter: Option<String>,
}

impl TelemetryConfig {
    /// Returns the roles in the type of the library.
    pub fn roles(&self) -> Roles {
        Roles {
            own: self.exporter.clone(),
            others: self.application_exporter.iter().cloned().collect(),
        }
    }

    /// Adds a note if sampling drops trigger spans, which leaves the application's traces without a root.
    fn note_thinned_triggers(&mut self) {
        let name = self.application_exporter.as_ref();
        let exporter = self.plan.exporters.iter().find(|exporter| Some(&exporter.name) == name);
        if let Some(exporter) = exporter.filter(|exporter| exporter.sampling < 100.0) {
            self.plan.notes.push(format!(
                "`server.telemetry.applicationExporter`: `sampling` of `{}` leaves out trigger spans, so that traces of \
                 the tested application have no root; the application itself is always asked to sample",
                exporter.name
            ));
        }
    }
}

/// The addresses that the server listens on; of a running server, a port that it does not open is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listen {
    /// The API.
    pub http: SocketAddr,
    /// OTLP over gRPC.
    pub otlp_grpc: SocketAddr,
    /// OTLP over HTTP.
    pub otlp_http: SocketAddr,
    /// A listener for probes alone, in addition to the API.
    pub probes: Option<SocketAddr>,
}

impl Listen {
    /// Returns the addresses that these roles open; a port that none of them opens is 0.
    pub(crate) fn opened_by(mut self, roles: ServerRoles) -> Self {
        if !roles.ingest {
            self.otlp_grpc.set_port(0);
            self.otlp_http.set_port(0);
        }
        self
    }
}

/// The log on stderr.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Log {
    /// The minimum level that is logged.
    pub level: Level,
    /// The format of the lines.
    pub format: LogFormat,
}

/// The format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// Text for people.
    Text,
    /// One JSON object a line, with the ids of trace, span and run.
    Json,
}

impl Default for Log {
    fn default() -> Self {
        Self { level: Level::Info, format: LogFormat::Text }
    }
}

impl Default for Listen {
    fn default() -> Self {
        Self {
            http: loopback(11633),
            otlp_grpc: loopback(4317),
            otlp_http: loopback(4318),
            probes: None,
        }
    }
}

/// Parses a configuration file; the extension of its name selects the format. An empty file means the defaults.
pub fn read(text: &Text, environment: &Environment) -> ConfigReading {
    let (root, mistakes) = source::read_one(text);
    let names = environment.iter().map(|(name, _)| name).filter(|name| name.starts_with(OF_TESTS));
    let taken: Vec<_> = FLAGS.iter().copied().chain(names).collect();
    let keys = &[config::KEYS, KEYS, retired::KEYS];
    let overlay = Overlay { prefix: PREFIX, keys, environment, taken: &taken };
    let overlaid = overlay.apply(text, root);
    let found = overlaid.found(mistakes);
    let root = retired::without(&overlaid.root, &found);
    let config = Fields::of(&root, "the configuration", &found)
        .map(|root| config(root, environment, &found));
    let config = config.filter(|_| !found.has_errors());
    ConfigReading { config, diagnostics: found.into_vec(), notices: overlaid.notices }
}

impl Default for Postgres {
    fn default() -> Self {
        Self {
            host: "localhost".to_owned(),
            port: 5432,
            user: "postgres".to_owned(),
            password: Secret::new("postgres"),
            dbname: "qualitytrace".to_owned(),
            params: Vec::new(),
            pool_max: 16,
        }
    }
}

fn config(mut root: Fields<'_>, environment: &Environment, found: &Diagnostics) -> Config {
    let postgres = postgres(root.section("postgres"));
    let mut server = root.section("server");
    let listen = listen(&mut server);
    let state = environment.get("STATE_DIRECTORY").unwrap_or(".qualitytrace");
    let data_directory = PathBuf::from(server.string("dataDirectory").unwrap_or(state));
    let defaults = Defaults {
        service_name: SERVICE_NAME.to_owned(),
        directory: Some(data_directory.join("telemetry")),
        own_directory: Some(data_directory.clone()),
        environment: environment.clone(),
    };
    let plan = config::read(&mut root, &defaults, found);
    let telemetry = telemetry(server.section("telemetry"), plan, found);
    let config = Config {
        postgres,
        telemetry,
        roles: roles::read(&mut server),
        listen,
        public_url: server.take("publicUrl").and_then(|item| public_url(&item)),
        web: web::read(&mut server),
        trusted_proxies: reach::proxies(&server.list("trustedProxies").unwrap_or_default()),
        tls: tls::read(&mut server),
        workers: bounds::workers(root.section("workers")),
        retention: bounds::retention(root.section("retention")),
        limits: bounds::limits(server.section("limits")),
        access: access::read(server.section("auth")),
        ids: key_rings::ids(root.section("ids")),
        secrets: key_rings::secrets(root.section("secrets")),
        triggers: reach::read(server.section("triggers")),
        stores: reach::stores(server.section("stores")),
        nats: nats::read(&mut root, found),
        log: log(root.section("log")),
        migrate: server.boolean("migrate").unwrap_or(true),
        provisioning: server.string("provisioning").map(PathBuf::from),
        data_directory,
    };
    server.finish();
    root.finish();
    config
}

fn public_url(item: &Item<'_>) -> Option<Url> {
    let text = item.string()?;
    let url = Url::parse(text).ok().filter(|url| {
        let is_web = matches!(url.scheme(), "http" | "https");
        is_web && url.path() == "/" && url.query().is_none() && url.fragment().is_none()
    });
    if url.is_none() {
        item.misfit("an URL without a path, such as `https://quality.example.com`");
    }
    url
}

fn telemetry(mut roles: Fields<'_>, plan: Plan, found: &Diagnostics) -> TelemetryConfig {
    let exporter = role(&mut roles, "exporter", &plan, found);
    let application_exporter = role(&mut roles, "applicationExporter", &plan, found);
    roles.finish();
    let mut telemetry = TelemetryConfig { plan, exporter, application_exporter };
    telemetry.note_thinned_triggers();
    telemetry
}

fn log(mut fields: Fields<'_>) -> Log {
    const FORMATS: &[(&str, LogFormat)] = &[("text", LogFormat::Text), ("json", LogFormat::Json)];
    let default = Log::default();
    let log = Log {
        level: fields.choice("level", LEVELS).unwrap_or(default.level),
        format: fields.choice("format", FORMATS).unwrap_or(default.format),
    };
    fields.finish();
    log
}

const LEVELS: &[(&str, Level)] = &[
    ("trace", Level::Trace),
    ("debug", Level::Debug),
    ("info", Level::Info),
    ("warn", Level::Warn),
    ("error", Level::Error),
];

fn listen(server: &mut Fields<'_>) -> Listen {
    let mut listen = Listen::default();
    let Listen { http, otlp_grpc, otlp_http, .. } = &mut listen;
    let bind = server.take("bind").and_then(|item| {
        let address = item.string()?.trim_matches(['[', ']']).parse().ok();
        if address.is_none() {
            item.misfit("an address such as `127.0.0.1`, `0.0.0.0` or `::1`");
        }
        address
    });
    let ports = [("httpPort", http), ("otlpGrpcPort", otlp_grpc), ("otlpHttpPort", otlp_http)];
    for (key, address) in ports {
        address.set_ip(bind.unwrap_or(address.ip()));
        if let Some(port) = server.integer(key, 1..=u16::MAX) {
            address.set_port(port);
        }
    }
    let probe_port = server.integer("probePort", 1..=u16::MAX);
    listen.probes = probe_port.map(|port| SocketAddr::new(listen.http.ip(), port));
    listen
}

fn postgres(mut fields: Fields<'_>) -> Postgres {
    /// Postgres accepts 100 connections by default, of all clients together.
    const POOL_MAX: u32 = 1000;
    let mut config = Postgres::default();
    let set = |to: &mut String, value: Option<&str>| {
        if let Some(value) = value {
            value.clone_into(to);
        }
    };
    set(&mut config.host, fields.string("host"));
    set(&mut config.user, fields.string("user"));
    if let Some(password) = fields.string("password") {
        config.password = Secret::new(password);
    }
    set(&mut config.dbname, fields.string("dbname"));
    config.port = fields.integer("port", 1..=u16::MAX).unwrap_or(config.port);
    config.pool_max = fields.integer("pool", 1..=POOL_MAX).unwrap_or(config.pool_max);
    if let Some(item) = fields.take("params") {
        config.params = params(&item);
    }
    fields.finish();
    config
}

/// Parses `sslmode=disable application_name=x`; `&` separates as well.
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

/// Returns the plan's name of the exporter that this role names; an unknown name is an error.
fn role(roles: &mut Fields<'_>, key: &str, plan: &Plan, found: &Diagnostics) -> Option<String> {
    const EXPORTERS: &str = "telemetry.exporters.";
    let item = roles.take(key)?;
    let name = item.string()?;
    let names = || plan.exporters.iter().filter_map(|it| it.name.strip_prefix(EXPORTERS));
    if names().any(|known| known == name) {
        return Some(format!("{EXPORTERS}{name}"));
    }
    let known = names().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let diagnostic = found
        .error(item.node.span, format!("no exporter is named `{name}`"))
        .label("`telemetry.exporters` has no such name");
    found.push(match did_you_mean(name, names()) {
        Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
        None if known.is_empty() => diagnostic.help("add it under `telemetry.exporters`"),
        None => diagnostic.help(format!("there is {known}")),
    });
    None
}

fn loopback(port: u16) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port)
}
