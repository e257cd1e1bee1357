//! `learn`: writes the learned profile to a file to commit, so that a clean machine need not learn it again.
//!
//! It writes only facts that enough runs have confirmed, sorted, so that the file changes only when the system does.
//! Deliberately absent: single runs, which are in `.qualitytrace/learned.json`.

use std::{collections::BTreeMap, fmt::Write, path::Path, time::Duration};

use model::{AbsentParents, ErrorCode, LearnedProfile, LearnedService};
use source::{Diagnostics, Fields, Item, Text};

use crate::{
    documents::{self, LEARNED_FILE as FILE},
    exit::Exit,
    run::state,
    terminal::Terminal,
};

/// The number of runs that have to agree; an entry of the file counts as that many runs.
const RUNS: usize = 3;
/// A delay is rounded up to a multiple of this many milliseconds, so that it does not change with every run.
const STEP_MS: u64 = 5;

/// Writes the learned profile of this machine into the file.
pub(crate) fn learn(terminal: &Terminal) -> Result<Exit, Exit> {
    let (mut learned, local) = (committed(terminal), state::learned(terminal));
    for (name, _) in local.services.iter().filter(|(_, service)| service.delay().is_some()) {
        // The local profile is newer. Otherwise one export that was late once would count forever.
        if let Some(service) = learned.services.get_mut(name) {
            service.delays_ns.clear();
        }
    }
    learned.merge(&local);
    let (text, count) = write(&learned);
    if text.is_empty() {
        terminal.error(ErrorCode::NothingLearned,
            "nothing is learned yet: run tests first, three times or more, against a system that runs already",
        );
        return Err(Exit::Refused);
    }
    if let Err(error) = state::replace(Path::new(FILE), &text) {
        terminal
            .error(ErrorCode::FileUnwritable, format_args!("`{FILE}` cannot be written: {error}"));
        return Err(Exit::Refused);
    }
    let services = if count == 1 { "service" } else { "services" };
    terminal.result(&format!("{FILE}: what is known of {count} {services}"));
    Ok(Exit::Passed)
}

/// Returns what is known of the system: by this machine, and by the file.
pub(crate) fn known(terminal: &Terminal) -> LearnedProfile {
    let mut learned = state::learned(terminal);
    learned.merge(&committed(terminal));
    learned
}

/// Returns the profile in the file; empty if there is no file, or if it cannot be read, which is printed.
pub(crate) fn committed(terminal: &Terminal) -> LearnedProfile {
    let path = Path::new(FILE);
    if !path.exists() {
        return LearnedProfile::default();
    }
    let Ok(text) = documents::read(path, terminal) else { return LearnedProfile::default() };
    let (learned, diagnostics) = read(&text);
    terminal.diagnostics(&diagnostics);
    match learned {
        Some(learned) => learned,
        None => {
            terminal.line(&format!(
                "`{FILE}` is not used: correct it, or have `qualitytrace learn` write it anew"
            ));
            LearnedProfile::default()
        }
    }
}

fn read(text: &Text) -> (Option<LearnedProfile>, Vec<source::Diagnostic>) {
    let (node, mistakes) = source::read_one(text);
    let found = Diagnostics::new(text);
    found.extend(mistakes);
    let mut learned = LearnedProfile::default();
    if let Some(node) = &node
        && let Some(mut root) = Fields::of(node, "the file", &found)
    {
        let services = root.table("services");
        root.finish();
        for (name, item) in services.map(|mut services| services.rest()).unwrap_or_default() {
            if let Some(service) = read_service(&item) {
                learned.services.insert(name.text.clone(), service);
            }
        }
    }
    let is_right = !found.has_errors();
    (is_right.then_some(learned), found.into_vec())
}

fn read_service(item: &Item<'_>) -> Option<LearnedService> {
    let mut fields = item.fields()?;
    let [delay, late] = ["delay", "late"].map(|key| fields.duration(key));
    let mut names = |key: &str| -> Vec<String> {
        let items = fields.list(key).unwrap_or_default();
        items.iter().filter_map(Item::string).map(str::to_owned).collect()
    };
    let [leaves, instrumented, unannounced] =
        ["leaves", "instrumented", "unannounced"].map(&mut names);
    let always = fields.boolean("absentParents") == Some(true);
    let sometimes = fields.boolean("someAbsentParents") == Some(true);
    fields.finish();
    let delays_ns = delay.map(|delay| vec![nanos(delay); RUNS]).unwrap_or_default();
    Some(LearnedService {
        runs: if delay.is_some() { RUNS as u32 } else { 0 },
        delays_ns,
        late_ns: late.map_or(0, nanos),
        leaves: leaves.into_iter().map(|peer| (peer, RUNS as u32)).collect(),
        instrumented: instrumented.into_iter().collect(),
        absent_parents: if always || sometimes { RUNS as u32 } else { 0 },
        present_parents: u32::from(sometimes),
        unannounced: unannounced.into_iter().collect(),
    })
}

fn nanos(delay: Duration) -> u64 {
    u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX)
}

/// Returns the text, and the number of services in it.
fn write(learned: &LearnedProfile) -> (String, usize) {
    let mut services = BTreeMap::new();
    for (name, service) in &learned.services {
        let text = write_service(service);
        if !text.is_empty() {
            services.insert(name, text);
        }
    }
    let count = services.len();
    if count == 0 {
        return (String::new(), 0);
    }
    let mut text = "# Written by `qualitytrace learn`: how late the spans of each service come, and who sends none.\nservices:\n"
        .to_owned();
    for (name, service) in services {
        let _infallible = write!(text, "  {}:\n{service}", quoted(name));
    }
    (text, count)
}

fn write_service(service: &LearnedService) -> String {
    let mut text = String::new();
    if let Some(delay) = service.delay() {
        let _infallible = writeln!(text, "    delay: {}ms", upward(delay));
    }
    if service.late_ns > 0 {
        let late = Duration::from_nanos(service.late_ns);
        let _infallible = writeln!(text, "    late: {}ms", upward(late));
    }
    let leaves = service.leaves.keys().filter(|peer| service.is_leaf(peer));
    let lists = [
        ("leaves", leaves.collect::<Vec<_>>()),
        ("instrumented", service.instrumented.iter().collect()),
        ("unannounced", service.unannounced.iter().collect()),
    ];
    for (key, names) in lists.into_iter().filter(|(_, names)| !names.is_empty()) {
        let _infallible = writeln!(text, "    {key}:");
        for name in names {
            let _infallible = writeln!(text, "      - {}", quoted(name));
        }
    }
    text.push_str(match service.absent_parents() {
        AbsentParents::Unknown => "",
        AbsentParents::Sometimes => "    someAbsentParents: true\n",
        AbsentParents::Always => "    absentParents: true\n",
    });
    text
}

fn upward(delay: Duration) -> u64 {
    let millis = u64::try_from(delay.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX / STEP_MS);
    millis.max(1).div_ceil(STEP_MS) * STEP_MS
}

/// Quotes a text for YAML, which accepts JSON strings.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use model::{AbsentParents, LearnedProfile, LearnedService};
    use source::Text;

    use super::{FILE, read, write};

    #[test]
    fn what_enough_runs_have_shown_is_written_and_counts_when_read() {
        let mut learned = LearnedProfile::default();
        let orders = LearnedService {
            delays_ns: vec![3_000_000, 12_300_000, 4_000_000],
            leaves: [("db:5432".to_owned(), 7), ("once".to_owned(), 1)].into(),
            instrumented: ["stock \"1\"".to_owned()].into(),
            absent_parents: 3,
            runs: 3,
            ..LearnedService::default()
        };
        learned.services.insert("orders".to_owned(), orders);
        let seldom = LearnedService { delays_ns: vec![1], ..LearnedService::default() };
        learned.services.insert("seldom".to_owned(), seldom);
        let (text, count) = write(&learned);
        assert_eq!(count, 1, "{text}");
        let (read, diagnostics) = read(&Text::new(FILE.to_owned(), text.clone()));
        let read = read.unwrap_or_else(|| panic!("{diagnostics:?}"));
        assert_eq!(read.services.len(), 1, "{text}");
        let orders = &read.services["orders"];
        assert_eq!(orders.delay(), Some(Duration::from_millis(15)), "upward in steps");
        assert!(orders.is_leaf("db:5432") && !orders.is_leaf("once"));
        assert!(orders.instrumented.contains("stock \"1\""));
        assert_eq!(orders.absent_parents(), AbsentParents::Always);
        assert_eq!(write(&read).0, text, "the same again");
    }

    #[test]
    fn what_is_wrong_in_the_file_is_told() {
        let text = "services:\n  orders: {delay: soon, leafs: []}\n";
        let (read, diagnostics) = read(&Text::new(FILE.to_owned(), text.to_owned()));
        assert!(read.is_none());
        assert_eq!(diagnostics.len(), 2, "{diagnostics:?}");
    }
}
