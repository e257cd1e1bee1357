//! `cargo xtask release`: every artefact of a release from one binary per target, and the checks that use each artefact as its users do.
//!
//! The workflow on the forge only calls this, so that a release is rehearsed on any machine. Deliberately absent: anything that needs
//! credentials, but for `publish`.

mod archive;
mod artefacts;
mod build;
mod checks;
mod container_engine;
mod debian;
mod generated;
mod image;
mod image_tools;
mod linux;
mod npm;
mod options;
mod package;
mod pip;
mod publish;
mod registry;
mod supply;
mod template;
mod wheel;

use anyhow::{Result, bail};

pub(crate) use artefacts::Release;
pub(crate) use checks::{Check, Row};

use crate::machine::Machine;
use options::Options;

pub(crate) fn help() -> String {
    format!(
        "\
cargo xtask release:
  plan                              version, targets and files of the release
  build                             the web page, then the program for each target, into the target folder
  package                           all files of the release from the programs that are built
  verify [NAME…]                    installs and uses the files in empty environments, and prints a table
  publish                           needs a tag and credentials; prints what it would do
  --target TRIPLE                   one target, repeatable [default: all; `package`: all that are built]
  --profile NAME                    of cargo, for `build` [default: dist]
  --binary FILE                     `build` and `package`: takes this program for one target, for a rehearsal
  --twice                           `build` and `package`: does it twice, and compares

{}",
        checks::help()
    )
}

pub(crate) fn run(machine: &Machine, words: &[&str]) -> Result<()> {
    let Some((command, rest)) = words.split_first() else {
        bail!("`cargo xtask release` wants plan, build, package, verify or publish");
    };
    let release = Release::of(machine)?;
    let options = Options::parse(rest)?;
    match *command {
        "plan" => plan(machine, &release, &options.only(&["--target"])?),
        "build" => build::run(
            machine,
            &release,
            &options.only(&["--target", "--profile", "--binary", "--twice"])?,
        ),
        "package" => {
            package::run(machine, &release, &options.only(&["--target", "--binary", "--twice"])?)
        }
        "verify" => checks::run(machine, &release, &options.only(&["NAME"])?.names),
        "publish" => publish::run(machine, &release, &options.only(&[])?),
        other => bail!(
            "`{other}` is not a command of `cargo xtask release`: it has plan, build, package, verify and publish"
        ),
    }
}

fn plan(machine: &Machine, release: &Release, options: &Options) -> Result<()> {
    println!("version {}, time {}", release.version, artefacts::epoch(machine)?);
    println!("folder {}", release.folder.display());
    let targets = options.targets();
    for target in &targets {
        println!("target {}", target.triple);
    }
    for name in package::names(release, &targets) {
        println!("  {name}");
    }
    Ok(())
}
