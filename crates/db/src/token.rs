//! Tokens, stored by their hashes.
//!
//! Deliberately absent: the token itself, which is never here.

use std::net::IpAddr;

use model::{Project, Role, Timestamp, TokenId};
use uuid::Uuid;

use crate::{
    Db, DbError,
    run::{moment, nanos},
};

/// A token to be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewToken {
    /// Its id.
    pub id: TokenId,
    /// The kind of its bearer.
    pub kind: TokenKind,
    /// The SHA-256 hash of the token.
    pub hash: [u8; 32],
    /// Its display name.
    pub name: String,
    /// The role of its bearer.
    pub role: Role,
    /// The projects that it is valid for; none for all.
    pub projects: Option<Vec<Project>>,
    /// When it was created.
    pub made_at: Timestamp,
    /// Who created it.
    pub made_by: String,
    /// When it expires.
    pub expires_at: Timestamp,
    /// The person of a session; none for a token of a program.
    pub person: Option<PersonId>,
    /// The address from which the session began.
    pub address: Option<IpAddr>,
}

/// The identity of a person: the issuer, and the subject at that issuer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PersonId {
    /// The issuer, a URL.
    pub issuer: String,
    /// The subject: the issuer's unique id of the person.
    pub subject: String,
}

/// The kind of a token, by its bearer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// A program, in a header.
    Token,
    /// A person's browser, in a cookie.
    Session,
}

/// A token as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredToken {
    /// Its id.
    pub id: TokenId,
    /// Its display name.
    pub name: String,
    /// The role of its bearer.
    pub role: Role,
    /// The projects that it is valid for; none for all.
    pub projects: Option<Vec<Project>>,
    /// When it was created.
    pub made_at: Timestamp,
    /// Who created it.
    pub made_by: String,
    /// When it expires.
    pub expires_at: Timestamp,
    /// When it was revoked.
    pub revoked_at: Option<Timestamp>,
    /// The person of a session; none for a token of a program.
    pub person: Option<PersonId>,
    /// The address from which the session began.
    pub address: Option<IpAddr>,
    /// When the session was last used, as far as recorded.
    pub seen_at: Option<Timestamp>,
}

impl PersonId {
    pub(crate) fn of(issuer: Option<String>, subject: Option<String>) -> Option<Self> {
        issuer.zip(subject).map(|(issuer, subject)| Self { issuer, subject })
    }
}

impl TokenKind {
    fn as_str(self) -> &'static str {
        match self {
            Self::Token => "token",
            Self::Session => "session",
        }
    }
}

/// A row of `tokens`, not yet decoded.
pub(crate) struct TokenRow {
    pub(crate) id: Uuid,
    pub(crate) name: String,
    pub(crate) role: String,
    pub(crate) projects: Option<Vec<String>>,
    pub(crate) made_at_ns: i64,
    pub(crate) made_by: String,
    pub(crate) expires_at_ns: i64,
    pub(crate) revoked_at_ns: Option<i64>,
    pub(crate) issuer: Option<String>,
    pub(crate) subject: Option<String>,
    pub(crate) address: Option<String>,
    pub(crate) seen_at_ns: Option<i64>,
}

impl Db {
    /// Stores a token.
    pub async fn create_token(&self, token: &NewToken) -> Result<(), DbError> {
        let projects = token.projects.as_deref();
        let projects: Option<Vec<String>> =
            projects.map(|all| all.iter().map(|it| it.as_str().to_owned()).collect());
        sqlx::query!(
            "insert into tokens (id, kind, name, hash, role, projects, made_at_ns, made_by, expires_at_ns, issuer, subject,
                 address)
             values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
            token.id.as_uuid(),
            token.kind.as_str(),
            token.name,
            token.hash.as_slice(),
            token.role.as_str(),
            projects.as_deref(),
            nanos(token.made_at),
            token.made_by,
            nanos(token.expires_at),
            token.person.as_ref().map(|person| &*person.issuer),
            token.person.as_ref().map(|person| &*person.subject),
            token.address.map(|address| address.to_string()),
        )
        .execute(&self.pool)
        .await
        .map_err(|error| self.error(error))?;
        Ok(())
    }

    /// Stores the token of the configuration, or makes it valid again, and revokes those that were there before it. Its `made_by` tells
    /// them from all other tokens.
    pub async fn keep_configured_token(
        &self,
        token: Option<&NewToken>,
        (made_by, now): (&str, Timestamp),
    ) -> Result<(), DbError> {
        let hash = token.map(|token| token.hash.as_slice());
        sqlx::query!(
            "update tokens set revoked_at_ns = $3 where made_by = $1 and hash is distinct from $2 and revoked_at_ns is null",
            made_by,
            hash,
            nanos(now),
        )
        .execute(&self.pool)
        .await
        .map_err(|error| self.error(error))?;
        let Some(token) = token else { return Ok(()) };
        sqlx::query!(
            "insert into tokens (id, kind, name, hash, role, made_at_ns, made_by, expires_at_ns)
             values ($1, $2, $3, $4, $5, $6, $7, $8)
             on conflict (hash) do update set revoked_at_ns = null, expires_at_ns = excluded.expires_at_ns
             where tokens.made_by = excluded.made_by",
            token.id.as_uuid(),
            token.kind.as_str(),
            token.name,
            token.hash.as_slice(),
            token.role.as_str(),
            nanos(token.made_at),
            made_by,
            nanos(token.expires_at),
        )
        .execute(&self.pool)
        .await
        .map_err(|error| self.error(error))?;
        Ok(())
    }

    /// Returns the token with this hash and kind, if it is neither expired nor revoked at `now`.
    pub async fn token(
        &self,
        kind: TokenKind,
        hash: &[u8; 32],
        now: Timestamp,
    ) -> Result<Option<StoredToken>, DbError> {
        let row = sqlx::query_as!(
            TokenRow,
            "select id, name, role, projects, made_at_ns, made_by, expires_at_ns, revoked_at_ns,
                 issuer, subject, address, seen_at_ns
             from tokens where hash = $1 and kind = $2 and revoked_at_ns is null and expires_at_ns > $3",
            hash.as_slice(),
            kind.as_str(),
            nanos(now),
        )
        .fetch_optional(&self.pool)
        .await
        .map_err(|error| self.error(error))?;
        row.map(stored).transpose()
    }

    /// Returns tokens of programs created before `before`, the newest first.
    pub async fn tokens(
        &self,
        before: Option<TokenId>,
        limit: u32,
    ) -> Result<Vec<StoredToken>, DbError> {
        let rows = sqlx::query_as!(
            TokenRow,
            "select id, name, role, projects, made_at_ns, made_by, expires_at_ns, revoked_at_ns,
                 issuer, subject, address, seen_at_ns
             from tokens where kind = 'token' and id < coalesce($1, 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid)
             order by id desc limit $2",
            before.map(TokenId::as_uuid),
            i64::from(limit),
        )
        .fetch_all(&self.pool)
        .await
        .map_err(|error| self.error(error))?;
        rows.into_iter().map(stored).collect()
    }

    /// Revokes a token, and returns whether there is such a token. A token that was revoked before is left unchanged.
    pub async fn revoke_token(&self, id: TokenId, at: Timestamp) -> Result<bool, DbError> {
        let revoked = sqlx::query!(
            "update tokens set revoked_at_ns = coalesce(revoked_at_ns, $2) where id = $1",
            id.as_uuid(),
            nanos(at),
        )
        .execute(&self.pool)
        .await
        .map_err(|error| self.error(error))?;
        Ok(revoked.rows_affected() > 0)
    }
}

pub(crate) fn stored(row: TokenRow) -> Result<StoredToken, DbError> {
    let id = TokenId::from(row.id);
    let corrupt = |reason: String| DbError::corrupt(format!("token `{id}`"), reason);
    let role =
        Role::parse(&row.role).ok_or_else(|| corrupt(format!("`{}` is no role", row.role)))?;
    let projects = row.projects.map(|all| {
        let read =
            |text: String| text.parse::<Project>().map_err(|error| corrupt(error.to_string()));
        all.into_iter().map(read).collect::<Result<Vec<_>, _>>()
    });
    Ok(StoredToken {
        id,
        name: row.name,
        role,
        projects: projects.transpose()?,
        made_at: moment(row.made_at_ns),
        made_by: row.made_by,
        expires_at: moment(row.expires_at_ns),
        revoked_at: row.revoked_at_ns.map(moment),
        person: PersonId::of(row.issuer, row.subject),
        address: row.address.and_then(|text| text.parse().ok()),
        seen_at: row.seen_at_ns.map(moment),
    })
}
