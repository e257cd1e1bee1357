//! Checks that every document of a folder compiles unchanged, or that a checked-in list has the reason why not.
//!
//! The list holds only reasons that are in the file itself: its kind existed only in the paid product, or the file is broken at
//! its source.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use lang::Document;
use source::{Diagnostic, Text};

/// The reasons why files do not compile: a path, a reason, and the details behind `#`.
const REASONS: &str = include_str!("../../data/corpus-reasons.txt");

/// The valid reasons, and their text in the table.
const KINDS: &[(&str, &str)] =
    &[("paid", "a kind that only the paid product had"), ("broken", "broken at its source")];

/// Compiles all files of a folder.
pub fn run(folder: &Path) -> Result<String> {
    let reasons = reasons()?;
    let mut files = Vec::new();
    collect(folder, &mut files)?;
    files.sort();
    let mut table = Table::default();
    for file in &files {
        let name = file.strip_prefix(folder)?.to_string_lossy().into_owned();
        let content = fs::read_to_string(file).with_context(|| format!("cannot read `{name}`"))?;
        table.add(&name, reasons.get(name.as_str()).copied(), &content);
    }
    for name in reasons.keys().filter(|name| !folder.join(name).is_file()) {
        table.complaints.push(format!("{name}: is listed and is not there"));
    }
    table.finish()
}

/// Parses the list: the reason of each file.
fn reasons() -> Result<BTreeMap<&'static str, &'static str>> {
    let mut reasons = BTreeMap::new();
    for line in REASONS.lines() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let (path, reason) = line.split_once(' ').context("a path and a reason")?;
        let reason = reason.trim();
        if KINDS.iter().all(|(kind, _)| *kind != reason) {
            bail!("`{reason}` is no reason for `{path}`");
        }
        reasons.insert(path, reason);
    }
    Ok(reasons)
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let entries =
        fs::read_dir(folder).with_context(|| format!("cannot list `{}`", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|end| end == "yaml" || end == "yml") {
            files.push(path);
        }
    }
    Ok(())
}

#[derive(Default)]
struct Table {
    compiled: usize,
    refused: BTreeMap<&'static str, usize>,
    documents: BTreeMap<&'static str, usize>,
    complaints: Vec<String>,
}

impl Table {
    fn add(&mut self, name: &str, reason: Option<&'static str>, content: &str) {
        let (kinds, mistake) = compile(name, content);
        match (mistake, reason) {
            (None, None) => {
                self.compiled += 1;
                kinds.into_iter().for_each(|kind| *self.documents.entry(kind).or_default() += 1);
            }
            (None, Some(reason)) => {
                self.complaints.push(format!("{name}: compiles and is listed as `{reason}`"));
            }
            (Some(_), Some(reason)) => *self.refused.entry(reason).or_default() += 1,
            (Some(mistake), None) => self.complaints.push(rendered(&mistake)),
        }
    }

    fn finish(self) -> Result<String> {
        let refused: usize = self.refused.values().sum();
        let mut text = format!(
            "{:>5} files compile, {refused} are refused for a reason that is theirs\n",
            self.compiled
        );
        for (kind, words) in KINDS {
            let count = self.refused.get(kind).copied().unwrap_or_default();
            text.push_str(&format!("{count:>5} {words}\n"));
        }
        text.push_str("of those that compile:\n");
        for (kind, count) in &self.documents {
            text.push_str(&format!("{count:>5} {kind}\n"));
        }
        if !self.complaints.is_empty() {
            let list = self.complaints.join("\n");
            bail!("{} files are not as they should be\n{list}\n\n{text}", self.complaints.len());
        }
        Ok(text)
    }
}

/// Returns the kinds of the documents in a file, and the first diagnostic in them.
fn compile(name: &str, content: &str) -> (Vec<&'static str>, Option<Diagnostic>) {
    let (documents, mut found) = lang::read(&Text::new(name, content));
    let mut kinds = Vec::new();
    for document in &documents {
        kinds.push(match document {
            Document::Test(test) => {
                found.extend(lang::compile(test).1);
                "Test"
            }
            Document::TestSuite(_) => "TestSuite",
            Document::VariableSet(_) => "VariableSet",
            Document::TraceStore(_) => "TraceStore",
            Document::SettleProfile(_) => "SettleProfile",
            Document::Analyzer(_) => "Analyzer",
            Document::QualityGate(_) => "QualityGate",
            Document::Ignored(_) => "ignored with a notice",
        });
    }
    (kinds, found.into_iter().find(Diagnostic::is_error))
}

fn rendered(mistake: &Diagnostic) -> String {
    let place = mistake.span.map(|span| mistake.text.place(span.start));
    let place = place.map_or(String::new(), |place| format!(":{}:{}", place.line, place.column));
    format!("{}{place}: {}", mistake.text.name(), mistake.message)
}
