//! A compiled test: every string is parsed, variables are not filled in yet.
//!
//! [`compile`](crate::compile) makes a [`Plan`], [`resolve`](crate::resolve) makes a [`ResolvedPlan`] from it. Deliberately
//! absent: locations of errors of a document, since a plan has no errors.

use std::time::Duration;

use model::{Place, StoreConfig, TestId, TraceId};

use crate::{
    document::{FileRef, Reference, Settle, SettleProfile, Trigger, TriggerKind},
    gates::Gates,
    request::split_scheme,
    secrets::Secrets,
    syntax::ast::{Expr, Piece, Selector, Template},
};

/// A compiled test.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The id under which the test is stored; by default derived from the name.
    pub id: TestId,
    /// The display name.
    pub name: String,
    /// The tags to select tests by, in the order written.
    pub tags: Vec<String>,
    pub(crate) trigger: Trigger<OpenText>,
    pub(crate) specs: Vec<Spec>,
    pub(crate) claims: Vec<Claim>,
    pub(crate) outputs: Vec<Output>,
    pub(crate) settle: Settle,
    /// Whether the test declares its own timeout.
    pub(crate) says_timeout: bool,
    pub(crate) expect: Vec<Expect>,
    pub(crate) absent: Vec<String>,
    pub(crate) settle_profile: Option<Reference>,
    /// The trace stores that the test names.
    pub(crate) stores: Vec<String>,
    /// The trace stores to query.
    pub(crate) queried: Vec<StoreConfig>,
    pub(crate) skip_trace_collection: bool,
    /// The requirements that a run has to pass in addition.
    pub(crate) gates: Gates,
}

/// A condition that must be met before a trace can be complete.
#[derive(Clone, Debug)]
pub(crate) enum Expect {
    /// A span of this service.
    Service(String),
    /// A span that matches.
    Span(SourceNode<Selector>),
}

/// Assertions on each span that a selector selects.
#[derive(Clone, Debug)]
pub(crate) struct Spec {
    pub(crate) name: Option<String>,
    pub(crate) selector: SourceNode<Selector>,
    pub(crate) assertions: Vec<SourceNode<Expr>>,
}

/// A statement about the complete trace.
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
    /// The location of the value.
    pub(crate) place: Place,
}

/// A syntax tree with its source text and the location of that text.
#[derive(Clone, Debug)]
pub(crate) struct SourceNode<T> {
    pub(crate) source: String,
    pub(crate) place: Place,
    pub(crate) meaning: T,
}

/// A text of a trigger; its `${…}` are parsed but not filled in.
#[derive(Clone, Debug)]
pub(crate) struct OpenText {
    pub(crate) template: Template,
    pub(crate) place: Place,
    /// The location of each piece.
    pub(crate) pieces: Vec<Place>,
}

/// The part of a plan that is judged, with all variables filled in. The part that is sent is a [`model::Request`].
#[derive(Clone, Debug)]
pub struct ResolvedPlan {
    pub(crate) specs: Vec<Spec>,
    pub(crate) claims: Vec<Claim>,
    pub(crate) outputs: Vec<Output>,
    pub(crate) expect: Vec<Expect>,
    pub(crate) skip_trace_collection: bool,
    pub(crate) gates: Gates,
    /// The secrets to mask.
    pub(crate) secrets: Secrets,
}

impl Plan {
    /// Whether the test collects no trace, so that only the trigger's response is judged.
    pub fn skip_trace_collection(&self) -> bool {
        self.skip_trace_collection
    }

    /// Returns how long to wait for the trace. The default timeout is extended by four times the lag of a store; a declared one is
    /// not. A span that a store hid for its lag is followed by a quiet period of up to one and a half times that, and the lag.
    pub fn settle(&self, lag: Duration) -> Settle {
        let is_default = !self.says_timeout && self.settle.timeout == Settle::default().timeout;
        let more = if is_default { lag * 4 } else { Duration::ZERO };
        Settle { timeout: self.settle.timeout + more, ..self.settle }
    }

    /// Returns the conditions for a complete trace: service names, and selectors as written.
    pub fn expected(&self) -> Vec<&str> {
        self.expect.iter().map(Expect::source).collect()
    }

    /// Returns the services with spans that may name a parent that never arrives, and the peers that export no spans.
    pub fn absent(&self) -> &[String] {
        &self.absent
    }

    /// Returns the settle profile that the test names; see [`wait_as`](Self::wait_as).
    pub fn settle_profile(&self) -> Option<&Reference> {
        self.settle_profile.as_ref()
    }

    /// Applies the timeout of a settle profile to [`settle`](Self::settle), unless the test declares its own timeout.
    pub fn wait_as(&mut self, profile: &SettleProfile) {
        if let Some(timeout) = profile.timeout.filter(|_| !self.says_timeout) {
            self.settle.timeout = timeout;
        }
    }

    /// Returns the names of the trace stores that the test names; see [`query`](Self::query).
    pub fn stores(&self) -> &[String] {
        &self.stores
    }

    /// Lets every run query these trace stores.
    pub fn query(&mut self, stores: Vec<StoreConfig>) {
        self.queried = stores;
    }

    /// Returns the trace stores that a run queries.
    pub fn queried(&self) -> &[StoreConfig] {
        &self.queried
    }

    /// Requires every run to pass these gates too.
    pub fn require(&mut self, gates: Gates) {
        self.gates = gates;
    }

    /// Fires nothing, and judges the trace of this id, which exists already.
    pub fn judge_trace(&mut self, id: TraceId) {
        let place = self.trigger.place.clone();
        let template = Template { pieces: vec![Piece::Text(id.to_string())] };
        let id = OpenText { template, pieces: vec![place.clone()], place };
        self.trigger.kind = TriggerKind::TraceId(id);
    }

    /// Returns the host and port that the trigger calls, in lower case; `None` if they depend on variables.
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

    /// Returns the files that the trigger needs, in the order written.
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
    /// Returns the text before the first `${…}`, and whether it is the complete text.
    pub(crate) fn head(&self) -> (&str, bool) {
        match self.template.pieces.as_slice() {
            [] => ("", true),
            [Piece::Text(text)] => (text, true),
            [Piece::Text(text), ..] => (text, false),
            [Piece::Value(_), ..] => ("", false),
        }
    }
}
