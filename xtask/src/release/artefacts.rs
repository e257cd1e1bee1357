//! The files of a release and their names.

use std::path::PathBuf;

/// The files of one release, in one folder.
#[derive(Debug)]
pub(crate) struct Release {
    /// `<target folder>/release-kit/<version>`: everything that is published, and nothing else.
    pub(crate) folder: PathBuf,
    /// Such as `0.1.0`.
    pub(crate) version: String,
}

impl Release {
    /// Returns the path of a file of the release.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Returns the name of the archive for a target, without its ending; it is the name of the folder within it too.
    pub(crate) fn archive(&self, target: &str) -> String {
        format!("qualitytrace-{}-{target}", self.version)
    }
}
