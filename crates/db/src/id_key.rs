//! The id key of the deployment: created once, then shared by every replica.

use model::Key;

use crate::{Db, DbError};

impl Db {
    /// Returns the key with which this deployment generates ids; stores `candidate` if there was none yet.
    pub async fn id_key(&self, candidate: Key) -> Result<Key, DbError> {
        // The empty update makes `returning` return the stored key where there is one.
        let stored = sqlx::query_scalar!(
            "insert into id_key as stored (key) values ($1)
             on conflict (one) do update set key = stored.key
             returning key",
            candidate.expose(),
        )
        .fetch_one(&self.pool)
        .await
        .map_err(|error| self.error(error))?;
        let bytes = stored
            .try_into()
            .map_err(|_| DbError::corrupt("the id key", "it is not 16 bytes long"))?;
        Ok(Key::from_bytes(bytes))
    }
}
