//! What the files hold that a trigger names.
//!
//! Deliberately absent: reading them. Who has a disk does that, or says that there is none.

use std::collections::BTreeMap;

use crate::document::FileRef;

/// What the files of a plan hold: who runs it reads those of [`Plan::files`](crate::Plan::files).
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Files(BTreeMap<(String, String), Vec<u8>>);

impl Files {
    /// Keeps what a file holds.
    pub fn insert(&mut self, file: &FileRef, content: Vec<u8>) {
        self.0.insert(key(file), content);
    }

    pub(crate) fn get(&self, file: &FileRef) -> Option<&[u8]> {
        self.0.get(&key(file)).map(Vec::as_slice)
    }
}

/// The same path in another document may be another file.
fn key(file: &FileRef) -> (String, String) {
    (file.place.file.clone(), file.path.clone())
}

/// Only names: any of them may hold a key.
impl std::fmt::Debug for Files {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys().map(|(_, path)| path)).finish()
    }
}
