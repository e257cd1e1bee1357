//! Ctrl-C and SIGTERM, and a terminal that goes away: each ends the run cleanly; a second one ends it at once.
//!
//! The command is in a process group of its own, so that what ends us by default would leave it running.

use std::{fs, io};

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::exit::Exit;

/// What can ask us to end.
#[derive(Debug)]
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    /// None where it is ignored, as under `nohup`.
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

    /// Waits until we are asked to end, and says with which exit.
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

/// Whether whoever started us wants this signal ignored. Only Linux tells; elsewhere it is taken as not.
fn is_ignored(signal: SignalKind) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal.as_raw_value() - 1) & 1 == 1)
}
