//! Names of tables, and whether a table is one of the exporter.

use serde::Deserialize;

use super::answer::SettingsRow;

/// The name of the table that has the spans.
#[derive(Debug)]
pub(super) struct TableName {
    pub(super) database: Option<String>,
    pub(super) table: String,
}

/// A table of the exporter.
#[derive(Clone, Copy, Debug)]
pub(super) struct Table {
    pub(super) attributes: AttributeColumns,
    /// Whether there is a table with the times of every trace.
    pub(super) has_lookup: bool,
}

/// The type of the columns that have attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AttributeColumns {
    /// `Map(LowCardinality(String), String)`: every value is a text.
    Map,
    /// `JSON`: values have types, and names are paths.
    Json,
}

/// The columns of the table and of its lookup table, in one row.
#[derive(Debug, Deserialize)]
pub(super) struct ColumnsRow {
    /// The table, the name and the type of each.
    columns: Vec<(String, String, String)>,
    pub(super) settings: SettingsRow,
}

/// The columns that are read.
const COLUMNS: [&str; 21] = [
    "Timestamp",
    "TraceId",
    "SpanId",
    "ParentSpanId",
    "TraceState",
    "SpanName",
    "SpanKind",
    "ResourceAttributes",
    "ScopeName",
    "ScopeVersion",
    "SpanAttributes",
    "Duration",
    "StatusCode",
    "StatusMessage",
    "Events.Timestamp",
    "Events.Name",
    "Events.Attributes",
    "Links.TraceId",
    "Links.SpanId",
    "Links.TraceState",
    "Links.Attributes",
];

/// Columns by which tables of other products are known, all in one table.
const OTHERS: [(&str, &[&str]); 5] = [
    ("SigNoz", &["ts_bucket_start", "resource_fingerprint"]),
    ("SigNoz", &["traceID", "durationNano"]),
    ("Jaeger or SigNoz", &["traceID", "model"]),
    ("Jaeger", &["trace_id", "start_time", "scope_name"]),
    ("Highlight", &["TraceId", "SecureSessionId"]),
];

const NAME_CHARS_MAX: usize = 200;

impl TableName {
    /// The table that the exporter creates.
    pub(super) const DEFAULT: &'static str = "otel_traces";

    /// Parses `table` or `database.table`.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let (database, table) = match text.split_once('.') {
            Some((database, table)) => (Some(database), table),
            None => (None, text),
        };
        if !database.is_none_or(is_identifier) || !is_identifier(table) {
            return Err(format!(
                "`{}` is not the name of a table: expected `table` or `database.table`, of letters, digits, `_` and `-`",
                text.escape_debug()
            ));
        }
        Ok(Self { database: database.map(str::to_owned), table: table.to_owned() })
    }

    /// Returns the name of the table with the times of every trace.
    pub(super) fn lookup(&self) -> String {
        format!("{}_trace_id_ts", self.table)
    }

    /// Returns the name as a statement has it.
    pub(super) fn quoted(&self) -> String {
        self.quoted_as(&self.table)
    }

    pub(super) fn quoted_lookup(&self) -> String {
        self.quoted_as(&self.lookup())
    }

    fn quoted_as(&self, table: &str) -> String {
        let database = self.database.as_ref().map(|database| format!("`{database}`."));
        format!("{}`{table}`", database.unwrap_or_default())
    }

    fn shown(&self) -> String {
        let database = self.database.as_ref().map(|database| format!("{database}."));
        format!("{}{}", database.unwrap_or_default(), self.table)
    }
}

fn is_identifier(text: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    !text.is_empty() && text.len() <= NAME_CHARS_MAX && text.chars().all(is_allowed)
}

impl Table {
    /// Returns the table with these columns, or why its spans cannot be read.
    pub(super) fn of(name: &TableName, row: &ColumnsRow) -> Result<Self, String> {
        let type_of = |table: &str, column: &str| {
            let found = row.columns.iter().find(|(of, it, _)| of == table && it == column);
            found.map(|(_, _, kind)| kind.as_str())
        };
        let type_here = |column: &str| type_of(&name.table, column);
        let shown = name.shown();
        if !row.columns.iter().any(|(table, ..)| *table == name.table) {
            return Err(format!("there is no table `{shown}`, or its user may not read it"));
        }
        let only = "only tables of the Collector's `clickhouseexporter` are queried";
        let is_other =
            |(_, columns): &&(_, &[&str])| columns.iter().all(|it| type_here(it).is_some());
        if let Some((product, _)) = OTHERS.iter().find(is_other) {
            return Err(format!("`{shown}` is a table of {product}: {only}"));
        }
        if let Some(missing) = COLUMNS.iter().find(|column| type_here(column).is_none()) {
            return Err(format!("`{shown}` has no column `{missing}`: {only}"));
        }
        let is = |column: &str, prefix: &str| {
            type_here(column).is_some_and(|kind| kind.starts_with(prefix))
        };
        let all = |prefix: &str| {
            is("ResourceAttributes", prefix)
                && is("SpanAttributes", prefix)
                && is("Events.Attributes", &format!("Array({prefix}"))
                && is("Links.Attributes", &format!("Array({prefix}"))
        };
        let attributes = match () {
            () if !is("Timestamp", "DateTime64(") => None,
            () if all("Map(") => Some(AttributeColumns::Map),
            () if all("JSON") => Some(AttributeColumns::Json),
            () => None,
        };
        let attributes = attributes.ok_or_else(|| {
            let kinds = ["Timestamp", "ResourceAttributes", "SpanAttributes"]
                .map(|it| format!("`{it}` {}", type_here(it).unwrap_or_default()));
            format!("`{shown}` has columns of other types, {}: {only}", kinds.join(", "))
        })?;
        let lookup = name.lookup();
        let has_lookup =
            ["TraceId", "Start", "End"].iter().all(|column| type_of(&lookup, column).is_some());
        Ok(Self { attributes, has_lookup })
    }
}
