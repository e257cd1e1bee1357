//! `cargo xtask accept`: replaces the expected files of golden tests by the proposed ones.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

use crate::machine::Machine;

pub(crate) fn run(machine: &Machine) -> Result<()> {
    let mut moved = 0;
    for folder in ["crates", "deploy", "docs", "lib", "web/src"] {
        moved += accept(&machine.root.join(folder))?;
    }
    println!("{moved} proposals accepted; `git diff` shows what that changes");
    Ok(())
}

/// Moves every `x.proposed` below a folder over `x`, and counts them.
fn accept(folder: &Path) -> Result<usize> {
    let mut moved = 0;
    let mut pending = vec![folder.to_path_buf()];
    while let Some(folder) = pending.pop() {
        let entries =
            fs::read_dir(&folder).with_context(|| format!("cannot list `{}`", folder.display()))?;
        for entry in entries {
            let path = entry?.path();
            if path.is_dir() && !path.is_symlink() {
                pending.push(path);
            } else if path.extension().is_some_and(|end| end == "proposed") {
                let file: PathBuf = path.with_extension("");
                println!("{}", file.display());
                fs::rename(&path, file)?;
                moved += 1;
            }
        }
    }
    Ok(moved)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::accept;

    #[test]
    fn proposals_replace_their_files() {
        let folder = tempfile::TempDir::new().expect("a folder");
        let below = folder.path().join("a/tests/golden");
        fs::create_dir_all(&below).expect("folders");
        fs::write(below.join("x.txt"), "old").expect("written");
        fs::write(below.join("x.txt.proposed"), "new").expect("written");
        assert_eq!(accept(folder.path()).expect("accepted"), 1);
        assert_eq!(fs::read_to_string(below.join("x.txt")).expect("read"), "new");
        assert!(!below.join("x.txt.proposed").exists());
    }
}
