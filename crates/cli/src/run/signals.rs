//! Ctrl-C, SIGTERM and a closed terminal: each ends the run cleanly; a second one ends it at once.
//!
//! The command is in a process group of its own, so the default action of a signal would end us and leave it running.

use std::{fs, io};

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::exit::Exit;

/// The signals that end a run.
#[derive(Debug)]
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    /// None if it is ignored, as under `nohup`.
    hang_up: Option<Signal>,
    quit: Signal,
}

impl Signals {
    pub(crate) fn listen() -> io::Result<Self> {
        let hang_up = SignalKind::hangup();
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: if is_ignored(hang_up) { None } else { Some(signal(hang_up)?) },
            quit: signal(SignalKind::quit())?,
        })
    }

    /// Waits for a signal, and returns its exit.
    pub(crate) async fn end(&mut self) -> Exit {
        let hung_up = async {
            match &mut self.hang_up {
                Some(hang_up) => drop(hang_up.recv().await),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => Exit::Interrupted,
            _ = self.terminate.recv() => Exit::Terminated,
            () = hung_up => Exit::Terminated,
            _ = self.quit.recv() => Exit::Terminated,
        }
    }
}

/// Whether the parent process set this signal to be ignored. Only Linux provides that; elsewhere it returns false.
fn is_ignored(signal: SignalKind) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal.as_raw_value() - 1) & 1 == 1)
}
