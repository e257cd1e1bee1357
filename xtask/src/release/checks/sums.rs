//! Every file of the release is in `SHA256SUMS`, with the checksum that it has.

use std::{collections::BTreeSet, fs, process::Command};

use anyhow::{Result, bail};

use crate::{
    machine::Machine,
    release::{
        Check, Release, Row,
        artefacts::{SUMS, size},
    },
    spawn,
};

pub(crate) const CHECK: Check = Check {
    name: "sums",
    what: "every file of the release is in SHA256SUMS, with its checksum",
    missing: |_| None,
    run,
};

fn run(_machine: &Machine, release: &Release) -> Result<Vec<Row>> {
    let text = fs::read_to_string(release.file(SUMS))?;
    complain(&text, &release.names()?)?;
    let mut sums = Command::new("sha256sum");
    sums.args(["--check", "--strict", "--quiet", SUMS]).current_dir(&release.folder);
    spawn::output(&mut sums)?;
    Ok(vec![Row {
        artefact: SUMS.to_owned(),
        bytes: Some(size(release, SUMS)?),
        installed_in: None,
        green_in: None,
    }])
}

/// Rejects checksums of other files than those in the folder.
fn complain(sums: &str, names: &[String]) -> Result<()> {
    let listed: BTreeSet<_> =
        sums.lines().filter_map(|line| Some(line.split_once("  ")?.1)).collect();
    let there: BTreeSet<_> =
        names.iter().map(String::as_str).filter(|name| *name != SUMS).collect();
    let missing: Vec<_> = there.difference(&listed).copied().collect();
    let gone: Vec<_> = listed.difference(&there).copied().collect();
    if !missing.is_empty() {
        bail!("{SUMS} lacks {}", missing.join(", "));
    }
    if !gone.is_empty() {
        bail!("{SUMS} names files that are not there: {}", gone.join(", "));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_a_checksum_is_found_and_so_is_a_checksum_without_a_file() {
        let names = ["a".to_owned(), "b".to_owned(), SUMS.to_owned()];
        complain("1  a\n2  b\n", &names).expect("both are there");
        let words = complain("1  a\n", &names).expect_err("b is missing").to_string();
        assert_eq!(words, "SHA256SUMS lacks b");
        let words = complain("1  a\n2  b\n3  c\n", &names).expect_err("c is gone").to_string();
        assert_eq!(words, "SHA256SUMS names files that are not there: c");
    }
}
