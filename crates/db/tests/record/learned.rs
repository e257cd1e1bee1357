//! Learned profiles, stored for later runs.

use std::time::Duration;

use db::DbError;
use model::{LearnedProfile, LearnedService, LearnedTest};
use tokio::task::JoinSet;

use crate::scratch::{self, LEASE, project};

fn seen(service: &str, delay_ns: u64) -> LearnedProfile {
    let shown = LearnedService { runs: 1, delays_ns: vec![delay_ns], ..LearnedService::default() };
    LearnedProfile { services: [(service.to_owned(), shown)].into(), ..LearnedProfile::default() }
}

fn gap(test: &str, millis: u64) -> LearnedProfile {
    let shown = LearnedTest::of_run(Duration::from_millis(millis), true);
    LearnedProfile { tests: [(test.to_owned(), shown)].into(), ..LearnedProfile::default() }
}

#[test]
fn a_run_is_given_the_gaps_of_its_own_test() {
    scratch::with(|scratch| async move {
        scratch.apply("a").await;
        let mut learning = JoinSet::new();
        for number in 0..10 {
            let db = scratch.db.clone();
            let both = [gap("shop", 100 + number), gap("other", 7)];
            learning.spawn(async move { db.learn(&project(), &both).await });
        }
        let learned: Result<Vec<()>, DbError> = learning.join_all().await.into_iter().collect();
        learned.expect("learned");
        let learned = scratch.db.learned(&project()).await.expect("asked");
        assert_eq!(learned.tests["other"].gaps_ms, [7; 10]);
        let shop = &learned.tests["shop"];
        assert_eq!((shop.runs, shop.longest_gap()), (10, Duration::from_millis(109)));
        let elsewhere = "other".parse().expect("a project");
        scratch.db.learn(&elsewhere, &[gap("shop", 9_000)]).await.expect("learned");

        scratch.accept(1).await;
        let known = scratch.take(LEASE).await.learned;
        assert_eq!(known.tests, [("shop".to_owned(), shop.clone())].into());

        // An unreadable profile is learned again, and does not prevent the lease of a run.
        let damage = "update learned_tests set learned = '{\"of\": \"a later version\"}'";
        sqlx::query(damage).execute(&mut scratch.raw().await).await.expect("damaged");
        scratch.accept(2).await;
        assert_eq!(scratch.take(LEASE).await.learned, LearnedProfile::default());
        scratch.db.learn(&project(), &[gap("shop", 6)]).await.expect("learned");
        scratch.accept(3).await;
        assert_eq!(scratch.take(LEASE).await.learned, gap("shop", 6));
    });
}

#[test]
fn what_is_learned_at_once_is_all_kept() {
    scratch::with(|scratch| async move {
        let mut learning = JoinSet::new();
        for number in 0..10 {
            let db = scratch.db.clone();
            let both = [seen("orders", number), seen(&format!("service-{number}"), 7)];
            learning.spawn(async move { db.learn(&project(), &both).await });
        }
        let learned: Result<Vec<()>, DbError> = learning.join_all().await.into_iter().collect();
        learned.expect("learned");
        let learned = scratch.db.learned(&project()).await.expect("asked");
        assert_eq!(learned.services.len(), 11);
        let orders = &learned.services["orders"];
        assert_eq!((orders.runs, orders.delays_ns.len()), (10, 10));
        let other = scratch.db.learned(&"other".parse().expect("a project")).await;
        assert_eq!(other.expect("asked"), LearnedProfile::default(), "each project has its own");
    });
}

/// A delay that was seen through a trace store is none of pushed spans, nor of another store.
#[test]
fn what_is_learned_through_a_store_stays_apart() {
    scratch::with(|scratch| async move {
        let through = |store: &str, delay_ns| seen("orders", delay_ns).seen_through(&[store]);
        let all = [seen("orders", 5), through("prod", 7), through("prod", 8), through("old", 9)];
        scratch.db.learn(&project(), &all).await.expect("learned");
        scratch.db.learn(&project(), &[seen("orders", 6)]).await.expect("learned");
        let learned = scratch.db.learned(&project()).await.expect("asked");
        assert_eq!(learned.services["orders"].delays_ns, [5, 6]);
        let delays = |store: &str| learned.stores[store].services["orders"].delays_ns.clone();
        assert_eq!((delays("prod"), delays("old")), (vec![7, 8], vec![9]));
        let stores = scratch.db.learned_stores(&project()).await.expect("asked");
        assert_eq!(stores, learned.stores);
        let other = scratch.db.learned_stores(&"other".parse().expect("a project")).await;
        assert!(other.expect("asked").is_empty(), "each project has its own");
    });
}

#[test]
fn a_run_is_given_what_was_learned() {
    scratch::with(|scratch| async move {
        scratch.apply("a").await;
        scratch.accept(1).await;
        scratch.accept(2).await;
        assert_eq!(scratch.take(LEASE).await.learned, LearnedProfile::default());
        scratch.db.learn(&project(), &[seen("a\"b", 5)]).await.expect("learned");
        assert_eq!(scratch.take(LEASE).await.learned, seen("a\"b", 5));

        // An unreadable profile is learned again, and does not prevent the lease of a run.
        let damage = "update learned set learned = '{\"of\": \"a later version\"}'";
        sqlx::query(damage).execute(&mut scratch.raw().await).await.expect("damaged");
        scratch.accept(3).await;
        assert_eq!(scratch.take(LEASE).await.learned, LearnedProfile::default());
        scratch.db.learn(&project(), &[seen("a\"b", 6)]).await.expect("learned");
        assert_eq!(scratch.db.learned(&project()).await.expect("asked"), seen("a\"b", 6));
    });
}
