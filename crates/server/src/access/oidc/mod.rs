//! The login of people: OpenID Connect, the authorization code flow with PKCE.
//!
//! [`Oidc::begin`] returns the redirect URL and the state that the browser stores meanwhile. [`Oidc::end`] takes the callback,
//! exchanges the code for the identity token, verifies it, and maps its claims to a person with a role. The server stores
//! no state of a login between the two: any replica may end a login that another one began.
//!
//! Deliberately absent: token refresh (a session ends after hours), logout at the provider, and parsing of access tokens.

mod fetch;
mod id_token;

use std::sync::Mutex;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use db::PersonId;
use model::{Fault, Faulty, Project, Role, Timestamp, World};
use ring::digest;
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};
use serde_json::Value;
use thiserror::Error;
use url::Url;

use self::{
    fetch::Fetch,
    id_token::{Jwks, RequiredClaims, TokenError},
};
use crate::{
    authorities::{self, AuthoritiesError, OIDC_CA},
    config,
};

/// An identity provider.
#[derive(Debug)]
pub(crate) struct Oidc {
    config: config::OidcConfig,
    fetch: Fetch,
    /// The discovery document of the provider, once it was fetched.
    provider: Mutex<Option<Provider>>,
}

/// The discovery document of a provider.
#[derive(Clone, Debug, Deserialize)]
struct Provider {
    issuer: String,
    #[serde(deserialize_with = "endpoint")]
    authorization_endpoint: Url,
    #[serde(deserialize_with = "endpoint")]
    token_endpoint: Url,
    #[serde(deserialize_with = "endpoint")]
    jwks_uri: Url,
}

fn endpoint<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Url, D::Error> {
    String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
}

/// The state of a login that the browser stores between its beginning and its end.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub(crate) struct PendingLogin {
    state: String,
    nonce: String,
    verifier: String,
    /// The path of the screen to show after the login.
    screen: String,
}

/// The query parameters of the redirect back from the provider.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Callback {
    code: Option<String>,
    state: Option<String>,
    /// The issuer, if the provider sends it (RFC 9207).
    iss: Option<String>,
    error: Option<String>,
    error_description: Option<String>,
}

/// A person who has logged in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Person {
    /// The display name. It may change, and another person may have the same.
    pub(crate) name: String,
    /// The stable identity.
    pub(crate) id: PersonId,
    pub(crate) role: Role,
    /// The projects in which the role holds; `None` for all projects.
    pub(crate) projects: Option<Vec<Project>>,
}

/// Why a login failed.
#[derive(Debug, Error)]
pub(crate) enum OidcError {
    #[error(
        "the identity provider at `{at}` {reason}; check `server.auth.oidc.issuer` and that this server reaches it"
    )]
    Provider { at: String, reason: String },
    #[error(
        "this is not the end of a login that began in this browser: begin again at `/auth/login`"
    )]
    Foreign,
    #[error("the identity provider refused the login: {0}")]
    Refused(String),
    #[error("the identity provider gave no token for the code: {0}")]
    NoToken(String),
    #[error("the identity token is not good: {0}")]
    Token(#[from] TokenError),
    #[error(
        "`{name}` has no role here: no value of the claim `{claim}` is listed in `server.auth.oidc.roles`"
    )]
    NoRole { name: String, id: Box<PersonId>, claim: String },
    #[error("`{name}` has no project here: no value of the claim `{claim}` is the name of one")]
    NoProject { name: String, id: Box<PersonId>, claim: String },
}

impl OidcError {
    /// Returns the word by which the page knows why the login failed: an address may have it, and no text of the provider.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::Provider { .. } | Self::NoToken(_) => "provider",
            Self::Foreign => "elsewhere",
            Self::Refused(_) | Self::Token(_) => "refused",
            Self::NoRole { .. } => "role",
            Self::NoProject { .. } => "project",
        }
    }

    /// Returns the person who could not log in, if the provider named one.
    pub(crate) fn person(&self) -> Option<(&str, &PersonId)> {
        match self {
            Self::NoRole { name, id, .. } | Self::NoProject { name, id, .. } => Some((name, id)),
            _ => None,
        }
    }
}

impl Faulty for OidcError {
    fn fault(&self) -> Fault {
        match self {
            Self::Provider { .. } | Self::NoToken(_) => Fault::Upstream,
            Self::Foreign => Fault::Invalid,
            Self::Refused(_) | Self::Token(_) | Self::NoRole { .. } | Self::NoProject { .. } => {
                Fault::Denied
            }
        }
    }
}

#[derive(Deserialize)]
struct Tokens {
    id_token: String,
}

impl Oidc {
    pub(crate) fn new(config: config::OidcConfig) -> Result<Self, AuthoritiesError> {
        let ca = config.ca.as_deref();
        let fetch = Fetch::new(ca.map(|path| authorities::read(OIDC_CA, path)).transpose()?);
        Ok(Self { config, fetch, provider: Mutex::default() })
    }

    /// Begins a login. Returns the URL to redirect the browser to, and the state that the browser stores.
    pub(crate) async fn begin(
        &self,
        back: &str,
        screen: &str,
        world: World,
    ) -> Result<(Url, PendingLogin), OidcError> {
        let provider = self.provider().await?;
        let chance = || URL_SAFE_NO_PAD.encode(world.random::<32>());
        let pending = PendingLogin {
            state: chance(),
            nonce: chance(),
            verifier: chance(),
            screen: screen.to_owned(),
        };
        let challenge = digest::digest(&digest::SHA256, pending.verifier.as_bytes());
        let mut there = provider.authorization_endpoint;
        there
            .query_pairs_mut()
            .append_pair("response_type", "code")
            .append_pair("client_id", &self.config.client_id)
            .append_pair("redirect_uri", back)
            .append_pair("scope", &self.config.scopes.join(" "))
            .append_pair("state", &pending.state)
            .append_pair("nonce", &pending.nonce)
            .append_pair("code_challenge", &URL_SAFE_NO_PAD.encode(challenge))
            .append_pair("code_challenge_method", "S256");
        Ok((there, pending))
    }

    /// Ends a login: verifies the callback and returns the person.
    pub(crate) async fn end(
        &self,
        returned: Callback,
        pending: &PendingLogin,
        back: &str,
        now: Timestamp,
    ) -> Result<Person, OidcError> {
        let is_ours = returned.state.as_ref() == Some(&pending.state);
        let is_theirs = returned.iss.as_ref().is_none_or(|iss| *iss == self.config.issuer);
        if !is_ours || !is_theirs {
            return Err(OidcError::Foreign);
        }
        if let Some(error) = returned.error {
            let more = returned.error_description.map(|more| format!(" ({more})"));
            return Err(OidcError::Refused(format!("{error}{}", more.unwrap_or_default())));
        }
        let code = returned.code.ok_or(OidcError::Foreign)?;
        let provider = self.provider().await?;
        let tokens = self.exchange(&provider, &code, &pending.verifier, back).await?;
        let keys = self.fetch.get::<Jwks>(&provider.jwks_uri).await;
        let keys = keys.map_err(|reason| at(&provider.jwks_uri, reason))?;
        let expected = RequiredClaims {
            issuer: &provider.issuer,
            audience: &self.config.client_id,
            nonce: &pending.nonce,
            now,
        };
        self.person(&id_token::verify(&tokens.id_token, &keys, &expected)?)
    }

    async fn exchange(
        &self,
        provider: &Provider,
        code: &str,
        verifier: &str,
        back: &str,
    ) -> Result<Tokens, OidcError> {
        let form = [
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", back),
            ("client_id", &self.config.client_id),
            ("code_verifier", verifier),
        ];
        let secret = self.config.client_secret.as_ref();
        let proof = secret.map(|secret| (self.config.client_id.as_str(), secret.expose()));
        let tokens = self.fetch.post(&provider.token_endpoint, &form, proof).await;
        tokens.map_err(OidcError::NoToken)
    }

    /// Returns the provider's discovery document; fetches it once.
    async fn provider(&self) -> Result<Provider, OidcError> {
        let known = || self.provider.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(provider) = known().clone() {
            return Ok(provider);
        }
        let issuer = &self.config.issuer;
        let url = format!("{}/.well-known/openid-configuration", issuer.trim_end_matches('/'));
        let wrong = |reason: String| OidcError::Provider { at: url.clone(), reason };
        let parsed = Url::parse(&url).map_err(|error| wrong(format!("has no URL: {error}")))?;
        let provider = self.fetch.get::<Provider>(&parsed).await.map_err(&wrong)?;
        let ends = [&provider.authorization_endpoint, &provider.token_endpoint, &provider.jwks_uri];
        if let Some(plain) = ends.into_iter().find(|end| !config::is_safe(end)) {
            return Err(wrong(format!("names `{plain}`, which is not https")));
        }
        if provider.issuer != *issuer {
            return Err(wrong(format!("says that it is `{}`, not `{issuer}`", provider.issuer)));
        }
        *known() = Some(provider.clone());
        Ok(provider)
    }

    /// Returns the person of these claims, with the highest of their roles.
    fn person(&self, claims: &Value) -> Result<Person, OidcError> {
        let names = ["preferred_username", "email", "sub"];
        let name = names.iter().find_map(|claim| claims[*claim].as_str()).unwrap_or("nobody");
        let plain = |text: &str| -> String {
            text.chars().filter(|it| !it.is_control()).take(super::token::NAME_MAX).collect()
        };
        let name = plain(name);
        let subject = claims["sub"].as_str().unwrap_or_default().to_owned();
        let id = PersonId { issuer: self.config.issuer.clone(), subject };
        let claim = &self.config.role_claim;
        let role = values(claims, claim).filter_map(|value| self.config.roles.get(value)).max();
        let Some(role) = role.copied() else {
            return Err(OidcError::NoRole { name, id: Box::new(id), claim: claim.clone() });
        };
        let projects = match &self.config.project_claim {
            None => None,
            Some(claim) => {
                let named: Vec<Project> =
                    values(claims, claim).filter_map(|value| value.parse().ok()).collect();
                if named.is_empty() {
                    let (id, claim) = (Box::new(id), claim.clone());
                    return Err(OidcError::NoProject { name, id, claim });
                }
                Some(named)
            }
        };
        Ok(Person { name, id, role, projects })
    }
}

/// Returns the strings of a claim: one, or a list of them.
fn values<'a>(claims: &'a Value, claim: &str) -> impl Iterator<Item = &'a str> {
    let values = match claimed(claims, claim) {
        Some(Value::Array(many)) => many.as_slice(),
        Some(one) => std::slice::from_ref(one),
        None => &[],
    };
    values.iter().filter_map(Value::as_str)
}

/// Returns a claim by its name, or by its path: `realm_access.roles`.
fn claimed<'a>(claims: &'a Value, name: &str) -> Option<&'a Value> {
    claims.get(name).or_else(|| name.split('.').try_fold(claims, |value, part| value.get(part)))
}

fn at(url: &Url, reason: String) -> OidcError {
    OidcError::Provider { at: url.to_string(), reason }
}

impl PendingLogin {
    /// The path of the screen to show after the login.
    pub(crate) fn screen(&self) -> &str {
        &self.screen
    }

    /// Encodes the state for a cookie, before it is signed.
    pub(crate) fn kept(&self) -> String {
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(self).unwrap_or_default())
    }

    /// Decodes the state of a cookie, after its signature is verified.
    pub(crate) fn read(kept: &str) -> Option<Self> {
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(kept).ok()?).ok()
    }
}

#[cfg(test)]
impl PendingLogin {
    pub(crate) fn of(state: &str, nonce: &str, verifier: &str) -> Self {
        let [state, nonce, verifier, screen] = [state, nonce, verifier, "/runs"].map(str::to_owned);
        Self { state, nonce, verifier, screen }
    }
}

#[cfg(test)]
mod tests {
    use model::Role;
    use serde_json::json;

    use super::{Oidc, OidcError, PendingLogin};
    use crate::config;

    #[test]
    fn claims_become_a_role() {
        let roles = [("qt-admin", Role::Admin), ("qt-see", Role::Viewer), ("qt-do", Role::Editor)];
        let config = |claim: &str| config::OidcConfig {
            issuer: "https://id".to_owned(),
            client_id: "qt".to_owned(),
            client_secret: None,
            ca: None,
            scopes: Vec::new(),
            role_claim: claim.to_owned(),
            roles: roles.map(|(name, role)| (name.to_owned(), role)).into(),
            project_claim: None,
        };
        let cases = [
            ("roles", json!({"roles": ["qt-see", "other", "qt-do"]}), Some(Role::Editor)),
            ("roles", json!({"roles": "qt-admin"}), Some(Role::Admin)),
            (
                "realm_access.roles",
                json!({"realm_access": {"roles": ["qt-see"]}}),
                Some(Role::Viewer),
            ),
            (
                "https://x.example/roles",
                json!({"https://x.example/roles": ["qt-see"]}),
                Some(Role::Viewer),
            ),
            ("roles", json!({"roles": ["admin", "QT-ADMIN"]}), None),
            ("roles", json!({"roles": {"qt-admin": true}}), None),
            ("roles", json!({"groups": ["qt-admin"]}), None),
            ("roles", json!({}), None),
        ];
        for (claim, mut claims, role) in cases {
            claims["email"] = json!("ann@example");
            match (Oidc::new(config(claim)).expect("no file").person(&claims), role) {
                (Ok(person), Some(role)) => {
                    assert_eq!(
                        (person.name.as_str(), person.role),
                        ("ann@example", role),
                        "{claims}"
                    );
                }
                (Err(OidcError::NoRole { .. }), None) => {}
                (other, _) => panic!("{claims}: {other:?}"),
            }
        }
    }

    #[test]
    fn a_person_is_who_the_issuer_says_and_has_the_projects_of_a_claim() {
        let oidc = |project_claim: Option<&str>| {
            Oidc::new(config::OidcConfig {
                issuer: "https://id".to_owned(),
                client_id: "qt".to_owned(),
                client_secret: None,
                ca: None,
                scopes: Vec::new(),
                role_claim: "roles".to_owned(),
                roles: [("see".to_owned(), Role::Viewer)].into(),
                project_claim: project_claim.map(str::to_owned),
            })
            .expect("no file")
        };
        let claims = json!({"roles": "see", "sub": "7", "preferred_username": "ann", "teams": ["a", "no project"]});
        let person = oidc(Some("teams")).person(&claims).expect("a person");
        let id = (person.id.issuer.as_str(), person.id.subject.as_str());
        assert_eq!((person.name.as_str(), id), ("ann", ("https://id", "7")));
        assert_eq!(person.projects, Some(vec!["a".parse().expect("a project")]));
        assert_eq!(oidc(None).person(&claims).expect("a person").projects, None);
        let none = oidc(Some("groups")).person(&claims).expect_err("no project");
        assert!(matches!(none, OidcError::NoProject { .. }), "{none}");
        assert_eq!(none.person(), Some(("ann", &person.id)), "who was refused is known");
    }

    #[test]
    fn what_a_browser_keeps_comes_back() {
        let pending = PendingLogin::of("s", "n", "v");
        assert_eq!(PendingLogin::read(&pending.kept()), Some(pending));
        assert_eq!(PendingLogin::read("e30"), None);
        assert_eq!(PendingLogin::read("%"), None);
    }
}
