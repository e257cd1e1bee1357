//! An object: keys and values in document order, each key once.

use super::Json;

/// An object. If a key is repeated, the last value counts, as in nearly every JSON parser.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Object {
    entries: Vec<(String, Json)>,
    /// The indexes of the entries, sorted by key.
    by_key: Vec<usize>,
}

impl Object {
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &Json)> {
        self.entries.iter().map(|(key, value)| (key.as_str(), value))
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Json> {
        let found = self.by_key.binary_search_by(|&entry| self.entries[entry].0.as_str().cmp(key));
        found.ok().map(|found| &self.entries[self.by_key[found]].1)
    }
}

impl FromIterator<(String, Json)> for Object {
    fn from_iter<I: IntoIterator<Item = (String, Json)>>(entries: I) -> Self {
        let mut entries: Vec<_> = entries.into_iter().collect();
        let mut by_key = sorted(&entries);
        let is_same = |pair: &[usize]| entries[pair[0]].0 == entries[pair[1]].0;
        if by_key.windows(2).any(is_same) {
            // The sort is stable, so only the last of equal keys remains.
            let mut is_last = vec![true; entries.len()];
            for pair in by_key.windows(2).filter(|pair| is_same(pair)) {
                is_last[pair[0]] = false;
            }
            let mut is_last = is_last.into_iter();
            entries.retain(|_| is_last.next().unwrap_or(true));
            by_key = sorted(&entries);
        }
        Self { entries, by_key }
    }
}

fn sorted(entries: &[(String, Json)]) -> Vec<usize> {
    let mut by_key: Vec<_> = (0..entries.len()).collect();
    by_key.sort_by(|&a, &b| entries[a].0.cmp(&entries[b].0));
    by_key
}
