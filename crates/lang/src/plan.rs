//! A compiled test: every string of it understood, its variables still open.
//!
//! [`compile`](crate::compile) makes a [`Plan`], [`resolve`](crate::resolve) makes a [`ResolvedPlan`] of it. Deliberately
//! absent: where the mistakes of a document stand, since a plan has none.

use std::time::Duration;

use model::{Place, TestId};

use crate::{
    document::{FileRef, Reference, SettleProfile, Trigger, TriggerKind},
    gates::Gates,
    request::split_scheme,
    secrets::Secrets,
    syntax::ast::{Expr, Piece, Selector, Template},
};

/// A compiled test.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Under which it is kept; made from the name where the document gives none.
    pub id: TestId,
    /// For people.
    pub name: String,
    /// For choosing tests, in the order written.
    pub tags: Vec<String>,
    pub(crate) trigger: Trigger<OpenText>,
    pub(crate) specs: Vec<Spec>,
    pub(crate) claims: Vec<Claim>,
    pub(crate) outputs: Vec<Output>,
    pub(crate) settle: Settle,
    /// Whether the test itself says how long to wait.
    pub(crate) says_timeout: bool,
    pub(crate) expect: Vec<Expect>,
    pub(crate) absent: Vec<String>,
    pub(crate) settle_profile: Option<Reference>,
    pub(crate) skip_trace_collection: bool,
    /// What a run has to pass besides.
    pub(crate) gates: Gates,
}

/// How long to wait for a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settle {
    /// From the trigger's answer to the moment when the trace is judged as it is.
    pub timeout: Duration,
    /// How long a process has to be quiet before it is taken to have sent everything; none where the test leaves that
    /// to what is known of the process.
    pub flush: Option<Duration>,
}

/// What must have come before a trace can be whole.
#[derive(Clone, Debug)]
pub(crate) enum Expect {
    /// A span of this service.
    Service(String),
    /// A span that matches.
    Span(SourceNode<Selector>),
}

/// What is said of each span that a selector matches.
#[derive(Clone, Debug)]
pub(crate) struct Spec {
    pub(crate) name: Option<String>,
    pub(crate) selector: SourceNode<Selector>,
    pub(crate) assertions: Vec<SourceNode<Expr>>,
}

/// What is said of the whole trace.
#[derive(Clone, Debug)]
pub(crate) struct Claim {
    pub(crate) name: Option<String>,
    pub(crate) claim: SourceNode<Expr>,
}

/// A value that later steps may use.
#[derive(Clone, Debug)]
pub(crate) struct Output {
    pub(crate) name: String,
    pub(crate) selector: Selector,
    pub(crate) value: Expr,
    /// Where the value stands.
    pub(crate) place: Place,
}

/// Something with the text it was read from and the place of that.
#[derive(Clone, Debug)]
pub(crate) struct SourceNode<T> {
    pub(crate) source: String,
    pub(crate) place: Place,
    pub(crate) meaning: T,
}

/// A text of a trigger with its `${…}` still open.
#[derive(Clone, Debug)]
pub(crate) struct OpenText {
    pub(crate) template: Template,
    pub(crate) place: Place,
    /// Where each of its pieces stands.
    pub(crate) pieces: Vec<Place>,
}

/// A plan with nothing open in it, as far as it is judged. What is fired is a [`model::Request`].
#[derive(Clone, Debug)]
pub struct ResolvedPlan {
    pub(crate) specs: Vec<Spec>,
    pub(crate) claims: Vec<Claim>,
    pub(crate) outputs: Vec<Output>,
    pub(crate) expect: Vec<Expect>,
    pub(crate) skip_trace_collection: bool,
    pub(crate) gates: Gates,
    /// The texts that nobody may see.
    pub(crate) secrets: Secrets,
}

impl Plan {
    /// Whether the test asks for no trace, so that it is judged by the trigger's answer alone.
    pub fn skip_trace_collection(&self) -> bool {
        self.skip_trace_collection
    }

    /// How long to wait for the trace.
    pub fn settle(&self) -> Settle {
        self.settle
    }

    /// What must have come before the trace is whole: services, and selectors as written.
    pub fn expected(&self) -> Vec<&str> {
        self.expect.iter().map(Expect::source).collect()
    }

    /// Services whose spans may name a parent that never comes, and peers that send no spans.
    pub fn absent(&self) -> &[String] {
        &self.absent
    }

    /// The polling profile that the test names; see [`wait_as`](Self::wait_as).
    pub fn settle_profile(&self) -> Option<&Reference> {
        self.settle_profile.as_ref()
    }

    /// Takes the timeout of a polling profile for that of [`settle`](Self::settle), unless the test says its own.
    pub fn wait_as(&mut self, profile: &SettleProfile) {
        if let Some(timeout) = profile.timeout.filter(|_| !self.says_timeout) {
            self.settle.timeout = timeout;
        }
    }

    /// Has every run pass these gates too.
    pub fn require(&mut self, gates: Gates) {
        self.gates = gates;
    }

    /// Host and port that the trigger calls, in small letters; none where that is not known before variables are.
    pub fn host(&self) -> Option<String> {
        let url = match &self.trigger.kind {
            TriggerKind::Http(http) => &http.url,
            TriggerKind::Graphql(graphql) => &graphql.url,
            _ => return None,
        };
        let (head, is_all) = url.head();
        let (_, rest) = split_scheme(head)?;
        let end = rest.find(['/', '?', '#']);
        let authority = &rest[..end.or(is_all.then_some(rest.len()))?];
        let host = authority.rsplit('@').next().unwrap_or_default();
        (!host.is_empty()).then(|| host.to_ascii_lowercase())
    }

    /// The files that the trigger needs, in the order written.
    pub fn files(&self) -> Vec<&FileRef> {
        self.trigger.files()
    }
}

impl Expect {
    pub(crate) fn source(&self) -> &str {
        match self {
            Self::Service(service) => service,
            Self::Span(selector) => &selector.source,
        }
    }
}

impl Default for Settle {
    fn default() -> Self {
        Self { timeout: Duration::from_secs(30), flush: None }
    }
}

impl OpenText {
    /// The text in front of the first `${…}`, and whether it is all there is.
    pub(crate) fn head(&self) -> (&str, bool) {
        match self.template.pieces.as_slice() {
            [] => ("", true),
            [Piece::Text(text)] => (text, true),
            [Piece::Text(text), ..] => (text, false),
            [Piece::Value(_), ..] => ("", false),
        }
    }
}
