//! Starts the parts of `compose.observability.yaml` as plain processes, with ports and a database of this test.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use bench::parts::{CommandResult, Database, free_port, setting};
use tempfile::TempDir;
use tokio::{
    process::{Child, Command},
    time::{Instant, sleep},
};

use crate::BINARY;

/// The timeout for each wait.
const WAIT_MAX: Duration = Duration::from_secs(30);

/// The ports of the parts on one machine. Each is replaced by a free one.
const PORTS: [&str; 9] =
    ["11633", "11634", "14317", "14318", "4317", "4318", "8888", "8889", "9090"];

/// The files of the parts.
const FILES: [&str; 4] =
    ["alerts.yaml", "collector.yaml", "prometheus.yaml", "quality-trace-config.yaml"];

/// What differs between containers and processes of one machine, where the Collector has the usual ports for OTLP.
const ADDRESSES: [(&str, &str); 4] = [
    ("server:4317", "127.0.0.1:14317"),
    ("server:11633", "127.0.0.1:11633"),
    ("collector:4317", "127.0.0.1:4317"),
    ("0.0.0.0", "127.0.0.1"),
];

/// The folder of the secrets in a container.
const SECRETS: &str = "/run/secrets/";

/// The secrets that `up.sh` makes, but for the password of the database.
const MADE: [(&str, &str); 2] = [
    ("bootstrap-token", "qtt_0123456789abcdefghijklmnopqrstuvwxyzABCDEFG"),
    ("encryption-key", "first:000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"),
];

/// Stores the traces of the Collector in a file, as a trace store would.
const STORE: &str = "
exporters: {file/store: {path: traces.jsonl}}
service: {pipelines: {traces: {exporters: [file/store, debug/store, otlp/qualitytrace]}}}
";

/// The tokens that `up.sh` lets the server make.
const TOKENS: &str = "
umask 077
qualitytrace token create --name collector --role ingest | tr -d '\\n' > collector-token
qualitytrace token create --name prometheus --role viewer | tr -d '\\n' > prometheus-token
";

const START: &str = "
qualitytrace serve &
otelcol --config collector.yaml --config store.yaml &
prometheus --config.file prometheus.yaml --storage.tsdb.path prometheus-data --web.listen-address 127.0.0.1:9090 &
qualitytrace demo &
";

/// Writes the first test.
const INIT: &str = "qualitytrace init";

/// Runs the test on the server. It passes only if the spans of the shop reach the server through the Collector.
pub(crate) const RUN: &str =
    "QUALITYTRACE_TOKEN=$(cat bootstrap-token) qualitytrace run --server http://127.0.0.1:11633";

/// Checks the files of Prometheus, and queries it.
pub(crate) const QUERY: &str = "
promtool check config prometheus.yaml
promtool query instant http://127.0.0.1:9090 'sum by (qualitytrace_run_verdict) (qualitytrace_runs_total)'
";

/// The parts, until it is dropped.
pub(crate) struct Stand {
    folder: TempDir,
    programs: TempDir,
    /// The ports of the parts, and their replacements.
    ports: BTreeMap<&'static str, String>,
    /// Variables that override the configuration of the server.
    variables: Vec<(&'static str, String)>,
    database: Database,
    processes: Option<Processes>,
}

/// A shell and all its child processes.
struct Processes {
    shell: Child,
    group: u32,
}

/// Returns the folder of the Compose files.
pub(crate) fn compose() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/compose")
}

/// Returns the folder with the files of the parts.
pub(crate) fn files() -> PathBuf {
    compose().join("observability")
}

impl Stand {
    /// Copies the files, creates the tokens, starts everything and waits until it listens.
    pub(crate) async fn start() -> Result<Self> {
        let programs = TempDir::new()?;
        let all = [
            ("qualitytrace", BINARY.to_owned()),
            ("otelcol", setting("QUALITYTRACE_TEST_COLLECTOR_BIN")?),
            ("prometheus", setting("QUALITYTRACE_TEST_PROMETHEUS")?),
            ("promtool", setting("QUALITYTRACE_TEST_PROMTOOL")?),
        ];
        for (name, program) in all {
            symlink(program, programs.path().join(name))?;
        }
        let database = Database::create("observability").await?;
        let mut ports = BTreeMap::new();
        for port in PORTS {
            ports.insert(port, free_port()?.to_string());
        }
        let folder = TempDir::new()?;
        let variables = variables(&ports, &database.section()?)?;
        let mut stand = Self { folder, programs, ports, variables, database, processes: None };
        stand.copy()?;
        stand.passes(TOKENS).await?;
        stand.processes = Some(stand.begin(START)?);
        stand.listens().await?;
        stand.passes(INIT).await?;
        stand.delivers().await?;
        Ok(stand)
    }

    /// Copies the files with the addresses of this test, and makes the secrets.
    fn copy(&self) -> Result<()> {
        let secrets = format!("{}/", self.path().display());
        for name in FILES {
            let mut text = fs::read_to_string(files().join(name))?;
            for (container, process) in ADDRESSES {
                text = text.replace(container, process);
            }
            let text = self.here(&text).replace(SECRETS, &secrets);
            fs::write(self.path().join(name), text)?;
        }
        for (name, secret) in MADE {
            fs::write(self.path().join(name), secret)?;
        }
        let password = setting("QUALITYTRACE_TEST_POSTGRES_PASSWORD")?;
        fs::write(self.path().join("postgres-password"), password)?;
        Ok(fs::write(self.path().join("store.yaml"), STORE)?)
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the URL of the part that has this port.
    pub(crate) fn url(&self, port: &str) -> String {
        format!("http://127.0.0.1:{}", self.ports[port])
    }

    /// Returns one of the tokens of the parts.
    pub(crate) fn token(&self, name: &str) -> Result<String> {
        Ok(fs::read_to_string(self.path().join(format!("{name}-token")))?.trim().to_owned())
    }

    /// Runs commands in a shell, which must succeed; returns their output.
    pub(crate) async fn passes(&self, commands: &str) -> Result<String> {
        let mut shell = self.shell(&format!("set -e\n{}", self.here(commands)));
        let ended = shell.stdout(Stdio::piped()).stderr(Stdio::piped()).output().await?;
        let ended = CommandResult {
            code: ended.status.code(),
            out: String::from_utf8(ended.stdout)?,
            err: String::from_utf8(ended.stderr)?,
        };
        ensure!(ended.code == Some(0), "{commands}{ended:?}\n{}", self.log());
        Ok(ended.out)
    }

    /// Starts commands that keep running.
    fn begin(&self, commands: &str) -> Result<Processes> {
        let log = File::create(self.path().join("log"))?;
        let mut shell = self.shell(&format!("{}wait\n", self.here(commands)));
        let shell = shell.stdout(log.try_clone()?).stderr(log).process_group(0).spawn()?;
        let group = shell.id().context("it was just started")?;
        Ok(Processes { shell, group })
    }

    /// Starts a program that ends when it is dropped.
    pub(crate) fn spawn(&self, command: &str) -> Result<Child> {
        Ok(self.shell(&format!("exec {command}")).spawn()?)
    }

    fn shell(&self, commands: &str) -> Command {
        let mut shell = Command::new("/bin/bash");
        shell.args(["-c", commands]).current_dir(self.path()).env_clear().kill_on_drop(true);
        shell
            .env("PATH", format!("{}:/usr/bin:/bin", self.programs.path().display()))
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .env("XDG_CONFIG_HOME", self.path())
            .env("QUALITYTRACE_DEMO_HTTP", format!("127.0.0.1:{}", self.ports["11634"]))
            .env("QUALITYTRACE_DEMO_OTLP", self.url("4317"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        shell
    }

    /// Waits until each part accepts requests.
    async fn listens(&self) -> Result<()> {
        for ready in [self.url("11633") + "/readyz", self.url("9090") + "/-/ready"] {
            self.until(&ready, async || {
                let answer = reqwest::get(&ready).await;
                Ok(answer.is_ok_and(|answer| answer.status() == 200).then_some(()))
            })
            .await?;
        }
        for port in ["4317", "8889", "11634", "14317"] {
            self.until(port, async || {
                let port = self.ports[port].parse()?;
                Ok(tokio::net::TcpStream::connect(("127.0.0.1", port)).await.ok())
            })
            .await?;
        }
        Ok(())
    }

    /// Waits until spans reach the server through the Collector, which retries only after seconds if it started first. The
    /// trace of a run would be late, and the server would learn this delay.
    async fn delivers(&self) -> Result<()> {
        let (shop, metrics) = (self.url("11634") + "/orders", self.url("11633") + "/metrics");
        let (client, token) = (reqwest::Client::new(), self.token("prometheus")?);
        self.until("spans through the Collector", async || {
            client.get(&shop).send().await?;
            let page = client.get(&metrics).bearer_auth(&token).send().await?.text().await?;
            let mut counts =
                page.lines().filter(|it| it.starts_with("qualitytrace_ingest_spans_total"));
            let is_received = counts.any(|it| !it.ends_with(" 0"));
            Ok(is_received.then_some(()))
        })
        .await
    }

    /// Waits until `look` returns a value.
    pub(crate) async fn until<T>(
        &self,
        what: &str,
        look: impl AsyncFn() -> Result<Option<T>>,
    ) -> Result<T> {
        let began = Instant::now();
        loop {
            if let Some(seen) = look().await? {
                return Ok(seen);
            }
            if began.elapsed() > WAIT_MAX {
                bail!("not seen within {WAIT_MAX:?}: {what}\n{}", self.log());
            }
            sleep(Duration::from_millis(100)).await;
        }
    }

    /// Returns the output of all processes.
    fn log(&self) -> String {
        fs::read_to_string(self.path().join("log")).unwrap_or_default()
    }

    /// Returns a text with the ports of this test.
    fn here(&self, text: &str) -> String {
        let is_end = |c: char| !c.is_ascii_alphanumeric();
        let words = text.split_inclusive(is_end).map(|word| {
            let (bare, end) = word.split_at(word.trim_end_matches(is_end).len());
            let bare = self.ports.get(bare).map_or(bare, String::as_str);
            format!("{bare}{end}")
        });
        words.collect()
    }

    /// Stops everything.
    pub(crate) async fn end(mut self) -> Result<()> {
        drop(self.processes.take());
        self.database.remove().await
    }
}

/// Returns the variables of a server that runs as a process and with this section `postgres`.
fn variables(
    ports: &BTreeMap<&'static str, String>,
    section: &str,
) -> Result<Vec<(&'static str, String)>> {
    let of_postgres = |key: &str| {
        let value = section.split_once(key).and_then(|(_, rest)| rest.split([',', '}']).next());
        value.map(str::to_owned).with_context(|| format!("`{key}` in the section"))
    };
    Ok(vec![
        ("QUALITYTRACE_POSTGRES_HOST", "127.0.0.1".to_owned()),
        ("QUALITYTRACE_POSTGRES_PORT", of_postgres("port: ")?),
        ("QUALITYTRACE_POSTGRES_USER", "postgres".to_owned()),
        ("QUALITYTRACE_POSTGRES_DBNAME", of_postgres("dbname: ")?),
        ("QUALITYTRACE_SERVER_HTTPPORT", ports["11633"].clone()),
        ("QUALITYTRACE_SERVER_OTLPGRPCPORT", ports["14317"].clone()),
        ("QUALITYTRACE_SERVER_OTLPHTTPPORT", ports["14318"].clone()),
        ("QUALITYTRACE_SERVER_DATADIRECTORY", "server-data".to_owned()),
        // The shop that is tested runs on this machine.
        ("QUALITYTRACE_SERVER_TRIGGERS_NETWORKS_ALLOW", "loopback".to_owned()),
    ])
}

impl Drop for Processes {
    fn drop(&mut self) {
        // The shell is the first process of the group and has not been waited for, so that the id still belongs to it.
        let group = format!("-{}", self.group);
        let killed = std::process::Command::new("kill").args(["-KILL", "--", &group]).status();
        if !killed.is_ok_and(|status| status.success()) {
            // Ends at least the shell.
            self.shell.start_kill().ok();
        }
    }
}
