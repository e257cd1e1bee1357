//! The list of crates that is in the program itself, so that a scanner reads it from the installed file.
//!
//! `cargo-auditable` embeds it. By itself it requests `cargo metadata`, which unites the features of the whole workspace: the
//! list then has crates that no build of the program compiles, and a scanner reports their weaknesses. It prefers the list that
//! an unstable option of Cargo writes, and that list is written here, from the same crates as the bill of materials.

use std::{collections::BTreeMap, path::PathBuf, process::Command};

use anyhow::{Context, Result};

use super::{
    crates::{self, Crates, Key, Origin},
    json::Json,
};
use crate::{machine::Machine, release::artefacts, spawn, tools};

/// The variable in which Cargo names that list. It may have several paths, so its path has no colon.
const VARIABLE: &str = "CARGO_SBOM_PATH";

/// Returns a cargo that embeds the list of crates for a target; the caller adds the command, `build` or `zigbuild`.
pub(super) fn cargo(machine: &Machine, target: &str) -> Result<Command> {
    let crates = crates::read(machine, target)?;
    let rustc = spawn::output(machine.command("rustc").args(["--version", "--verbose"]))?;
    let file = file(machine, target);
    artefacts::write(&file, list(&crates, &rustc)?)?;
    let mut cargo = machine.command(tools::AUDITABLE.bin(machine)?.join("cargo-auditable"));
    cargo.arg("auditable").env(VARIABLE, file);
    Ok(cargo)
}

fn file(machine: &Machine, target: &str) -> PathBuf {
    artefacts::kit(machine).join("crates").join(format!("{target}.json"))
}

/// Returns the list in version 1 of the form that Cargo writes.
fn list(crates: &Crates, rustc: &str) -> Result<String> {
    let index: BTreeMap<&Key, u64> = crates.by_key.keys().zip(0..).collect();
    let at = |key: &Key| index.get(key).copied().context("each edge ends at a crate of the tree");
    let mut members = Vec::new();
    for (key, it) in &crates.by_key {
        let mut needs = Vec::new();
        for need in &it.needs {
            let is_linked = crates.by_key.get(need).is_some_and(|it| it.is_linked);
            let kind = if is_linked { "normal" } else { "build" };
            let need = vec![("index", Json::Number(at(need)?)), ("kind", Json::text(kind))];
            needs.push(Json::Map(need));
        }
        members.push(Json::Map(vec![
            ("id", Json::Text(id(key, &it.origin))),
            ("kind", Json::List(Vec::new())),
            ("features", Json::List(Vec::new())),
            ("dependencies", Json::List(needs)),
        ]));
    }
    let line = |name: &str| {
        let value = rustc.lines().find_map(|line| line.strip_prefix(name));
        value.with_context(|| format!("`rustc --version --verbose` prints no `{name}`"))
    };
    let compiler = vec![
        ("version", Json::text(line("release: ")?)),
        ("commit_hash", Json::text(line("commit-hash: ")?)),
        ("host", Json::text(line("host: ")?)),
        ("verbose_version", Json::text(rustc)),
    ];
    let list = Json::Map(vec![
        ("version", Json::Number(1)),
        ("root", Json::Number(at(&crates.root)?)),
        ("crates", Json::List(members)),
        ("rustc", Json::Map(compiler)),
    ]);
    Ok(list.document())
}

/// Returns the package id of a crate as Cargo writes it. The path of ours is not read from it, so it is not that of this machine.
fn id(key: &Key, origin: &Origin) -> String {
    let source = match origin {
        Origin::Registry { .. } => "registry+https://github.com/rust-lang/crates.io-index",
        Origin::Checkout => "path+file:///qualitytrace",
    };
    format!("{source}#{}@{}", key.name, key.version)
}

#[cfg(test)]
mod tests {
    use super::{super::crates::Crate, *};

    const RUSTC: &str =
        "rustc 1.95.0\nbinary: rustc\ncommit-hash: 0123\nhost: x\nrelease: 1.95.0\n";

    #[test]
    fn a_list_has_each_crate_with_its_source_and_what_it_needs() {
        let key = |name: &str| Key { name: name.to_owned(), version: "1.0.0".to_owned() };
        let of = |origin: Origin, is_linked: bool, needs: &[&str]| Crate {
            origin,
            licence: "MIT".to_owned(),
            repository: String::new(),
            is_linked,
            needs: needs.iter().map(|name| key(name)).collect(),
        };
        let foreign = || Origin::Registry { sha256: "00".to_owned() };
        let by_key = BTreeMap::from([
            (key("cli"), of(Origin::Checkout, true, &["a", "macros"])),
            (key("a"), of(foreign(), true, &[])),
            (key("macros"), of(foreign(), false, &["a"])),
        ]);
        let list = list(&Crates { root: key("cli"), by_key }, RUSTC).expect("a list");
        let of_root = r#"
      "id": "path+file:///qualitytrace#cli@1.0.0",
      "kind": [],
      "features": [],
      "dependencies": [
        {
          "index": 0,
          "kind": "normal"
        },
        {
          "index": 2,
          "kind": "build"
        }
      ]"#;
        assert!(list.contains(of_root), "{list}");
        assert!(list.contains("\"root\": 1,"), "{list}");
        let registry = "\"id\": \"registry+https://github.com/rust-lang/crates.io-index#a@1.0.0\"";
        assert!(list.contains(registry), "{list}");
        assert!(list.contains("\"commit_hash\": \"0123\""), "{list}");
    }
}
