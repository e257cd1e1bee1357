//! How long a migration of a long history holds up the servers that use it.
//!
//! The tables are those of before open runs had a table of their own, with many finished runs. While they are migrated to the
//! present form, one connection reads runs, another one writes them, and a third one looks which locks are held.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use db::{Connect, Db, Keep};
use model::Timestamp;
use sqlx::{AssertSqlSafe, PgConnection, migrate::Migrator};
use tokio::{
    sync::watch,
    task::JoinSet,
    time::{Instant, sleep},
};

use crate::{
    parts::{Cluster, unix_nanos},
    table::{Goal, Row},
};

static MIGRATIONS: Migrator = sqlx::migrate!("../db/migrations");

/// The last migration before open runs had a table of their own.
const BEFORE: i64 = 18;
/// Runs that are queued and active beside the finished ones.
const QUEUED: u64 = 1000;
const ACTIVE: u64 = 200;
/// How long a statement may wait, and a lock that excludes all others may be held.
const WAIT_MAX_MS: f64 = 1000.0;
/// How often the locks are looked at.
const LOOK: Duration = Duration::from_millis(2);
/// How long statements are executed before the migration, and after it.
const MARGIN: Duration = Duration::from_secs(1);

/// The rows of before: their ids are of the last minutes.
const FILL: &str = "
    insert into tests (project, id, version, file) select 'team', 'test-' || n, 1, 'tests.yaml' from generate_series(0, 9) as n;
    insert into test_versions (project, test_id, version, name, document, host)
        select project, id, 1, id, repeat('a line of the test' || chr(10), 30), id || '.example:80' from tests;
    create temporary table numbered as select n,
        (lpad(to_hex((extract(epoch from now()) * 1000)::bigint - 600000 + n * 600000 / $all), 12, '0')
            || '7' || substr(md5(n::text), 1, 3) || '8' || substr(md5(n::text), 4, 15))::uuid as id
        from generate_series(1, $all::bigint) as n;
    insert into runs (project, id, test_id, test_version, host, accepted_at_ns, epoch, worker, trace_id, span_id, attempted_at_ns,
            attempted_epoch, answer, answered_epoch, verdict, outcome, ended_at_ns, events_last, starter)
        select 'team', id, 'test-' || n % 10, 1, 'test-' || n % 10 || '.example:80', n, 1, 'worker',
            decode(md5(n::text), 'hex'), decode(left(md5(n::text), 16), 'hex'), n, 1, '{}', 1, 'passed',
            json_build_object('verdict', 'passed', 'reasons', repeat(md5(n::text), 20)), n, 5, 'token'
        from numbered where n <= $finished;
    insert into runs (project, id, test_id, test_version, host, accepted_at_ns, events_last)
        select 'team', id, 'test-' || n % 10, 1, 'test-' || n % 10 || '.example:80', n, 1
        from numbered where n > $finished and n <= $finished + $queued;
    insert into runs (project, id, test_id, test_version, host, accepted_at_ns, events_last, epoch, lease_until, worker)
        select 'team', id, 'test-' || n % 10, 1, 'test-' || n % 10 || '.example:80', n, 2, 1, now() + interval '1 hour', 'worker'
        from numbered where n > $finished + $queued;
";

/// What was measured.
#[derive(Clone, Debug, Default)]
pub struct MigrationResult {
    /// Finished runs.
    pub finished: u64,
    /// Runs without a verdict, before and after.
    pub open: [i64; 2],
    /// From the first statement of the migration to the last.
    pub took: Duration,
    /// The longest time that a statement that reads runs took.
    pub read: Duration,
    /// The longest time that a statement that writes a run took.
    pub written: Duration,
    /// The longest time that a lock on `runs` was held that excludes readers.
    pub excluded: Duration,
    /// Statements that were executed meanwhile.
    pub statements: u64,
}

impl MigrationResult {
    /// Whether the migration held up no statement for long, and every open run is there.
    pub fn is_right(&self) -> bool {
        let max = Duration::from_secs_f64(WAIT_MAX_MS / 1e3);
        self.open[0] == self.open[1]
            && [self.read, self.written, self.excluded].iter().all(|it| *it <= max)
    }

    /// One row for each figure.
    pub fn rows(&self) -> Vec<Row> {
        let row = |name: &str, value, unit, goal| Row { name: name.to_owned(), value, unit, goal };
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        let waits = Some(Goal::AtMost(WAIT_MAX_MS));
        let lost = (self.open[0] - self.open[1]).abs();
        vec![
            row("finished runs", self.finished as f64, "runs", None),
            row("open runs before", self.open[0] as f64, "runs", None),
            row("open runs lost", lost as f64, "runs", Some(Goal::AtMost(0.0))),
            row("the migration", ms(self.took), "ms", None),
            row("statements meanwhile", self.statements as f64, "", None),
            row("a statement that reads runs, at the longest", ms(self.read), "ms", waits),
            row("a statement that writes a run, at the longest", ms(self.written), "ms", waits),
            row(
                "a lock on runs that excludes all others, at the longest",
                ms(self.excluded),
                "ms",
                waits,
            ),
        ]
    }
}

/// Migrates this many finished runs from before open runs had a table, and measures what other connections notice.
pub async fn measure(finished: u64) -> Result<MigrationResult> {
    let mut cluster = Cluster::create().await?;
    cluster.start_with(&[]).await?;
    let mut raw = cluster.connect().await?;
    let db = fill(&cluster, &mut raw, finished).await?;
    let mut result = MigrationResult { finished, ..MigrationResult::default() };
    result.open[0] = count(&mut raw, "select count(*) from runs where verdict is null").await?;
    let (stop, mut tasks) = (watch::Sender::new(false), JoinSet::new());
    let read = "select count(*) from runs where id = any (array(select id from sample))";
    let write = "update runs set stalls = stalls where id = (select id from sample order by random() limit 1)";
    for (at, statement) in [(0, read), (1, write)] {
        let (connection, stop) = (cluster.connect().await?, stop.subscribe());
        tasks.spawn(async move { anyhow::Ok((at, repeat(connection, statement, stop).await?)) });
    }
    let (connection, watched) = (cluster.connect().await?, stop.subscribe());
    tasks.spawn(async move { anyhow::Ok((2, locks(connection, watched).await?)) });
    // The statements have run before, and go on after it.
    sleep(MARGIN).await;
    let began = Instant::now();
    db.migrate().await?;
    result.took = began.elapsed();
    sleep(MARGIN).await;
    stop.send_replace(true);
    while let Some(task) = tasks.join_next().await {
        let (at, (longest, number)) = task??;
        result.statements += if at < 2 { number } else { 0 };
        match at {
            0 => result.read = longest,
            1 => result.written = longest,
            _ => result.excluded = longest,
        }
    }
    result.open[1] = count(&mut raw, "select count(*) from open_runs").await?;
    db.close().await;
    cluster.stop().await?;
    Ok(result)
}

/// Makes the tables of before, and their rows.
async fn fill(cluster: &Cluster, raw: &mut PgConnection, finished: u64) -> Result<Db> {
    MIGRATIONS.run_to(BEFORE, &mut *raw).await?;
    let db = Db::connect(&Connect {
        host: "127.0.0.1".to_owned(),
        port: cluster.options().get_port(),
        password: cluster.password().to_owned(),
        dbname: "postgres".to_owned(),
        ..Connect::default()
    })
    .await?;
    // The tables of this month, as a server makes them.
    db.upkeep(Timestamp::from_nanos(unix_nanos()), Keep::default()).await?;
    let all = finished + QUEUED + ACTIVE;
    let fill = FILL
        .replace("$all", &all.to_string())
        .replace("$finished", &finished.to_string())
        .replace("$queued", &QUEUED.to_string());
    let sample = "create table sample as select id from runs where verdict is not null order by random() limit 100";
    for statement in [fill.as_str(), sample] {
        sqlx::raw_sql(AssertSqlSafe(statement.to_owned())).execute(&mut *raw).await?;
    }
    let ended = count(raw, "select count(*) from runs where verdict is not null").await?;
    ensure!(ended as u64 == finished, "{ended} of {finished} runs");
    Ok(db)
}

/// Repeats a statement, and returns the longest time that it took, and how often it was executed.
async fn repeat(
    mut connection: PgConnection,
    statement: &'static str,
    stop: watch::Receiver<bool>,
) -> Result<(Duration, u64)> {
    let (mut longest, mut number) = (Duration::ZERO, 0);
    while !*stop.borrow() {
        let began = Instant::now();
        sqlx::query(statement).execute(&mut connection).await.context(statement)?;
        longest = longest.max(began.elapsed());
        number += 1;
    }
    Ok((longest, number))
}

/// Returns the longest time that one transaction held a lock on `runs` or a part of it that excludes readers.
async fn locks(
    mut connection: PgConnection,
    stop: watch::Receiver<bool>,
) -> Result<(Duration, u64)> {
    let tables: Vec<String> = sqlx::query_scalar(
        "select oid::text from pg_class where relname = 'runs'
         union select inhrelid::text from pg_inherits where inhparent = 'runs'::regclass",
    )
    .fetch_all(&mut connection)
    .await?;
    let held = "select virtualtransaction from pg_locks
        where granted and mode = 'AccessExclusiveLock' and relation::text = any ($1) limit 1";
    // Who holds it, and when it was first and last seen to be free of that transaction.
    let (mut longest, mut holder, mut free_at) = (Duration::ZERO, None::<String>, Instant::now());
    let mut seen = 0;
    while !*stop.borrow() {
        let asked = Instant::now();
        let now: Option<String> =
            sqlx::query_scalar(held).bind(&tables).fetch_optional(&mut connection).await?;
        match now {
            Some(now) if holder.as_ref() == Some(&now) => {
                longest = longest.max(free_at.elapsed());
            }
            Some(now) => {
                holder = Some(now);
                seen += 1;
            }
            None => {
                if holder.take().is_some() {
                    longest = longest.max(free_at.elapsed());
                }
                free_at = asked;
            }
        }
        sleep(LOOK).await;
    }
    Ok((longest, seen))
}

async fn count(raw: &mut PgConnection, query: &'static str) -> Result<i64> {
    Ok(sqlx::query_scalar(query).fetch_one(raw).await?)
}
