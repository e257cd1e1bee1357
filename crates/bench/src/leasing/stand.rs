//! A Postgres with queued runs, and the calls of a worker.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use db::{
    BusPlace, Connect, Db, Keep, LeaseNumber, LeaseRequest, NewRun, RunCompletion, RunLease,
    RunVars, Starter,
};
use model::{
    Answer, Attempt, Body, Judgement, Outcome, Response, RunEvent, RunId, SpanId, Timestamp,
    TraceId, Verdict, What,
};
use sqlx::{AssertSqlSafe, PgConnection};
use tokio::time::{Instant, sleep};

use crate::parts::{Cluster, unix_nanos};

/// The connections that all workers share.
const CONNECTIONS: u32 = 64;
/// As a server sets it up.
const LEASE: Duration = Duration::from_secs(10);
/// The delays of a worker that meets another one leasing, as in the server: the first one, and the longest.
const BUSY: Duration = Duration::from_millis(4);
const BUSY_MAX: Duration = Duration::from_millis(1024);

/// The lanes, and runs that are queued in turn in each of them; the ids are of the last hour.
const FILL: &str = "
    insert into tests (project, id, version, file)
    select 'team-' || p, 'test-' || h, 1, 'tests.yaml' from generate_series(1, $projects) as p, generate_series(1, $hosts) as h;
    insert into test_versions (project, test_id, version, name, document, host)
    select project, id, 1, id, repeat('a line of the test' || chr(10), 30), id || '.example:80' from tests;
    insert into runs (project, id, test_id, test_version, host, accepted_at_ns)
    select 'team-' || n % $projects + 1,
        (lpad(to_hex((extract(epoch from now()) * 1000)::bigint - 3600000 + n * 3600000 / $queued), 12, '0')
            || '7' || substr(md5(n::text), 1, 3) || '8' || substr(md5(n::text), 4, 15))::uuid,
        'test-' || n / $projects % $hosts + 1, 1, 'test-' || n / $projects % $hosts + 1 || '.example:80', 1
    from generate_series(1, $queued::bigint) as n;
    insert into open_runs (id, project, host, accepted_at_ns, events_last)
    select id, project, host, accepted_at_ns, 1 from runs;
";

pub(super) struct Stand {
    pub(super) cluster: Cluster,
    pub(super) db: Db,
    pub(super) projects: usize,
    pub(super) hosts: usize,
    random: AtomicU64,
}

/// A worker that leases, and what it knows from its last lease.
#[derive(Debug, Default)]
pub(super) struct LeasingWorker {
    oldest_lease: Option<LeaseNumber>,
    /// Leases, also those that brought no run.
    pub(super) leases: u64,
    /// How often another worker leased at that moment.
    pub(super) busy: u64,
}

impl Stand {
    pub(super) async fn start(projects: usize, hosts: usize, queued: usize) -> Result<Self> {
        let mut cluster = Cluster::create().await?;
        cluster
            .start_with(&["shared_preload_libraries=pg_stat_statements", "max_connections=100"])
            .await?;
        let options = cluster.options();
        let connect = Connect {
            host: "127.0.0.1".to_owned(),
            port: options.get_port(),
            password: cluster.password().to_owned(),
            dbname: "postgres".to_owned(),
            pool_max: CONNECTIONS,
            ..Connect::default()
        };
        let db = Db::connect(&connect).await?;
        db.migrate().await?;
        db.upkeep(Timestamp::from_nanos(unix_nanos()), Keep::default()).await?;
        let fill = FILL
            .replace("$projects", &projects.to_string())
            .replace("$hosts", &hosts.to_string())
            .replace("$queued", &queued.to_string());
        let mut connection = cluster.connect().await?;
        for statement in [fill.as_str(), "vacuum analyze", "create extension pg_stat_statements"] {
            execute(&mut connection, statement).await?;
        }
        Ok(Self { cluster, db, projects, hosts, random: AtomicU64::new(1) })
    }

    pub(super) fn lanes(&self) -> usize {
        self.projects * self.hosts
    }

    /// Returns a number that differs at each call and is spread over all bits.
    pub(super) fn random(&self) -> u64 {
        let number = self.random.fetch_add(1, Ordering::Relaxed);
        let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
    }

    fn bytes<const N: usize>(&self) -> [u8; N] {
        let (one, other) = (self.random().to_be_bytes(), self.random().to_be_bytes());
        std::array::from_fn(|at| if at < 8 { one[at] } else { other[at % 8] } | 1)
    }

    /// Accepts a run in one of the lanes.
    pub(super) async fn accept(&self) -> Result<()> {
        let lane = self.random() as usize;
        let at = Timestamp::from_nanos(unix_nanos());
        let run = NewRun {
            id: RunId::new(at, self.bytes()),
            project: format!("team-{}", lane % self.projects + 1).parse()?,
            test: format!("test-{}", lane / self.projects % self.hosts + 1).parse()?,
            accepted_at: at,
            traceparent: Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".to_owned()),
            vars: RunVars::default(),
            timeout: None,
            key: None,
            starter: Starter::Token,
        };
        self.db.create_run(&run).await?;
        Ok(())
    }

    /// Writes the steps of a run until it waits for its trace.
    pub(super) async fn fire(&self, run: &RunLease) -> Result<()> {
        let at = Timestamp::from_nanos(unix_nanos());
        let attempt = Attempt {
            trace_id: TraceId::from_bytes(self.bytes()).context("a trace id")?,
            span_id: SpanId::from_bytes(self.bytes()).context("a span id")?,
            at,
        };
        self.db.attempted(run.run_id, run.epoch, &attempt, &BusPlace::default()).await?;
        self.db.answered(run.run_id, run.epoch, &response(), at).await?;
        Ok(())
    }

    pub(super) async fn renew(&self, run: &RunLease) -> Result<()> {
        let renewed = self.db.renew(&[(run.run_id, run.epoch)], LEASE).await?;
        ensure!(renewed.len() == 1, "the run has its owner");
        Ok(())
    }

    pub(super) async fn judge_provisionally(&self, run: &RunLease) -> Result<()> {
        let at = Timestamp::from_nanos(unix_nanos());
        let events = [RunEvent { at, what: What::Provisional { verdict: Verdict::Passed } }];
        Ok(self.db.provisional(run.run_id, run.epoch, Verdict::Passed, &events).await?)
    }

    pub(super) async fn finish(&self, run: &RunLease) -> Result<()> {
        let at = Timestamp::from_nanos(unix_nanos());
        let outcome = outcome(run);
        let events = [RunEvent { at, what: What::Judged { verdict: Verdict::Passed } }];
        let otlp = self.bytes::<16>().repeat(64).into();
        let trace = Some(db::OtlpTrace { spans: 10, otlp, columns: None });
        let completion = RunCompletion { outcome: &outcome, events: &events, trace };
        Ok(self.db.finish(run.run_id, run.epoch, &completion).await?)
    }
}

impl LeasingWorker {
    /// Leases runs; comes again while another worker leases, as the server does.
    pub(super) async fn lease(&mut self, stand: &Stand, runs_max: usize) -> Result<Vec<RunLease>> {
        let mut delay = BUSY;
        loop {
            let request = LeaseRequest {
                worker: "worker",
                lease: LEASE,
                at: Timestamp::from_nanos(unix_nanos()),
                runs_max,
                host_max: 10_000,
                runs_reserved: 0,
                host_reserved: 0,
                with_expired: false,
                oldest_lease: self.oldest_lease,
            };
            if let Some(leases) = stand.db.lease_runs(&request).await? {
                ensure!(leases.damaged.is_empty(), "every run can be read");
                self.oldest_lease = leases.oldest_lease;
                self.leases += 1;
                return Ok(leases.runs);
            }
            self.busy += 1;
            let part = (stand.random() % 256) as f64 / 256.0;
            sleep(delay.mul_f64(0.5 + part)).await;
            delay = (delay * 2).min(BUSY_MAX);
        }
    }
}

pub(super) async fn execute(connection: &mut PgConnection, statement: &str) -> Result<()> {
    sqlx::raw_sql(AssertSqlSafe(statement.to_owned())).execute(connection).await?;
    Ok(())
}

/// Sleeps until a time, and returns by how much it has passed.
pub(super) async fn wait_until(at: Instant) -> Duration {
    tokio::time::sleep_until(at).await;
    at.elapsed()
}

fn response() -> Answer {
    Answer::Response(Response {
        status: 200,
        headers: vec![("content-type".to_owned(), "application/json".to_owned())],
        body: Body::Text("{\"id\": 7, \"state\": \"accepted\"}".into()),
        duration_ns: 1_000_000,
    })
}

fn outcome(run: &RunLease) -> Outcome {
    Outcome {
        run_id: Some(run.run_id),
        test: run.test.name.clone(),
        verdict: Verdict::Passed,
        provisional: false,
        superseded: None,
        reasons: vec!["because every statement holds".to_owned()],
        trace_id: None,
        request: None,
        answer: Some(response()),
        settlement: None,
        diagnoses: Vec::new(),
        overtaken: None,
        earlier: Vec::new(),
        judgement: Judgement::bare(Verdict::Passed),
        analysis: None,
        steps: Vec::new(),
    }
}
