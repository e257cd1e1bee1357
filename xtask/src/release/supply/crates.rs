//! The crates that are compiled for a binary, as `cargo tree` states them for one package, one target and its features.
//!
//! `cargo metadata` would not do: it unites the features of all members of the workspace and of their tests, so it lists crates
//! that no build of the program compiles.

use std::{
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    fs,
};

use anyhow::{Context, Result, bail};

use super::PACKAGE;
use crate::{machine::Machine, spawn};

/// The crates of a binary by name and version. The one of the binary itself is `root`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Crates {
    pub(super) root: Key,
    pub(super) by_key: BTreeMap<Key, Crate>,
}

/// The name and version of a crate; one build may have several versions of one crate.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) name: String,
    pub(super) version: String,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Crate {
    pub(super) origin: Origin,
    /// An SPDX expression.
    pub(super) licence: String,
    /// Empty if the crate names none.
    pub(super) repository: String,
    /// Whether its code is in the binary. A crate of a build script, or of a macro that runs in the compiler, is not.
    pub(super) is_linked: bool,
    pub(super) needs: BTreeSet<Key>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// The crate registry, with the SHA-256 of the downloaded file.
    Registry { sha256: String },
    /// This repository.
    Checkout,
}

/// Returns the crates that are compiled for the product on a target: its dependencies, those of build scripts, and macros.
pub(super) fn read(machine: &Machine, target: &str) -> Result<Crates> {
    let compiled =
        tree(machine, target, "normal,build", &["--prefix", "depth", "--format", "|{p}|{l}|{r}|"])?;
    let linked =
        tree(machine, target, "normal,no-proc-macro", &["--prefix", "none", "--format", "{p}"])?;
    let lockfile = fs::read_to_string(machine.root.join("Cargo.lock")).context("`Cargo.lock`")?;
    parse(&compiled, &linked, &checksums(&lockfile))
}

fn tree(machine: &Machine, target: &str, edges: &str, form: &[&str]) -> Result<String> {
    let mut cargo = machine.cargo();
    cargo.args(["tree", "--locked", "--quiet", "--color", "never", "--package", PACKAGE]);
    spawn::output(cargo.args(["--target", target, "--edges", edges]).args(form))
}

/// Returns the checksums of a `Cargo.lock` by crate. Cargo writes it itself, one value to a line.
fn checksums(lockfile: &str) -> BTreeMap<Key, String> {
    let mut found = BTreeMap::new();
    for block in lockfile.split("[[package]]").skip(1) {
        let value = |name: &str| {
            let line = block.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|rest| Some(rest.strip_prefix(" = \"")?.strip_suffix('"')?.to_owned()))
        };
        if let (Some(name), Some(version), Some(checksum)) =
            (value("name"), value("version"), value("checksum"))
        {
            found.insert(Key { name, version }, checksum);
        }
    }
    found
}

/// Reads a tree with a depth before each line, and the lines of a second one that has only what is linked.
fn parse(compiled: &str, linked: &str, checksums: &BTreeMap<Key, String>) -> Result<Crates> {
    let linked: BTreeSet<Key> =
        linked.lines().map(|line| Ok(package(line)?.0)).collect::<Result<_>>()?;
    let mut by_key: BTreeMap<Key, Crate> = BTreeMap::new();
    // The crates between the root and the line before.
    let mut path: Vec<Key> = Vec::new();
    for line in compiled.lines() {
        let fields: Vec<&str> = line.split('|').collect();
        let [depth, package_field, licence, repository, _] = fields.as_slice() else {
            bail!("`cargo tree` printed `{line}`: expected a depth and three fields");
        };
        let depth: usize = depth.parse().with_context(|| format!("the depth of `{line}`"))?;
        let (key, is_ours) = package(package_field)?;
        if depth > path.len() || (depth == 0) != by_key.is_empty() {
            bail!("`cargo tree` printed `{line}` at an impossible depth");
        }
        path.truncate(depth);
        if let Some(parent) = path.last().and_then(|parent| by_key.get_mut(parent)) {
            parent.needs.insert(key.clone());
        }
        path.push(key.clone());
        if let Entry::Vacant(entry) = by_key.entry(key) {
            let origin = origin(entry.key(), is_ours, checksums)?;
            let is_linked = linked.contains(entry.key());
            let licence = spdx(entry.key(), licence)?;
            let (repository, needs) = ((*repository).to_owned(), BTreeSet::new());
            entry.insert(Crate { origin, licence, repository, is_linked, needs });
        }
    }
    let root = path.into_iter().next().context("`cargo tree` printed nothing")?;
    if let Some(unknown) = linked.iter().find(|key| !by_key.contains_key(key)) {
        bail!(
            "`{} {}` is linked, but `cargo tree` does not compile it",
            unknown.name,
            unknown.version
        );
    }
    Ok(Crates { root, by_key })
}

/// Reads `name v1.2.3`, with `(proc-macro)`, a folder and `(*)` behind it. Returns whether the crate has a folder: it is ours.
fn package(text: &str) -> Result<(Key, bool)> {
    let mut words = text.split_whitespace();
    let name = words.next().unwrap_or_default().to_owned();
    let version = words.next().and_then(|word| word.strip_prefix('v'));
    let version = version.with_context(|| format!("`{text}` is no crate with its version"))?;
    let is_ours = text.contains(" (/");
    if !is_ours && text.contains("://") {
        bail!("`{text}` is not from the crate registry: say in `supply/crates.rs` how it is named");
    }
    Ok((Key { name, version: version.to_owned() }, is_ours))
}

fn origin(key: &Key, is_ours: bool, checksums: &BTreeMap<Key, String>) -> Result<Origin> {
    if is_ours {
        return Ok(Origin::Checkout);
    }
    let sha256 = checksums.get(key).with_context(|| {
        format!("`Cargo.lock` has no checksum of `{} {}`", key.name, key.version)
    })?;
    Ok(Origin::Registry { sha256: sha256.clone() })
}

/// Returns the licence in the form of SPDX: some crates separate alternatives by a slash, as Cargo once recommended.
fn spdx(key: &Key, licence: &str) -> Result<String> {
    if licence.is_empty() {
        bail!("`{} {}` names no licence", key.name, key.version);
    }
    let words: Vec<&str> = licence.split('/').map(str::trim).collect();
    Ok(words.join(" OR "))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCKFILE: &str = r#"
[[package]]
name = "cc"
version = "1.0.0"
source = "registry+https://github.com/rust-lang/crates.io-index"
checksum = "cc00"
dependencies = [
 "db",
]

[[package]]
name = "db"
version = "0.1.0"

[[package]]
name = "macros"
version = "2.0.0"
checksum = "aa00"

[[package]]
name = "zstd"
version = "3.0.0+zstd.1.5"
checksum = "bb00"
"#;

    const COMPILED: &str = "\
0|cli v0.1.0 (/here/crates/cli)|Apache-2.0||
1|db v0.1.0 (/here/crates/db)|Apache-2.0||
2|macros v2.0.0 (proc-macro)|MIT/Apache-2.0|https://m.example|
2|zstd v3.0.0+zstd.1.5|BSD-3-Clause||
3|cc v1.0.0|MIT / Apache-2.0|https://c.example|
1|zstd v3.0.0+zstd.1.5|BSD-3-Clause|| (*)
";

    const LINKED: &str = "\
cli v0.1.0 (/here/crates/cli)
db v0.1.0 (/here/crates/db)
zstd v3.0.0+zstd.1.5
zstd v3.0.0+zstd.1.5 (*)
";

    fn key(name: &str, version: &str) -> Key {
        Key { name: name.to_owned(), version: version.to_owned() }
    }

    #[test]
    fn a_tree_has_its_edges_and_what_is_linked() {
        let crates = parse(COMPILED, LINKED, &checksums(LOCKFILE)).expect("a tree");
        assert_eq!(crates.root, key("cli", "0.1.0"));
        let zstd = key("zstd", "3.0.0+zstd.1.5");
        let lines: Vec<(&str, bool, &str, Vec<&Key>)> = crates
            .by_key
            .iter()
            .map(|(key, it)| {
                (key.name.as_str(), it.is_linked, it.licence.as_str(), it.needs.iter().collect())
            })
            .collect();
        let (cc, db, macros) = (key("cc", "1.0.0"), key("db", "0.1.0"), key("macros", "2.0.0"));
        assert_eq!(
            lines,
            [
                ("cc", false, "MIT OR Apache-2.0", vec![]),
                ("cli", true, "Apache-2.0", vec![&db, &zstd]),
                ("db", true, "Apache-2.0", vec![&macros, &zstd]),
                ("macros", false, "MIT OR Apache-2.0", vec![]),
                ("zstd", true, "BSD-3-Clause", vec![&cc]),
            ]
        );
        assert_eq!(crates.by_key[&db].origin, Origin::Checkout);
        assert_eq!(crates.by_key[&cc].origin, Origin::Registry { sha256: "cc00".to_owned() });
    }

    #[test]
    fn a_tree_that_cannot_be_right_is_refused() {
        let without = |name: &str| LOCKFILE.replace(&format!("checksum = \"{name}\"\n"), "");
        let cases = [
            ("", "", LOCKFILE.to_owned(), "printed nothing"),
            ("0|cli v0.1.0|MIT|", "", LOCKFILE.to_owned(), "expected a depth and three fields"),
            ("1|cc v1.0.0|MIT||", "", LOCKFILE.to_owned(), "impossible depth"),
            ("0|cc v1.0.0|||", "", LOCKFILE.to_owned(), "names no licence"),
            ("0|cc v1.0.0|MIT||", "", without("cc00"), "no checksum of `cc 1.0.0`"),
            ("0|cc 1.0.0|MIT||", "", LOCKFILE.to_owned(), "no crate with its version"),
            ("0|cc v1.0.0|MIT||", "db v0.1.0", LOCKFILE.to_owned(), "is linked, but"),
            (
                "0|cc v1.0.0 (https://forge.example/cc#1)|MIT||",
                "",
                LOCKFILE.to_owned(),
                "not from the crate registry",
            ),
        ];
        for (compiled, linked, lockfile, expected) in cases {
            let refused = parse(compiled, linked, &checksums(&lockfile));
            let words = refused.expect_err(expected).to_string();
            assert!(words.contains(expected), "{words}");
        }
    }
}
