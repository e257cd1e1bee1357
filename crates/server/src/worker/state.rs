//! What the runs of a worker share.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicU32, Ordering},
};

use db::{Db, RunLease};
use drivers::{
    receiver::ReceiverStats,
    trigger::{AnswerMemory, Triggers},
};
use model::World;
use runner::Pool;
use tokio::time::Instant;

use super::{
    active_runs::ActiveRuns,
    learning::LearnedQueue,
    slots::{Slot, Slots},
    stores::StoreSet,
};
use crate::{
    config,
    database::{keys::Keys, peers::Peers},
    ingest::interests::Interests,
    live::snapshots::Snapshots,
    span_bus::SpanBus,
    telemetry::{calls::Watch, spans::RunTrace},
};

/// The state that the runs of a worker share.
#[derive(Debug)]
pub(crate) struct Worker {
    /// The name under which this process leases runs.
    pub(crate) name: String,
    pub(crate) config: config::Workers,
    pub(crate) db: Db,
    /// A second connection pool to the same database, for tasks that must not wait for a blocked producer.
    pub(crate) calm_db: Db,
    /// The control runtime: telemetry is suppressed on it, and nothing blocks it.
    pub(crate) calm: tokio::runtime::Handle,
    pub(crate) bus: Arc<SpanBus>,
    pub(crate) keys: Keys,
    pub(crate) interests: Interests,
    pub(crate) peers: Peers,
    /// The thread pool that judges runs.
    pub(crate) pool: Pool,
    /// The counts of the receiver, for runs with an incomplete trace.
    pub(crate) witness: ReceiverStats,
    pub(crate) triggers: Triggers,
    pub(crate) stores: Arc<StoreSet>,
    pub(crate) watch: Watch,
    /// Where people who look on reach its runs.
    pub(crate) snapshots: Snapshots,
    pub(crate) world: World,
    pub(crate) shared: RunState,
}

impl Worker {
    /// Whether a full telemetry buffer blocked threads since then, so that a failed query is not the fault of the database.
    pub(super) fn was_held_since(&self, since: Instant) -> bool {
        self.watch.telemetry.library().was_held_within(since.elapsed())
    }
}

/// The state that the active runs of this process share; all of it may be lost.
#[derive(Debug, Default)]
pub(crate) struct RunState {
    pub(super) flights: ActiveRuns,
    /// The memory budget for large responses.
    pub(super) answer_memory: AnswerMemory,
    pub(super) learning: LearnedQueue,
    /// The ids that were minted.
    pub(super) minted: MintCounter,
    pub(super) slots: Arc<Slots>,
}

/// Numbers for trace ids that carry a slot: three bytes, of which none is used twice in 16 million ids.
#[derive(Debug, Default)]
pub(super) struct MintCounter(OnceLock<AtomicU32>);

impl MintCounter {
    /// Returns the next number. The first one is random: another process may have the same slot within the same second.
    pub(super) fn next(&self, random: [u8; 5]) -> [u8; 3] {
        let [a, b, c, d, _] = random;
        let counter = self.0.get_or_init(|| AtomicU32::new(u32::from_be_bytes([a, b, c, d])));
        let [_, number @ ..] = counter.fetch_add(1, Ordering::Relaxed).to_be_bytes();
        number
    }
}

/// A leased run: its slot, its span ids, and when the lease was requested.
pub(super) struct LeasedRun {
    pub(super) taken: RunLease,
    pub(super) slot: Slot,
    pub(super) trace: RunTrace,
    pub(super) asked: Instant,
}
