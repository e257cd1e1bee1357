//! What the record needs now and then: months made ahead, what is over dropped.

use std::time::Duration;

use db::{Db, Keep};
use model::World;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// How often. Months are made well ahead, so that one that was missed costs nothing.
const EVERY: Duration = Duration::from_secs(60 * 60);

/// Does it until told to stop.
pub(crate) async fn upkeep(db: Db, keep: Keep, world: World, stop: CancellationToken) {
    while !stop.is_cancelled() {
        match db.upkeep(world.now(), keep).await {
            Ok(Some(done)) if done != db::Upkept::default() => {
                let db::Upkept { made, dropped, deleted } = done;
                tracing::info!(?made, ?dropped, deleted, "the record was looked after");
            }
            // Nothing was to be done, or another replica does it.
            Ok(_) => {}
            Err(error) => {
                tracing::warn!(%error, "the record could not be looked after; trying again");
            }
        }
        tokio::select! {
            () = stop.cancelled() => {}
            () = sleep(EVERY) => {}
        }
    }
}
