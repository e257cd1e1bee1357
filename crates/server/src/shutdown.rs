//! The shutdown of a server: first what accepts work, then the work, then its telemetry.

use std::time::Duration;

use ::telemetry::Report;

use crate::Handle;

/// The shutdown timeout of requests and active runs.
const SHUTDOWN_MAX: Duration = Duration::from_secs(15);
/// The timeout for sending queued telemetry at shutdown. The rest stays on disk for the next start.
const TELEMETRY_MAX: Duration = Duration::from_secs(5);
/// The timeout for aborted tasks and connections to end.
const REST_MAX: Duration = Duration::from_secs(5);

impl Handle {
    /// Shuts down: stops leasing runs, waits for active runs, sends queued telemetry, and returns a report of it.
    pub async fn shutdown(mut self) -> Report {
        self.stop.cancel();
        let ended = async { while self.tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(SHUTDOWN_MAX, ended).await.is_err() {
            tracing::warn!("requests or runs that would not end are cut off");
            // Not awaited yet: only the end of telemetry releases a task that a full buffer blocks.
            self.tasks.abort_all();
        }
        // The runs have ended, and its last spans still find the receiver.
        if tokio::time::timeout(REST_MAX, self.shop.shut()).await.is_err() {
            tracing::warn!("the demo shop would not end");
        }
        self.receiver.shutdown().await;
        self.keeping.shutdown().await;
        let [_, calm_db] = &self.dbs;
        self.peers.leave(calm_db).await;
        let telemetry = self.telemetry;
        // It waits for its exporters and blocks its thread meanwhile.
        let report = tokio::task::spawn_blocking(move || telemetry.shutdown(TELEMETRY_MAX)).await;
        let rest = async {
            while self.tasks.join_next().await.is_some() {}
            for db in &self.dbs {
                db.close().await;
            }
        };
        if tokio::time::timeout(REST_MAX, rest).await.is_err() {
            tracing::warn!("a part of the server would not end");
        }
        report.unwrap_or_else(|error| {
            tracing::error!(%error, "telemetry could not be shut down");
            Report::default()
        })
    }
}
