//! The arguments about the project file.

use super::format::FormatArgs;

/// The flags of every command that the project file gives defaults to.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Project file")]
pub(crate) struct ProjectFileArgs {
    /// A profile of `qualitytrace.toml`
    #[arg(long, global = true, hide_env = true, value_name = "NAME", env = "QUALITYTRACE_PROFILE")]
    pub(crate) profile: Option<String>,
    /// Trust what `qualitytrace.toml` executes and contacts
    #[arg(long, global = true, hide_env = true, env = "QUALITYTRACE_TRUST")]
    pub(crate) trust: bool,
}

/// The project file `qualitytrace.toml`, which gives defaults to flags
#[derive(Debug, clap::Subcommand)]
pub(crate) enum ProjectCommand {
    Show(ProjectShow),
}

/// Print each key of the project file with its value, and whether that is of a variable, a profile, the file or the program
///
/// Example: qualitytrace project show --profile ci
#[derive(Debug, clap::Args)]
pub(crate) struct ProjectShow {
    #[command(flatten)]
    pub(crate) output: FormatArgs,
}
