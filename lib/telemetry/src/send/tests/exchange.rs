//! Successive senders of one lane: prepared, stopped, panicked, and outlived.

use std::{process::Command, sync::Arc, time::Duration};

use super::{Bench, after, count, exporter, now, otlp};
use crate::{
    plan::{Destination, Exporter, Transport},
    send::{
        Sender,
        answer::WhyKind,
        peer::{Peer, Reply},
        tally::Tally,
    },
};

fn to_peer(peer: &Peer) -> Exporter {
    exporter(Destination::Otlp(otlp(Transport::Http, &peer.endpoint())))
}

/// Waits until the condition is true.
fn wait_for(what: &str, is_so: impl Fn() -> bool) {
    let start = now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(10), "waited for {what}");
        std::thread::yield_now();
    }
}

#[test]
fn a_sender_that_hangs_beyond_its_end_disturbs_nobody() {
    let mut bench = Bench::idle();
    let pipe = bench.folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    bench.spans(["one", "two"]);
    bench.send_to(&exporter(Destination::Log(pipe.clone())));
    // The pipe has no reader: opening it for writing blocks.
    wait_for("the first request", || count(&bench.tally().requests) == 1);
    let hanging = bench.sender.take().unwrap();
    hanging.stop(after(0.1));
    let peer = Peer::start();
    peer.reply_next([Reply::Hang]);
    bench.send_to(&to_peer(&peer));
    peer.wait_for("both", |seen| seen.len() == 1);
    let read = std::fs::read_to_string(&pipe).unwrap();
    assert_eq!(read.lines().count(), 2, "the old one wrote them after all");
    // The bench holds the lane, and so does the thread of the new sender.
    wait_for("the end of the old one", || Arc::strong_count(&bench.lane) == 2);
    assert_eq!(bench.tally().delivered(), 0);
    assert!(bench.lane.journal.read(10, 1000).is_none(), "what the new one has read stays read");
    bench.stop();
    bench.send_to(&to_peer(&peer));
    bench.drain();
    assert_eq!(peer.accepted(), ["one", "two"]);
    bench.end(2, 0);
}

#[test]
fn only_the_sender_whose_turn_it_is_reads_rewinds_and_counts() {
    let bench = Bench::idle();
    bench.spans(["one", "two"]);
    let lane = &bench.lane;
    let counted = |tally: &Tally, fresh| {
        tally.spans.delivered.fetch_add(fresh, std::sync::atomic::Ordering::Relaxed);
    };
    let old = lane.begin();
    let of_old = lane.read(old, 2, 1000).unwrap();
    let new = lane.begin();
    let of_new = lane.read(new, 1, 1000).unwrap();
    assert!(lane.read(old, 10, 1000).is_none());
    lane.rewind(old);
    lane.acknowledge(old, &of_old, counted);
    assert_eq!((bench.tally().delivered(), lane.journal.counts().queued), (0, 2));
    lane.acknowledge(new, &of_new, counted);
    lane.acknowledge(new, &of_old, counted);
    assert_eq!(bench.tally().delivered(), 2, "each item once");
    assert!(lane.read(new, 10, 1000).is_none());
    bench.end(2, 0);
}

#[test]
fn a_notice_that_panics_harms_nobody() {
    let peer = Peer::start();
    peer.reply_next([Reply::status(404)]);
    let mut bench = Bench::idle();
    bench.host.notice = Arc::new(|_, _| panic!("planned"));
    bench.spans(["one"]);
    bench.send_to(&to_peer(&peer));
    peer.wait_for("the refusal", |seen| seen.len() == 1);
    bench.drain();
    assert!(bench.sender().is_alive());
    bench.end(1, 0);
}

#[test]
fn a_sender_that_dies_is_seen_to_be_dead_and_can_be_replaced() {
    let peer = Peer::start();
    peer.reply_next([Reply::status(503)]);
    let mut bench = Bench::idle();
    let random = std::mem::replace(&mut bench.host.random, || panic!("planned"));
    bench.spans(["one"]);
    bench.send_to(&to_peer(&peer));
    wait_for("its death", || !bench.sender().is_alive());
    let start = now();
    bench.sender().drain(after(10.0));
    assert!(start.elapsed() < Duration::from_secs(5), "nobody waits for the dead");
    bench.host.random = random;
    bench.send_to(&to_peer(&peer));
    bench.drain();
    assert!(bench.sender().is_alive());
    bench.end(1, 0);
}

#[test]
fn a_stop_can_be_told_without_waiting_and_ends_a_drain() {
    let peer = Peer::start();
    peer.reply_always(Reply::Hang);
    let bench = Bench::to(Transport::Http, &peer);
    bench.spans(["one"]);
    peer.wait_for("it", |seen| seen.len() == 1);
    let start = now();
    bench.sender().signal_stop(after(0.2));
    bench.sender().drain(after(20.0));
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    wait_for("the end", || !bench.sender().is_alive());
    bench.end(0, 0);
}

#[test]
fn what_is_prepared_disturbs_nobody_and_may_be_left() {
    let peer = Peer::start();
    let mut bench = Bench::to(Transport::Http, &peer);
    bench.spans(["one"]);
    bench.drain();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let prepare = || Sender::prepare(&to_peer(&peer), &bench.host).unwrap();
    // A runtime that waits for its tasks must not be dropped here.
    runtime.block_on(async { drop(prepare()) });
    let prepared = prepare();
    bench.spans(["two"]);
    bench.drain();
    bench.stop();
    bench.sender = Some(prepared.start(Arc::clone(&bench.lane)).unwrap());
    bench.spans(["three"]);
    bench.drain();
    bench.end(3, 0);
}

#[test]
fn a_name_that_no_thread_can_have_is_a_name() {
    let peer = Peer::start();
    let mut bench = Bench::idle();
    bench.send_to(&Exporter { name: "a\0b".to_owned(), ..to_peer(&peer) });
    bench.spans(["one"]);
    bench.drain();
    bench.end(1, 0);
}

#[test]
fn the_trouble_of_a_sender_goes_with_it() {
    let mut bench = Bench::idle();
    let gone = Peer::start().endpoint();
    bench.spans(["one"]);
    bench.send_to(&exporter(Destination::Otlp(otlp(Transport::Http, &gone))));
    wait_for("trouble", || bench.tally().trouble().is_some());
    assert_eq!(bench.tally().trouble().map(|why| why.kind), Some(WhyKind::Refused));
    bench.stop();
    let peer = Peer::start();
    bench.send_to(&to_peer(&peer));
    bench.drain();
    assert_eq!(bench.tally().trouble(), None);
    bench.end(1, 0);
}
