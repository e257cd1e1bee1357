//! The form of what a command prints.

use clap::ValueEnum;

/// How lists and facts are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// For people
    Table,
    /// As the API has it
    Json,
    /// The same as YAML
    Yaml,
    /// Ids only, one a line
    Name,
}

/// How a report of a command is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TextFormat {
    /// For people
    Text,
    /// One object, for programs
    Json,
}

/// The flag of commands that print lists or facts.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct FormatArgs {
    /// How it is printed
    #[arg(long, value_enum, default_value_t = OutputFormat::Table, env = "QUALITYTRACE_FORMAT")]
    pub(crate) format: OutputFormat,
}
