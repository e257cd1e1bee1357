//! Golden files: texts, or bytes, that a test compares with files beside it.
//!
//! If a file differs, the comparison writes a `.proposed` file beside it. `cargo xtask accept` moves the proposals over
//! the golden files, once a person has read the difference. A file beside the compared ones that no case was compared
//! with is a complaint too: it is a leftover of a removed case. For tests only. Deliberately absent: a switch that
//! rewrites files during a test, since a test that is configured to agree cannot fail.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

/// Compares texts with files: one `Golden` compares all files of a folder that have the same extension.
/// The test MUST call [`Golden::finish`]: only that call fails.
#[derive(Debug, Default)]
#[must_use = "nothing fails before `finish`"]
pub struct Golden {
    compared: BTreeSet<PathBuf>,
    complaints: Vec<String>,
}

impl Golden {
    /// Compares `found` with the content of the file.
    pub fn compare(&mut self, file: &Path, found: &str) {
        self.compare_as(file, found.as_bytes(), found);
    }

    /// Compares `found` with the content of a file that is no text.
    pub fn compare_bytes(&mut self, file: &Path, found: &[u8]) {
        self.compare_as(file, found, &format!("{} bytes", found.len()));
    }

    /// Compares bytes, which a complaint shows as this text.
    fn compare_as(&mut self, file: &Path, found: &[u8], shown: &str) {
        self.compared.insert(file.to_owned());
        let proposed = proposal(file);
        if fs::read(file).is_ok_and(|expected| expected == found) {
            // The proposal of an earlier failure is obsolete.
            let _absent = fs::remove_file(proposed);
            return;
        }
        let written = match fs::write(&proposed, found) {
            Ok(()) => {
                "read the .proposed beside it, and if it is meant, `cargo xtask accept`".to_owned()
            }
            Err(error) => format!("and no proposal can be written: {error}"),
        };
        self.complaints.push(format!("{} differs; {written}:\n{shown}", file.display()));
    }

    /// Fails if a file differed, if one of the folders holds a file with the extension of a compared one that was not
    /// compared itself, or if fewer than `least` files were compared.
    pub fn finish(self, least: usize) {
        assert!(self.complaints.is_empty(), "{}", self.complaints.join("\n"));
        let leftovers = self.leftovers();
        assert!(leftovers.is_empty(), "no case is left for these, remove them: {leftovers:?}");
        let compared = self.compared.len();
        assert!(compared >= least, "{compared} files were compared, not {least}");
    }

    /// Fails if a file differed. For files in a folder with other files that belong to no case.
    pub fn finish_among_others(self) {
        assert!(self.complaints.is_empty(), "{}", self.complaints.join("\n"));
    }

    fn leftovers(&self) -> BTreeSet<PathBuf> {
        let kinds: BTreeSet<_> = self
            .compared
            .iter()
            .filter_map(|file| Some((file.parent()?, file.extension()?.to_str()?)))
            .collect();
        let all = kinds.into_iter().flat_map(|(folder, extension)| files(folder, &[extension]));
        all.filter(|file| !self.compared.contains(file)).collect()
    }
}

/// Returns the files of a folder that have one of these extensions, sorted.
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

    #[test]
    fn bytes_that_are_no_text_are_compared() {
        let folder = tempfile::TempDir::new().expect("a folder");
        let file = folder.path().join("a.bin");
        let compared = |found: &[u8]| {
            let mut golden = Golden::default();
            golden.compare_bytes(&file, found);
            golden
        };
        fs::write(&file, [0xff, 0]).expect("written");
        compared(&[0xff, 0]).finish(1);
        assert!(panic::catch_unwind(|| compared(&[0xff, 1]).finish(1)).is_err(), "it fails");
        assert_eq!(fs::read(folder.path().join("a.bin.proposed")).expect("proposed"), [0xff, 1]);
    }

    #[test]
    fn a_file_without_a_case_fails() {
        let folder = tempfile::TempDir::new().expect("a folder");
        for name in ["a.txt", "a.yaml", "b.txt.proposed"] {
            fs::write(folder.path().join(name), name).expect("written");
        }
        let compared = || {
            let mut golden = Golden::default();
            golden.compare(&folder.path().join("a.txt"), "a.txt");
            golden
        };
        compared().finish(1);
        fs::write(folder.path().join("gone.txt"), "").expect("written");
        let failure = panic::catch_unwind(|| compared().finish(1)).expect_err("it fails");
        let message = failure.downcast_ref::<String>().expect("a message");
        assert!(message.contains("gone.txt") && !message.contains("a.txt"), "{message}");
    }
}
