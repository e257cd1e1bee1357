//! Every command for a server: on a server as it should be, and where something is in its way.
//!
//! `servers.txt` has a block for each, `golden` what it prints, `refused` what it prints of what is in its way.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};
use bench::parts::free_port;
use golden::Golden;
use serde_json::Value;

use super::{
    schema,
    stage::{Caller, Ended, ROLES, Stage, WRONG_TOKEN},
};

/// A block of the table.
pub(crate) struct Row {
    pub(crate) typed: &'static str,
    fields: BTreeMap<&'static str, &'static str>,
}

impl Row {
    /// Returns a field that has a command; none behind `-`, which gives the reason.
    fn command(&self, field: &str) -> Option<&'static str> {
        let text = self.fields.get(field)?;
        (!text.starts_with("- ")).then_some(text)
    }

    pub(crate) fn right(&self) -> &'static str {
        self.fields.get("right").copied().unwrap_or_default()
    }

    /// Returns the exit code where something is in the way: the usual one, or the one of the table.
    pub(crate) fn exit(&self, situation: &str, usual: i32) -> Result<i32> {
        let stated = self.fields.get(situation).and_then(|text| text.split(' ').next());
        Ok(stated.map(str::parse).transpose()?.unwrap_or(usual))
    }

    /// Makes what the command consumes.
    pub(crate) async fn prepare(&self, stage: &Stage) -> Result<()> {
        let Some(before) = self.fields.get("before") else { return Ok(()) };
        let ended = stage.ended(before, stage.caller("admin"), &[]).await?;
        ensure!(ended.code == 0, "{before}: {}", ended.err);
        Ok(())
    }

    /// Returns the name of its golden file.
    fn name(&self) -> String {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-';
        let words = self.typed.split(' ').take_while(|word| !word.starts_with(['{', '-']));
        words.take(3).map(|word| word.replace(|c| !is_part(c), "-")).collect::<Vec<_>>().join("-")
    }
}

/// Returns the table.
pub(crate) fn rows() -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for block in include_str!("servers.txt").split("\n\n").filter(|it| !it.starts_with('#')) {
        let mut lines = block.trim().lines();
        let typed = lines.next().context("a command")?;
        let fields = lines.map(|line| line.split_once(": ").context(line));
        rows.push(Row { typed, fields: fields.collect::<Result<_>>()? });
    }
    ensure!(rows.len() > 25, "only {} commands", rows.len());
    Ok(rows)
}

fn here(folder: &str, name: &str) -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/command_line");
    tests.join(folder).join(format!("{name}.txt"))
}

/// Adds a command line and what it printed. No pipe gets colour.
fn add(text: &mut String, stage: &Stage, (typed, ended): (&str, &Ended)) -> Result<()> {
    let printed = [&ended.out[..], ended.err.as_bytes()].concat();
    ensure!(!printed.contains(&0x1b) || ended.out.contains(&0), "{typed} has escapes in a pipe");
    ensure!(!ended.err.contains("panicked"), "{typed}: {}", ended.err);
    text.push_str(&format!("$ {typed}\n{}", stage.masked(ended)?));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn every_command_for_a_server_prints_what_it_should() -> Result<()> {
    let stage = Stage::set("command_line").await?;
    // So that lists have a row.
    stage.filled("{session}", "").await?;
    let mut golden = Golden::default();
    let mut names = BTreeSet::new();
    for row in rows()? {
        let mut text = String::new();
        row.prepare(&stage).await?;
        let caller = stage.caller("admin");
        let typed = stage.filled(row.typed, caller.server).await?;
        let ended = stage.ended(&typed, caller, &[]).await?;
        assert_eq!(ended.code, row.exit("exit", 0)?, "{typed}: {}", ended.err);
        add(&mut text, &stage, (row.typed, &ended))?;
        if row.fields.contains_key("next") {
            listed(&row, &stage, &mut text).await.with_context(|| row.typed)?;
        }
        ensure!(names.insert(row.name()), "{} is there twice", row.name());
        if row.command("golden") != Some("no") {
            golden.compare(&here("golden", &row.name()), &text);
        }
    }
    golden.finish(25);
    stage.end().await
}

/// Checks the other forms of a list: at the widths of terminals, as JSON, and as names that the next command takes.
async fn listed(row: &Row, stage: &Stage, text: &mut String) -> Result<()> {
    let caller = stage.caller("admin");
    for columns in ["80", "40"] {
        let ended = stage.ended(row.typed, caller, &[("COLUMNS", columns)]).await?;
        add(text, stage, (&format!("COLUMNS={columns} {}", row.typed), &ended))?;
        let out = String::from_utf8(ended.out)?;
        let width = out.lines().map(|line| line.chars().count()).max().unwrap_or_default();
        // In 40 columns, a long value has a line that the terminal wraps.
        let may_be_wide = columns == "40" || row.fields.contains_key("wide");
        ensure!(may_be_wide || width <= 80, "{width} columns: {out}");
    }
    let json = stage.ended(&format!("{} --format json", row.typed), caller, &[]).await?;
    let value: Value = serde_json::from_slice(&json.out)?;
    let schema = schema_of(row.typed)?;
    schema::check(&value, &schema, &schema).map_err(anyhow::Error::msg)?;
    let names = stage.ended(&format!("{} --format name", row.typed), caller, &[]).await?;
    add(text, stage, (&format!("{} --format name", row.typed), &names))?;
    let Some(next) = row.command("next") else { return Ok(()) };
    // What the next command ends is not what others need: it gets the last name, which is the newest or the only one.
    let names = String::from_utf8(names.out)?;
    let name = names.lines().next_back().context("a name")?;
    let ended = stage.ended(&format!("{next} {name}"), caller, &[]).await?;
    ensure!(ended.code == 0, "{next} {name}: {}", ended.err);
    Ok(())
}

fn schema_of(typed: &str) -> Result<Value> {
    let schemas = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/schemas");
    let mut words = typed.split(' ');
    let first = words.next().unwrap_or_default();
    let both = format!("{first}-{}", words.next().unwrap_or_default());
    let files = [both, first.to_owned()].map(|name| schemas.join(format!("{name}.json")));
    let file = files.into_iter().find(|file| file.is_file()).context("a schema")?;
    Ok(serde_json::from_str(&fs::read_to_string(file)?)?)
}

/// Returns the role that has not quite the right; none where any token has it.
fn role_below(right: &str) -> Option<&'static str> {
    let at = ROLES.iter().position(|role| *role == right)?;
    ROLES.get(at.checked_sub(1)?).copied()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_command_for_a_server_names_what_is_in_its_way() -> Result<()> {
    let stage = Stage::set("command_line_refused").await?;
    let nowhere = format!("http://127.0.0.1:{}", free_port()?);
    let mut golden = Golden::default();
    for row in rows()? {
        let mut text = String::new();
        let admin = stage.caller("admin");
        let typed = stage.filled(row.typed, "{server}").await?;
        let unreachable = Caller { server: &nowhere, ..admin };
        let wrong = Caller { token: Some(WRONG_TOKEN), ..admin };
        let usual = if row.right() == "none" { 0 } else { 2 };
        let mut cases = vec![
            ("unreachable", row.typed, unreachable, row.exit("unreachable", 3)?),
            ("wrong-token", row.typed, wrong, row.exit("wrong-token", usual)?),
        ];
        if let Some(role) = role_below(row.right()) {
            cases.push(("missing right", row.typed, stage.caller(role), 2));
        }
        if let Some(unknown) = row.command("unknown") {
            cases.push(("unknown id", unknown, admin, 2));
        }
        for (situation, shown, caller, code) in cases {
            let typed = if shown == row.typed { typed.as_str() } else { shown };
            let ended = stage.ended(typed, caller, &[]).await?;
            ensure!(ended.code == code, "{situation}: {typed}: {}: {}", ended.code, ended.err);
            let is_named = ended.err.trim_end().ends_with(']') && ended.err.contains("error: ");
            ensure!(code == 0 || code == 1 || is_named, "{situation}: {typed}: {}", ended.err);
            text.push_str(&format!("# {situation}\n"));
            add(&mut text, &stage, (shown, &ended))?;
        }
        if row.command("golden") != Some("no") {
            golden.compare(&here("refused", &row.name()), &text);
        }
    }
    golden.finish(25);
    stage.end().await
}
