//! Servers from what the chart renders, on a real Postgres and a real NATS: migrated, started, ready, tested and ended.
//!
//! The pods' arguments and configurations are used as they are, but for ports, folders and the name of the API's Service, which
//! are those of this machine. Deliberately absent: what a cluster does, such as mounting volumes and probing.

use std::{
    fs,
    net::{Ipv4Addr, TcpStream},
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context, Result, bail};

use super::{
    chart::Chart,
    configuration,
    pods::{self, Pod, ServerProcess},
};
use crate::{cache, machine::Machine, services, spawn};

const DATABASE: &str = "qualitytrace_helm";

/// The URL of the API's Service in the rendering.
const SERVICE: &str = "http://qualitytrace.quality:11633";

const NATS_WITHIN: Duration = Duration::from_secs(20);

/// What servers depend on.
struct Surroundings<'a> {
    machine: &'a Machine,
    chart: &'a Chart<'a>,
    program: &'a Path,
    /// `postgres://USER:PASSWORD@HOST:PORT/DATABASE`.
    postgres: String,
    password: String,
    /// The programs of Postgres.
    programs: PathBuf,
    nats: String,
}

/// Returns the time from the start of the smallest installation to its first green test.
pub(super) fn check(machine: &Machine, chart: &Chart<'_>, program: &Path) -> Result<Duration> {
    let mut green = Duration::ZERO;
    services::with(machine, &["postgres", "nats"], |variables| {
        let find = |name: &str| {
            let found = variables.iter().find(|(it, _)| it == name);
            found.map(|(_, value)| value.clone()).with_context(|| format!("there is no `{name}`"))
        };
        let surroundings = Surroundings {
            machine,
            chart,
            program,
            postgres: find("QUALITYTRACE_TEST_POSTGRES")?,
            password: find("QUALITYTRACE_TEST_POSTGRES_PASSWORD")?,
            programs: find("QUALITYTRACE_TEST_POSTGRES_BIN")?.into(),
            nats: find("QUALITYTRACE_TEST_NATS")?,
        };
        green = surroundings.one_pod().context("one pod")?;
        surroundings.split().context("a pod for each part")
    })?;
    Ok(green)
}

impl Surroundings<'_> {
    /// Starts the smallest installation, and runs tests on it.
    fn one_pod(&self) -> Result<Duration> {
        self.create_database()?;
        let folder = self.chart.folder.join("one-pod");
        let rendering = self.render("minimal", &[])?;
        let made = configuration::write(&folder, &rendering)?;
        self.password(&folder)?;
        self.migrate(&rendering, made.migration)?;
        let began = (self.machine.clock.now)();
        let words = pods::arguments(&rendering, "StatefulSet", "qualitytrace")?;
        let mut pod = Pod::start(self.program, &words, &made.server)?;
        pod.wait(self.machine)?;
        let tests = self.test(&folder, &rendering, &pod).with_context(|| pod.last_lines())?;
        let green = (self.machine.clock.now)() - began;
        let ended = pod.end(self.machine)?;
        println!(
            "  one pod: migrated by the hook, ready, and tested by the arguments of {tests} pods within {:.1} s; ends {:.1} s after \
             SIGTERM",
            green.as_secs_f64(),
            ended.as_secs_f64()
        );
        Ok(green)
    }

    /// Starts a server for each part, over NATS, and runs a test on them.
    fn split(&self) -> Result<()> {
        self.create_database()?;
        let folder = self.chart.folder.join("split");
        let [port] = pods::free()?;
        let endpoint = format!("nats.endpoint=\"nats://127.0.0.1:{port}\"");
        let keys = [endpoint.as_str(), r#"nats.user="""#, r#"nats.password.key="""#];
        let rendering = self.render("split", &keys)?;
        let _nats = self.nats(port)?;
        let mut pods = Vec::new();
        for role in ["api", "ingest", "worker"] {
            let folder = folder.join(role);
            let made = configuration::write(&folder, &rendering)?;
            self.password(&folder)?;
            if pods.is_empty() {
                self.migrate(&rendering, made.migration)?;
            }
            let words = pods::arguments(&rendering, "Deployment", &format!("qualitytrace-{role}"))?;
            pods.push(Pod::start(self.program, &words, &made.server)?);
        }
        for pod in &mut pods {
            pod.wait(self.machine)?;
        }
        let api = pods.first().context("no pod")?;
        self.test(&folder, &rendering, api).with_context(|| api.last_lines())?;
        let count = pods.len();
        for pod in pods {
            pod.end(self.machine)?;
        }
        println!(
            "  {count} pods with a part each, over NATS: ready, and a worker fired the test of `helm test`"
        );
        Ok(())
    }

    /// Renders a case with what is here, and with a test that a worker may fire.
    fn render(&self, case: &str, keys: &[&str]) -> Result<String> {
        let mut all = vec![
            r#"postgres.host="127.0.0.1""#.to_owned(),
            format!("postgres.port={}", self.port()?),
            r#"postgres.user="postgres""#.to_owned(),
            format!("postgres.database=\"{DATABASE}\""),
            // The token of this check is known, so other machines must not reach its servers.
            r#"listenAddress="127.0.0.1""#.to_owned(),
            r#"config.server={"triggers": {"networks": {"allow": ["loopback"]}}}"#.to_owned(),
            "helmTest.onServer=true".to_owned(),
        ];
        all.extend(keys.iter().map(|&it| it.to_owned()));
        self.chart.render(&self.chart.case(case), &all)
    }

    fn port(&self) -> Result<u16> {
        let end = self.postgres.rsplit(':').next().unwrap_or_default();
        let digits: String = end.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().context("the variable of Postgres has no port")
    }

    fn create_database(&self) -> Result<()> {
        for words in [&["dropdb", "--if-exists", "--force"][..], &["createdb"]] {
            let mut command = Command::new(self.programs.join(words[0]));
            command.args(&words[1..]).args(["-h", "127.0.0.1", "-U", "postgres", "-p"]);
            command.arg(self.port()?.to_string()).arg(DATABASE).env("PGPASSWORD", &self.password);
            spawn::output(&mut command)?;
        }
        Ok(())
    }

    /// Writes the password of Postgres where a Secret would have it.
    fn password(&self, folder: &Path) -> Result<()> {
        Ok(fs::write(folder.join("secrets/postgres-password"), &self.password)?)
    }

    /// Migrates the tables as the hook does: the servers do not.
    fn migrate(&self, rendering: &str, configuration: Option<PathBuf>) -> Result<()> {
        let configuration = configuration.context("the chart renders no migration")?;
        let words = pods::arguments(rendering, "Job", "qualitytrace-migrate")?;
        pods::run(
            self.program,
            &self.chart.folder,
            &pods::with_configuration(&words, &configuration),
        )
    }

    fn nats(&self, port: u16) -> Result<ServerProcess> {
        let store = self.chart.folder.join("nats");
        cache::remove(&store)?;
        fs::create_dir_all(&store)?;
        let mut nats = Command::new(&self.nats);
        nats.args(["-js", "-a", "127.0.0.1", "-p", &port.to_string(), "-sd"]).arg(&store);
        let process = ServerProcess::start(&mut nats, self.chart.folder.join("nats.log"))?;
        let began = (self.machine.clock.now)();
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            if (self.machine.clock.now)() - began > NATS_WITHIN {
                bail!("NATS does not listen; {}", spawn::last_lines(&process.log));
            }
            (self.machine.clock.sleep)(Duration::from_millis(20));
        }
        Ok(process)
    }

    /// Runs the test of `helm test`, on the server and in its pod, and the Jobs that run tests; returns how many pods these are.
    fn test(&self, folder: &Path, rendering: &str, pod: &Pod) -> Result<usize> {
        let tests = folder.join("tests");
        fs::create_dir_all(&tests)?;
        let here = format!("http://127.0.0.1:{}", pod.api);
        let document = pods::entry(rendering, "ready.yaml")?.replace(SERVICE, &here);
        fs::write(tests.join("ready.yaml"), document)?;
        let job = |name: &str| {
            let file = self.chart.sources.with_file_name("kubernetes").join(format!("{name}.yaml"));
            let text =
                fs::read_to_string(&file).with_context(|| format!("`{}`", file.display()))?;
            pods::arguments(&text, "Job", name)
        };
        let on_server = pods::arguments(rendering, "Pod", "qualitytrace-test")?;
        let mut alone = on_server.clone();
        alone.retain(|it| !it.starts_with("--server") && it != "--plain-http");
        let runs = [
            ("the test of `helm test`, on the server", on_server),
            ("the test of `helm test`, in its pod", alone),
            ("run-tests.yaml", job("run-tests")?),
            ("run-tests-alone.yaml", job("run-tests-alone")?),
        ];
        let tests = tests.display().to_string();
        for (what, words) in &runs {
            let words = words.iter().filter(|it| !it.starts_with("--otlp="));
            let words = words.map(|it| it.replace("/tests", &tests).replace(SERVICE, &here));
            let mut words: Vec<_> = words.collect();
            if !words.iter().any(|it| it.starts_with("--server=")) {
                // A pod has the usual ports for itself, and this machine may not.
                words.extend(pods::free::<2>()?.map(|port| format!("--otlp=127.0.0.1:{port}")));
            }
            pods::run(self.program, folder, &words).context(*what)?;
        }
        Ok(runs.len())
    }
}
