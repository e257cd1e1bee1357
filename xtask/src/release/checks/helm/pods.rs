//! The pods of a rendering, as processes of this machine: their arguments, and how they are started, awaited and ended.

use std::{
    fs::{self, File},
    io::{Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use anyhow::{Context, Result, bail};

use super::configuration::TOKEN;
use crate::{machine::Machine, spawn};

const READY_WITHIN: Duration = Duration::from_secs(60);

/// What docs/operations.md allows from SIGTERM on.
const DRAIN_MAX: Duration = Duration::from_secs(29);

/// Where pods have their configuration.
const CONFIGURATION: &str = "/etc/qualitytrace/quality-trace-config.yaml";

/// The ports of a rendered configuration.
const PORTS: [&str; 4] =
    ["httpPort: 11633", "otlpGrpcPort: 4317", "otlpHttpPort: 4318", "probePort: 11635"];

/// A process that is killed if a check ends before it does.
#[derive(Debug)]
pub(super) struct ServerProcess {
    child: Child,
    pub(super) log: PathBuf,
}

/// A server of this machine that stands for a pod.
#[derive(Debug)]
pub(super) struct Pod {
    process: ServerProcess,
    pub(super) api: u16,
    probes: u16,
}

impl Pod {
    /// Starts a server with the arguments of a pod, and with a configuration that gets free ports.
    pub(super) fn start(program: &Path, words: &[String], configuration: &Path) -> Result<Self> {
        let text = fs::read_to_string(configuration)?;
        let free = free::<4>()?;
        let text = PORTS.iter().zip(free).fold(text, |text, (port, free)| {
            let (key, _) = port.split_once(':').unwrap_or((port, ""));
            text.replace(port, &format!("{key}: {free}"))
        });
        fs::write(configuration, text)?;
        let words = with_configuration(words, configuration);
        let mut command = Command::new(program);
        command.args(words).env_clear();
        let process = ServerProcess::start(&mut command, configuration.with_extension("log"))?;
        let [api, _, _, probes] = free;
        Ok(Self { process, api, probes })
    }

    /// Waits until the probe of readiness succeeds.
    pub(super) fn wait(&mut self, machine: &Machine) -> Result<()> {
        let began = (machine.clock.now)();
        while !is_ready(self.probes) {
            self.process.check()?;
            if (machine.clock.now)() - began > READY_WITHIN {
                let log = spawn::last_lines(&self.process.log);
                bail!("a server was not ready within {READY_WITHIN:?}; {log}");
            }
            (machine.clock.sleep)(Duration::from_millis(50));
        }
        Ok(())
    }

    /// Ends the server as a kubelet does, and returns how long that took.
    pub(super) fn end(self, machine: &Machine) -> Result<Duration> {
        self.process.end(machine)
    }

    pub(super) fn last_lines(&self) -> String {
        spawn::last_lines(&self.process.log)
    }
}

/// Puts the path of a configuration here into the arguments of a pod.
pub(super) fn with_configuration(words: &[String], configuration: &Path) -> Vec<String> {
    let file = configuration.display().to_string();
    words.iter().map(|it| it.replace(CONFIGURATION, &file)).collect()
}

impl ServerProcess {
    /// Starts a program that writes its output to a file.
    pub(super) fn start(command: &mut Command, log: PathBuf) -> Result<Self> {
        let file = File::create(&log).with_context(|| format!("`{}`", log.display()))?;
        command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
        let program = command.get_program().to_string_lossy().into_owned();
        let child = command.spawn().with_context(|| format!("`{program}` cannot be started"))?;
        Ok(Self { child, log })
    }

    /// Fails if the server has ended.
    fn check(&mut self) -> Result<()> {
        match self.child.try_wait()? {
            Some(status) => {
                bail!("a server ended with {status}; {}", spawn::last_lines(&self.log))
            }
            None => Ok(()),
        }
    }

    /// Sends SIGTERM, and returns how long the server took to end.
    fn end(mut self, machine: &Machine) -> Result<Duration> {
        let began = (machine.clock.now)();
        spawn::output(Command::new("kill").args(["-s", "TERM", &self.child.id().to_string()]))?;
        loop {
            let elapsed = (machine.clock.now)() - began;
            match self.child.try_wait()? {
                Some(status) if status.success() => return Ok(elapsed),
                Some(status) => bail!("after SIGTERM a server ended with {status}"),
                None if elapsed > DRAIN_MAX => bail!("a server did not end within {DRAIN_MAX:?}"),
                None => (machine.clock.sleep)(Duration::from_millis(20)),
            }
        }
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // An error means that it has ended already.
        if self.child.kill().is_ok() {
            drop(self.child.wait());
        }
    }
}

/// Runs the program to its end, with the arguments of a pod, in a folder that is its home.
pub(super) fn run(program: &Path, home: &Path, words: &[String]) -> Result<()> {
    let mut command = Command::new(program);
    command.args(words).env_clear().env("QUALITYTRACE_TOKEN", TOKEN);
    command.env("HOME", home).current_dir(home);
    let output = command.output().context("the program cannot be started")?;
    if !output.status.success() {
        let shown =
            [output.stdout, output.stderr].map(|it| String::from_utf8_lossy(&it).into_owned());
        bail!("`{}` ended with {}: {}", words.join(" "), output.status, shown.concat().trim());
    }
    Ok(())
}

/// Returns the arguments of the container of a document: that of a kind, with a name.
pub(super) fn arguments(rendering: &str, kind: &str, name: &str) -> Result<Vec<String>> {
    let (kind_line, name_line) = (format!("kind: {kind}"), format!("  name: {name}"));
    let mut documents = rendering.split("\n---\n");
    let has = |text: &&str, line: &String| text.lines().any(|it| it == line);
    let document = documents.find(|it| has(it, &kind_line) && has(it, &name_line));
    let document = document.with_context(|| format!("there is no {kind} `{name}`"))?;
    let lines = document.lines();
    let words = lines.skip_while(|line| line.trim() != "args:").skip(1);
    let words = words.map_while(|line| line.trim_start().strip_prefix("- "));
    Ok(words.map(str::to_owned).collect())
}

/// Returns an entry of a ConfigMap, without its indentation.
pub(super) fn entry(rendering: &str, name: &str) -> Result<String> {
    let line = format!("  {name}: |");
    let mut lines = rendering.lines();
    lines.find(|it| *it == line).with_context(|| format!("the chart renders no `{name}`"))?;
    Ok(lines.map_while(|line| line.strip_prefix("    ")).map(|line| format!("{line}\n")).collect())
}

/// Returns loopback ports that are free now, all different.
pub(super) fn free<const N: usize>() -> Result<[u16; N]> {
    let mut held = Vec::new();
    let mut found = [0; N];
    for port in &mut found {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no free port")?;
        *port = listener.local_addr()?.port();
        held.push(listener);
    }
    Ok(found)
}

/// Whether the probe of readiness succeeds.
fn is_ready(port: u16) -> bool {
    let status = || {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(Duration::from_secs(4)))?;
        stream.write_all(b"GET /readyz HTTP/1.1\r\nhost: probes\r\nconnection: close\r\n\r\n")?;
        let mut status = [0; 12];
        stream.read_exact(&mut status)?;
        std::io::Result::Ok(status)
    };
    status().is_ok_and(|line| line.ends_with(b" 200"))
}

#[cfg(test)]
mod tests {
    use super::{arguments, entry};

    #[test]
    fn arguments_are_those_of_the_document() {
        let job = "kind: Job\nmetadata:\n  name: a\nargs:\n  - b\n  - --c=d\nenv:\n  - e\n";
        let text = format!("{job}---\nkind: Pod\nmetadata:\n  name: a\nargs:\n  - f\n");
        assert_eq!(arguments(&text, "Job", "a").expect("a job"), ["b", "--c=d"]);
        assert_eq!(arguments(&text, "Pod", "a").expect("a pod"), ["f"]);
        assert!(arguments(&text, "Pod", "b").is_err());
    }

    #[test]
    fn an_entry_ends_where_its_indentation_ends() {
        assert_eq!(
            entry("  a.yaml: |\n    b:\n      c\n---\n", "a.yaml").expect("there"),
            "b:\n  c\n"
        );
        assert!(entry("", "a.yaml").is_err());
    }
}
