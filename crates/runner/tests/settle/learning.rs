//! What a run learns, and how it uses the learned profile.

use model::{LearnedProfile, LearnedService};

use crate::{
    FLUSH, NOTHING, learned,
    stage::{Stage, shown},
};

#[tokio::test(start_paused = true)]
async fn what_was_learned_shortens_the_wait() {
    let delays = |delays_ns: &[u64]| LearnedService {
        runs: delays_ns.len() as u32,
        delays_ns: delays_ns.iter().map(|ms| ms * 1_000_000).collect(),
        ..LearnedService::default()
    };
    let leaves =
        |runs| LearnedService { leaves: [("b".to_owned(), runs)].into(), ..delays(&[10, 10, 10]) };
    let instrumented =
        || LearnedService { instrumented: ["b".to_owned()].into(), ..delays(&[10, 10, 10]) };
    let absent = |absent_parents, present_parents| LearnedService {
        absent_parents,
        present_parents,
        ..delays(&[10, 10, 10])
    };
    let unannounced =
        || LearnedService { unannounced: ["s".to_owned()].into(), ..delays(&[10, 10, 10]) };
    let served = "10 a server 1<t 0..5";
    let called = "10 a server 1<t 0..9\n 10 a client 2<1 1..8 to=b";
    let failed = "10 a server 1<t 0..9\n 10 a client 2<1 1..8 to=b error";
    let orphaned = "10 a server 2<1 1..5";
    let cases = [
        ("a delay", delays(&[10, 100, 20]), served, "whole 160"),
        ("a delay of too few runs", delays(&[10, 20]), served, "whole 6010"),
        ("a leaf", leaves(3), called, "whole 30"),
        ("a leaf of too few runs", leaves(2), called, "whole 6010"),
        ("a peer that sends spans", instrumented(), called, "calls 2 20000 inconclusive"),
        ("the same after an error", instrumented(), failed, "whole 6010"),
        ("absent parents", absent(3, 0), orphaned, "whole 30"),
        ("absent parents of too few runs", absent(2, 0), orphaned, "orphans 2 20000 inconclusive"),
        ("absent parents that came once", absent(3, 1), orphaned, "whole 6010"),
        ("absent by accident", absent(3, 30), orphaned, "orphans 2 20000 inconclusive"),
        ("a delay that leaves no time", delays(&[40_000, 5, 5]), served, "whole 10010"),
        ("a service that nothing announces", unannounced(), served, "whole 6010"),
        (
            "and that comes",
            unannounced(),
            "10 a server 1<t 0..5\n 5000 s server 2<1 1..4",
            "whole 12496",
        ),
    ];
    for (name, known, lines, expected) in cases {
        let mut stage = Stage::new(lines).test(NOTHING);
        stage.learned = learned("a", known);
        assert_eq!(stage.outcome().await, expected, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_the_trigger_calls_is_a_peer_like_others() {
    // Behind a gateway is a quick service, in front of it a slow one: only the trigger announces the slow one.
    let lines = "10 s server 3<99 1..2\n 1500 a server 1<t 0..9";
    let quick = LearnedService {
        runs: 3,
        delays_ns: vec![8_000_000],
        absent_parents: 3,
        ..LearnedService::default()
    };
    let peers = |leaves: &[(&str, u32)], instrumented: &[&str]| LearnedService {
        leaves: leaves.iter().map(|(peer, runs)| ((*peer).to_owned(), *runs)).collect(),
        instrumented: instrumented.iter().map(|peer| (*peer).to_owned()).collect(),
        ..LearnedService::default()
    };
    let cases = [
        ("it sends spans", peers(&[], &["shop"]), lines, "whole 7500"),
        (
            "it does, and they do not come",
            peers(&[], &["shop"]),
            "10 s server 3<99 1..2",
            "calls 7 20000 inconclusive",
        ),
        ("nothing is known", LearnedService::default(), "10 s server 3<99 1..2", "whole 6000"),
        ("it sends none", peers(&[("shop", 3)], &[]), "10 s server 3<99 1..2", "whole 30"),
    ];
    for (name, trigger, lines, expected) in cases {
        let mut stage = Stage::new(lines).test(NOTHING);
        let services = [("s".to_owned(), quick.clone()), ("qualitytrace".to_owned(), trigger)];
        stage.learned = LearnedProfile { services: services.into(), ..LearnedProfile::default() };
        assert_eq!(stage.outcome().await, expected, "{name}");
    }
}

/// Formats what a run of these lines has shown.
async fn seen(lines: &str, test: &str) -> String {
    let finished = Stage::new(lines).test(test).run().await;
    let mut all = vec![shown(&finished)];
    // All of them show that the trigger calls a service that sends spans.
    for (name, service) in finished.seen.services.iter().filter(|(name, _)| *name != "qualitytrace")
    {
        let mut words = vec![name.clone()];
        words.extend(service.delays_ns.iter().map(|delay| format!("{}ms", delay / 1_000_000)));
        words.extend(service.leaves.keys().map(|peer| format!("leaf:{peer}")));
        words.extend(service.instrumented.iter().map(|peer| format!("calls:{peer}")));
        words.extend((service.absent_parents > 0).then(|| "absent".to_owned()));
        words.extend((service.present_parents > 0).then(|| "present".to_owned()));
        words.extend(service.unannounced.iter().map(|other| format!("with:{other}")));
        all.push(words.join(" "));
    }
    all.join("; ")
}

#[tokio::test(start_paused = true)]
async fn a_run_tells_what_it_saw() {
    // (arrivals, learned profile)
    let cases = [
        ("10 a server 1<t 0..5", "whole 110; a 5ms"),
        ("10 a! server 1<t 0..5", "whole 110"),
        (
            "10 a server 1<t 0..9\n 10 a client 2<1 1..8 to=b\n 20 b server 3<2 2..7",
            "whole 120; a 2ms calls:b; b 14ms present",
        ),
        ("10 a server 1<t 0..9\n 10 a client 2<1 1..8 to=b", "whole 6010; a 2ms leaf:b"),
        ("10 a server 1<t 0..9\n 10 a client 2<1 1..8 to=b error", "whole 110; a 2ms"),
        (
            "10 a server 1<t 0..9\n 20 s server 2<9 2..3",
            "orphans 2 10000 inconclusive; a 1ms with:s; s 19ms absent",
        ),
        // The context was passed on by hand: no call announces the called service.
        ("10 a server 1<t 0..9\n 20 s server 2<1 2..3", "whole 120; a 1ms with:s; s 19ms present"),
        // One message, two consumers: the first does not announce the second.
        (
            "10 a server 1<t 0..9
             10 a producer 2<1 1..2 topic=x
             20 s consumer 3<2 2..3
             30 u consumer 4<2 2..3",
            "whole 130; a 8ms calls:x with:s with:u; s 18ms present; u 28ms present",
        ),
        // A service behind a component that sends no spans and passes the context on.
        ("10 a server 1<t 0..9\n 20 s server 2<t 2..3", "whole 120; a 1ms with:s; s 19ms with:a"),
    ];
    for (lines, expected) in cases {
        assert_eq!(seen(lines, FLUSH).await, expected, "{lines}");
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_that_shortens_a_wait_is_learned_from_a_run_that_ended_early() {
    let mut stage = Stage::new("10 a server 1<t 0..9\n 10 a client 2<1 1..8 to=b");
    stage.test = "trace: ['some span[service.name=\"a\"]']".to_owned();
    let finished = stage.run().await;
    assert_eq!(shown(&finished), "NotWaited 10");
    let service = &finished.seen.services["a"];
    // The observed delay may be too short, but not too long.
    assert_eq!((service.runs, service.delays_ns.len()), (0, 1));
    assert!(service.leaves.is_empty() && service.absent_parents == 0, "{service:?}");
}

#[tokio::test(start_paused = true)]
async fn a_system_becomes_known_in_a_few_runs() {
    // A gateway that sends no spans and generates its own ids, in front of a service with slow batches.
    let lines = "10 a server 1<t 0..9
                 10 a client 2<1 1..8 at=gateway
                 2000 s server 3<99 2..7";
    let mut known = LearnedProfile::default();
    let mut outcomes = Vec::new();
    for _ in 0..8 {
        let mut stage = Stage::new(lines).test(NOTHING);
        stage.learned = known.clone();
        let finished = stage.run().await;
        known.observe(&finished.seen);
        outcomes.push(shown(&finished));
    }
    let unknown = "orphans 3 20000 inconclusive";
    // Nothing announces the service behind the gateway, and yet the run waits for it, since it appeared in earlier runs.
    let (expected, known) = ("whole 6010", "whole 4993");
    assert_eq!(outcomes, [unknown, unknown, unknown, expected, expected, expected, known, known]);
}
