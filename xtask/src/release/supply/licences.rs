//! The licences of all that a binary has of others, in one Markdown file.
//!
//! A redistributor of a static binary owes the notice of each part: of the crates, which `cargo-about` finds; of the standard
//! library and the C library, which no lockfile names; and of the packages in the page, which its build lists.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};

use super::{PACKAGE, page, rust_library};
use crate::{machine::Machine, release::pip::ZIGBUILD, spawn, tools};

const TEMPLATE: &str = "packaging/licences.hbs";
/// What the template writes before each of its own lines; no text of a licence has such a line.
const MARK: &str = "%%% ";
/// A fence that no text of a licence has.
const FENCE: &str = "~~~~~~~~";
/// What cargo-about prints, and ends well, when a text that `about.toml` names has changed.
const STALE: &str = "failed to validate";

/// The name of a licence, whether its text is that of the crates, and the text.
type Licence = (String, bool, String);

/// The crates under each licence.
type Licences = BTreeMap<Licence, BTreeSet<String>>;

const HEAD: &str = "\
# Licences of third parties

The program `qualitytrace` is under the licence in the file LICENSE beside this one. It contains the following work of others, or
was compiled with it. Of a work with several licences to choose from, one is listed.
";

const STANDARD: &str = "
The files of these crates have no text of this licence. This is its standard text.
";

/// Returns the file.
pub(super) fn markdown(machine: &Machine) -> Result<String> {
    let crates = parse(&about(machine)?)?;
    let page = page::packages(machine)?;
    let mut out = String::from(HEAD);
    out.push_str("\n## Crates\n");
    for ((name, is_own, text), used_by) in &crates {
        write(&mut out, name, used_by, text)?;
        if !is_own {
            out.push_str(STANDARD);
        }
    }
    out.push_str("\n## Standard library of Rust\n");
    let none = BTreeSet::new();
    write(&mut out, "Notices of the toolchain", &none, &rust_library::read(machine)?)?;
    out.push_str("\n## C library and runtime\n\nA binary for musl contains all of them, and one for glibc the last two.\n");
    for (name, text) in runtime(machine)? {
        write(&mut out, name, &none, &text)?;
    }
    out.push_str("\n## Packages in the web page\n");
    for package in &page {
        let used_by = BTreeSet::from([format!("{} {}", package.name, package.version)]);
        write(&mut out, &package.licence, &used_by, &package.notice)?;
    }
    Ok(out)
}

/// Adds a licence, its works and its text, which may be empty.
fn write(out: &mut String, title: &str, used_by: &BTreeSet<String>, text: &str) -> Result<()> {
    if text.contains(FENCE) {
        bail!("the text of `{title}` contains `{FENCE}`: choose another `FENCE`");
    }
    out.push_str(&format!("\n### {title}\n\n"));
    out.extend(used_by.iter().map(|name| format!("- {name}\n")));
    if !used_by.is_empty() && !text.is_empty() {
        out.push('\n');
    }
    if !text.is_empty() {
        out.push_str(&format!("{FENCE}text\n{}\n{FENCE}\n", text.trim_end()));
    }
    Ok(())
}

/// Returns what cargo-about finds in the crates that are downloaded. It asks no service, so that the result is the same each time.
fn about(machine: &Machine) -> Result<String> {
    spawn::run(machine.cargo().args(["fetch", "--locked", "--quiet"]))?;
    let mut about = machine.command(tools::ABOUT.bin(machine)?.join("cargo-about"));
    about.args(["about", "generate", "--locked", "--offline", "--fail", "--manifest-path"]);
    about.arg(format!("crates/{PACKAGE}/Cargo.toml")).arg(TEMPLATE);
    let output = about.output().context("`cargo-about` cannot be started")?;
    let complaints = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() || complaints.contains(STALE) {
        bail!("the licences of crates are not clear, see `about.toml`: {}", complaints.trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Reads what the template wrote. Equal texts become one, and their order is that of names and texts, whatever order files have.
fn parse(text: &str) -> Result<Licences> {
    let mut licences = Licences::new();
    for block in text.split(&format!("{MARK}licence ")).skip(1) {
        let (head, text) = block
            .split_once(&format!("{MARK}text\n"))
            .with_context(|| format!("`{TEMPLATE}` wrote a licence without a text: {block}"))?;
        let (name, head) = head.split_once('\n').context("the name of a licence ends its line")?;
        let is_standard = head.contains(&format!("{MARK}standard"));
        for line in head.lines().filter_map(|line| line.strip_prefix(&format!("{MARK}crate "))) {
            let mut words = line.splitn(3, ' ');
            let (Some(crate_name), Some(version), Some(manifest)) =
                (words.next(), words.next(), words.next())
            else {
                bail!("`{TEMPLATE}` wrote `{line}`: expected a name, a version and a path");
            };
            let of_files = if is_standard { files(Path::new(manifest))? } else { None };
            let is_own = !is_standard || of_files.is_some();
            let text = tidy(of_files.as_deref().unwrap_or(text));
            let used_by = licences.entry((name.to_owned(), is_own, text)).or_default();
            used_by.insert(format!("{crate_name} {version}"));
        }
    }
    if licences.is_empty() {
        bail!("`cargo-about` found no licence");
    }
    Ok(licences)
}

/// Returns the files beside a manifest that are named as licences; none if there are none. cargo-about knows the wording of many
/// licences, and the standard text that it has for the others names no holder of rights.
fn files(manifest: &Path) -> Result<Option<String>> {
    let folder = manifest.parent().context("a manifest stands in a folder")?;
    let entries = fs::read_dir(folder).with_context(|| format!("`{}`", folder.display()))?;
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    paths.sort();
    let is_notice = |path: &&PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        let names = ["licen", "copying", "copyright", "notice"];
        path.is_file() && names.iter().any(|start| name.starts_with(start))
    };
    let texts = paths.iter().filter(is_notice).map(fs::read_to_string);
    let texts = texts
        .collect::<Result<Vec<_>, _>>()
        .with_context(|| format!("a licence in `{}` cannot be read as text", folder.display()))?;
    Ok((!texts.is_empty()).then(|| texts.join("\n\n")))
}

/// Returns a text without spaces at the ends of lines and without empty lines around it.
fn tidy(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines.join("\n").trim_matches('\n').to_owned()
}

/// Returns the notices of what zig, the linker, adds to a binary.
fn runtime(machine: &Machine) -> Result<Vec<(&'static str, String)>> {
    const FOLDER: &str = "import os, ziglang; print(os.path.dirname(ziglang.__file__))";
    const NOTICES: [(&str, &str); 3] = [
        ("musl", "lib/libc/musl/COPYRIGHT"),
        ("libunwind of LLVM", "lib/libunwind/LICENSE.TXT"),
        ("compiler-rt of zig", "LICENSE"),
    ];
    let python = ZIGBUILD.program(machine)?.with_file_name("python3");
    let folder = spawn::output(machine.command(python).args(["-c", FOLDER]))?;
    let read = |(name, path)| {
        let file = Path::new(&folder).join(path);
        let text = fs::read_to_string(&file);
        Ok((name, text.with_context(|| format!("cannot read `{}`", file.display()))?))
    };
    NOTICES.into_iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_are_one_and_ours_are_left_out() {
        let text = "\
%%% licence MIT License
%%% crate b 1.0.0 /b/Cargo.toml
%%% text

by B  
as is

%%% licence Apache License 2.0
%%% text
only ours
%%% licence MIT License
%%% crate a 1.0.0 /a/Cargo.toml
%%% text
by B
as is
";
        let licences = parse(text).expect("licences");
        let (licence, used_by) = licences.first_key_value().expect("one licence");
        assert_eq!(licences.len(), 1);
        assert_eq!(*licence, ("MIT License".to_owned(), true, "by B\nas is".to_owned()));
        assert_eq!(Vec::from_iter(used_by), ["a 1.0.0", "b 1.0.0"]);
    }

    #[test]
    fn a_standard_text_gives_way_to_the_files_of_the_crate() -> Result<()> {
        let dir = tempfile::tempdir()?;
        for name in ["with", "without"] {
            fs::create_dir_all(dir.path().join(name).join("licenses"))?;
            fs::write(dir.path().join(name).join("README.md"), "no licence")?;
        }
        fs::write(dir.path().join("with/LICENSE-MIT"), "by W\n")?;
        fs::write(dir.path().join("with/COPYING"), "first\n")?;
        let at = dir.path().display();
        let text = format!(
            "%%% licence MIT\n%%% standard\n%%% crate with 1 {at}/with/Cargo.toml\n%%% crate without 1 {at}/without/Cargo.toml\n%%% text\nas is\n"
        );
        let licences = parse(&text)?;
        let lines: Vec<_> = licences.keys().map(|(_, is_own, text)| (*is_own, &**text)).collect();
        assert_eq!(lines, [(false, "as is"), (true, "first\n\n\nby W")]);
        Ok(())
    }

    #[test]
    fn what_is_no_list_of_licences_is_refused() {
        let cases = [
            ("", "found no licence"),
            ("%%% licence MIT\n%%% text\nonly ours", "found no licence"),
            ("%%% licence MIT\n%%% crate a 1 /a\nas is", "without a text"),
            ("%%% licence MIT\n%%% crate a 1\n%%% text\nas is", "a name, a version and a path"),
        ];
        for (text, expected) in cases {
            let words = parse(text).expect_err(expected).to_string();
            assert!(words.contains(expected), "{words}");
        }
    }

    #[test]
    fn a_text_that_would_end_itself_is_refused() {
        let mut out = String::new();
        write(&mut out, "MIT", &BTreeSet::from(["a 1".to_owned()]), "as is\n").expect("a text");
        assert_eq!(out, "\n### MIT\n\n- a 1\n\n~~~~~~~~text\nas is\n~~~~~~~~\n");
        let refused = write(&mut out, "MIT", &BTreeSet::new(), "~~~~~~~~\n");
        let words = refused.expect_err("it has a fence").to_string();
        assert!(words.contains("choose another"), "{words}");
    }
}
