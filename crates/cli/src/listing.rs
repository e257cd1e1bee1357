//! Lists and facts: a table for people, and the values for programs.

use serde_json::Value;

use crate::{args::OutputFormat, terminal::Terminal, yaml};

/// The space between two columns.
const GAP: &str = "  ";

/// What a command lists.
pub(crate) struct Listing {
    /// The heads of the columns.
    pub(crate) heads: &'static [&'static str],
    pub(crate) rows: Vec<ListedRow>,
    /// What is printed instead of a table without rows.
    pub(crate) none: &'static str,
}

/// An item of a list.
pub(crate) struct ListedRow {
    pub(crate) name: String,
    pub(crate) cells: Vec<String>,
    /// As the API has it.
    pub(crate) value: Value,
}

impl Listing {
    /// Prints a list; as JSON or YAML it is an array.
    pub(crate) fn print(self, format: OutputFormat, terminal: &Terminal) {
        match format {
            OutputFormat::Table if self.rows.is_empty() => terminal.line(self.none),
            OutputFormat::Table => self.table(terminal),
            OutputFormat::Name => {
                self.rows.iter().for_each(|row| terminal.result(&row.name));
            }
            OutputFormat::Json | OutputFormat::Yaml => {
                let values = self.rows.into_iter().map(|row| row.value).collect();
                value(&Value::Array(values), format, terminal);
            }
        }
    }

    fn table(&self, terminal: &Terminal) {
        let heads: Vec<_> = self.heads.iter().map(|head| (*head).to_owned()).collect();
        // Escaped before they are measured; a name may have several lines, and a row has one.
        let cell = |cell: &String| terminal.harmless(cell).replace('\n', " ");
        let rows = self.rows.iter().map(|row| row.cells.iter().map(cell).collect());
        let lines: Vec<Vec<String>> = [heads].into_iter().chain(rows).collect();
        let width = |column: usize| {
            let cells = lines.iter().filter_map(|cells| cells.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or_default()
        };
        let widths: Vec<_> = (0..self.heads.len()).map(width).collect();
        for cells in &lines {
            let padded: Vec<_> =
                cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect();
            terminal.result(padded.join(GAP).trim_end());
        }
    }
}

/// Prints a value as JSON or YAML.
pub(crate) fn value(value: &Value, format: OutputFormat, terminal: &Terminal) {
    let text = match format {
        OutputFormat::Yaml => yaml::of(value),
        OutputFormat::Table | OutputFormat::Json | OutputFormat::Name => format!("{value:#}"),
    };
    let lines: String = text.lines().map(|line| report::harmless_json(line) + "\n").collect();
    terminal.report(&lines);
}

/// Returns the text of a field; `-` where there is none.
pub(crate) fn text(value: &Value, field: &str) -> String {
    match &value[field] {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let texts: Vec<_> = items
                .iter()
                .map(|item| item.as_str().map_or_else(|| item.to_string(), str::to_owned))
                .collect();
            texts.join(",")
        }
        value => value.to_string(),
    }
}

/// Returns a moment to the second.
pub(crate) fn moment(value: &Value, field: &str) -> String {
    match value[field].as_str().and_then(|text| text.get(..19)) {
        Some(text) => format!("{}Z", text.replace('T', " ")),
        None => "-".to_owned(),
    }
}
