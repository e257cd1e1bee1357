//! Periodic database maintenance: creates partitions ahead, and drops expired data.

use std::time::Duration;

use db::{Db, Keep};
use model::{Timestamp, World};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// The interval. Partitions are created well ahead, so that one missed round does no harm.
const EVERY: Duration = Duration::from_secs(60 * 60);

/// Runs the maintenance until the server stops.
pub(crate) async fn upkeep(
    db: Db,
    keep: (Keep, Option<Duration>),
    world: World,
    stop: CancellationToken,
) {
    let (keep, audit) = keep;
    while !stop.is_cancelled() {
        if let Some(audit) = audit {
            forget(&db, audit, world).await;
        }
        match db.upkeep(world.now(), keep).await {
            Ok(Some(done)) if done != db::MaintenanceReport::default() => {
                let db::MaintenanceReport { made, dropped, deleted } = done;
                tracing::info!(?made, ?dropped, deleted, "the record was looked after");
            }
            // There was nothing to do, or another replica does it.
            Ok(_) => {}
            Err(error) => {
                tracing::warn!(%error, "the maintenance of the database failed; trying again");
            }
        }
        tokio::select! {
            () = stop.cancelled() => {}
            () = sleep(EVERY) => {}
        }
    }
}

/// Deletes old entries of the audit log. Two replicas may do this at once: deletion is idempotent.
async fn forget(db: &Db, audit: Duration, world: World) {
    let age = u64::try_from(audit.as_nanos()).unwrap_or(u64::MAX);
    let before = Timestamp::from_nanos(world.now().as_nanos().saturating_sub(age));
    match db.prune_audit(before).await {
        Ok(0) => {}
        Ok(entries) => tracing::info!(entries, "old entries of the audit log are gone"),
        Err(error) => {
            tracing::warn!(%error, "the maintenance of the audit log failed; trying again");
        }
    }
}
