//! Sealing of batches in the journal: AES-256-GCM under a key that the caller passes in and the journal never holds.
//!
//! Each time a bus is opened it derives its own key, by HKDF from the first key and a fresh salt; so a counter is a nonce that is
//! never reused, however many batches there are. Salt and counter precede the sealed bytes. The prefix of the record, its kind,
//! number and trace id, is authenticated as associated data: a batch that is moved to another trace cannot be opened.
//! Deliberately absent: where keys come from.

use std::{collections::HashMap, fmt};

use ring::{
    aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey},
    hkdf::{HKDF_SHA256, Salt},
};

/// The size of a salt in bytes.
const SALT: usize = 16;
/// The size of a counter in bytes.
const COUNTER: usize = 8;
/// The bytes that sealing adds to a batch.
pub(crate) const SEAL_BYTES: usize = SALT + COUNTER + 16;
/// The HKDF info of the derived keys.
const PURPOSE: &[u8] = b"qualitytrace journal of spans";

/// Keys for a span journal: the first one seals, each of them opens. `Debug` does not show them.
#[derive(Clone)]
pub struct SealKeys {
    first: [u8; 32],
    others: Vec<[u8; 32]>,
    salt: [u8; SALT],
}

/// Seals batches with the derived key of this bus.
pub(crate) struct Sealer {
    salt: [u8; SALT],
    key: LessSafeKey,
    next: u64,
}

/// Opens batches that earlier buses sealed. It caches the derived keys, one for each time the bus was opened.
pub(crate) struct Opener {
    keys: SealKeys,
    known: HashMap<[u8; SALT], LessSafeKey>,
}

impl SealKeys {
    /// Creates a key ring; the caller generates a new random `salt` each time.
    pub fn new(first: [u8; 32], others: Vec<[u8; 32]>, salt: [u8; 16]) -> Self {
        Self { first, others, salt }
    }

    pub(crate) fn sealer(&self) -> Sealer {
        Sealer { salt: self.salt, key: derive(&self.first, &self.salt), next: 0 }
    }

    pub(crate) fn opener(&self) -> Opener {
        Opener { keys: self.clone(), known: HashMap::new() }
    }
}

impl Sealer {
    /// Appends these bytes to a record's prefix, sealed. It fails only for sizes that exceed any memory.
    pub(crate) fn seal(&mut self, record: &mut Vec<u8>, bytes: &[u8]) -> Option<()> {
        let (prefix, counter) = (record.len(), self.next.to_be_bytes());
        self.next += 1;
        record.reserve(bytes.len() + SEAL_BYTES);
        record.extend_from_slice(&self.salt);
        record.extend_from_slice(&counter);
        record.extend_from_slice(bytes);
        let (before, bytes) = record.split_at_mut(prefix + SALT + COUNTER);
        let aad = Aad::from(&before[..prefix]);
        let tag = self.key.seal_in_place_separate_tag(nonce(counter), aad, bytes).ok()?;
        record.extend_from_slice(tag.as_ref());
        Some(())
    }
}

impl Opener {
    /// Opens the bytes that were sealed behind this prefix; none where they are damaged, or their key is unknown.
    pub(crate) fn open(&mut self, prefix: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
        let (salt, rest) = sealed.split_first_chunk::<SALT>()?;
        let (counter, rest) = rest.split_first_chunk::<COUNTER>()?;
        let open = |key: &LessSafeKey| {
            let mut bytes = rest.to_vec();
            let size =
                key.open_in_place(nonce(*counter), Aad::from(prefix), &mut bytes).ok()?.len();
            bytes.truncate(size);
            Some(bytes)
        };
        if let Some(key) = self.known.get(salt) {
            return open(key);
        }
        let SealKeys { first, others, .. } = &self.keys;
        let mut keys = std::iter::once(first).chain(others).map(|root| derive(root, salt));
        let (key, bytes) = keys.find_map(|key| open(&key).map(|bytes| (key, bytes)))?;
        self.known.insert(*salt, key);
        Some(bytes)
    }
}

fn derive(root: &[u8; 32], salt: &[u8; SALT]) -> LessSafeKey {
    let key = Salt::new(HKDF_SHA256, salt).extract(root);
    // An AES-256 key is one block of SHA-256, and HKDF can expand to 255 blocks.
    let key = key.expand(&[PURPOSE], &AES_256_GCM).map(UnboundKey::from);
    LessSafeKey::new(key.expect("HKDF gives 32 bytes"))
}

fn nonce(counter: [u8; COUNTER]) -> Nonce {
    let mut nonce = [0; NONCE_LEN];
    nonce[NONCE_LEN - COUNTER..].copy_from_slice(&counter);
    Nonce::assume_unique_for_key(nonce)
}

impl fmt::Debug for SealKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SealKeys({})", 1 + self.others.len())
    }
}

impl fmt::Debug for Sealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sealer({})", self.next)
    }
}

#[cfg(test)]
mod tests {
    use super::{SEAL_BYTES, SealKeys};

    fn keys(first: u8, others: &[u8], salt: u8) -> SealKeys {
        SealKeys::new([first; 32], others.iter().map(|key| [*key; 32]).collect(), [salt; 16])
    }

    #[test]
    fn what_was_sealed_opens_with_its_key_behind_its_prefix_only() {
        let mut sealer = keys(1, &[], 7).sealer();
        let mut seal = |text: &str| {
            let mut record = b"prefix".to_vec();
            sealer.seal(&mut record, text.as_bytes()).expect("sealed");
            assert_eq!(record.len(), 6 + text.len() + SEAL_BYTES);
            record.split_off(6)
        };
        let (one, again) = (seal("a canary"), seal("a canary"));
        assert_ne!(one, again, "no nonce is used twice");
        assert!(!one.windows(6).any(|bytes| bytes == b"canary"));
        let open =
            |keys: SealKeys, prefix: &[u8], sealed: &[u8]| keys.opener().open(prefix, sealed);
        assert_eq!(open(keys(1, &[], 8), b"prefix", &one).as_deref(), Some(&b"a canary"[..]));
        assert_eq!(open(keys(2, &[1], 8), b"prefix", &one).as_deref(), Some(&b"a canary"[..]));
        assert_eq!(open(keys(2, &[], 7), b"prefix", &one), None, "another key");
        assert_eq!(open(keys(1, &[], 7), b"PREFIX", &one), None, "moved");
        for at in 0..one.len() {
            let mut damaged = one.clone();
            damaged[at] ^= 1;
            assert_eq!(open(keys(1, &[], 7), b"prefix", &damaged), None, "byte {at}");
        }
        assert_eq!(open(keys(1, &[], 7), b"prefix", &one[..20]), None, "cut");
        assert_eq!(format!("{:?}", keys(1, &[2], 3)), "SealKeys(2)");
    }
}
