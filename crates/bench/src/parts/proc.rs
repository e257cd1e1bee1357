//! What Linux knows of a process: its CPU time, its memory, its children.

use std::{fs, time::Duration};

use anyhow::{Context, Result};

/// Ticks of the clock that `/proc` counts CPU time in, which Linux has fixed for all programs.
const TICK: Duration = Duration::from_millis(10);

/// What a process has had of the CPU, user and system, all threads together, those that ended included.
pub(crate) fn cpu(process: u32) -> Result<Duration> {
    Ok(times(process)?[..2].iter().sum())
}

/// The same, with its children that have ended and were waited for.
pub(crate) fn cpu_with_ended(process: u32) -> Result<Duration> {
    Ok(times(process)?.iter().sum())
}

/// The children that a process has now.
pub(crate) fn children(process: u32) -> Result<Vec<u32>> {
    let list = fs::read_to_string(format!("/proc/{process}/task/{process}/children"))?;
    list.split_whitespace().map(|child| Ok(child.parse()?)).collect()
}

/// Memory that is resident, in megabytes.
pub(crate) fn resident_mb(process: u32) -> Result<f64> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("a size")?;
    let kilobytes: f64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kilobytes / 1024.0)
}

/// User and system time of a process, and of its children that ended.
fn times(process: u32) -> Result<[Duration; 4]> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat"))?;
    // The name of the program stands in parentheses and may hold anything.
    let (_, figures) = stat.rsplit_once(')').context("a name")?;
    let mut figures = figures.split_whitespace().skip(11);
    let mut next = || -> Result<Duration> {
        let ticks: u32 = figures.next().context("a figure")?.parse()?;
        Ok(TICK * ticks)
    };
    Ok([next()?, next()?, next()?, next()?])
}
