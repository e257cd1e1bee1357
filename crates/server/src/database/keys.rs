//! The keys of trace ids, which are in the database.

use std::sync::{Arc, OnceLock};

use model::KeyRing;

/// The keys of trace ids, known once the database is open.
#[derive(Clone, Debug, Default)]
pub(crate) struct Keys(Arc<OnceLock<KeyRing>>);

impl Keys {
    /// Returns the keys, if they were read from the database.
    pub(crate) fn get(&self) -> Option<&KeyRing> {
        self.0.get()
    }

    /// Sets the keys. A second startup of the database finds the same keys, so the first ones stay.
    pub(crate) fn set(&self, keys: KeyRing) {
        self.0.get_or_init(|| keys);
    }

    /// Returns the keys, for tasks that begin when the database is open.
    pub(crate) fn of_open(&self) -> &KeyRing {
        self.get().expect("no work on a database that is not open")
    }
}

impl From<KeyRing> for Keys {
    fn from(keys: KeyRing) -> Self {
        Self(Arc::new(OnceLock::from(keys)))
    }
}
