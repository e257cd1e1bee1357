//! Verifies the identity token, a JWT: its signature and its claims (OpenID Connect Core, 3.1.3.7).
//!
//! Deliberately absent: symmetric signatures and `none`, with which any party that knows the client could forge a token.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use model::Timestamp;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, RSA_PKCS1_2048_8192_SHA256, RSA_PSS_2048_8192_SHA256, RsaParameters,
    RsaPublicKeyComponents, UnparsedPublicKey,
};
use serde::Deserialize;
use serde_json::Value;
use thiserror::Error;

/// The maximum length of a subject (OpenID Connect Core, 2).
const SUBJECT_MAX: usize = 255;
/// The tolerated clock skew.
const SKEW_SECS: u64 = 60;

/// A provider's keys.
#[derive(Debug, Deserialize)]
pub(super) struct Jwks {
    keys: Vec<Jwk>,
}

/// A JSON Web Key, with the fields that verification uses.
#[derive(Debug, Deserialize)]
struct Jwk {
    kty: String,
    #[serde(default)]
    kid: Option<String>,
    #[serde(default, rename = "use")]
    usage: Option<String>,
    #[serde(default)]
    alg: Option<String>,
    #[serde(default)]
    crv: Option<String>,
    #[serde(default)]
    n: Option<String>,
    #[serde(default)]
    e: Option<String>,
    #[serde(default)]
    x: Option<String>,
    #[serde(default)]
    y: Option<String>,
}

/// The claims that a token must have.
#[derive(Debug)]
pub(super) struct RequiredClaims<'a> {
    pub(super) issuer: &'a str,
    pub(super) audience: &'a str,
    pub(super) nonce: &'a str,
    pub(super) now: Timestamp,
}

/// Why a token is invalid. The message does not repeat the token.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub(crate) enum TokenError {
    #[error("it is not a signed JWT")]
    Form,
    #[error("it is signed by an algorithm that is not taken: expected RS256, PS256 or ES256")]
    Algorithm,
    #[error("no key of the provider made its signature")]
    Signature,
    #[error("it is of another issuer")]
    Issuer,
    #[error("it is for another audience")]
    Audience,
    #[error("it has expired, or the clocks differ")]
    Expired,
    #[error("it is of another login")]
    Nonce,
    #[error("it does not say whom it is about")]
    Subject,
}

#[derive(Deserialize)]
struct Head {
    alg: String,
    #[serde(default)]
    kid: Option<String>,
    #[serde(default)]
    typ: Option<String>,
    /// Critical extensions. This verifier supports none, so it refuses a token that has this header.
    #[serde(default)]
    crit: Option<Value>,
}

/// Verifies a token and returns its claims.
pub(super) fn verify(
    token: &str,
    keys: &Jwks,
    expected: &RequiredClaims<'_>,
) -> Result<Value, TokenError> {
    let (signed, signature) = token.rsplit_once('.').ok_or(TokenError::Form)?;
    let (head, claims) = signed.split_once('.').ok_or(TokenError::Form)?;
    let head: Head = serde_json::from_slice(&bytes(head)?).map_err(|_| TokenError::Form)?;
    let is_jwt = head.typ.as_ref().is_none_or(|typ| typ.eq_ignore_ascii_case("JWT"));
    if !is_jwt || head.crit.is_some() {
        return Err(TokenError::Form);
    }
    let signature = bytes(signature)?;
    let mut meant = keys.keys.iter().filter(|key| {
        let is_named = head.kid.is_none() || key.kid == head.kid;
        let is_for_it = key.alg.as_ref().is_none_or(|alg| *alg == head.alg);
        is_named && is_for_it && key.usage.as_deref() != Some("enc")
    });
    let made = |key: &Jwk| key.made(&head.alg, signed.as_bytes(), &signature);
    match head.alg.as_str() {
        "RS256" | "PS256" | "ES256" => {}
        _ => return Err(TokenError::Algorithm),
    }
    if !meant.any(made) {
        return Err(TokenError::Signature);
    }
    let claims: Value = serde_json::from_slice(&bytes(claims)?).map_err(|_| TokenError::Form)?;
    check(&claims, expected)?;
    Ok(claims)
}

fn check(claims: &Value, expected: &RequiredClaims<'_>) -> Result<(), TokenError> {
    if claims["iss"] != expected.issuer {
        return Err(TokenError::Issuer);
    }
    let is_meant = match &claims["aud"] {
        Value::String(one) => one == expected.audience,
        Value::Array(many) => many.iter().any(|one| one == expected.audience),
        _ => false,
    };
    // With several audiences, `azp` must name the one that the token was issued for.
    let is_one = !matches!(&claims["aud"], Value::Array(many) if many.len() > 1);
    let is_azp = claims.get("azp").map_or(is_one, |azp| azp == expected.audience);
    if !is_meant || !is_azp {
        return Err(TokenError::Audience);
    }
    let now = expected.now.as_secs();
    let moment = |claim: &str| claims[claim].as_f64().map(|secs| secs as u64);
    let is_over = moment("exp").is_none_or(|exp| exp.saturating_add(SKEW_SECS) <= now);
    let is_early = moment("iat").is_none_or(|iat| iat > now.saturating_add(SKEW_SECS));
    let is_before = claims.get("nbf").is_some_and(|nbf| {
        nbf.as_f64().is_none_or(|nbf| nbf as u64 > now.saturating_add(SKEW_SECS))
    });
    if is_over || is_early || is_before {
        return Err(TokenError::Expired);
    }
    if claims["nonce"] != expected.nonce {
        return Err(TokenError::Nonce);
    }
    match claims["sub"].as_str() {
        Some(subject) if is_subject(subject) => Ok(()),
        _ => Err(TokenError::Subject),
    }
}

/// Whether a text is a subject that can be stored in full: a truncated one could equal another person's subject.
fn is_subject(text: &str) -> bool {
    (1..=SUBJECT_MAX).contains(&text.len()) && !text.contains(char::is_control)
}

impl Jwk {
    /// Whether this key made the signature.
    fn made(&self, algorithm: &str, signed: &[u8], signature: &[u8]) -> bool {
        let rsa = |parameters: &RsaParameters| {
            let (n, e) = (part(&self.n)?, part(&self.e)?);
            let key = RsaPublicKeyComponents { n, e };
            key.verify(parameters, signed, signature).ok()
        };
        let made = match (algorithm, self.kty.as_str(), self.crv.as_deref()) {
            ("RS256", "RSA", _) => rsa(&RSA_PKCS1_2048_8192_SHA256),
            ("PS256", "RSA", _) => rsa(&RSA_PSS_2048_8192_SHA256),
            ("ES256", "EC", Some("P-256")) => self.point().and_then(|point| {
                let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point);
                key.verify(signed, signature).ok()
            }),
            _ => None,
        };
        made.is_some()
    }

    /// The uncompressed point of an elliptic curve key.
    fn point(&self) -> Option<Vec<u8>> {
        Some([&[4], part(&self.x)?.as_slice(), part(&self.y)?.as_slice()].concat())
    }
}

fn part(text: &Option<String>) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text.as_ref()?).ok()
}

fn bytes(text: &str) -> Result<Vec<u8>, TokenError> {
    URL_SAFE_NO_PAD.decode(text).map_err(|_| TokenError::Form)
}

#[cfg(test)]
mod tests {
    use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
    use model::Timestamp;
    use ring::{
        rand::SystemRandom,
        signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair},
    };
    use serde_json::{Value, json};

    use super::{Jwks, RequiredClaims, TokenError, is_subject, verify};

    struct Signer(EcdsaKeyPair);

    impl Signer {
        fn new() -> Self {
            let random = SystemRandom::new();
            let made = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random);
            let made = made.expect("a key");
            let key =
                EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, made.as_ref(), &random);
            Self(key.expect("a key"))
        }

        fn keys(&self, more: &Value) -> Jwks {
            let point = self.0.public_key().as_ref();
            let part = |from: usize| URL_SAFE_NO_PAD.encode(&point[from..from + 32]);
            let mut key =
                json!({"kty": "EC", "crv": "P-256", "kid": "k", "x": part(1), "y": part(33)});
            for (name, value) in more.as_object().expect("an object") {
                key[name] = value.clone();
            }
            serde_json::from_value(json!({"keys": [key]})).expect("keys")
        }

        fn token(&self, head: &Value, claims: &Value) -> String {
            let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
            let signed = format!("{}.{}", part(head), part(claims));
            let signature = self.0.sign(&SystemRandom::new(), signed.as_bytes()).expect("signed");
            format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
        }
    }

    /// Changes to a valid token, and the expected error of each.
    #[test]
    fn a_token_is_good_or_it_is_said_why_not() {
        let signer = Signer::new();
        let head = json!({"alg": "ES256", "kid": "k"});
        let good = json!({"iss": "https://id", "aud": "qt", "exp": 1100, "iat": 1000, "nonce": "n", "sub": "s"});
        let expected = RequiredClaims {
            issuer: "https://id",
            audience: "qt",
            nonce: "n",
            now: Timestamp::from_nanos(1_000_000_000_000),
        };
        let cases = [
            (json!({}), None),
            (json!({"aud": ["other", "qt"], "azp": "qt"}), None),
            (json!({"exp": 941}), None),
            (json!({"iss": "https://id/"}), Some(TokenError::Issuer)),
            (json!({"aud": "other"}), Some(TokenError::Audience)),
            (json!({"aud": null}), Some(TokenError::Audience)),
            (json!({"aud": ["other"]}), Some(TokenError::Audience)),
            (json!({"azp": "other"}), Some(TokenError::Audience)),
            (json!({"aud": ["other", "qt"]}), Some(TokenError::Audience)),
            (json!({"aud": ["qt"]}), None),
            (json!({"nbf": 1060}), None),
            (json!({"nbf": 1061}), Some(TokenError::Expired)),
            (json!({"nbf": "soon"}), Some(TokenError::Expired)),
            (json!({"sub": null}), Some(TokenError::Subject)),
            (json!({"sub": ""}), Some(TokenError::Subject)),
            (json!({"exp": 940}), Some(TokenError::Expired)),
            (json!({"exp": null}), Some(TokenError::Expired)),
            (json!({"exp": "1100"}), Some(TokenError::Expired)),
            (json!({"iat": 1061}), Some(TokenError::Expired)),
            (json!({"nonce": "m"}), Some(TokenError::Nonce)),
            (json!({"nonce": null}), Some(TokenError::Nonce)),
        ];
        for (changes, wrong) in cases {
            let mut claims = good.clone();
            for (name, value) in changes.as_object().expect("an object") {
                claims[name] = value.clone();
            }
            let found = verify(&signer.token(&head, &claims), &signer.keys(&json!({})), &expected);
            assert_eq!(found.err(), wrong, "{changes}");
        }
        for more in [json!({"typ": "at+jwt"}), json!({"crit": ["exp"]})] {
            let mut head = head.clone();
            for (name, value) in more.as_object().expect("an object") {
                head[name] = value.clone();
            }
            let found = verify(&signer.token(&head, &good), &signer.keys(&json!({})), &expected);
            assert_eq!(found.err(), Some(TokenError::Form), "{more}");
        }
        let token = signer.token(&head, &good);
        let unsigned = token.rsplit_once('.').expect("parts").0;
        let (first, rest) = token.split_once('.').expect("parts");
        let none = URL_SAFE_NO_PAD.encode(json!({"alg": "none"}).to_string());
        let hmac = URL_SAFE_NO_PAD.encode(json!({"alg": "HS256", "kid": "k"}).to_string());
        let keys = |more: &Value| signer.keys(more);
        for (token, keys, wrong) in [
            (token.clone(), Signer::new().keys(&json!({})), TokenError::Signature),
            (token.clone(), keys(&json!({"kid": "other"})), TokenError::Signature),
            (token.clone(), keys(&json!({"use": "enc"})), TokenError::Signature),
            (token.clone(), keys(&json!({"kty": "RSA"})), TokenError::Signature),
            (token.clone(), keys(&json!({"alg": "RS256"})), TokenError::Signature),
            (format!("{unsigned}."), keys(&json!({})), TokenError::Signature),
            (format!("{none}.{rest}"), keys(&json!({})), TokenError::Algorithm),
            (format!("{hmac}.{rest}"), keys(&json!({})), TokenError::Algorithm),
            (first.to_owned(), keys(&json!({})), TokenError::Form),
            (String::new(), keys(&json!({})), TokenError::Form),
            ("a.b.c".to_owned(), keys(&json!({})), TokenError::Form),
        ] {
            assert_eq!(verify(&token, &keys, &expected).err(), Some(wrong), "{token}");
        }
    }

    #[test]
    fn a_subject_is_one_that_can_be_stored_whole() {
        let (longest, longer) = ("s".repeat(255), "s".repeat(256));
        for (subject, is_one) in
            [("7", true), (&*longest, true), (&*longer, false), ("", false), ("a\u{0}b", false)]
        {
            assert_eq!(is_subject(subject), is_one, "{subject}");
        }
    }

    /// Tokens that OpenSSL signed with one key, with both RSA paddings.
    #[test]
    fn signatures_of_rsa_are_verified() {
        let claims =
            r#"{"iss":"https://id","aud":"qt","exp":1100,"iat":1000,"nonce":"n","sub":"s"}"#;
        let now = Timestamp::from_nanos(1_000_000_000_000);
        let expected = RequiredClaims { issuer: "https://id", audience: "qt", nonce: "n", now };
        let keys = |alg: Option<&str>| -> Jwks {
            let key = json!({"kty": "RSA", "kid": "k", "n": RSA_MODULUS, "e": "AQAB", "alg": alg});
            serde_json::from_value(json!({"keys": [key]})).expect("keys")
        };
        for (alg, other, signature) in
            [("RS256", "PS256", RS256_SIGNATURE), ("PS256", "RS256", PS256_SIGNATURE)]
        {
            let token = |alg: &str| {
                let head = format!(r#"{{"alg":"{alg}","kid":"k"}}"#);
                let part = |text: &str| URL_SAFE_NO_PAD.encode(text);
                format!("{}.{}.{signature}", part(&head), part(claims))
            };
            for keys in [keys(None), keys(Some(alg))] {
                assert_eq!(verify(&token(alg), &keys, &expected).err(), None, "{alg}");
            }
            let refused = [(alg, keys(Some(other))), (other, keys(None))];
            for (alg, keys) in refused {
                let found = verify(&token(alg), &keys, &expected).err();
                assert_eq!(found, Some(TokenError::Signature), "{alg}");
            }
        }
    }

    /// The modulus of the key. Its private key is not available.
    const RSA_MODULUS: &str = concat!(
        "uR6V7_tO9ixRozda-yW2FRXy2kXpmAPTT37dLThiZc6vFdvhnk8XKD-W9uFV997bUzBcM9jJZfqFGK6z6u1-tjy_rpt6NPFHOtq-",
        "_zVZQLJJk_K3W_fMN9_CK4_s9506FdrdyTc-Ud5FphT7jorhG9onlGfGZnRK1l0ZnMzKFDaGRHWDgN-dEVlzYW-Upq70hFKdlSkI",
        "LqWSzU1n0TrGgT7Fs6XCAo-y7xopDZEW_IG6lOoEzW6oOQ4pAqZtj7czaUs_JPocr_j94ROhZvMI42yTCb28fo9rNwsuGk-SPniL",
        "M9grdDTuRa62b05qf36T0F2X2uZphY50BV7w3Jp33w",
    );
    /// The signature with PKCS #1 padding.
    const RS256_SIGNATURE: &str = concat!(
        "XHVrG1oZaBnMLDFtzCdyVxBQxx8C2R-HHNugoEyn_OTUUnK6suh16zbxG8wTs00XeRqdrArcZWi9v8z9Pm2WT7KrJnGF5D8CQy5c",
        "lgqYUsyXDQDM0REkPHmhhq5q9JbnelgGadqrhttE3blhv5tDo1an9Fqr19NdW0u6aFdIfwmmpnF50Wr4aQHTsQLe7-qop3VJKSHF",
        "SEHTPCjiGVVRXIWizZ11PNQTWGT-YMJ7wiM4jBu8TaBsz0CzAWOH8U-SuY54mSl-hwQqMgzI21ZyyxoynUoApjUZFBfmaznXjLII",
        "DhVV-tfc8wSwtNhEhkHHzL9x2DZ_4tFZMG2-54quHg",
    );
    /// The signature with PSS padding.
    const PS256_SIGNATURE: &str = concat!(
        "oqV2hyGNIeFhjLvSlS8TCA7L_k3o8pB6onSO-LPgbZ4_pXA48wplRYCvBy5A-NfmV7yaIvTbqzpTsLguxkZkTluJiLuBaqQMvHhy",
        "hyMAuhvikFrqgTeZsvVWnSdVwyr9JRGdWJFo1mPN8I_chqq8lkNEPiza8_oTgev4vKQ0wRbGF_cPnvNnXy4IRlk8jv3gRSYE6cIo",
        "Axx3I4fSEwyvE0uladSr7LBGeKgxpYR4FdRxaBHCooSnyjyXtfecBsQIE_NmfC8ShECHNpJzE5po9dDsUqvZg45gWXYd7dF6-bBB",
        "WSog53u4N6CVfI4iiTVEqKSyHJjCI8H3_8jeui2Kjw",
    );
}
