//! Trace ids that identify themselves.
//!
//! A minted id is 16 bytes: 5 of tag, 4 of epoch seconds, 7 random. The tag is SipHash-2-4 over the other 11
//! under the deployment's key, so that any replica tells from the id alone whether a span belongs to a run.
//! The tag proves who minted, not who sent.
//!
//! Deliberately absent: the clock and the dice; both are handed in.

use std::{fmt, hash::Hasher, str::FromStr};

use siphasher::sip::SipHasher24;
use thiserror::Error;

use crate::{Fault, Faulty, Timestamp, TraceId};

const TAG: usize = 5;
const EPOCH: usize = 4;

/// A deployment's 128-bit key. It prints as `***`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Key([u8; 16]);

/// The keys of a deployment: ids are minted with the first and verified with all, so that keys rotate
/// without a gap.
#[derive(Clone, Debug)]
pub struct KeyRing {
    first: Key,
    others: Vec<Key>,
}

/// A text that is not a key. The text itself is a secret and is not repeated.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("an id key is 32 hexadecimal digits")]
pub struct InvalidKey;

impl Faulty for InvalidKey {
    fn fault(&self) -> Fault {
        Fault::Invalid
    }
}

impl Key {
    /// The key in these bytes.
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The key's bytes, for the one place that stores them.
    pub fn expose(&self) -> &[u8; 16] {
        &self.0
    }

    fn tag(&self, rest: &[u8]) -> [u8; TAG] {
        let mut hasher = SipHasher24::new_with_key(&self.0);
        hasher.write(rest);
        let mut tag = [0; TAG];
        tag.copy_from_slice(&hasher.finish().to_le_bytes()[..TAG]);
        tag
    }
}

impl KeyRing {
    /// A ring that mints with `first` and verifies with `first` and `others`.
    pub fn new(first: Key, others: Vec<Key>) -> Self {
        Self { first, others }
    }

    /// Mints an id for a run that starts at `now`.
    pub fn mint(&self, now: Timestamp, random: [u8; 7]) -> TraceId {
        let mut bytes = [0; 16];
        // The epoch wraps in 2106; only differences of it are ever looked at.
        let epoch = (now.as_secs() & u64::from(u32::MAX)) as u32;
        bytes[TAG..TAG + EPOCH].copy_from_slice(&epoch.to_be_bytes());
        bytes[TAG + EPOCH..].copy_from_slice(&random);
        let tag = self.first.tag(&bytes[TAG..]);
        bytes[..TAG].copy_from_slice(&tag);
        match TraceId::from_bytes(bytes) {
            Some(id) => id,
            // All zero is no id. One draw in 2^128 comes here, and a different draw is as good.
            None => self.mint(now, [1; 7]),
        }
    }

    /// Tells when `id` was minted, in epoch seconds, if one of these keys minted it.
    ///
    /// A foreign id passes with chance 2^-40 per key.
    pub fn verify(&self, id: &TraceId) -> Option<u32> {
        let (tag, rest) = id.as_bytes().split_at(TAG);
        let ours = std::iter::once(&self.first).chain(&self.others).any(|key| key.tag(rest) == tag);
        let epoch = rest.first_chunk::<EPOCH>()?;
        ours.then(|| u32::from_be_bytes(*epoch))
    }
}

impl FromStr for Key {
    type Err = InvalidKey;

    fn from_str(text: &str) -> Result<Self, InvalidKey> {
        if text.len() != 32 || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(InvalidKey);
        }
        u128::from_str_radix(text, 16).map(|key| Self(key.to_be_bytes())).map_err(|_| InvalidKey)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    use super::{Key, KeyRing};
    use crate::{Timestamp, TraceId};

    fn ring(first: u8, others: &[u8]) -> KeyRing {
        let key = |byte: &u8| Key::from_bytes([*byte; 16]);
        KeyRing::new(key(&first), others.iter().map(key).collect())
    }

    #[test]
    fn the_layout_is_fixed() {
        let id = ring(7, &[]).mint(Timestamp::from_nanos(0x0102_0304 * 1_000_000_000), [9; 7]);
        let bytes = id.as_bytes();
        assert_eq!(bytes[5..9], [1, 2, 3, 4], "epoch seconds, big endian");
        assert_eq!(bytes[9..], [9; 7], "random");
        assert_eq!(id.to_string(), "cb75e6b6100102030409090909090909", "computed apart");
    }

    #[test]
    fn keys_rotate_without_a_gap() {
        let id = ring(1, &[]).mint(Timestamp::from_nanos(0), [3; 7]);
        assert_eq!(ring(2, &[1]).verify(&id), Some(0));
        assert_eq!(ring(2, &[]).verify(&id), None);
    }

    #[test]
    fn a_key_never_prints() {
        let key: Key = "000102030405060708090a0b0c0d0e0f".parse().expect("a key");
        assert_eq!(format!("{key:?}"), "***");
        assert!("+".repeat(32).parse::<Key>().is_err());
    }

    proptest! {
        #[test]
        fn minted_ids_are_known_and_changed_ones_are_not(
            secs in 0..u64::from(u32::MAX), random in any::<[u8; 7]>(), at in 0usize..16, flip in 1u8..=255,
        ) {
            let ring = ring(5, &[]);
            let id = ring.mint(Timestamp::from_nanos(secs * 1_000_000_000), random);
            prop_assert_eq!(ring.verify(&id).map(u64::from), Some(secs));
            let mut bytes = *id.as_bytes();
            bytes[at] ^= flip;
            if let Some(changed) = TraceId::from_bytes(bytes) {
                prop_assert!(ring.verify(&changed).is_none());
            }
        }
    }
}
