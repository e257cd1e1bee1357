//! The cookie that carries a login from its beginning to its end: signed, and valid for as long as a login may take.
//!
//! Its value is the login's state, the second until which it is valid, and HMAC-SHA256 over both. The key is derived (HKDF, RFC
//! 5869) from the keys of trace ids, which all servers on one database share, under its own label: a signature reveals nothing
//! about trace ids, and a trace id reveals nothing about this key. The first key signs and all verify, so keys rotate as for ids.
//!
//! Deliberately absent: encryption. The cookie belongs to its own browser, and its content is of no use to others.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use model::{Key, Timestamp};
use ring::{hkdf, hmac};

use super::oidc::PendingLogin;

/// How long a login may take, in seconds.
pub(crate) const LOGIN_SECS: u32 = 600;
/// The HKDF label that separates this key from other keys derived from the same key.
const LABEL: &[u8] = b"login cookie v1";
const SALT: &[u8] = b"qualitytrace";

/// The keys of login cookies: the first signs, all verify.
#[derive(Clone, Debug)]
pub(crate) struct LoginKeys(Vec<hmac::Key>);

impl LoginKeys {
    /// Derives the cookie keys from the keys of trace ids.
    pub(crate) fn of(ids: &[Key]) -> Self {
        Self(ids.iter().map(derived).collect())
    }

    /// Returns the cookie value of a login that begins now; `None` without a key.
    pub(crate) fn signed(&self, pending: &PendingLogin, now: Timestamp) -> Option<String> {
        let until = now.as_secs() + u64::from(LOGIN_SECS);
        let text = format!("{}.{until}", pending.kept());
        let signature = hmac::sign(self.0.first()?, text.as_bytes());
        Some(format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }

    /// Returns the login in a cookie; `None` if none of these keys signed it, or it has expired.
    pub(crate) fn verified(&self, value: &str, now: Timestamp) -> Option<PendingLogin> {
        let (text, signature) = value.rsplit_once('.')?;
        let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
        let is_ours = |key: &hmac::Key| hmac::verify(key, text.as_bytes(), &signature).is_ok();
        if !self.0.iter().any(is_ours) {
            return None;
        }
        let (kept, until) = text.split_once('.')?;
        let is_in_time = until.parse::<u64>().is_ok_and(|until| now.as_secs() < until);
        is_in_time.then(|| PendingLogin::read(kept)).flatten()
    }
}

fn derived(key: &Key) -> hmac::Key {
    let root = hkdf::Salt::new(hkdf::HKDF_SHA256, SALT).extract(key.expose());
    let derived = root.expand(&[LABEL], hmac::HMAC_SHA256);
    derived.expect("HKDF gives a key as long as one hash").into()
}

#[cfg(test)]
mod tests {
    use model::{Key, Timestamp};

    use super::{LOGIN_SECS, LoginKeys};
    use crate::access::oidc::PendingLogin;

    fn at(secs: u32) -> Timestamp {
        Timestamp::from_nanos(u64::from(secs) * 1_000_000_000)
    }

    #[test]
    fn a_cookie_that_was_altered_is_refused() {
        let [old, new, other] = [1, 2, 3].map(|byte| Key::from_bytes([byte; 16]));
        let keys = LoginKeys::of(&[old, new]);
        let pending = PendingLogin::of("s", "n", "v");
        let value = keys.signed(&pending, at(1000)).expect("there is a key");
        assert_eq!(keys.verified(&value, at(1000)), Some(pending.clone()));
        let other_order = LoginKeys::of(&[new, old]);
        assert_eq!(other_order.verified(&value, at(1000)), Some(pending.clone()), "keys rotate");
        for strange in [LoginKeys::of(&[other]), LoginKeys::of(&[])] {
            assert_eq!(strange.verified(&value, at(1000)), None, "of another deployment");
        }
        let last = 1000 + LOGIN_SECS - 1;
        assert_eq!(keys.verified(&value, at(last)), Some(pending.clone()));
        assert_eq!(keys.verified(&value, at(last + 1)), None, "its time is over");
        for at_byte in 0..value.len() {
            for bit in 0..7 {
                let mut bytes = value.clone().into_bytes();
                bytes[at_byte] ^= 1 << bit;
                let altered = String::from_utf8(bytes).expect("seven bits are text");
                assert_eq!(keys.verified(&altered, at(1000)), None, "{altered}");
            }
        }
        let (text, signature) = value.rsplit_once('.').expect("signed");
        for forged in [
            String::new(),
            pending.kept(),
            text.to_owned(),
            format!("{text}."),
            format!("{}.9999999999.{signature}", pending.kept()),
        ] {
            assert_eq!(keys.verified(&forged, at(1000)), None, "{forged}");
        }
    }
}
