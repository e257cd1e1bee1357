//! Tables in Markdown.

use std::fmt::Write;

/// Returns a table, or nothing for no rows. Columns without any text are left out.
pub(super) fn table<const N: usize>(head: [&str; N], rows: &[[String; N]]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let used = |column: &usize| rows.iter().any(|row| !row[*column].is_empty());
    let columns: Vec<usize> = (0..N).filter(used).collect();
    let line = |cells: &dyn Fn(usize) -> String| {
        let cells: Vec<_> = columns.iter().map(|column| cells(*column)).collect();
        format!("| {} |", cells.join(" | "))
    };
    let mut text = String::new();
    let _written = writeln!(text, "{}", line(&|column| head[column].to_owned()));
    let _written = writeln!(text, "{}", line(&|_| "---".to_owned()));
    for row in rows {
        let _written = writeln!(text, "{}", line(&|column| cell(&row[column])));
    }
    text.push('\n');
    text
}

/// Returns a text as code.
pub(super) fn code(text: &str) -> String {
    match text {
        "" => String::new(),
        text => format!("`{text}`"),
    }
}

/// Ends a sentence.
pub(super) fn sentence(text: &str) -> String {
    match text.trim_end() {
        "" => String::new(),
        text if text.ends_with(['.', '!', '?', ':']) => text.to_owned(),
        text => format!("{text}."),
    }
}

/// A bar would end the cell, also within code.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}
