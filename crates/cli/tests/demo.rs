//! The demo as processes: five while it runs, none after it has ended, whatever ended it.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
    thread::sleep,
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use bench::parts::free_port;

const BINARY: &str = env!("CARGO_BIN_EXE_qualitytrace");
/// How long processes may take to end, on a busy machine.
const GONE_MAX: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(20);

/// Starts a demo of five processes.
fn open() -> Result<(Child, Vec<u32>)> {
    let address = format!("127.0.0.1:{}", free_port()?);
    let otlp = format!("http://127.0.0.1:{}", free_port()?);
    let mut demo = Command::new(BINARY)
        .args(["demo", "--processes", "--http", &address, "--otlp", &otlp])
        .stdout(Stdio::piped())
        .spawn()?;
    let mut first = String::new();
    BufReader::new(demo.stdout.take().context("it has an output")?).read_line(&mut first)?;
    ensure!(first.contains(&address), "it says where it is: {first}");
    let children = children(demo.id())?;
    ensure!(children.len() == 5, "one process for each service: {children:?}");
    Ok((demo, children))
}

/// Returns the child processes of a process.
fn children(of: u32) -> Result<Vec<u32>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else { continue };
        if stat(pid).is_some_and(|(_, parent)| parent == of) {
            found.push(pid);
        }
    }
    Ok(found)
}

/// Returns the state of a process and its parent; none if it has ended.
fn stat(pid: u32) -> Option<(char, u32)> {
    let text = fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat")).ok()?;
    let (_, rest) = text.rsplit_once(") ")?;
    let mut fields = rest.split(' ');
    Some((fields.next()?.chars().next()?, fields.next()?.parse().ok()?))
}

/// Waits until none of these processes runs; a zombie may not have been reaped yet.
fn gone(pids: &[u32]) -> bool {
    let works = |pid: &u32| stat(*pid).is_some_and(|(state, _)| state != 'Z');
    (0..GONE_MAX.as_millis() / POLL.as_millis()).any(|_| {
        #[expect(
            clippy::disallowed_methods,
            reason = "the clock of other processes is the real one"
        )]
        sleep(POLL); // At most `GONE_MAX` in all.
        !pids.iter().any(works)
    })
}

fn signal(pid: u32, name: &str) -> Result<()> {
    let sent = Command::new("kill").args([&format!("-{name}"), &pid.to_string()]).status()?;
    ensure!(sent.success(), "the signal is sent");
    Ok(())
}

#[test]
fn no_service_outlives_the_shop() -> Result<()> {
    for name in ["TERM", "INT", "KILL"] {
        let (mut demo, services) = open()?;
        signal(demo.id(), name)?;
        let ended = demo.wait()?;
        assert_eq!(ended.success(), name != "KILL", "{name}: {ended}");
        assert!(gone(&services), "{name}: all of {services:?} are gone");
    }
    Ok(())
}

#[test]
fn a_shop_loses_one_service_and_closes_with_the_others() -> Result<()> {
    let (mut demo, services) = open()?;
    signal(services[0], "KILL")?;
    signal(demo.id(), "TERM")?;
    assert!(demo.wait()?.success());
    assert!(gone(&services));
    Ok(())
}
