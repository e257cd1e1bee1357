//! The catalogue of the server's own telemetry: the name and meaning of every span, attribute, metric and event.
//!
//! Telemetry is an interface, and dashboards and alerts are callers that no compiler sees. So a name is changed only here,
//! and `docs/telemetry.md` is generated from this. Deliberately absent: how telemetry is exported, and ingest, which is
//! counted and never traced.

mod metrics;
mod page;

pub use metrics::METRICS;
pub(crate) use metrics::{
    BUS_LAG, DB_DURATION, HTTP_DURATION, INGEST_SPANS, LEASE_DURATION, PROOF_DURATION, QUEUE_AGE,
    QUEUE_DEPTH, QUEUE_DURATION, RUN_DURATION, RUNS, SETTLE_DURATION, VERDICT_DELAY,
};
pub use page::markdown;

use telemetry::plan::Level;

/// The instrumentation scope of all signals.
pub(crate) const SCOPE: &str = "qualitytrace";

/// A span.
#[derive(Debug)]
pub struct Span {
    /// The name; the part in `<…>` varies.
    pub name: &'static str,
    /// The level; a statement in a step that waits has the level of the step.
    pub level: Level,
    /// The span kind.
    pub kind: &'static str,
    /// The parent span.
    pub parent: &'static str,
    /// Its attributes.
    pub attributes: &'static [&'static str],
    /// The description.
    pub meaning: &'static str,
}

/// The instrument of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instrument {
    /// A monotonic sum.
    Counter,
    /// A current value.
    Gauge,
    /// A distribution of values.
    Histogram,
}

/// A metric. The number of its time series does not grow with traffic: no attribute is the id of a run, a test or a trace.
#[derive(Debug)]
pub struct Metric {
    /// The OpenTelemetry name.
    pub name: &'static str,
    /// The instrument.
    pub instrument: Instrument,
    /// The unit in UCUM.
    pub unit: &'static str,
    /// Its attributes.
    pub attributes: &'static [&'static str],
    /// The description.
    pub meaning: &'static str,
}

/// A log event.
#[derive(Debug)]
pub struct Event {
    /// Its name.
    pub name: &'static str,
    /// Its severity.
    pub severity: &'static str,
    /// Its attributes.
    pub attributes: &'static [&'static str],
    /// When the server logs it.
    pub meaning: &'static str,
}

/// The names of events.
pub(crate) mod event {
    pub(crate) const READY: &str = "qualitytrace.server.ready";
    pub(crate) const NOT_READY: &str = "qualitytrace.server.not_ready";
    pub(crate) const RELOADED: &str = "qualitytrace.server.reloaded";
    pub(crate) const EXPORTER_TROUBLE: &str = "qualitytrace.exporter.trouble";
    pub(crate) const EXPORTER_RECOVERED: &str = "qualitytrace.exporter.recovered";
    pub(crate) const RUN_ACCEPTED: &str = "qualitytrace.run.accepted";
    pub(crate) const RUN_DEBUG: &str = "qualitytrace.run.debug";
    pub(crate) const RUN_ENDED: &str = "qualitytrace.run.ended";
    pub(crate) const RUN_SUPERSEDED: &str = "qualitytrace.run.superseded";
    pub(crate) const RUN_OVERTAKEN: &str = "qualitytrace.run.overtaken";
    pub(crate) const LOGIN: &str = "qualitytrace.login";
    pub(crate) const DOCUMENT_CHANGED: &str = "qualitytrace.document.changed";
}

/// Attributes that more than one module sets.
pub(crate) mod attribute {
    pub(crate) const VERDICT: &str = "qualitytrace.run.verdict";
    pub(crate) const PROVISIONAL: &str = "qualitytrace.run.provisional_verdict";
    pub(crate) const RUN_ID: &str = "qualitytrace.run.id";
    pub(crate) const PROJECT: &str = "qualitytrace.project";
    pub(crate) const TEST_ID: &str = "qualitytrace.test.id";
    pub(crate) const TEST_VERSION: &str = "qualitytrace.test.version";
    pub(crate) const REVISION: &str = "vcs.ref.head.revision";
    pub(crate) const STARTER: &str = "qualitytrace.run.starter";
    pub(crate) const DOCUMENT_KIND: &str = "qualitytrace.document.kind";
    pub(crate) const DOCUMENT_ID: &str = "qualitytrace.document.id";
    pub(crate) const DOCUMENT_VERSION: &str = "qualitytrace.document.version";
    pub(crate) const EXPORTER: &str = "otel.component.name";
    pub(crate) const TOPIC: &str = "qualitytrace.exporter.topic";
    pub(crate) const OUTCOME: &str = "qualitytrace.login.outcome";
    pub(crate) const SETTLE_COMPLETE: &str = "qualitytrace.settle.complete";
    pub(crate) const SETTLE_REASON: &str = "qualitytrace.settle.reason";
    pub(crate) const SETTLE_WAITED: &str = "qualitytrace.settle.waited";
    pub(crate) const SETTLE_SPANS: &str = "qualitytrace.settle.spans";
    pub(crate) const INGEST_OUTCOME: &str = "qualitytrace.ingest.outcome";
    pub(crate) const PROOF: &str = "qualitytrace.bus.proof";
    pub(crate) const TEST_SUITE: &str = "test.suite.name";
    pub(crate) const TEST_CASE: &str = "test.case.name";
    pub(crate) const TEST_STATUS: &str = "test.case.result.status";
    pub(crate) const METHOD: &str = "http.request.method";
    pub(crate) const ROUTE: &str = "http.route";
    pub(crate) const STATUS: &str = "http.response.status_code";
    pub(crate) const PATH: &str = "url.path";
    pub(crate) const SCHEME: &str = "url.scheme";
    pub(crate) const ERROR: &str = "error.type";
    pub(crate) const EXCEPTION_TYPE: &str = "exception.type";
    pub(crate) const DB_SYSTEM: &str = "db.system.name";
    pub(crate) const DB_OPERATION: &str = "db.operation.name";
    pub(crate) const DB_TABLE: &str = "db.collection.name";
    pub(crate) const BUS_SYSTEM: &str = "messaging.system";
    pub(crate) const BUS_OPERATION: &str = "messaging.operation.name";
    pub(crate) const BUS_KIND: &str = "messaging.operation.type";
    pub(crate) const BUS_SUBJECT: &str = "messaging.destination.name";
}

/// The span of a run; the name of a step's span is this, a dot, and the name of the step.
pub(crate) const RUN: &str = "qualitytrace.run";

/// The event of every failed span; its only attribute is `exception.type`.
pub(crate) const EXCEPTION: &str = "exception";

/// The span of a re-judgement that a caller requested.
pub(crate) const JUDGEMENT: &str = "qualitytrace.judgement";

/// All spans of the server itself.
pub const SPANS: &[Span] = &[
    Span {
        name: "<METHOD> <route>",
        level: Level::Info,
        kind: "server",
        parent: "the caller's span, if it sent a `traceparent`; else it is a root",
        attributes: &[
            attribute::METHOD,
            attribute::ROUTE,
            attribute::PATH,
            attribute::SCHEME,
            attribute::STATUS,
            attribute::ERROR,
        ],
        meaning: "A request to the API. No header and no body is recorded. Probes, `/metrics` and what is refused with 429 are not traced; of a caller who is not known (401), the `traceparent` does not decide whether it is.",
    },
    Span {
        name: RUN,
        level: Level::Info,
        kind: "internal",
        parent: "the request that started the run",
        attributes: &[
            attribute::RUN_ID,
            attribute::PROJECT,
            attribute::TEST_ID,
            attribute::TEST_VERSION,
            attribute::REVISION,
            attribute::STARTER,
            attribute::TEST_SUITE,
            attribute::TEST_CASE,
            attribute::TEST_STATUS,
            attribute::VERDICT,
            attribute::SETTLE_COMPLETE,
            attribute::SETTLE_REASON,
            attribute::SETTLE_WAITED,
            attribute::SETTLE_SPANS,
        ],
        meaning: "A run, from its acceptance to its record, linked to the trigger's span in the trace under test. `test.case.result.status` is `pass` or `fail`, and absent where the run is inconclusive. `test.suite.name` is there where the run is a step of a suite, and `vcs.ref.head.revision` where its start named one. `qualitytrace.run.starter` is who started it: `person`, `token`, `suite`, or `anyone` where access is off.",
    },
    Span {
        name: "qualitytrace.run.queue",
        level: Level::Trace,
        kind: "internal",
        parent: RUN,
        attributes: &[],
        meaning: "From acceptance until a worker took the run.",
    },
    Span {
        name: "qualitytrace.run.compile",
        level: Level::Debug,
        kind: "internal",
        parent: RUN,
        attributes: &[],
        meaning: "The version of the test that the run started with is compiled.",
    },
    Span {
        name: "qualitytrace.run.resolve",
        level: Level::Debug,
        kind: "internal",
        parent: RUN,
        attributes: &[],
        meaning: "Variable sets are read, and variables filled in.",
    },
    Span {
        name: "qualitytrace.run.trigger",
        level: Level::Debug,
        kind: "internal",
        parent: RUN,
        attributes: &[attribute::ERROR],
        meaning: "The attempt is recorded, the request sent and its answer recorded. That there was no answer is an error.",
    },
    Span {
        name: "qualitytrace.run.settle",
        level: Level::Trace,
        kind: "internal",
        parent: RUN,
        attributes: &[],
        meaning: "The worker collects spans until the trace is complete or the timeout expires.",
    },
    Span {
        name: "qualitytrace.run.judge",
        level: Level::Debug,
        kind: "internal",
        parent: RUN,
        attributes: &[],
        meaning: "The trace is held against the test.",
    },
    Span {
        name: "qualitytrace.run.linger",
        level: Level::Trace,
        kind: "internal",
        parent: RUN,
        attributes: &[],
        meaning: "The provisional verdict is written, and spans that come count until it is final. Only of runs whose verdict lingers.",
    },
    Span {
        name: "qualitytrace.run.record",
        level: Level::Debug,
        kind: "internal",
        parent: RUN,
        attributes: &[],
        meaning: "Verdict, events and trace are written.",
    },
    Span {
        name: JUDGEMENT,
        level: Level::Info,
        kind: "internal",
        parent: "the request",
        attributes: &[
            attribute::RUN_ID,
            attribute::TEST_CASE,
            attribute::TEST_STATUS,
            attribute::VERDICT,
            attribute::SETTLE_COMPLETE,
            attribute::SETTLE_REASON,
            attribute::SETTLE_WAITED,
            attribute::SETTLE_SPANS,
        ],
        meaning: "The stored trace of a run is re-judged. The run keeps its verdict, and no metric counts this one.",
    },
    Span {
        name: "<OPERATION> <table>",
        level: Level::Debug,
        kind: "client",
        parent: "the request or the step of a run",
        attributes: &[
            attribute::DB_SYSTEM,
            attribute::DB_OPERATION,
            attribute::DB_TABLE,
            attribute::ERROR,
        ],
        meaning: "A statement that Postgres carried out, without its text and its values. Renewals of leases are not traced.",
    },
    Span {
        name: "send <subject>",
        level: Level::Trace,
        kind: "producer",
        parent: "the request that had news",
        attributes: &[
            attribute::BUS_SYSTEM,
            attribute::BUS_OPERATION,
            attribute::BUS_KIND,
            attribute::BUS_SUBJECT,
        ],
        meaning: "A notification on the bus, on which workers query the queue again.",
    },
];

/// The only span that is not of the server itself: the root of each trace under test.
pub const TRIGGER: &str = "Qualitytrace trigger";

/// All named events of the server's log.
pub const EVENTS: &[Event] = &[
    Event {
        name: event::READY,
        severity: "info",
        attributes: &[],
        meaning: "The server serves: after its start, or again.",
    },
    Event {
        name: event::NOT_READY,
        severity: "warn",
        attributes: &[],
        meaning: "The server does not serve. The body states the reason.",
    },
    Event {
        name: event::RELOADED,
        severity: "info",
        attributes: &[],
        meaning: "The configuration was read again, and what can change while the server runs has changed.",
    },
    Event {
        name: event::EXPORTER_TROUBLE,
        severity: "warn",
        attributes: &[attribute::EXPORTER, attribute::TOPIC],
        meaning: "An exporter does not deliver, its buffer fills, is full or cannot be written, or it drops. The body states the reason and what is kept.",
    },
    Event {
        name: event::EXPORTER_RECOVERED,
        severity: "info",
        attributes: &[attribute::EXPORTER, attribute::TOPIC],
        meaning: "That is over.",
    },
    Event {
        name: event::RUN_ACCEPTED,
        severity: "info",
        attributes: &[attribute::RUN_ID, attribute::PROJECT, attribute::TEST_ID],
        meaning: "A run was accepted, by the API or as a step of a suite.",
    },
    Event {
        name: event::RUN_DEBUG,
        severity: "debug",
        attributes: &[attribute::RUN_ID],
        meaning: "What a run does next and why: its lease, its trigger, its spans, its writes to the database. The body states it.",
    },
    Event {
        name: event::RUN_ENDED,
        severity: "info",
        attributes: &[
            attribute::RUN_ID,
            attribute::PROJECT,
            attribute::TEST_ID,
            attribute::TEST_CASE,
            attribute::VERDICT,
            attribute::SETTLE_REASON,
        ],
        meaning: "A run has its final verdict. `qualitytrace.settle.reason` states whether its trace was complete, and if not, why.",
    },
    Event {
        name: event::RUN_SUPERSEDED,
        severity: "info",
        attributes: &[attribute::RUN_ID, attribute::VERDICT, attribute::PROVISIONAL],
        meaning: "The final verdict of a run is another than its provisional one.",
    },
    Event {
        name: event::RUN_OVERTAKEN,
        severity: "warn",
        attributes: &[attribute::RUN_ID, attribute::VERDICT],
        meaning: "Spans came after the final verdict of a run, with which it would have been this one.",
    },
    Event {
        name: event::LOGIN,
        severity: "info; warn where it failed",
        attributes: &[attribute::OUTCOME],
        meaning: "A person logged in (`success`) or could not (`failure`). Who and from where is in the audit log only.",
    },
    Event {
        name: event::DOCUMENT_CHANGED,
        severity: "info",
        attributes: &[
            attribute::PROJECT,
            attribute::DOCUMENT_KIND,
            attribute::DOCUMENT_ID,
            attribute::DOCUMENT_VERSION,
        ],
        meaning: "A document has a new version by the API, or was deleted; then there is no version.",
    },
];

#[cfg(test)]
mod tests;
