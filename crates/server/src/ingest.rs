//! Spans on their way in: from the OTLP receiver to the bus.
//!
//! Whether a span belongs to a run is told by its trace id: one that was minted here, or one that a run waits for. Ingest is never traced, so that telemetry
//! about telemetry cannot loop.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use bus::{Bus, Full};
use drivers::receiver::{Refused, Sink};
use model::{KeyRing, TraceId, World};
use otlp::Batch;

use crate::interests::Interests;

/// How old an id may be, in seconds: runs are over long before, and an old id is a replay.
const EPOCH_AGE_MAX: u32 = 24 * 60 * 60;
/// How far ahead another machine's clock may be, in seconds.
const EPOCH_AHEAD_MAX: u32 = 5 * 60;

/// Takes spans of runs, and lets all others go by.
#[derive(Debug)]
pub(crate) struct Ingest {
    pub(crate) bus: Arc<Bus>,
    pub(crate) keys: KeyRing,
    pub(crate) interests: Interests,
    pub(crate) world: World,
    /// Exports that were not taken, and that may have been anybody's.
    pub(crate) unread: Arc<AtomicU64>,
}

impl Sink for Ingest {
    fn wants(&self, id: &TraceId) -> bool {
        let is_ours = self.keys.verify(id).is_some_and(|minted| {
            // Epoch seconds wrap in 2106, and so does their difference.
            let now = (self.world.now().as_secs() & u64::from(u32::MAX)) as u32;
            now.wrapping_sub(minted) <= EPOCH_AGE_MAX || minted.wrapping_sub(now) <= EPOCH_AHEAD_MAX
        });
        is_ours || self.interests.has(id)
    }

    fn lost(&self, trace_id: &TraceId) {
        self.bus.lose(self.world.now(), *trace_id);
    }

    fn lost_unread(&self) {
        self.unread.fetch_add(1, Ordering::Relaxed);
    }

    async fn accept(&self, batches: Vec<Batch>) -> Result<(), Refused> {
        let now = self.world.now();
        let mut refused = Ok(());
        for batch in batches {
            match self.bus.publish(now, batch.trace_id, batch.bytes) {
                // The bus has counted it, so that the run knows; waiting does not make a trace smaller.
                Ok(()) | Err(Full::Trace { .. }) => {}
                Err(full @ Full::Bus { .. }) => refused = Err(Refused { reason: full.to_string() }),
            }
        }
        refused
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, atomic::Ordering};

    use bus::{Bus, Limits};
    use drivers::receiver::{
        Sink,
        conformance::{Facts, conforms},
    };
    use model::{Key, KeyRing, Timestamp, TraceId, World};

    use super::{Ingest, Interests};

    const NOW: u64 = 1_800_000_000;

    fn ingest() -> Ingest {
        let limits = Limits { trace_bytes_max: 100_000, ..Limits::default() };
        Ingest {
            bus: Arc::new(Bus::new(limits)),
            keys: KeyRing::new(Key::from_bytes([1; 16]), Vec::new()),
            interests: Interests::default(),
            world: World::new(|| Timestamp::from_nanos(NOW * 1_000_000_000), || [0; 32]),
            unread: Arc::default(),
        }
    }

    fn minted(ingest: &Ingest, seconds: u64) -> TraceId {
        ingest.keys.mint(Timestamp::from_nanos(seconds * 1_000_000_000), [2; 7])
    }

    #[tokio::test]
    async fn the_bus_is_a_sink() {
        let ingest = ingest();
        let facts = Facts {
            wanted: minted(&ingest, NOW),
            foreign: TraceId::from_random([5; 16]),
            too_many_bytes: 100_001,
        };
        let mut subscription = ingest.bus.subscribe(facts.wanted);
        conforms(
            &ingest,
            facts,
            async |batches| {
                let mut held = Vec::new();
                for _ in 0..batches {
                    held.extend(subscription.next().await);
                }
                held
            },
            || ingest.bus.refused(facts.wanted) + ingest.unread.load(Ordering::Relaxed),
        )
        .await;
    }

    #[test]
    fn an_id_that_a_run_waits_for_is_wanted() {
        let ingest = ingest();
        let foreign = TraceId::from_random([5; 16]);
        let interest = ingest.interests.register(foreign);
        assert!(ingest.wants(&foreign));
        drop(interest);
        assert!(!ingest.wants(&foreign));
    }

    #[test]
    fn ids_from_another_time_are_not_wanted() {
        let ingest = ingest();
        let cases = [
            (NOW - 24 * 60 * 60, true),
            (NOW - 24 * 60 * 60 - 1, false),
            (NOW + 5 * 60, true),
            (NOW + 5 * 60 + 1, false),
            (0, false),
        ];
        for (seconds, wanted) in cases {
            assert_eq!(ingest.wants(&minted(&ingest, seconds)), wanted, "{seconds}");
        }
    }
}
