//! The lane without failures: rate, batch sizes, shutdown.

use std::time::Duration;

use super::{BOTH, Bench, after, count, exporter, now, numbered, otlp, sorted};
use crate::{
    plan::{Destination, Exporter, Otlp, Transport},
    send::{
        SenderError,
        peer::{Peer, Reply},
    },
};

#[test]
fn spans_and_logs_arrive_once() {
    for transport in BOTH {
        let peer = Peer::start();
        let bench = Bench::to(transport, &peer);
        bench.spans(numbered("span", 300));
        bench.logs(numbered("log", 300));
        bench.drain();
        let expected = [numbered("span", 300), numbered("log", 300)].concat();
        assert_eq!(sorted(peer.accepted()), sorted(expected));
        let ends = [&bench.tally().spans, &bench.tally().logs];
        assert_eq!(ends.map(|ends| count(&ends.delivered)), [300, 300]);
        assert_eq!(bench.said(), [""; 0]);
        bench.end(600, 0);
    }
}

#[test]
fn a_backlog_drains_at_once() {
    for transport in BOTH {
        let peer = Peer::start();
        let mut bench = Bench::idle();
        bench.spans(numbered("span", 60_000));
        let start = now();
        // Waiting for the throttle once per batch would take minutes; only the last batch, which is not full, waits for
        // it.
        let throttle = Duration::from_secs(1);
        let destination = Destination::Otlp(otlp(transport, &peer.endpoint()));
        bench.send_to(&Exporter { throttle, ..exporter(destination) });
        let seen = peer.wait_for("the backlog", |seen| {
            seen.iter().map(|seen| seen.spans.len()).sum::<usize>() == 60_000
        });
        assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
        assert!(seen.iter().all(|seen| seen.spans.len() <= 512 && seen.body.len() <= 1 << 20));
        assert_eq!(seen.len(), 60_000_usize.div_ceil(512));
        bench.drain();
        bench.end(60_000, 0);
    }
}

#[test]
fn a_batch_that_is_not_full_waits_for_the_throttle() {
    let peer = Peer::start();
    let mut bench = Bench::idle();
    let throttle = Duration::from_secs(1);
    let destination = Destination::Otlp(otlp(Transport::Http, &peer.endpoint()));
    bench.spans(["first"]);
    let start = now();
    bench.send_to(&Exporter { throttle, ..exporter(destination) });
    peer.wait_for("the first", |seen| !seen.is_empty());
    bench.spans(["second"]);
    bench.spans(["third"]);
    let seen = peer.wait_for("the second", |seen| seen.len() == 2);
    assert!(seen[1].at >= start + throttle, "{:?}", seen[1].at - start);
    assert_eq!(seen[1].spans.len(), 2);
    // A full batch does not wait.
    bench.spans(numbered("span", 512));
    let seen = peer.wait_for("a full one", |seen| seen.len() == 3);
    assert!(seen[2].at - seen[1].at < throttle, "{:?}", seen[2].at - seen[1].at);
    bench.drain();
    bench.end(515, 0);
}

#[test]
fn a_full_batch_by_bytes_does_not_wait() {
    let peer = Peer::start();
    let mut bench = Bench::idle();
    let throttle = Duration::from_secs(3600);
    let destination = Destination::Otlp(otlp(Transport::Grpc, &peer.endpoint()));
    bench.send_to(&Exporter { throttle, ..exporter(destination) });
    bench.drain();
    bench.spans((0..40).map(|number| format!("{number}{}", "x".repeat(50_000))));
    let seen = peer.wait_for("a full one", |seen| !seen.is_empty());
    assert!(seen.iter().all(|seen| seen.body.len() <= 1 << 20));
    bench.drain();
    bench.end(40, 0);
}

#[test]
fn without_a_throttle_an_item_goes_when_it_comes() {
    let peer = Peer::start();
    let mut bench = Bench::idle();
    let destination = Destination::Otlp(otlp(Transport::Http, &peer.endpoint()));
    bench.send_to(&Exporter { throttle: Duration::ZERO, ..exporter(destination) });
    for number in 1..=5 {
        bench.spans([format!("span{number}")]);
        peer.wait_for("it", |seen| seen.len() == number);
    }
    bench.end(5, 0);
}

#[test]
fn no_more_than_so_many_requests_are_under_way() {
    let peer = Peer::start();
    peer.reply_always(Reply::Hang);
    let mut bench = Bench::idle();
    bench.spans(numbered("span", 512 * 6));
    let destination =
        Destination::Otlp(Otlp { concurrency: 3, ..otlp(Transport::Http, &peer.endpoint()) });
    bench.send_to(&exporter(destination));
    peer.wait_for("three", |seen| seen.len() == 3);
    bench.sender().drain(after(0.2));
    assert_eq!(peer.seen().len(), 3);
    bench.end(0, 0);
}

#[test]
fn what_is_under_way_at_the_end_is_sent_by_the_next_sender() {
    for transport in BOTH {
        let peer = Peer::start();
        peer.reply_next([Reply::Hang]);
        let mut bench = Bench::to(transport, &peer);
        bench.spans(["one"]);
        peer.wait_for("it", |seen| seen.len() == 1);
        let start = now();
        bench.stop();
        assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
        assert_eq!(bench.lane.journal.counts().queued, 1);
        let next = Peer::start();
        bench.send_to(&exporter(Destination::Otlp(otlp(transport, &next.endpoint()))));
        bench.drain();
        assert_eq!(next.accepted(), ["one"]);
        bench.end(1, 0);
    }
}

#[test]
fn a_sender_that_is_dropped_ends() {
    let peer = Peer::start();
    let mut bench = Bench::to(Transport::Http, &peer);
    bench.spans(["one"]);
    bench.drain();
    bench.sender = None;
    // The thread holds the lane as long as it runs.
    let start = now();
    while std::sync::Arc::strong_count(&bench.lane) > 1 {
        assert!(start.elapsed() < Duration::from_secs(10));
        std::thread::yield_now();
    }
    bench.end(1, 0);
}

#[test]
fn a_drain_gives_up_at_its_time() {
    let peer = Peer::start();
    peer.reply_always(Reply::status(503));
    let bench = Bench::to(Transport::Http, &peer);
    bench.spans(["one"]);
    let start = now();
    bench.sender().drain(after(0.3));
    let took = start.elapsed();
    assert!(took >= Duration::from_millis(300) && took < Duration::from_secs(5), "{took:?}");
    bench.end(0, 0);
}

#[test]
fn records_of_another_version_are_counted() {
    let peer = Peer::start();
    let bench = Bench::to(Transport::Grpc, &peer);
    assert_eq!(bench.lane.journal.append(2, &[9, 9, 9]), journal::AppendResult::Kept);
    bench.spans(["one"]);
    bench.drain();
    assert_eq!(peer.accepted(), ["one"]);
    let said = "tracer.test: 2 items were written by another version and are left out";
    assert_eq!(bench.said(), [said]);
    bench.end(1, 2);
}

#[test]
fn a_sender_that_cannot_start_says_why() {
    let bench = Bench::idle();
    let tls = crate::plan::Tls { ca_file: Some("/none.pem".into()), ..crate::plan::Tls::default() };
    let otlp = Otlp { tls, ..otlp(Transport::Grpc, "https://localhost:1") };
    let exporter = exporter(Destination::Otlp(otlp));
    let error = crate::send::Sender::start(bench.lane.clone(), &exporter, &bench.host).err();
    let Some(error @ SenderError::Client(_)) = error else { panic!("{error:?}") };
    assert!(error.to_string().starts_with("cannot read certificates from `/none.pem`"));
    bench.end(0, 0);
}
