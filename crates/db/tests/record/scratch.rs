//! A database for one test, created before it and dropped after it, and the values that tests write into it.

use std::{
    future::Future,
    panic::{self, AssertUnwindSafe},
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use db::{
    BusPlace, Connect, Db, DbError, LeaseRequest, NewRun, NewTest, RunCompletion, RunLease,
    RunLeases, RunVars, SecretKeys, Starter,
};
use model::{
    Answer, Attempt, Body, Judgement, Outcome, Progress, Project, Response, RunEvent, RunId,
    SpanId, TestId, Timestamp, TraceId, Verdict, What, World,
};
use sqlx::{AssertSqlSafe, Connection, PgConnection, postgres::PgConnectOptions};
use tokio::runtime::Runtime;

/// Longer than any test.
pub(crate) const LEASE: Duration = Duration::from_secs(600);

/// A lease that expires when it begins.
pub(crate) const NO_LEASE: Duration = Duration::ZERO;

/// Bytes of a trace in these tests.
pub(crate) const TRACE_BYTES_MAX: usize = 1 << 20;

/// A database for one test, migrated.
pub(crate) struct Scratch {
    pub(crate) db: Db,
    pub(crate) connect: Connect,
}

/// Runs `test` with its own database.
pub(crate) fn with<F: Future<Output = ()>>(test: impl FnOnce(Scratch) -> F) {
    let runtime = Runtime::new().expect("a runtime can be made");
    let server = server();
    let name = database_name();
    // A killed process leaves its databases behind, and its process id may be reused.
    runtime.block_on(admin(&server, format!("drop database if exists {name} with (force)")));
    runtime.block_on(admin(&server, format!("create database {name}")));
    let connect = Connect { dbname: name.clone(), ..server.clone() };
    let ended = panic::catch_unwind(AssertUnwindSafe(|| {
        runtime.block_on(async {
            let db = Db::connect(&connect).await.expect("connected");
            db.migrate().await.expect("migrated");
            test(Scratch { db, connect }).await;
        });
    }));
    runtime.block_on(admin(&server, format!("drop database {name} with (force)")));
    if let Err(cause) = ended {
        panic::resume_unwind(cause);
    }
}

impl Scratch {
    /// Opens a connection past `Db`, to damage rows and to inspect them.
    pub(crate) async fn raw(&self) -> PgConnection {
        raw(&self.connect).await
    }

    /// Applies a test with this document.
    pub(crate) async fn apply(&self, document: &str) -> db::AppliedDocument {
        apply(&self.db, new_test(document)).await
    }

    /// Accepts a run of that test; `number` determines its id and its age.
    pub(crate) async fn accept(&self, number: u32) -> RunId {
        let run = new_run(number);
        self.db.create_run(&run).await.expect("accepted");
        run.id
    }

    /// Leases a run that must exist.
    pub(crate) async fn take(&self, lease: Duration) -> RunLease {
        let taken = take(&self.db, "worker", lease).await.expect("asked");
        taken.expect("there is a run to take")
    }

    /// Ends the next run with this verdict.
    pub(crate) async fn end_next(&self, verdict: Verdict) -> RunId {
        let taken = self.take(LEASE).await;
        let attempted =
            self.db.attempted(taken.run_id, taken.epoch, &attempt(), &BusPlace::default()).await;
        attempted.expect("written");
        let events = [RunEvent { at: at(9), what: What::Judged { verdict } }];
        let outcome = outcome(taken.run_id, verdict);
        let finished = RunCompletion { outcome: &outcome, events: &events, trace: None };
        self.db.finish(taken.run_id, taken.epoch, &finished).await.expect("finished");
        taken.run_id
    }

    /// Returns the same database, which seals under the first of these keys.
    pub(crate) fn sealing(&self, keys: &[u8]) -> Db {
        let keys: Vec<_> = keys.iter().map(|byte| (format!("key-{byte}"), [*byte; 32])).collect();
        let keys = keys.iter().map(|(name, key)| (name.as_str(), key));
        let world = World::new(|| at(0), || [5; 32]);
        self.db.clone().with_secrets(SecretKeys::new(keys, world))
    }

    /// Returns the progress of a run, with its response.
    pub(crate) async fn progress(&self, taken: &RunLease) -> Progress {
        self.db.progress(taken).await.expect("it is there")
    }

    /// Leases up to `runs_max` runs, with at most `host_max` active runs against one host.
    pub(crate) async fn take_many(&self, runs_max: usize, host_max: usize) -> RunLeases {
        let taking = LeaseRequest { runs_max, host_max, ..taking("worker", LEASE) };
        self.lease(&taking).await
    }

    /// Leases runs while no other worker does.
    pub(crate) async fn lease(&self, request: &LeaseRequest<'_>) -> RunLeases {
        let leases = self.db.lease_runs(request).await.expect("leased");
        leases.expect("no other worker leases")
    }
}

/// Leases one run, where there is one.
pub(crate) async fn take(
    db: &Db,
    worker: &str,
    lease: Duration,
) -> Result<Option<RunLease>, DbError> {
    let took = loop {
        match db.lease_runs(&taking(worker, lease)).await? {
            Some(leases) => break leases,
            // Another worker of the same test leases.
            None => tokio::task::yield_now().await,
        }
    };
    assert_eq!(took.damaged, [], "nothing is damaged");
    Ok(took.runs.into_iter().next())
}

/// Renews one lease, and returns when the run was requested to stop.
pub(crate) async fn renew(
    db: &Db,
    run: RunId,
    epoch: i64,
    lease: Duration,
) -> Result<Option<Timestamp>, DbError> {
    let renewed = db.renew(&[(run, epoch)], lease).await?;
    let stop_at = renewed.into_iter().find(|it| it.0 == run).map(|it| it.1);
    stop_at.ok_or(DbError::Fenced { run, epoch })
}

pub(crate) fn taking(worker: &str, lease: Duration) -> LeaseRequest<'_> {
    LeaseRequest {
        worker,
        lease,
        at: at(2),
        runs_max: 1,
        host_max: 1000,
        runs_reserved: 0,
        host_reserved: 0,
        with_expired: true,
        oldest_lease: None,
    }
}

/// Applies one test.
pub(crate) async fn apply(db: &Db, test: NewTest) -> db::AppliedDocument {
    let applied = db.apply_tests(&[test]).await.expect("applied");
    assert_eq!(applied.len(), 1, "one for each");
    applied[0]
}

pub(crate) async fn raw(connect: &Connect) -> PgConnection {
    let options = PgConnectOptions::new_without_pgpass()
        .host(&connect.host)
        .port(connect.port)
        .username(&connect.user)
        .password(&connect.password)
        .database(&connect.dbname);
    PgConnection::connect_with(&options).await.expect("connected")
}

pub(crate) fn project() -> Project {
    Project::default()
}

pub(crate) fn test_id() -> TestId {
    "shop".parse().expect("a test id")
}

pub(crate) fn new_test(document: &str) -> NewTest {
    NewTest {
        project: project(),
        id: test_id(),
        name: "Shop".to_owned(),
        file: "tests/shop.yaml".to_owned(),
        document: document.to_owned(),
        host: None,
    }
}

pub(crate) fn new_run(number: u32) -> NewRun {
    NewRun {
        id: run_id(number),
        project: project(),
        test: test_id(),
        accepted_at: at(1),
        traceparent: Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".to_owned()),
        vars: RunVars::default(),
        timeout: None,
        key: None,
        starter: Starter::Token,
    }
}

pub(crate) fn run_id(number: u32) -> RunId {
    RunId::new(at(u64::from(number)), [7; 10])
}

/// A time with nanoseconds, which the database must preserve.
pub(crate) fn at(secs: u64) -> Timestamp {
    Timestamp::from_nanos(1_794_708_000_123_456_789 + secs * 1_000_000_000)
}

pub(crate) fn attempt() -> Attempt {
    Attempt {
        trace_id: TraceId::from_bytes([0xab; 16]).expect("not all zero"),
        span_id: SpanId::from_bytes([0xcd; 8]).expect("not all zero"),
        at: at(3),
    }
}

/// A response with characters that must all be read back.
pub(crate) fn answer() -> Answer {
    Answer::Response(Response {
        status: 201,
        headers: vec![("x".to_owned(), "a\"\u{7f}ü".to_owned()), ("x".to_owned(), String::new())],
        body: Body::Text("NUL \0, quote \", backslash \\, \u{1f980}".into()),
        duration_ns: u64::MAX,
    })
}

pub(crate) fn outcome(run: RunId, verdict: Verdict) -> Outcome {
    Outcome {
        run_id: Some(run),
        test: "Shop".to_owned(),
        verdict,
        provisional: false,
        superseded: None,
        reasons: vec!["because".to_owned()],
        trace_id: Some(attempt().trace_id),
        request: None,
        answer: Some(answer()),
        settlement: None,
        diagnoses: Vec::new(),
        overtaken: None,
        earlier: Vec::new(),
        judgement: Judgement::bare(verdict),
        analysis: None,
        steps: Vec::new(),
    }
}

async fn admin(server: &Connect, statement: String) {
    let mut connection = raw(server).await;
    // The only part of the statement that is not a literal is a name that is generated below.
    sqlx::query(AssertSqlSafe(statement)).execute(&mut connection).await.expect("done");
}

/// Returns a name that no other test, and no other test run on the same server, has.
fn database_name() -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    format!("record_{}_{number}", std::process::id())
}

/// The server that the environment variables name.
#[expect(clippy::disallowed_methods, reason = "the harness is the main of these tests")]
fn server() -> Connect {
    let url = std::env::var("QUALITYTRACE_TEST_POSTGRES").expect(
        "run through `cargo xtask ci`, or `eval $(cargo xtask services env)` after `cargo xtask services up`",
    );
    let options: PgConnectOptions = url.parse().expect("`QUALITYTRACE_TEST_POSTGRES` is a URL");
    Connect {
        host: options.get_host().to_owned(),
        port: options.get_port(),
        user: options.get_username().to_owned(),
        // sqlx does not return the password of the URL.
        password: std::env::var("QUALITYTRACE_TEST_POSTGRES_PASSWORD").unwrap_or_default(),
        dbname: options.get_database().unwrap_or("postgres").to_owned(),
        pool_max: 8,
        acquire_timeout: Duration::from_secs(30),
        trace_bytes_max: TRACE_BYTES_MAX,
        ..Connect::default()
    }
}
