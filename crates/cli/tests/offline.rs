//! The commands that need no network, as a user runs them: the command line, and its complete result.
//!
//! `offline/commands.txt` has a line for each case, its name and its command line; `offline/golden/NAME.txt` has the result.
//! Each case runs in a folder of its own with the files of `offline/inputs`.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, ensure};
use bench::parts::words;
use golden::Golden;
use tempfile::TempDir;

#[test]
fn commands() -> Result<()> {
    let mut golden = Golden::default();
    let commands = fs::read_to_string(here().join("commands.txt"))?;
    let mut count = 0;
    for line in commands.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (name, typed) = line.split_once(": ").with_context(|| line.to_owned())?;
        let shown = run(typed).with_context(|| line.to_owned())?;
        golden.compare(&here().join("golden").join(format!("{name}.txt")), &shown);
        count += 1;
    }
    golden.finish(count);
    ensure!(count >= 30, "only {count} cases");
    Ok(())
}

#[test]
fn what_is_printed_for_programs() -> Result<()> {
    for (typed, expected) in [
        ("--version", "qualitytrace "),
        ("schema", "\"$schema\""),
        ("schema config", "\"$schema\""),
        ("completion bash", "complete -F"),
        ("completion fish", "complete -c qualitytrace"),
        ("completion zsh", "#compdef qualitytrace"),
        ("completion powershell", "Register-ArgumentCompleter"),
        ("completion elvish", "edit:completion"),
    ] {
        let shown = run(typed)?;
        ensure!(shown.contains(expected) && shown.contains("exit 0"), "{typed}: {shown}");
    }
    Ok(())
}

/// Runs a command line in a fresh folder; returns exit code, stdout, stderr, and the changed files.
fn run(typed: &str) -> Result<String> {
    let folder = TempDir::new()?;
    copy(&here().join("inputs"), folder.path())?;
    let documentation = here().join("../../../../docs/language/example/checkout.json");
    fs::copy(documentation, folder.path().join("checkout.json"))?;
    let before = files(folder.path())?;
    let mut words = words(typed);
    let mut command = Command::new(env!("CARGO_BIN_EXE_qualitytrace"));
    command.env_clear().current_dir(folder.path()).stdin(Stdio::null());
    while let Some((name, value)) = words.first().and_then(|word| variable(word)) {
        command.env(name, value);
        words.remove(0);
    }
    let output = command.args(&words).output()?;
    let mut shown = format!("$ {typed}\nexit {}\n", output.status.code().unwrap_or(-1));
    for (stream, bytes) in [("stdout", &output.stdout), ("stderr", &output.stderr)] {
        if !bytes.is_empty() {
            shown.push_str(&format!("--- {stream}\n{}", String::from_utf8(bytes.clone())?));
        }
    }
    for (path, content) in files(folder.path())? {
        if before.iter().all(|(old, same)| *old != path || *same != content) {
            shown.push_str(&format!("--- {}\n{content}", path.display()));
        }
    }
    Ok(without_times(&shown))
}

fn variable(word: &str) -> Option<(String, String)> {
    let (name, value) = word.split_once('=')?;
    let is_name = name.chars().all(|c| c.is_ascii_uppercase() || c == '_') && !name.is_empty();
    is_name.then(|| (name.to_owned(), value.to_owned()))
}

/// Masks durations: they differ between runs, and nothing else may.
fn without_times(text: &str) -> String {
    let mut shown = String::new();
    for line in text.split_inclusive('\n') {
        shown.push_str(&mask(line));
    }
    shown
}

fn mask(line: &str) -> String {
    let mut line = line.to_owned();
    for (open, close) in [
        (" (", ")"),
        (" in ", "\n"),
        ("time=\"", "\""),
        ("timestamp=\"", "\""),
        ("\"began\":\"", "\""),
        ("\"ended\":\"", "\""),
        ("\"durationNs\":", ",}"),
        ("<td>", "<"),
    ] {
        let mut at = 0;
        while let Some(start) = line[at..].find(open).map(|found| at + found + open.len()) {
            let length = line[start..].find(|c| close.contains(c)).unwrap_or(0);
            at = start;
            if is_time(&line[start..start + length]) {
                line.replace_range(start..start + length, "…");
            }
        }
    }
    line
}

fn is_time(text: &str) -> bool {
    let is_stamp = text.ends_with('Z') && text.contains('T');
    let number = text.trim_end_matches(|c: char| "nuµms ".contains(c));
    let is_number = !number.is_empty() && number.chars().all(|c| c.is_ascii_digit() || c == '.');
    is_stamp || is_number
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    for entry in fs::read_dir(from)? {
        let (from, to) = (entry?.path(), to.to_owned());
        let to = to.join(from.file_name().context("a name")?);
        if from.is_dir() {
            fs::create_dir(&to)?;
            copy(&from, &to)?;
        } else {
            fs::copy(&from, &to)?;
        }
    }
    Ok(())
}

/// Returns all files below a folder with their content, sorted.
fn files(folder: &Path) -> Result<Vec<(PathBuf, String)>> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(next)? {
            let path = entry?.path();
            if path.is_dir() {
                open.push(path);
            } else {
                let content = String::from_utf8_lossy(&fs::read(&path)?).into_owned();
                found.push((path.strip_prefix(folder)?.to_owned(), content));
            }
        }
    }
    found.sort();
    Ok(found)
}

fn here() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/offline")
}
