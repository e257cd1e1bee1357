//! Tests of the bus over NATS: the conformance suite on a real NATS, and what happens when NATS fails.

#![expect(
    clippy::disallowed_methods,
    reason = "a test has no main that hands down the environment"
)]

mod processes;

use std::{
    env, fs,
    io::{Read, Write},
    net::{Ipv4Addr, TcpListener, TcpStream},
    path::Path,
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicU16, AtomicU64, Ordering},
    thread::sleep,
    time::{Duration, Instant},
};

use bus::{
    Batch, Bus, Channel, Doubt, Limits, Login, Nats, NatsMember, NatsOptions, Next, PublishError,
    SealKeys, Signal, StreamLimits, conformance,
};
use bytes::Bytes;
use model::{BusSlot, Project, Timestamp, TraceId};
use tempfile::TempDir;

const LIMITS: Limits = Limits {
    bytes_max: 1 << 20,
    project_bytes_max: 1 << 19,
    trace_bytes_max: 1 << 18,
    trace_spans_max: 1000,
    age_max: Duration::from_secs(60),
};

const STREAM: StreamLimits = StreamLimits {
    bytes_max: 10 << 20,
    age_max: Duration::from_secs(900),
    replicas: 3,
    streams: 2,
};

/// A NATS server of one test; killed when it is dropped.
struct NatsServer {
    process: Child,
    port: u16,
    monitor: u16,
    data: TempDir,
}

impl NatsServer {
    fn start() -> Self {
        let (port, monitor) = (free_port(), free_port());
        let data = TempDir::new().expect("a folder");
        let process = spawn(port, monitor, data.path(), &[]);
        let server = Self { process, port, monitor, data };
        server.await_ready();
        server
    }

    fn kill(&mut self) {
        self.process.kill().and_then(|()| self.process.wait()).expect("it runs");
    }

    fn restart(&mut self) {
        self.process = spawn(self.port, self.monitor, self.data.path(), &[]);
        self.await_ready();
    }

    fn await_ready(&self) {
        let began = Instant::now();
        while !is_healthy(self.monitor) {
            assert!(began.elapsed() < Duration::from_secs(20), "NATS starts");
            sleep(Duration::from_millis(10));
        }
    }

    fn options(&self) -> NatsOptions {
        options(format!("nats://127.0.0.1:{}", self.port))
    }
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        let _ended = self.process.kill().and_then(|()| self.process.wait());
    }
}

fn spawn(port: u16, monitor: u16, data: &Path, more: &[&str]) -> Child {
    let program = env::var("QUALITYTRACE_TEST_NATS").expect(
        "NATS is installed by `cargo xtask services up nats`, and found by `cargo xtask services env`",
    );
    let mut nats = Command::new(program);
    nats.args([
        "-a",
        "127.0.0.1",
        "-p",
        &port.to_string(),
        "-m",
        &monitor.to_string(),
        "-js",
        "-sd",
    ]);
    nats.arg(data).args(more).stdout(Stdio::null()).stderr(Stdio::null());
    nats.spawn().expect("it can be started")
}

fn is_healthy(monitor: u16) -> bool {
    let ask = || {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, monitor))?;
        stream.write_all(b"GET /healthz HTTP/1.0\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        std::io::Result::Ok(answer)
    };
    ask().is_ok_and(|answer| answer.contains(" 200 "))
}

/// Returns a port below those that the system gives to outgoing connections: a server that is started again needs the same one.
fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    loop {
        let offset = NEXT.fetch_add(1, Ordering::Relaxed);
        let port = 20_000 + (std::process::id() as u16 % 1000) * 10 + offset;
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return port;
        }
    }
}

/// Returns another number each time.
fn number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

fn member(slot: u16) -> NatsMember {
    // No salt is used twice.
    let number = number();
    NatsMember {
        slot: Some(BusSlot(slot)),
        keys: SealKeys::new([1; 32], Vec::new(), u128::from(number).to_be_bytes()),
    }
}

fn options(server: String) -> NatsOptions {
    NatsOptions {
        servers: vec![server],
        login: Login::Anonymous,
        ca: None,
        prefix: "qt".to_owned(),
        limits: LIMITS,
        stream: STREAM,
        is_synced: false,
    }
}

async fn open(server: &NatsServer, slot: u16) -> Nats {
    open_with(server.options(), slot).await
}

async fn open_with(options: NatsOptions, slot: u16) -> Nats {
    let bus = Nats::new(options);
    bus.connect(number().to_be_bytes()).await.expect("NATS is there");
    bus.join(member(slot)).await;
    bus
}

fn channel(slot: u16, number: u32) -> Channel {
    let mut id = [7; 16];
    id[..4].copy_from_slice(&number.to_be_bytes());
    Channel { slot: BusSlot(slot), trace: TraceId::from_bytes(id).expect("not all zero") }
}

fn now() -> Timestamp {
    Timestamp::from_nanos(1_800_000_000_000_000_000)
}

fn batch(channel: Channel, bytes: impl Into<Bytes>) -> Batch {
    Batch { channel, spans: 1, bytes: bytes.into(), projects: None, owner: None }
}

async fn publish(bus: &Nats, channel: Channel, text: &str) -> Result<(), PublishError> {
    bus.publish(now(), vec![batch(channel, text.as_bytes().to_vec())]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_bus_over_nats_is_a_bus() {
    let server = NatsServer::start();
    let facts = conformance::Facts {
        too_many_bytes: LIMITS.trace_bytes_max,
        too_many_spans: 1001,
        too_many_batches: 20,
        refused_batches: 200,
        batch_bytes: 100_000,
        age_max: LIMITS.age_max,
        is_shared: true,
    };
    let slots = AtomicU16::new(0);
    conformance::conforms(facts, async |_| {
        let slot = slots.fetch_add(1, Ordering::Relaxed);
        (open(&server, slot).await, BusSlot(slot))
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn spans_reach_the_slot_whoever_publishes_them() {
    let server = NatsServer::start();
    let (worker, ingest) = (open(&server, 3).await, open(&server, 40).await);
    let channel = channel(3, 1);
    let mut subscription = worker.subscribe(channel, &Project::default());
    worker.expect(channel);
    for number in 1..=20_u64 {
        publish(&ingest, channel, &number.to_string()).await.expect("stored");
        assert_eq!(worker.proved(channel).await, Ok(number));
        assert_eq!(subscription.next().await.expect("there"), number.to_string());
    }
    ingest.lose(now(), channel);
    let began = Instant::now();
    while worker.proved(channel).await != Err(Doubt::Lost(1)) {
        assert!(began.elapsed() < Duration::from_secs(5), "a loss elsewhere is told");
    }
    let project = Project::default();
    assert_eq!(worker.unread(Signal::Spans, &project), 0);
    ingest.lose_unread(Signal::Spans, Some(std::slice::from_ref(&project)));
    ingest.log(channel);
    ingest.log(channel);
    ingest.flush().await.expect("stored");
    let other = self::channel(3, 2);
    let _other = worker.subscribe(other, &project);
    worker.expect(other);
    assert_eq!(worker.proved(other).await, Ok(0));
    assert_eq!((worker.unread(Signal::Spans, &project), worker.logs(channel)), (1, 2));
    let (mut hints, subject) = (worker.hints(), bus::Subject("run.1".to_owned()));
    // A hint that comes before its listener is lost, as hints may be.
    let hinted = tokio::time::timeout(Duration::from_secs(5), async {
        loop {
            ingest.hint(subject.clone());
            tokio::select! {
                hint = hints.next() => return hint,
                () = tokio::time::sleep(Duration::from_millis(50)) => {}
            }
        }
    });
    assert_eq!(hinted.await.expect("soon"), Some(subject));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_batch_travels_in_chunks() {
    let server = NatsServer::start();
    let limits = Limits {
        bytes_max: 64 << 20,
        trace_bytes_max: 32 << 20,
        project_bytes_max: 64 << 20,
        ..LIMITS
    };
    let options = || NatsOptions { limits, ..server.options() };
    let (worker, ingest) = (open_with(options(), 1).await, open_with(options(), 2).await);
    let channel = channel(1, 1);
    let mut subscription = worker.subscribe(channel, &Project::default());
    worker.expect(channel);
    let bytes: Vec<u8> = (0..5_000_000_u32).map(|number| (number % 251) as u8).collect();
    ingest.publish(now(), vec![batch(channel, bytes.clone())]).await.expect("stored");
    assert_eq!(worker.proved(channel).await, Ok(1));
    assert!(subscription.next().await.expect("there") == bytes);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_project_leaves_half_of_a_stream_to_others_whoever_publishes() {
    let server = NatsServer::start();
    let limits = Limits {
        bytes_max: 64 << 20,
        trace_bytes_max: 32 << 20,
        project_bytes_max: 64 << 20,
        ..LIMITS
    };
    let options = || NatsOptions { limits, ..server.options() };
    let worker = open_with(options(), 1).await;
    let (one, other) = (open_with(options(), 2).await, open_with(options(), 3).await);
    let [alpha, beta]: [Project; 2] = ["alpha", "beta"].map(|name| name.parse().expect("a name"));
    let of = |owner: &Project, number, bytes: usize| Batch {
        owner: Some(owner.clone()),
        ..batch(channel(1, number), vec![7; bytes])
    };
    let listen = |number, project: &Project| {
        let subscription = worker.subscribe(channel(1, number), project);
        worker.expect(channel(1, number));
        subscription
    };
    // A stream has 10 MiB.
    let _alphas = listen(1, &alpha);
    for _ in 0..5 {
        one.publish(now(), vec![of(&alpha, 1, 1_000_000)]).await.expect("stored");
    }
    assert_eq!(worker.proved(channel(1, 1)).await, Ok(5));
    let _betas = listen(2, &beta);
    let both = vec![of(&alpha, 1, 1_000_000), of(&beta, 2, 1_000_000)];
    one.publish(now(), both).await.expect("it is no reason to refuse the sender");
    assert_eq!(worker.proved(channel(1, 1)).await, Err(Doubt::Lost(1)), "before the answer");
    assert_eq!(worker.proved(channel(1, 2)).await, Ok(1), "another project");
    one.publish(now(), vec![of(&alpha, 1, 1_000_000)]).await.expect("lost as well");
    assert_eq!(worker.proved(channel(1, 1)).await, Err(Doubt::Lost(1)), "one notice is enough");
    // Another process hears of it soon.
    let (began, mut number) = (Instant::now(), 100);
    loop {
        number += 1;
        let _subscription = listen(number, &alpha);
        other.publish(now(), vec![of(&alpha, number, 100_000)]).await.expect("no refusal");
        match worker.proved(channel(1, number)).await {
            Err(Doubt::Lost(1)) => break,
            proved => assert_eq!(proved, Ok(1)),
        }
        assert!(began.elapsed() < Duration::from_secs(5), "it never hears of it");
        // Or it would use up the stream before it hears of it.
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    other.publish(now(), vec![of(&beta, 2, 1_000_000)]).await.expect("stored");
    assert_eq!(worker.proved(channel(1, 2)).await, Ok(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_readable_is_in_the_files_of_nats() {
    let server = NatsServer::start();
    let bus = open(&server, 1).await;
    publish(&bus, channel(1, 1), "a canary").await.expect("stored");
    drop(bus);
    let is_in = |text: &[u8]| {
        let mut folders = vec![server.data.path().to_owned()];
        let mut found = false;
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).expect("readable") {
                let path = entry.expect("readable").path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    let bytes = fs::read(path).expect("readable");
                    found |= bytes.windows(text.len()).any(|part| part == text);
                }
            }
        }
        found
    };
    assert!(is_in(channel(1, 1).trace.to_string().as_bytes()), "the message is there");
    assert!(!is_in(b"canary"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_nats_that_was_away_is_a_doubt_and_then_goes_on() {
    let mut server = NatsServer::start();
    // Without a new leader, which would be a doubt of its own.
    let synced = || NatsOptions { is_synced: true, ..server.options() };
    let (bus, reader) = (open_with(synced(), 1).await, open_with(synced(), 2).await);
    let (channel, elsewhere) = (channel(1, 1), self::channel(2, 3));
    let mut subscription = bus.subscribe(channel, &Project::default());
    let _elsewhere = reader.subscribe(elsewhere, &Project::default());
    bus.expect(channel);
    reader.expect(elsewhere);
    publish(&bus, channel, "a").await.expect("stored");
    assert_eq!(bus.proved(channel).await, Ok(1));
    server.kill();
    let refused = publish(&bus, channel, "b").await.expect_err("nothing is there");
    assert!(matches!(refused, PublishError::Away { .. }), "{refused}");
    assert_eq!(bus.doubt(channel), Some(Doubt::Refused(1)));
    publish(&bus, elsewhere, "b").await.expect_err("nothing is there");
    server.restart();
    publish(&bus, channel, "c").await.expect("it is back");
    assert_eq!(subscription.next().await.expect("there"), "a");
    // What was refused may be stored all the same, when the connection is back.
    while subscription.next().await.expect("there") != "c" {}
    let other = self::channel(1, 2);
    let _subscription = bus.subscribe(other, &Project::default());
    bus.expect(other);
    publish(&bus, other, "a").await.expect("stored");
    assert_eq!(bus.proved(other).await, Ok(1), "what begins now is proved");
    bus.flush().await.expect("it is back");
    for (publisher, reader, channel) in [(&reader, &bus, channel), (&bus, &reader, elsewhere)] {
        let refused = reader.proved(channel).await;
        // It may have been stored though nothing acknowledged it.
        assert!(matches!(refused, Err(Doubt::Refused(1)) | Ok(_)), "{refused:?}");
        publish(publisher, channel, "b").await.expect("stored");
        let proved = reader.proved(channel).await;
        assert!(proved.is_ok(), "another process sent it again: {proved:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_was_wiped_is_a_doubt() {
    let mut server = NatsServer::start();
    // Without a new leader, which would be a doubt of its own.
    let bus = open_with(NatsOptions { is_synced: true, ..server.options() }, 1).await;
    let channel = channel(1, 1);
    let _subscription = bus.subscribe(channel, &Project::default());
    bus.expect(channel);
    publish(&bus, channel, "a").await.expect("stored");
    assert_eq!(bus.proved(channel).await, Ok(1));
    server.kill();
    fs::remove_dir_all(server.data.path().join("jetstream")).expect("it is there");
    server.restart();
    let began = Instant::now();
    loop {
        match bus.proved(channel).await {
            Err(Doubt::StreamReplaced) => break,
            Err(Doubt::MarkerLate(_) | Doubt::MarkerRefused(_)) => {}
            other => unreachable!("{other:?}"),
        }
        assert!(began.elapsed() < Duration::from_secs(20));
    }
    let other = self::channel(1, 2);
    let mut subscription = bus.subscribe(other, &Project::default());
    bus.expect(other);
    publish(&bus, other, "b").await.expect("the stream is made anew");
    assert_eq!(bus.proved(other).await, Ok(1));
    assert_eq!(subscription.next().await.expect("there"), "b");
}

/// A node that was started again may miss what it acknowledged, unless it writes to disk first.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_was_started_again_is_a_doubt_unless_it_syncs() {
    for is_synced in [true, false] {
        let mut server = NatsServer::start();
        let bus = open_with(NatsOptions { is_synced, ..server.options() }, 1).await;
        let channel = channel(1, 1);
        let _subscription = bus.subscribe(channel, &Project::default());
        bus.expect(channel);
        publish(&bus, channel, "a").await.expect("stored");
        assert_eq!(bus.proved(channel).await, Ok(1));
        server.kill();
        server.restart();
        let began = Instant::now();
        let proved = loop {
            match bus.proved(channel).await {
                Err(Doubt::MarkerLate(_) | Doubt::MarkerRefused(_)) => {}
                proved => break proved,
            }
            assert!(began.elapsed() < Duration::from_secs(20));
        };
        let expected = if is_synced { Ok(1) } else { Err(Doubt::LeaderChanged) };
        assert_eq!(proved, expected, "synced: {is_synced}");
    }
}

/// A sender that is cut off while its spans are being stored may have given up.
#[tokio::test(flavor = "multi_thread")]
async fn a_publisher_that_is_cancelled_reports_its_loss() {
    let mut server = NatsServer::start();
    let bus = open(&server, 1).await;
    let channel = channel(1, 1);
    let _subscription = bus.subscribe(channel, &Project::default());
    bus.expect(channel);
    server.kill();
    let published = publish(&bus, channel, "a");
    let cancelled = tokio::time::timeout(Duration::from_millis(100), published).await;
    assert!(cancelled.is_err(), "it still waits for NATS");
    assert_eq!(bus.doubt(channel), Some(Doubt::Refused(1)));
}
