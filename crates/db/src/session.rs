//! Sessions of people: tokens in cookies, which their owners can list and end.
//!
//! An ended session stays stored, since the audit log names it. So lists begin at the oldest session that can still be valid,
//! which its id shows, and not at the first session of all.

use model::{Timestamp, TokenId};

use crate::{
    Db, DbError, PersonId, StoredToken,
    run::nanos,
    token::{TokenRow, stored},
};

/// A page of a list of sessions.
#[derive(Clone, Copy, Debug)]
pub struct SessionPage {
    /// Only sessions that began before this one.
    pub before: Option<TokenId>,
    /// Only sessions that began after this one: older ones have expired.
    pub since: TokenId,
    /// Only sessions that are valid at this time.
    pub now: Timestamp,
    /// The upper bound of sessions.
    pub limit: u32,
}

impl Db {
    /// Returns valid sessions of all people, the newest first.
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

    /// Returns valid sessions of a person, the newest first.
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

    /// Ends a session, only of this person where one is given, and returns whether there is such a session. A session that ended
    /// before is left unchanged.
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

    /// Records that a session was used.
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
