//! The lane when items are rejected permanently: exactly these become dead letters.

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use prost::Message;

use super::{BOTH, Bench, count, numbered, sorted};
use crate::{
    plan::{Signal, Transport},
    send::peer::{Peer, Reply},
};

/// The response of a peer to data that it rejects.
fn refused(transport: Transport) -> Reply {
    match transport {
        Transport::Grpc => Reply::grpc(3, "poison"),
        Transport::Http => Reply::refused(400),
    }
}

fn names(request: &[u8]) -> Vec<String> {
    let request = ExportTraceServiceRequest::decode(request).unwrap();
    let scopes = request.resource_spans.into_iter().flat_map(|it| it.scope_spans);
    scopes.flat_map(|it| it.spans).map(|span| span.name).collect()
}

#[test]
fn poison_is_found_and_all_else_is_delivered() {
    for transport in BOTH {
        for poisoned in [vec![0], vec![299], vec![17, 18, 170], (0..300).collect()] {
            let peer = Peer::start();
            peer.reply_to_named("poison", refused(transport));
            let mut all = numbered("span", 300);
            for at in &poisoned {
                all[*at] = "poison".to_owned();
            }
            let mut bench = Bench::idle();
            bench.spans(&all);
            bench.send_to_peer(transport, &peer);
            bench.drain();
            all.retain(|name| name != "poison");
            assert_eq!(sorted(peer.accepted()), sorted(all.clone()));
            assert!(peer.seen().len() <= 2 * 300, "{}", peer.seen().len());
            let letters = bench.letters();
            assert_eq!(letters.len(), 1);
            assert_eq!(names(&letters[0].1), vec!["poison"; poisoned.len()]);
            let text = std::fs::read_to_string(letters[0].0.with_extension("txt")).unwrap();
            assert!(
                text.starts_with(&format!("{} spans: `http://localhost:", poisoned.len())),
                "{text}"
            );
            assert_eq!(count(&bench.tally().dead_letters), 1);
            assert_eq!(bench.said().len(), 1, "{:?}", bench.said());
            bench.end(300 - poisoned.len() as u64, poisoned.len() as u64);
        }
    }
}

#[test]
fn poison_in_logs_leaves_spans_alone() {
    let peer = Peer::start();
    peer.reply_to_named("poison", refused(BOTH[0]));
    let mut bench = Bench::idle();
    bench.spans(["one"]);
    bench.logs(["two", "poison", "three"]);
    bench.send_to_peer(BOTH[0], &peer);
    bench.drain();
    assert_eq!(sorted(peer.accepted()), ["one", "three", "two"]);
    let name = bench.letters()[0].0.file_name().unwrap().to_owned().into_string().unwrap();
    assert!(name.ends_with("-logs.otlp"), "{name}");
    assert_eq!(count(&bench.tally().ends(Signal::Logs).rejected), 1);
    bench.end(3, 1);
}

#[test]
fn too_large_is_halved_and_the_limit_is_remembered() {
    for transport in BOTH {
        let peer = Peer::start();
        peer.refuse_larger(100_000);
        let mut bench = Bench::idle();
        let name = |number| format!("{number:04}{}", "x".repeat(1000));
        bench.spans((0..2000).map(name));
        bench.send_to_peer(transport, &peer);
        bench.drain();
        let seen = peer.seen();
        let refused = seen.iter().filter(|seen| !seen.is_accepted).count();
        // As many as were in progress before the limit was known, each halved down to it.
        assert!(refused <= 4 * 15, "{refused}");
        let last = seen.iter().rposition(|seen| !seen.is_accepted).unwrap();
        assert!(last < seen.len() / 2 + 40, "refused at {last} of {}", seen.len());
        assert!(seen.iter().rev().skip(1).take(5).all(|seen| seen.body.len() > 40_000));
        assert_eq!(sorted(peer.accepted()), (0..2000).map(name).collect::<Vec<_>>());
        assert!(bench.letters().is_empty());
        bench.end(2000, 0);
    }
}

#[test]
fn a_single_item_that_is_too_large_is_a_dead_letter() {
    for transport in BOTH {
        let peer = Peer::start();
        peer.refuse_larger(100_000);
        let mut bench = Bench::idle();
        let large = "x".repeat(200_000);
        bench.spans(numbered("before", 10));
        bench.spans([&large]);
        bench.spans(numbered("after", 10));
        bench.send_to_peer(transport, &peer);
        bench.drain();
        let expected = [numbered("before", 10), numbered("after", 10)].concat();
        assert_eq!(sorted(peer.accepted()), sorted(expected));
        let letters = bench.letters();
        assert_eq!(letters.len(), 1);
        assert_eq!(names(&letters[0].1), [large]);
        bench.end(20, 1);
    }
}

#[test]
fn a_partial_success_is_kept_as_so_many_of_so_many() {
    for transport in BOTH {
        let peer = Peer::start();
        peer.reply_next([Reply::Partial { rejected: 3, message: "too old" }]);
        let mut bench = Bench::idle();
        bench.spans(numbered("span", 10));
        bench.send_to_peer(transport, &peer);
        bench.drain();
        let letters = bench.letters();
        assert_eq!(letters.len(), 1);
        let name = letters[0].0.file_name().unwrap().to_str().unwrap();
        assert!(name.ends_with("-spans-3-of-10.otlp"), "{name}");
        assert_eq!(names(&letters[0].1), numbered("span", 10));
        let text = std::fs::read_to_string(letters[0].0.with_extension("txt")).unwrap();
        assert_eq!(text, "3 of 10 spans were refused: too old\n");
        assert_eq!(bench.said(), ["tracer.test: 3 of 10 spans were refused: too old"]);
        bench.end(7, 3);
    }
}

#[test]
fn a_peer_that_refuses_more_than_it_got_refuses_all() {
    let peer = Peer::start();
    peer.reply_next([Reply::Partial { rejected: 99, message: "" }]);
    let mut bench = Bench::idle();
    bench.spans(numbered("span", 10));
    bench.send_to_peer(BOTH[1], &peer);
    bench.drain();
    bench.end(0, 10);
}

#[test]
fn without_a_folder_letters_are_counted() {
    let peer = Peer::start();
    peer.reply_to_named("poison", refused(BOTH[0]));
    let mut bench = Bench::idle();
    let journal = std::sync::Arc::clone(&bench.lane.journal);
    bench.lane = std::sync::Arc::new(crate::send::Lane::new(journal, None));
    bench.spans(["one", "poison"]);
    bench.send_to_peer(BOTH[0], &peer);
    bench.drain();
    assert_eq!(count(&bench.tally().dead_letters), 1);
    assert!(bench.letters().is_empty());
    bench.end(1, 1);
}

#[test]
fn a_letter_that_cannot_be_kept_is_counted_and_said() {
    let peer = Peer::start();
    peer.reply_to_named("poison", refused(BOTH[0]));
    let mut bench = Bench::idle();
    // A file is at the path of the folder.
    std::fs::write(bench.folder.path().join("dead-letters"), "").unwrap();
    bench.spans(["one", "poison"]);
    bench.send_to_peer(BOTH[0], &peer);
    bench.drain();
    assert_eq!(count(&bench.tally().dead_letters_failed), 1);
    let said = bench.said().concat();
    assert!(said.contains("a dead letter could not be kept: File exists"), "{said}");
    bench.end(1, 1);
}

#[test]
fn what_a_server_fails_at_alone_is_refused() {
    for (transport, reply) in
        [(BOTH[0], Reply::grpc(13, "permanent")), (BOTH[1], Reply::status(500))]
    {
        let peer = Peer::start();
        peer.reply_to_named("poison", reply);
        let mut bench = Bench::idle();
        bench.spans(numbered("a", 20));
        bench.spans(["poison"]);
        bench.spans(numbered("b", 20));
        bench.send_to_peer(transport, &peer);
        peer.wait_for("a failure", |seen| !seen.is_empty());
        // As long as no other part succeeds, the server may be the cause; afterwards it cannot be.
        assert!(bench.letters().is_empty());
        let mut others = 0;
        while bench.letters().is_empty() && others < 2000 {
            bench.spans([format!("other{others}")]);
            others += 1;
            bench.sender().drain(super::after(0.02));
        }
        bench.drain();
        assert_eq!(names(&bench.letters()[0].1), ["poison"]);
        let expected = [numbered("a", 20), numbered("b", 20), numbered("other", others)].concat();
        assert_eq!(sorted(peer.accepted()), sorted(expected));
        bench.end(40 + others as u64, 1);
    }
}

#[test]
fn a_server_that_fails_at_everything_is_waited_for() {
    let peer = Peer::start();
    peer.reply_always(Reply::status(500));
    let mut bench = Bench::idle();
    bench.spans(numbered("span", 5000));
    bench.send_to_peer(BOTH[1], &peer);
    peer.wait_for("many failures", |seen| seen.len() >= 30);
    peer.reply_always(Reply::Accept);
    bench.drain();
    assert_eq!(sorted(peer.accepted()), sorted(numbered("span", 5000)));
    assert!(bench.letters().is_empty());
    bench.end(5000, 0);
}

#[test]
fn batches_grow_again_where_they_may() {
    let peer = Peer::start();
    peer.refuse_larger(50_000);
    let mut bench = Bench::idle();
    let name = |number| format!("{number:05}{}", "x".repeat(1000));
    bench.spans((0..200).map(name));
    bench.send_to_peer(BOTH[1], &peer);
    bench.drain();
    peer.refuse_larger(usize::MAX);
    bench.spans((200..12_000).map(name));
    bench.drain();
    let largest = peer.seen().iter().filter(|it| it.is_accepted).map(|it| it.body.len()).max();
    assert!(largest > Some(200_000), "{largest:?}");
    bench.end(12_000, 0);
}

#[test]
fn a_refusal_in_other_words_is_believed_once_something_was_accepted() {
    let peer = Peer::start();
    peer.reply_to_named("poison", Reply::status(400));
    let mut bench = Bench::idle();
    bench.spans(["poison"]);
    bench.send_to_peer(BOTH[1], &peer);
    peer.wait_for("the first", |seen| !seen.is_empty());
    // The destination may not accept any data: no item is discarded yet.
    bench.sender().drain(super::after(0.2));
    assert_eq!((bench.lane.journal.counts().queued, bench.letters().len()), (1, 0));
    bench.spans(numbered("span", 10));
    bench.drain();
    assert_eq!(sorted(peer.accepted()), numbered("span", 10));
    assert_eq!(names(&bench.letters()[0].1), ["poison"]);
    bench.end(10, 1);
}
