//! Trace ids that identify themselves.
//!
//! A minted id has 16 bytes: 4 of tag, 4 of epoch seconds, 3 of the project's tag, 5 random. Where several servers share spans,
//! two of the random bytes are the slot of the worker that minted the id, masked by SipHash-2-4 over the seconds and the other
//! three: to all without the key they look random. The tag is SipHash-2-4 over the
//! other 12 under the deployment's key, so that any replica sees from the id alone whether a span belongs to a run. The
//! project's tag is SipHash-2-4 over the project, the seconds and the random bytes: a sender that may send for some projects
//! reaches only their ids, and an id does not reveal its project. The tags prove who minted the id, not who sent it.
//!
//! Deliberately absent: the clock and random numbers; the caller passes in both.

use std::{fmt, hash::Hasher, str::FromStr};

use siphasher::sip::SipHasher24;
use thiserror::Error;

use crate::{Fault, Faulty, Project, Timestamp, TraceId};

const TAG: usize = 4;
const EPOCH: usize = 4;
const PROJECT: usize = 3;
/// The number of random bytes of an id.
const RANDOM: usize = 5;
/// The number of bytes of a masked slot, the first ones of the random bytes.
const SLOT: usize = 2;
/// The offset of the random bytes.
const RANDOM_AT: usize = PROJECT_AT + PROJECT;
/// What precedes the input of a mask; no project's name begins with it.
const MASK: &[u8] = &[0xff];
/// The offset of the project's tag.
const PROJECT_AT: usize = TAG + EPOCH;

/// The number of a worker that reads spans: an id that the worker mints carries it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BusSlot(pub u16);

/// A deployment's 128-bit key. It prints as `***`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Key([u8; 16]);

/// The keys of a deployment: ids are minted with the first and verified with all, so that keys can be rotated without an
/// interruption.
#[derive(Clone, Debug)]
pub struct KeyRing {
    first: Key,
    others: Vec<Key>,
}

/// The error of a text that is not a key. The text itself is a secret, and the error does not repeat it.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("an id key is 32 hexadecimal digits")]
pub struct InvalidKey;

impl Faulty for InvalidKey {
    fn fault(&self) -> Fault {
        Fault::Invalid
    }
}

impl Key {
    /// Creates the key with these bytes.
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Returns the key's bytes, only for storing them.
    pub fn expose(&self) -> &[u8; 16] {
        &self.0
    }

    fn tag<const N: usize>(&self, parts: &[&[u8]]) -> [u8; N] {
        let mut hasher = SipHasher24::new_with_key(&self.0);
        parts.iter().for_each(|part| hasher.write(part));
        let mut tag = [0; N];
        tag.copy_from_slice(&hasher.finish().to_le_bytes()[..N]);
        tag
    }

    /// Computes the tag of a project in an id with this tail. A byte that no name contains terminates the name.
    fn project_tag(&self, project: &Project, bytes: &[u8; 16]) -> [u8; PROJECT] {
        let (epoch, random) = (&bytes[TAG..PROJECT_AT], &bytes[RANDOM_AT..]);
        self.tag(&[project.as_str().as_bytes(), &[0], epoch, random])
    }

    /// Computes the mask of the slot in an id with these seconds and random bytes.
    fn mask(&self, epoch: [u8; EPOCH], random: [u8; RANDOM - SLOT]) -> [u8; SLOT] {
        self.tag(&[MASK, &epoch, &random])
    }

    fn has_minted(&self, bytes: &[u8; 16]) -> bool {
        self.tag::<TAG>(&[&bytes[TAG..]]) == bytes[..TAG]
    }

    fn is_of(&self, project: &Project, bytes: &[u8; 16]) -> bool {
        self.has_minted(bytes) && self.project_tag(project, bytes) == bytes[PROJECT_AT..RANDOM_AT]
    }
}

impl KeyRing {
    /// Creates a ring that mints with `first` and verifies with `first` and `others`.
    pub fn new(first: Key, others: Vec<Key>) -> Self {
        Self { first, others }
    }

    /// Mints an id for a run of a project that starts at `now`.
    pub fn mint(&self, project: &Project, now: Timestamp, random: [u8; RANDOM]) -> TraceId {
        let mut bytes = [0; 16];
        bytes[TAG..PROJECT_AT].copy_from_slice(&epoch(now));
        bytes[RANDOM_AT..].copy_from_slice(&random);
        let tag = self.first.project_tag(project, &bytes);
        bytes[PROJECT_AT..RANDOM_AT].copy_from_slice(&tag);
        let tag = self.first.tag::<TAG>(&[&bytes[TAG..]]);
        bytes[..TAG].copy_from_slice(&tag);
        match TraceId::from_bytes(bytes) {
            Some(id) => id,
            // All zero is no valid id. One value in 2^128 leads here, and another random value is equally good.
            None => self.mint(project, now, [1; RANDOM]),
        }
    }

    /// Mints an id that carries the slot of a worker. The worker MUST NOT use the same `unique` bytes twice within a second.
    pub fn mint_for(
        &self,
        slot: BusSlot,
        project: &Project,
        now: Timestamp,
        unique: [u8; RANDOM - SLOT],
    ) -> TraceId {
        let [high, low] = self.first.mask(epoch(now), unique);
        let [slot_high, slot_low] = slot.0.to_be_bytes();
        let [a, b, c] = unique;
        self.mint(project, now, [high ^ slot_high, low ^ slot_low, a, b, c])
    }

    /// Returns the slot in an id that one of these keys minted; of an id that was minted without one, any slot.
    pub fn slot(&self, id: &TraceId) -> Option<BusSlot> {
        let bytes = id.as_bytes();
        let key = self.keys().find(|key| key.has_minted(bytes))?;
        let epoch = bytes[TAG..].first_chunk()?;
        let (masked, unique) = bytes[RANDOM_AT..].split_first_chunk::<SLOT>()?;
        let mask = key.mask(*epoch, *unique.first_chunk()?);
        Some(BusSlot(u16::from_be_bytes(*masked) ^ u16::from_be_bytes(mask)))
    }

    /// Returns when `id` was minted, in epoch seconds, if one of these keys minted it.
    ///
    /// An external id passes with a probability of 2^-32 per key.
    pub fn verify(&self, id: &TraceId) -> Option<u32> {
        let bytes = id.as_bytes();
        let epoch = bytes[TAG..].first_chunk::<EPOCH>()?;
        self.keys().any(|key| key.has_minted(bytes)).then(|| u32::from_be_bytes(*epoch))
    }

    /// Whether one of these keys minted `id` for a run of this project. An id of another one passes with a probability of
    /// 2^-24.
    pub fn is_of(&self, project: &Project, id: &TraceId) -> bool {
        self.keys().any(|key| key.is_of(project, id.as_bytes()))
    }

    fn keys(&self) -> impl Iterator<Item = &Key> {
        std::iter::once(&self.first).chain(&self.others)
    }
}

/// Returns the epoch seconds of an id. They wrap in 2106; only differences are ever compared.
fn epoch(now: Timestamp) -> [u8; EPOCH] {
    ((now.as_secs() & u64::from(u32::MAX)) as u32).to_be_bytes()
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

    use super::{BusSlot, Key, KeyRing};
    use crate::{Project, Timestamp, TraceId};

    fn ring(first: u8, others: &[u8]) -> KeyRing {
        let key = |byte: &u8| Key::from_bytes([*byte; 16]);
        KeyRing::new(key(&first), others.iter().map(key).collect())
    }

    #[test]
    fn the_layout_is_fixed() {
        let at = Timestamp::from_nanos(0x0102_0304 * 1_000_000_000);
        let id = ring(7, &[]).mint(&Project::default(), at, [9; 5]);
        let bytes = id.as_bytes();
        assert_eq!(bytes[4..8], [1, 2, 3, 4], "epoch seconds, big endian");
        assert_eq!(bytes[11..], [9; 5], "random");
        assert_eq!(id.to_string(), "3a659e610102030492b3ae0909090909", "computed apart");
    }

    #[test]
    fn keys_rotate_without_a_gap() {
        let project = Project::default();
        let id = ring(1, &[]).mint(&project, Timestamp::from_nanos(0), [3; 5]);
        assert_eq!(ring(2, &[1]).verify(&id), Some(0));
        assert!(ring(2, &[1]).is_of(&project, &id));
        assert_eq!(ring(2, &[]).verify(&id), None);
        assert!(!ring(2, &[]).is_of(&project, &id));
    }

    #[test]
    fn an_id_is_of_its_project_alone() {
        let ring = ring(1, &[]);
        let [alpha, beta]: [Project; 2] =
            ["alpha", "beta"].map(|name| name.parse().expect("a name"));
        for random in 0..100 {
            let id = ring.mint(&alpha, Timestamp::from_nanos(0), [random; 5]);
            assert!(ring.is_of(&alpha, &id));
            assert!(!ring.is_of(&beta, &id));
            assert!(ring.verify(&id).is_some());
        }
    }

    #[test]
    fn a_slot_is_read_with_the_key_alone_and_looks_random_without_it() {
        let (one, other) = (ring(1, &[]), ring(2, &[1]));
        let project = Project::default();
        let mut counts = [0_u32; 256];
        for number in 0..4096_u32 {
            let [_, a, b, c] = number.to_be_bytes();
            let id = one.mint_for(BusSlot(7), &project, Timestamp::from_nanos(0), [a, b, c]);
            assert_eq!((one.slot(&id), other.slot(&id)), (Some(BusSlot(7)), Some(BusSlot(7))));
            assert!(one.is_of(&project, &id));
            counts[usize::from(id.as_bytes()[11])] += 1;
        }
        assert!(counts.iter().all(|count| (1..64).contains(count)), "16 are expected of each");
        let id = ring(3, &[]).mint_for(BusSlot(7), &project, Timestamp::from_nanos(0), [1; 3]);
        assert_eq!(one.slot(&id), None, "a foreign id has none");
        let without = one.mint(&project, Timestamp::from_nanos(0), [3; 5]);
        assert!(one.slot(&without).is_some(), "and one without a slot has any");
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
            secs in 0..u64::from(u32::MAX), random in any::<[u8; 5]>(), at in 0usize..16, flip in 1u8..=255,
        ) {
            let ring = ring(5, &[]);
            let project = Project::default();
            let slot = BusSlot(u16::from_be_bytes([random[0], random[1]]));
            let [.., a, b, c] = random;
            let carrier = ring.mint_for(slot, &project, Timestamp::from_nanos(secs * 1_000_000_000), [a, b, c]);
            prop_assert_eq!(ring.slot(&carrier), Some(slot));
            prop_assert_eq!(ring.verify(&carrier).map(u64::from), Some(secs));
            let id = ring.mint(&project, Timestamp::from_nanos(secs * 1_000_000_000), random);
            prop_assert_eq!(ring.verify(&id).map(u64::from), Some(secs));
            let mut bytes = *id.as_bytes();
            bytes[at] ^= flip;
            if let Some(changed) = TraceId::from_bytes(bytes) {
                prop_assert!(ring.verify(&changed).is_none());
                prop_assert!(!ring.is_of(&project, &changed));
            }
        }
    }
}
