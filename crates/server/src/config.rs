//! The server's configuration file: `postgres`, `server`, and the telemetry library's `telemetry`, `metrics` and `tracer`;
//! YAML or TOML by its extension.
//!
//! One reading gives either a [`Config`] or every mistake at once, each with its place: in the file, or in the
//! environment, whose `QUALITYTRACE_…` variables overrule it. Deliberately absent: which file is read, and flags.

mod keys;

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    time::Duration,
};

use model::Secret;
use source::{Diagnostic, Diagnostics, Fields, Item, Text, did_you_mean};
use telemetry::{
    Roles,
    config::{self, Defaults, Overlay},
    plan::Plan,
};

pub use keys::{KEYS, schema};
pub use telemetry::config::Environment;

/// What stands before a key in the name of its variable.
pub const PREFIX: &str = "QUALITYTRACE";
/// `service.name` of what does not say its own.
const SERVICE_NAME: &str = "quality-trace";
/// Variables of this prefix that are flags, not keys.
pub const FLAGS: &[&str] = &[
    "QUALITYTRACE_CHECK",
    "QUALITYTRACE_CONFIG",
    "QUALITYTRACE_DEMO_FAULT",
    "QUALITYTRACE_DEMO_HTTP",
    "QUALITYTRACE_DEMO_OTLP",
    "QUALITYTRACE_DEMO_PROCESSES",
    "QUALITYTRACE_DRAIN",
    "QUALITYTRACE_FAIL_FAST",
    "QUALITYTRACE_GATE",
    "QUALITYTRACE_HTTP",
    "QUALITYTRACE_JOBS",
    "QUALITYTRACE_LAST_FAILED",
    "QUALITYTRACE_OTLP",
    "QUALITYTRACE_OTLP_GRPC",
    "QUALITYTRACE_OTLP_HTTP",
    "QUALITYTRACE_OUTPUT",
    "QUALITYTRACE_PARTIAL",
    "QUALITYTRACE_PROTOCOL",
    "QUALITYTRACE_QUIET",
    "QUALITYTRACE_READY",
    "QUALITYTRACE_READY_TIMEOUT",
    "QUALITYTRACE_REPEAT",
    "QUALITYTRACE_REPORT",
    "QUALITYTRACE_RETRIES",
    "QUALITYTRACE_RULES",
    "QUALITYTRACE_SECRET",
    "QUALITYTRACE_SEED",
    "QUALITYTRACE_SERVER",
    "QUALITYTRACE_SET",
    "QUALITYTRACE_SHARD",
    "QUALITYTRACE_TAG",
    "QUALITYTRACE_TEST",
    "QUALITYTRACE_TIMEOUT",
    "QUALITYTRACE_TRACE",
    "QUALITYTRACE_TRACES",
    "QUALITYTRACE_TRACE_ID",
    "QUALITYTRACE_VARS",
    "QUALITYTRACE_VERBOSE",
    "QUALITYTRACE_WATCH",
];

/// Variables by which `cargo xtask services env` tells tests where servers are. A person who has them set wants no word
/// about each.
const OF_TESTS: &[&str] = &[
    "QUALITYTRACE_TEST_COLLECTOR_BIN",
    "QUALITYTRACE_TEST_COLLECTOR_FILE",
    "QUALITYTRACE_TEST_COLLECTOR_GRPC",
    "QUALITYTRACE_TEST_COLLECTOR_HTTP",
    "QUALITYTRACE_TEST_POSTGRES",
    "QUALITYTRACE_TEST_POSTGRES_PASSWORD",
    "QUALITYTRACE_TEST_SDK_GO",
    "QUALITYTRACE_TEST_SDK_JAVA",
    "QUALITYTRACE_TEST_SDK_NODE",
    "QUALITYTRACE_TEST_SDK_PYTHON",
];

/// All that a server is configured with.
#[derive(Clone, Debug, PartialEq)]
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

/// What came of reading a configuration.
#[derive(Debug)]
pub struct Read {
    /// The configuration, unless something is wrong with it.
    pub config: Option<Config>,
    /// What is wrong, or worth a word, with its place.
    pub diagnostics: Vec<Diagnostic>,
    /// What is worth a word and has no place.
    pub notices: Vec<String>,
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

/// What leaves the server, and which exporter carries what.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Telemetry {
    /// All exporters.
    pub plan: Plan,
    /// Carries the server's own spans and metrics: its name in the plan.
    pub exporter: Option<String>,
    /// Carries the trigger span of each run.
    pub application_exporter: Option<String>,
}

impl Telemetry {
    /// The same, in the library's words.
    pub fn roles(&self) -> Roles {
        Roles {
            own: self.exporter.clone(),
            others: self.application_exporter.iter().cloned().collect(),
        }
    }

    /// Trigger spans that are left out leave the application's traces without a root.
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

/// Reads a configuration file; the name's extension tells its format. An empty file asks for the defaults.
pub fn read(text: &Text, environment: &Environment) -> Read {
    let (root, mistakes) = source::read_one(text);
    let taken = [FLAGS, OF_TESTS].concat();
    let keys = &[config::KEYS, KEYS];
    let overlay = Overlay { prefix: PREFIX, keys, environment, taken: &taken };
    let overlaid = overlay.apply(text, root);
    let found = overlaid.found(mistakes);
    let config = Fields::of(&overlaid.root, "the configuration", &found)
        .map(|root| config(root, environment, &found));
    let config = config.filter(|_| !found.has_errors());
    Read { config, diagnostics: found.into_vec(), notices: overlaid.notices }
}

fn defaults() -> Config {
    let postgres = Postgres {
        host: "localhost".to_owned(),
        port: 5432,
        user: "postgres".to_owned(),
        password: Secret::new("postgres"),
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

fn config(mut root: Fields<'_>, environment: &Environment, found: &Diagnostics) -> Config {
    let mut config = defaults();
    if let Some(fields) = root.table("postgres") {
        postgres(fields, &mut config.postgres);
    }
    let state = environment.get("STATE_DIRECTORY").unwrap_or(".qualitytrace");
    let mut directory = PathBuf::from(state);
    let mut server = root.table("server");
    let mut roles = None;
    if let Some(server) = &mut server {
        listen(server, &mut config.listen);
        directory = server.string("dataDirectory").map_or(directory, PathBuf::from);
        roles = server.table("telemetry");
    }
    let defaults = Defaults {
        service_name: SERVICE_NAME.to_owned(),
        directory: Some(Path::new(&directory).join("telemetry")),
        environment: environment.clone(),
    };
    config.telemetry.plan = config::read(&mut root, &defaults, found);
    if let Some(mut roles) = roles {
        let plan = &config.telemetry.plan;
        config.telemetry.exporter = role(&mut roles, "exporter", plan, found);
        config.telemetry.application_exporter =
            role(&mut roles, "applicationExporter", plan, found);
        roles.finish();
    }
    config.telemetry.note_thinned_triggers();
    if let Some(server) = server {
        server.finish();
    }
    root.finish();
    config
}

fn listen(server: &mut Fields<'_>, listen: &mut Listen) {
    let Listen { http, otlp_grpc, otlp_http } = listen;
    let ports = [("httpPort", http), ("otlpGrpcPort", otlp_grpc), ("otlpHttpPort", otlp_http)];
    for (key, address) in ports {
        if let Some(port) = server.integer(key, 1..=u16::MAX) {
            address.set_port(port);
        }
    }
}

fn postgres(mut fields: Fields<'_>, config: &mut Postgres) {
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

/// The exporter that this role names, by its name in the plan; a name that none has is an error.
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
