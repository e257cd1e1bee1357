//! A simulated database: a statement takes time and creates a CLIENT span, and has no other effect.

use std::time::Duration;

use telemetry::opentelemetry::{Context, KeyValue, trace::SpanKind};
use tokio::time::sleep;

use crate::{fault::Fault, spans::Spans};

/// The duration of a statement; with [`Fault::SlowDatabase`] the second one applies.
const STATEMENT: Duration = Duration::from_millis(1);
const STATEMENT_SLOW: Duration = Duration::from_millis(300);

/// The simulated database of a service.
#[derive(Debug)]
pub(crate) struct Database {
    /// The namespace, which is also the name of the host.
    name: &'static str,
    system: System,
    takes: Duration,
}

/// The database system that is simulated.
#[derive(Clone, Copy, Debug)]
pub(crate) enum System {
    Postgres,
    Redis,
}

/// A statement of a service.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Statement {
    /// Such as `SELECT`.
    pub(crate) operation: &'static str,
    /// Such as `products`.
    pub(crate) collection: &'static str,
    /// The query text as sent, with placeholders for values.
    pub(crate) text: &'static str,
}

impl Database {
    pub(crate) fn new(name: &'static str, system: System, faults: &[Fault]) -> Self {
        let slow = faults.contains(&Fault::SlowDatabase);
        Self { name, system, takes: if slow { STATEMENT_SLOW } else { STATEMENT } }
    }

    /// Executes a statement and reports `rows` returned rows; `None` for a statement that returns no rows.
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
