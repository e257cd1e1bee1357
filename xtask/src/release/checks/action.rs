//! The GitHub action, the GitLab component and the workflows: linted, and the first two played with the program of the release.
//!
//! Deliberately absent: GitHub and GitLab. `tests/action` has stand-ins for their runners, for the API of comments and for the host
//! of the release; what only the real ones show is a line of docs/release-checklist.md.

use std::{env, path::Path, process::Command};

use anyhow::{Context, Result};

use super::{Check, Row};
use crate::{machine::Machine, release::Release, services, spawn};

pub(crate) const CHECK: Check = Check {
    name: "action",
    what: "workflows, the GitHub action and the GitLab component are linted; the latter two install, run and report",
    missing,
    run,
};

/// What the steps of the action need, beside the linters.
const NEEDS: [&str; 4] = ["bash", "curl", "git", "jq"];

fn missing(machine: &Machine) -> Option<String> {
    if services::linters(machine).is_none() {
        return Some("linters (`cargo xtask services up linters`)".to_owned());
    }
    NEEDS.into_iter().find(|program| machine.in_path(program).is_none()).map(str::to_owned)
}

fn run(machine: &Machine, release: &Release) -> Result<Vec<Row>> {
    let bin = services::linters(machine).context("the linters are not installed")?;
    spawn::run(python(machine, &bin, "lint.py")?.args(["--version", &release.version]))?;
    let mut played = python(machine, &bin, "run.py")?;
    spawn::run(played.args(["--version", &release.version, "--release"]).arg(&release.folder))?;
    // The time to a green run is that of the channel `install.sh`, which has its own check.
    Ok(vec![Row {
        artefact: "action.yml, deploy/gitlab".to_owned(),
        bytes: None,
        installed_in: None,
        green_in: None,
    }])
}

/// Returns a program of `tests/action`, which finds the linters first in `PATH`.
fn python(machine: &Machine, bin: &Path, program: &str) -> Result<Command> {
    let path = machine.find("PATH").unwrap_or_default();
    let folders = [bin.to_path_buf()].into_iter().chain(env::split_paths(&path));
    let mut python = machine.command(bin.join("python3"));
    python.arg(machine.root.join("tests/action").join(program));
    python.env("PATH", env::join_paths(folders).context("`PATH`")?);
    Ok(python)
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fs};

    use super::*;
    use crate::machine::tests::machine_with_cache;

    /// An action as a workflow names it, or a line of `actions.txt` in the form that workflows have to use.
    fn listed(text: &str) -> Result<BTreeSet<String>, String> {
        let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
        lines
            .map(|line| match line.split_whitespace().collect::<Vec<_>>()[..] {
                [name, tag, "-"] => Ok(format!("{name}@{tag}")),
                [name, tag, commit] if is_commit(commit) => Ok(format!("{name}@{commit} # {tag}")),
                _ => Err(format!("`{line}`: expected an action, a tag, and a commit or `-`")),
            })
            .collect()
    }

    fn is_commit(text: &str) -> bool {
        text.len() == 40 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    }

    fn used(workflow: &str) -> BTreeSet<String> {
        let value = |line: &str| {
            let line = line.trim_start();
            line.strip_prefix("- ").unwrap_or(line).strip_prefix("uses: ").map(str::to_owned)
        };
        // An action of this checkout has no commit of its own.
        workflow.lines().filter_map(value).filter(|action| !action.starts_with("./")).collect()
    }

    #[test]
    fn every_action_is_in_the_one_file_and_it_has_no_others() {
        let cache = tempfile::tempdir().expect("a temporary folder");
        let root = machine_with_cache(cache.path()).root;
        let text = fs::read_to_string(root.join(".github/actions.txt")).expect("the one file");
        let listed = listed(&text).expect("each line is complete");
        let mut all = used(&fs::read_to_string(root.join("action.yml")).expect("the action"));
        for entry in fs::read_dir(root.join(".github/workflows")).expect("the workflows") {
            let file = entry.expect("an entry").path();
            all.append(&mut used(&fs::read_to_string(file).expect("a workflow")));
        }
        assert_eq!(all, listed, "left what is used, right what `.github/actions.txt` has");
    }

    #[test]
    fn a_commit_that_was_read_replaces_the_tag_and_half_a_line_is_refused() {
        let commit = "0123456789abcdef0123456789abcdef01234567";
        let lines = format!("# a comment\na/b v1 -\nc/d  v2  {commit}\n");
        let expected = BTreeSet::from(["a/b@v1".to_owned(), format!("c/d@{commit} # v2")]);
        assert_eq!(listed(&lines), Ok(expected.clone()));
        let workflow = format!(
            "steps:\n  - uses: a/b@v1\n  - id: x\n    uses: c/d@{commit} # v2\n  - uses: ./\n"
        );
        assert_eq!(used(&workflow), expected);
        for line in ["a/b v1", "a/b v1 0123", "a/b v1 - -"] {
            assert!(listed(line).is_err(), "{line}");
        }
    }
}
