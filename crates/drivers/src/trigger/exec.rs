//! The command trigger: runs one program to its end, in its own process group.
//!
//! The program gets the configured environment, the variables of its document, and the trace context: `TRACEPARENT`,
//! `TRACESTATE` and `BAGGAGE`, and further formats by their names in capitals. When it ends, when its timeout expires or when
//! the caller drops the future, all remaining processes of its group are killed.
//!
//! If only listed programs may run, a program runs by its listed path, in the root directory: an untrusted document selects
//! neither a directory nor, by `PATH`, another program, and sets no variable that is not listed. What a program does with its
//! arguments is the responsibility of the operator who listed it.
//!
//! Deliberately absent: an input, a terminal, and SIGTERM before SIGKILL: a test that waits for longer than its timeout is
//! wrong.

use std::{io, path::PathBuf, process::Stdio, time::Duration};

use model::{Attempt, Body, Command, ExecRequest, Exit, NoAnswer, NoAnswerKind, Propagator};
use thiserror::Error;
use tokio::{
    io::{AsyncRead, AsyncReadExt},
    process::{self, Child},
    time::Instant,
};

use super::{
    AnswerHold, Commands, SendPermit, TriggerConfig, TriggerError,
    context::{MEMBER, propagate},
};

const BAGGAGE: &str = "BAGGAGE";

/// The shell that runs a command line, and its option.
#[cfg(unix)]
const SHELL: (&str, &str) = ("sh", "-c");
#[cfg(not(unix))]
const SHELL: (&str, &str) = ("cmd", "/C");

/// How long output may take to arrive after the program's end. Only a process that left its group can be slower.
const OUTPUT_GRACE: Duration = Duration::from_millis(500);

/// The size of one read.
const CHUNK_BYTES: usize = 16 * 1024;

/// Why a command has no exit code.
#[derive(Debug, Error)]
enum ExecError {
    #[error(
        "`{name}` is not run here: a server runs no commands for others but those that `server.triggers.exec.allow` lists; \
         whoever operates it can add the program's whole path, or run the test with `qualitytrace run`, without `--server`"
    )]
    NotListed { name: String },
    #[error(
        "`{name}` is not run here with the variable `{variable}`: a test sets only those that `server.triggers.exec.env` lists; \
         whoever operates the server can add it there"
    )]
    VariableNotListed { name: String, variable: String },
    #[error("`{name}` cannot be run{place}: {source}", place = In(workdir.as_deref()))]
    NotStarted { name: String, workdir: Option<String>, source: io::Error },
    #[error("what became of `{name}` is not known: {source}")]
    Lost { name: String, source: io::Error },
    #[error("`{name}` was ended by {by}")]
    Killed { name: String, by: String },
    #[error("`{name}` did not end within {timeout:?} and was killed")]
    Timeout { name: String, timeout: Duration },
    #[error("`{name}` wrote more than {bytes_max} bytes to its standard output and was killed")]
    TooLarge { name: String, bytes_max: usize },
}

/// The directory in which a program was to run.
struct In<'a>(Option<&'a str>);

impl std::fmt::Display for In<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.map_or(Ok(()), |workdir| write!(f, " in `{workdir}`"))
    }
}

/// Runs a command as part of a trace and waits for its end.
pub(super) async fn fire(
    request: &ExecRequest,
    attempt: &Attempt,
    config: &TriggerConfig,
    (permit, hold): (SendPermit<'_>, &AnswerHold),
) -> Result<Exit, TriggerError> {
    let name = name(&request.command);
    if let Some(variable) = unlisted(request, &config.commands) {
        return Err(ExecError::VariableNotListed { name, variable: variable.to_owned() }.into());
    }
    let mut command = prepare(request, attempt, config)
        .ok_or_else(|| ExecError::NotListed { name: name.clone() })?;
    if !permit() {
        return Err(TriggerError::Withheld);
    }
    let began = Instant::now();
    let child = command.spawn().map_err(|source| {
        let workdir = request.workdir.clone();
        ExecError::NotStarted { name: name.clone(), workdir, source }
    })?;
    let ended = hold.in_time(began + request.timeout, follow(child, began, &name, (config, hold)));
    let in_time = ended.await.unwrap_or(Err(ExecError::Timeout { name, timeout: request.timeout }));
    Ok(in_time?)
}

/// Builds the command, unless it may not run here.
fn prepare(
    request: &ExecRequest,
    attempt: &Attempt,
    config: &TriggerConfig,
) -> Option<process::Command> {
    let (program, arguments) = match &request.command {
        Command::Line(line) => (SHELL.0, vec![SHELL.1, line]),
        Command::Words { program, arguments } => {
            (program.as_str(), arguments.iter().map(String::as_str).collect())
        }
    };
    let mut command = match &config.commands {
        Commands::All => process::Command::new(program),
        Commands::Listed(list) => process::Command::new(listed(program, &list.programs)?),
    };
    command.args(arguments);
    let mut forms = request.propagation.clone();
    if !forms.contains(&Propagator::W3c) {
        forms.push(Propagator::W3c);
    }
    let context = propagate(&forms, attempt.trace_id, attempt.span_id);
    let context = context.into_iter().map(|(name, value)| (variable(name), value));
    command.env_clear().envs(config.environment.iter().cloned());
    // Baggage belongs to the test: its own value overrides ours, if it has one. The trace context is always ours.
    command.env(BAGGAGE, MEMBER).envs(request.env.iter().cloned()).envs(context);
    match (&config.commands, &request.workdir) {
        (Commands::All, None) => {}
        (Commands::All, Some(workdir)) => drop(command.current_dir(workdir)),
        (Commands::Listed(_), _) => drop(command.current_dir("/")),
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    #[cfg(unix)]
    command.process_group(0);
    Some(command)
}

/// Returns a variable of the document that it may not set here: the operator who listed a program decides which program a name
/// selects, and what a program loads.
fn unlisted<'a>(request: &'a ExecRequest, commands: &Commands) -> Option<&'a str> {
    let Commands::Listed(list) = commands else { return None };
    let mut names = request.env.iter().map(|(name, _)| name.as_str());
    names.find(|name| !list.variables.iter().any(|listed| listed == name))
}

/// Returns the listed path of a program, by that path or by its file name.
fn listed<'a>(program: &str, programs: &'a [PathBuf]) -> Option<&'a PathBuf> {
    let is_meant = |listed: &&PathBuf| {
        let is_whole = listed.as_os_str() == program;
        is_whole || listed.file_name().is_some_and(|name| name == program)
    };
    programs.iter().filter(|listed| listed.is_absolute()).find(is_meant)
}

/// Converts a header name to the name of an environment variable.
fn variable(header: &str) -> String {
    header.to_ascii_uppercase().replace('-', "_")
}

/// Returns the name of the program for messages, without arguments: they may be secrets.
fn name(command: &Command) -> String {
    match command {
        Command::Line(_) => SHELL.0.to_owned(),
        Command::Words { program, .. } => program.clone(),
    }
}

async fn follow(
    mut child: Child,
    began: Instant,
    name: &str,
    (config, hold): (&TriggerConfig, &AnswerHold),
) -> Result<Exit, ExecError> {
    let mut group = Group::of(&child);
    let lost = |source| ExecError::Lost { name: name.to_owned(), source };
    let bytes_max = config.limits.response_bytes_max;
    let too_large = |_| ExecError::TooLarge { name: name.to_owned(), bytes_max };
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let (mut said, mut complained) = (Vec::new(), Vec::new());
    let status = {
        let reading = async {
            tokio::try_join!(
                read_whole(stdout, &mut said, bytes_max, hold),
                read_end(stderr, &mut complained, config.limits.stderr_bytes_max),
            )
        };
        let mut reading = std::pin::pin!(reading);
        tokio::select! {
            read = reading.as_mut() => {
                read.map_err(too_large)?;
                child.wait().await.map_err(lost)?
            }
            status = child.wait() => {
                // A remaining process would keep the output open.
                group.kill();
                if let Some(read) = hold.in_time(Instant::now() + OUTPUT_GRACE, reading).await {
                    read.map_err(too_large)?;
                }
                status.map_err(lost)?
            }
        }
    };
    let duration = began.elapsed().saturating_sub(hold.waited());
    group.kill();
    let killed = || ExecError::Killed { name: name.to_owned(), by: signal(status) };
    Ok(Exit {
        code: status.code().ok_or_else(killed)?,
        stdout: Body::from_bytes(said),
        stderr: String::from_utf8_lossy(&complained).into_owned(),
        duration_ns: u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX),
    })
}

/// The output exceeds the limit.
struct OutputTooLarge;

/// Reads a stream to its end, unless it exceeds the limit. A broken stream counts as ended.
async fn read_whole(
    stream: Option<impl AsyncRead + Unpin>,
    kept: &mut Vec<u8>,
    bytes_max: usize,
    hold: &AnswerHold,
) -> Result<(), OutputTooLarge> {
    let Some(mut stream) = stream else { return Ok(()) };
    let mut chunk = vec![0; CHUNK_BYTES];
    while let Ok(count @ 1..) = stream.read(&mut chunk).await {
        if kept.len() + count > bytes_max {
            return Err(OutputTooLarge);
        }
        hold.grow(kept.len() + count).await;
        kept.extend_from_slice(&chunk[..count]);
    }
    Ok(())
}

/// Reads a stream to its end, and keeps only its last bytes.
async fn read_end(
    stream: Option<impl AsyncRead + Unpin>,
    kept: &mut Vec<u8>,
    bytes_max: usize,
) -> Result<(), OutputTooLarge> {
    let Some(mut stream) = stream else { return Ok(()) };
    let mut chunk = vec![0; CHUNK_BYTES];
    while let Ok(count @ 1..) = stream.read(&mut chunk).await {
        kept.extend_from_slice(&chunk[..count]);
        let over = kept.len().saturating_sub(bytes_max);
        kept.drain(..over);
    }
    Ok(())
}

/// The process group of a program, without processes that left it. It is killed at the latest on drop.
struct Group(#[cfg(unix)] Option<rustix::process::Pid>);

impl Group {
    #[cfg(unix)]
    fn of(child: &Child) -> Self {
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        Self(id.and_then(rustix::process::Pid::from_raw))
    }

    #[cfg(not(unix))]
    fn of(_child: &Child) -> Self {
        Self()
    }

    fn kill(&mut self) {
        #[cfg(unix)]
        if let Some(group) = self.0.take() {
            // An error means that no process is left, which is the goal.
            rustix::process::kill_process_group(group, rustix::process::Signal::KILL).ok();
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

#[cfg(unix)]
fn signal(status: std::process::ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    let signal = status.signal();
    signal.map_or_else(|| status.to_string(), |signal| format!("signal {signal}"))
}

#[cfg(not(unix))]
fn signal(status: std::process::ExitStatus) -> String {
    status.to_string()
}

impl From<ExecError> for TriggerError {
    fn from(error: ExecError) -> Self {
        Self::Because(NoAnswer { kind: error.kind(), message: error.to_string() })
    }
}

impl ExecError {
    fn kind(&self) -> NoAnswerKind {
        match self {
            Self::NotListed { .. } | Self::VariableNotListed { .. } | Self::NotStarted { .. } => {
                NoAnswerKind::Invalid
            }
            Self::Lost { .. } => NoAnswerKind::Unknown,
            Self::Killed { .. } => NoAnswerKind::Killed,
            Self::Timeout { .. } => NoAnswerKind::Timeout,
            Self::TooLarge { .. } => NoAnswerKind::TooLarge,
        }
    }
}
