//! The statements of runs, replayed by bare sqlx: as many runs, at the same concurrency, over as many connections, with the data
//! that real runs have written. There is no other work between two statements.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use model::{RunId, Timestamp};
use sqlx::{
    Executor, PgPool, Row as _,
    postgres::{PgPoolOptions, PgRow},
    types::Uuid,
};
use tokio::{task::JoinSet, time::Instant};

use super::statements::{self, SqlStatement};
use crate::parts::{Cluster, unix_nanos};

/// The connections of the bare pool, and the active runs against one host.
const CONNECTIONS: u32 = 10;
const IN_FLIGHT: usize = 32;
const PLACES: i64 = 64;

/// As in the database crate: each statement is planned only once.
const PLANS: &str = "set plan_cache_mode = force_generic_plan";

/// The statements of one run.
struct RunStatements {
    accept: SqlStatement,
    lease: SqlStatement,
    read: SqlStatement,
    attempted: SqlStatement,
    answered: SqlStatement,
    provisional: SqlStatement,
    finish: SqlStatement,
}

/// The data that a real run has written.
struct ReplayRows {
    test: String,
    answer: Vec<u8>,
    /// The verdict with which it lingered, if it did.
    provisional: Option<String>,
    verdict: String,
    outcome: String,
    events: Vec<String>,
    spans: Option<i64>,
    trace: Option<Vec<u8>>,
}

struct Replay {
    pool: PgPool,
    asked: RunStatements,
    written: Vec<ReplayRows>,
    /// Nanoseconds that runs have waited for their statements.
    waited: AtomicU64,
}

/// The totals of all runs.
pub(super) struct ReplayCost {
    /// Their waiting time for statements.
    pub(super) waited: Duration,
    /// CPU time of Postgres.
    pub(super) postgres: Duration,
}

/// Executes the statements of this many runs.
pub(super) async fn measure(cluster: &Cluster, runs: usize) -> Result<ReplayCost> {
    let pool = PgPoolOptions::new().max_connections(CONNECTIONS).after_connect(|connection, _| {
        Box::pin(async move { connection.execute(PLANS).await.map(drop) })
    });
    let pool =
        pool.acquire_timeout(Duration::from_secs(60)).connect_with(cluster.options()).await?;
    let all = statements::all()?;
    let asked = |words| statements::with(&all, words).cloned();
    let asked = RunStatements {
        accept: asked("vars, timeout_ms, revision, starter)")?,
        lease: asked("Leases up to")?,
        read: asked("What a worker needs")?,
        attempted: asked("set trace_id")?,
        answered: asked("set answer_sealed")?,
        provisional: asked("update open_runs set provisional")?,
        finish: asked("update runs set verdict")?,
    };
    let written = written(&pool).await?;
    ensure!(!written.is_empty(), "runs have ended");
    let replay = Arc::new(Replay { pool, asked, written, waited: AtomicU64::default() });
    // Connections are opened, and statements prepared, before the measurement.
    replay_all(&replay, runs / 10).await?;
    replay.waited.store(0, Ordering::Relaxed);
    sqlx::raw_sql("select pg_stat_statements_reset()").execute(&replay.pool).await?;
    let before = cluster.cpu()?;
    replay_all(&replay, runs).await?;
    let postgres = cluster.cpu()?.saturating_sub(before);
    replay.pool.close().await;
    Ok(ReplayCost { waited: Duration::from_nanos(replay.waited.load(Ordering::Relaxed)), postgres })
}

async fn replay_all(replay: &Arc<Replay>, runs: usize) -> Result<()> {
    let began = unix_nanos();
    let id = move |number: usize| {
        let random: [u8; 10] = std::array::from_fn(|at| (number >> (8 * (at % 8))) as u8);
        RunId::new(Timestamp::from_nanos(began), random).as_uuid()
    };
    let mut accepting = JoinSet::new();
    for number in 0..runs {
        let replay = Arc::clone(replay);
        accepting.spawn(async move { replay.accept(id(number), number).await });
    }
    let mut running: JoinSet<Result<()>> = JoinSet::new();
    let mut ended = 0;
    while ended < runs {
        let free = IN_FLIGHT.saturating_sub(running.len());
        if free > 0 {
            for (id, number) in replay.lease().await? {
                let replay = Arc::clone(replay);
                running.spawn(async move { replay.run(id, number).await });
            }
        }
        // As a server's worker: it polls again when a run was accepted, or has ended.
        tokio::select! {
            Some(accepted) = accepting.join_next() => {
                accepted??;
                while let Some(accepted) = accepting.try_join_next() {
                    accepted??;
                }
            }
            Some(run) = running.join_next() => {
                run??;
                ended += 1;
                while let Some(run) = running.try_join_next() {
                    run??;
                    ended += 1;
                }
            }
            else => {}
        }
    }
    Ok(())
}

impl Replay {
    fn of(&self, number: usize) -> &ReplayRows {
        &self.written[number % self.written.len()]
    }

    fn note(&self, began: Instant, runs: usize) {
        let took = began.elapsed().as_nanos() as u64 * runs as u64;
        self.waited.fetch_add(took, Ordering::Relaxed);
    }

    async fn accept(&self, id: Uuid, number: usize) -> Result<()> {
        let began = Instant::now();
        let row = sqlx::query(sqlx::AssertSqlSafe(self.asked.accept.text.clone()))
            .bind("default")
            .bind(id)
            .bind(&self.of(number).test)
            .bind(unix_nanos() as i64)
            .bind("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
            .bind(r#"{"at":"2026-01-01T00:00:00.000000000Z","what":"accepted"}"#)
            .bind(None::<String>)
            .bind(None::<i64>)
            .bind(format!("replay-{id}"))
            .bind("start no-error {}")
            .bind(None::<String>)
            .bind("token")
            .fetch_optional(&self.pool)
            .await?;
        self.note(began, 1);
        ensure!(row.is_some_and(|row| row.get::<bool, _>(1)), "the run is accepted");
        Ok(())
    }

    /// Leases queued runs, with the number that selects the data that they write.
    async fn lease(&self) -> Result<Vec<(Uuid, usize)>> {
        let began = Instant::now();
        let rows: Vec<PgRow> = sqlx::query(sqlx::AssertSqlSafe(self.asked.lease.text.clone()))
            .bind("replay")
            .bind(10.0)
            .bind(PLACES)
            .bind(IN_FLIGHT as i64)
            .bind("2026-01-01T00:00:00.000000000Z")
            // No slot is reserved for other projects: all runs belong to one project.
            .bind(0_i64)
            .bind(0_i64)
            .bind(0_i64)
            .bind(Vec::<Uuid>::new())
            .fetch_all(&self.pool)
            .await?;
        let leased = rows.iter().filter_map(|row| row.get::<Option<Uuid>, _>(0));
        let leased: Vec<Uuid> = leased.collect();
        if !leased.is_empty() {
            let read = sqlx::query(sqlx::AssertSqlSafe(self.asked.read.text.clone()));
            let read = read.bind(&leased).bind(vec![1_i64; leased.len()]);
            let read = read.fetch_all(&self.pool).await?;
            ensure!(read.len() == leased.len(), "each leased run is read");
        }
        self.note(began, leased.len());
        Ok(leased.into_iter().enumerate().map(|(number, run)| (run, number)).collect())
    }

    async fn run(&self, id: Uuid, number: usize) -> Result<()> {
        let written = self.of(number);
        let began = Instant::now();
        let attempted = sqlx::query(sqlx::AssertSqlSafe(self.asked.attempted.text.clone()))
            .bind(id)
            .bind(1_i64)
            .bind(id.as_bytes().as_slice())
            .bind(&id.as_bytes()[8..])
            .bind(unix_nanos() as i64)
            .bind(&written.events[0])
            // There is no bus that servers share.
            .bind(None::<&str>)
            .bind(None::<i32>)
            .execute(&self.pool)
            .await?;
        let answered = sqlx::query(sqlx::AssertSqlSafe(self.asked.answered.text.clone()))
            .bind(id)
            .bind(1_i64)
            .bind(&written.answer)
            .bind(&written.events[0])
            .bind(written.answer.len() as i64)
            .execute(&self.pool)
            .await?;
        // All events but the final verdict are written with the provisional one.
        let (early, last) = written.events.split_at(match written.provisional {
            Some(_) => written.events.len() - 1,
            None => 0,
        });
        if let Some(verdict) = &written.provisional {
            let lingers = sqlx::query(sqlx::AssertSqlSafe(self.asked.provisional.text.clone()))
                .bind(id)
                .bind(1_i64)
                .bind(verdict)
                .bind(early)
                .fetch_all(&self.pool)
                .await?;
            ensure!(lingers.len() == 1, "the provisional verdict is written");
        }
        let finished = sqlx::query(sqlx::AssertSqlSafe(self.asked.finish.text.clone()))
            .bind(id)
            .bind(1_i64)
            .bind(&written.verdict)
            .bind(&written.outcome)
            .bind(last)
            .bind(written.spans)
            .bind(&written.trace)
            .bind(unix_nanos() as i64)
            .bind(None::<Vec<u8>>)
            .fetch_all(&self.pool)
            .await?;
        self.note(began, 1);
        let written = attempted.rows_affected() + answered.rows_affected() + finished.len() as u64;
        ensure!(written == 3, "each statement has written");
        Ok(())
    }
}

/// Reads the data that some runs have written.
async fn written(pool: &PgPool) -> Result<Vec<ReplayRows>> {
    let rows = sqlx::query(
        "select test_id, convert_to((outcome -> 'answer')::text, 'UTF8'), verdict, outcome::text, spans, otlp_zstd, provisional,
             array(select event::text from events where events.run_id = runs.id and n > 4 order by n)
         from runs left join traces on traces.run_id = runs.id where verdict is not null and answered_epoch is not null
         order by id desc limit 64 /* bench */",
    );
    let mut all = VecDeque::new();
    for row in rows.fetch_all(pool).await? {
        let written = ReplayRows {
            test: row.get(0),
            answer: row.get(1),
            verdict: row.get(2),
            outcome: row.get(3),
            spans: row.get(4),
            trace: row.get(5),
            provisional: row.get(6),
            events: row.get(7),
        };
        written.events.first().context("a run has events")?;
        all.push_back(written);
    }
    Ok(all.into())
}
