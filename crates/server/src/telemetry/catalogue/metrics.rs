//! The metrics of the server itself.

use super::{Instrument, Metric, attribute};

macro_rules! metric {
    ($name:ident, $text:literal, $instrument:ident, $unit:literal, [$($attribute:expr),*], $meaning:literal) => {
        pub(crate) const $name: Metric = Metric {
            name: $text,
            instrument: Instrument::$instrument,
            unit: $unit,
            attributes: &[$($attribute),*],
            meaning: $meaning,
        };
    };
}

metric!(
    RUNS,
    "qualitytrace.runs",
    Counter,
    "{run}",
    [attribute::VERDICT],
    "Runs that ended, by verdict."
);
metric!(
    RUN_DURATION,
    "qualitytrace.run.duration",
    Histogram,
    "s",
    [attribute::VERDICT],
    "From the acceptance of a run to its record, by verdict."
);
metric!(
    QUEUE_DURATION,
    "qualitytrace.run.queue.duration",
    Histogram,
    "s",
    [],
    "From the acceptance of a run until a worker took it."
);
metric!(
    SETTLE_DURATION,
    "qualitytrace.run.settle.duration",
    Histogram,
    "s",
    [attribute::SETTLE_COMPLETE],
    "From the trigger's answer to the decision whether the trace is complete."
);
metric!(
    VERDICT_DELAY,
    "qualitytrace.run.verdict.delay",
    Histogram,
    "s",
    [],
    "From the arrival of the last span to the record of the final verdict, its linger included; only of runs that had spans."
);
metric!(
    QUEUE_DEPTH,
    "qualitytrace.queue.depth",
    Gauge,
    "{run}",
    [],
    "Runs that wait for a worker, of all servers on this database."
);
metric!(QUEUE_AGE, "qualitytrace.queue.age", Gauge, "s", [], "Age of the oldest run that waits.");
metric!(
    LEASE_DURATION,
    "qualitytrace.lease.duration",
    Histogram,
    "s",
    [],
    "How long the database took to lease runs to this server, whether there were any or not."
);
metric!(
    PROOF_DURATION,
    "qualitytrace.bus.proof.duration",
    Histogram,
    "s",
    [attribute::PROOF],
    "How long NATS took to prove that this server has all spans of a run: `proved`, or the kind of the doubt."
);
metric!(
    BUS_LAG,
    "qualitytrace.bus.lag",
    Gauge,
    "{message}",
    [],
    "Messages in NATS to be read here."
);
metric!(
    INGEST_SPANS,
    "qualitytrace.ingest.spans",
    Counter,
    "{span}",
    [attribute::INGEST_OUTCOME],
    "Spans that were received: `kept` for a run, `foreign` and discarded, `invalid`, or `refused`, and the sender has to retry."
);
metric!(
    HTTP_DURATION,
    "http.server.request.duration",
    Histogram,
    "s",
    [attribute::METHOD, attribute::ROUTE, attribute::STATUS, attribute::ERROR],
    "How long requests to the API took."
);
metric!(
    DB_DURATION,
    "db.client.operation.duration",
    Histogram,
    "s",
    [attribute::DB_SYSTEM, attribute::DB_OPERATION, attribute::DB_TABLE, attribute::ERROR],
    "How long Postgres took, waiting for a connection included."
);

/// All metrics of the server itself.
pub const METRICS: &[&Metric] = &[
    &RUNS,
    &RUN_DURATION,
    &QUEUE_DURATION,
    &SETTLE_DURATION,
    &VERDICT_DELAY,
    &QUEUE_DEPTH,
    &QUEUE_AGE,
    &LEASE_DURATION,
    &PROOF_DURATION,
    &BUS_LAG,
    &INGEST_SPANS,
    &HTTP_DURATION,
    &DB_DURATION,
];
