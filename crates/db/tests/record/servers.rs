//! The rows of servers: which are present, which were, and which may register.

use std::time::Duration;

use db::{BusMember, Db, Entry, KeyConflict, NewServer, OtherServer, Side};

use model::BusSlot;

use crate::scratch;

const COUNTS_FOR: Duration = Duration::from_secs(600);
/// A row that has expired when it is written.
const OVER: Duration = Duration::ZERO;

fn server(number: u8, minting: &str, known: &[&str]) -> NewServer {
    NewServer {
        id: [number; 16],
        process: [number + 100; 16],
        name: format!("server-{number}"),
        roles: vec!["api".to_owned(), "ingest".to_owned(), "worker".to_owned()],
        version: "0.0.0".to_owned(),
        bus_version: 1,
        minting_key: minting.to_owned(),
        known_keys: known.iter().map(|key| (*key).to_owned()).collect(),
        bus: None,
    }
}

async fn enter(db: &Db, server: &NewServer) {
    let entry = db.enter_server(server, COUNTS_FOR).await.expect("asked");
    assert_eq!(entry, Entry::Entered(None));
}

/// Returns the other servers that count, and those that did.
async fn others(db: &Db, of: u8) -> (Vec<String>, Vec<String>) {
    let others = db.other_servers([of + 100; 16], None, 10).await.expect("asked");
    let (counting, gone): (Vec<_>, Vec<_>) =
        others.into_iter().partition(|it| it.gone_for.is_zero());
    let names = |all: Vec<OtherServer>| all.into_iter().map(|it| it.name).collect();
    (names(counting), names(gone))
}

fn named(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn a_row_counts_until_its_servers_end_and_stays_after_it() {
    scratch::with(|scratch| async move {
        let db = &scratch.db;
        let (one, two) = (server(1, "a", &["a"]), server(2, "a", &["a"]));
        enter(db, &one).await;
        assert_eq!(others(db, 1).await, (vec![], vec![]), "alone");
        enter(db, &two).await;
        assert_eq!(others(db, 1).await, (named(&["server-2"]), vec![]));
        assert_eq!(others(db, 2).await, (named(&["server-1"]), vec![]));

        db.leave_server(two.process).await.expect("left");
        assert_eq!(others(db, 1).await, (vec![], named(&["server-2"])), "who has left is seen");
        assert!(
            !db.heartbeat(two.id, two.process, None, COUNTS_FOR).await.expect("asked"),
            "for good"
        );

        // A server that does not receive spans cannot lose any.
        let roles = vec!["api".to_owned()];
        enter(db, &NewServer { roles, ..server(3, "a", &["a"]) }).await;
        assert_eq!(others(db, 1).await.0, Vec::<String>::new());
    });
}

#[test]
fn a_server_that_comes_back_has_the_row_that_it_had() {
    scratch::with(|scratch| async move {
        let db = &scratch.db;
        let killed = server(1, "a", &["a"]);
        enter(db, &killed).await;
        // It was killed, so its row still counts; the next process is not another server.
        let next = NewServer { process: [9; 16], ..killed.clone() };
        enter(db, &next).await;
        assert_eq!(db.other_servers(next.process, None, 10).await.expect("asked"), []);
        // Had it survived, beside a copy of its data directory, each would see the other at its next heartbeat.
        let seen = db.other_servers(killed.process, None, 10).await.expect("asked");
        assert_eq!(seen.len(), 1, "{seen:?}");
        assert!(!db.heartbeat(killed.id, killed.process, None, COUNTS_FOR).await.expect("asked"));
        enter(db, &NewServer { id: [8; 16], ..killed }).await;
        assert_eq!(db.other_servers(next.process, None, 10).await.expect("asked").len(), 1);
        assert!(db.heartbeat(next.id, next.process, None, COUNTS_FOR).await.expect("asked"));
    });
}

#[test]
fn a_row_that_was_not_renewed_is_over() {
    scratch::with(|scratch| async move {
        let db = &scratch.db;
        let (one, two) = (server(1, "a", &["a"]), server(2, "b", &["b"]));
        assert_eq!(db.enter_server(&one, OVER).await.expect("asked"), Entry::Entered(None));
        enter(db, &two).await;
        let seen = db.other_servers(two.process, None, 10).await.expect("asked");
        assert!(!seen[0].gone_for.is_zero(), "{seen:?}");
        assert!(!db.heartbeat(one.id, one.process, None, COUNTS_FOR).await.expect("asked"));
        // Meanwhile another server has registered, with other keys.
        let entry = db.enter_server(&one, COUNTS_FOR).await.expect("asked");
        assert!(matches!(entry, Entry::KeyConflict(_)), "{entry:?}");

        // Long after any run that could need it, the row is deleted.
        let long_ago = "update servers set counts_until = counts_until - interval '8 days'";
        sqlx::query(long_ago).execute(&mut scratch.raw().await).await.expect("aged");
        enter(db, &server(3, "b", &["b"])).await;
        assert_eq!(others(db, 3).await, (vec![], vec![]));
    });
}

#[test]
fn who_enters_has_keys_that_fit() {
    let conflict = |key: &str, unknown_to| {
        let server = "server-1".to_owned();
        Entry::KeyConflict(KeyConflict { server, key: key.to_owned(), unknown_to })
    };
    let cases = [
        (("a", &["a"][..]), ("a", &["a"][..]), Entry::Entered(None)),
        (("a", &["a"]), ("b", &["b"]), conflict("b", Side::Present)),
        (("a", &["a"]), ("b", &["b", "a"]), conflict("b", Side::Present)),
        (("a", &["a", "b"]), ("b", &["b"]), conflict("a", Side::Entering)),
        (("a", &["a", "b"]), ("a", &["a"]), Entry::Entered(None)),
        (("a", &["a", "b"]), ("b", &["b", "a"]), Entry::Entered(None)),
        (("b", &["b", "a"]), ("b", &["b"]), Entry::Entered(None)),
    ];
    scratch::with(|scratch| async move {
        let db = &scratch.db;
        for ((minting, known), (entering, knows), expected) in cases {
            sqlx::query("delete from servers")
                .execute(&mut scratch.raw().await)
                .await
                .expect("empty");
            enter(db, &server(1, minting, known)).await;
            let new = server(2, entering, knows);
            let found = db.enter_server(&new, COUNTS_FOR).await.expect("asked");
            assert_eq!(found, expected, "{new:?} beside {minting} {known:?}");
            let is_there = others(db, 1).await.0 == ["server-2"];
            assert_eq!(is_there, expected == Entry::Entered(None), "who does not fit has no row");
            db.leave_server([101; 16]).await.expect("left");
            enter(db, &new).await;
        }
    });
}

#[test]
fn servers_on_one_bus_have_different_slots() {
    scratch::with(|scratch| async move {
        let db = &scratch.db;
        let on = |number: u8, bus: &str, slot: Option<u16>| NewServer {
            bus: Some(BusMember {
                bus: Some(bus.to_owned()),
                is_shared_from_start: true,
                slot: slot.map(BusSlot),
                slots: Some((2, 32)),
            }),
            ..server(number, "a", &["a"])
        };
        let cases = [
            (on(1, "nats", None), Entry::Entered(Some(BusSlot(0)))),
            (on(2, "nats", None), Entry::Entered(Some(BusSlot(1)))),
            (on(4, "nats", None), Entry::NoSlot),
            (on(1, "other", Some(0)), Entry::Entered(Some(BusSlot(0)))),
            (on(5, "other", None), Entry::NoSlot),
        ];
        for (server, expected) in cases {
            let entry = db.enter_server(&server, COUNTS_FOR).await.expect("asked");
            assert_eq!(entry, expected, "{server:?}");
        }
        db.leave_server([101; 16]).await.expect("left");
        let entry = db.enter_server(&on(4, "nats", None), COUNTS_FOR).await.expect("asked");
        assert_eq!(entry, Entry::Entered(Some(BusSlot(0))), "of the server that left");
        let bus = async || {
            let others = db.other_servers([9; 16], None, 9).await.expect("asked").into_iter();
            others.filter(|it| it.name == "server-4").map(|it| it.bus).collect::<Vec<_>>()
        };
        assert_eq!(bus().await, [Some("nats".to_owned())]);
        let apart =
            db.other_servers([9; 16], Some(("nats", Duration::ZERO)), 9).await.expect("asked");
        assert!(apart.iter().all(|it| it.bus.as_deref() != Some("nats")), "{apart:?}");
        let for_long = Some(("nats", Duration::from_secs(60)));
        let others = db.other_servers([9; 16], for_long, 9).await.expect("asked");
        assert_eq!(others.len(), apart.len(), "a server that has just started has not paused");
        assert_ne!(apart, [], "the row of the server that left");
        db.heartbeat([4; 16], [104; 16], None, COUNTS_FOR).await.expect("asked");
        assert_eq!(bus().await, [None], "it shares nothing now");
        db.heartbeat([4; 16], [104; 16], Some("nats"), COUNTS_FOR).await.expect("asked");
        let apart = async |time| {
            let apart = db.other_servers([9; 16], Some(("nats", time)), 9).await.expect("asked");
            apart.into_iter().any(|it| it.name == "server-4")
        };
        assert!(!apart(Duration::ZERO).await, "it shares again");
        assert!(apart(Duration::from_secs(60)).await, "but not for a minute");
    });
}
