//! The servers on this database: a row for each, renewed by heartbeats under the database's clock.
//!
//! A row is written before its server receives spans, and counts until two heartbeats after the last one. So whoever
//! reads the rows after a run was settled finds every server that may have received a span of it.

use std::time::Duration;

use uuid::Uuid;

use crate::{Db, DbError};

/// The one lock under which servers enter: of two with different keys, one sees the other.
const ENTER_LOCK: i64 = 7_810_779_534;

/// How long a row stays that does not count any more, in seconds: longer than any run.
const KEEP_S: f64 = 7.0 * 24.0 * 60.0 * 60.0;

/// A server and its keys, as its row has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewServer {
    /// Whose journal of spans it is, and on which machine.
    pub id: [u8; 16],
    /// The process.
    pub process: [u8; 16],
    /// What people call it.
    pub name: String,
    /// What it does.
    pub roles: Vec<String>,
    /// The version of the program.
    pub version: String,
    /// The fingerprint of the key with which it mints trace ids.
    pub minting_key: String,
    /// The fingerprints of all keys by which it knows trace ids.
    pub known_keys: Vec<String>,
}

/// Two servers of which one mints trace ids that the other does not know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyConflict {
    /// The server that is there already.
    pub server: String,
    /// The fingerprint of the key.
    pub key: String,
    /// Which of the two does not know it.
    pub unknown_to: Side,
}

/// One of two servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The one that enters.
    Entering,
    /// The one that is there already.
    Present,
}

/// Another server that receives spans, or did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherServer {
    /// What people call it.
    pub name: String,
    /// For how long its row has not counted any more; zero while it does.
    pub gone_for: Duration,
}

impl Db {
    /// Writes a server's row, in the place of the one that the same server had before; it counts for `counts_for` from now
    /// on. None is written while a server is there that would not know the other's trace ids, which is told.
    pub async fn enter_server(
        &self,
        server: &NewServer,
        counts_for: Duration,
    ) -> Result<Option<KeyConflict>, DbError> {
        let entered = async {
            let mut transaction = self.begin().await?;
            sqlx::query!("select pg_advisory_xact_lock($1)", ENTER_LOCK)
                .execute(&mut *transaction)
                .await?;
            let present = sqlx::query!(
                "select name, minting_key, known_keys from servers
                 where id <> $1 and process <> $2 and counts_until > clock_timestamp() order by started_at",
                Uuid::from_bytes(server.id),
                Uuid::from_bytes(server.process),
            )
            .fetch_all(&mut *transaction)
            .await?;
            let conflict = present
                .into_iter()
                .find_map(|row| conflict(server, (row.name, row.minting_key, &row.known_keys)));
            if conflict.is_some() {
                // At once: others wait for the lock.
                transaction.rollback().await?;
                return Ok(conflict);
            }
            sqlx::query!(
                "delete from servers where counts_until < clock_timestamp() - make_interval(secs => $1)",
                KEEP_S
            )
            .execute(&mut *transaction)
            .await?;
            write(&mut transaction, server, counts_for).await?;
            transaction.commit().await?;
            Ok(None)
        };
        entered.await.map_err(|error| self.error(error))
    }

    /// Renews the row of a process; false where it has none that counts, so that it has to enter anew.
    pub async fn heartbeat(
        &self,
        id: [u8; 16],
        process: [u8; 16],
        counts_for: Duration,
    ) -> Result<bool, DbError> {
        let renewed = sqlx::query!(
            "update servers
             set heartbeat_at = clock_timestamp(), counts_until = clock_timestamp() + make_interval(secs => $3)
             where id = $1 and process = $2 and counts_until > clock_timestamp()",
            Uuid::from_bytes(id),
            Uuid::from_bytes(process),
            counts_for.as_secs_f64(),
        )
        .execute(&self.pool)
        .await
        .map_err(|error| self.error(error))?;
        Ok(renewed.rows_affected() > 0)
    }

    /// Says that a process receives no more spans. Its row stays for the runs that it may have received some of.
    pub async fn leave_server(&self, process: [u8; 16]) -> Result<(), DbError> {
        sqlx::query!(
            "update servers set counts_until = least(counts_until, clock_timestamp()) where process = $1",
            Uuid::from_bytes(process),
        )
        .execute(&self.pool)
        .await
        .map_err(|error| self.error(error))?;
        Ok(())
    }

    /// The servers other than this process that receive spans, or did, so many at the most: those that count, then those
    /// that counted last.
    pub async fn other_servers(
        &self,
        process: [u8; 16],
        servers_max: u32,
    ) -> Result<Vec<OtherServer>, DbError> {
        let rows = sqlx::query!(
            r#"select name, extract(epoch from clock_timestamp() - counts_until)::float8 as "gone_s!"
               from servers where process <> $1 and 'ingest' = any (roles)
               order by counts_until desc, id limit $2"#,
            Uuid::from_bytes(process),
            i64::from(servers_max),
        )
        .fetch_all(&self.pool)
        .await
        .map_err(|error| self.error(error))?;
        // A time that is none is one that counts.
        let gone_for = |seconds: f64| Duration::try_from_secs_f64(seconds).unwrap_or_default();
        let other = |name, gone_s| OtherServer { name, gone_for: gone_for(gone_s) };
        Ok(rows.into_iter().map(|row| other(row.name, row.gone_s)).collect())
    }
}

async fn write(
    connection: &mut sqlx::PgConnection,
    server: &NewServer,
    counts_for: Duration,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "insert into servers
             (id, process, name, roles, version, minting_key, known_keys, started_at, heartbeat_at, counts_until)
         values ($1, $2, $3, $4, $5, $6, $7, clock_timestamp(), clock_timestamp(),
             clock_timestamp() + make_interval(secs => $8))
         on conflict (id) do update set
             process = excluded.process, name = excluded.name, roles = excluded.roles, version = excluded.version,
             minting_key = excluded.minting_key, known_keys = excluded.known_keys,
             started_at = excluded.started_at, heartbeat_at = excluded.heartbeat_at,
             counts_until = excluded.counts_until",
        Uuid::from_bytes(server.id),
        Uuid::from_bytes(server.process),
        server.name,
        &server.roles,
        server.version,
        server.minting_key,
        &server.known_keys,
        counts_for.as_secs_f64(),
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// What keeps a server from entering beside this one.
fn conflict(
    entering: &NewServer,
    (name, minting, known): (String, String, &[String]),
) -> Option<KeyConflict> {
    let conflict = |key: &str, unknown_to| KeyConflict {
        server: name.clone(),
        key: key.to_owned(),
        unknown_to,
    };
    if !known.contains(&entering.minting_key) {
        return Some(conflict(&entering.minting_key, Side::Present));
    }
    (!entering.known_keys.contains(&minting)).then(|| conflict(&minting, Side::Entering))
}
