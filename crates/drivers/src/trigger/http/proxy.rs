//! Which proxy a request goes through: what the environment says, as most programs understand it.
//!
//! `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY`, or the same in small letters. What runs on this machine is
//! never reached through a proxy. A proxy that we cannot use is a mistake and not passed over: the request would go where
//! it must not.

use std::net::IpAddr;

use http::{HeaderValue, Uri};
use hyper_util::client::proxy::matcher::Matcher;

use super::connect::{Origin, Target};

/// The proxies of an environment.
#[derive(Debug)]
pub(super) struct Proxies {
    matcher: Matcher,
    /// What is wrong with each: for `http`, for `https`.
    wrong: [Option<String>; 2],
}

/// A proxy.
#[derive(Debug)]
pub(super) struct Proxy {
    pub(super) origin: Origin,
    /// What it wants to hear of who asks.
    pub(super) auth: Option<HeaderValue>,
}

impl Proxies {
    pub(super) fn new(environment: &[(String, String)]) -> Self {
        let named = |name: &str| {
            let found = |name: &str| environment.iter().find(|(key, _)| key == name);
            let variable = found(name).or_else(|| found(&name.to_ascii_lowercase()));
            variable.map(|(_, value)| value.trim().to_owned()).unwrap_or_default()
        };
        let (all, http, https) = (named("ALL_PROXY"), named("HTTP_PROXY"), named("HTTPS_PROXY"));
        let wrong = |name: &str, value: &str| {
            let (name, value) =
                if value.is_empty() { ("ALL_PROXY", all.as_str()) } else { (name, value) };
            (!value.is_empty() && !is_usable(value)).then(|| {
                // The value is not repeated: a password may stand in it.
                format!("`{name}` is not the URL of a proxy that can be used: expected `http://host:port` or `https://…`")
            })
        };
        let wrong = [wrong("HTTP_PROXY", &http), wrong("HTTPS_PROXY", &https)];
        let matcher = Matcher::builder().all(all).http(http).https(https).no(named("NO_PROXY"));
        Self { matcher: matcher.build(), wrong }
    }

    /// The proxy on the way to a URL, if there is one.
    pub(super) fn on_the_way_to(&self, url: &Uri) -> Result<Option<Proxy>, String> {
        if is_here(url) {
            return Ok(None);
        }
        let wrong = &self.wrong[usize::from(url.scheme_str() == Some("https"))];
        match (self.matcher.intercept(url), wrong) {
            (None, None) => Ok(None),
            (Some(found), None) => {
                let origin = origin(found.uri()).ok_or("the proxy has no port")?;
                Ok(Some(Proxy { origin, auth: found.basic_auth().cloned() }))
            }
            (_, Some(wrong)) => Err(wrong.clone()),
        }
    }
}

/// Whether a URL names this machine.
fn is_here(url: &Uri) -> bool {
    let host = url.host().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
}

/// Whether a proxy can be asked there.
fn is_usable(value: &str) -> bool {
    let any = Matcher::builder().all(value).build();
    let found = any.intercept(&Uri::from_static("http://a"));
    found.is_some_and(|found| origin(found.uri()).is_some())
}

fn origin(url: &Uri) -> Option<Origin> {
    let is_tls = match url.scheme_str() {
        Some("http") => false,
        Some("https") => true,
        _ => return None,
    };
    let target = Target::of(url, if is_tls { 443 } else { 80 })?;
    Some(Origin { target, is_tls })
}
