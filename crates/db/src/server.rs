//! The servers that share this database: one row for each, renewed by heartbeats under the database's clock.
//!
//! A row is written before its server receives spans, and counts until two heartbeats after the last one. So a reader of the rows
//! after a run was settled finds every server that may have received a span of it.

use std::time::Duration;

use uuid::Uuid;

use crate::{Db, DbError};

/// The lock under which servers register: of two servers with different keys, one sees the other.
const ENTER_LOCK: i64 = 7_810_779_534;

/// How long an expired row is kept, in seconds: longer than any run.
const KEEP_S: f64 = 7.0 * 24.0 * 60.0 * 60.0;

/// A server and its keys, as stored in its row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewServer {
    /// The identity of its span journal and of its machine.
    pub id: [u8; 16],
    /// The identity of the process.
    pub process: [u8; 16],
    /// Its display name.
    pub name: String,
    /// Its roles.
    pub roles: Vec<String>,
    /// The version of the program.
    pub version: String,
    /// The fingerprint of the key with which it generates trace ids.
    pub minting_key: String,
    /// The fingerprints of all keys by which it recognizes trace ids.
    pub known_keys: Vec<String>,
}

/// A conflict of two servers: one generates trace ids that the other does not recognize.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyConflict {
    /// The registered server.
    pub server: String,
    /// The fingerprint of the key.
    pub key: String,
    /// The server that does not know it.
    pub unknown_to: Side,
}

/// One of two servers in a conflict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The server that registers.
    Entering,
    /// The server that is registered already.
    Present,
}

/// Another server that receives or received spans.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherServer {
    /// Its display name.
    pub name: String,
    /// How long ago its row expired; zero while it counts.
    pub gone_for: Duration,
}

impl Db {
    /// Writes a server's row, and replaces the row that the same server had before; it counts for `counts_for` from now on. If a
    /// present server and this one do not know each other's keys, it writes nothing and returns the conflict.
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
                // At once: other servers wait for the lock.
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

    /// Renews the row of a process; false where it has no row that counts, so that it has to register again.
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

    /// Records that a process receives no more spans. Its row stays for the runs that it may have received spans of.
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

    /// Returns the servers other than this process that receive or received spans, at most `servers_max`: those that count first,
    /// then those that expired last.
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
        // A negative duration means that the row still counts.
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

/// Returns the conflict that keeps a server from registering beside a present one.
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
