//! Starts the example by its README, with ports and a database of this test.

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

/// The ports of the example. Each is replaced by a free one, and 5432 by that of the tests' Postgres.
const PORTS: [&str; 9] =
    ["11633", "11634", "14317", "14318", "4317", "4318", "8888", "8889", "9090"];

/// The database of the example, in its configuration.
const DATABASE: &str = "dbname: qualitytrace";

/// The number of command blocks in the README.
const BLOCKS: usize = 4;

/// The programs that the README starts, until it is dropped.
pub(crate) struct Stand {
    folder: TempDir,
    programs: TempDir,
    /// The ports of the example, and their replacements.
    ports: BTreeMap<&'static str, String>,
    blocks: Vec<String>,
    /// The password of the database user.
    password: String,
    database: Database,
    processes: Option<Processes>,
}

/// A shell and all its child processes.
struct Processes {
    shell: Child,
    group: u32,
}

pub(crate) fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/observability")
}

impl Stand {
    /// Copies the example, creates the tokens, starts everything and waits until it listens.
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
        let password = setting("QUALITYTRACE_TEST_POSTGRES_PASSWORD")?;
        let database = Database::create("observability").await?;
        let section = database.section()?;
        let of_postgres = |key: &str| {
            let value = section.split_once(key).and_then(|(_, rest)| rest.split([',', '}']).next());
            value.map(str::to_owned).with_context(|| format!("`{key}` in the section"))
        };
        let mut ports = BTreeMap::from([("5432", of_postgres("port: ")?)]);
        for port in PORTS {
            ports.insert(port, free_port()?.to_string());
        }
        let folder = TempDir::new()?;
        let (blocks, processes) = (Vec::new(), None);
        let mut stand = Self { folder, programs, ports, blocks, password, database, processes };
        let name = format!("dbname: {}", of_postgres("dbname: ")?);
        for file in fs::read_dir(example())? {
            let file = file?;
            if file.file_type()?.is_file() {
                let text = stand.here(&fs::read_to_string(file.path())?).replace(DATABASE, &name);
                fs::write(stand.path().join(file.file_name()), text)?;
            }
        }
        let readme = fs::read_to_string(stand.path().join("README.md"))?;
        let blocks = readme.split("```sh\n").skip(1).filter_map(|block| block.split("```").next());
        stand.blocks = blocks.map(str::to_owned).collect();
        ensure!(stand.blocks.len() == BLOCKS, "{BLOCKS} blocks, not {:?}", stand.blocks);
        stand.passes(0).await?;
        stand.processes = Some(stand.begin(1)?);
        stand.listens().await?;
        stand.delivers().await?;
        Ok(stand)
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the URL of the part that has this port in the example.
    pub(crate) fn url(&self, port: &str) -> String {
        format!("http://127.0.0.1:{}", self.ports[port])
    }

    /// Returns one of the tokens that the README creates.
    pub(crate) fn token(&self, name: &str) -> Result<String> {
        Ok(fs::read_to_string(self.path().join(format!("{name}.token")))?.trim().to_owned())
    }

    /// Runs a block of the README in a shell, which must succeed; returns its output.
    pub(crate) async fn passes(&self, block: usize) -> Result<String> {
        self.run(&self.blocks[block]).await
    }

    /// Runs only the last command of a block, which must succeed; returns its output.
    pub(crate) async fn passes_again(&self, block: usize) -> Result<String> {
        let last = self.blocks[block].lines().last();
        self.run(last.context("a command")?).await
    }

    async fn run(&self, commands: &str) -> Result<String> {
        let mut shell = self.shell(&format!("set -e\n{commands}"));
        let ended = shell.stdout(Stdio::piped()).stderr(Stdio::piped()).output().await?;
        let ended = CommandResult {
            code: ended.status.code(),
            out: String::from_utf8(ended.stdout)?,
            err: String::from_utf8(ended.stderr)?,
        };
        ensure!(ended.code == Some(0), "{commands}{ended:?}\n{}", self.log());
        Ok(ended.out)
    }

    /// Starts a block of commands that keep running.
    fn begin(&self, block: usize) -> Result<Processes> {
        let log = File::create(self.path().join("log"))?;
        let mut shell = self.shell(&format!("{}wait\n", self.blocks[block]));
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
            .env("PGPASSWORD", &self.password)
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

    /// Returns a text of the example with the ports of this test.
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
