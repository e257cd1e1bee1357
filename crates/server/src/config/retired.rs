//! Keys of Tracetest that this server does not have: each is an error that names its replacement, or a note that nothing
//! needs it here. Keys that have a meaning here are not in this table: they work.

use source::{Diagnostics, Entry, Node, Scalar, Value};
use telemetry::config::{Key, Kind};

/// The retired keys with secret values.
pub(super) const KEYS: &[Key] = &[Key::new("postgresConnString", Kind::Secret, "", "")];

/// The handling of a retired key.
enum Fate {
    /// An error, with the replacement in words that fit after "instead:".
    Error(&'static str),
    /// A note: the key had no effect, or has none here.
    Idle(&'static str),
    /// The key is accepted with one of these values; with the advice for other values.
    Only(&'static [&'static str], &'static str),
}

use Fate::{Error, Idle, Only};

const ALWAYS: &[&str] = &["true"];
const NO_AGENT: &str = "there is no agent: this server fires triggers and gathers traces itself";

#[rustfmt::skip]
const RETIRED: &[(&str, Fate)] = &[
    ("postgresConnString", Error("`postgres` with `host`, `port`, `user`, `password`, `dbname` and `params`")),
    ("internalTelemetry", Error("`telemetry.exporters.<name>`, and that name as `server.telemetry.exporter`")),
    ("telemetry.dataStores", Error("nothing: spans are sent to this server's OTLP ports, by the application or by its Collector")),
    ("telemetry.profiler", Error("nothing: this server sends no profiles")),
    ("poolingConfig", Error("`settle` in a test, or a document of type `SettleProfile`")),
    ("testPipelines.triggerExecute.enabled", Only(ALWAYS, NO_AGENT)),
    ("testPipelines.traceFetch.enabled", Only(ALWAYS, NO_AGENT)),
    ("dataStorePipelines.testConnection.enabled", Only(ALWAYS, NO_AGENT)),
    ("otlpServer.enabled", Only(ALWAYS, "spans of runs come by OTLP, so its ports are open unless `server.roles` leaves out `ingest`; choose where with `server.otlpGrpcPort` and `server.otlpHttpPort`")),
    ("server.telemetry.dataStore", Idle("Tracetest did not read it either")),
    ("experimentalFeatures", Idle("it was for the pages of Tracetest")),
    ("analytics", Idle("this server sends nothing about its use to anyone")),
    ("googleAnalytics", Idle("this server sends nothing about its use to anyone")),
    ("demo", Idle("`qualitytrace demo` is a system to try tests on")),
];

/// Returns the configuration without retired keys, and reports each of them.
pub(super) fn without(root: &Node, found: &Diagnostics) -> Node {
    let mut root = root.clone();
    for (path, fate) in RETIRED {
        let names: Vec<&str> = path.split('.').collect();
        if let Some(entry) = taken(&mut root, &names) {
            tell(path, fate, &entry, found);
        }
    }
    root
}

/// Removes the entry at this path, and the tables that are empty without it.
fn taken(node: &mut Node, path: &[&str]) -> Option<Entry> {
    let Value::Table(entries) = &mut node.value else { return None };
    let (first, rest) = path.split_first()?;
    let at = entries.iter().position(|entry| entry.key.text == *first)?;
    if rest.is_empty() {
        return Some(entries.remove(at));
    }
    let entry = taken(&mut entries[at].value, rest)?;
    if entries[at].value.as_table().is_some_and(<[Entry]>::is_empty) {
        entries.remove(at);
    }
    Some(entry)
}

fn tell(path: &str, fate: &Fate, entry: &Entry, found: &Diagnostics) {
    let span = found.text().first_line(entry.key.span);
    let text = entry.value.as_scalar().map(|scalar: &Scalar| scalar.text.as_str());
    match fate {
        Error(instead) => {
            let mistake = found
                .error(span, format!("`{path}` is a key of Tracetest's that this server has not"));
            found.push(mistake.help(format!("instead: {instead}")));
        }
        Only(values, help) if !text.is_some_and(|text| values.contains(&text)) => {
            let value = values.last().copied().unwrap_or_default();
            let message = format!("`{path}` can only be `{value}` here");
            found.push(found.error(span, message).help(*help));
        }
        Only(..) => {}
        Idle(why) => {
            found.push(found.warning(span, format!("`{path}` does nothing here: {why}")));
        }
    }
}
