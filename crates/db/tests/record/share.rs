//! The distribution of work: between projects, and against one host.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use db::{Db, LeaseRequest, NewRun, NewTest, RunCompletion, RunLease};
use model::{Project, RunId, Verdict};
use sqlx::{PgConnection, Row};
use tokio::{task::JoinSet, time::Instant};

use crate::scratch::{self, LEASE, NO_LEASE, Scratch, new_run, new_test, outcome, run_id};

fn named(project: &str) -> Project {
    project.parse().expect("a project")
}

/// Applies a test of the project against the host, and queues a run of it for each number.
async fn queue(scratch: &Scratch, project: &str, host: &str, numbers: std::ops::Range<u32>) {
    let id = format!("on-{}", host.replace([':', '.'], "-"));
    let test = NewTest {
        project: named(project),
        id: id.parse().expect("a test id"),
        host: (!host.is_empty()).then(|| host.to_owned()),
        ..new_test("a")
    };
    scratch::apply(&scratch.db, test.clone()).await;
    for number in numbers {
        let run = NewRun { project: named(project), test: test.id.clone(), ..new_run(number) };
        scratch.db.create_run(&run).await.expect("accepted");
    }
}

fn by_project(taken: &[RunLease]) -> BTreeMap<String, usize> {
    let mut count = BTreeMap::new();
    for run in taken {
        *count.entry(run.project.to_string()).or_default() += 1;
    }
    count
}

async fn end(scratch: &Scratch, run: &RunLease) {
    let outcome = outcome(run.run_id, Verdict::Passed);
    let finished = RunCompletion { outcome: &outcome, events: &[], trace: None };
    scratch.db.finish(run.run_id, run.epoch, &finished).await.expect("owned");
}

#[test]
fn a_project_with_much_to_do_does_not_keep_others_waiting() {
    scratch::with(|scratch| async move {
        queue(&scratch, "busy", "", 0..100).await;
        queue(&scratch, "late", "", 100..103).await;
        queue(&scratch, "later", "", 103..104).await;
        let count = |busy, late, later| {
            let all = [("busy", busy), ("late", late), ("later", later)];
            let all = all.into_iter().filter(|(_, count)| *count > 0);
            all.map(|(name, count)| (name.to_owned(), count)).collect::<BTreeMap<_, usize>>()
        };
        let first = scratch.take_many(3, 10).await.runs;
        assert_eq!(by_project(&first), count(1, 1, 1), "one each");
        assert_eq!(first[0].run_id, run_id(0), "the oldest of each");
        let second = scratch.take_many(5, 10).await.runs;
        assert_eq!(
            by_project(&second),
            count(3, 2, 0),
            "as equal as can be, and no place stays empty"
        );

        // The project with the fewest active runs goes first, also with one run at a time.
        for run in first.iter().chain(&second).filter(|run| run.project == named("busy")) {
            end(&scratch, run).await;
        }
        queue(&scratch, "late", "", 104..110).await;
        let third = scratch.take_many(4, 10).await.runs;
        assert_eq!(
            by_project(&third),
            count(4, 0, 0),
            "three of `late` are in flight, none of `busy`"
        );
        assert_eq!(scratch.take_many(1, 10).await.runs[0].project, named("late"));
    });
}

#[test]
fn a_host_gets_no_more_runs_than_its_bound_and_holds_up_nobody_else() {
    scratch::with(|scratch| async move {
        queue(&scratch, "one", "slow:80", 0..20).await;
        queue(&scratch, "two", "slow:80", 20..40).await;
        queue(&scratch, "two", "fast:80", 40..43).await;
        queue(&scratch, "one", "", 43..60).await;
        let hosts = |taken: &[RunLease]| {
            let mut count = BTreeMap::new();
            for run in taken {
                *count.entry(run.test.id.as_str().to_owned()).or_insert(0) += 1;
            }
            count
        };
        let taken = scratch.take_many(100, 4).await.runs;
        let expected = [("on-", 17), ("on-fast-80", 3), ("on-slow-80", 4)];
        assert_eq!(hosts(&taken), expected.map(|(id, count)| (id.to_owned(), count)).into());
        let on_slow = taken.iter().filter(|run| run.test.id.as_str() == "on-slow-80");
        let on_slow: Vec<_> = on_slow.cloned().collect();
        assert_eq!(by_project(&on_slow).len(), 2, "both projects have a share of it: {on_slow:?}");
        assert!(scratch.take_many(100, 4).await.runs.is_empty(), "the host is busy");
        end(&scratch, &on_slow[0]).await;
        assert_eq!(scratch.take_many(100, 4).await.runs.len(), 1, "a place is free");
        assert_eq!(scratch.take_many(100, 5).await.runs.len(), 1, "a bound may be raised");
    });
}

#[test]
fn runs_that_hang_leave_slots_and_hosts_to_other_projects() {
    // The bound of the worker, or that of a host.
    for host in ["", "slow:80"] {
        scratch::with(|scratch| async move {
            queue(&scratch, "hog", host, 0..40).await;
            let take = async |slots: usize| {
                let (runs_max, host_max) = if host.is_empty() { (slots, 1000) } else { (100, 16) };
                let (runs_reserved, host_reserved) = if host.is_empty() { (2, 0) } else { (0, 2) };
                let rest = scratch::taking("w", LEASE);
                let taking =
                    LeaseRequest { runs_max, host_max, runs_reserved, host_reserved, ..rest };
                scratch.lease(&taking).await.runs
            };
            assert_eq!(take(16).await.len(), 14, "{host}: all but those that are reserved");
            assert!(take(2).await.is_empty(), "{host}: who has many gets none of these");
            queue(&scratch, "late", host, 40..45).await;
            let taken = take(2).await;
            assert_eq!(by_project(&taken), [("late".to_owned(), 2)].into(), "{host}");
            end(&scratch, &taken[0]).await;
            assert_eq!(by_project(&take(1).await), [("late".to_owned(), 1)].into(), "{host}");
        });
    }
}

#[test]
fn a_run_of_a_dead_worker_comes_first_and_counts_once() {
    scratch::with(|scratch| async move {
        queue(&scratch, "one", "slow:80", 0..3).await;
        let dead = LeaseRequest { runs_max: 1, host_max: 1, ..scratch::taking("w", NO_LEASE) };
        let dead = scratch.lease(&dead).await.runs.remove(0);
        let again = scratch.take_many(5, 1).await.runs;
        let first: Vec<_> = again.iter().map(|run| (run.run_id, run.epoch)).collect();
        assert_eq!(first[0], (dead.run_id, 2), "it waited longest");
        assert!(scratch.take_many(5, 1).await.runs.is_empty(), "its host has one run in flight");
    });
}

#[test]
fn however_many_take_at_once_the_bound_holds_and_each_run_has_one_owner() {
    const HOST_MAX: usize = 3;
    const RUNS: u32 = 30;
    const ALL_MAX: Duration = Duration::from_secs(40);
    scratch::with(|scratch| async move {
        queue(&scratch, "one", "slow:80", 0..20).await;
        queue(&scratch, "two", "slow:80", 20..RUNS).await;
        let mut workers = JoinSet::new();
        let open = Arc::new(AtomicUsize::new(RUNS as usize));
        for number in 0..8 {
            let scratch = Scratch { db: scratch.db.clone(), connect: scratch.connect.clone() };
            let open = Arc::clone(&open);
            workers.spawn(async move {
                let name = format!("w{number}");
                let taking = LeaseRequest {
                    runs_max: 5,
                    host_max: HOST_MAX,
                    ..scratch::taking(&name, LEASE)
                };
                let (began, mut ended) = (Instant::now(), Vec::new());
                while open.load(Ordering::SeqCst) > 0 && began.elapsed() < ALL_MAX {
                    let leases = scratch.db.lease_runs(&taking).await.expect("leased");
                    for run in leases.unwrap_or_default().runs {
                        let running = "select count(*) from open_runs where epoch > 0";
                        let running =
                            sqlx::query(running).fetch_one(&mut scratch.raw().await).await;
                        let running: i64 = running.expect("counted").get(0);
                        assert!(running as usize <= HOST_MAX, "{running} runs at once");
                        end(&scratch, &run).await;
                        ended.push(run.run_id);
                        open.fetch_sub(1, Ordering::SeqCst);
                    }
                }
                ended
            });
        }
        let ended: Vec<RunId> = workers.join_all().await.concat();
        assert_eq!(ended.len(), ended.iter().collect::<BTreeSet<_>>().len(), "each once");
        assert_eq!(ended.len(), RUNS as usize, "and all of them");
    });
}

#[test]
fn of_many_projects_each_is_leased() {
    const PROJECTS: u32 = 30;
    scratch::with(|scratch| async move {
        // The first project has much to do; each of the others has one run.
        queue(&scratch, "busy", "slow:80", 0..200).await;
        for number in 1..PROJECTS {
            queue(&scratch, &format!("team-{number}"), "slow:80", 200 + number..201 + number).await;
        }
        let mut leased = BTreeMap::new();
        // A lease reads eight projects from a random one on: that 200 leases miss one is less likely than one in a million.
        for _ in 0..200 {
            let leases = scratch.take_many(1, 1000).await;
            for (project, runs) in by_project(&leases.runs) {
                *leased.entry(project).or_insert(0) += runs;
            }
        }
        assert_eq!(leased.len(), PROJECTS as usize, "{leased:?}");
    });
}

#[test]
fn a_long_queue_for_a_full_host_hides_no_other_host() {
    scratch::with(|scratch| async move {
        // More runs than a lease reads of a project's oldest.
        queue(&scratch, "one", "full:80", 0..300).await;
        queue(&scratch, "one", "free:80", 300..302).await;
        queue(&scratch, "one", "", 302..303).await;
        assert_eq!(scratch.take_many(2, 2).await.runs.len(), 2);
        let taken = scratch.take_many(5, 2).await.runs;
        let mut hosts: Vec<_> = taken.iter().map(|run| run.test.id.as_str()).collect();
        hosts.sort_unstable();
        assert_eq!(hosts, ["on-", "on-free-80", "on-free-80"]);
    });
}

#[test]
fn a_host_whose_last_slots_are_reserved_for_others_hides_no_other_host() {
    scratch::with(|scratch| async move {
        queue(&scratch, "one", "slow:80", 0..300).await;
        queue(&scratch, "one", "free:80", 300..302).await;
        let request = LeaseRequest {
            runs_max: 20,
            host_max: 8,
            host_reserved: 2,
            ..scratch::taking("w", LEASE)
        };
        let first = scratch.lease(&request).await;
        assert_eq!(first.runs.len(), 6, "all but those that are reserved");
        assert!(first.is_partial, "there may be more behind those that have no room");
        let hosts = |leases: &db::RunLeases| {
            let hosts = leases.runs.iter().map(|run| run.test.id.as_str().to_owned());
            hosts.collect::<Vec<_>>()
        };
        let second = scratch.lease(&request).await;
        assert_eq!(hosts(&second), ["on-free-80", "on-free-80"]);
        assert!(!scratch.lease(&request).await.is_partial, "the rest has to wait");
        queue(&scratch, "two", "slow:80", 302..305).await;
        let third = scratch.lease(&request).await;
        assert_eq!(by_project(&third.runs), [("two".to_owned(), 2)].into(), "they were for these");
    });
}

#[test]
fn while_another_worker_leases_nothing_is_leased_and_nothing_waits() {
    scratch::with(|scratch| async move {
        queue(&scratch, "one", "", 0..3).await;
        let mut other = scratch.raw().await;
        let turn = "begin; select pg_advisory_xact_lock(7810779531)";
        sqlx::raw_sql(turn).execute(&mut other).await.expect("it has the turn");
        let request = scratch::taking("w", LEASE);
        assert_eq!(scratch.db.lease_runs(&request).await.expect("answered"), None);
        sqlx::raw_sql("commit").execute(&mut other).await.expect("the turn is over");
        assert_eq!(scratch.lease(&request).await.runs.len(), 1);
    });
}

#[test]
fn an_expired_lease_is_found_by_whoever_looks_for_it() {
    scratch::with(|scratch| async move {
        queue(&scratch, "one", "", 0..1).await;
        scratch.take(NO_LEASE).await;
        let request = scratch::taking("w", LEASE);
        let hinted = LeaseRequest { with_expired: false, ..request };
        assert_eq!(scratch.lease(&hinted).await.runs, []);
        let found = scratch.lease(&request).await;
        assert_eq!(found.runs[0].epoch, 2);
        // The number of the oldest lease spares dead rows, and hides no run.
        let next = LeaseRequest { oldest_lease: found.oldest_lease, ..request };
        scratch.db.release(&[(found.runs[0].run_id, 2)]).await.expect("released");
        assert_eq!(scratch.lease(&next).await.runs[0].epoch, 3);
    });
}

/// With a long history and a long queue, a lease reads open runs only, by their indexes.
#[test]
fn taking_looks_at_open_runs_only() {
    scratch::with(|scratch| async move {
        queue(&scratch, "one", "slow:80", 0..1).await;
        let mut raw = scratch.raw().await;
        let history = "insert into runs (id, project, test_id, test_version, accepted_at_ns, epoch, verdict, outcome, events_last)
             select gen_random_uuid(), 'one', 'on-slow-80', 1, 1, 1, 'passed', '{}', 1 from generate_series(1, 20000)";
        let queued = "with run as (
                 insert into runs (id, project, test_id, test_version, accepted_at_ns, host)
                 select gen_random_uuid(), 'one', 'on-slow-80', 1, 1, 'slow:80' from generate_series(1, 2000)
                 returning id, project, host, accepted_at_ns
             )
             insert into open_runs (id, project, host, accepted_at_ns, events_last) select *, 1 from run";
        for statement in [history, queued, "vacuum analyze runs", "vacuum analyze open_runs"] {
            sqlx::query(statement).execute(&mut raw).await.expect("done");
        }
        // A connection reports its statistics when it closes, and the connection that filled the tables has scanned them.
        scratch.db.close().await;
        let scratch = Scratch {
            db: Db::connect(&scratch.connect).await.expect("connected"),
            connect: scratch.connect,
        };
        let before = scans(&mut raw).await;
        for _ in 0..10 {
            assert_eq!(scratch.take_many(3, 1000).await.runs.len(), 3);
        }
        scratch.db.close().await;
        assert_eq!(scans(&mut raw).await, before, "no sequential scan of runs");
        let used = "select coalesce(sum(idx_tup_read), 0)::bigint from pg_stat_user_indexes
                    where relname in ('runs_default', 'open_runs')";
        let read: i64 = sqlx::query_scalar(used).fetch_one(&mut raw).await.expect("counted");
        assert!(read < 10 * 300, "{read} index entries for ten takings of three runs");
    });
}

/// Returns the number of sequential scans of runs so far.
async fn scans(raw: &mut PgConnection) -> i64 {
    let scans = "select sum(seq_scan)::bigint from pg_stat_user_tables where relname like 'runs%' or relname = 'open_runs'";
    sqlx::query("select pg_stat_force_next_flush()").execute(&mut *raw).await.expect("told");
    sqlx::query("select pg_stat_clear_snapshot()").execute(&mut *raw).await.expect("forgotten");
    sqlx::query_scalar(scans).fetch_one(raw).await.expect("counted")
}
