//! The lane when the destination is unreachable, overloaded, or misconfigured.

use std::time::Duration;

use super::{BOTH, Bench, after, count, exporter, now, numbered, otlp, sorted};
use crate::{
    plan::{Destination, Otlp, Transport},
    send::{
        answer::WhyKind,
        peer::{Peer, Reply, Seen},
    },
};

#[test]
fn nothing_is_lost_while_the_peer_is_away() {
    for transport in BOTH {
        let address = Peer::start().address();
        let mut bench = Bench::idle();
        let endpoint = format!("http://localhost:{}", address.port());
        bench.send_to(&exporter(Destination::Otlp(otlp(transport, &endpoint))));
        bench.spans(numbered("span", 2_000));
        bench.sender().drain(after(0.3));
        assert_eq!(bench.tally().delivered(), 0);
        assert_eq!(bench.tally().trouble().map(|why| why.kind), Some(WhyKind::Refused));
        assert!(count(&bench.tally().retries) > 1);
        let back = now();
        let peer = Peer::start_at(address);
        let first = peer.wait_for("the first", |seen| !seen.is_empty())[0].at;
        assert!(first - back < Duration::from_secs(2), "{:?}", first - back);
        bench.drain();
        assert_eq!(sorted(peer.accepted()), sorted(numbered("span", 2_000)));
        assert_eq!(bench.tally().trouble(), None);
        assert_eq!(bench.said(), [""; 0]);
        bench.end(2_000, 0);
    }
}

#[test]
fn a_peer_that_names_a_time_is_left_alone_until_then() {
    let seconds = |status, text: &str| {
        let headers = vec![("retry-after", text.to_owned())];
        Reply::Http { status, headers, body: "" }
    };
    let cases = [
        (Transport::Http, seconds(429, "1"), 1000),
        (Transport::Http, seconds(503, "1"), 1000),
        (Transport::Grpc, Reply::grpc_after(14, 600), 600),
        (Transport::Grpc, Reply::grpc_after(8, 600), 600),
    ];
    for (transport, reply, millis) in cases {
        let peer = Peer::start();
        peer.reply_next([reply]);
        let bench = Bench::to(transport, &peer);
        bench.spans(["one"]);
        let seen = peer.wait_for("the second attempt", |seen| seen.len() == 2);
        let waited = seen[1].at - seen[0].at;
        let asked = Duration::from_millis(millis);
        assert!(waited >= asked && waited < asked + Duration::from_secs(2), "{waited:?}");
        bench.drain();
        assert_eq!(count(&bench.tally().retries), 1);
        bench.end(1, 0);
    }
}

#[test]
fn one_request_at_a_time_asks_whether_the_peer_is_back() {
    let peer = Peer::start();
    peer.reply_always(Reply::status(503));
    let mut bench = Bench::idle();
    bench.spans(numbered("span", 512 * 8));
    let destination = Destination::Otlp(otlp(Transport::Http, &peer.endpoint()));
    bench.send_to(&exporter(destination));
    let seen = peer.wait_for("some attempts", |seen| seen.len() == 12);
    // Four requests were in progress when the first failed; from then on no other batch is started.
    let mut bodies: Vec<_> = seen.iter().map(|seen| &seen.body).collect();
    bodies.sort();
    bodies.dedup();
    assert!(bodies.len() <= 4, "{}", bodies.len());
    peer.reply_always(Reply::Accept);
    bench.drain();
    bench.end(512 * 8, 0);
}

#[test]
fn a_connection_that_is_reset_costs_nothing() {
    for transport in BOTH {
        for reply in [Reply::ResetInRequest, Reply::ResetBeforeAnswer, Reply::ResetInAnswer] {
            let peer = Peer::start();
            peer.reply_next([reply.clone(), Reply::Accept, reply]);
            let bench = Bench::to(transport, &peer);
            bench.spans(numbered("span", 1_500));
            bench.drain();
            let mut arrived = sorted(peer.accepted());
            arrived.dedup();
            assert_eq!(arrived, sorted(numbered("span", 1_500)));
            bench.end(1_500, 0);
        }
    }
}

#[test]
fn a_hung_peer_is_left_after_the_timeout() {
    for transport in BOTH {
        let peer = Peer::start();
        peer.reply_next([Reply::Hang, Reply::Hang]);
        let mut bench = Bench::idle();
        let timeout = Duration::from_millis(200);
        let otlp = Otlp { timeout, ..otlp(transport, &peer.endpoint()) };
        bench.spans(numbered("span", 10));
        let start = now();
        bench.send_to(&exporter(Destination::Otlp(otlp)));
        bench.drain();
        let seen = peer.seen();
        assert_eq!(seen.len(), 3);
        assert!(seen[1].at >= start + timeout && seen[2].at >= start + 2 * timeout);
        assert_eq!(peer.accepted(), numbered("span", 10));
        bench.end(10, 0);
    }
}

#[test]
fn an_operators_mistake_holds_and_is_trouble() {
    let cases = [
        (Transport::Http, Reply::status(401), "answered 401 Unauthorized; check the headers"),
        (Transport::Http, Reply::status(404), "answered 404 Not Found; check the endpoint"),
        (
            Transport::Grpc,
            Reply::grpc(16, "who?"),
            "answered UNAUTHENTICATED: who?; check the headers",
        ),
        (Transport::Grpc, Reply::grpc(12, ""), "answered UNIMPLEMENTED; check the endpoint"),
    ];
    for (transport, reply, said) in cases {
        let peer = Peer::start();
        peer.reply_always(reply);
        let bench = Bench::to(transport, &peer);
        bench.spans(numbered("span", 600));
        peer.wait_for("the first", |seen| !seen.is_empty());
        // A drain retries at once, and then with the pauses of any failure.
        bench.sender().drain(after(0.4));
        let count = peer.seen().len();
        assert!((2..20).contains(&count), "{count}");
        let trouble = bench.tally().trouble().expect("it is trouble").message;
        assert!(trouble.contains(said), "{trouble}");
        assert!(bench.tally().snapshot().iter().any(|signal| signal.unanswered_since.is_some()));
        assert_eq!(bench.lane.journal.counts().queued, 600);
        // After the recovery, everything is delivered.
        peer.reply_always(Reply::Accept);
        bench.drain();
        assert_eq!(bench.tally().trouble(), None);
        assert!(bench.tally().snapshot().iter().all(|signal| signal.unanswered_since.is_none()));
        assert_eq!(bench.said(), [""; 0]);
        bench.end(600, 0);
    }
}

#[test]
fn a_held_destination_is_left_alone() {
    let peer = Peer::start();
    peer.reply_always(Reply::status(401));
    let mut bench = Bench::idle();
    let one_by_one = Otlp { concurrency: 1, ..otlp(Transport::Http, &peer.endpoint()) };
    bench.spans(["one"]);
    bench.send_to(&exporter(Destination::Otlp(one_by_one)));
    peer.wait_for("the first", |seen| !seen.is_empty());
    bench.spans(["two"]);
    // Longer than many back-offs, shorter than the hold.
    assert_eq!(peer.wait_until(Duration::from_millis(500)).len(), 1);
    bench.end(0, 0);
}

#[test]
fn a_signal_that_is_refused_does_not_make_the_other_a_recovery() {
    let peer = Peer::start();
    let mut bench = Bench::idle();
    bench.spans(["span"]);
    bench.logs(["log"]);
    peer.refuse_path("/v1/logs", 404);
    bench.send_to(&exporter(Destination::Otlp(otlp(Transport::Http, &peer.endpoint()))));
    peer.wait_for("both", |seen| seen.len() >= 2);
    let seen = peer.wait_until(Duration::from_millis(300));
    assert_eq!(seen.len(), 2);
    assert!(bench.tally().snapshot().iter().any(|signal| signal.unanswered_since.is_some()));
    bench.end(0, 0);
}

#[test]
fn a_signal_that_is_refused_does_not_hold_the_other() {
    let peer = Peer::start();
    peer.refuse_path("/v1/logs", 404);
    let bench = Bench::to(Transport::Http, &peer);
    for number in 0..5 {
        bench.spans([format!("span{number}")]);
        bench.logs([format!("log{number}")]);
        peer.wait_for("the span", |seen| seen.iter().filter(|it| it.is_accepted).count() > number);
    }
    assert_eq!(peer.accepted(), numbered("span", 5));
    let trouble = bench.tally().trouble().expect("it is trouble").message;
    assert!(trouble.contains("/v1/logs` answered 404"), "{trouble}");
    peer.accept_paths();
    bench.drain();
    let all = [numbered("span", 5), numbered("log", 5)].concat();
    assert_eq!(sorted(peer.accepted()), sorted(all));
    assert_eq!(bench.tally().trouble(), None);
    bench.end(10, 0);
}

#[test]
fn what_is_kept_open_for_a_refused_signal_is_bounded() {
    let peer = Peer::start();
    peer.refuse_path("/v1/logs", 404);
    let mut bench = Bench::idle();
    for batch in 0..70 {
        bench.spans([format!("span{batch}")]);
        bench.logs(numbered("log", 511));
    }
    bench.send_to_peer(Transport::Http, &peer);
    let is_spans = |seen: &Seen| seen.path == "/v1/traces";
    let count = |seen: &[Seen]| seen.iter().filter(|it| is_spans(it)).count();
    peer.wait_for("so many", |seen| count(seen) == 64);
    assert_eq!(count(&peer.wait_until(Duration::from_millis(300))), 64);
    peer.accept_paths();
    bench.drain();
    bench.end(70 * 512, 0);
}
