//! What a release states of its parts: the bill of materials, the list in the program, and the licences agree with `cargo tree`,
//! with each other, and with what a scanner reads from the installed file.
//!
//! The comparison is a script of Python, which reads JSON without code of the release. The advisories of the scanner are planted:
//! those of the field need the network and change every day, and `cargo xtask advisories` is for them.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};

use crate::{
    cache,
    machine::Machine,
    programs::PRODUCT,
    release::{
        Check, Release, Row,
        artefacts::{self, LICENCES, TARGETS, size},
        pip::CYCLONEDX,
        supply::PACKAGE,
    },
    spawn, tools,
};

pub(crate) const CHECK: Check = Check {
    name: "supply",
    what: "bill of materials, list in the program and licences against `cargo tree`; `cargo audit bin` reads the program",
    missing: |machine| machine.in_path("python3").is_none().then(|| "`python3`".to_owned()),
    run,
};

const SCRIPT: &str = include_str!("supply.py");

/// A crate that every build has, for the advisory that must be found, and one that none has.
const PLANTED: [(&str, &str); 2] =
    [("ring", "RUSTSEC-2000-0001"), ("openssl", "RUSTSEC-2000-0002")];

fn run(machine: &Machine, release: &Release) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for target in TARGETS {
        let stem = release.archive(target.triple);
        if release.file(&format!("{stem}.tar.gz")).is_file() {
            rows.push(of_target(machine, release, target.triple)?);
        }
    }
    if rows.is_empty() {
        bail!("the release has no archive: run `cargo xtask release package`");
    }
    Ok(rows)
}

/// Checks the parts of the program that the archive for a target holds.
fn of_target(machine: &Machine, release: &Release, triple: &str) -> Result<Row> {
    let folder = artefacts::kit(machine).join("supply");
    cache::remove(&folder)?;
    fs::create_dir_all(&folder)?;
    let stem = release.archive(triple);
    let mut tar = Command::new("tar");
    tar.arg("-xzf").arg(release.file(&format!("{stem}.tar.gz"))).arg("-C").arg(&folder);
    spawn::output(&mut tar)?;
    let (program, licences) = (folder.join(&stem).join(PRODUCT), folder.join(&stem).join(LICENCES));
    let name = format!("{stem}.cdx.json");
    let sbom = release.file(&name);

    let script = Script { python: CYCLONEDX.program(machine)?, folder: &folder };
    script.run(&["schema"], &[&sbom], "")?;
    script.run(&["program"], &[&sbom, &program], "")?;
    let list = folder.join("embedded.json");
    artefacts::write(&list, script.run(&["embedded"], &[&program], "")?)?;
    let lockfile = machine.root.join("web/package-lock.json");
    let tree = tree(machine, triple)?;
    let words = script.run(&["parts"], &[&sbom, &list, &licences, &lockfile], &tree)?;
    println!("{name}: {words}");

    let crates = tree.lines().filter_map(|line| line.split(" (*)").next());
    let crates: std::collections::BTreeSet<_> = crates.collect();
    let report = audit(machine, &folder, &program)?;
    script.run(&["audit", &crates.len().to_string(), PLANTED[0].1], &[], &report)?;
    Ok(Row {
        bytes: Some(size(release, &name)?),
        artefact: name,
        installed_in: None,
        green_in: None,
    })
}

/// Returns the crates that a build for a target compiles, as Cargo prints them.
fn tree(machine: &Machine, triple: &str) -> Result<String> {
    let mut cargo = machine.cargo();
    cargo.args(["tree", "--locked", "--quiet", "--color", "never", "--package", PACKAGE]);
    cargo.args(["--target", triple, "--edges", "normal,build", "--prefix", "none"]);
    spawn::output(cargo.args(["--format", "{p}"]))
}

/// Returns what cargo-audit reports of a program, with two planted advisories.
fn audit(machine: &Machine, folder: &Path, program: &Path) -> Result<String> {
    for (package, id) in PLANTED {
        let text = format!(
            "```toml\n[advisory]\nid = \"{id}\"\npackage = \"{package}\"\ndate = \"2000-01-01\"\n\n[versions]\npatched = []\n```\n\n# Planted\n\nFor the check of a release.\n"
        );
        artefacts::write(&folder.join(format!("advisories/crates/{package}/{id}.md")), text)?;
    }
    let mut audit = machine.command(tools::AUDIT.bin(machine)?.join("cargo-audit"));
    audit.args(["audit", "--no-fetch", "--no-yanked", "--json", "--db"]);
    audit.arg(folder.join("advisories")).arg("bin").arg(program);
    let output = audit.output().context("`cargo-audit` cannot be started")?;
    // It fails when it finds something, which it must here.
    if output.status.success() {
        bail!("`cargo audit bin` did not find the planted advisory of `{}`", PLANTED[0].0);
    }
    String::from_utf8(output.stdout).context("`cargo audit bin` did not print a report")
}

/// The script that compares.
struct Script<'a> {
    python: PathBuf,
    /// Where its input goes.
    folder: &'a Path,
}

impl Script<'_> {
    /// Runs one of its commands, and returns what it prints.
    fn run(&self, words: &[&str], files: &[&Path], input: &str) -> Result<String> {
        let file = self.folder.join("input");
        artefacts::write(&file, input)?;
        let mut python = Command::new(&self.python);
        python.args(["-c", SCRIPT]).args(words).args(files);
        python.stdin(Stdio::from(fs::File::open(&file)?));
        let output = python.output().context("`python3` cannot be started")?;
        if !output.status.success() {
            let complaint = String::from_utf8_lossy(&output.stderr);
            bail!("supply.py {}: {}", words.join(" "), complaint.trim());
        }
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SBOM: &str = r#"{
        "metadata": {"component": {"bom-ref": "root"}},
        "components": [
            {"bom-ref": "pkg:cargo/a@1", "purl": "pkg:cargo/a@1", "name": "a", "version": "1", "scope": "required"},
            {"bom-ref": "pkg:cargo/m@1", "purl": "pkg:cargo/m@1", "name": "m", "version": "1", "scope": "excluded"},
            {"bom-ref": "pkg:npm/p@1", "purl": "pkg:npm/p@1", "name": "p", "version": "1", "scope": "required"},
            {"bom-ref": "qualitytrace:web@1", "name": "web", "version": "1", "scope": "required"}
        ],
        "dependencies": [
            {"ref": "root", "dependsOn": ["qualitytrace:web@1", "pkg:cargo/m@1"]},
            {"ref": "qualitytrace:web@1", "dependsOn": ["pkg:cargo/a@1", "pkg:npm/p@1"]}
        ]
    }"#;
    const LIST: &str = r#"{"packages": [
        {"name": "cli", "version": "1"}, {"name": "a", "version": "1"}, {"name": "web", "version": "1"},
        {"name": "m", "version": "1", "kind": "build"}
    ]}"#;
    const PAGE: &str = r#"{"packages": {
        "": {}, "node_modules/p": {"version": "1"}, "node_modules/d": {"version": "1", "dev": true}
    }}"#;
    const LICENCES_FILE: &str = "### MIT\n\n- a 1\n- m 1\n\n### ISC\n\n- p 1\n";
    const TREE: &str =
        "cli v1 (/here/cli)\na v1\nm v1 (proc-macro)\nweb v1 (/here/web)\na v1 (*)\n";

    fn parts(texts: [&str; 4], tree: &str) -> Result<String> {
        let dir = tempfile::tempdir()?;
        let files = ["sbom", "list", "licences", "page"].map(|name| dir.path().join(name));
        for (file, text) in files.iter().zip(texts) {
            fs::write(file, text)?;
        }
        let script = Script { python: "python3".into(), folder: dir.path() };
        script.run(&["parts"], &files.each_ref().map(PathBuf::as_path), tree)
    }

    #[test]
    fn equal_lists_are_counted() {
        let words = parts([SBOM, LIST, LICENCES_FILE, PAGE], TREE).expect("they agree");
        assert_eq!(words, "2 crates, 1 of ours, 1 npm packages; 4 in the program");
    }

    #[test]
    fn what_one_source_alone_has_is_found() {
        let unlinked = LIST.replace(", \"kind\": \"build\"", "");
        let without_edge = SBOM.replace(", \"pkg:npm/p@1\"]", "]");
        let cases = [
            (
                [SBOM, LIST, LICENCES_FILE, PAGE],
                "cli v1 (/x)\na v1\nm v1\nb v2\n",
                "missing [('b', '2')]",
            ),
            (
                [SBOM, LIST, LICENCES_FILE, PAGE],
                "cli v1 (/x)\nweb v1 (/x)\na v1\n",
                "too many [('m', '1')]",
            ),
            ([SBOM, LIST, LICENCES_FILE, PAGE], "cli v1 (/x)\na v1\nm v1\n", "our crates"),
            ([SBOM, LIST, "- a 1\n- p 1\n", PAGE], TREE, "the file of licences"),
            ([SBOM, LIST, LICENCES_FILE, "{\"packages\": {}}"], TREE, "npm packages"),
            ([SBOM, "{\"packages\": []}", LICENCES_FILE, PAGE], TREE, "the list in the program"),
            ([SBOM, &unlinked, LICENCES_FILE, PAGE], TREE, "what of it is linked"),
            ([&without_edge, LIST, LICENCES_FILE, PAGE], TREE, "what the dependencies reach"),
        ];
        for (texts, tree, expected) in cases {
            let words = parts(texts, tree).expect_err(expected).to_string();
            assert!(words.contains(expected), "{words}");
        }
    }

    #[test]
    fn a_report_of_too_few_crates_or_of_another_advisory_is_refused() {
        let dir = tempfile::tempdir().expect("a folder");
        let script = Script { python: "python3".into(), folder: dir.path() };
        let report = r#"{"lockfile": {"dependency-count": 3}, "vulnerabilities": {"list": [{"advisory": {"id": "A"}}]}}"#;
        script.run(&["audit", "3", "A"], &[], report).expect("three, and A");
        for (count, id) in [("4", "A"), ("3", "B")] {
            assert!(script.run(&["audit", count, id], &[], report).is_err(), "{count} {id}");
        }
    }
}
