//! `cargo xtask generate`: generated files that are committed to git.
//!
//! They are committed because readers and offline builds need them; `ci` generates them again and rejects any difference.

use std::process::{self, Command};

use anyhow::{Context, Result, bail};

use crate::{
    machine::Machine,
    services::{self, Variables},
    spawn, tools,
};

struct Generator {
    name: &'static str,
    /// The files that it writes, from the root of the checkout.
    paths: &'static [&'static str],
    services: &'static [&'static str],
    write: fn(&Machine, &Variables) -> Result<()>,
}

const ALL: &[Generator] = &[
    Generator { name: "lock", paths: &["Cargo.lock"], services: &[], write: lock },
    Generator { name: "sqlx", paths: &["crates/db/.sqlx"], services: &["postgres"], write: sqlx },
];

pub(crate) fn help() -> String {
    let lines = ALL.iter().map(|one| format!("  {:<12} {}\n", one.name, one.paths.join(" ")));
    format!("Generated files:\n{}", lines.collect::<String>())
}

pub(crate) fn run(machine: &Machine, names: &[&str]) -> Result<()> {
    if let Some(unknown) = names.iter().find(|name| ALL.iter().all(|one| one.name != **name)) {
        bail!("`{unknown}` is not generated; `cargo xtask --help` lists what is");
    }
    let chosen = ALL.iter().filter(|one| names.is_empty() || names.contains(&one.name));
    for generator in chosen {
        services::with(machine, generator.services, |variables| {
            (generator.write)(machine, variables)
        })
        .with_context(|| format!("`{}` could not be generated", generator.name))?;
    }
    Ok(())
}

/// Generates all files and rejects any difference from the committed ones.
pub(crate) fn check(machine: &Machine) -> Result<()> {
    run(machine, &[])?;
    let paths = || ALL.iter().flat_map(|one| one.paths);
    let git = || {
        let mut git = Command::new("git");
        git.current_dir(&machine.root);
        git
    };
    let mend = "look at what `cargo xtask generate` wrote, and `git add` it";
    spawn::run(git().args(["diff", "--exit-code", "--stat", "--"]).args(paths()))
        .with_context(|| format!("generated files are not as git has them; {mend}"))?;
    let mut untracked = git();
    untracked.args(["ls-files", "--others", "--exclude-standard", "--"]).args(paths());
    let untracked = spawn::output(&mut untracked)?;
    if !untracked.is_empty() {
        bail!("generated files are unknown to git: {}; {mend}", untracked.replace('\n', ", "));
    }
    Ok(())
}

/// Cargo updates its lock file whenever it resolves; a commit without the updated file shows as a difference.
fn lock(machine: &Machine, _: &Variables) -> Result<()> {
    spawn::output(machine.cargo().args(["metadata", "--format-version", "1"])).map(drop)
}

/// Writes the description of each query by Postgres, so that the crate compiles without one: creates a database, applies all
/// migrations, and describes every query.
fn sqlx(machine: &Machine, variables: &Variables) -> Result<()> {
    let bin = tools::SQLX.bin(machine)?;
    let server = variables.iter().find(|(name, _)| name == "QUALITYTRACE_TEST_POSTGRES");
    let (_, server) = server.context("the service `postgres` names no server")?;
    let (server, _) = server.rsplit_once('/').context("the server's address names no database")?;
    let url = format!("{server}/generate_{}", process::id());
    let db = machine.root.join("crates/db");
    let sqlx = |arguments: &[&str]| {
        let mut sqlx = Command::new(bin.join("sqlx"));
        // Not as an argument: the URL contains a password, and every user can read a command line.
        spawn::output(sqlx.args(arguments).env("DATABASE_URL", &url).current_dir(&db))
    };
    sqlx(&["database", "create"])?;
    let written = sqlx(&["migrate", "run", "--source", "migrations"]).and_then(|_| {
        let mut prepare = machine.command(bin.join("cargo-sqlx"));
        prepare.current_dir(&db).env("DATABASE_URL", &url);
        spawn::run(prepare.args(["sqlx", "prepare", "--", "--all-targets"]))
    });
    sqlx(&["database", "drop", "-y"])?;
    written
}
