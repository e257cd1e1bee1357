//! A process that we started, distinguished from a later one with the same process id.

use std::{fs, process::Command, time::Duration};

use anyhow::{Result, bail};

use crate::{machine::Clock, spawn};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: u32,
    /// When it started, in the kernel's ticks since boot. Process ids are reused; the pair of id and start time is not.
    pub(super) start: u64,
}

impl Process {
    /// Returns the process that has this id now; none if it has ended, even before its parent has collected the exit status.
    pub(super) fn of(pid: u32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The second field is the program's name in parentheses and may contain anything, parentheses and spaces included.
        let (_, after_name) = stat.rsplit_once(") ")?;
        let mut fields = after_name.split(' ');
        let state = fields.next()?;
        let start = fields.nth(18)?.parse().ok()?;
        (!matches!(state, "Z" | "X")).then_some(Self { pid, start })
    }

    pub(super) fn is_alive(self) -> bool {
        Self::of(self.pid) == Some(self)
    }

    /// Ends the process: sends the signal, waits, and kills it after the timeout.
    pub(super) fn stop(self, clock: &Clock, signal: &str, within: Duration) -> Result<()> {
        for signal in [signal, "KILL"] {
            if self.is_alive() {
                self.send(signal)?;
            }
            let asked = (clock.now)();
            while self.is_alive() && (clock.now)() - asked < within {
                (clock.sleep)(Duration::from_millis(10));
            }
        }
        if self.is_alive() {
            bail!("process {} does not end; see what it is with `ps -p {}`", self.pid, self.pid);
        }
        Ok(())
    }

    fn send(self, signal: &str) -> Result<()> {
        let mut kill = Command::new("sh");
        kill.args(["-c", r#"kill -s "$1" "$2""#, "kill", signal]).arg(self.pid.to_string());
        // It may have ended in between, which is the goal.
        spawn::output(&mut kill)
            .map(drop)
            .or_else(|error| if self.is_alive() { Err(error) } else { Ok(()) })
    }
}
