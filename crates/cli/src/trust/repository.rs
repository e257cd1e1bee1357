//! The folder that a document belongs to: its repository, and what lies outside of it.

use std::path::{Component, Path, PathBuf};

/// The folder that a document came with.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Repository(PathBuf);

impl Repository {
    /// Returns the repository of a document; without one the working folder, or that of the document if it is elsewhere.
    pub(super) fn of(document: &Path) -> Self {
        let document = resolved(document);
        let folder = document.parent().unwrap_or(Path::new("/"));
        if let Some(root) = folder.ancestors().find(|above| above.join(".git").exists()) {
            return Self(root.to_owned());
        }
        let here = resolved(Path::new("."));
        Self(if folder.starts_with(&here) { here } else { folder.to_owned() })
    }

    pub(super) fn folder(&self) -> &Path {
        &self.0
    }

    /// Returns where a path leads, links included, if that is not in this folder.
    pub(super) fn outside(&self, path: &Path) -> Option<PathBuf> {
        let path = resolved(path);
        (!path.starts_with(&self.0)).then_some(path)
    }
}

/// Returns an absolute path without links; of a file that does not exist as far as its folders do.
fn resolved(path: &Path) -> PathBuf {
    if let Ok(path) = path.canonicalize() {
        return path;
    }
    let mut clean = Path::new(".").canonicalize().unwrap_or_default();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(clean.pop()),
            Component::CurDir => {}
            part => {
                clean.push(part);
                clean = clean.canonicalize().unwrap_or(clean);
            }
        }
    }
    clean
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use tempfile::TempDir;

    use super::Repository;

    #[test]
    fn a_repository_ends_at_its_root() {
        let folder = TempDir::new().expect("a folder");
        let root = folder.path().canonicalize().expect("it is there").join("shop");
        fs::create_dir_all(root.join("tests/below")).expect("made");
        fs::create_dir(root.join(".git")).expect("made");
        symlink("/etc", root.join("tests/link")).expect("made");
        symlink("../data", root.join("tests/within")).expect("made");
        let repository = Repository::of(&root.join("tests/below/test.yaml"));
        assert_eq!(repository.folder(), root);
        for (path, outside) in [
            ("tests/body.json", None),
            ("tests/../body.json", None),
            ("tests/within/body.json", None),
            ("tests/../../secret", Some(root.with_file_name("secret"))),
            ("tests/link/passwd", Some("/etc/passwd".into())),
            ("tests/link/not-there/../shadow", Some("/etc/shadow".into())),
            ("/etc/passwd", Some("/etc/passwd".into())),
        ] {
            assert_eq!(repository.outside(&root.join(path)), outside, "{path}");
        }
    }

    #[test]
    fn a_document_without_a_repository_has_its_folder() {
        let folder = TempDir::new().expect("a folder");
        let root = folder.path().canonicalize().expect("it is there");
        let repository = Repository::of(&root.join("tests/test.yaml"));
        assert_eq!(repository.folder(), root.join("tests"));
        assert_eq!(repository.outside(&root.join("body")), Some(root.join("body")));
    }
}
