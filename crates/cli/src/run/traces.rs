//! Writes traces to files, for `check --trace` and for people.

use std::{fs, path::Path};

use model::{TestId, Trace};

/// Writes a trace as OTLP into the folder, and creates the folder if it does not exist.
pub(crate) fn keep(folder: &Path, test: &TestId, trace: &Trace) -> Result<(), String> {
    let file = folder.join(format!("{test}-{}.pb", trace.id()));
    let written = fs::create_dir_all(folder).and_then(|()| fs::write(&file, otlp::encode(trace)));
    written.map_err(|error| format!("`{}`: {error}", file.display()))
}
