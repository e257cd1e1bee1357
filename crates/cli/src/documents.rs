//! A file of tests, from its path to plans.

use std::{fs, path::Path};

use lang::{Document, Plan};
use source::{Diagnostic, Text};

use crate::{exit::Exit, terminal::Terminal};

/// A file's bytes at the most.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// Reads a file; what stands in the way is told on the terminal.
pub(crate) fn read(path: &Path, terminal: &Terminal) -> Result<Text, Exit> {
    let name = path.display().to_string();
    let refuse = |why: String| {
        terminal.err(&format!("error: cannot read `{name}`: {why}"));
        Exit::Refused
    };
    let size = fs::metadata(path).map_err(|error| refuse(error.to_string()))?.len();
    if size > FILE_BYTES_MAX {
        return Err(refuse(format!("it has {size} bytes, more than {FILE_BYTES_MAX}")));
    }
    let content = fs::read_to_string(path).map_err(|error| refuse(error.to_string()))?;
    Ok(Text::new(name, content))
}

/// The plans of all tests in a text; mistakes are drawn on the terminal.
pub(crate) fn compile(text: &Text, terminal: &Terminal) -> Result<Vec<Plan>, Exit> {
    let (documents, mut diagnostics) = lang::read(text);
    let mut plans = Vec::new();
    for document in &documents {
        let Document::Test(test) = document;
        let (plan, found) = lang::compile(test);
        plans.extend(plan);
        diagnostics.extend(found);
    }
    terminal.diagnostics(&diagnostics);
    if diagnostics.iter().any(Diagnostic::is_error) {
        return Err(Exit::Refused);
    }
    if plans.is_empty() {
        terminal.err(&format!("error: `{}` holds no test", text.name()));
        return Err(Exit::Refused);
    }
    Ok(plans)
}
