//! From a plan to what is fired: from here on no `${…}` exists.
//!
//! Deliberately absent so far: every trigger but HTTP, files as bodies, `tls`. A plan with one of them is judged like
//! any other (`resolve`), but not fired.

use std::time::Duration;

use base64::{Engine, engine::general_purpose::STANDARD};
use model::{Fault, Faulty, HttpRequest, Place, Request};
use thiserror::Error;

use crate::{
    document::{Auth, Content, Header, Http, KeyPlace, TriggerKind},
    eval::resolve::{self, Vars},
    plan::{OpenText, Plan},
    syntax::ast::Piece,
    value::function::{Draw, Purpose, Seed},
};

/// Why a plan cannot be resolved.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ResolveError {
    /// A `${…}` names something that is not there.
    #[error(
        "the variable `{name}` at {} has no value: set it, or take it out of the test",
        At(place)
    )]
    Missing {
        /// The variable.
        name: String,
        /// Where it is named.
        place: Place,
    },
    /// A `${…}` has no value.
    #[error("what stands at {} has no value: {reason}", At(place))]
    Valueless {
        /// Why.
        reason: String,
        /// Where it stands.
        place: Place,
    },
    /// The URL, filled in, is not one that can be sent to.
    #[error(
        "the URL at {} is not complete: expected `http://` or `https://` and a host",
        At(place)
    )]
    Url {
        /// Where the URL stands.
        place: Place,
    },
    /// A header, filled in, is not one that can be sent.
    #[error("the header at {} cannot be sent: {reason}", At(place))]
    Header {
        /// Where its key stands.
        place: Place,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The test is right and asks for something that this version does not do.
    #[error("{what} at {} cannot be fired by this version yet", At(place))]
    Later {
        /// What it is, such as a type of trigger.
        what: String,
        /// Where it stands.
        place: Place,
    },
}

/// What is fired for a run of the plan.
pub fn request(plan: &Plan, vars: &Vars, seed: &Seed) -> Result<Request, ResolveError> {
    let trigger = &plan.trigger;
    let later = |what: String, place: &Place| ResolveError::Later { what, place: place.clone() };
    let TriggerKind::Http(http) = &trigger.kind else {
        return Err(later(format!("a trigger of type `{}`", trigger.name), &trigger.place));
    };
    if let Some(tls) = &trigger.tls {
        return Err(later("a trigger with `tls`".to_owned(), &tls.place));
    }
    if let Some(Content::File(file)) = &http.body {
        return Err(later("a trigger with a file as its body".to_owned(), &file.place));
    }
    let mut filler = Filler { vars, draw: Draw::new(seed, Purpose::Request) };
    Ok(Request::Http(filler.http(http, trigger.timeout)?))
}

impl Faulty for ResolveError {
    fn fault(&self) -> Fault {
        Fault::Invalid
    }
}

/// A place as an editor understands it.
struct At<'a>(&'a Place);

impl std::fmt::Display for At<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}:{}", self.0.file, self.0.line, self.0.column)
    }
}

/// Fills in texts.
struct Filler<'a> {
    vars: &'a Vars,
    draw: Draw,
}

impl Filler<'_> {
    fn http(
        &mut self,
        http: &Http<OpenText>,
        timeout: Duration,
    ) -> Result<HttpRequest, ResolveError> {
        let mut url = self.url(&http.url)?;
        let mut headers = Vec::with_capacity(http.headers.len());
        for header in &http.headers {
            headers.push(self.header(header)?);
        }
        let body = match &http.body {
            Some(Content::Text(body)) => self.text(body)?,
            Some(Content::File(_)) | None => String::new(),
        };
        match &http.auth {
            None => {}
            Some(Auth::ApiKey { key, value, place: KeyPlace::Query }) => {
                url = with_query(&url, &self.text(key)?, &self.text(value)?);
            }
            Some(Auth::ApiKey { key, value, place: KeyPlace::Header }) => {
                let (name, value) = (self.text(key)?, self.text(value)?);
                headers.push(checked(name, value, &key.place)?);
            }
            Some(Auth::Basic { username, password }) => {
                let pair = format!("{}:{}", self.text(username)?, self.text(password)?);
                let value = format!("Basic {}", STANDARD.encode(pair));
                headers.push(("Authorization".to_owned(), value));
            }
            Some(Auth::Bearer { token }) => {
                let written = self.text(token)?;
                let has_scheme = written.to_ascii_lowercase().starts_with("bearer ");
                let value = if has_scheme { written } else { format!("Bearer {written}") };
                headers.push(checked("Authorization".to_owned(), value, &token.place)?);
            }
        }
        Ok(HttpRequest { method: http.method.clone(), url, headers, body, timeout })
    }

    /// The URL, with `http://` in front where it has no scheme.
    fn url(&mut self, url: &OpenText) -> Result<String, ResolveError> {
        let filled = self.text(url)?;
        let written = filled.trim();
        let (scheme, rest) = split_scheme(written).unwrap_or(("http", written));
        let scheme = scheme.to_ascii_lowercase();
        let is_web = scheme == "http" || scheme == "https";
        if !is_web || rest.is_empty() || rest.starts_with(['/', '?', '#']) {
            return Err(ResolveError::Url { place: url.place.clone() });
        }
        Ok(format!("{scheme}://{rest}"))
    }

    fn header(&mut self, header: &Header<OpenText>) -> Result<(String, String), ResolveError> {
        let key = self.text(&header.key)?;
        let value = header.value.as_ref().map_or(Ok(String::new()), |value| self.text(value))?;
        checked(key, value, &header.key.place)
    }

    fn text(&mut self, open: &OpenText) -> Result<String, ResolveError> {
        let mut filled = String::new();
        for (piece, place) in open.template.pieces.iter().zip(&open.pieces) {
            match piece {
                Piece::Text(text) => filled.push_str(text),
                Piece::Value(value) => {
                    let known = resolve::value(value, self.vars, &mut self.draw);
                    filled.push_str(&known.map_err(|unfilled| unfilled.at(place))?.text);
                }
            }
        }
        Ok(filled)
    }
}

/// The scheme of a URL and what stands behind it; nothing where `://` belongs to something further on.
pub(crate) fn split_scheme(url: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = url.split_once("://")?;
    scheme
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b))
        .then_some((scheme, rest))
}

/// A header that can be sent.
fn checked(key: String, value: String, place: &Place) -> Result<(String, String), ResolveError> {
    let refused = |reason| Err(ResolveError::Header { place: place.clone(), reason });
    let is_token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    if key.is_empty() || !key.bytes().all(is_token) {
        return refused("its name may hold letters, digits and `-` only");
    }
    if value.contains(|c: char| c.is_control() && c != '\t') {
        return refused("its value holds a line break or another control character");
    }
    Ok((key, value))
}

/// The URL with one more parameter, in front of the fragment.
fn with_query(url: &str, key: &str, value: &str) -> String {
    let (head, fragment) = match url.split_once('#') {
        Some((head, fragment)) => (head, format!("#{fragment}")),
        None => (url, String::new()),
    };
    let joint = match head.split_once('?') {
        None => "?",
        Some((_, query)) if query.is_empty() || query.ends_with('&') => "",
        Some(_) => "&",
    };
    format!("{head}{joint}{}={}{fragment}", escaped(key), escaped(value))
}

/// Percent-encoded for a query: all but what no URL gives a meaning.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                out.push(char::from(byte));
            }
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_joins_a_query() {
        for (url, expected) in [
            ("http://x", "http://x?k%20=a%26b"),
            ("http://x/?", "http://x/?k%20=a%26b"),
            ("http://x/?a=1", "http://x/?a=1&k%20=a%26b"),
            ("http://x/?a=1&#top", "http://x/?a=1&k%20=a%26b#top"),
        ] {
            assert_eq!(with_query(url, "k ", "a&b"), expected);
        }
    }
}
