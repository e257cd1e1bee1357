//! From a plan to what is sent and judged: from here on no `${…}` exists.
//!
//! Deliberately absent so far: functions of chance and time, and with them the seed that a run would have to keep.

use model::{Fault, Faulty, HttpRequest, Place, Request};
use thiserror::Error;

use crate::{
    plan::{Header, Output, Plan, Spec, Trigger},
    template::Vars,
};

/// A plan with nothing open in it.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// What is fired.
    pub request: Request,
    pub(crate) specs: Vec<Spec>,
    pub(crate) outputs: Vec<Output>,
    pub(crate) skip_trace_collection: bool,
}

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

/// Fills in the variables.
pub fn resolve(plan: &Plan, vars: &Vars) -> Result<Resolved, ResolveError> {
    Ok(Resolved {
        request: Request::Http(request(&plan.trigger, vars)?),
        specs: plan.specs.clone(),
        outputs: plan.outputs.clone(),
        skip_trace_collection: plan.skip_trace_collection(),
    })
}

fn request(trigger: &Trigger, vars: &Vars) -> Result<HttpRequest, ResolveError> {
    let mut headers = Vec::with_capacity(trigger.headers.len());
    for header in &trigger.headers {
        headers.push(self::header(header, vars)?);
    }
    Ok(HttpRequest {
        method: trigger.method.clone(),
        url: url(trigger, vars)?,
        headers,
        body: trigger.body.fill(vars)?,
        timeout: trigger.timeout,
    })
}

/// The URL, with `http://` in front where it has no scheme.
fn url(trigger: &Trigger, vars: &Vars) -> Result<String, ResolveError> {
    let filled = trigger.url.fill(vars)?;
    let written = filled.trim();
    let (scheme, rest) = split_scheme(written).unwrap_or(("http", written));
    let scheme = scheme.to_ascii_lowercase();
    let is_web = scheme == "http" || scheme == "https";
    if !is_web || rest.is_empty() || rest.starts_with(['/', '?', '#']) {
        return Err(ResolveError::Url { place: trigger.url_place.clone() });
    }
    Ok(format!("{scheme}://{rest}"))
}

/// The scheme of a URL and what stands behind it; nothing where `://` belongs to something further on.
pub(crate) fn split_scheme(url: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = url.split_once("://")?;
    scheme
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b))
        .then_some((scheme, rest))
}

fn header(header: &Header, vars: &Vars) -> Result<(String, String), ResolveError> {
    let refused = |reason| Err(ResolveError::Header { place: header.place.clone(), reason });
    let (key, value) = (header.key.fill(vars)?, header.value.fill(vars)?);
    let is_token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    if key.is_empty() || !key.bytes().all(is_token) {
        return refused("its name may hold letters, digits and `-` only");
    }
    if value.contains(|c: char| c.is_control() && c != '\t') {
        return refused("its value holds a line break or another control character");
    }
    Ok((key, value))
}
