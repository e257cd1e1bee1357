//! The argument of `--report`.

use std::{path::PathBuf, str::FromStr};

use report::{FOR_TERMINAL, Format};
use source::did_you_mean;

/// A format and its destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) format: &'static Format,
    /// The file; none is stdout.
    pub(crate) file: Option<PathBuf>,
}

/// Returns the help text of `--report`.
pub(super) fn help() -> String {
    let known: Vec<_> = Format::names().collect();
    format!(
        "FORMAT or FORMAT=FILE, several times; `-` is stdout. Formats: {} [default: {}, also where all others go to files]",
        known.join(", "),
        FOR_TERMINAL.name
    )
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (format, file) = match text.split_once('=') {
            Some((format, file)) => (format, Some(file)),
            None => (text, None),
        };
        let Some(format) = Format::parse(format) else {
            let known: Vec<_> = Format::names().collect();
            let meant = did_you_mean(format, Format::names());
            let meant = meant.map_or(String::new(), |name| format!("; did you mean `{name}`?"));
            return Err(format!("formats are {}{meant}", known.join(", ")));
        };
        match file {
            Some("") => Err("expected a file behind `=`, or `-` for stdout".to_owned()),
            None | Some("-") => Ok(Self { format, file: None }),
            Some(file) => Ok(Self { format, file: Some(file.into()) }),
        }
    }
}
