//! The batches of a trace that were refused: each is a reason for a doubt until its sender has sent it again.
//!
//! A sender repeats what was refused byte by byte, as OTLP requests of it, to whichever server a balancer selects. So the content
//! identifies a batch. One that is split in another way is never recognized, and the doubt stays.

use std::collections::HashSet;

use ring::digest::{SHA256, digest};

/// The upper bound of refused batches of one trace that are missing; each further one counts as lost.
const MISSING_MAX: usize = 1024;

/// The size of a digest in bytes.
const DIGEST: usize = 16;

/// What identifies the content of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct BatchDigest([u8; DIGEST]);

/// What is known of the refused batches of a trace that had one.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    /// All batches that are here, so that each is hashed once.
    here: HashSet<BatchDigest>,
    /// The refused batches that are not here.
    missing: HashSet<BatchDigest>,
}

impl BatchDigest {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        let hash = digest(&SHA256, bytes);
        let hash = hash.as_ref().first_chunk().expect("SHA-256 is longer");
        Self(*hash)
    }

    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl Refusals {
    /// Creates an empty list for a trace with these batches.
    pub(crate) fn new<'a>(batches: impl Iterator<Item = &'a [u8]>) -> Self {
        Self { here: batches.map(BatchDigest::of).collect(), missing: HashSet::new() }
    }

    /// Notes a refused batch, unless it is here; false if too many are missing.
    pub(crate) fn refuse(&mut self, batch: BatchDigest) -> bool {
        if self.here.contains(&batch) || self.missing.contains(&batch) {
            return true;
        }
        self.missing.len() < MISSING_MAX && self.missing.insert(batch)
    }

    /// Notes a batch that is here.
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        let batch = BatchDigest::of(bytes);
        self.missing.remove(&batch);
        self.here.insert(batch);
    }

    /// Returns the number of refused batches that are not here.
    pub(crate) fn missing(&self) -> u64 {
        self.missing.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::{BatchDigest, MISSING_MAX, Refusals};

    #[test]
    fn a_refused_batch_is_missing_until_it_is_here() {
        let mut refusals = Refusals::new([&b"a"[..]].into_iter());
        let mut refuse = |text: &[u8]| {
            assert!(refusals.refuse(BatchDigest::of(text)));
            refusals.missing()
        };
        assert_eq!(refuse(b"a"), 0, "it was stored, though its sender does not know it");
        assert_eq!([refuse(b"b"), refuse(b"c"), refuse(b"b")], [1, 2, 2], "each counts once");
        refusals.add(b"d");
        assert_eq!(refusals.missing(), 2, "another one is no repetition");
        refusals.add(b"b");
        assert_eq!(refusals.missing(), 1);
        assert!(refusals.refuse(BatchDigest::of(b"b")));
        assert_eq!(refusals.missing(), 1, "the refusal comes behind the repetition");
    }

    #[test]
    fn what_exceeds_the_bound_is_no_missing_batch() {
        let mut refusals = Refusals::default();
        let refuse = |number: usize| BatchDigest::of(&number.to_be_bytes());
        assert!((0..MISSING_MAX).all(|number| refusals.refuse(refuse(number))));
        assert!(!refusals.refuse(refuse(MISSING_MAX)));
        assert!(refusals.refuse(refuse(0)), "it is known");
        assert_eq!(refusals.missing(), MISSING_MAX as u64);
    }
}
