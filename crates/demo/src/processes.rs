//! The shop as five processes: the program starts itself once for each service, and no child outlives it.
//!
//! A service reads its configuration as one line of JSON from its standard input, and replies with one line on its standard
//! output. Its input stays open for as long as the parent lives: end of input is the signal to shut down, also when the
//! parent was killed.

use std::{
    collections::BTreeMap, ffi::OsString, net::SocketAddr, path::PathBuf, process::Stdio,
    time::Duration,
};

use model::World;
use serde::{Deserialize, Serialize};
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader},
    process::{Child, ChildStdin, Command},
    time::timeout,
};

use crate::{
    StartError,
    fault::Fault,
    pipeline::Destination,
    service::{AddressBook, Assignment, RunningService, Service},
};

/// How long a process may take to listen.
const START_MAX: Duration = Duration::from_secs(10);
/// How long a process may take to end after the signal to shut down.
const END_MAX: Duration = Duration::from_secs(3);
/// The upper bound for a line between parent and child.
const LINE_BYTES_MAX: u64 = 1024 * 1024;

/// The program and the arguments by which a program starts itself as one service: it MUST then call [`serve_one`].
#[derive(Clone, Debug)]
pub struct Program {
    /// The path of the executable.
    pub path: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
}

/// A service in a process of its own. Dropping it kills the process.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) address: SocketAddr,
    child: Child,
    /// The standard input of the process; closing it is the signal to shut down.
    line: ChildStdin,
}

/// The configuration that the parent sends to a process.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ProcessConfig {
    service: Service,
    listen: SocketAddr,
    book: AddressBook,
    faults: Vec<Fault>,
    otlp: Option<String>,
    environment: BTreeMap<String, String>,
}

/// The reply of the process.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ProcessReply {
    Listening(SocketAddr),
    Refused(String),
}

impl Process {
    /// Starts a service in a process of its own. The service accepts requests when this returns.
    pub(crate) async fn start(program: &Program, it: Assignment) -> Result<Self, StartError> {
        let service = it.service.as_str();
        let failed = |why: String| StartError::Process { service, why };
        let mut child = Command::new(&program.path)
            .args(&program.arguments)
            // For people who read a list of processes; the configuration itself is sent by the line.
            .arg(service)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| failed(error.to_string()))?;
        let (Some(mut line), Some(out)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(failed("it has no standard input and output".to_owned()));
        };
        let said = timeout(START_MAX, async {
            tell(&mut line, &ProcessConfig::from(it)).await?;
            hear::<ProcessReply>(&mut BufReader::new(out)).await
        });
        match said.await {
            Ok(Ok(ProcessReply::Listening(address))) => Ok(Self { address, child, line }),
            Ok(Ok(ProcessReply::Refused(why))) => Err(failed(why)),
            Ok(Err(error)) => Err(failed(error.to_string())),
            Err(_) => Err(failed("it did not say where it listens".to_owned())),
        }
    }

    /// Signals the process to shut down, and kills it if that takes too long.
    pub(crate) async fn end(self) {
        let Self { mut child, line, .. } = self;
        drop(line);
        if timeout(END_MAX, child.wait()).await.is_err() {
            // It may have ended a moment ago, which is fine.
            let _ended = child.kill().await;
        }
    }
}

/// Serves as a process that was started as one service: reads its configuration, serves until its input ends or `told`
/// completes, and shuts down.
pub async fn serve_one(
    input: impl AsyncRead + Unpin,
    mut output: impl AsyncWrite + Unpin,
    world: World,
    told: impl Future<Output = ()>,
) -> Result<(), StartError> {
    let mut input = BufReader::new(input);
    let order: ProcessConfig = hear(&mut input).await.map_err(StartError::Told)?;
    let running = RunningService::start(order.into(), world).await;
    let said = match &running {
        Ok(running) => ProcessReply::Listening(running.address),
        Err(error) => ProcessReply::Refused(error.to_string()),
    };
    tell(&mut output, &said).await.map_err(StartError::Told)?;
    let mut running = running?;
    // The parent sends nothing more; only the end of the input matters.
    let mut rest = input.take(LINE_BYTES_MAX);
    let mut ignored = Vec::new();
    tokio::select! {
        _ = rest.read_to_end(&mut ignored) => {}
        () = told => {}
    }
    running.close().await;
    running.end().await;
    Ok(())
}

async fn tell(to: &mut (impl AsyncWrite + Unpin), what: &impl Serialize) -> std::io::Result<()> {
    let line = format!("{}\n", serde_json::to_string(what)?);
    to.write_all(line.as_bytes()).await?;
    to.flush().await
}

async fn hear<T: serde::de::DeserializeOwned>(
    from: &mut BufReader<impl AsyncRead + Unpin>,
) -> std::io::Result<T> {
    let mut line = String::new();
    from.take(LINE_BYTES_MAX).read_line(&mut line).await?;
    Ok(serde_json::from_str(&line)?)
}

impl From<Assignment> for ProcessConfig {
    fn from(it: Assignment) -> Self {
        let Assignment { service, listen, book, faults, destination } = it;
        let variables =
            destination.environment.iter().filter(|(name, _)| name.starts_with("OTEL_"));
        let environment =
            variables.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        Self { service, listen, book, faults, otlp: destination.otlp, environment }
    }
}

impl From<ProcessConfig> for Assignment {
    fn from(it: ProcessConfig) -> Self {
        let ProcessConfig { service, listen, book, faults, otlp, environment } = it;
        let destination = Destination { otlp, environment: environment.into_iter().collect() };
        Self { service, listen, book, faults, destination }
    }
}
