//! How fast help is: people and completion scripts call it often.

use std::{
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::{Result, ensure};
use tokio::time::Instant;

use super::BINARY;

/// The bound for a build without optimizations on a busy machine; an optimized build takes less than 20 ms.
const HELP_MAX: Duration = Duration::from_secs(1);
const TIMES: usize = 20;

/// The median of several calls, so that one slow call does not count.
#[test]
fn help_is_fast() -> Result<()> {
    for arguments in [&["--help"][..], &["-h"], &["run", "--help"], &["--version"]] {
        let mut times = Vec::with_capacity(TIMES);
        for _ in 0..TIMES {
            let began = Instant::now();
            let help = Command::new(BINARY).args(arguments).stdout(Stdio::null()).status()?;
            times.push(began.elapsed());
            ensure!(help.success(), "{arguments:?}: {help}");
        }
        times.sort_unstable();
        let median = times[TIMES / 2];
        ensure!(median < HELP_MAX, "{arguments:?}: {median:?} of {times:?}");
    }
    Ok(())
}
