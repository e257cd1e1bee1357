//! A Docker daemon for one check, with its images and its network: no rule of a firewall, image or container outlives the check.
//!
//! The daemon has a network namespace of its own, in which it manages its bridges. A program that is to reach a published port runs
//! [`within`](ContainerEngine::within) that namespace. Deliberately absent: the network outside, so that no image can be pulled from
//! there; checks import what they need.

use std::{
    ffi::OsStr,
    fs,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use anyhow::{Context, Result, bail};

use crate::{
    cache,
    machine::{Clock, Machine},
    spawn,
};

/// The programs that it needs, and Debian's packages that have them.
const PROGRAMS: [(&str, &str); 5] = [
    ("dockerd", "docker.io"),
    ("docker", "docker.io"),
    ("runc", "runc"),
    ("iptables", "iptables"),
    ("nsenter", "util-linux"),
];

const READY_WITHIN: Duration = Duration::from_secs(60);

const STOPPED_WITHIN: Duration = Duration::from_secs(20);

/// A running daemon. It ends with its containers when it is dropped.
pub(crate) struct ContainerEngine {
    clock: Clock,
    daemon: Child,
    /// Sockets, whose paths may have 107 bytes at most.
    run: PathBuf,
    data: PathBuf,
}

impl ContainerEngine {
    /// Returns what this machine lacks to start one.
    pub(crate) fn missing(machine: &Machine) -> Option<String> {
        if !machine.is_root() {
            return Some("root, who alone may start a Docker daemon".to_owned());
        }
        let absent = PROGRAMS.iter().find(|(program, _)| machine.in_path(program).is_none());
        absent.map(|(program, package)| format!("`{program}` of the package `{package}`"))
    }

    /// Starts a daemon and waits until it responds. The name tells daemons of this process apart.
    pub(crate) fn start(machine: &Machine, name: &str) -> Result<Self> {
        if let Some(missing) = Self::missing(machine) {
            bail!("a container engine needs {missing}");
        }
        let run = PathBuf::from(format!("/run/qualitytrace-{name}-{}", std::process::id()));
        let data = machine.state().join(format!("containers-{name}"));
        let log = machine.state().join(format!("containers-{name}.log"));
        for folder in [&run, &data] {
            cache::remove(folder)?;
            fs::create_dir_all(folder)
                .with_context(|| format!("`{}` cannot be made", folder.display()))?;
        }
        let config = run.join("daemon.json");
        fs::write(&config, "{}")?;
        let mut command = Command::new("unshare");
        command.args(["-n", "-m", "sh", "-c", r#"ip link set lo up && exec dockerd "$@""#]);
        command.arg("dockerd").arg("--config-file").arg(config);
        command.arg("--data-root").arg(&data).arg("--exec-root").arg(run.join("exec"));
        command.arg("--pidfile").arg(run.join("pid"));
        command.arg("-H").arg(format!("unix://{}", run.join("docker.sock").display()));
        // In its own process group, so that an interrupt at the terminal does not reach it before its containers are removed.
        let daemon = spawn::logged(&mut command, &log)?.process_group(0).spawn();
        let daemon = daemon.context("`unshare` cannot be started")?;
        let mut engine = Self { clock: machine.clock, daemon, run, data };
        engine.await_ready(&log)?;
        Ok(engine)
    }

    fn await_ready(&mut self, log: &Path) -> Result<()> {
        let began = (self.clock.now)();
        while !self.docker().arg("version").output().is_ok_and(|output| output.status.success()) {
            if let Some(status) = self.daemon.try_wait()? {
                bail!("dockerd ended with {status}; {}", spawn::last_lines(log));
            }
            if (self.clock.now)() - began > READY_WITHIN {
                bail!("dockerd was not ready within {READY_WITHIN:?}; {}", spawn::last_lines(log));
            }
            (self.clock.sleep)(Duration::from_millis(100));
        }
        Ok(())
    }

    /// Returns the client for this daemon.
    pub(crate) fn docker(&self) -> Command {
        self.client("docker")
    }

    /// Returns a program that calls `docker` or Compose.
    pub(crate) fn client(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        let socket = self.run.join("docker.sock");
        command.env("DOCKER_HOST", format!("unix://{}", socket.display()));
        // BuildKit is a plugin that distributions do not package with the client.
        command.env("DOCKER_BUILDKIT", "0").stdin(Stdio::null());
        command
    }

    /// Returns a program that runs in the network of the daemon, where the published ports are.
    pub(crate) fn within(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = self.client("nsenter");
        command.args(["-t", &self.daemon.id().to_string(), "-n", "--"]).arg(program);
        command
    }

    /// Makes an image of the files of a tar.
    pub(crate) fn import(&self, tar: &Path, image: &str, changes: &[&str]) -> Result<()> {
        let mut import = self.docker();
        import.arg("import").args(changes.iter().flat_map(|change| ["-c", change]));
        spawn::output(import.arg(tar).arg(image)).map(drop)
    }

    /// Builds an image of a folder with a `Dockerfile`.
    pub(crate) fn build(&self, folder: &Path, image: &str) -> Result<()> {
        spawn::output(self.docker().args(["build", "-q", "-t", image]).arg(folder)).map(drop)
    }

    /// Runs a shell script in a container, and returns its output; an error has what it printed.
    pub(crate) fn script(
        &self,
        container: &str,
        script: &Path,
        arguments: &[&str],
    ) -> Result<String> {
        let text = fs::File::open(script)
            .with_context(|| format!("`{}` cannot be read", script.display()))?;
        let mut shell = self.docker();
        shell.args(["exec", "-i", container, "sh", "-s", "-"]).args(arguments).stdin(text);
        let ended = shell.output().context("`docker` cannot be started; is it installed?")?;
        let printed = String::from_utf8_lossy(&ended.stdout).into_owned();
        if !ended.status.success() {
            let errors = String::from_utf8_lossy(&ended.stderr);
            let name = script.file_name().unwrap_or_default().to_string_lossy();
            bail!("{name} ended with {} in a container:\n{printed}{errors}", ended.status);
        }
        Ok(printed)
    }
}

impl Drop for ContainerEngine {
    fn drop(&mut self) {
        let remove = r#"docker ps -aq | xargs -r docker rm -f -v"#;
        // What is left ends with the daemon's namespaces.
        self.client("sh").args(["-c", remove]).output().ok();
        let pid = self.daemon.id().to_string();
        Command::new("kill").args(["-s", "TERM", &pid]).status().ok();
        let began = (self.clock.now)();
        while matches!(self.daemon.try_wait(), Ok(None)) {
            if (self.clock.now)() - began > STOPPED_WITHIN {
                self.daemon.kill().ok();
            }
            (self.clock.sleep)(Duration::from_millis(50));
        }
        for folder in [&self.run, &self.data] {
            if let Err(error) = cache::remove(folder) {
                eprintln!("warning: {error:#}");
            }
        }
    }
}
