//! A pretend database: statements take time and make CLIENT spans, and that is all they do.

use std::time::Duration;

use telemetry::opentelemetry::{Context, KeyValue, trace::SpanKind};
use tokio::time::sleep;

use crate::{fault::Fault, spans::Spans};

/// How long a statement takes; with [`Fault::SlowDatabase`] the second.
const STATEMENT: Duration = Duration::from_millis(1);
const STATEMENT_SLOW: Duration = Duration::from_millis(300);

/// Where a service keeps what it knows.
#[derive(Debug)]
pub(crate) struct Database {
    /// The namespace, and the name of its host.
    name: &'static str,
    system: System,
    takes: Duration,
}

/// Which database it pretends to be.
#[derive(Clone, Copy, Debug)]
pub(crate) enum System {
    Postgres,
    Redis,
}

/// What is asked of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Statement {
    /// Such as `SELECT`.
    pub(crate) operation: &'static str,
    /// Such as `products`.
    pub(crate) collection: &'static str,
    /// As sent, values replaced.
    pub(crate) text: &'static str,
}

impl Database {
    pub(crate) fn new(name: &'static str, system: System, faults: &[Fault]) -> Self {
        let slow = faults.contains(&Fault::SlowDatabase);
        Self { name, system, takes: if slow { STATEMENT_SLOW } else { STATEMENT } }
    }

    /// Asks, and pretends to have got this many rows; none where it is not asked for any.
    pub(crate) async fn ask(
        &self,
        spans: &Spans,
        parent: &Context,
        it: Statement,
        rows: Option<usize>,
    ) {
        let (system, port) = match self.system {
            System::Postgres => ("postgresql", 5432),
            System::Redis => ("redis", 6379),
        };
        let summary = format!("{} {}", it.operation, it.collection);
        let mut attributes = vec![
            KeyValue::new("db.system.name", system),
            KeyValue::new("db.namespace", self.name),
            KeyValue::new("db.operation.name", it.operation),
            KeyValue::new("db.query.text", it.text),
            KeyValue::new("db.query.summary", summary.clone()),
            KeyValue::new("server.address", format!("{}-db", self.name)),
            KeyValue::new("server.port", port),
        ];
        if matches!(self.system, System::Postgres) {
            attributes.push(KeyValue::new("db.collection.name", it.collection));
        }
        let span = spans.start(parent, SpanKind::Client, summary, attributes);
        sleep(self.takes).await;
        if let Some(rows) = rows.and_then(|rows| i64::try_from(rows).ok()) {
            span.note("db.response.returned_rows", rows);
        }
    }
}
