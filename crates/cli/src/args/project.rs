//! The arguments about the project file.

use std::ffi::OsString;

use super::format::FormatArgs;

/// The flags of every command that the project file gives defaults to.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Project file")]
pub(crate) struct ProjectFileArgs {
    /// A profile of `qualitytrace.toml`
    #[arg(
        long,
        global = true,
        hide_short_help = true,
        hide_env = true,
        value_name = "NAME",
        env = "QUALITYTRACE_PROFILE"
    )]
    pub(crate) profile: Option<String>,
    /// Trust what the project file and documents do elsewhere
    #[arg(
        long,
        global = true,
        hide_short_help = true,
        hide_env = true,
        env = "QUALITYTRACE_TRUST"
    )]
    pub(crate) trust: bool,
}

/// The project file `qualitytrace.toml`, which gives defaults to flags
#[derive(Debug, clap::Subcommand)]
pub(crate) enum ProjectCommand {
    Show(ProjectShow),
}

const SHOW: &str = "\
Examples:
  qualitytrace project show --profile ci
  qualitytrace project show -- run --jobs 2";

/// Print each key of the project file with its value, and whether that is of a flag, a variable, a profile, the file or the program
///
/// With a command behind `--`: what holds for it, and is not executed.
#[derive(Debug, clap::Args)]
#[command(after_help = SHOW)]
pub(crate) struct ProjectShow {
    #[command(flatten)]
    pub(crate) output: FormatArgs,
    /// A command with its flags, such as `run --jobs 2` [default: all keys are shown, and no flags]
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}
