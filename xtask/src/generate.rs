//! `cargo xtask generate`: generated files that are committed to git.
//!
//! They are committed because readers and offline builds need them; `ci` generates them again and rejects any difference.

use std::{
    fs,
    path::Path,
    process::{self, Command},
};

use anyhow::{Context, Result, bail};

use crate::{
    machine::Machine,
    services::{self, Variables},
    spawn,
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
/// migrations, and compiles every query against it. The macros of sqlx write the files; building `cargo sqlx prepare`, which
/// does no more, takes minutes.
fn sqlx(machine: &Machine, variables: &Variables) -> Result<()> {
    let variable = |name| {
        let found = variables.iter().find(|(known, _)| known == name);
        let (_, value) =
            found.with_context(|| format!("the service `postgres` has no `{name}`"))?;
        anyhow::Ok(value)
    };
    let password = variable("QUALITYTRACE_TEST_POSTGRES_PASSWORD")?;
    let psql = Path::new(variable("QUALITYTRACE_TEST_POSTGRES_BIN")?).join("psql");
    let psql = |url: &str, arguments: &[&str]| {
        let mut psql = Command::new(&psql);
        // Not as an argument: every user can read a command line.
        psql.arg(url.replacen(&format!(":{password}@"), "@", 1)).env("PGPASSWORD", password);
        psql.args(["--no-psqlrc", "--quiet", "--set", "ON_ERROR_STOP=1"]).args(arguments);
        spawn::output(&mut psql).map(drop)
    };
    let postgres = variable("QUALITYTRACE_TEST_POSTGRES")?;
    let (server, _) =
        postgres.rsplit_once('/').context("the server's address names no database")?;
    let name = format!("generate_{}", process::id());
    psql(postgres, &["--command", &format!("create database {name}")])?;
    let url = format!("{server}/{name}");
    let described = migrations(machine)
        .and_then(|files| {
            files.iter().try_for_each(|file| psql(&url, &["--single-transaction", "--file", file]))
        })
        .and_then(|()| describe(machine, &url));
    psql(postgres, &["--command", &format!("drop database {name} with (force)")])?;
    described
}

/// Returns the files of all migrations in their order.
fn migrations(machine: &Machine) -> Result<Vec<String>> {
    let folder = machine.root.join("crates/db/migrations");
    let files = fs::read_dir(&folder).with_context(|| format!("no `{}`", folder.display()))?;
    let mut files =
        files.map(|file| Ok(file?.path().display().to_string())).collect::<Result<Vec<_>>>()?;
    files.sort_unstable();
    Ok(files)
}

/// Compiles the crate `db` against a database, whose descriptions of the queries replace those that are there.
fn describe(machine: &Machine, url: &str) -> Result<()> {
    let folder = machine.root.join("crates/db/.sqlx");
    for file in fs::read_dir(&folder).with_context(|| format!("no `{}`", folder.display()))? {
        fs::remove_file(file?.path())?;
    }
    let mut check = machine.cargo();
    check.args(["rustc", "--quiet", "-p", "db", "--lib", "--profile", "check"]);
    // A name that was never used makes cargo compile the crate again, though none of its files changed.
    check.args(["--", "--cfg", &format!("described_{}", process::id())]);
    check.env("DATABASE_URL", url).env("SQLX_OFFLINE", "false").env("SQLX_OFFLINE_DIR", folder);
    spawn::run(&mut check)
}
