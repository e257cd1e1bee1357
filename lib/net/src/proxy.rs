//! Selects the proxy of a request by the environment, in the usual way.
//!
//! The variables are `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY`, or the same in lower case. Targets on this
//! machine never use a proxy. An unusable proxy is an error and is not ignored: otherwise the request would go where it must
//! not.

use std::net::IpAddr;

use http::{HeaderValue, Uri};
use hyper_util::client::proxy::matcher::Matcher;

use crate::target::Origin;

/// The proxies of an environment.
#[derive(Debug)]
pub struct Proxies {
    matcher: Matcher,
    /// The error of each proxy: for `http`, for `https`.
    wrong: [Option<String>; 2],
}

/// A proxy.
#[derive(Debug)]
pub struct Proxy {
    /// Where the proxy listens.
    pub origin: Origin,
    /// The `proxy-authorization` header.
    pub auth: Option<HeaderValue>,
}

impl Proxies {
    /// Reads the proxies of an environment.
    pub fn new(environment: &[(String, String)]) -> Self {
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
                // The message does not repeat the value: it may contain a password.
                format!("`{name}` is not the URL of a proxy that can be used: expected `http://host:port` or `https://…`")
            })
        };
        let wrong = [wrong("HTTP_PROXY", &http), wrong("HTTPS_PROXY", &https)];
        let matcher = Matcher::builder().all(all).http(http).https(https).no(named("NO_PROXY"));
        Self { matcher: matcher.build(), wrong }
    }

    /// Returns the proxy for a URL, if there is one.
    pub fn on_the_way_to(&self, url: &Uri) -> Result<Option<Proxy>, String> {
        if is_here(url) {
            return Ok(None);
        }
        let wrong = &self.wrong[usize::from(url.scheme_str() == Some("https"))];
        match (self.matcher.intercept(url), wrong) {
            (None, None) => Ok(None),
            (Some(found), None) => {
                let origin = Origin::of(found.uri()).map_err(|error| error.to_string())?;
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

/// Whether the value is the URL of a usable proxy.
fn is_usable(value: &str) -> bool {
    let any = Matcher::builder().all(value).build();
    let found = any.intercept(&Uri::from_static("http://a"));
    found.is_some_and(|found| Origin::of(found.uri()).is_ok())
}
