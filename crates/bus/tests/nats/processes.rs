//! What several processes on one NATS know of each other.

use std::{
    fs,
    time::{Duration, Instant},
};

use bus::{Bus, Doubt, Nats, NatsMember, NatsOptions, SealKeys, Signal, StreamLimits};
use model::{BusSlot, Project};

use crate::{NatsServer, STREAM, channel, member, number, open, open_with, publish};

#[tokio::test(flavor = "multi_thread")]
async fn a_hint_for_one_process_reaches_one_that_is_available() {
    let server = NatsServer::start();
    let (api, one, other) =
        (open(&server, 1).await, open(&server, 2).await, open(&server, 3).await);
    let (mut ones, mut others) = (one.hints(), other.hints());
    let subject = |number: u32| bus::Subject(format!("runs.waiting {number}"));
    // A process joins the group, and leaves it, a moment after it is set.
    let moment = || tokio::time::sleep(Duration::from_millis(300));
    one.set_available(true);
    moment().await;
    api.hint_one(subject(1));
    assert_eq!(ones.next().await, Some(subject(1)));
    one.set_available(false);
    other.set_available(true);
    moment().await;
    api.hint_one(subject(2));
    assert_eq!(others.next().await, Some(subject(2)));
    one.set_available(true);
    moment().await;
    for number in 3..53 {
        api.hint_one(subject(number));
    }
    let mut received = 0;
    while let Ok(Some(_)) = tokio::time::timeout(Duration::from_secs(1), async {
        tokio::select! { hint = ones.next() => hint, hint = others.next() => hint }
    })
    .await
    {
        received += 1;
    }
    assert_eq!(received, 50, "each reaches one of them");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_reaches_all_other_processes_and_each_answers() {
    let server = NatsServer::start();
    let (one, two, three) =
        (open(&server, 1).await, open(&server, 2).await, open(&server, 3).await);
    // Under another key it can neither read the request nor answer.
    let stranger = Nats::new(server.options());
    stranger.connect(number().to_be_bytes()).await.expect("NATS is there");
    let keys = SealKeys::new([2; 32], Vec::new(), [9; 16]);
    stranger.join(NatsMember { slot: Some(BusSlot(4)), keys }).await;
    let mut tasks = tokio::task::JoinSet::new();
    for (name, bus) in [("one", &one), ("two", &two), ("three", &three), ("stranger", &stranger)] {
        let mut requests = bus.requests().await.expect("it takes part");
        tasks.spawn(async move {
            loop {
                let request = requests.next().await;
                let answer = [name.as_bytes(), b" ", &request.body].concat();
                request.answer(&answer).await;
            }
        });
    }
    let within = Duration::from_secs(10);
    let began = Instant::now();
    let mut answers = one.gather(b"hears", within, |answers| answers.len() == 2).await;
    assert!(began.elapsed() < within / 2, "{:?}", began.elapsed());
    answers.sort();
    assert_eq!(answers, [b"three hears".to_vec(), b"two hears".to_vec()]);
    let short = Duration::from_millis(500);
    let answers = one.gather(b"hears", short, |answers| answers.len() == 3).await;
    assert_eq!(answers.len(), 2, "neither itself nor the stranger answers");
}

/// A process that publishes only notices a wiped NATS too: servers that name another one are other servers to it.
#[tokio::test(flavor = "multi_thread")]
async fn a_process_without_a_slot_knows_which_nats_it_is_on() {
    let mut server = NatsServer::start();
    let ingest = Nats::new(server.options());
    ingest.connect(number().to_be_bytes()).await.expect("NATS is there");
    ingest.join(NatsMember { slot: None, ..member(1) }).await;
    let worker = open(&server, 1).await;
    // A process names no NATS before its consumer delivers.
    let began = Instant::now();
    while ingest.identity().is_none() || worker.identity().is_none() {
        assert!(began.elapsed() < Duration::from_secs(10), "{:?}", worker.identity());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(ingest.is_open());
    assert_eq!(ingest.identity(), worker.identity());
    let channel = channel(1, 1);
    let _subscription = worker.subscribe(channel, &Project::default());
    worker.expect(channel);
    publish(&ingest, channel, "a").await.expect("stored");
    assert_eq!(worker.proved(channel).await, Ok(1));
    assert_eq!(ingest.proved(channel).await, Err(Doubt::NotListened));
    let before = ingest.identity();
    server.kill();
    fs::remove_dir_all(server.data.path().join("jetstream")).expect("it is there");
    server.restart();
    let began = Instant::now();
    let is_new = || ingest.identity().is_some_and(|identity| Some(identity) != before);
    while !is_new() || ingest.identity() != worker.identity() {
        assert!(began.elapsed() < Duration::from_secs(30), "{:?}", ingest.identity());
        // Both find out by themselves.
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Notices to all servers reach also those in streams that only another server has in its configuration.
#[tokio::test(flavor = "multi_thread")]
async fn more_streams_are_found_by_servers_with_fewer() {
    let server = NatsServer::start();
    let (few, many) = (open(&server, 1).await, {
        let stream = StreamLimits { streams: 3, ..STREAM };
        open_with(NatsOptions { stream, ..server.options() }, 70).await
    });
    let project = Project::default();
    few.lose_unread(Signal::Spans, None);
    let began = Instant::now();
    while many.unread(Signal::Spans, &project) == 0 {
        assert!(began.elapsed() < Duration::from_secs(10), "the notice comes");
        // It is stored by a task.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_of_a_later_version_is_a_doubt_and_no_absence() {
    let server = NatsServer::start();
    let worker = open(&server, 3).await;
    let (channel, other) = (channel(3, 1), channel(3, 2));
    let project = Project::default();
    let _subscriptions = [channel, other].map(|channel| worker.subscribe(channel, &project));
    worker.expect(channel);
    worker.expect(other);
    let client = async_nats::connect(format!("nats://127.0.0.1:{}", server.port)).await;
    let client = async_nats::jetstream::new(client.expect("NATS is there"));
    let later = bus::MESSAGE_VERSION + 1;
    let message = |kind| [vec![later, kind], vec![0; 40]].concat();
    let subject = format!("qt.spans.0.3.{}", channel.trace);
    for (subject, kind) in [(subject, 1), ("qt.spans.0.all".to_owned(), 5)] {
        let sent = client.publish(subject, message(kind).into()).await.expect("sent");
        sent.await.expect("stored");
    }
    assert_eq!(worker.proved(channel).await, Err(Doubt::Lost(1)), "they may have been spans");
    assert_eq!(worker.proved(other).await, Ok(0), "of that trace");
    // The notice to all slots may have stated that exports of any project were lost.
    assert_eq!(worker.unread(Signal::Spans, &project), 1);
}
