//! The contents of the files that a trigger names.
//!
//! Deliberately absent: reading them from disk. The caller does that if it has a disk.

use std::collections::BTreeMap;

use crate::document::FileRef;

/// The file contents of a plan: the caller that runs the plan reads the files of [`Plan::files`](crate::Plan::files).
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Files(BTreeMap<(String, String), Vec<u8>>);

impl Files {
    /// Stores the content of a file.
    pub fn insert(&mut self, file: &FileRef, content: Vec<u8>) {
        self.0.insert(key(file), content);
    }

    pub(crate) fn get(&self, file: &FileRef) -> Option<&[u8]> {
        self.0.get(&key(file)).map(Vec::as_slice)
    }
}

/// Returns the key: the same path in another document may be another file.
fn key(file: &FileRef) -> (String, String) {
    (file.place.file.clone(), file.path.clone())
}

/// Prints only names: any file may contain a key.
impl std::fmt::Debug for Files {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys().map(|(_, path)| path)).finish()
    }
}
