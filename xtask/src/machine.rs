//! The environment of this program: the checkout, the cache, the cargo command, the clock.

use std::{
    ffi::{OsStr, OsString},
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};

/// The clock that `main` passes down.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    pub(crate) now: fn() -> Instant,
    pub(crate) sleep: fn(Duration),
}

#[derive(Debug)]
pub(crate) struct Machine {
    /// The checkout that this program was started in.
    pub(crate) root: PathBuf,
    /// Data that outlives checkouts: tools, servers, locks, build logs.
    pub(crate) cache: PathBuf,
    pub(crate) clock: Clock,
    variables: Vec<(OsString, OsString)>,
}

impl Machine {
    pub(crate) fn new(variables: Vec<(OsString, OsString)>, clock: Clock) -> Result<Self> {
        let find = |name: &str| find(&variables, name);
        let manifest = find("CARGO_MANIFEST_DIR").unwrap_or(env!("CARGO_MANIFEST_DIR").into());
        let root = Path::new(&manifest).parent().context("xtask stands in no checkout")?;
        let root = root.canonicalize().with_context(|| format!("`{}` is gone", root.display()))?;
        let cache = match (find("QUALITYTRACE_CACHE"), find("XDG_CACHE_HOME"), find("HOME")) {
            (Some(own), _, _) => PathBuf::from(own),
            (None, Some(shared), _) => Path::new(&shared).join("qualitytrace"),
            (None, None, Some(home)) => Path::new(&home).join(".cache/qualitytrace"),
            (None, None, None) => anyhow::bail!(
                "no place for the cache: set `QUALITYTRACE_CACHE` to a folder that may be written"
            ),
        };
        fs::create_dir_all(&cache)
            .and_then(|()| cache.canonicalize())
            .with_context(|| {
                format!("`{}` cannot be made; set `QUALITYTRACE_CACHE`", cache.display())
            })
            .map(|cache| Self { root, cache, clock, variables })
    }

    /// Returns the cargo command, run in the checkout.
    pub(crate) fn cargo(&self) -> Command {
        self.command(self.find("CARGO").unwrap_or("cargo".into()))
    }

    /// Returns a command for a program that calls cargo, run in the checkout.
    ///
    /// `cargo run` sets variables of this program's own package. They are removed, because build scripts that watch them would
    /// otherwise run again each time a user switches between `cargo` and `cargo xtask`.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        for (name, _) in &self.variables {
            let text = name.to_string_lossy();
            if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
                command.env_remove(name);
            }
        }
        command.current_dir(&self.root);
        command
    }

    /// Returns the target folder of cargo.
    pub(crate) fn target(&self) -> PathBuf {
        self.find("CARGO_TARGET_DIR").map_or(self.root.join("target"), |dir| self.root.join(dir))
    }

    /// Returns the state folder of this checkout: which services run, their ports, their process ids, and their logs.
    pub(crate) fn state(&self) -> PathBuf {
        self.cache.join("checkouts").join(self.checkout())
    }

    /// Returns a short name for this checkout, different for each path.
    pub(crate) fn checkout(&self) -> String {
        format!("{:016x}", fingerprint(self.root.as_os_str().as_encoded_bytes()))
    }

    /// Returns the first file of that name in `PATH`.
    pub(crate) fn in_path(&self, program: &str) -> Option<PathBuf> {
        let path = self.find("PATH")?;
        std::env::split_paths(&path).map(|dir| dir.join(program)).find(|file| file.is_file())
    }

    pub(crate) fn is_root(&self) -> bool {
        fs::metadata("/proc/self").is_ok_and(|this| this.uid() == 0)
    }

    pub(crate) fn find(&self, name: &str) -> Option<OsString> {
        find(&self.variables, name)
    }
}

/// FNV-1a: stable across machines and compilers, which is all that a folder name needs.
pub(crate) fn fingerprint(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

fn find(variables: &[(OsString, OsString)], name: &str) -> Option<OsString> {
    let known = |(key, value): &&(OsString, OsString)| key == OsStr::new(name) && !value.is_empty();
    variables.iter().find(known).map(|(_, value)| value.clone())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Returns a machine with its own cache.
    pub(crate) fn machine_with_cache(cache: &Path) -> Machine {
        let clock = clock_of_tests();
        let variables =
            vec![("QUALITYTRACE_CACHE".into(), cache.into()), ("PATH".into(), path_of_tests())];
        Machine::new(variables, clock).expect("a machine needs only a cache folder")
    }

    #[expect(clippy::disallowed_methods, reason = "a test is its own main")]
    fn path_of_tests() -> OsString {
        std::env::var_os("PATH").unwrap_or_default()
    }

    #[expect(clippy::disallowed_methods, reason = "a test is its own main")]
    pub(crate) fn clock_of_tests() -> Clock {
        Clock { now: Instant::now, sleep: std::thread::sleep }
    }

    #[test]
    fn the_cache_is_found_in_the_order_of_the_help() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let dir = dir.path().canonicalize().expect("a real path");
        let at = |name: &str| OsString::from(dir.join(name));
        let all: Vec<(OsString, OsString)> = vec![
            ("QUALITYTRACE_CACHE".into(), at("own")),
            ("XDG_CACHE_HOME".into(), at("xdg")),
            ("HOME".into(), at("home")),
        ];
        for (from, expected) in
            [(0, "own"), (1, "xdg/qualitytrace"), (2, "home/.cache/qualitytrace")]
        {
            let machine = Machine::new(all[from..].to_vec(), clock_of_tests());
            let machine = machine.expect("a cache is named");
            assert_eq!(machine.cache, dir.join(expected));
        }
    }

    #[test]
    fn a_fingerprint_never_changes() {
        assert_eq!(fingerprint(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fingerprint(b"a"), 0xaf63_dc4c_8601_ec8c);
    }
}
