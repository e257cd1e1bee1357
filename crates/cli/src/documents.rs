//! A file of tests, from its path to plans.

use std::{fs::File, io::Read, path::Path};

use lang::Plan;
use source::{Diagnostic, Text};

use crate::{exit::Exit, terminal::Terminal};

/// A file's bytes at the most.
const FILE_BYTES_MAX: usize = source::TEXT_BYTES_MAX;

/// Reads a file; what stands in the way is told on the terminal.
pub(crate) fn read(path: &Path, terminal: &Terminal) -> Result<Text, Exit> {
    let name = path.display().to_string();
    match content(path) {
        Ok(content) => Ok(Text::new(name, content)),
        Err(why) => {
            terminal.line(&format!("error: cannot read `{name}`: {why}"));
            Err(Exit::Refused)
        }
    }
}

fn content(path: &Path) -> Result<String, String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let mut content = String::new();
    // One byte more than allowed tells that there is more, whatever size the file is said to have.
    let mut bounded = file.take(FILE_BYTES_MAX as u64 + 1);
    bounded.read_to_string(&mut content).map_err(|error| error.to_string())?;
    if content.len() > FILE_BYTES_MAX {
        return Err(format!("it has more than {FILE_BYTES_MAX} bytes"));
    }
    Ok(content)
}

/// The plans of all tests in a text; mistakes are drawn on the terminal.
pub(crate) fn compile(text: &Text, terminal: &Terminal) -> Result<Vec<Plan>, Exit> {
    let (planned, diagnostics) = lang::plans(text);
    terminal.diagnostics(&diagnostics);
    if diagnostics.iter().any(Diagnostic::is_error) {
        return Err(Exit::Refused);
    }
    Ok(planned.into_iter().map(|planned| planned.plan).collect())
}
