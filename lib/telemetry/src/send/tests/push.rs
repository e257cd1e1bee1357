//! Metrics, pushed at an interval without the journal.

use std::time::Duration;

use opentelemetry::metrics::MeterProvider;
use opentelemetry_proto::tonic::{
    collector::metrics::v1::ExportMetricsServiceRequest,
    metrics::v1::{metric::Data, number_data_point::Value},
};
use opentelemetry_sdk::metrics::SdkMeterProvider;
use prost::Message;

use super::{BOTH, Bench, after, count, exporter, now, otlp};
use crate::{
    metrics::Reader,
    plan::{Destination, Exporter, Signals, Transport},
    send::peer::{Peer, Reply, Seen},
};

/// A bench that pushes at this interval, and the provider of the pushed counter.
fn pushing(interval: Duration, transport: Transport, peer: &Peer) -> (Bench, SdkMeterProvider) {
    let mut bench = Bench::idle();
    let reader = Reader::new();
    let provider = SdkMeterProvider::builder().with_reader(reader.clone()).build();
    bench.host.metrics = Some(reader);
    let signals = Signals { spans: true, logs: false, metrics: Some(interval) };
    let destination = Destination::Otlp(otlp(transport, &peer.endpoint()));
    bench.send_to(&Exporter { signals, ..exporter(destination) });
    (bench, provider)
}

/// The value of the counter `sold` in a push.
fn sold(seen: &Seen) -> i64 {
    let request = ExportMetricsServiceRequest::decode(&seen.body[..]).unwrap();
    let scopes = request.resource_metrics.iter().flat_map(|it| &it.scope_metrics);
    let metric = scopes.flat_map(|it| &it.metrics).find(|it| it.name == "sold").unwrap();
    let Some(Data::Sum(sum)) = &metric.data else { panic!("{metric:?}") };
    match sum.data_points[0].value {
        Some(Value::AsInt(value)) => value,
        value => panic!("{value:?}"),
    }
}

#[test]
fn metrics_are_pushed_at_the_interval() {
    for transport in BOTH {
        let peer = Peer::start();
        let interval = Duration::from_millis(200);
        let start = now();
        let (bench, provider) = pushing(interval, transport, &peer);
        let counter = provider.meter("shop").u64_counter("sold").build();
        counter.add(5, &[]);
        let seen = peer.wait_for("two pushes", |seen| seen.len() >= 2);
        assert!(seen[0].at >= start + interval && seen[1].at >= start + 2 * interval);
        assert_eq!(sold(&seen[0]), 5);
        assert!(seen[0].path.to_lowercase().contains("metrics"));
        let text = String::from_utf8_lossy(&seen[0].body).into_owned();
        assert!(text.contains("service.name") && text.contains("shop"));
        assert!(count(&bench.tally().pushes) >= 1);
        bench.end(0, 0);
    }
}

#[test]
fn the_latest_collection_is_tried_again_until_the_next() {
    let peer = Peer::start();
    peer.reply_always(Reply::status(503));
    let (bench, provider) = pushing(Duration::from_millis(800), Transport::Http, &peer);
    let counter = provider.meter("shop").u64_counter("sold").build();
    counter.add(1, &[]);
    peer.wait_for("the first attempt", |seen| !seen.is_empty());
    counter.add(1, &[]);
    let seen = peer.wait_for("some attempts", |seen| seen.len() >= 3);
    assert!(seen[..3].iter().all(|seen| sold(seen) == 1));
    assert_eq!(count(&bench.tally().pushes), 0);
    assert!(bench.tally().trouble().is_some());
    // The next collection contains the complete sum.
    peer.reply_always(Reply::Accept);
    let last =
        peer.wait_for("success", |seen| seen.iter().any(|it| it.is_accepted && sold(it) == 2));
    assert_eq!(sold(last.last().unwrap()), 2);
    assert_eq!(bench.tally().trouble(), None);
    bench.end(0, 0);
}

#[test]
fn the_last_push_is_at_the_end() {
    let peer = Peer::start();
    let (mut bench, provider) = pushing(Duration::from_secs(3600), Transport::Grpc, &peer);
    provider.meter("shop").u64_counter("sold").build().add(7, &[]);
    bench.stop();
    assert_eq!(peer.seen().iter().map(sold).collect::<Vec<_>>(), [7]);
    assert_eq!(count(&bench.tally().pushes), 1);
    assert_eq!(count(&bench.tally().points), 1);
    bench.end(0, 0);
}

#[test]
fn an_instrument_that_fails_harms_only_metrics() {
    let peer = Peer::start();
    let (bench, provider) = pushing(Duration::from_millis(20), Transport::Http, &peer);
    let meter = provider.meter("shop");
    let _gauge = meter.u64_observable_gauge("broken").with_callback(|_| panic!("planned")).build();
    bench.sender().drain(after(0.2));
    bench.spans(["one"]);
    bench.drain();
    assert_eq!(peer.accepted(), ["one"]);
    bench.end(1, 0);
}

#[test]
fn instruments_that_somebody_else_has_broken_are_trouble() {
    let peer = Peer::start();
    let (bench, provider) = pushing(Duration::from_millis(300), Transport::Http, &peer);
    let meter = provider.meter("shop");
    let _gauge = meter.u64_observable_gauge("broken").with_callback(|_| panic!("planned")).build();
    let reader = bench.host.metrics.clone().unwrap();
    std::thread::spawn(move || reader.prometheus()).join().expect_err("a panic");
    let start = now();
    while bench.tally().trouble().is_none() && start.elapsed() < Duration::from_secs(10) {
        bench.sender().drain(after(0.01));
    }
    let trouble = bench.tally().trouble().expect("it is trouble").message;
    assert!(trouble.contains("metrics could not be collected"), "{trouble}");
    assert!(trouble.contains("an instrument's callback has panicked"), "{trouble}");
    assert!(count(&bench.tally().pushes_failed) > 0);
    let [_, _, metrics] = bench.tally().snapshot();
    assert!(metrics.unanswered_since.is_some(), "it is said after a while");
    bench.end(0, 0);
}

#[test]
fn metrics_of_which_there_are_none_are_neither_delivered_nor_waited_for() {
    let peer = Peer::start();
    let (bench, _provider) = pushing(Duration::from_millis(20), Transport::Http, &peer);
    bench.sender().drain(after(0.2));
    let [_, _, metrics] = bench.tally().snapshot();
    assert_eq!((metrics.accepted, metrics.unanswered_since), (0, None));
    bench.end(0, 0);
}

#[test]
fn a_push_to_the_wrong_place_is_trouble() {
    let peer = Peer::start();
    peer.reply_always(Reply::status(404));
    let (bench, provider) = pushing(Duration::from_millis(20), Transport::Http, &peer);
    provider.meter("shop").u64_counter("sold").build().add(7, &[]);
    peer.wait_for("some attempts", |seen| seen.len() >= 3);
    let trouble = bench.tally().trouble().expect("it is trouble").message;
    assert!(trouble.contains("/v1/metrics` answered 404 Not Found; check the endpoint"));
    assert!(bench.tally().snapshot().iter().any(|signal| signal.unanswered_since.is_some()));
    bench.end(0, 0);
}
