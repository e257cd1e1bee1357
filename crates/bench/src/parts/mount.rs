//! A small file system for disk faults. Mounting needs root: without it what needs one fails with a message.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

/// A file system in memory, of a fixed size, until it is dropped.
#[derive(Debug)]
pub struct Mount {
    path: PathBuf,
    _folder: TempDir,
}

impl Mount {
    /// Mounts a file system of this size in bytes.
    pub fn new(bytes: u64) -> Result<Self> {
        let folder = TempDir::new()?;
        let path = folder.path().join("disk");
        std::fs::create_dir(&path)?;
        let size = format!("size={bytes}");
        run("mount", &["-t", "tmpfs", "-o", &size, "tmpfs"], &path)
            .context("a disk of its own needs root, and a system that lets it mount")?;
        Ok(Self { path, _folder: folder })
    }

    /// Returns the folder on which it is mounted.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Changes its size.
    pub(crate) fn resize(&self, bytes: u64) -> Result<()> {
        run("mount", &["-o", &format!("remount,size={bytes}")], &self.path)
    }

    /// Makes it read-only; no file may be open for writing.
    pub(crate) fn make_read_only(&self) -> Result<()> {
        run("mount", &["-o", "remount,ro"], &self.path)
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // If this fails, a file system in memory remains until the machine shuts down.
        drop(run("umount", &["--lazy"], &self.path));
    }
}

/// Forbids or allows the creation and removal of files in a folder: this applies even to root.
pub(crate) fn set_fixed(folder: &Path, is_fixed: bool) -> Result<()> {
    run("chattr", &[if is_fixed { "+i" } else { "-i" }], folder)
}

fn run(program: &str, arguments: &[&str], path: &Path) -> Result<()> {
    let output = Command::new(program).args(arguments).arg(path).output();
    let output = output.with_context(|| format!("cannot run `{program}`"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "`{program} {arguments:?} {}`: {said}", path.display());
    Ok(())
}
