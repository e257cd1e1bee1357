//! Spans on their way in: from the OTLP receiver to the bus.
//!
//! Whether a span belongs to a run is told by its trace id alone. Ingest is never traced, so that telemetry
//! about telemetry cannot loop.

use std::sync::Arc;

use bus::Bus;
use drivers::receiver::{Refused, Sink};
use model::{KeyRing, TraceId, World};
use otlp::Batch;

/// How old an id may be, in seconds: runs are over long before, and an old id is a replay.
const EPOCH_AGE_MAX: u32 = 24 * 60 * 60;
/// How far ahead another machine's clock may be, in seconds.
const EPOCH_AHEAD_MAX: u32 = 5 * 60;

/// Takes spans of runs, and lets all others go by.
#[derive(Debug)]
pub(crate) struct Ingest {
    pub(crate) bus: Arc<Bus>,
    pub(crate) keys: KeyRing,
    pub(crate) world: World,
}

impl Sink for Ingest {
    fn wants(&self, id: &TraceId) -> bool {
        self.keys.verify(id).is_some_and(|minted| {
            // Epoch seconds wrap in 2106, and so does their difference.
            let now = ((self.world.now)().as_secs() & u64::from(u32::MAX)) as u32;
            now.wrapping_sub(minted) <= EPOCH_AGE_MAX || minted.wrapping_sub(now) <= EPOCH_AHEAD_MAX
        })
    }

    async fn accept(&self, batches: Vec<Batch>) -> Result<(), Refused> {
        let now = (self.world.now)();
        for batch in batches {
            self.bus
                .publish(now, batch.trace_id, batch.bytes)
                .map_err(|full| Refused { reason: full.to_string() })?;
        }
        Ok(())
    }
}
