//! Sealing of secrets: AES-256-GCM under a key that the configuration passes in and the database never holds.
//!
//! A sealed text names its key, so that keys can be rotated: the first key of the ring seals, every key opens. A sealed text
//! opens only under the id that it was sealed with: a row that is copied to another location cannot be opened. Deliberately
//! absent: where keys come from.

use std::{fmt, sync::Arc};

use model::{DocumentKind, Project, TestId, World};
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};

use crate::DbError;

/// The first byte of a sealed text: the version of its layout.
const LAYOUT: u8 = 1;

/// Keys for secrets. `Debug` does not show them.
#[derive(Clone)]
pub struct SecretKeys {
    keys: Vec<(String, Arc<LessSafeKey>)>,
    world: Option<World>,
}

/// The identity of a sealed document, which is authenticated as associated data.
pub(crate) struct SealedDocumentId<'a> {
    pub(crate) project: &'a Project,
    pub(crate) kind: DocumentKind,
    pub(crate) id: &'a TestId,
    pub(crate) version: i32,
}

impl SecretKeys {
    /// Creates a ring of named keys. The name precedes each text that its key seals; the first key seals. `world` provides the
    /// random numbers.
    pub fn new<'a>(keys: impl IntoIterator<Item = (&'a str, &'a [u8; 32])>, world: World) -> Self {
        let keys = keys.into_iter().map(|(name, bytes)| (name.to_owned(), key(bytes))).collect();
        Self { keys, world: Some(world) }
    }

    /// A ring without keys: nothing can be sealed.
    pub fn none() -> Self {
        Self { keys: Vec::new(), world: None }
    }

    /// Seals a text.
    pub(crate) fn seal(
        &self,
        text: &str,
        place: &SealedDocumentId<'_>,
    ) -> Result<Vec<u8>, DbError> {
        self.seal_bytes(text.as_bytes(), &place.bytes(), || place.what())?
            .ok_or(DbError::NoSecretKey { kind: place.kind })
    }

    /// Opens a text that was sealed with this identity.
    pub(crate) fn open(
        &self,
        sealed: &[u8],
        place: &SealedDocumentId<'_>,
    ) -> Result<String, DbError> {
        let text = self
            .open_bytes(sealed, &place.bytes(), || place.what())?
            .ok_or_else(|| DbError::LostSecretKey { kind: place.kind, id: place.id.clone() })?;
        String::from_utf8(text).map_err(|error| DbError::corrupt(place.what(), error))
    }

    /// Seals bytes with associated data; none where there is no key.
    pub(crate) fn seal_bytes(
        &self,
        bytes: &[u8],
        place: &[u8],
        what: impl Fn() -> String,
    ) -> Result<Option<Vec<u8>>, DbError> {
        let (Some((name, key)), Some(world)) = (self.keys.first(), self.world) else {
            return Ok(None);
        };
        let size = u8::try_from(name.len()).map_err(|_| {
            DbError::corrupt(format!("the key `{name}`"), "its name is longer than 255 bytes")
        })?;
        let nonce: [u8; NONCE_LEN] = world.random();
        let mut sealed = [&[LAYOUT, size][..], name.as_bytes(), &nonce, bytes].concat();
        let begin = sealed.len() - bytes.len();
        let tag = key
            .seal_in_place_separate_tag(
                Nonce::assume_unique_for_key(nonce),
                Aad::from(place),
                &mut sealed[begin..],
            )
            .map_err(|_| DbError::corrupt(what(), "it is too large to seal"))?;
        sealed.extend_from_slice(tag.as_ref());
        Ok(Some(sealed))
    }

    /// Opens bytes that were sealed with this associated data; none where their key is not in the ring.
    pub(crate) fn open_bytes(
        &self,
        sealed: &[u8],
        place: &[u8],
        what: impl Fn() -> String,
    ) -> Result<Option<Vec<u8>>, DbError> {
        let parts = sealed.split_first_chunk().and_then(|([layout, size], rest)| {
            let (name, rest) = rest.split_at_checked(usize::from(*size))?;
            let (nonce, rest) = rest.split_first_chunk::<NONCE_LEN>()?;
            (*layout == LAYOUT).then_some((name, *nonce, rest))
        });
        let (name, nonce, rest) =
            parts.ok_or_else(|| DbError::corrupt(what(), "it is not sealed as it should be"))?;
        let key = self.keys.iter().find(|(known, _)| known.as_bytes() == name);
        let Some((_, key)) = key else { return Ok(None) };
        let mut rest = rest.to_vec();
        let nonce = Nonce::assume_unique_for_key(nonce);
        let size = key
            .open_in_place(nonce, Aad::from(place), &mut rest)
            .map_err(|_| {
                DbError::corrupt(what(), "it was changed, or moved here from another place")
            })?
            .len();
        rest.truncate(size);
        Ok(Some(rest))
    }
}

impl SealedDocumentId<'_> {
    fn what(&self) -> String {
        format!("the {} `{}`", self.kind, self.id)
    }

    /// Encodes the identity. None of its parts contains `/`.
    fn bytes(&self) -> Vec<u8> {
        let Self { project, kind, id, version } = self;
        // Sealed texts stay bound to the name that their kind had when they were sealed.
        let kind = match kind {
            DocumentKind::TraceStore => "store",
            other => other.as_str(),
        };
        format!("{}/{}/{}/{version}", project.as_str(), kind, id.as_str()).into_bytes()
    }
}

impl fmt::Debug for SecretKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretKeys({})", self.keys.len())
    }
}

fn key(bytes: &[u8; 32]) -> Arc<LessSafeKey> {
    // Any 32 bytes are a valid key.
    let key = UnboundKey::new(&AES_256_GCM, bytes).expect("a key of AES-256 has 32 bytes");
    Arc::new(LessSafeKey::new(key))
}

#[cfg(test)]
mod tests {
    use model::{DocumentKind, Project, TestId, Timestamp, World};
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    use super::{SealedDocumentId, SecretKeys};
    use crate::DbError;

    const WORLD: World = World::new(|| Timestamp::from_nanos(1), || [9; 32]);

    fn place<'a>(project: &'a Project, id: &'a TestId, version: i32) -> SealedDocumentId<'a> {
        SealedDocumentId { project, kind: DocumentKind::VariableSet, id, version }
    }

    #[test]
    fn what_was_sealed_opens_with_its_key_at_its_place_only() {
        let (old, new) = (("old", &[1; 32]), ("new", &[2; 32]));
        let ring =
            |keys: &[(&'static str, &'static [u8; 32])]| SecretKeys::new(keys.to_vec(), WORLD);
        let (project, id) = (Project::default(), "shop".parse().expect("an id"));
        let here = place(&project, &id, 3);
        let sealed = ring(&[old]).seal("hunter2", &here).expect("sealed");
        assert!(!sealed.windows(7).any(|bytes| bytes == b"hunter2"));
        assert_eq!(ring(&[new, old]).open(&sealed, &here).expect("opened"), "hunter2");
        let lost = ring(&[new]).open(&sealed, &here).expect_err("the key is gone");
        assert!(matches!(lost, DbError::LostSecretKey { .. }), "{lost}");
        let moved = ring(&[old]).open(&sealed, &place(&project, &id, 4)).expect_err("moved");
        assert!(matches!(moved, DbError::Corrupt { .. }), "{moved}");
        let none = SecretKeys::none().seal("x", &here).expect_err("no key");
        assert!(none.to_string().contains("secrets.keys"), "{none}");
        assert_eq!(format!("{:?}", ring(&[old, new])), "SecretKeys(2)");
    }

    proptest! {
        #[test]
        fn any_text_comes_back_and_no_other_bytes_open(text in ".*", at in any::<u16>()) {
            let keys = SecretKeys::new([("one", &[7; 32])], WORLD);
            let (project, id) = (Project::default(), "shop".parse().expect("an id"));
            let here = place(&project, &id, 1);
            let mut sealed = keys.seal(&text, &here).expect("sealed");
            prop_assert_eq!(keys.open(&sealed, &here).expect("opened"), text);
            let at = usize::from(at) % sealed.len();
            sealed[at] ^= 1;
            prop_assert!(keys.open(&sealed, &here).is_err());
        }
    }
}
