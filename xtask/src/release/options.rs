//! The flags of `cargo xtask release`.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use super::artefacts::{COMPARISON, TARGETS, Target};

/// What the user typed behind the command.
#[derive(Debug, Default)]
pub(crate) struct Options {
    /// As typed: one of the release's, or the one for comparison.
    pub(crate) triples: Vec<String>,
    pub(crate) profile: Option<String>,
    pub(crate) binary: Option<PathBuf>,
    pub(crate) is_twice: bool,
    pub(crate) names: Vec<String>,
    /// The flags that were used, and `NAME` for names.
    used: Vec<&'static str>,
}

impl Options {
    pub(crate) fn parse(words: &[&str]) -> Result<Self> {
        let mut options = Self::default();
        let mut words = words.iter().copied();
        while let Some(word) = words.next() {
            let mut value = |flag: &'static str| {
                words.next().with_context(|| format!("`{flag}` wants a value"))
            };
            let flag = match word {
                "--target" => {
                    options.triples.push(known(value("--target")?)?);
                    "--target"
                }
                "--profile" => {
                    options.profile = Some(value("--profile")?.to_owned());
                    "--profile"
                }
                "--binary" => {
                    options.binary = Some(PathBuf::from(value("--binary")?));
                    "--binary"
                }
                "--twice" => {
                    options.is_twice = true;
                    "--twice"
                }
                flag if flag.starts_with('-') => {
                    bail!("`{flag}` is not a flag of `cargo xtask release`; `--help` lists them")
                }
                name => {
                    options.names.push(name.to_owned());
                    "NAME"
                }
            };
            options.used.push(flag);
        }
        Ok(options)
    }

    /// Rejects what the command does not read.
    pub(crate) fn only(self, accepted: &[&str]) -> Result<Self> {
        match self.used.iter().find(|flag| !accepted.contains(flag)) {
            Some(&"NAME") => bail!("`{}` is not read by this command", self.names.join(" ")),
            Some(flag) => bail!("`{flag}` is not read by this command"),
            None => Ok(self),
        }
    }

    /// Returns the targets of the release that were named; all if none was.
    pub(crate) fn targets(&self) -> Vec<&'static Target> {
        let is_named = |it: &&Target| self.triples.iter().any(|name| name == it.triple);
        if self.triples.is_empty() {
            return TARGETS.to_vec();
        }
        TARGETS.into_iter().filter(is_named).collect()
    }

    /// Returns the only target that `--binary` is for.
    pub(crate) fn target_of_binary(&self) -> Result<&'static Target> {
        match self.targets()[..] {
            [target] => Ok(target),
            _ => bail!("`--binary` is for one target: name it with `--target TRIPLE`"),
        }
    }
}

fn known(triple: &str) -> Result<String> {
    let all: Vec<&str> = TARGETS.iter().map(|it| it.triple).chain([COMPARISON]).collect();
    if !all.contains(&triple) {
        bail!("`{triple}` is not a target of the release: expected one of {}", all.join(", "));
    }
    Ok(triple.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_flags_are_refused_by_name() {
        let cases: [(&[&str], &str); 5] = [
            (&["--target"], "`--target` wants a value"),
            (&["--target", "riscv"], "`riscv` is not a target"),
            (&["--speed"], "`--speed` is not a flag"),
            (&["--profile", "release"], "`--profile` is not read by this command"),
            (&["deb"], "`deb` is not read by this command"),
        ];
        for (words, expected) in cases {
            let refused = Options::parse(words).and_then(|it| it.only(&["--target"]));
            let words = refused.expect_err(expected).to_string();
            assert!(words.contains(expected), "{words}");
        }
    }

    #[test]
    fn a_program_is_for_one_target() {
        let options = Options::parse(&["--binary", "a"]).expect("it is complete");
        let words = options.target_of_binary().expect_err("there are two").to_string();
        assert!(words.contains("--target"), "{words}");
        let named = ["--binary", "a", "--target", "aarch64-unknown-linux-musl"];
        let options = Options::parse(&named).expect("it is complete");
        assert_eq!(options.target_of_binary().expect("one").deb, "arm64");
    }
}
