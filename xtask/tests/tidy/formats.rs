//! The formats of reports: only the crate that writes them knows them one by one, so that a new one changes no other crate.

use crate::{
    code::code,
    guards::named_items,
    workspace::{Crate, Source, Workspace},
};

/// The crate with the formats.
const CRATE: &str = "report";
/// What every format is built by. Its name follows.
const NEW: &str = "Format::new(";
/// The items of the crate that a file uses if it works with formats.
const ITEMS: &[&str] = &["Format", "FORMATS", "ReportInput", "part", "render", "rest"];

/// No file of another crate names a format: neither an item for it, nor its name in a string. A test may use the name, to check
/// the text of a format.
pub(crate) fn check(workspace: &Workspace) -> Vec<String> {
    let Some(report) = workspace.crates.iter().find(|one| one.name == CRATE) else {
        return Vec::new();
    };
    let formats = formats(report);
    if formats.is_empty() {
        return vec![format!("{}: no format is built by `{NEW}`", report.folder)];
    }
    let others = workspace.crates.iter().filter(|one| one.name != CRATE);
    others
        .flat_map(|one| one.files.iter().map(move |file| (one, file)))
        .flat_map(|(one, file)| {
            let is_test = file.path.starts_with(&format!("{}/tests/", one.folder));
            let mut found = items(file, &formats);
            if !is_test {
                found.extend(strings(file, &formats));
            }
            found.sort_unstable();
            found.into_iter().map(|(line, name)| {
                format!(
                    "{}:{line}: names the format `{name}`: read a field of `Format`, or a default of `{}`",
                    file.path, report.folder
                )
            })
        })
        .collect()
}

/// Returns the names of the formats.
fn formats(report: &Crate) -> Vec<&str> {
    let values = report.files.iter().flat_map(|file| file.text.split(NEW).skip(1));
    values.filter_map(|value| value.trim_start().strip_prefix('"')?.split('"').next()).collect()
}

/// Returns the formats that a file names by an item of the crate, such as `report::html` or `Format::Html`, with their lines.
fn items<'f>(file: &Source, formats: &[&'f str]) -> Vec<(usize, &'f str)> {
    let code = code(&file.text).replace("report::Format::", "Format::");
    let named = ["report::", "Format::"].map(|prefix| named_items(&code, prefix)).concat();
    let format = |(line, item): (usize, &str)| {
        let format = formats.iter().find(|format| item.eq_ignore_ascii_case(format))?;
        Some((line, *format))
    };
    named.into_iter().filter_map(format).collect()
}

/// Returns the formats that a file with formats names by a string, with their lines.
fn strings<'f>(file: &Source, formats: &[&'f str]) -> Vec<(usize, &'f str)> {
    let body = file.body();
    let code = code(&body);
    if !named_items(&code, "report::").iter().any(|(_, item)| ITEMS.contains(item)) {
        return Vec::new();
    }
    let lines = body.lines().enumerate();
    let lines = lines.filter(|(_, line)| !line.trim_start().starts_with("//"));
    let named = lines.flat_map(|(at, line)| {
        let is_in = move |format: &&&str| line.contains(&format!("\"{format}\""));
        formats.iter().filter(is_in).map(move |format| (at + 1, *format))
    });
    named.collect()
}
