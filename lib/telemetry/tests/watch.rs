//! The notices that a program receives about a failing exporter: one in time with the reason, and one when it has
//! recovered.

#[expect(dead_code, reason = "trouble needs a peer that fails in some ways")]
mod peer;

use std::{
    net::{Ipv4Addr, SocketAddr, TcpListener},
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

use opentelemetry::{
    KeyValue,
    trace::{Span, Tracer, TracerProvider},
};
use peer::{Peer, Reply};
use telemetry::{
    Delivery, Host, Roles, Status, Telemetry, Topic,
    config::{self, Defaults, Environment},
    plan::Plan,
    source::{Colour, Text, draw},
};

/// How long after the first attempt a failure is reported, at the earliest and at the latest.
const SAID: [Duration; 2] = [Duration::from_secs(5), Duration::from_millis(6500)];
/// How long any other operation may take on a busy machine.
const SOON: Duration = Duration::from_secs(20);

/// A notice that the program received.
#[derive(Clone, Debug)]
struct Heard {
    at: Instant,
    topic: Topic,
    is_over: bool,
    message: String,
}

/// A program with one exporter.
struct Program {
    telemetry: Telemetry,
    heard: Arc<Mutex<Vec<Heard>>>,
}

fn plan(exporter: &str) -> Plan {
    let document =
        format!("tracer: {{otel: {{type: open-telemetry, throttle: 20ms, {exporter}}}}}");
    let text = Text::new("app.yaml", &document);
    let (service_name, environment) = ("app".to_owned(), Environment::default());
    let defaults = Defaults { service_name, directory: None, own_directory: None, environment };
    config::plan(&text, &defaults)
        .map_err(|wrong| draw(&wrong, Colour::Never))
        .expect("no mistakes")
}

#[expect(clippy::disallowed_methods, reason = "the clock of a test")]
fn now() -> Instant {
    Instant::now()
}

impl Program {
    fn start(exporter: &str) -> Self {
        let heard = Arc::<Mutex<Vec<Heard>>>::default();
        let mut host = Host::new("app/1.0");
        let hears = Arc::clone(&heard);
        host.notice = Arc::new(move |notice| {
            let (topic, is_over) = (notice.topic, notice.is_over);
            let message = notice.message.to_owned();
            hears.lock().expect("no panic").push(Heard { at: now(), topic, is_over, message });
        });
        let telemetry = Telemetry::start(&plan(exporter), &Roles::default(), host);
        Self { telemetry: telemetry.expect("it starts"), heard }
    }

    /// Ends `count` spans with `bytes` bytes of attributes each.
    fn spans(&self, count: usize, bytes: usize) {
        let tracer = self.telemetry.tracer_provider().tracer("app");
        for _ in 0..count {
            let mut span = tracer.start("work");
            span.set_attribute(KeyValue::new("payload", "x".repeat(bytes)));
            span.end();
        }
    }

    fn status(&self) -> Status {
        self.telemetry.status().remove(0)
    }

    fn heard(&self, topic: Topic) -> Vec<Heard> {
        let heard = self.heard.lock().expect("no panic");
        heard.iter().filter(|heard| heard.topic == topic).cloned().collect()
    }

    /// Waits until there are this many notices on a topic.
    #[expect(clippy::disallowed_methods, reason = "nobody tells a test that a line was said")]
    fn until(&self, topic: Topic, lines: usize) -> Vec<Heard> {
        let begin = now();
        loop {
            let heard = self.heard(topic);
            if heard.len() >= lines {
                return heard;
            }
            assert!(
                begin.elapsed() < SOON,
                "{lines} lines on {topic:?}: {heard:?} {:?}",
                self.status()
            );
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Expects one notice of the begin, and one of the end, with these texts.
    fn begins_and_ends(&self, topic: Topic, [begins, ends]: [&str; 2]) {
        let lines = self.until(topic, 2);
        assert_eq!(lines.len(), 2, "{lines:?}");
        let (begun, over) = (&lines[0], &lines[1]);
        assert!(!begun.is_over && begun.message.contains(begins), "{begun:?}");
        assert!(over.is_over && over.message.contains(ends), "{over:?}");
    }
}

/// A failing destination, and how it is repaired.
struct Failing {
    program: Program,
    words: &'static str,
    mend: Box<dyn FnOnce(&Program) + Send>,
}

fn closed_port() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    listener.local_addr().expect("an address")
}

/// A destination that sends this reply until it is repaired.
fn answers(reply: Reply, more: &str, words: &'static str) -> Failing {
    let peer = Peer::start();
    peer.reply_always(reply);
    let program = Program::start(&format!("endpoint: '{}', {more}", peer.endpoint()));
    Failing { program, words, mend: Box::new(move |_| take_all(peer)) }
}

/// Accepts all requests from now on, for as long as the test runs.
fn take_all(peer: Peer) {
    peer.reply_always(Reply::Accept);
    std::mem::forget(peer);
}

/// Not resolvable: a label of more than 63 letters has no address anywhere, so no name server is queried.
fn not_resolvable() -> Failing {
    let program = Program::start(&format!("endpoint: 'http://{}:4317'", "nowhere".repeat(10)));
    let mend = Box::new(|program: &Program| {
        let peer = Peer::start();
        let plan = plan(&format!("endpoint: '{}'", peer.endpoint()));
        program.telemetry.reload(&plan, &Roles::default()).expect("a good plan");
        take_all(peer);
    });
    Failing { program, words: "has no address", mend }
}

fn refused() -> Failing {
    let address = closed_port();
    let program = Program::start(&format!("endpoint: 'http://{address}'"));
    let mend = Box::new(move |_: &Program| take_all(Peer::start_at(address)));
    Failing { program, words: "refused the connection: is it running?", mend }
}

/// TLS to a port without TLS, until a new plan uses plaintext.
fn no_tls() -> Failing {
    let peer = Peer::start();
    let endpoint = peer.endpoint();
    let program = Program::start(&format!("endpoint: '{}'", endpoint.replace("http:", "https:")));
    let mend = Box::new(move |program: &Program| {
        let plan = plan(&format!("endpoint: '{endpoint}'"));
        program.telemetry.reload(&plan, &Roles::default()).expect("a good plan");
        take_all(peer);
    });
    Failing { program, words: "TLS", mend }
}

#[test]
fn a_destination_that_fails_is_said_with_its_reason_and_that_it_is_back() {
    let http = "transport: http";
    let failing = [
        not_resolvable(),
        refused(),
        no_tls(),
        answers(Reply::status(401), http, "answered 401 Unauthorized; check the headers"),
        answers(Reply::status(503), http, "answered 503 Service Unavailable"),
        answers(Reply::grpc(14, "no"), "transport: grpc", "answered UNAVAILABLE: no"),
        answers(Reply::Hang, "timeout: 7s", "has not answered, and is waited for"),
    ];
    thread::scope(|scope| {
        for failing in failing {
            scope.spawn(|| is_said_once(failing));
        }
    });
}

fn is_said_once(Failing { program, words, mend }: Failing) {
    assert_eq!(program.status().state, Delivery::Waiting);
    let begin = now();
    program.spans(3, 1);
    let said = program.until(Topic::Delivery, 1);
    assert_eq!(said.len(), 1, "{said:?}");
    let line = &said[0];
    let (after, message) = (line.at - begin, &line.message);
    assert!(!line.is_over && message.contains(words), "{words}: {message}");
    assert!(message.ends_with("; kept until it does: 3 items in memory"), "{message}");
    assert!(after >= SAID[0] && after <= SAID[1], "{words}: after {after:?}");
    assert_eq!(program.status().state, Delivery::Failing);
    assert!(program.status().failing_for >= Some(SAID[0]));
    mend(&program);
    // A reload preserves the buffered items.
    program.spans(2, 1);
    let said = program.until(Topic::Delivery, 2);
    let message = &said[1].message;
    assert!(said[1].is_over && message.starts_with("delivers spans again, after "), "{message}");
    assert!(message.contains("delivered 5 items in "), "{message}");
    assert_eq!(said.len(), 2, "{said:?}");
    let status = program.status();
    assert_eq!((status.state, status.counts.trouble), (Delivery::Delivering, None));
    assert!(program.telemetry.shutdown(SOON).is_delivered());
}

#[test]
fn a_buffer_that_fills_and_then_holds_is_said() {
    let peer = Peer::start();
    peer.reply_always(Reply::Hang);
    let buffer = "timeout: 1s, buffer: {memory: 1MiB}";
    let program = Program::start(&format!("endpoint: '{}', {buffer}", peer.endpoint()));
    thread::scope(|scope| {
        scope.spawn(|| program.spans(3000, 1000));
        program.until(Topic::Hold, 1);
        assert!(program.status().buffer >= 0.8);
        peer.reply_always(Reply::Accept);
    });
    program.begins_and_ends(
        Topic::Hold,
        ["1 of the program's threads wait for room in it", "threads waited "],
    );
    program.begins_and_ends(
        Topic::Buffer,
        ["when it is full, threads that end a span wait", "has room in its buffer again"],
    );
    assert_eq!(program.heard(Topic::Drops).len(), 0);
    assert!(program.telemetry.shutdown(SOON).is_delivered());
}

#[test]
fn what_a_lossy_exporter_drops_is_said() {
    let peer = Peer::start();
    peer.reply_always(Reply::Hang);
    let lossy = "timeout: 1s, lossy: true, buffer: {memory: 1MiB}";
    let program = Program::start(&format!("endpoint: '{}', {lossy}", peer.endpoint()));
    program.spans(3000, 1000);
    program.until(Topic::Drops, 1);
    peer.reply_always(Reply::Accept);
    let dropped = program.status().counts.dropped;
    assert!(dropped > 0);
    let over = format!("drops nothing any more; {dropped} items dropped");
    program.begins_and_ends(Topic::Drops, ["drops new items, as `lossy: true` configures", &over]);
    assert_eq!(program.heard(Topic::Hold).len(), 0);
    drop(program.telemetry.shutdown(SOON));
}
