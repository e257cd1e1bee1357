//! `server.auth`: the authentication of callers. Deliberately absent: how it works, which is in `access`.

use std::{collections::BTreeMap, path::PathBuf};

pub use model::Role;
use model::Secret;
use source::{Fields, Item};
use url::Url;

/// The prefix of a token.
pub(crate) const TOKEN_PREFIX: &str = "qtt_";
/// The number of characters after the prefix: 32 bytes.
const TOKEN_LETTERS: usize = 43;

/// The authentication of callers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessConfig {
    /// Whether callers must authenticate.
    pub mode: Mode,
    /// The identity provider for logins.
    pub oidc: Option<OidcConfig>,
    /// Whether senders of OTLP must authenticate.
    pub ingest_required: bool,
    /// A token of the operator, who needs no other one to begin with.
    pub bootstrap_token: Option<Secret>,
}

/// Whether callers must authenticate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Every caller may do everything; only on loopback addresses.
    #[default]
    Off,
    /// A token or a login decides.
    On,
}

/// An identity provider, by OpenID Connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OidcConfig {
    /// The issuer URL.
    pub issuer: String,
    /// The client id of this server.
    pub client_id: String,
    /// The client secret; `None` for a public client.
    pub client_secret: Option<Secret>,
    /// A file with the authorities that are trusted for it, instead of those of this machine.
    pub ca: Option<PathBuf>,
    /// The requested scopes.
    pub scopes: Vec<String>,
    /// The claim that holds a person's roles.
    pub role_claim: String,
    /// The role for each value of that claim.
    pub roles: BTreeMap<String, Role>,
    /// The claim that holds the names of a person's projects; without it a person has access to all projects.
    pub project_claim: Option<String>,
}

const ROLES: &[(&str, Role)] =
    &[("viewer", Role::Viewer), ("editor", Role::Editor), ("admin", Role::Admin)];

pub(super) fn read(mut fields: Fields<'_>) -> AccessConfig {
    const MODES: &[(&str, Mode)] = &[("off", Mode::Off), ("on", Mode::On)];
    let mode = fields.choice("mode", MODES).unwrap_or_default();
    let oidc = fields.table("oidc").map(oidc);
    let mut ingest = fields.section("ingest");
    // An operator who turns authentication on means senders of OTLP too.
    let ingest_required = ingest.boolean("required").unwrap_or(mode == Mode::On);
    ingest.finish();
    let bootstrap_token = fields.take("bootstrapToken").and_then(|item| {
        let text = item.string()?.to_owned();
        let is_token = is_token(&text);
        if !is_token {
            item.misfit("`qtt_` and 43 letters, digits, `-` or `_`: 32 random bytes in base64url");
        }
        is_token.then(|| Secret::new(text))
    });
    fields.finish();
    AccessConfig { mode, oidc, ingest_required, bootstrap_token }
}

fn oidc(mut fields: Fields<'_>) -> OidcConfig {
    let issuer = fields.require("issuer").and_then(|item| issuer(&item)).unwrap_or_default();
    let client_id = fields.require("clientId").and_then(|item| item.string()).unwrap_or_default();
    let scopes = fields.list("scopes");
    let scopes = scopes.map(|items| super::reach::strings(&items));
    let mut roles = fields.section("roles");
    let named = roles.rest().into_iter();
    let named = named.filter_map(|(name, item)| Some((name.text.clone(), item.choice(ROLES)?)));
    let named: BTreeMap<_, _> = named.collect();
    roles.finish();
    let oidc = OidcConfig {
        issuer,
        client_id: client_id.to_owned(),
        client_secret: fields.string("clientSecret").map(Secret::new),
        ca: fields.string("ca").map(PathBuf::from),
        scopes: scopes.unwrap_or_else(|| ["openid", "profile", "email"].map(str::to_owned).into()),
        role_claim: fields.string("roleClaim").unwrap_or("roles").to_owned(),
        roles: named,
        project_claim: fields.string("projectClaim").map(str::to_owned),
    };
    fields.finish();
    oidc
}

/// Whether a text has the form of a token.
pub(crate) fn is_token(text: &str) -> bool {
    let is_letter = |it: u8| it.is_ascii_alphanumeric() || b"-_".contains(&it);
    let letters = text.strip_prefix(TOKEN_PREFIX).map(str::as_bytes);
    letters.is_some_and(|it| it.len() == TOKEN_LETTERS && it.iter().copied().all(is_letter))
}

/// Whether a connection to this URL cannot be read or changed on the way: it uses TLS, or stays on this machine.
pub(crate) fn is_safe(url: &Url) -> bool {
    let is_local = || url.host_str().is_some_and(crate::host_name::names_loopback);
    url.scheme() == "https" || (url.scheme() == "http" && is_local())
}

fn issuer(item: &Item<'_>) -> Option<String> {
    let text = item.string()?;
    let is_safe = Url::parse(text).is_ok_and(|url| is_safe(&url));
    if !is_safe {
        item.misfit(
            "an URL such as `https://id.example.com/realms/quality`; `http` on this machine only",
        );
    }
    is_safe.then(|| text.to_owned())
}
