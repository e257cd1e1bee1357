//! Artifacts that are built once per machine: complete or absent, however many checkouts request them concurrently.

use std::{
    fs::{self, File, TryLockError},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};

/// Returns a folder of the cache, `<cache>/<key>/bin/<program>…`, and builds it if it is missing.
///
/// `build` receives a folder beside the final one and must leave the programs in its `bin`. The folder is renamed only after
/// `build` has succeeded, so a killed build leaves nothing that could be mistaken for a result.
pub(crate) fn install(
    cache: &Path,
    key: &str,
    programs: &[&str],
    build: impl FnOnce(&Path) -> Result<()>,
) -> Result<PathBuf> {
    let bin = cache.join(key).join("bin");
    let whole = |bin: &Path| programs.iter().all(|program| bin.join(program).is_file());
    if whole(&bin) {
        return Ok(bin);
    }
    let waiting = format!("{key}: another checkout is building it; waiting for that");
    let _lock = lock(&cache.join("locks").join(format!("{key}.lock")), &waiting)?;
    if whole(&bin) {
        return Ok(bin);
    }
    let part = cache.join(format!("{key}.part"));
    remove(&part)?;
    fs::create_dir_all(&part).with_context(|| format!("`{}` cannot be made", part.display()))?;
    build(&part)?;
    if !whole(&part.join("bin")) {
        bail!("{key}: the build ended well, but did not leave all of {programs:?}");
    }
    remove(&cache.join(key))?;
    fs::rename(&part, cache.join(key))
        .with_context(|| format!("{key}: cannot be moved into place"))?;
    Ok(bin)
}

/// Acquires a lock that lasts as long as the returned file; prints `waiting` while another process holds it.
pub(crate) fn lock(path: &Path, waiting: &str) -> Result<File> {
    let parent = path.parent().context("a lock stands in a folder")?;
    fs::create_dir_all(parent).with_context(|| format!("`{}` cannot be made", parent.display()))?;
    let file = File::options().create(true).append(true).open(path);
    let file = file.with_context(|| format!("`{}` cannot be written", path.display()))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            eprintln!("{waiting} ({})", path.display());
            file.lock()?;
        }
        Err(TryLockError::Error(error)) => return Err(error.into()),
    }
    Ok(file)
}

/// Removes a folder with its content; a missing folder is no error.
pub(crate) fn remove(dir: &Path) -> Result<()> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("`{}` cannot be removed", dir.display()))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leave(part: &Path, program: &str) -> Result<()> {
        fs::create_dir_all(part.join("bin"))?;
        Ok(fs::write(part.join("bin").join(program), "x")?)
    }

    #[test]
    fn a_failed_build_leaves_nothing_and_the_next_one_starts_afresh() {
        let cache = tempfile::tempdir().expect("a temporary folder");
        let failed = install(cache.path(), "it-1", &["it"], |part| {
            leave(part, "half")?;
            bail!("no luck")
        });
        assert_eq!(failed.expect_err("the build failed").to_string(), "no luck");
        assert!(!cache.path().join("it-1").exists());

        let bin = install(cache.path(), "it-1", &["it"], |part| leave(part, "it"));
        let bin = bin.expect("the build succeeded");
        assert!(bin.join("it").is_file());
        assert!(!bin.join("half").exists());
    }

    #[test]
    fn what_is_there_is_not_built_again_and_what_is_incomplete_is() {
        let cache = tempfile::tempdir().expect("a temporary folder");
        leave(&cache.path().join("it-1"), "it").expect("planted");
        install(cache.path(), "it-1", &["it"], |_| bail!("built again")).expect("it is there");
        let incomplete = install(cache.path(), "it-1", &["it", "and"], |part| leave(part, "it"));
        let words = incomplete.expect_err("`and` is missing").to_string();
        assert_eq!(words, r#"it-1: the build ended well, but did not leave all of ["it", "and"]"#);
    }

    #[test]
    fn two_at_once_build_once() {
        let cache = tempfile::tempdir().expect("a temporary folder");
        let builds = std::sync::atomic::AtomicU32::new(0);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    install(cache.path(), "it-1", &["it"], |part| {
                        builds.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                        leave(part, "it")
                    })
                    .expect("one of them builds it")
                });
            }
        });
        assert_eq!(builds.into_inner(), 1);
    }
}
