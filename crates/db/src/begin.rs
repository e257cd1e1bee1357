//! Transactions that a caller may leave at any moment.

use sqlx::{Postgres, Transaction};

use crate::Db;

impl Db {
    /// Begins a transaction, apart from whoever asked.
    ///
    /// A request may be broken off at any moment. Dropped while the server begins, sqlx would give the connection back with an open
    /// transaction of which it does not know, and what others wrote on it would never be committed. So it is begun to the end; where
    /// nobody waits for it any more it is rolled back.
    pub(crate) async fn begin(&self) -> Result<Transaction<'static, Postgres>, sqlx::Error> {
        let pool = self.pool.clone();
        #[expect(clippy::disallowed_methods, reason = "it must outlive its caller")]
        let begun = tokio::spawn(async move { pool.begin().await });
        // It fails where the runtime ends.
        begun.await.unwrap_or(Err(sqlx::Error::PoolClosed))
    }
}
