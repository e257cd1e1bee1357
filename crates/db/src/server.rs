//! The servers that share this database: one row for each, renewed by heartbeats under the database's clock.
//!
//! A row is written before its server receives spans, and counts until two heartbeats after the last one. So a reader of the rows
//! after a run was settled finds every server that may have received a span of it.

use std::{collections::BTreeSet, time::Duration};

use model::BusSlot;
use uuid::Uuid;

use crate::{Db, DbError, schema};

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
    /// The last version of messages on the bus that it reads.
    pub bus_version: i32,
    /// The fingerprint of the key with which it generates trace ids.
    pub minting_key: String,
    /// The fingerprints of all keys by which it recognizes trace ids.
    pub known_keys: Vec<String>,
    /// The bus on which it shares spans with others, if there is one.
    pub bus: Option<BusMember>,
}

/// The part of a server on a bus that servers share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BusMember {
    /// What identifies the bus; none while it is not known.
    pub bus: Option<String>,
    /// Whether it has shared all that it knows since its start.
    pub is_shared_from_start: bool,
    /// Its slot; none to get a free one.
    pub slot: Option<BusSlot>,
    /// The number of slots, in groups of this size: a group is a stream of the bus. None for a server that needs no slot.
    pub slots: Option<(u16, u16)>,
}

/// Where the spans of a run are on a bus that servers share; empty where there is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BusPlace {
    /// The slot to which they go.
    pub slot: Option<BusSlot>,
    /// What identifies the storage of the bus.
    pub state: Option<String>,
}

/// Reads a stored slot.
pub(crate) fn slot(stored: i32) -> Option<BusSlot> {
    u16::try_from(stored).ok().map(BusSlot)
}

/// The result of writing a server's row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// The row is written; with the slot of the server, if it shares a bus.
    Entered(Option<BusSlot>),
    /// A present server and this one do not know each other's keys: nothing is written.
    KeyConflict(KeyConflict),
    /// Other servers have all slots: nothing is written.
    NoSlot,
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
    /// The identity of the process.
    pub process: [u8; 16],
    /// Its display name.
    pub name: String,
    /// How long ago its row expired; zero while it counts.
    pub gone_for: Duration,
    /// The bus on which it shares spans with others, if there is one.
    pub bus: Option<String>,
    /// How long it has done so without a pause.
    pub shared_for: Duration,
}

impl Db {
    /// Writes a server's row, and replaces the row that the same server had before; it counts for `counts_for` from now on. A server
    /// that is too old for what the others have agreed on is an error.
    pub async fn enter_server(
        &self,
        server: &NewServer,
        counts_for: Duration,
    ) -> Result<Entry, DbError> {
        let entered = async {
            let mut transaction = self.begin().await?;
            sqlx::query!("select pg_advisory_xact_lock($1)", ENTER_LOCK)
                .execute(&mut *transaction)
                .await?;
            let agreement = sqlx::query!("select schema_min, bus_version from agreement")
                .fetch_one(&mut *transaction)
                .await?;
            if let Some(reason) = too_old(server, (agreement.schema_min, agreement.bus_version)) {
                transaction.rollback().await?;
                return Ok(Err(reason));
            }
            let present = sqlx::query!(
                "select name, minting_key, known_keys, slot from servers
                 where id <> $1 and process <> $2 and counts_until > clock_timestamp() order by started_at",
                Uuid::from_bytes(server.id),
                Uuid::from_bytes(server.process),
            )
            .fetch_all(&mut *transaction)
            .await?;
            let taken = present.iter().filter_map(|row| u16::try_from(row.slot?).ok()).collect();
            let slot = server.bus.as_ref().and_then(|member| free_slot(member, &taken));
            let conflict = present
                .into_iter()
                .find_map(|row| conflict(server, (row.name, row.minting_key, &row.known_keys)));
            let refusal = match (conflict, slot) {
                (Some(conflict), _) => Some(Entry::KeyConflict(conflict)),
                (None, Some(None)) => Some(Entry::NoSlot),
                (None, _) => None,
            };
            if let Some(refusal) = refusal {
                // At once: other servers wait for the lock.
                transaction.rollback().await?;
                return Ok(Ok(refusal));
            }
            let slot = slot.flatten();
            sqlx::query!(
                "delete from servers where counts_until < clock_timestamp() - make_interval(secs => $1)",
                KEEP_S
            )
            .execute(&mut *transaction)
            .await?;
            write(&mut transaction, server, slot, counts_for).await?;
            transaction.commit().await?;
            Ok(Ok(Entry::Entered(slot)))
        };
        let entered = entered.await.map_err(|error| self.error(error))?;
        entered.map_err(|reason| DbError::TooOld { at: self.at.to_string(), reason })
    }

    /// Returns the version of messages that servers write to the bus. It is the lowest one of `newest` and of what the servers read
    /// that count, and never falls.
    pub async fn agree_bus_version(&self, newest: i32) -> Result<i32, DbError> {
        let agreed = async {
            let known = sqlx::query_scalar!("select bus_version from agreement");
            let known = known.fetch_one(&self.pool).await?;
            if known >= newest {
                return Ok(known);
            }
            let mut transaction = self.begin().await?;
            sqlx::query!("select pg_advisory_xact_lock($1)", ENTER_LOCK)
                .execute(&mut *transaction)
                .await?;
            let raised = sqlx::query_scalar!(
                r#"update agreement set bus_version = greatest(bus_version, least($1, (
                       select min(coalesce(servers.bus_version, 1)) from servers where counts_until > clock_timestamp())))
                   returning bus_version"#,
                newest,
            );
            let raised = raised.fetch_one(&mut *transaction).await?;
            transaction.commit().await?;
            Ok(raised)
        };
        agreed.await.map_err(|error| self.error(error))
    }

    /// Renews the row of a process, and sets the bus on which it shares spans now; false where it has no row that counts, so that it
    /// has to register again.
    pub async fn heartbeat(
        &self,
        id: [u8; 16],
        process: [u8; 16],
        bus: Option<&str>,
        counts_for: Duration,
    ) -> Result<bool, DbError> {
        let renewed = sqlx::query!(
            "update servers
             set heartbeat_at = clock_timestamp(), counts_until = clock_timestamp() + make_interval(secs => $3),
                 shared_since = case when bus is distinct from $4 then clock_timestamp() else shared_since end, bus = $4
             where id = $1 and process = $2 and counts_until > clock_timestamp()",
            Uuid::from_bytes(id),
            Uuid::from_bytes(process),
            counts_for.as_secs_f64(),
            bus,
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

    /// Returns the servers other than this process that receive or received spans, apart from those that have shared them over this bus
    /// for a time without a pause; at most `servers_max`: those that count first, then those that expired last.
    pub async fn other_servers(
        &self,
        process: [u8; 16],
        apart_from: Option<(&str, Duration)>,
        servers_max: u32,
    ) -> Result<Vec<OtherServer>, DbError> {
        let rows = sqlx::query!(
            r#"select process, name, bus, extract(epoch from clock_timestamp() - counts_until)::float8 as "gone_s!",
                   extract(epoch from clock_timestamp() - shared_since)::float8 as shared_s
               from servers where process <> $1 and 'ingest' = any (roles) and ($3::text is null or bus is distinct from $3
                   or shared_since > clock_timestamp() - make_interval(secs => $4))
               order by counts_until desc, id limit $2"#,
            Uuid::from_bytes(process),
            i64::from(servers_max),
            apart_from.map(|(bus, _)| bus),
            apart_from.map_or(0.0, |(_, time)| time.as_secs_f64()),
        )
        .fetch_all(&self.pool)
        .await
        .map_err(|error| self.error(error))?;
        // A negative duration means that the row still counts.
        let duration = |seconds: f64| Duration::try_from_secs_f64(seconds).unwrap_or_default();
        let rows = rows.into_iter();
        Ok(rows
            .map(|row| OtherServer {
                process: row.process.into_bytes(),
                name: row.name,
                gone_for: duration(row.gone_s),
                bus: row.bus,
                shared_for: row.shared_s.map_or(Duration::MAX, duration),
            })
            .collect())
    }
}

async fn write(
    connection: &mut sqlx::PgConnection,
    server: &NewServer,
    slot: Option<BusSlot>,
    counts_for: Duration,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "insert into servers
             (id, process, name, roles, version, minting_key, known_keys, started_at, heartbeat_at, counts_until, bus, slot,
              shared_since, schema_version, bus_version)
         values ($1, $2, $3, $4, $5, $6, $7, clock_timestamp(), clock_timestamp(),
             clock_timestamp() + make_interval(secs => $8), $9, $10, case when $11 then null else clock_timestamp() end,
             $12, $13)
         on conflict (id) do update set
             process = excluded.process, name = excluded.name, roles = excluded.roles, version = excluded.version,
             minting_key = excluded.minting_key, known_keys = excluded.known_keys,
             started_at = excluded.started_at, heartbeat_at = excluded.heartbeat_at,
             counts_until = excluded.counts_until, bus = excluded.bus, slot = excluded.slot,
             shared_since = excluded.shared_since, schema_version = excluded.schema_version,
             bus_version = excluded.bus_version",
        Uuid::from_bytes(server.id),
        Uuid::from_bytes(server.process),
        server.name,
        &server.roles,
        server.version,
        server.minting_key,
        &server.known_keys,
        counts_for.as_secs_f64(),
        server.bus.as_ref().and_then(|member| member.bus.as_ref()),
        slot.map(|slot| i32::from(slot.0)),
        server.bus.as_ref().is_some_and(|member| member.is_shared_from_start),
        schema::version(),
        server.bus_version,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Returns why a server is too old for what the others have agreed on; none if it is not. Without a bus it reads no messages.
fn too_old(server: &NewServer, (schema_min, bus_version): (i64, i32)) -> Option<String> {
    let reads = server.bus_version;
    let is_unreadable = server.bus.is_some() && reads < bus_version;
    schema::older_than(schema_min).or_else(|| {
        is_unreadable.then(|| {
            format!("servers write version {bus_version} of messages to NATS, and this one reads version {reads} at most")
        })
    })
}

/// Returns the slot of a server: the one that it has, else the first free one in the group with the fewest servers; an outer none if
/// it needs none, an inner one if other servers have all.
fn free_slot(member: &BusMember, taken: &BTreeSet<u16>) -> Option<Option<BusSlot>> {
    let (slots, group) = member.slots?;
    if member.slot.is_some() {
        // Another server may have got it meanwhile. Then both read the spans of both, and each discards those of the other.
        return Some(member.slot);
    }
    let in_group = |slot: u16| taken.iter().filter(|it| **it / group == slot / group).count();
    let free = (0..slots).filter(|slot| !taken.contains(slot));
    Some(free.min_by_key(|slot| (in_group(*slot), *slot)).map(BusSlot))
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

#[cfg(test)]
mod tests {
    use super::{BusMember, free_slot};
    use model::BusSlot;

    #[test]
    fn slots_are_spread_over_streams_and_end() {
        let is_shared_from_start = true;
        let member =
            |slot| BusMember { bus: None, is_shared_from_start, slot, slots: Some((6, 3)) };
        let mut taken = std::collections::BTreeSet::new();
        let mut order = Vec::new();
        while let Some(Some(BusSlot(slot))) = free_slot(&member(None), &taken) {
            order.push(slot);
            taken.insert(slot);
        }
        assert_eq!(order, [0, 3, 1, 4, 2, 5]);
        assert_eq!(
            free_slot(&member(Some(BusSlot(2))), &taken),
            Some(Some(BusSlot(2))),
            "it keeps its own"
        );
        let without = BusMember { bus: None, is_shared_from_start, slot: None, slots: None };
        assert_eq!(free_slot(&without, &taken), None, "it needs none");
    }
}
