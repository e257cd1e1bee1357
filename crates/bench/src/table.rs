//! The output of every benchmark: a table for readers, then one line of JSON for programs.

use serde_json::json;

/// One figure.
#[derive(Clone, Debug)]
pub struct Row {
    /// The name of the figure.
    pub name: String,
    /// Its value.
    pub value: f64,
    /// Its unit.
    pub unit: &'static str,
    /// Its goal; the table shows whether it was met.
    pub goal: Option<Goal>,
}

/// The goal of a figure.
#[derive(Clone, Copy, Debug)]
pub enum Goal {
    /// At most this.
    AtMost(f64),
    /// At least this.
    AtLeast(f64),
}

/// Renders the table, with the JSON as its last line.
pub fn render(bench: &str, rows: &[Row]) -> String {
    let width = rows.iter().map(|row| row.name.chars().count()).max().unwrap_or_default();
    let mut text = String::new();
    for row in rows {
        let goal = row.goal.map_or(String::new(), |goal| {
            let word = if goal.is_met(row.value) { "met" } else { "NOT met" };
            format!("   goal {goal}: {word}")
        });
        text.push_str(&format!("{:width$}  {:>12.3} {}{goal}\n", row.name, row.value, row.unit));
    }
    let rows: Vec<_> = rows.iter().map(json_row).collect();
    text.push_str(&json!({"bench": bench, "rows": rows}).to_string());
    text
}

fn json_row(row: &Row) -> serde_json::Value {
    let mut json = json!({"name": row.name, "value": row.value, "unit": row.unit});
    if let Some(goal) = row.goal {
        json["goal"] = json!(goal.to_string());
        json["met"] = json!(goal.is_met(row.value));
    }
    json
}

impl Goal {
    fn is_met(self, value: f64) -> bool {
        match self {
            Self::AtMost(most) => value <= most,
            Self::AtLeast(least) => value >= least,
        }
    }
}

impl std::fmt::Display for Goal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::AtMost(most) => write!(f, "<= {most}"),
            Self::AtLeast(least) => write!(f, ">= {least}"),
        }
    }
}

/// Returns the median of several figures.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::{Goal, Row, median, render};

    #[test]
    fn the_last_line_is_json_and_says_whether_a_goal_is_met() {
        let row = |name: &str, goal| Row { name: name.to_owned(), value: 2.5, unit: "ms", goal };
        let text = render("x", &[row("free", None), row("bound", Some(Goal::AtMost(2.0)))]);
        let last = text.lines().last().expect("a line");
        let json: serde_json::Value = serde_json::from_str(last).expect("JSON");
        assert_eq!(
            json["rows"][0],
            serde_json::json!({"name": "free", "value": 2.5, "unit": "ms"})
        );
        assert_eq!(json["rows"][1]["met"], false);
        assert!(text.contains("goal <= 2: NOT met"), "{text}");
    }

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(median(vec![9.0, 1.0, 5.0]), 5.0);
    }
}
