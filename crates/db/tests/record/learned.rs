//! What runs have shown, kept for the next.

use db::DbError;
use model::{Learned, LearnedService};
use tokio::task::JoinSet;

use crate::scratch::{self, LEASE, project};

fn seen(service: &str, delay_ns: u64) -> Learned {
    let shown = LearnedService { runs: 1, delays_ns: vec![delay_ns], ..LearnedService::default() };
    Learned { services: [(service.to_owned(), shown)].into() }
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
        assert_eq!(other.expect("asked"), Learned::default(), "each project has its own");
    });
}

#[test]
fn a_run_is_given_what_was_learned() {
    scratch::with(|scratch| async move {
        scratch.apply("a").await;
        scratch.accept(1).await;
        scratch.accept(2).await;
        assert_eq!(scratch.take(LEASE).await.learned, Learned::default());
        scratch.db.learn(&project(), &[seen("a\"b", 5)]).await.expect("learned");
        assert_eq!(scratch.take(LEASE).await.learned, seen("a\"b", 5));

        // What cannot be read is learned again, and keeps no run from being taken.
        let damage = "update learned set learned = '{\"of\": \"a later version\"}'";
        sqlx::query(damage).execute(&mut scratch.raw().await).await.expect("damaged");
        scratch.accept(3).await;
        assert_eq!(scratch.take(LEASE).await.learned, Learned::default());
        scratch.db.learn(&project(), &[seen("a\"b", 6)]).await.expect("learned");
        assert_eq!(scratch.db.learned(&project()).await.expect("asked"), seen("a\"b", 6));
    });
}
