//! Windows of ten seconds: what Postgres did in each, by its own statistics, and what the workers saw.

use std::{collections::BTreeMap, fmt, sync::atomic::Ordering, time::Duration};

use anyhow::Result;
use sqlx::Row as _;

use super::{LoadExtent, row, soak::Counters, stand::Stand};
use crate::table::{Goal, Row};

pub(super) const WINDOW: Duration = Duration::from_secs(10);
/// Windows of a minute.
const MINUTE: usize = 6;

/// Words of a statement, and its name.
const STATEMENTS: [(&str, &str); 8] = [
    ("Leases up to", "lease"),
    ("What a worker needs", "read"),
    ("insert into idempotency_keys", "accept"),
    ("set trace_id", "attempted"),
    ("set answer_sealed", "answered"),
    ("set provisional", "provisional"),
    ("set lease_until = now()", "renew"),
    ("delete from open_runs", "finish"),
];

/// Totals since the begin.
#[derive(Clone, Debug, Default)]
struct Totals {
    /// Calls and milliseconds of each statement.
    statements: BTreeMap<&'static str, (f64, f64)>,
    cpu: Duration,
    leases: u64,
    busy: u64,
    leased: u64,
    ended: u64,
    waited_us: u64,
}

/// One window.
#[derive(Clone, Debug)]
pub(super) struct Window {
    /// The mean time of each statement, in milliseconds.
    statements: BTreeMap<&'static str, f64>,
    /// CPU time of Postgres, a run, in milliseconds.
    cpu_ms: f64,
    leases: u64,
    busy: u64,
    leased: u64,
    ended: u64,
    /// The mean time from when a worker wanted a run until it had one.
    waited_ms: f64,
    dead: i64,
}

pub(super) struct Windows {
    last: Totals,
    all: Vec<Window>,
}

impl Windows {
    pub(super) async fn begin(stand: &Stand, counters: &Counters) -> Result<Self> {
        Ok(Self { last: totals(stand, counters).await?, all: Vec::new() })
    }

    /// Adds the window that ends now.
    pub(super) async fn note(&mut self, stand: &Stand, counters: &Counters) -> Result<&Window> {
        let now = totals(stand, counters).await?;
        let before = std::mem::replace(&mut self.last, now.clone());
        let mean = |name: &&'static str| {
            let (calls, ms) = now.statements[*name];
            let (calls_before, ms_before) =
                before.statements.get(*name).copied().unwrap_or_default();
            (ms - ms_before) / (calls - calls_before).max(1.0)
        };
        let leased = now.leased - before.leased;
        let each = |sum: f64| sum / (leased.max(1) as f64);
        let dead = "select n_dead_tup from pg_stat_user_tables where relname = 'open_runs'";
        self.all.push(Window {
            statements: now.statements.keys().map(|name| (*name, mean(name))).collect(),
            cpu_ms: each((now.cpu.saturating_sub(before.cpu)).as_secs_f64() * 1e3),
            leases: now.leases - before.leases,
            busy: now.busy - before.busy,
            leased,
            ended: now.ended - before.ended,
            waited_ms: each((now.waited_us - before.waited_us) as f64 / 1e3),
            dead: stand.cluster.count(dead).await?,
        });
        Ok(&self.all[self.all.len() - 1])
    }

    /// Returns the figures of each minute, and how level they are.
    pub(super) async fn rows(&self, stand: &Stand, extent: LoadExtent) -> Result<Vec<Row>> {
        let lanes = stand.lanes();
        let mut rows = Vec::new();
        for (number, minute) in self.all.chunks(MINUTE).enumerate() {
            let mean = |of: &dyn Fn(&Window) -> f64| {
                minute.iter().map(of).sum::<f64>() / minute.len() as f64
            };
            let per_minute = |of: &dyn Fn(&Window) -> f64| mean(of) * MINUTE as f64;
            let mut add = |name: &str, value: f64, unit: &'static str| {
                rows.push(row(lanes, &format!("minute {}: {name}", number + 1), value, unit, None));
            };
            add("leases", per_minute(&|it| it.leases as f64), "leases");
            add("tries that met another worker", per_minute(&|it| it.busy as f64), "tries");
            add("runs leased", per_minute(&|it| it.leased as f64), "runs");
            add("runs ended", per_minute(&|it| it.ended as f64), "runs");
            add("wanted to leased", mean(&|it| it.waited_ms), "ms");
            for name in self.last.statements.keys() {
                add(name, mean(&|it| it.statements.get(name).copied().unwrap_or_default()), "ms");
            }
            add("CPU of Postgres, a run", mean(&|it| it.cpu_ms), "ms");
            add("dead rows of open runs", mean(&|it| it.dead as f64), "rows");
        }
        rows.extend(self.level(lanes, extent));
        rows.extend(sizes(stand).await?);
        Ok(rows)
    }

    /// Compares the times of all statements with those before the long transaction.
    fn level(&self, lanes: usize, extent: LoadExtent) -> Vec<Row> {
        // The second minute, or what there is of it before the long transaction.
        let early = &self.all[MINUTE.min(extent.long.0 / 2)..(2 * MINUTE).min(extent.long.0)];
        let mean = |windows: &[Window], name: &str| {
            let sum: f64 =
                windows.iter().map(|it| it.statements.get(name).copied().unwrap_or_default()).sum();
            sum / windows.len() as f64
        };
        let growth = |windows: &[Window]| {
            let of = |name: &&'static str| (mean(windows, name) / mean(early, name), *name);
            let all = self.last.statements.keys().map(of);
            all.max_by(|one, other| one.0.total_cmp(&other.0)).unwrap_or((f64::NAN, "none"))
        };
        let last = self.all.len();
        let cases = [
            ("the last minute", &self.all[last.saturating_sub(MINUTE)..], 1.5),
            ("the end of the long transaction", &self.all[extent.long.1 - 1..extent.long.1], 5.0),
            ("30 s after it", &self.all[extent.long.1 + 3..extent.long.1 + 4], 1.5),
        ];
        let rows = cases.into_iter().map(|(when, windows, most)| {
            let (value, slowest) = growth(windows);
            let name = format!("time of `{slowest}` in {when}, over the time before the long transaction (the largest growth)");
            row(lanes, &name, value, "ratio", Some(Goal::AtMost(most)))
        });
        rows.collect()
    }
}

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} runs by {} leases and {} tries, {} ended, had after {:.1} ms, {} dead rows, CPU {:.2} ms a run;",
            self.leased, self.leases, self.busy, self.ended, self.waited_ms, self.dead, self.cpu_ms
        )?;
        for (name, ms) in &self.statements {
            write!(f, " {name} {ms:.2}")?;
        }
        Ok(())
    }
}

async fn totals(stand: &Stand, counters: &Counters) -> Result<Totals> {
    let mut connection = stand.cluster.connect().await?;
    let read = "select query, calls::float8, total_exec_time from pg_stat_statements";
    let mut statements: BTreeMap<&'static str, (f64, f64)> = BTreeMap::new();
    for row in sqlx::query(read).fetch_all(&mut connection).await? {
        let query: String = row.get(0);
        let known = STATEMENTS.iter().find(|(words, _)| query.contains(words));
        if let Some((_, name)) = known {
            let sum = statements.entry(name).or_default();
            sum.0 += row.get::<f64, _>(1);
            sum.1 += row.get::<f64, _>(2);
        }
    }
    let of = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
    Ok(Totals {
        statements,
        cpu: stand.cluster.cpu()?,
        leases: of(&counters.leases),
        busy: of(&counters.busy),
        leased: of(&counters.leased),
        ended: of(&counters.ended),
        waited_us: of(&counters.waited_us),
    })
}

/// Returns the size of each table and index that runs are written to.
async fn sizes(stand: &Stand) -> Result<Vec<Row>> {
    let mut connection = stand.cluster.connect().await?;
    let read = "select relname::text, pg_relation_size(oid)::float8 / 1048576 from pg_class
                where relkind in ('r', 'i') and relname ~ '^(open_runs|runs|events|traces)' and pg_relation_size(oid) > 1048576
                order by relname";
    let rows = sqlx::query(read).fetch_all(&mut connection).await?;
    let size = |row: &sqlx::postgres::PgRow| {
        let name = format!("size of {}", row.get::<String, _>(0));
        super::row(stand.lanes(), &name, row.get(1), "MB", None)
    };
    Ok(rows.iter().map(size).collect())
}
