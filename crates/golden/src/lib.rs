//! Golden files: texts that a test compares with files beside it.
//!
//! A file that says something else gets a `.proposed` beside it; `cargo xtask accept` moves those over, once a
//! person has read the difference. For tests only. Deliberately absent: a switch that rewrites files while
//! testing, since a test that is told to agree cannot fail.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Compares texts with files. [`Golden::finish`] MUST be called: it is what fails.
#[derive(Debug, Default)]
#[must_use = "nothing fails before `finish`"]
pub struct Golden {
    compared: usize,
    complaints: Vec<String>,
}

impl Golden {
    /// Compares `found` with what the file says.
    pub fn compare(&mut self, file: &Path, found: &str) {
        self.compared += 1;
        let proposed = proposal(file);
        if fs::read_to_string(file).is_ok_and(|expected| expected == found) {
            // What an earlier failure proposed is settled.
            let _absent = fs::remove_file(proposed);
            return;
        }
        let written = match fs::write(&proposed, found) {
            Ok(()) => {
                "read the .proposed beside it, and if it is meant, `cargo xtask accept`".to_owned()
            }
            Err(error) => format!("and no proposal can be written: {error}"),
        };
        self.complaints
            .push(format!("{} says something else; {written}:\n{found}", file.display()));
    }

    /// Fails if a file said something else, or if fewer than `least` were compared.
    pub fn finish(self, least: usize) {
        assert!(self.complaints.is_empty(), "{}", self.complaints.join("\n"));
        assert!(self.compared >= least, "{} files were compared, not {least}", self.compared);
    }
}

/// The files of a folder that end in one of these, sorted.
pub fn files(folder: &Path, extensions: &[&str]) -> Vec<PathBuf> {
    let mut files: Vec<_> = fs::read_dir(folder)
        .expect("the golden folder is there")
        .map(|entry| entry.expect("a folder can be listed").path())
        .filter(|path| {
            path.extension().is_some_and(|end| extensions.iter().any(|known| end == *known))
        })
        .collect();
    files.sort();
    files
}

fn proposal(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".proposed");
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use std::{fs, panic};

    use super::Golden;

    #[test]
    fn what_differs_fails_and_is_proposed_until_it_fits() {
        let folder = tempfile::TempDir::new().expect("a folder");
        let file = folder.path().join("a.txt");
        fs::write(&file, "old").expect("written");
        let mut golden = Golden::default();
        golden.compare(&file, "new");
        assert_eq!(
            fs::read_to_string(folder.path().join("a.txt.proposed")).expect("proposed"),
            "new"
        );
        assert!(panic::catch_unwind(|| golden.finish(1)).is_err(), "it fails");

        let mut golden = Golden::default();
        golden.compare(&file, "old");
        assert!(!folder.path().join("a.txt.proposed").exists());
        golden.finish(1);
        assert!(
            panic::catch_unwind(|| Golden::default().finish(1)).is_err(),
            "nothing was compared"
        );
    }
}
