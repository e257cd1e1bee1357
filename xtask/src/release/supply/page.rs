//! The npm packages in the web page, as the page's own build lists them with their licences.

use std::fs;

use anyhow::{Context, Result, bail};

use crate::{machine::Machine, web};

/// What `web/scripts/licences.ts` writes between two packages.
const RULE_LENGTH: usize = 80;

/// A package whose code is in the page.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Package {
    /// Such as `react` or `@tanstack/history`.
    pub(super) name: String,
    pub(super) version: String,
    /// An SPDX expression.
    pub(super) licence: String,
    /// The texts of its licence files; empty if it has none.
    pub(super) notice: String,
}

/// Returns the packages of the page that the next build of the program packs.
pub(super) fn packages(machine: &Machine) -> Result<Vec<Package>> {
    let file = machine.root.join("crates/web/dist/licences.txt");
    if !file.is_file() {
        // The program comes from another machine, which built the same page.
        web::run(machine, &["build"])?;
    }
    let text = fs::read_to_string(&file);
    let text = text.with_context(|| format!("cannot read `{}`", file.display()))?;
    parse(&text).with_context(|| format!("`{}`", file.display()))
}

fn parse(text: &str) -> Result<Vec<Package>> {
    let rule = format!("\n\n{}\n\n", "-".repeat(RULE_LENGTH));
    let mut packages: Vec<Package> = Vec::new();
    for block in text.trim_end().split(&rule) {
        match (package(block), packages.last_mut()) {
            (Some(package), _) => packages.push(package),
            // A notice may have such a rule too.
            (None, Some(last)) => last.notice.extend([&rule, block]),
            (None, None) => bail!("expected a package, its version and its licence at the start"),
        }
    }
    Ok(packages)
}

/// Reads `name version`, `Licence: expression` and the texts, with an empty line between them.
fn package(block: &str) -> Option<Package> {
    let (title, rest) = block.split_once("\n\n")?;
    let (name, version) = title.split_once(' ').filter(|_| !title.contains('\n'))?;
    let rest = rest.strip_prefix("Licence: ")?;
    let (licence, notice) = rest.split_once("\n\n").unwrap_or((rest, ""));
    let [name, version, licence, notice] =
        [name, version, licence, notice].map(|text| text.trim().to_owned());
    Some(Package { name, version, licence, notice })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_package_has_its_licence_and_its_texts() {
        let rule = "-".repeat(RULE_LENGTH);
        let text = format!(
            "@a/b 1.0.0\n\nLicence: MIT\n\nfirst\n\n{rule}\n\nsecond\n\n{rule}\n\nc 2.0.0\n\nLicence: (ISC OR MIT)\n"
        );
        let packages = parse(&text).expect("two packages");
        let expected = [
            ("@a/b", "1.0.0", "MIT", format!("first\n\n{rule}\n\nsecond")),
            ("c", "2.0.0", "(ISC OR MIT)", String::new()),
        ];
        let expected = expected.map(|(name, version, licence, notice)| Package {
            name: name.to_owned(),
            version: version.to_owned(),
            licence: licence.to_owned(),
            notice,
        });
        assert_eq!(packages, expected);
    }

    #[test]
    fn a_file_without_a_package_is_refused() {
        let refused = parse("no list\n").expect_err("there is no package");
        assert!(refused.to_string().starts_with("expected a package"), "{refused}");
    }
}
