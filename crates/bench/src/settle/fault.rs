//! Faults in the engine, each of which the proof has to find.

use anyhow::Result;

#[cfg(not(feature = "planted"))]
const WITHOUT: &str = "this build has no faults to plant: build it with `--features planted`";

/// Plants a fault of the engine, for the complete process.
#[cfg(feature = "planted")]
pub(super) fn plant(name: &str) -> Result<()> {
    let all = || runner::plants().collect::<Vec<_>>().join(", ");
    anyhow::ensure!(runner::plant(name), "`{name}` is no fault: expected one of {}", all());
    Ok(())
}

/// Faults that only spans in a trace store can show.
#[cfg(feature = "planted")]
const QUERIED: &[&str] = &["watermark-now"];

/// Plants each fault in its own process, which has to find it.
#[cfg(feature = "planted")]
pub(super) fn find_all() -> Result<String> {
    use std::process::Command;

    let mut rows = Vec::new();
    for name in runner::plants() {
        let mut prove = Command::new(std::env::current_exe()?);
        prove.args(["prove", "settle", "--fault", name]);
        if QUERIED.contains(&name) {
            prove.arg("--queried");
        }
        prove.arg("--short");
        let output = prove.output()?;
        // Seeds go to stderr, figures to stdout.
        let told = [output.stderr, output.stdout].concat();
        let told = String::from_utf8_lossy(&told);
        // Any other failure before the figures has found nothing.
        let is_found = !output.status.success() && told.contains(super::WRONG);
        anyhow::ensure!(is_found, "the fault `{name}` was not found\n{told}");
        rows.push(format!("{name}: found"));
    }
    Ok(rows.join("\n"))
}

/// Fails: this build has no faults.
#[cfg(not(feature = "planted"))]
pub(super) fn plant(_: &str) -> Result<()> {
    anyhow::bail!(WITHOUT)
}

/// Fails: this build has no faults.
#[cfg(not(feature = "planted"))]
pub(super) fn find_all() -> Result<String> {
    anyhow::bail!(WITHOUT)
}
