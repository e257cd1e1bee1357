//! The deployment's id key: made once, then the same for every replica.

use model::Key;

use crate::{Db, DbError};

impl Db {
    /// The key under which this deployment mints ids: `candidate` if there was none yet.
    pub async fn id_key(&self, candidate: Key) -> Result<Key, DbError> {
        // The empty update makes `returning` give the stored key where there is one.
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
