//! Sessions of people: tokens in cookies, which their owners list and end.
//!
//! One that has ended stays, since the audit log names it. So lists begin at the oldest session that can still be valid, which
//! its id tells, and not at the first one that ever was.

use model::{Timestamp, TokenId};

use crate::{
    Db, DbError, PersonId, StoredToken,
    run::nanos,
    token::{TokenRow, stored},
};

/// Which sessions are listed.
#[derive(Clone, Copy, Debug)]
pub struct SessionPage {
    /// Those that began before this one.
    pub before: Option<TokenId>,
    /// Those that began after this one: older ones have expired.
    pub since: TokenId,
    /// Those that are valid at this moment.
    pub now: Timestamp,
    /// So many at the most.
    pub limit: u32,
}

impl Db {
    /// Valid sessions of everyone, the newest first.
    pub async fn sessions(&self, page: SessionPage) -> Result<Vec<StoredToken>, DbError> {
        let rows = sqlx::query_as!(
            TokenRow,
            "select id, name, role, projects, made_at_ns, made_by, expires_at_ns, revoked_at_ns,
                 issuer, subject, address, seen_at_ns
             from tokens where kind = 'session' and id > $1
                 and id < coalesce($2, 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid)
                 and revoked_at_ns is null and expires_at_ns > $3
             order by id desc limit $4",
            page.since.as_uuid(),
            page.before.map(TokenId::as_uuid),
            nanos(page.now),
            i64::from(page.limit),
        )
        .fetch_all(&self.pool)
        .await
        .map_err(|error| self.error(error))?;
        rows.into_iter().map(stored).collect()
    }

    /// Valid sessions of a person, the newest first.
    pub async fn sessions_of(
        &self,
        person: &PersonId,
        page: SessionPage,
    ) -> Result<Vec<StoredToken>, DbError> {
        let rows = sqlx::query_as!(
            TokenRow,
            "select id, name, role, projects, made_at_ns, made_by, expires_at_ns, revoked_at_ns,
                 issuer, subject, address, seen_at_ns
             from tokens where issuer = $5 and subject = $6 and kind = 'session' and id > $1
                 and id < coalesce($2, 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid)
                 and revoked_at_ns is null and expires_at_ns > $3
             order by id desc limit $4",
            page.since.as_uuid(),
            page.before.map(TokenId::as_uuid),
            nanos(page.now),
            i64::from(page.limit),
            person.issuer,
            person.subject,
        )
        .fetch_all(&self.pool)
        .await
        .map_err(|error| self.error(error))?;
        rows.into_iter().map(stored).collect()
    }

    /// Ends a session, of this person where one is named, and tells whether there is such a session. One that ended before
    /// stays as it is.
    pub async fn end_session(
        &self,
        id: TokenId,
        of: Option<&PersonId>,
        at: Timestamp,
    ) -> Result<bool, DbError> {
        let ended = sqlx::query!(
            "update tokens set revoked_at_ns = coalesce(revoked_at_ns, $2)
             where id = $1 and kind = 'session' and ($3::text is null or (issuer = $3 and subject = $4))",
            id.as_uuid(),
            nanos(at),
            of.map(|person| &*person.issuer),
            of.map(|person| &*person.subject),
        )
        .execute(&self.pool)
        .await
        .map_err(|error| self.error(error))?;
        Ok(ended.rows_affected() > 0)
    }

    /// Notes that a session was seen.
    pub async fn session_seen(&self, id: TokenId, at: Timestamp) -> Result<(), DbError> {
        sqlx::query!(
            "update tokens set seen_at_ns = greatest(seen_at_ns, $2) where id = $1",
            id.as_uuid(),
            nanos(at),
        )
        .execute(&self.pool)
        .await
        .map_err(|error| self.error(error))?;
        Ok(())
    }
}
