//! The open runs of a server's database, as a bench waits for their end.

use std::time::Duration;

use anyhow::{Result, ensure};
use sqlx::{PgConnection, Row as _};
use tokio::time::{Instant, sleep};

/// How often it looks.
const LOOK: Duration = Duration::from_millis(50);

/// Waits until no run is open, and returns when all of them had a verdict, provisional or final.
pub(crate) async fn all_ended(connection: &mut PgConnection, max: Duration) -> Result<Instant> {
    let (began, mut judged) = (Instant::now(), None);
    loop {
        let row = sqlx::query(
            "select count(*), count(*) filter (where provisional is null) from open_runs /* bench */",
        );
        let row = row.fetch_one(&mut *connection).await?;
        let (open, without): (i64, i64) = (row.get(0), row.get(1));
        if without == 0 {
            judged.get_or_insert_with(Instant::now);
        }
        if let Some(judged) = judged.filter(|_| open == 0) {
            return Ok(judged);
        }
        ensure!(began.elapsed() < max, "{open} runs have not ended");
        sleep(LOOK).await;
    }
}
