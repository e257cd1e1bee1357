//! `ids.keys` and `secrets.keys`: keys that are not in the database. The first key of each list is used for new data, the others
//! still verify or decrypt older data, so that keys rotate without a gap.

use std::fmt;

use model::Key;
use source::{Fields, Item};

/// The keys with which trace ids are minted and verified; if empty, the server uses the key in the database.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ids {
    /// The keys: the first mints, all verify.
    pub keys: Vec<Key>,
}

/// The keys that encrypt variable sets, responses and spans on disk; without any, no variable set with secrets is stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Secrets {
    /// The keys: the first encrypts, all decrypt.
    pub keys: Vec<SecretKey>,
}

/// A key with the name that prefixes its ciphertexts.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretKey {
    /// The name.
    pub id: String,
    key: [u8; 32],
}

impl SecretKey {
    /// The maximum length of a name in bytes.
    pub const ID_BYTES_MAX: usize = 32;

    /// Returns a key with this name.
    pub fn new(id: impl Into<String>, key: [u8; 32]) -> Self {
        Self { id: id.into(), key }
    }

    /// Returns the key itself, for encryption.
    pub fn expose(&self) -> &[u8; 32] {
        &self.key
    }

    /// Parses `name:64 hexadecimal digits`.
    fn parse(text: &str) -> Option<Self> {
        let (id, digits) = text.split_once(':')?;
        let is_named = (1..=Self::ID_BYTES_MAX).contains(&id.len())
            && id.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'-' || it == b'_');
        if !is_named || digits.len() != 64 || !digits.bytes().all(|it| it.is_ascii_hexdigit()) {
            return None;
        }
        let mut key = [0; 32];
        for (at, byte) in key.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).ok()?;
        }
        Some(Self::new(id, key))
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:***", self.id)
    }
}

pub(super) fn ids(mut fields: Fields<'_>) -> Ids {
    let items = fields.list("keys").unwrap_or_default();
    fields.finish();
    let key = |item: &Item<'_>| {
        let key = item.string()?.parse().ok();
        if key.is_none() {
            item.misfit("32 hexadecimal digits, such as `openssl rand -hex 16` gives");
        }
        key
    };
    Ids { keys: items.iter().filter_map(key).collect() }
}

pub(super) fn secrets(mut fields: Fields<'_>) -> Secrets {
    let items = fields.list("keys").unwrap_or_default();
    fields.finish();
    let mut keys: Vec<SecretKey> = Vec::new();
    for item in &items {
        let Some(text) = item.string() else { continue };
        match SecretKey::parse(text) {
            Some(key) if keys.iter().any(|other| other.id == key.id) => {
                item.misfit("a key with a name of its own: two have this one");
            }
            Some(key) => keys.push(key),
            None => item.misfit(
                "a name, `:` and 64 hexadecimal digits, such as `openssl rand -hex 32` gives",
            ),
        }
    }
    Secrets { keys }
}
