//! Transactions that a caller may cancel at any moment.

use sqlx::{Postgres, Transaction};

use crate::Db;

impl Db {
    /// Begins a transaction in a task of its own, apart from the caller.
    ///
    /// A request may be cancelled at any moment. If `begin` were dropped while the server begins the transaction, sqlx would
    /// return the connection to the pool with an open transaction that it does not know of, and later writes on that connection
    /// would never be committed. So the task always runs to its end; if the caller has gone, the transaction is rolled back.
    pub(crate) async fn begin(&self) -> Result<Transaction<'static, Postgres>, sqlx::Error> {
        let pool = self.pool.clone();
        #[expect(clippy::disallowed_methods, reason = "it must outlive its caller")]
        let begun = tokio::spawn(async move { pool.begin().await });
        // It fails if the runtime shuts down.
        begun.await.unwrap_or(Err(sqlx::Error::PoolClosed))
    }
}
