//! The statements. Values are bound as parameters of the query, never written into a statement.

use std::{fmt::Write, time::Duration};

use model::{Timestamp, TraceId};

use super::schema::{Table, TableName};

/// The settings under which no row is left out without a sign, and integers are written as such.
pub(super) const SETTINGS: [(&str, &str); 9] = [
    ("read_overflow_mode", "throw"),
    ("read_overflow_mode_leaf", "throw"),
    ("timeout_overflow_mode", "throw"),
    ("group_by_overflow_mode", "throw"),
    ("set_overflow_mode", "throw"),
    ("skip_unavailable_shards", "0"),
    // An answer of the cache lacks what came since.
    ("use_query_cache", "0"),
    ("cancel_http_readonly_queries_on_client_close", "1"),
    (QUOTE, "0"),
];

/// The setting that writes 64-bit integers as texts.
pub(super) const QUOTE: &str = "output_format_json_quote_64bit_integers";

/// A setting that leaves out rows and is not set, because the form of its value differs between versions.
pub(super) const FILTERS: &str = "additional_table_filters";

/// Whether a statement has the settings of the driver. A user with `readonly = 1` may not set any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SettingsClause {
    Present,
    Absent,
}

/// How much earlier and later than the lookup table states the spans of a trace are searched. The lookup table is filled after the table of
/// spans, and replicated on its own. An hour costs little: parts are selected by the day.
const LOOKUP_MARGIN: Duration = Duration::from_secs(60 * 60);

/// How much earlier than the run the spans of its trace are searched: clocks differ.
const CLOCK_MARGIN: Duration = Duration::from_secs(24 * 60 * 60);

/// A time after that of every span, in seconds: `DateTime64(9)` ends in 2262.
const END_SECS: u64 = 9_000_000_000;

/// Returns the statement for the columns of the table and of its lookup table, and the parameters.
pub(super) fn columns(name: &TableName) -> (String, String) {
    let database = if name.database.is_some() { "{database:String}" } else { "currentDatabase()" };
    let select = format!(
        "SELECT groupArray(tuple(table, name, toString(type))) AS columns, {} \
         FROM system.columns WHERE database = {database} AND table IN ({{table:String}}, {{lookup:String}})",
        effective()
    );
    let (table, lookup) = (&name.table, name.lookup());
    let mut bound = format!("&param_table={table}&param_lookup={lookup}");
    if let Some(database) = &name.database {
        let _infallible = write!(bound, "&param_database={database}");
    }
    (select, bound)
}

/// Returns the statement for the spans of a trace, and the parameters.
pub(super) fn trace(
    name: &TableName,
    table: &Table,
    (trace, since): (TraceId, Option<Timestamp>),
) -> (String, String) {
    let from = since.map_or(0, |since| since.minus(CLOCK_MARGIN).as_secs());
    let range = match table.has_lookup {
        false => "Timestamp >= toDateTime64({from:Int64}, 9)".to_owned(),
        true => {
            let margin = LOOKUP_MARGIN.as_secs();
            let lookup = name.quoted_lookup();
            let bound = |absent: &str, present: &str| {
                format!(
                    "(SELECT if(count() = 0, {absent}, toInt64(toUnixTimestamp({present}))) FROM {lookup} \
                     WHERE TraceId = {{trace_id:String}})"
                )
            };
            // What the lookup table does not have may still be in the other.
            let first = bound(&format!("{{from:Int64}} + {margin}"), "min(Start)");
            let last = bound(&format!("toInt64({END_SECS})"), "max(End)");
            format!(
                "Timestamp >= toDateTime64({first} - {margin}, 9) AND Timestamp < toDateTime64({last} + {margin} + 1, 9)"
            )
        }
    };
    let select = format!(
        "SELECT toString(count()) AS count, groupArray(tuple(\
         SpanId, ParentSpanId, TraceState, SpanName, SpanKind, toString(toUnixTimestamp64Nano(Timestamp)), toString(Duration), \
         StatusCode, StatusMessage, ScopeName, ScopeVersion, ResourceAttributes, SpanAttributes, \
         arrayMap(at -> toString(toUnixTimestamp64Nano(at)), `Events.Timestamp`), `Events.Name`, `Events.Attributes`, \
         `Links.TraceId`, `Links.SpanId`, `Links.TraceState`, `Links.Attributes`)) AS rows, {} \
         FROM {} WHERE TraceId = {{trace_id:String}} AND {range}",
        effective(),
        name.quoted()
    );
    (select, format!("&param_trace_id={trace}&param_from={from}"))
}

/// Adds the settings and the format of the answer.
pub(super) fn complete(select: &str, clause: SettingsClause) -> String {
    let settings = match clause {
        SettingsClause::Absent => String::new(),
        SettingsClause::Present => {
            format!(
                " SETTINGS {}",
                SETTINGS.map(|(name, value)| format!("{name} = '{value}'")).join(", ")
            )
        }
    };
    format!("{select}{settings} FORMAT JSONEachRow")
}

/// Returns the column with the settings that are in effect.
fn effective() -> String {
    let names = SETTINGS.map(|(name, _)| format!("'{name}'")).join(", ");
    format!(
        "(SELECT groupArray(tuple(name, toString(value))) FROM system.settings WHERE name IN ({names}, '{FILTERS}')) AS settings"
    )
}
