//! Lists and facts: a table for people, and the values for programs.

use serde_json::Value;

use crate::{args::OutputFormat, terminal::Terminal, yaml};

/// The space between two columns.
const GAP: &str = "  ";
/// A column is not made narrower than this.
const COLUMN_MIN: usize = 10;

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
        let drawn = match widths(&lines, terminal.width.unwrap_or(usize::MAX)) {
            Some(widths) => lines.iter().map(|cells| row(cells, &widths)).collect(),
            None => blocks(&lines),
        };
        drawn.iter().for_each(|line| terminal.result(line));
    }
}

/// Returns the widths of the columns, so that a row fits: long columns are narrowed, but for the first, which names the row.
/// None if that is not enough.
fn widths(lines: &[Vec<String>], most: usize) -> Option<Vec<usize>> {
    let columns = lines.iter().map(Vec::len).max().unwrap_or_default();
    let width = |column: usize| {
        let cells = lines.iter().filter_map(|cells| cells.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or_default()
    };
    let mut widths: Vec<_> = (0..columns).map(width).collect();
    let gaps = GAP.len() * columns.saturating_sub(1);
    while widths.iter().sum::<usize>() + gaps > most {
        let widest = widths.iter_mut().skip(1).max().filter(|width| **width > COLUMN_MIN)?;
        *widest -= 1;
    }
    Some(widths)
}

fn row(cells: &[String], widths: &[usize]) -> String {
    let padded = cells.iter().zip(widths).map(|(cell, width)| {
        if cell.chars().count() <= *width {
            return format!("{cell:width$}");
        }
        let kept: String = cell.chars().take(width - 1).collect();
        format!("{kept}…")
    });
    padded.collect::<Vec<_>>().join(GAP).trim_end().to_owned()
}

/// Returns the rows below each other, with a line for each cell: for a terminal that is too narrow for a table.
fn blocks(lines: &[Vec<String>]) -> Vec<String> {
    let Some((heads, rows)) = lines.split_first() else { return Vec::new() };
    let mut drawn = Vec::new();
    for cells in rows {
        for (number, (head, cell)) in heads.iter().zip(cells).enumerate() {
            let indent = if number == 0 { "" } else { GAP };
            drawn.push(format!("{indent}{head} {cell}").trim_end().to_owned());
        }
    }
    drawn
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

#[cfg(test)]
mod tests {
    use super::{blocks, row, widths};

    fn lines() -> Vec<Vec<String>> {
        let rows = [
            ["RUN", "TEST", "VERDICT", "REVISION"],
            ["0192f0c1-6d3e", "checkout-of-a-basket", "failed", "8f14e45fceea167a"],
            ["0192f0c1-6d3f", "pay", "passed", "-"],
        ];
        rows.iter().map(|cells| cells.map(str::to_owned).to_vec()).collect()
    }

    fn drawn(width: usize) -> Vec<String> {
        let lines = lines();
        match widths(&lines, width) {
            Some(widths) => lines.iter().map(|cells| row(cells, &widths)).collect(),
            None => blocks(&lines),
        }
    }

    #[test]
    fn a_table_fits_its_terminal() {
        assert_eq!(
            drawn(usize::MAX),
            [
                "RUN            TEST                  VERDICT  REVISION",
                "0192f0c1-6d3e  checkout-of-a-basket  failed   8f14e45fceea167a",
                "0192f0c1-6d3f  pay                   passed   -",
            ]
        );
        assert_eq!(
            drawn(50),
            [
                "RUN            TEST          VERDICT  REVISION",
                "0192f0c1-6d3e  checkout-of…  failed   8f14e45fcee…",
                "0192f0c1-6d3f  pay           passed   -",
            ]
        );
        assert_eq!(
            drawn(40)[..4],
            [
                "RUN 0192f0c1-6d3e",
                "  TEST checkout-of-a-basket",
                "  VERDICT failed",
                "  REVISION 8f14e45fceea167a",
            ]
        );
        for width in 0..80 {
            let is_table = widths(&lines(), width).is_some();
            assert!(!is_table || drawn(width).iter().all(|line| line.chars().count() <= width));
        }
    }
}
