//! Tokens: random, shown once, stored as a hash.
//!
//! A token has 256 random bits, so a plain SHA-256 hides it: slow hashes protect secrets that can be guessed, and this one
//! cannot. Its prefix identifies it, so that secret scanners for repositories find it.

use std::net::IpAddr;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use db::{NewToken, PersonId, TokenKind};
use model::{Project, Role, Secret, Timestamp, TokenId, World};
use ring::digest;

use crate::config::is_token;

pub(crate) use crate::config::TOKEN_PREFIX as PREFIX;

/// The default lifetime of a token in days.
pub(crate) const DAYS: u16 = 90;
/// The maximum lifetime of a token in days.
pub(crate) const DAYS_MAX: u16 = 3660;
/// The maximum number of characters of a name.
pub(crate) const NAME_MAX: usize = 128;

/// The hash of a token, which is all that is stored of its text.
pub(crate) type Hash = [u8; 32];

/// The specification of a new token.
#[derive(Clone, Debug)]
pub(crate) struct TokenSpec {
    pub(crate) kind: TokenKind,
    pub(crate) name: String,
    pub(crate) role: Role,
    pub(crate) projects: Option<Vec<Project>>,
    pub(crate) seconds: u64,
    pub(crate) made_by: String,
    /// The person of a session.
    pub(crate) person: Option<PersonId>,
    /// The address that the session begins from.
    pub(crate) address: Option<IpAddr>,
}

/// Creates a token: returns the text to show, and the row to store.
pub(crate) fn make(wanted: TokenSpec, world: World) -> (Secret, NewToken) {
    let shown = format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(world.random::<32>()));
    let kept = row(digest_of(&shown), wanted, world);
    (Secret::new(shown), kept)
}

/// Returns the row to store for a token that exists; none if it has not the form of one.
pub(crate) fn keep(shown: &Secret, wanted: TokenSpec, world: World) -> Option<NewToken> {
    hash(shown.expose()).map(|hash| row(hash, wanted, world))
}

fn row(hash: Hash, wanted: TokenSpec, world: World) -> NewToken {
    let made_at = world.now();
    let lasts = wanted.seconds.saturating_mul(1_000_000_000);
    NewToken {
        id: TokenId::new(made_at, world.random()),
        kind: wanted.kind,
        hash,
        name: wanted.name,
        role: wanted.role,
        projects: wanted.projects,
        made_at,
        made_by: wanted.made_by,
        expires_at: Timestamp::from_nanos(made_at.as_nanos().saturating_add(lasts)),
        person: wanted.person,
        address: wanted.address,
    }
}

/// Returns the hash of a text, if it has the form of a token.
pub(crate) fn hash(shown: &str) -> Option<Hash> {
    is_token(shown).then(|| digest_of(shown))
}

/// Redacts tokens in a text that others read: a caller may have put one into a path by mistake.
pub(crate) fn hide(text: String) -> String {
    if !text.contains(PREFIX) {
        return text;
    }
    let mut parts = text.split(PREFIX);
    let mut hidden = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest =
            part.trim_start_matches(|it: char| it.is_ascii_alphanumeric() || "-_".contains(it));
        hidden.push_str(PREFIX);
        hidden.push_str("***");
        hidden.push_str(rest);
    }
    hidden
}

fn digest_of(shown: &str) -> Hash {
    let mut hash = [0; 32];
    hash.copy_from_slice(digest::digest(&digest::SHA256, shown.as_bytes()).as_ref());
    hash
}

#[cfg(test)]
mod tests {
    use db::TokenKind;
    use model::{Role, Timestamp, World};

    use super::{TokenSpec, hash, hide, make};

    #[test]
    fn what_is_kept_finds_what_is_shown_and_does_not_hold_it() {
        let world = World::new(|| Timestamp::from_nanos(5_000_000_000), || [7; 32]);
        let wanted = TokenSpec {
            kind: TokenKind::Token,
            name: "ci".to_owned(),
            role: Role::Editor,
            projects: None,
            seconds: 60,
            made_by: "me".to_owned(),
            person: None,
            address: None,
        };
        let (shown, kept) = make(wanted, world);
        assert_eq!(shown.expose(), "qtt_BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc");
        assert_eq!(hash(shown.expose()), Some(kept.hash));
        assert_eq!(kept.expires_at, Timestamp::from_nanos(65_000_000_000));
        assert!(!format!("{shown:?} {kept:?}").contains("BwcHBw"));
        let told = format!("/a/{}/b `{}`", shown.expose(), shown.expose());
        assert_eq!(hide(told), "/a/qtt_***/b `qtt_***`");
        assert_eq!(hide("a text".to_owned()), "a text");
        for other in ["", "qtt_", "qtt_short", "ghp_BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc"] {
            assert_eq!(hash(other), None, "{other}");
        }
    }
}
