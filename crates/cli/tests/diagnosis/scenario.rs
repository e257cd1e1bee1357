//! One scenario: a test, a system with a fault, and the result of the binary.

use std::{
    fs,
    io::{BufRead, BufReader},
    os::unix::fs::symlink,
    path::Path,
    process::{Child, Command, Stdio},
};

use anyhow::{Context, Result, ensure};
use bench::parts::free_port;
use model::{Outcome, Verdict};
use regex::Regex;
use tempfile::TempDir;

use super::system::{Fault, LISTENING};

/// The timeout for a trace that is never complete; its spans arrive much sooner. The second is for a trace that gets complete.
const TIMEOUT: &str = "3s";
const PATIENCE: &str = "20s";

pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    system: System,
    /// An argument for `env`, which starts the system.
    with: Option<&'static str>,
    settle: &'static str,
    /// The specs or claims of the test.
    says: &'static str,
    is_started: bool,
    timeout: &'static str,
}

enum System {
    Shop(Fault),
    /// The demo, with the fault of this name.
    Demo(&'static str),
}

const THREE_ITEMS: &str = "specs:
    - selector: span[name=\"GET /cart\"]
      assertions: ['attr:cart.items = 3', 'attr:tracetest.selected_spans.count = 1']";

/// Returns a shop with this fault, started by the binary. Its test expects one read of the cart, with three items.
pub(crate) fn scenario(name: &'static str, fault: Fault) -> Scenario {
    let system = System::Shop(fault);
    Scenario {
        name,
        system,
        with: None,
        settle: "",
        says: THREE_ITEMS,
        is_started: true,
        timeout: TIMEOUT,
    }
}

/// Returns a scenario of the demo with this fault.
pub(crate) fn demo(name: &'static str, fault: &'static str) -> Scenario {
    Scenario { system: System::Demo(fault), ..scenario(name, Fault::None) }
}

/// A system that the binary did not start; dropping it kills the process.
struct Stopped(Child);

impl Drop for Stopped {
    fn drop(&mut self) {
        let _ended = self.0.kill();
        let _reaped = self.0.wait();
    }
}

impl Scenario {
    pub(crate) fn with(mut self, word: &'static str) -> Self {
        self.with = Some(word);
        self
    }

    pub(crate) fn settle(mut self, line: &'static str) -> Self {
        self.settle = line;
        self
    }

    pub(crate) fn saying(mut self, says: &'static str) -> Self {
        self.says = says;
        self
    }

    /// Expects that the trace gets complete.
    pub(crate) fn whole(mut self) -> Self {
        self.timeout = PATIENCE;
        self
    }

    pub(crate) fn not_started(mut self) -> Self {
        self.is_started = false;
        self
    }

    /// Runs it; returns exit code, verdict and diagnoses.
    pub(crate) fn play(&self) -> Result<String> {
        let folder = TempDir::new()?;
        let port = free_port()?;
        fs::write(folder.path().join("cart.yaml"), self.document(port))?;
        // The system is this program, under a name that does not change with every build.
        let shop = folder.path().join("shop");
        symlink(std::env::current_exe()?, &shop)?;
        let mut command = Command::new(env!("CARGO_BIN_EXE_qualitytrace"));
        command.current_dir(folder.path()).stdin(Stdio::null());
        command.args(["run", "cart.yaml", "--report", "json"]);
        let started = match self.is_started {
            true => {
                command.arg("--").args(self.system(&shop, port));
                None
            }
            false => {
                command.args(["--otlp", "127.0.0.1:0"]);
                Some(start(&self.system(&shop, port))?)
            }
        };
        let output = command.output()?;
        drop(started);
        let [out, err] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
        let line = out.lines().next().with_context(|| format!("no report: {err}"))?;
        let report: serde_json::Value = serde_json::from_str(line)?;
        let outcome: Outcome = serde_json::from_value(report["outcome"].clone())?;
        let code = output.status.code().context("it ended by itself")?;
        let is_fit = match outcome.verdict {
            Verdict::Passed => code == 0,
            Verdict::Failed => code == 1,
            Verdict::Inconclusive => code == 3,
        };
        ensure!(is_fit, "exit {code} for {:?}: {err}", outcome.verdict);
        shown(&outcome, code)
    }

    fn document(&self, port: u16) -> String {
        let request = match self.system {
            System::Shop(_) => format!("{{method: GET, url: 'http://127.0.0.1:{port}/cart'}}"),
            System::Demo(_) => format!(
                "{{method: POST, url: 'http://127.0.0.1:{port}/orders', body: \
                 '{{\"customer\":\"ada\",\"lines\":[{{\"sku\":\"tea\",\"quantity\":2}}]}}'}}"
            ),
        };
        format!(
            "type: Test
spec:
  name: the cart holds three items
  trigger: {{type: http, httpRequest: {request}}}
  settle:
    timeout: {}
    {}
  {}
",
            self.timeout, self.settle, self.says
        )
    }

    /// Returns the command line that starts the system.
    fn system(&self, shop: &Path, port: u16) -> Vec<String> {
        let mut words = vec!["env".to_owned()];
        words.extend(self.with.map(str::to_owned));
        match self.system {
            System::Shop(fault) => {
                words.push(format!("SHOP_FAULT={fault:?}"));
                words.push(format!("SHOP_PORT={port}"));
                words.push(shop.to_string_lossy().into_owned());
                words.extend(["system_under_test", "--exact", "--nocapture"].map(str::to_owned));
            }
            System::Demo(fault) => {
                let http = format!("127.0.0.1:{port}");
                let binary = env!("CARGO_BIN_EXE_qualitytrace");
                words
                    .extend([binary, "demo", "--http", &http, "--fault", fault].map(str::to_owned));
            }
        }
        words
    }
}

/// Starts the system without the binary, and waits until it reports that it listens.
fn start(words: &[String]) -> Result<Stopped> {
    let mut child = Command::new(&words[0]).args(&words[1..]).stdout(Stdio::piped()).spawn()?;
    let out = child.stdout.take().context("it has a stdout")?;
    let started = Stopped(child);
    let mut lines = BufReader::new(out).lines();
    ensure!(
        lines.any(|line| line.is_ok_and(|line| line.contains(LISTENING))),
        "the system did not start"
    );
    Ok(started)
}

fn shown(outcome: &Outcome, code: i32) -> Result<String> {
    let mut text = format!("exit {code}, {}\n", outcome.verdict.as_str());
    for diagnosis in &outcome.diagnoses {
        let spans = match diagnosis.spans.len() {
            0 => String::new(),
            count => format!(" [{count}]"),
        };
        text.push_str(&format!("{:?}{spans}: {}\n", diagnosis.cause, diagnosis.says));
        text.push_str(&format!("  do: {}\n", diagnosis.advice));
    }
    steady(&text)
}

/// Masks everything that differs between runs: ids, ports, and times.
fn steady(text: &str) -> Result<String> {
    let mut steady = text.to_owned();
    for (differs, shown) in [
        (r"\b[0-9a-f]{16,32}\b", "…"),
        (r"127\.0\.0\.1:\d+", "127.0.0.1:…"),
        (r"\b[\d.]+ m?s\b", "…"),
    ] {
        steady = Regex::new(differs)?.replace_all(&steady, shown).into_owned();
    }
    Ok(steady)
}
