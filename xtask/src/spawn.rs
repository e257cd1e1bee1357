//! Running other programs, with helpful messages when they fail.

use std::{
    fs::{self, File},
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::{Context, Result, bail};

use crate::machine::Machine;

/// The interval at which long work prints that it still runs.
const HEARTBEAT: Duration = Duration::from_secs(30);

/// How many last lines of a log an error shows.
const LOG_LINES_SHOWN: usize = 15;

/// Runs a program to its end; it inherits stdout and stderr.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| unstarted(command))?;
    if !status.success() {
        bail!("`{}` ended with {status}", words(command));
    }
    Ok(())
}

/// Runs a program to its end and returns its output.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| unstarted(command))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("`{}` ended with {}: {}", words(command), output.status, said.trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Runs a program that takes minutes: its output goes to a log, and a line is printed from time to time.
pub(crate) fn long(machine: &Machine, command: &mut Command, log: &Path) -> Result<()> {
    let mut child = logged(command, log)?.spawn().with_context(|| unstarted(command))?;
    let began = (machine.clock.now)();
    let mut said = Duration::ZERO;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        (machine.clock.sleep)(Duration::from_millis(100));
        let elapsed = (machine.clock.now)() - began;
        if elapsed >= said + HEARTBEAT {
            said = elapsed;
            eprintln!(
                "  … {} min, still at it; its output is in {}",
                minutes(elapsed),
                log.display()
            );
        }
    };
    if !status.success() {
        bail!("`{}` ended with {status}; {}", words(command), last_lines(log));
    }
    Ok(())
}

/// Appends a program's output to a file.
pub(crate) fn logged<'a>(command: &'a mut Command, log: &Path) -> Result<&'a mut Command> {
    let parent = log.parent().context("a log stands in a folder")?;
    fs::create_dir_all(parent).with_context(|| format!("`{}` cannot be made", parent.display()))?;
    let file = File::options().create(true).append(true).open(log);
    let file = file.with_context(|| format!("`{}` cannot be written", log.display()))?;
    Ok(command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file))
}

pub(crate) fn last_lines(log: &Path) -> String {
    let text = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    let shown = &lines[lines.len().saturating_sub(LOG_LINES_SHOWN)..];
    format!("the end of {}:\n  {}", log.display(), shown.join("\n  "))
}

pub(crate) fn minutes(duration: Duration) -> String {
    format!("{:.1}", duration.as_secs_f64() / 60.0)
}

/// Returns the CPU time of all programs that this process started and waited for; none where the system does not report it.
pub(crate) fn children_cpu() -> Option<Duration> {
    /// Milliseconds of a tick, which is the same on every Linux.
    const TICK_MS: u64 = 10;
    /// The position of `cutime` behind the program's name; `cstime` follows it. See proc_pid_stat(5).
    const CUTIME: usize = 13;
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    let (_, fields) = stat.rsplit_once(')')?;
    let times = fields.split_whitespace().skip(CUTIME).take(2).map(str::parse::<u64>);
    let ticks = times.sum::<Result<u64, _>>().ok()?;
    Some(Duration::from_millis(ticks * TICK_MS))
}

fn unstarted(command: &Command) -> String {
    let program = command.get_program().to_string_lossy();
    format!("`{program}` cannot be started; is it installed and in `PATH`?")
}

fn words(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let mut words = vec![program.file_name().unwrap_or(program.as_os_str()).to_string_lossy()];
    words.extend(command.get_args().map(|argument| argument.to_string_lossy()));
    words.join(" ")
}
