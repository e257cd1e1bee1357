//! The observations that a receiver reports.

use drivers::receiver::{Config, start};
use tokio::time::Instant;

use crate::{
    WANTED, config,
    http::{PROTOBUF, send},
    receiver, request, told,
};

#[tokio::test]
async fn connections_requests_and_refusals_are_told() {
    let receiver = receiver(&told(false, 9)).await;
    let began = Instant::now();
    let message = request(&[&WANTED, &[8; 16]]);
    let address = receiver.addresses()[0];
    send(address, "POST /v1/traces", PROTOBUF, &message).await;
    send(address, "POST /v1/spans", PROTOBUF, &message).await;
    send(address, "POST /v1/traces", PROTOBUF, b"noise").await;
    let seen = receiver.seen();
    assert_eq!((seen.connections, seen.requests), (3, 3));
    let said: Vec<_> = seen.refusals.iter().map(|refusal| refusal.what.as_str()).collect();
    assert!(said[0].starts_with("nothing is at `/v1/spans`"), "{said:?}");
    assert!(said[1].starts_with("not OTLP protobuf"), "{said:?}");
    assert!(seen.refusals.iter().all(|refusal| refusal.at >= began));
    assert_eq!((seen.counts.kept, seen.counts.foreign), (1, 1));
    let [foreign] = &seen.foreign[..] else { panic!("{:?}", seen.foreign) };
    assert_eq!(foreign.bytes, message);
    assert!(foreign.at >= began);
}

#[tokio::test]
async fn the_newest_foreign_exports_are_kept() {
    let config = Config { ring_bytes_max: 500, ..config() };
    let receiver = start(config, told(false, 9)).await.expect("started");
    for number in 1..=20 {
        let message = request(&[&[number; 16]]);
        send(receiver.addresses()[0], "POST /v1/traces", PROTOBUF, &message).await;
        if number == 15 {
            // A new second of the real clock: each second of a flood has its share.
            tokio::time::sleep(std::time::Duration::from_millis(1050)).await;
        }
    }
    // An export that contains only wanted spans is not foreign.
    send(receiver.addresses()[0], "POST /v1/traces", PROTOBUF, &request(&[&WANTED])).await;
    let foreign = receiver.seen().foreign;
    let kept: Vec<_> = foreign.iter().map(|export| export.bytes.clone()).collect();
    assert!((2..4).contains(&kept.len()), "{}", kept.len());
    let first: Vec<_> = (16..).take(kept.len()).map(|it| request(&[&[it; 16]])).collect();
    assert_eq!(kept, first);
}
