//! The stand: a *subject* that is tested and an *observer* that tests it, both the built binary.
//!
//! The subject's telemetry goes to a real Collector, which sends it on to the observer. A second Collector, which traces
//! itself, sends spans to the subject: what is received from a sender that tells of a trace must not become a part of it.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::json;
use tempfile::TempDir;
use tokio::process::Child;

use super::{files, say};
use crate::parts::{Api, Database, Server, Target, collector_of, free_port, qualitytrace};

/// Runs that the subject has behind it when it is tested: a list of them shows who asks for each alone.
const PAST_RUNS: usize = 12;
/// How long the subject may take for one of them.
const PAST_MAX: std::time::Duration = std::time::Duration::from_secs(60);
/// The variable by which a build with planted faults is told which one to show.
pub(super) const PLANT: &str = "QUALITYTRACE_TEST_PLANT";

/// Keys of variable sets; nothing that they seal outlives the stand.
const SECRETS: &str =
    "secrets: {keys: ['dogfood:000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f']}";
const LOSE: &str = "update document_versions set sealed = '\\x00' where document_id = 'lost'";

/// Everything that runs, until it is dropped.
pub(super) struct Stand {
    /// The observer's API.
    pub(super) observer: Api,
    /// Where it is.
    pub(super) observer_url: String,
    servers: [Server; 2],
    databases: [Database; 2],
    _collectors: [(Child, TempDir); 2],
    _target: Target,
}

/// Who may ask the subject.
struct Tokens {
    admin: String,
    viewer: String,
}

impl Stand {
    /// Starts all of it, and prepares the subject; `plant` names a fault that the subject shows.
    pub(super) async fn start(
        binary: &Path,
        plant: Option<&str>,
        history: Option<&Path>,
    ) -> Result<Self> {
        let (observer, database) = observing(binary, history).await?;
        let databases = [database, Database::create("subject").await?];
        let (port, relayed) = (free_port()?, free_port()?);
        let collector = collector_of(&forwarding(port, observer.otlp_grpc), &[port]).await?;
        let told: Vec<_> = plant.map(|plant| (PLANT, plant)).into_iter().collect();
        let subject = Server::start_told(binary, &observed(&databases[1], port)?, &told).await?;
        let relay = collector_of(&relaying(relayed, subject.otlp_grpc, port), &[relayed]).await?;
        let target = Target::start(Some(subject.otlp_grpc)).await?;
        let tokens = Tokens {
            admin: token(binary, &subject, "admin").await?,
            viewer: token(binary, &subject, "viewer").await?,
        };
        let past = prepare(&subject, &target, &tokens, plant).await?;
        // A fault of a real database: what was kept cannot be opened any more.
        databases[1].execute(LOSE).await?;
        let stand = Self {
            observer: Api::new(&observer.api)?,
            observer_url: observer.api.clone(),
            servers: [subject, observer],
            databases,
            _collectors: [collector, relay],
            _target: target,
        };
        let relay = format!("http://127.0.0.1:{relayed}");
        stand.observer.apply(&stand.variables(&tokens, &past, &relay)).await?;
        Ok(stand)
    }

    /// What the tests know of the subject: the variable set `subject`.
    fn variables(&self, tokens: &Tokens, past: &str, relay: &str) -> String {
        let secret = |key: &str, value: &str| json!({"key": key, "value": value, "type": "secret"});
        let plain = |key: &str, value: &str| json!({"key": key, "value": value});
        let values = [
            plain("SUBJECT", &self.servers[0].api),
            plain("RELAY", relay),
            plain("PAST", past),
            secret("TOKEN", &tokens.admin),
            secret("VIEWER", &tokens.viewer),
        ];
        let spec = json!({"id": "subject", "name": "the subject", "values": values});
        json!({"type": "VariableSet", "spec": spec}).to_string()
    }

    /// Ends everything in order, leaves the observer's past in `history`, and tells whether the servers ended well.
    pub(super) async fn end(self, history: Option<&Path>) -> Result<()> {
        for server in self.servers {
            ensure!(server.terminate().await? == Some(0), "a server did not end well");
        }
        if let Some(history) = history {
            self.databases[0].dump(history).await?;
        }
        for database in self.databases {
            database.remove().await?;
        }
        Ok(())
    }
}

/// A token of the subject, made as its operator does.
async fn token(binary: &Path, subject: &Server, role: &str) -> Result<String> {
    let config = subject.config.to_str().context("a path that is text")?;
    let arguments = ["token", "create", "--config", config, "--role", role, "--name", role];
    let made = qualitytrace(binary, &arguments).await?;
    ensure!(made.code == Some(0), "no token is made: {made:?}");
    Ok(made.out.trim().to_owned())
}

/// Gives the subject its documents and a past, and tells the id of its last run.
async fn prepare(
    subject: &Server,
    target: &Target,
    tokens: &Tokens,
    plant: Option<&str>,
) -> Result<String> {
    let api = Api::new(&subject.api)?.with_token(&tokens.admin);
    for (_, text) in files("subject")? {
        api.apply(&text.replace("http://shop.test", &target.url)).await?;
    }
    let body = json!({"variableSets": ["shop"]});
    let mut past = String::new();
    for at in 0..PAST_RUNS {
        past = api.start_once("cart", &body, &format!("dogfood-{at}")).await?;
    }
    let run = api.ended(&past, PAST_MAX).await?;
    let is_right = run["verdict"] == "passed" || plant.is_some();
    ensure!(is_right, "the subject's first run did not pass: {run:#}");
    Ok(past)
}

/// The observer and its record: as it was left the last time, where that is known and still understood.
async fn observing(binary: &Path, history: Option<&Path>) -> Result<(Server, Database)> {
    if let Some(history) = history.filter(|history| history.exists()) {
        let database = Database::create("observer").await?;
        let server = match database.restore(history).await {
            Ok(()) => started(binary, &database).await,
            Err(error) => Err(error),
        };
        match server {
            Ok(server) => return Ok((server, database)),
            Err(error) => {
                say(&format!("the observer begins anew: its past is not understood: {error:#}"));
                database.remove().await?;
            }
        }
    }
    let database = Database::create("observer").await?;
    Ok((started(binary, &database).await?, database))
}

async fn started(binary: &Path, observer: &Database) -> Result<Server> {
    Server::start_with(binary, &observer_of(observer)?, "127.0.0.1:0").await
}

fn observer_of(database: &Database) -> Result<String> {
    let retention = "retention: {runs: 90d, traces: 1d}";
    Ok(format!("{}\n{SECRETS}\n{retention}\n", database.section()?))
}

fn observed(database: &Database, collector: u16) -> Result<String> {
    Ok(format!(
        "{}
{SECRETS}
telemetry:
  exporters:
    collector:
      serviceName: quality-trace
      sampling: 100
      metricsReaderInterval: 1s
      throttle: 50ms
      exporter:
        type: collector
        collector:
          endpoint: 127.0.0.1:{collector}
server:
  auth: {{mode: on, ingest: {{required: false}}}}
  triggers: {{networks: {{allow: [loopback]}}}}
  limits: {{requestsPerSecond: 10000, projectRequestsPerSecond: 10000}}
  telemetry:
    exporter: collector
    applicationExporter: collector
",
        database.section()?
    ))
}

fn forwarding(port: u16, observer: u16) -> String {
    format!(
        "receivers: {{otlp: {{protocols: {{grpc: {{endpoint: '127.0.0.1:{port}'}}}}}}}}
exporters:
  otlp: {{endpoint: '127.0.0.1:{observer}', tls: {{insecure: true}}}}
  nop: {{}}
service:
  telemetry: {{metrics: {{level: none}}, logs: {{level: warn}}}}
  pipelines:
    traces: {{receivers: [otlp], exporters: [otlp]}}
    metrics: {{receivers: [otlp], exporters: [nop]}}
"
    )
}

/// A Collector that hands on to the subject what it is sent, and traces doing so.
fn relaying(port: u16, subject: u16, collector: u16) -> String {
    format!(
        "receivers: {{otlp: {{protocols: {{http: {{endpoint: '127.0.0.1:{port}'}}}}}}}}
exporters:
  otlp:
    endpoint: '127.0.0.1:{subject}'
    tls: {{insecure: true}}
    sending_queue: {{enabled: false}}
service:
  telemetry:
    resource: {{service.name: relay}}
    metrics: {{level: none}}
    logs: {{level: warn}}
    traces:
      propagators: [tracecontext]
      processors:
        - batch:
            schedule_delay: 50
            exporter: {{otlp: {{protocol: grpc, endpoint: 'http://127.0.0.1:{collector}', insecure: true}}}}
  pipelines:
    traces: {{receivers: [otlp], exporters: [otlp]}}
"
    )
}
