//! The survivors that a person accepts, each with a reason: a file to commit.
//!
//! ```yaml
//! survivors:
//!   - mutant: slow:orders/reserve
//!     trace: checkout            # may be left out: then of every trace
//!     reason: the stock is in memory, its time is not ours to promise
//! ```

use std::path::Path;

use model::Place;
use source::{Diagnostics, Fields, Item, Text};

use super::report::MutationReport;
use crate::{documents, exit::Exit, terminal::Terminal};

/// The upper bound for the entries of a file.
const ENTRIES_MAX: usize = 10_000;

/// The content of the file.
pub(super) struct Survivors {
    text: Text,
    entries: Vec<Entry>,
}

struct Entry {
    mutant: String,
    trace: Option<String>,
    reason: String,
    span: source::Span,
}

impl Survivors {
    /// Parses the file; renders diagnostics on the terminal.
    pub(super) fn read(file: &Path, terminal: &Terminal) -> Result<Self, Exit> {
        let text = documents::read(file, terminal)?;
        let (node, mistakes) = source::read_one(&text);
        let found = Diagnostics::new(&text);
        found.extend(mistakes);
        let mut entries = Vec::new();
        if let Some(node) = &node
            && let Some(mut root) = Fields::of(node, "the file", &found)
        {
            let items = root.list("survivors").unwrap_or_default();
            root.finish();
            if items.len() > ENTRIES_MAX {
                let message = format!("there are more than {ENTRIES_MAX} survivors");
                found.push(found.error(None, message));
            }
            entries.extend(items.iter().take(ENTRIES_MAX).filter_map(|item| entry(item, &found)));
        }
        let is_right = !found.has_errors();
        terminal.diagnostics(&found.into_vec());
        if is_right { Ok(Self { text, entries }) } else { Err(Exit::Refused) }
    }

    /// Sets the reason of each survivor. An unknown mutant is an error; the returned notes name entries that are killed by now.
    pub(super) fn apply(
        &self,
        found: &mut MutationReport,
        terminal: &Terminal,
    ) -> Result<Vec<String>, Exit> {
        let unknown = Diagnostics::new(&self.text);
        let mut stale = Vec::new();
        for entry in &self.entries {
            let is_meant = |name: &String| entry.trace.as_ref().is_none_or(|it| it == name);
            // A mutant outside of the sample exists, but its result is unknown.
            let mut is_used = found
                .traces
                .iter()
                .any(|trace| is_meant(&trace.name) && trace.left_out.contains(&entry.mutant));
            let mut is_known = is_used;
            let meant = found.traces.iter_mut().filter(|trace| is_meant(&trace.name));
            for mutated in meant.flat_map(|trace| &mut trace.mutants) {
                if mutated.mutant.id == entry.mutant {
                    is_known = true;
                    if mutated.survived() {
                        is_used = true;
                        mutated.accepted = Some(entry.reason.clone());
                    }
                }
            }
            if !is_known {
                unknown.push(self.unknown(entry, found, &unknown));
            } else if !is_used {
                let place = self.place(entry);
                stale.push(format!(
                    "note: `{}` is killed by now, and need not be accepted at {}:{}:{}",
                    entry.mutant, place.file, place.line, place.column
                ));
            }
        }
        let is_right = !unknown.has_errors();
        terminal.diagnostics(&unknown.into_vec());
        if is_right { Ok(stale) } else { Err(Exit::Refused) }
    }

    fn unknown(
        &self,
        entry: &Entry,
        found: &MutationReport,
        unknown: &Diagnostics,
    ) -> source::Diagnostic {
        let names = found.traces.iter().map(|trace| trace.name.as_str());
        if let Some(trace) = &entry.trace
            && names.clone().all(|name| name != trace)
        {
            let message = format!("there is no trace `{trace}`");
            return unknown.error(entry.span, message).suggest(source::did_you_mean(trace, names));
        }
        let ids = found.traces.iter().flat_map(|trace| {
            let listed = trace.mutants.iter().map(|mutated| mutated.mutant.id.as_str());
            listed.chain(trace.left_out.iter().map(String::as_str))
        });
        let message = format!("there is no mutant `{}`", entry.mutant);
        unknown.error(entry.span, message).suggest(source::did_you_mean(&entry.mutant, ids))
    }

    fn place(&self, entry: &Entry) -> Place {
        let source::Place { line, column } = self.text.place(entry.span.start);
        Place { file: self.text.name().to_owned(), line: line as u32, column: column as u32 }
    }
}

fn entry(item: &Item<'_>, found: &Diagnostics) -> Option<Entry> {
    let mut fields = item.fields()?;
    let mutant = fields.require("mutant");
    let trace = fields.string("trace").map(str::to_owned);
    let reason = fields.require("reason");
    fields.finish();
    let (mutant, reason) = (mutant?, reason?);
    let (name, words) = (mutant.string()?, reason.string()?);
    if words.trim().is_empty() {
        found.push(found.error(reason.head(), "an empty reason is none"));
        return None;
    }
    let (span, mutant) = (mutant.head(), name.to_owned());
    Some(Entry { mutant, trace, reason: words.to_owned(), span })
}
