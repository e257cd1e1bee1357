//! Nothing is undocumented, and nothing is documented that is not there: commands, flags and variables, both ways.
//!
//! The pages that the program makes have them all; here those that people write are compared with the program.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use clap::{Command, error::ErrorKind};
use server::config::{FLAGS, KEYS, PREFIX};
use telemetry::config::{self, environment_name};

use super::commands::VARIABLES;
use crate::args;

/// What reads a variable of the environment, in the code of the program.
const READERS: [&str; 7] =
    ["get(\"", "is_set(\"", "set(\"", "var(\"", "var_os(\"", "named(\"", "path(\""];
/// The folders and files whose code reads variables that a person sets.
const SOURCES: [&str; 3] =
    ["crates/cli/src", "lib/net/src/proxy.rs", "crates/server/src/config/mod.rs"];
/// A variable of builds for tests.
const PLANTED: &str = "QUALITYTRACE_TEST_PLANT";

/// Files beside the program with variables and flags of their own, which pages name too.
const SCRIPTS: [&str; 2] = ["packaging/install.sh", "deploy/compose/compose.yaml"];

/// Flags of cargo, of other programs and of benchmarks, which pages name too.
const OF_OTHERS: [&str; 13] = [
    "--global",
    "--ignore-missing",
    "--ignore-scripts",
    "--omit",
    "--user",
    "--features",
    "--callgrind-out-file",
    "--short",
    "--cases",
    "--faults",
    "--real",
    "--plant",
    "--history",
];
/// The first line of a file with a shape.
const SHAPE_HEAD: &str = "shape 1";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the texts of files below a path, each with its path.
fn texts(path: &Path, extension: &str) -> Vec<(String, String)> {
    if path.is_dir() {
        let entries = fs::read_dir(path).expect("a folder");
        let entries = entries.map(|entry| entry.expect("an entry").path());
        return entries.flat_map(|path| texts(&path, extension)).collect();
    }
    if path.extension().is_none_or(|it| it != extension) {
        return Vec::new();
    }
    vec![(path.display().to_string(), fs::read_to_string(path).expect("a text"))]
}

/// Returns the pages that people write. Records of decisions and of changes tell of the past too.
fn pages() -> Vec<(String, String)> {
    let pages = ["README.md", "docs"].iter().flat_map(|path| texts(&root().join(path), "md"));
    pages.filter(|(path, _)| !path.contains("docs/adr/")).collect()
}

/// Whether a script has this text: a flag, or the beginning of a variable's use.
fn is_of_script(text: &str) -> bool {
    let read = |path| fs::read_to_string(root().join(path)).expect("a script");
    SCRIPTS.iter().any(|path| read(*path).contains(text))
}

/// Returns the names in a text that begin so.
fn names_from<'a>(text: &'a str, start: &'a str) -> impl Iterator<Item = &'a str> {
    text.match_indices(start).map(move |(at, _)| {
        let rest = &text[at..];
        let is_end = |c: char| !(c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
        &rest[..rest.find(is_end).unwrap_or(rest.len())]
    })
}

#[test]
fn variables_of_pages_are_of_the_program() {
    // `*` in a key is a name of the user's own.
    let is_key = |name: &str| {
        KEYS.iter().chain(config::KEYS).any(|key| match key.path.split_once('*') {
            None => environment_name(PREFIX, key.path) == name,
            Some((before, _)) => name.starts_with(&environment_name(PREFIX, before)),
        })
    };
    let (mut documented, mut unknown) = (BTreeSet::new(), Vec::new());
    for (page, text) in &pages() {
        for name in names_from(text, "QUALITYTRACE_").filter(|name| !name.ends_with('_')) {
            let is_flag = FLAGS.contains(&name);
            let is_test = name.starts_with("QUALITYTRACE_TEST_");
            // An example of a variable of the user's own, to which a value refers.
            let is_own = text.contains(&format!("${{{name}}}"));
            let is_stream = name.starts_with("QUALITYTRACE_SPANS_");
            let is_known = is_flag || is_key(name) || is_test || is_own || is_stream;
            if !is_known && !is_of_script(&format!("${{{name}:")) {
                unknown.push(format!("{page}: `{name}`"));
            }
            documented.insert(name.to_owned());
        }
    }
    assert!(unknown.is_empty(), "{}", unknown.join("\n"));
    for name in FLAGS {
        assert!(documented.contains(*name), "`{name}` is on no page");
    }
}

#[test]
fn variables_that_the_program_reads_are_documented() {
    let mut read = BTreeSet::new();
    let files = SOURCES.iter().flat_map(|path| texts(&root().join(path), "rs"));
    for (_, text) in files {
        let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
        for reader in READERS {
            for rest in code.split(reader).skip(1) {
                let name = rest.split('"').next().unwrap_or_default();
                let is_name = |c: char| c.is_ascii_uppercase() || c == '_';
                if name.len() > 1 && name.chars().all(is_name) && name != PLANTED {
                    read.insert(if name.starts_with("OTEL_") { "OTEL_*" } else { name }.to_owned());
                }
            }
        }
    }
    let documented: BTreeSet<_> = VARIABLES.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(read, documented);
}

/// Returns the command lines of a page, and its flags in code. Lines of `---` part documents.
fn typed(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for (number, block) in text.split("```").enumerate() {
        if number % 2 == 1 {
            found.extend(block.lines().skip(1));
        } else {
            found.extend(block.split('`').skip(1).step_by(2));
        }
    }
    found.retain(|span| {
        span.starts_with("qualitytrace ") || (span.starts_with("--") && *span != "---")
    });
    found
}

#[test]
fn commands_and_flags_of_pages_exist() {
    let root = args::command(|_| false);
    let (mut commands, mut flags, mut unknown) = (0, 0, Vec::new());
    // Those of the program itself have usage lines, which are no commands.
    let pages: Vec<_> = pages().into_iter().filter(|it| !it.0.contains("reference/")).collect();
    for (page, text) in &pages {
        for span in typed(text) {
            let Some(line) = span.strip_prefix("qualitytrace ") else {
                flags += 1;
                let flag = span.split([' ', '=', ',']).next().unwrap_or_default();
                // What stands behind `--` is a command of the user.
                let is_known = flag == "--" || OF_OTHERS.contains(&flag) || has_flag(&root, flag);
                if !is_known && !is_of_script(flag) {
                    unknown.push(format!("{page}: `{span}`"));
                }
                continue;
            };
            if line == SHAPE_HEAD {
                continue;
            }
            commands += 1;
            let is_end =
                |word: &&str| !matches!(*word, "#" | "|" | ">" | "&&" | "&" | ";" | "\\" | "…");
            let words = line.split_whitespace().take_while(is_end);
            let parsed =
                root.clone().try_get_matches_from(["qualitytrace"].into_iter().chain(words));
            let wrong = parsed.err().map(|error| error.kind());
            let is_wrong =
                matches!(wrong, Some(ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand));
            if is_wrong {
                unknown.push(format!("{page}: `{span}`"));
            }
        }
    }
    assert!(unknown.is_empty(), "{}", unknown.join("\n"));
    assert!(commands > 80 && flags > 100, "{commands} commands, {flags} flags");
}

fn has_flag(command: &Command, flag: &str) -> bool {
    let name = flag.trim_start_matches('-');
    matches!(name, "help" | "version")
        || command.get_arguments().any(|arg| {
            arg.get_long() == Some(name)
                || arg.get_all_aliases().is_some_and(|it| it.contains(&name))
        })
        || command.get_subcommands().any(|below| has_flag(below, flag))
}
