//! The sender against a peer with every relevant kind of failure. Each test of a lane ends with the one invariant:
//! accepted = delivered + queued + rejected + dropped.

mod client;
mod exchange;
mod lane;
mod lines;
mod outage;
mod push;
mod refusal;
mod tls;

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, atomic::Ordering},
    time::{Duration, Instant, SystemTime},
};

use journal::{Journal, Options};
use opentelemetry_proto::tonic::{
    common::v1::{AnyValue, any_value::Value},
    logs::v1::LogRecord,
    trace::v1::Span,
};
use prost::Message;

use super::{Lane, SendHost, Sender, peer::Peer, tally::Tally};
use crate::{
    plan::{
        Buffer, Compression, Destination, Endpoints, Exporter, Header, Otlp, Retry, Secret, Signal,
        Signals, Tls, Transport,
    },
    record,
};

const BOTH: [Transport; 2] = [Transport::Grpc, Transport::Http];

#[expect(clippy::disallowed_methods, reason = "the tests measure real waits")]
fn now() -> Instant {
    Instant::now()
}

#[expect(clippy::disallowed_methods, reason = "letters are named by the real time")]
fn wall() -> SystemTime {
    SystemTime::now()
}

fn after(seconds: f64) -> Instant {
    now() + Duration::from_secs_f64(seconds)
}

/// An endpoint with short pauses.
fn otlp(transport: Transport, endpoint: &str) -> Otlp {
    let uri = |path: &str| format!("{endpoint}{path}").parse().expect("a URI");
    let endpoints =
        Endpoints { traces: uri("/v1/traces"), logs: uri("/v1/logs"), metrics: uri("/v1/metrics") };
    Otlp {
        transport,
        endpoints,
        headers: Vec::new(),
        tls: Tls::default(),
        timeout: Duration::from_secs(5),
        compression: Compression::Gzip,
        retry: Retry { initial: Duration::from_millis(10), max: Duration::from_millis(50) },
        concurrency: 4,
    }
}

fn header(name: &'static str, value: &str) -> Header {
    Header { name: http::HeaderName::from_static(name), value: Secret::new(value) }
}

fn exporter(destination: Destination) -> Exporter {
    Exporter {
        name: "tracer.test".to_owned(),
        service_name: "shop".to_owned(),
        always: true,
        signals: Signals { spans: true, logs: true, metrics: None },
        sampling: 100.0,
        level: None,
        throttle: Duration::from_millis(20),
        lossy: false,
        buffer: Buffer::default(),
        destination,
    }
}

/// A lane with its sender, and the notices of the sender.
struct Bench {
    lane: Arc<Lane>,
    sender: Option<Sender>,
    host: SendHost,
    said: Arc<Mutex<Vec<String>>>,
    folder: tempfile::TempDir,
}

impl Bench {
    /// A lane without a sender.
    fn idle() -> Self {
        let journal = Journal::open(Options::in_memory(256 << 20, now), &head()).expect("open");
        let folder = tempfile::tempdir().expect("a folder");
        let lane = Lane::new(Arc::new(journal), Some(folder.path().join("dead-letters")));
        let said = Arc::<Mutex<Vec<String>>>::default();
        let hears = Arc::clone(&said);
        let host = SendHost {
            now,
            wall,
            random: || 0x8000_0000_0000_0000,
            user_agent: "shop/1.0".to_owned(),
            notice: Arc::new(move |exporter, message| {
                hears.lock().unwrap().push(format!("{exporter}: {message}"));
            }),
            metrics: None,
        };
        Self { lane: Arc::new(lane), sender: None, host, said, folder }
    }

    /// A lane with a sender to the peer.
    fn to(transport: Transport, peer: &Peer) -> Self {
        let mut bench = Self::idle();
        bench.send_to_peer(transport, peer);
        bench
    }

    fn send_to_peer(&mut self, transport: Transport, peer: &Peer) {
        self.send_to(&exporter(Destination::Otlp(otlp(transport, &peer.endpoint()))));
    }

    fn send_to(&mut self, exporter: &Exporter) {
        let sender = Sender::start(Arc::clone(&self.lane), exporter, &self.host);
        self.sender = Some(sender.expect("started"));
    }

    fn stop(&mut self) {
        if let Some(sender) = self.sender.take() {
            sender.stop(after(10.0));
        }
    }

    fn sender(&self) -> &Sender {
        self.sender.as_ref().expect("running")
    }

    fn tally(&self) -> &Tally {
        &self.lane.tally
    }

    /// Appends spans with these names.
    fn spans<S: AsRef<str>>(&self, names: impl IntoIterator<Item = S>) {
        for name in names {
            let span = Span { name: name.as_ref().to_owned(), ..span() };
            self.append(Signal::Spans, &span.encode_to_vec());
        }
    }

    /// Appends log records with these bodies.
    fn logs<S: AsRef<str>>(&self, bodies: impl IntoIterator<Item = S>) {
        for body in bodies {
            let body = Some(AnyValue { value: Some(Value::StringValue(body.as_ref().to_owned())) });
            self.append(Signal::Logs, &LogRecord { body, ..LogRecord::default() }.encode_to_vec());
        }
    }

    fn append(&self, signal: Signal, item: &[u8]) {
        let mut record = Vec::new();
        record::begin(&mut record, signal, |out| out.extend_from_slice(&[0x0a, 3, 0x0a, 1, b's']));
        record.push(0x12);
        prost::encoding::encode_varint(item.len() as u64, &mut record);
        record.extend_from_slice(item);
        assert_eq!(self.lane.journal.append(1, &record), journal::AppendResult::Kept);
    }

    /// Waits until nothing is queued.
    fn drain(&self) {
        self.sender().drain(after(20.0));
        let counts = self.lane.journal.counts();
        assert_eq!(counts.queued, 0, "{:?} {:?}", self.tally(), self.said());
    }

    fn said(&self) -> Vec<String> {
        self.said.lock().unwrap().clone()
    }

    /// The files of dead letters, with their requests.
    fn letters(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let Ok(entries) = self.folder.path().join("dead-letters").read_dir() else {
            return Vec::new();
        };
        let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
        paths.retain(|path| path.extension().is_some_and(|it| it == "otlp"));
        paths.sort();
        paths.into_iter().map(|path| (path.clone(), std::fs::read(path).unwrap())).collect()
    }

    /// Stops the sender and checks the invariant: delivered and rejected as given, the rest still queued.
    fn end(mut self, delivered: u64, rejected: u64) {
        self.stop();
        let counts = self.lane.journal.counts();
        let tally = self.tally();
        assert_eq!((tally.delivered(), tally.rejected()), (delivered, rejected), "{tally:?}");
        assert_eq!(counts.acknowledged, delivered + rejected, "{tally:?}");
        assert_eq!(
            counts.accepted + counts.recovered,
            tally.delivered() + counts.queued + tally.rejected() + counts.dropped
        );
    }
}

/// An empty resource.
fn head() -> Vec<u8> {
    vec![0x0a, 0]
}

fn span() -> Span {
    Span {
        trace_id: vec![7; 16],
        span_id: vec![3; 8],
        start_time_unix_nano: 1_700_000_000_000_000_000,
        end_time_unix_nano: 1_700_000_000_001_500_000,
        ..Span::default()
    }
}

fn numbered(prefix: &str, count: usize) -> Vec<String> {
    (0..count).map(|number| format!("{prefix}{number}")).collect()
}

fn sorted(mut names: Vec<String>) -> Vec<String> {
    names.sort();
    names
}

fn count(counter: &std::sync::atomic::AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}
