//! The metrics of the server itself. Their names are in the catalogue; the number of time series does not grow with traffic.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use drivers::receiver::ReceiverStats;
use model::{Outcome, Step, StepTime, Timestamp, Verdict};
use telemetry::opentelemetry::{
    KeyValue,
    metrics::{Counter, Histogram, Meter},
};

use crate::telemetry::{
    call::{Call, HttpSpan},
    catalogue::{self, Metric, attribute},
};

/// The histogram boundaries in seconds: from a fast statement to a slow run.
const BOUNDARIES: &[f64] = &[
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0,
    120.0, 300.0,
];

/// The HTTP methods that metrics name. A caller may send any other.
const METHODS: &[&str] = &["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

/// The instruments of the server itself.
#[derive(Debug)]
pub(crate) struct OwnMetrics {
    meter: Meter,
    runs: Counter<u64>,
    run: Histogram<f64>,
    queue: Histogram<f64>,
    lease: Histogram<f64>,
    proof: Histogram<f64>,
    settle: Histogram<f64>,
    verdict: Histogram<f64>,
    http: Histogram<f64>,
    db: Histogram<f64>,
}

/// The number of queued runs, and the age of the oldest. `None` while unknown.
pub(crate) type RunQueue = Arc<Mutex<Option<(u64, Duration)>>>;

impl OwnMetrics {
    pub(crate) fn new(meter: Meter) -> Self {
        let histogram = |metric: &Metric| {
            meter
                .f64_histogram(metric.name)
                .with_unit(metric.unit)
                .with_description(metric.meaning)
                .with_boundaries(BOUNDARIES.to_vec())
                .build()
        };
        let runs = &catalogue::RUNS;
        let runs = meter
            .u64_counter(runs.name)
            .with_unit(runs.unit)
            .with_description(runs.meaning)
            .build();
        // PromQL's `rate` and `increase` do not count the first value of a series, so each series begins at 0.
        for verdict in [Verdict::Passed, Verdict::Failed, Verdict::Inconclusive] {
            runs.add(0, &[KeyValue::new(attribute::VERDICT, verdict.as_str())]);
        }
        Self {
            runs,
            run: histogram(&catalogue::RUN_DURATION),
            queue: histogram(&catalogue::QUEUE_DURATION),
            lease: histogram(&catalogue::LEASE_DURATION),
            proof: histogram(&catalogue::PROOF_DURATION),
            settle: histogram(&catalogue::SETTLE_DURATION),
            verdict: histogram(&catalogue::VERDICT_DELAY),
            http: histogram(&catalogue::HTTP_DURATION),
            db: histogram(&catalogue::DB_DURATION),
            meter,
        }
    }

    /// Counts an ended run with these steps, the record step included.
    pub(crate) fn ran(&self, outcome: &Outcome, steps: &[StepTime]) {
        let verdict = [KeyValue::new(attribute::VERDICT, outcome.verdict.as_str())];
        self.runs.add(1, &verdict);
        let (Some(first), Some(last)) = (steps.first(), steps.last()) else { return };
        self.run.record(last.ended.since(first.began).as_secs_f64(), &verdict);
        if let Some(queue) = steps.iter().find(|step| step.step == Step::Queue) {
            self.queue.record(queue.ended.since(queue.began).as_secs_f64(), &[]);
        }
        if let Some(settlement) = &outcome.settlement {
            let waited = Duration::from_nanos(settlement.waited_ns).as_secs_f64();
            let whole = KeyValue::new(attribute::SETTLE_COMPLETE, settlement.is_whole());
            self.settle.record(waited, &[whole]);
            if let Some(at) = settlement.last_at {
                self.verdict.record(last.ended.since(at).as_secs_f64(), &[]);
            }
        }
    }

    /// Counts a request that has its response.
    pub(crate) fn served(&self, http: &HttpSpan<'_>) {
        let method = METHODS.iter().find(|known| **known == http.method).unwrap_or(&"_OTHER");
        let mut attributes = vec![
            KeyValue::new(attribute::METHOD, *method),
            KeyValue::new(attribute::STATUS, i64::from(http.status)),
        ];
        attributes
            .extend(http.route.map(|route| KeyValue::new(attribute::ROUTE, route.to_owned())));
        if http.status >= 500 {
            attributes.push(KeyValue::new(attribute::ERROR, http.status.to_string()));
        }
        self.http.record(http.ended.since(http.began).as_secs_f64(), &attributes);
    }

    /// Counts a database statement.
    pub(crate) fn count_statement(&self, call: Call, took: Duration, error: Option<&'static str>) {
        let Call(operation, table) = call;
        let mut attributes = vec![
            KeyValue::new(attribute::DB_SYSTEM, "postgresql"),
            KeyValue::new(attribute::DB_OPERATION, operation),
            KeyValue::new(attribute::DB_TABLE, table),
        ];
        attributes.extend(error.map(|kind| KeyValue::new(attribute::ERROR, kind)));
        self.db.record(took.as_secs_f64(), &attributes);
    }

    /// Counts a request for runs to the database.
    pub(crate) fn leased(&self, took: Duration) {
        self.lease.record(took.as_secs_f64(), &[]);
    }

    /// Counts a proof that all spans of a run are here; `doubt` is the kind of the reason why not.
    pub(crate) fn proved(&self, took: Duration, doubt: Option<&'static str>) {
        let outcome = KeyValue::new(attribute::PROOF, doubt.unwrap_or("proved"));
        self.proof.record(took.as_secs_f64(), &[outcome]);
    }

    /// Registers the number of messages on a shared bus that were not read.
    pub(crate) fn show_lag(&self, lag: impl Fn() -> Option<u64> + Send + Sync + 'static) {
        let metric = &catalogue::BUS_LAG;
        self.meter
            .u64_observable_gauge(metric.name)
            .with_unit(metric.unit)
            .with_description(metric.meaning)
            .with_callback(move |observer| {
                if let Some(messages) = lag() {
                    observer.observe(messages, &[]);
                }
            })
            .build();
    }

    /// Registers the counts of the receiver for every collection of metrics.
    pub(crate) fn show_ingest(&self, witness: ReceiverStats) {
        let metric = &catalogue::INGEST_SPANS;
        // The provider holds the instrument with its callback; the handle is not needed any more.
        self.meter
            .u64_observable_counter(metric.name)
            .with_unit(metric.unit)
            .with_description(metric.meaning)
            .with_callback(move |observer| {
                let counts = witness.counts();
                for (outcome, spans) in [
                    ("kept", counts.kept),
                    ("foreign", counts.foreign),
                    ("invalid", counts.invalid),
                    ("refused", counts.refused),
                ] {
                    observer.observe(spans, &[KeyValue::new(attribute::INGEST_OUTCOME, outcome)]);
                }
            })
            .build();
    }

    /// Registers the number and age of queued runs.
    pub(crate) fn show_waiting(&self, waiting: &RunQueue) {
        let of = |metric: &Metric, value: fn(u64, Duration) -> f64| {
            let waiting = Arc::clone(waiting);
            self.meter
                .f64_observable_gauge(metric.name)
                .with_unit(metric.unit)
                .with_description(metric.meaning)
                .with_callback(move |observer| {
                    let known = *waiting.lock().unwrap_or_else(PoisonError::into_inner);
                    if let Some((runs, oldest)) = known {
                        observer.observe(value(runs, oldest), &[]);
                    }
                })
                .build();
        };
        of(&catalogue::QUEUE_DEPTH, |runs, _| runs as f64);
        of(&catalogue::QUEUE_AGE, |_, oldest| oldest.as_secs_f64());
    }
}

/// Returns the time since `began`, or zero if it is in the future: clocks of several servers may differ.
pub(crate) fn age(began: Option<Timestamp>, now: Timestamp) -> Duration {
    began.map(|began| now.max(began).since(began)).unwrap_or_default()
}
