//! A small file system of its own, for what a disk may do. Mounting needs root: without it these faults fail and say so.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

/// A file system in memory, of a certain size, until it is dropped.
#[derive(Debug)]
pub(super) struct Mount {
    path: PathBuf,
    _folder: TempDir,
}

impl Mount {
    /// One of so many bytes.
    pub(super) fn new(bytes: u64) -> Result<Self> {
        let folder = TempDir::new()?;
        let path = folder.path().join("disk");
        std::fs::create_dir(&path)?;
        let size = format!("size={bytes}");
        run("mount", &["-t", "tmpfs", "-o", &size, "tmpfs"], &path)
            .context("a disk of its own needs root, and a system that lets it mount")?;
        Ok(Self { path, _folder: folder })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Gives it another size.
    pub(super) fn resize(&self, bytes: u64) -> Result<()> {
        run("mount", &["-o", &format!("remount,size={bytes}")], &self.path)
    }

    /// Makes it read-only; nobody may have it open for writing.
    pub(super) fn make_read_only(&self) -> Result<()> {
        run("mount", &["-o", "remount,ro"], &self.path)
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // What is left is a file system in memory that ends with the machine.
        drop(run("umount", &["--lazy"], &self.path));
    }
}

/// Forbids, or allows again, that files are made or removed in a folder: even root is bound by this one.
pub(super) fn set_fixed(folder: &Path, is_fixed: bool) -> Result<()> {
    run("chattr", &[if is_fixed { "+i" } else { "-i" }], folder)
}

fn run(program: &str, arguments: &[&str], path: &Path) -> Result<()> {
    let output = Command::new(program).args(arguments).arg(path).output();
    let output = output.with_context(|| format!("cannot run `{program}`"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "`{program} {arguments:?} {}`: {said}", path.display());
    Ok(())
}
