//! Where a value comes from: a flag, then its variable, the profile, the file, and the default, for each key of the project file.

use std::{collections::BTreeSet, fs, process::Command};

use anyhow::{Context, Result, ensure};
use bench::parts::TEST_THAT_FIRES_NOTHING;
use serde_json::Value;
use tempfile::TempDir;

use super::BINARY;

/// A key, and where its value comes from.
struct Source {
    key: &'static str,
    /// The command line, without the flag.
    command: &'static str,
    /// The flag with its value, and as `project show` prints them.
    flag: (&'static str, &'static str, &'static str),
    /// The variable with its value; an argument has none.
    variable: Option<(&'static str, &'static str)>,
    default: Option<&'static str>,
}

const PROJECT: &str = r#"tests = ["file"]
[system]
command = ["file"]
ready = "tcp:file:1"
ready-timeout = "1s"
[run]
jobs = 1
retries = 1
timeout = "1s"
otlp = ["127.0.0.1:1"]
report = ["junit=file"]
vars = ["file"]
[server]
url = "http://file"
project = "file"
ca = "file"
[profile.p]
tests = ["profile"]
[profile.p.system]
command = ["profile"]
ready = "tcp:profile:1"
ready-timeout = "2s"
[profile.p.run]
jobs = 2
retries = 2
timeout = "2s"
otlp = ["127.0.0.1:2"]
report = ["junit=profile"]
vars = ["profile"]
[profile.p.server]
url = "http://profile"
project = "profile"
ca = "profile"
"#;

/// A row: the key, the command, the flag as typed, its value, its origin, the variable, its value, and the default; `-` is none.
const ROWS: &str = "\
tests | run | typed | typed | argument PATH | - | - | -
system.command | run | -- typed | typed | argument COMMAND | - | - | -
system.ready | run | --ready tcp:typed:1 -- x | tcp:typed:1 | flag --ready | QUALITYTRACE_READY | tcp:variable:1 | -
system.ready-timeout | run | --ready-timeout 4s | 4s | flag --ready-timeout | QUALITYTRACE_READY_TIMEOUT | 3s | 60s
run.jobs | run | -j 4 | 4 | flag --jobs | QUALITYTRACE_JOBS | 3 | -
run.retries | run | --retries=4 | 4 | flag --retries | QUALITYTRACE_RETRIES | 3 | -
run.timeout | run | --timeout 4s | 4s | flag --timeout | QUALITYTRACE_TIMEOUT | 3s | -
run.otlp | run | --otlp 127.0.0.1:4 | 127.0.0.1:4 | flag --otlp | QUALITYTRACE_OTLP | 127.0.0.1:3 | -
run.report | run | --report junit=typed | junit=typed | flag --report | QUALITYTRACE_REPORT | junit=variable | -
run.vars | run | --vars typed | typed | flag --vars | QUALITYTRACE_VARS | variable | -
server.url | status | --server http://typed | http://typed | flag --server | QUALITYTRACE_SERVER | http://variable | -
server.project | runs list | --project typed | typed | flag --project | QUALITYTRACE_PROJECT | variable | -
server.ca | list tests | --ca typed | typed | flag --ca | QUALITYTRACE_CA | variable | -";

fn rows() -> Result<Vec<Source>> {
    let row = |line: &'static str| {
        let cells: Vec<_> = line.split(" | ").collect();
        let [key, command, typed, value, origin, variable, set, default] = cells[..] else {
            anyhow::bail!("not a row: {line}");
        };
        let given = |text: &'static str| Some(text).filter(|text| *text != "-");
        let variable = given(variable).zip(given(set));
        Ok(Source { key, command, flag: (typed, value, origin), variable, default: given(default) })
    };
    ROWS.lines().map(row).collect()
}

/// Returns the keys that `project show` prints, each with its value and origin.
fn shown(folder: &TempDir, typed: &str, variable: Option<(&str, &str)>) -> Result<Vec<Value>> {
    let mut show = Command::new(BINARY);
    show.env_clear().envs(variable).current_dir(folder.path());
    let output = show
        .args(["project", "show", "--format", "json"])
        .args(typed.split_whitespace())
        .output()?;
    ensure!(output.status.success(), "{typed}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(serde_json::from_slice(&output.stdout)?)
}

impl Source {
    /// Checks the value with all sources from this level on: 0 has the flag, 4 nothing but the default.
    fn check(&self, level: usize) -> Result<()> {
        let folder = TempDir::new()?;
        let file = folder.path().join("qualitytrace.toml");
        if level < 4 {
            fs::write(&file, PROJECT)?;
        }
        let (typed, value, origin) = self.flag;
        let flag = if level == 0 { format!(" {typed}") } else { String::new() };
        // COMMAND is needed for `--ready`, and is not what is looked at.
        let with = if self.key == "system.ready" && level > 0 { " -- x" } else { "" };
        let profile = if level < 3 { "--profile p " } else { "" };
        let line = format!("{profile}-- {}{flag}{with}", self.command);
        let variable = self.variable.filter(|_| level < 2);
        let shown = shown(&folder, line.trim(), variable)?;
        let row = shown.iter().find(|row| row["key"] == self.key);
        let row = row.with_context(|| format!("`{}` in {shown:?}", self.key))?;
        let from = row["from"].as_str().context("an origin")?;
        let (expected_value, expected_from) = match (level, self.variable) {
            (0, _) => (Some(value.to_owned()), origin.to_owned()),
            (1, Some((name, value))) => (Some(value.to_owned()), format!("variable {name}")),
            (1 | 2, _) => self.written("profile.p"),
            (3, _) => self.written(""),
            _ => (self.default.map(str::to_owned), "default".to_owned()),
        };
        assert_eq!(
            row["value"].as_str(),
            expected_value.as_deref(),
            "{} at level {level}: {row}",
            self.key
        );
        assert_eq!(from, expected_from, "{} at level {level}: {row}", self.key);
        Ok(())
    }

    /// Returns the value that the file has below this table, and its origin.
    fn written(&self, below: &str) -> (Option<String>, String) {
        let (section, name) = self.key.split_once('.').unwrap_or(("", self.key));
        let parts: Vec<_> = [below, section].into_iter().filter(|it| !it.is_empty()).collect();
        let head = format!("[{}]", parts.join("."));
        let lines = PROJECT.lines().zip(1..);
        let within = lines.skip_while(|(line, _)| head != "[]" && *line != head);
        let assignment = format!("{name} = ");
        let values = within.map(|(line, number)| (line.strip_prefix(&assignment), number));
        let (value, number) =
            values.filter_map(|(value, number)| Some((value?, number))).next().unwrap_or(("", 0));
        let value = value.trim_matches(['[', ']', '"']).to_owned();
        let place = format!("qualitytrace.toml:{number}");
        match below {
            "" => (Some(value), place),
            _ => (Some(value), format!("profile p, {place}")),
        }
    }
}

#[test]
fn a_flag_comes_first_then_its_variable_the_profile_the_file_and_the_default() -> Result<()> {
    let sources = rows()?;
    let folder = TempDir::new()?;
    let all = shown(&folder, "", None)?;
    let all: BTreeSet<_> = all.iter().filter_map(|row| row["key"].as_str()).collect();
    let listed: BTreeSet<_> = sources.iter().map(|source| source.key).collect();
    assert_eq!(listed, all, "each key has a row");
    for source in &sources {
        (0..5).try_for_each(|level| source.check(level))?;
    }
    Ok(())
}

/// A command behind `--` is parsed, with its mistakes and its help, and never executed.
#[test]
fn a_shown_command_is_parsed_and_not_executed() -> Result<()> {
    let folder = TempDir::new()?;
    fs::write(folder.path().join("qualitytrace.toml"), PROJECT)?;
    let show = |typed: &str| -> Result<(Option<i32>, String, String)> {
        let mut show = Command::new(BINARY);
        show.env_clear().current_dir(folder.path()).args(["project", "show", "--"]);
        let output = show.args(typed.split(' ')).output()?;
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        Ok((output.status.code(), text(&output.stdout), text(&output.stderr)))
    };
    let (code, out, err) = show("run -- touch executed")?;
    assert_eq!((code, err.as_str()), (Some(0), ""), "nothing is trusted, and nothing needs to be");
    ensure!(out.contains("touch executed  argument COMMAND"), "{out}");
    ensure!(!folder.path().join("executed").exists());
    let (code, out, err) = show("run --jbos 2")?;
    ensure!(code == Some(2) && out.is_empty() && err.contains("'--jobs'"), "{out}{err}");
    let (code, out, err) = show("run --help")?;
    ensure!(code == Some(0) && out.starts_with("Run tests") && err.is_empty(), "{out}{err}");
    let (code, _, err) = show("version")?;
    assert_eq!((code, err.as_str()), (Some(0), "this command takes no keys\n"));
    Ok(())
}

/// What `project show` prints is what a run uses: here for the file of a report.
#[test]
fn a_run_uses_what_is_shown() -> Result<()> {
    let typed = ["--report", "json=typed"];
    let profile = ["--profile", "p"];
    let cases: [(&str, &[&str], Option<&str>); 4] = [
        ("typed", &typed, Some("json=variable")),
        ("variable", &profile, Some("json=variable")),
        ("profile", &profile, None),
        ("file", &[], None),
    ];
    for (expected, flags, variable) in cases {
        let folder = TempDir::new()?;
        fs::write(folder.path().join("cheap.yaml"), TEST_THAT_FIRES_NOTHING)?;
        let project = "tests = [\"cheap.yaml\"]\n[run]\nreport = [\"json=file\"]\n[profile.p.run]\nreport = [\"json=profile\"]\n";
        fs::write(folder.path().join("qualitytrace.toml"), project)?;
        let mut run = Command::new(BINARY);
        run.env_clear().envs(variable.map(|value| ("QUALITYTRACE_REPORT", value)));
        let output = run
            .args(["run", "--otlp", "127.0.0.1:0"])
            .args(flags)
            .current_dir(folder.path())
            .output()?;
        assert_eq!(output.status.code(), Some(2), "its variable has no value: {output:?}");
        let written =
            ["typed", "variable", "profile", "file"].map(|name| folder.path().join(name).exists());
        let is_expected = ["typed", "variable", "profile", "file"].map(|name| name == expected);
        assert_eq!(written, is_expected, "{expected}");
    }
    Ok(())
}
