//! The command under test: in a process group of its own, so that all its children can be stopped with it.
//!
//! Dropping a [`Process`] kills the group. Deliberately absent: processes that leave the group by themselves (daemons,
//! `setsid`), and the cleanup of the group when SIGKILL ends this process, which no process can handle.

use std::{
    ffi::OsString,
    io,
    process::{ExitStatus, Stdio},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use rustix::{
    io::Errno,
    process::{Pid, Signal, kill_process_group, test_kill_process_group},
};
use tokio::{
    process::Command,
    sync::{Mutex, watch},
    task::JoinSet,
    time::{Instant, sleep, timeout},
};

use super::output::ProcessOutput;

/// How long a group may take to end after SIGTERM.
pub(crate) const STOP_MAX: Duration = Duration::from_secs(5);
/// How long a group may take to be gone after SIGKILL.
const KILL_MAX: Duration = Duration::from_secs(2);
/// How long to read output that a process outside of the group keeps open.
const OUTPUT_MAX: Duration = Duration::from_millis(200);
/// The polling interval for the end of the group.
const LOOK: Duration = Duration::from_millis(2);

/// How a command ended after SIGTERM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProcessStop {
    /// It exited, with any code.
    Gracefully,
    /// It had ended by itself before.
    Early(ExitStatus),
    /// SIGTERM or another signal ended it: it has no handler.
    Signalled(ExitStatus),
    /// It had to be killed.
    Killed,
}

/// A running command.
#[derive(Debug)]
pub(crate) struct Process {
    group: Pid,
    /// The status and the time at which its first process ended.
    ended: watch::Receiver<Option<(ExitStatus, Instant)>>,
    /// The value of `ended` at the moment when we sent SIGTERM.
    before_stop: OnceLock<Option<(ExitStatus, Instant)>>,
    /// Whether the group has no process left, so that its number may belong to another group.
    is_gone: AtomicBool,
    tasks: Mutex<JoinSet<()>>,
}

impl Process {
    /// Starts a command with these changes to our environment.
    pub(crate) fn start(
        command: &[OsString],
        environment: &[(String, Option<String>)],
        output: &Arc<ProcessOutput>,
    ) -> io::Result<Self> {
        let (program, arguments) =
            command.split_first().ok_or_else(|| io::Error::other("there is no command"))?;
        let mut command = Command::new(program);
        command.args(arguments).process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        for (name, value) in environment {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        let mut child = command.spawn()?;
        let group = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        let group = group.ok_or_else(|| io::Error::other("it ended at once"))?;
        let (tell, ended) = watch::channel(None);
        let mut tasks = JoinSet::new();
        if let Some(stdout) = child.stdout.take() {
            let output = Arc::clone(output);
            tasks.spawn(async move { output.keep(stdout).await });
        }
        if let Some(stderr) = child.stderr.take() {
            let output = Arc::clone(output);
            tasks.spawn(async move { output.keep(stderr).await });
        }
        tasks.spawn(async move {
            if let Ok(status) = child.wait().await {
                tell.send_replace(Some((status, Instant::now())));
            }
        });
        let (before_stop, is_gone) = (OnceLock::new(), AtomicBool::new(false));
        Ok(Self { group, ended, before_stop, is_gone, tasks: Mutex::new(tasks) })
    }

    /// Returns the process group.
    pub(super) fn group(&self) -> Pid {
        self.group
    }

    /// Returns how and when it ended by itself; none while it runs, or if we stopped it before.
    pub(crate) fn ended_early(&self) -> Option<(ExitStatus, Instant)> {
        self.before_stop.get().map_or_else(|| *self.ended.borrow(), |early| *early)
    }

    /// Waits until it has ended by itself, and its last output is read; forever if we stop it.
    pub(crate) async fn ends_early(&self) -> ExitStatus {
        let status = self.ended().await;
        if self.ended_early().is_none() {
            std::future::pending::<()>().await;
        }
        self.read_out().await;
        status
    }

    /// Stops the complete group, gracefully first.
    pub(crate) async fn stop(&self) -> ProcessStop {
        let early = *self.before_stop.get_or_init(|| *self.ended.borrow());
        self.signal(Signal::TERM);
        let is_graceful = self.is_gone_within(STOP_MAX).await;
        if !is_graceful {
            self.signal(Signal::KILL);
            self.is_gone_within(KILL_MAX).await;
        }
        self.read_out().await;
        let status = self.ended.borrow().map(|(status, _)| status);
        match (early, status) {
            (Some((status, _)), _) => ProcessStop::Early(status),
            (None, Some(status)) if is_graceful && status.code().is_some() => {
                ProcessStop::Gracefully
            }
            (None, Some(status)) if is_graceful => ProcessStop::Signalled(status),
            (None, _) => ProcessStop::Killed,
        }
    }

    /// Reads the output to its end, unless another process keeps it open.
    async fn read_out(&self) {
        let mut tasks = self.tasks.lock().await;
        let _rest = timeout(OUTPUT_MAX, async { while tasks.join_next().await.is_some() {} }).await;
    }

    async fn is_gone_within(&self, max: Duration) -> bool {
        let deadline = Instant::now() + max;
        if timeout(max, self.ended()).await.is_err() {
            return false;
        }
        while test_kill_process_group(self.group) != Err(Errno::SRCH) {
            if Instant::now() >= deadline {
                return false;
            }
            sleep(LOOK).await;
        }
        self.is_gone.store(true, Ordering::SeqCst);
        true
    }

    async fn ended(&self) -> ExitStatus {
        let mut ended = self.ended.clone();
        loop {
            if let Some((status, _)) = *ended.borrow_and_update() {
                return status;
            }
            if ended.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    fn signal(&self, signal: Signal) {
        if !self.is_gone.load(Ordering::SeqCst) {
            // It may have ended by itself meanwhile, which is the goal.
            let _ended = kill_process_group(self.group, signal);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}
