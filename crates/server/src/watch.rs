//! Record and bus, watched: what is asked of them for a request or a run is a span of that.
//!
//! `db` and `bus` know no telemetry, so the watching stands here. Deliberately absent: renewals of leases and probes, which run
//! where nothing is told.

use std::{sync::Arc, time::Duration};

use bus::{Bus, Subject};
use db::DbError;
use model::{Faulty, SpanId, Timestamp, World};

use crate::{
    own_spans::{Call, DbSpan, send_db, send_hint},
    own_telemetry::Telemetry,
    traceparent::TraceParent,
};

/// An answer of the record that takes longer is told to people.
const SLOW: Duration = Duration::from_secs(1);

/// Watches what is asked of the record.
#[derive(Clone, Debug)]
pub(crate) struct Watch {
    pub(crate) telemetry: Arc<Telemetry>,
    pub(crate) world: World,
}

impl Watch {
    /// Waits for an answer of the record, and tells how long that took as a part of `within`.
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

    /// Tells of an answer that came now and was waited for since `began`.
    pub(crate) fn tell(
        &self,
        within: TraceParent,
        call: Call,
        began: Timestamp,
        error: Option<&DbError>,
    ) {
        let ended = self.world.now();
        let took = ended.since(began);
        // Where a full buffer of telemetry held this thread, the database has nothing to do with it.
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

    /// Gives a hint, and tells so as a part of `within`.
    pub(crate) fn hint(&self, within: TraceParent, bus: &impl Bus, subject: Subject) {
        let began = self.world.now();
        let name = subject.0.clone();
        bus.hint(subject);
        let id = SpanId::from_random(self.world.random());
        send_hint(&self.telemetry, within, id, &name, (began, self.world.now()));
    }
}
