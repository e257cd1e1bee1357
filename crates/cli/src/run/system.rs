//! The system under test if we start it: its command, its readiness, and its end.

use std::{
    collections::BTreeSet,
    ffi::OsString,
    net::SocketAddr,
    process::ExitStatus,
    sync::{self, Arc, PoisonError, atomic::AtomicU16},
    time::Duration,
};

use model::{ErrorCode, Fault, Faulty};
use runner::diagnosis;
use thiserror::Error;
use tokio::{
    sync::Mutex,
    time::{Instant, timeout},
};

use super::{
    look,
    output::ProcessOutput,
    process::{Process, ProcessStop, STOP_MAX},
    progress::{Line, ProgressLevel},
};
use crate::{args::Ready, terminal::Terminal};

/// The upper bound for lines of output that are shown after a failure.
const LINES_SHOWN: usize = 40;
/// The upper bound for lines of output at the end of a reason.
const WORDS_SHOWN: usize = 3;

/// The configuration of the command to start.
#[derive(Clone, Debug)]
pub(crate) struct Launch {
    pub(crate) command: Vec<OsString>,
    /// The changes to our environment.
    pub(crate) environment: Vec<(String, Option<String>)>,
    /// The condition for it to be ready; by default the first test's target accepts a connection.
    pub(crate) ready: Option<Ready>,
    pub(crate) ready_timeout: Duration,
    pub(crate) life: Life,
    /// The terminal that shows its output live.
    pub(crate) live: Option<Terminal>,
    /// The terminal that shows the progress of the wait.
    pub(crate) terminal: Terminal,
    pub(crate) telling: ProgressLevel,
}

/// The lifetime of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    /// For all tests.
    Shared,
    /// For one test: started before it and stopped after its response.
    PerTest,
}

/// A system that we start.
#[derive(Debug)]
pub(crate) struct System {
    launch: Launch,
    /// The process for all tests, or the reason why there is none; none before the first start.
    shared: Mutex<Option<Result<Arc<RunningSystem>, SystemError>>>,
    /// The last started system, ready or not.
    last: sync::Mutex<Option<Arc<RunningSystem>>>,
}

/// A running system.
#[derive(Debug)]
pub(crate) struct RunningSystem {
    process: Process,
    output: Arc<ProcessOutput>,
    name: String,
}

/// The reason why there is no system to test.
#[derive(Clone, Debug, Error)]
pub(crate) enum SystemError {
    #[error("cannot start `{command}`: {reason}")]
    Start { command: String, reason: String },
    #[error(
        "`{at}` is taken before `{command}` is started, so that something else would be tested: stop \
         what listens there, or say by `--ready` when the command is ready"
    )]
    Taken { command: String, at: String },
    #[error(
        "`{command}` was not ready within {}: {awaited}{last_words}. `--ready` says when it is, `--ready-timeout` how \
         long that may take",
        seconds(*.within)
    )]
    NotReady { command: String, within: Duration, awaited: String, last_words: String },
    #[error("`{command}` ended by itself, with {status}{last_words}")]
    Ended { command: String, status: String, last_words: String },
}

impl Faulty for SystemError {
    fn fault(&self) -> Fault {
        match self {
            Self::Start { .. } => Fault::Invalid,
            Self::Taken { .. } => Fault::Conflict,
            Self::NotReady { .. } | Self::Ended { .. } => Fault::Upstream,
        }
    }

    fn code(&self) -> ErrorCode {
        match self {
            Self::Start { .. } => ErrorCode::CommandNotStarted,
            Self::Taken { .. } => ErrorCode::CommandPortInUse,
            Self::NotReady { .. } => ErrorCode::CommandNotReady,
            Self::Ended { .. } => ErrorCode::CommandEnded,
        }
    }
}

impl System {
    pub(crate) fn new(launch: Launch) -> Self {
        Self { launch, shared: Mutex::default(), last: sync::Mutex::default() }
    }

    pub(crate) fn life(&self) -> Life {
        self.launch.life
    }

    /// Returns the system for a test with this `target`: started if necessary, ready, and not ended.
    pub(crate) async fn running(
        &self,
        target: Option<Ready>,
    ) -> Result<Arc<RunningSystem>, SystemError> {
        let running = match self.launch.life {
            Life::PerTest => self.start(target).await?,
            Life::Shared => {
                let mut shared = self.shared.lock().await;
                match &*shared {
                    Some(started) => started.clone()?,
                    None => shared.insert(self.start(target).await).clone()?,
                }
            }
        };
        running.ended_early().map_or(Ok(running), Err)
    }

    /// Returns the processes of a running system, as far as they can be inspected.
    pub(crate) fn processes(&self, running: &RunningSystem) -> Vec<diagnosis::Process> {
        look::processes(running.process.group(), &self.launch.environment)
    }

    /// Allows a new start of a system that has ended, or never was ready.
    pub(crate) async fn forget_ended(&self) {
        let mut shared = self.shared.lock().await;
        let is_up = |it: &Result<Arc<RunningSystem>, _>| {
            it.as_ref().is_ok_and(|it| it.ended_early().is_none())
        };
        if !shared.as_ref().is_some_and(is_up) {
            *shared = None;
        }
    }

    /// Returns the last started system.
    pub(crate) fn last(&self) -> Option<Arc<RunningSystem>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn start(&self, target: Option<Ready>) -> Result<Arc<RunningSystem>, SystemError> {
        let launch = &self.launch;
        let ready = launch.ready.clone().or(target);
        let pattern = ready.as_ref().and_then(Ready::pattern).cloned();
        let output = Arc::new(ProcessOutput::new(launch.live.clone(), pattern));
        let name = launch.command.join(&OsString::from(" ")).to_string_lossy().into_owned();
        // With `--ready` the target may be a service in front of the command, so it may accept connections already.
        if let (None, Some(target)) = (&launch.ready, &ready)
            && let Some(at) = target.taken().await
        {
            return Err(SystemError::Taken { command: name, at });
        }
        let process = Process::start(&launch.command, &launch.environment, &output);
        let process = process.map_err(|error| SystemError::Start {
            command: name.clone(),
            reason: error.to_string(),
        })?;
        let running = Arc::new(RunningSystem { process, output, name });
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&running));
        let Some(ready) = ready else { return Ok(running) };
        let doing = format!("starting, until {}", ready.awaited());
        let telling = match (launch.life, launch.telling) {
            // The line of the test shows that it runs.
            (Life::PerTest, ProgressLevel::Tests) => ProgressLevel::Quiet,
            (_, telling) => telling,
        };
        let _line = Line::of(&format!("`{}`", running.name), &doing, &launch.terminal, telling);
        let met = AtomicU16::new(0);
        let waited = timeout(launch.ready_timeout, async {
            tokio::select! {
                biased;
                ended = running.ends_early() => Err(ended),
                () = ready.wait(&running.output, &met) => Ok(()),
            }
        });
        let missing = match waited.await {
            Ok(Ok(())) => return Ok(running),
            Ok(Err(ended)) => ended,
            Err(_) => SystemError::NotReady {
                command: running.name.clone(),
                within: launch.ready_timeout,
                awaited: match met.into_inner() {
                    0 => ready.to_string(),
                    status => format!("{ready}, but with {status}"),
                },
                last_words: running.last_words(),
            },
        };
        running.stop().await;
        Err(missing)
    }
}

impl RunningSystem {
    /// Waits until it has ended by itself; forever if we stop it.
    pub(crate) async fn ends_early(&self) -> SystemError {
        let status = self.process.ends_early().await;
        self.ended(status)
    }

    /// Whether it has ended by itself.
    pub(crate) fn ended_early(&self) -> Option<SystemError> {
        self.process.ended_early().map(|(status, _)| self.ended(status))
    }

    /// Returns the addresses of this machine on which it accepts connections.
    pub(crate) fn listening(&self) -> BTreeSet<SocketAddr> {
        look::listening(self.process.group())
    }

    /// Whether it had ended by itself at this time.
    pub(crate) fn had_ended_early(&self, by: Instant) -> bool {
        self.process.ended_early().is_some_and(|(_, at)| at <= by)
    }

    /// Stops it with all its children.
    pub(crate) async fn stop(&self) {
        self.process.stop().await;
    }

    /// Stops it, so that it exports its remaining spans; the error is the reason why it may not have exported some.
    pub(crate) async fn drain(&self) -> Result<(), String> {
        let what = match self.process.stop().await {
            ProcessStop::Gracefully => return Ok(()),
            ProcessStop::Early(status) => return Err(self.ended(status).to_string()),
            ProcessStop::Signalled(status) => format!("ended with {status}"),
            ProcessStop::Killed => format!("did not end within {}", seconds(STOP_MAX)),
        };
        Err(format!(
            "`{}` {what} when it was asked to by SIGTERM, so that what it still had is lost: let it handle SIGTERM, send \
             its spans and exit; or leave out `--drain`",
            self.name
        ))
    }

    /// Returns its last lines of output, each with a prefix that marks it.
    pub(crate) fn last_lines(&self) -> Vec<String> {
        self.output.last(LINES_SHOWN).into_iter().map(|line| format!("  | {line}")).collect()
    }

    /// Returns its last lines of output, as the end of a sentence.
    fn last_words(&self) -> String {
        let mut lines = self.output.last(WORDS_SHOWN);
        lines.retain(|line| !line.trim().is_empty());
        if lines.is_empty() {
            String::new()
        } else {
            format!("; it wrote: {}", lines.join(" ⏎ "))
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    fn ended(&self, status: ExitStatus) -> SystemError {
        SystemError::Ended {
            command: self.name.clone(),
            status: status.to_string(),
            last_words: self.last_words(),
        }
    }
}

fn seconds(time: Duration) -> String {
    format!("{} s", time.as_secs_f64())
}
