//! Traced calls to the database and the bus: each call for a request or a run gets a span in its trace.
//!
//! `db` and `bus` have no telemetry, so this module adds it. Deliberately absent: renewals of leases and probes, which run
//! where telemetry is suppressed.

use std::{sync::Arc, time::Duration};

use bus::{Bus, Subject};
use db::DbError;
use model::{Faulty, SpanId, Timestamp, World};

use crate::telemetry::{
    call::Call,
    export::Telemetry,
    spans::{DbSpan, send_db, send_hint},
    traceparent::TraceParent,
};

/// The duration from which on a query is logged as slow.
const SLOW: Duration = Duration::from_secs(1);

/// Traces calls to the database and the bus.
#[derive(Clone, Debug)]
pub(crate) struct Watch {
    pub(crate) telemetry: Arc<Telemetry>,
    pub(crate) world: World,
}

impl Watch {
    /// Awaits a query, and exports its span as a child of `within`.
    pub(crate) async fn db<T>(
        &self,
        within: TraceParent,
        call: Call,
        answer: impl Future<Output = Result<T, DbError>>,
    ) -> Result<T, DbError> {
        let began = self.world.now();
        let answer = answer.await;
        self.tell(within, call, began, answer.as_ref().err());
        answer
    }

    /// Exports the span of a query that began at `began` and has just ended.
    pub(crate) fn tell(
        &self,
        within: TraceParent,
        call: Call,
        began: Timestamp,
        error: Option<&DbError>,
    ) {
        let ended = self.world.now();
        let took = ended.since(began);
        // If a full telemetry buffer blocked this thread, the database was not slow.
        if took >= SLOW && !self.telemetry.library().was_held_within(took) {
            let Call(operation, table) = call;
            let seconds = took.as_secs_f64();
            tracing::warn!("the database took {seconds:.1} s for {operation} {table}");
        }
        let span = DbSpan {
            within,
            id: SpanId::from_random(self.world.random()),
            call,
            began,
            ended,
            error: error.map(|error| error.fault().as_str()),
        };
        send_db(&self.telemetry, &span);
    }

    /// Notifies one available worker, and exports the span of that as a child of `within`.
    pub(crate) fn hint(&self, within: TraceParent, bus: &impl Bus, subject: Subject) {
        let began = self.world.now();
        let name = subject.0.clone();
        bus.hint_one(subject);
        let id = SpanId::from_random(self.world.random());
        send_hint(&self.telemetry, within, id, &name, (began, self.world.now()));
    }
}
