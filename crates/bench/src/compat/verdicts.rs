//! The results of the predecessor for two thousand cases, compared with the results of this language.
//!
//! A folder holds traces and, one per line, cases: a trace, a selector, optionally an assertion or an expression, and the
//! recorded result; where that result is a defect, also the correct one (its README explains how it was obtained). Each case
//! becomes a test document and passes through all stages, from parsing to judging. Cases with an intended difference are in a
//! list with their reasons; a listed case without a difference is an error of the list.
//!
//! Deliberately absent: texts of errors, which are specific to the predecessor, and the order of selected spans beyond the part
//! that `:first` and similar selectors show.

mod case;
mod stage;

use std::{collections::BTreeMap, fmt::Write, fs, path::Path};

use anyhow::{Context, Result, bail};

use case::{KnownDifference, Purpose, VerdictCase};
use stage::{CaseAnswer, TraceStage};

/// The number of cases of a kind, by result.
#[derive(Default)]
struct KindCounts {
    cases: usize,
    equal: usize,
    more: usize,
    differ: usize,
    wrong: usize,
}

/// Evaluates all cases of the folder.
pub fn run(folder: &Path) -> Result<String> {
    let listed = case::listed()?;
    let path = folder.join("cases.jsonl");
    let cases =
        fs::read_to_string(&path).with_context(|| format!("cannot read `{}`", path.display()))?;
    let mut stages = TraceStage::load_all(folder)?;
    let mut rows: BTreeMap<String, KindCounts> = BTreeMap::new();
    let mut complaints = Vec::new();
    let mut asked = Vec::new();
    for line in cases.lines() {
        let case: VerdictCase = serde_json::from_str(line).context("a line is no case")?;
        let answered = stage::ask(&case, &mut stages)?;
        let wrong = case.differences(&answered);
        let row = rows.entry(case.kind.clone()).or_default();
        row.cases += 1;
        match (wrong, listed.get(&case.id)) {
            (None, None) => row.equal += 1,
            (Some(_), Some(KnownDifference { purpose: Purpose::More, .. }))
                if case.is_an_error() =>
            {
                row.more += 1;
            }
            (Some(_), Some(KnownDifference { purpose: Purpose::Differ, .. })) => row.differ += 1,
            (Some(wrong), _) => {
                row.wrong += 1;
                complaints.push(format!("{}: {wrong}\n    {}", case.id, case.question()));
            }
            (None, Some(listed)) => {
                row.wrong += 1;
                complaints.push(format!(
                    "{}: comes out the same, and is listed: {}",
                    case.id, listed.reason
                ));
            }
        }
        asked.push(case.id);
    }
    complaints.extend(
        listed
            .keys()
            .filter(|id| !asked.contains(id))
            .map(|id| format!("{id}: is listed and is no case")),
    );
    finish(&rows, &complaints)
}

fn finish(rows: &BTreeMap<String, KindCounts>, complaints: &[String]) -> Result<String> {
    let mut table = String::new();
    writeln!(
        table,
        "{:20} {:>5} {:>5} {:>5} {:>6} {:>5}",
        "kind", "cases", "equal", "more", "differ", "wrong"
    )?;
    let mut total = KindCounts::default();
    let mut write = |name: &str, row: &KindCounts| {
        let KindCounts { cases, equal, more, differ, wrong } = row;
        writeln!(table, "{name:20} {cases:5} {equal:5} {more:5} {differ:6} {wrong:5}")
    };
    for (kind, row) in rows {
        write(kind, row)?;
        total.cases += row.cases;
        total.equal += row.equal;
        total.more += row.more;
        total.differ += row.differ;
        total.wrong += row.wrong;
    }
    write("all", &total)?;
    if !complaints.is_empty() {
        bail!(
            "{} cases are not as they have to be\n\n{}\n\n{table}",
            complaints.len(),
            complaints.join("\n")
        );
    }
    Ok(table)
}
