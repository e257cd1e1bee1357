//! Process figures of Linux: CPU time, memory, children.

use std::{fs, time::Duration};

use anyhow::{Context, Result};

/// The clock tick in which `/proc` counts CPU time, which Linux has fixed for all programs.
const TICK: Duration = Duration::from_millis(10);

/// Returns the CPU time of a process, user and system, of all threads, including those that ended.
pub(crate) fn cpu(process: u32) -> Result<Duration> {
    Ok(times(process)?[..2].iter().sum())
}

/// Returns the same, plus that of its children that have ended and were waited for.
pub(crate) fn cpu_with_ended(process: u32) -> Result<Duration> {
    Ok(times(process)?.iter().sum())
}

/// Returns the time for which the processors were in use, and the time that they had, since the machine was started.
pub(crate) fn machine() -> Result<[Duration; 2]> {
    let stat = fs::read_to_string("/proc/stat")?;
    let line = stat.lines().next().context("a line for all processors")?;
    let times: Vec<u64> =
        line.split_whitespace().skip(1).take(8).map(str::parse).collect::<Result<_, _>>()?;
    let all: u64 = times.iter().sum();
    // The fourth is idle time, the fifth that of waiting for disks.
    let idle: u64 = times.iter().skip(3).take(2).sum();
    Ok([all - idle, all].map(|ticks| Duration::from_millis(10 * ticks)))
}

/// Returns the current children of a process.
pub(crate) fn children(process: u32) -> Result<Vec<u32>> {
    let list = fs::read_to_string(format!("/proc/{process}/task/{process}/children"))?;
    list.split_whitespace().map(|child| Ok(child.parse()?)).collect()
}

/// Returns the resident memory, in megabytes.
pub(crate) fn resident_mb(process: u32) -> Result<f64> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("a size")?;
    let kilobytes: f64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kilobytes / 1024.0)
}

/// Returns the user and system times of a process, and of its children that ended.
fn times(process: u32) -> Result<[Duration; 4]> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat"))?;
    // The name of the program is in parentheses and may contain anything.
    let (_, figures) = stat.rsplit_once(')').context("a name")?;
    let mut figures = figures.split_whitespace().skip(11);
    let mut next = || -> Result<Duration> {
        let ticks: u32 = figures.next().context("a figure")?.parse()?;
        Ok(TICK * ticks)
    };
    Ok([next()?, next()?, next()?, next()?])
}
