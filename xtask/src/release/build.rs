//! `release build`: the web page, then the program for each target, into the folder that `release package` takes it from.
//!
//! The bytes depend on the commit, the toolchain and the target only: paths of this machine are replaced in what the compilers
//! write, and the time is that of the commit.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};

use super::{
    artefacts::{self, COMPARISON, Release, TARGETS, Target},
    options::Options,
    pip::ZIGBUILD,
    supply,
};
use crate::{cache, machine::Machine, programs::PRODUCT, spawn, web};

/// What people install takes much longer to build than `release`, and needs less memory.
const PROFILE: &str = "dist";

/// The file beside a program that states where it comes from.
const ORIGIN: &str = "origin";

/// Separates flags in `CARGO_ENCODED_RUSTFLAGS`, so that a path may have spaces.
const SEPARATOR: &str = "\u{1f}";

pub(crate) fn run(machine: &Machine, release: &Release, options: &Options) -> Result<()> {
    if options.binary.is_some() {
        return take(machine, options);
    }
    let profile = options.profile.as_deref().unwrap_or(PROFILE);
    // The page that is packed is one that its own checks have seen.
    web::run(machine, &[])?;
    for (triple, zig) in chosen(options) {
        let began = (machine.clock.now)();
        let built = compile(machine, (zig, profile), &target_folder(machine, "build"))?;
        let folder = artefacts::binaries(machine, triple);
        let program = folder.join(PRODUCT);
        artefacts::copy(&built, &program)?;
        artefacts::write(&folder.join(ORIGIN), format!("built by profile {profile}"))?;
        if TARGETS.iter().any(|it| it.triple == triple) {
            check_version(machine, release, &program)?;
        }
        let elapsed = spawn::minutes((machine.clock.now)() - began);
        let bytes = fs::metadata(&program)?.len();
        println!("{triple}: {bytes} bytes, {elapsed} min: {}", program.display());
        if options.is_twice {
            build_again(machine, (zig, profile), &program)?;
        }
    }
    Ok(())
}

/// Takes a program that exists in place of one that is built here, and reports it.
pub(crate) fn take(machine: &Machine, options: &Options) -> Result<()> {
    let Some(binary) = &options.binary else { return Ok(()) };
    let folder = artefacts::binaries(machine, options.target_of_binary()?.triple);
    artefacts::copy(binary, &folder.join(PRODUCT))?;
    artefacts::write(&folder.join(ORIGIN), format!("taken from {}", binary.display()))
}

/// Returns where the program of a target comes from, in words.
pub(crate) fn origin(machine: &Machine, target: &Target) -> String {
    let file = artefacts::binaries(machine, target.triple).join(ORIGIN);
    fs::read_to_string(file).unwrap_or_else(|_| "put there by hand".to_owned())
}

/// Returns each target as files name it and as cargo-zigbuild does.
fn chosen(options: &Options) -> Vec<(&str, &str)> {
    let mut chosen: Vec<_> = TARGETS.iter().map(|it| (it.triple, it.zig)).collect();
    chosen.push((COMPARISON, COMPARISON));
    let is_named = |triple: &str| match &options.triples[..] {
        [] => triple != COMPARISON,
        named => named.iter().any(|name| name == triple),
    };
    chosen.retain(|(triple, _)| is_named(triple));
    chosen
}

fn target_folder(machine: &Machine, name: &str) -> PathBuf {
    artefacts::kit(machine).join(name)
}

/// Compiles the program, and returns where cargo left it.
fn compile(machine: &Machine, (zig, profile): (&str, &str), target: &Path) -> Result<PathBuf> {
    // The triple without the version of glibc, which rustc does not know.
    let triple = zig.split('.').next().unwrap_or(zig);
    eprintln!("{triple}: building the program by profile {profile}; 10 to 30 minutes on two cores");
    add_target(machine, triple)?;
    // The program has the list of its crates in it, which scanners read.
    let mut cargo = supply::auditable(machine, triple)?;
    cargo.args(["zigbuild", "--locked", "--package", "cli", "--bin", PRODUCT]);
    cargo.args(["--profile", profile, "--target", zig]);
    cargo.env("PATH", ZIGBUILD.path(machine)?).env("CARGO_TARGET_DIR", target);
    cargo.env("SOURCE_DATE_EPOCH", artefacts::epoch(machine)?.to_string());
    let (commit, day) = commit(machine)?;
    cargo.env("QUALITYTRACE_BUILD_COMMIT", commit).env("QUALITYTRACE_BUILD_DATE", day);
    // Queries are checked against the files of `generate`, whatever `DATABASE_URL` names.
    cargo.env("SQLX_OFFLINE", "true").env_remove("DATABASE_URL");
    cargo.env("QUALITYTRACE_WEB", "required");
    cargo.env_remove("RUSTFLAGS").env("CARGO_INCREMENTAL", "0");
    let paths = paths(machine, target)?;
    let flag = |(from, to): &(String, String)| format!("--remap-path-prefix={from}={to}");
    let flags: Vec<_> = paths.iter().map(flag).collect();
    cargo.env("CARGO_ENCODED_RUSTFLAGS", flags.join(SEPARATOR));
    let flag = |(from, to): &(String, String)| format!("-ffile-prefix-map={from}={to}");
    let flags: Vec<_> = paths.iter().map(flag).collect();
    cargo.env(format!("CFLAGS_{}", triple.replace('-', "_")), flags.join(" "));
    if triple.starts_with("aarch64") {
        // Kernels of this processor have pages of up to 64 KiB, and jemalloc stops on larger ones than it was built for.
        cargo.env("JEMALLOC_SYS_WITH_LG_PAGE", "16");
    }
    let log = machine.cache.join("logs").join(format!("release-{triple}-{profile}.log"));
    spawn::long(machine, &mut cargo, &log)?;
    Ok(target.join(triple).join(folder_of(profile)).join(PRODUCT))
}

/// Returns the commit that is built, and its day at Greenwich.
fn commit(machine: &Machine) -> Result<(String, String)> {
    let show = |format: &[&str]| {
        let mut git = machine.command("git");
        git.args(["log", "-1", "--no-show-signature"]).args(format).env("TZ", "UTC0");
        spawn::output(&mut git).context("a release is built from a checkout of git")
    };
    Ok((show(&["--format=%H"])?, show(&["--format=%cd", "--date=format-local:%Y-%m-%d"])?))
}

/// Returns the folder in which cargo leaves the programs of a profile.
fn folder_of(profile: &str) -> &str {
    if profile == "dev" { "debug" } else { profile }
}

/// Returns the paths of this machine that compilers write into programs, each with what is written in place of it. The longest
/// comes last: the last one that matches wins.
fn paths(machine: &Machine, target: &Path) -> Result<Vec<(String, String)>> {
    let sysroot = spawn::output(machine.command("rustc").args(["--print", "sysroot"]))?;
    let commit = spawn::output(machine.command("rustc").args(["--version", "--verbose"]))?;
    let commit = commit.lines().find_map(|line| line.strip_prefix("commit-hash: "));
    let commit = commit.context("`rustc --version --verbose` prints no commit")?;
    let cargo_home = match (machine.find("CARGO_HOME"), machine.find("HOME")) {
        (Some(own), _) => PathBuf::from(own),
        (None, Some(home)) => Path::new(&home).join(".cargo"),
        (None, None) => bail!("neither `CARGO_HOME` nor `HOME` is set"),
    };
    // Where the sources are installed, paths of the standard library would name them; elsewhere they have the name of the commit.
    let mut paths = vec![
        (machine.root.display().to_string(), "/qualitytrace".to_owned()),
        (target.display().to_string(), "/target".to_owned()),
        (cargo_home.display().to_string(), "/cargo".to_owned()),
        (format!("{sysroot}/lib/rustlib/src/rust"), format!("/rustc/{commit}")),
    ];
    paths.sort_by_key(|(from, _)| from.len());
    Ok(paths)
}

/// Adds the standard library of a target, where rustup has the toolchains.
fn add_target(machine: &Machine, triple: &str) -> Result<()> {
    let folder = spawn::output(machine.command("rustc").args([
        "--print",
        "target-libdir",
        "--target",
        triple,
    ]))?;
    if Path::new(&folder).is_dir() {
        return Ok(());
    }
    spawn::run(machine.command("rustup").args(["target", "add", triple]))
        .with_context(|| format!("the standard library for {triple} is not installed"))
}

/// Rejects a program of another version, where this machine can run it.
fn check_version(machine: &Machine, release: &Release, program: &Path) -> Result<()> {
    let Some(mut command) = runnable(machine, program) else { return Ok(()) };
    let printed = spawn::output(command.arg("--version"))?;
    if !printed.split_whitespace().any(|word| word == release.version) {
        bail!(
            "the program that was built prints `{printed}`, and the release is {}",
            release.version
        );
    }
    Ok(())
}

/// Returns the command that runs a program of the release, through an emulator if it is for another processor.
pub(crate) fn runnable(machine: &Machine, program: &Path) -> Option<Command> {
    let is_for = |name: &str| program.components().any(|it| it.as_os_str() == name);
    let other = TARGETS
        .iter()
        .find(|it| is_for(it.triple) && !it.triple.starts_with(std::env::consts::ARCH));
    let Some(target) = other else { return Some(Command::new(program)) };
    let mut command = Command::new(machine.in_path(&format!("qemu-{}-static", target.rpm))?);
    command.arg(program);
    Some(command)
}

/// Builds once more in another folder, and compares.
fn build_again(machine: &Machine, profile: (&str, &str), first: &Path) -> Result<()> {
    let folder = target_folder(machine, "build-again");
    cache::remove(&folder)?;
    let second = compile(machine, profile, &folder)?;
    if fs::read(first)? == fs::read(&second)? {
        println!("built twice: equal");
        return Ok(());
    }
    let names = sections(first)?;
    let differs = |name: &&String| section(first, name).ok() != section(&second, name).ok();
    let differing: Vec<_> = names.iter().filter(differs).map(String::as_str).collect();
    bail!(
        "built twice, `{}` and `{}` differ in {}",
        first.display(),
        second.display(),
        if differing.is_empty() { "their headers".to_owned() } else { differing.join(", ") }
    )
}

/// Returns the names of the sections of a program.
fn sections(program: &Path) -> Result<Vec<String>> {
    let table = spawn::output(Command::new("readelf").args(["--sections", "--wide"]).arg(program))?;
    let name = |line: &str| {
        let (_, rest) = line.split_once(']')?;
        rest.split_whitespace().next().filter(|name| name.starts_with('.')).map(str::to_owned)
    };
    Ok(table.lines().filter_map(name).collect())
}

/// Returns the content of a section as readelf prints it.
fn section(program: &Path, name: &str) -> Result<String> {
    spawn::output(Command::new("readelf").arg(format!("--hex-dump={name}")).arg(program))
}
