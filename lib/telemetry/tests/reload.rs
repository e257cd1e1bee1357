//! A reload while the program runs: accepted items are kept for every change, and the counts match.

#[expect(dead_code, reason = "a reload needs a peer that answers or is gone")]
mod peer;

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use opentelemetry::trace::{Span, Tracer, TracerProvider};
use peer::{Peer, Reply};
use telemetry::{
    Counts, Host, Report, Roles, Telemetry,
    plan::{
        Buffer, Compression, Destination, Durability, Endpoints, Exporter, Header, Otlp, Plan,
        Retry, Secret, Signals, Tls, Transport,
    },
};

/// How long a shutdown that delivers may take.
const SHUTDOWN_MAX: Duration = Duration::from_secs(10);
/// How much later than its deadline an operation may end on a busy machine.
const LATE_MAX: Duration = Duration::from_secs(3);
const RETRY: Retry = Retry { initial: Duration::from_millis(10), max: Duration::from_millis(50) };

/// A program with one exporter, and a destination that accepts nothing yet.
struct Program {
    telemetry: Telemetry,
    plan: Plan,
    peer: Peer,
    said: Arc<Mutex<Vec<String>>>,
    folder: tempfile::TempDir,
    ended: Vec<String>,
}

impl Program {
    /// Starts with a buffer in memory, or in a folder.
    fn start(durability: Option<Durability>) -> Self {
        Self::start_with(durability, |_| {})
    }

    fn start_with(durability: Option<Durability>, hosted: impl FnOnce(&mut Host)) -> Self {
        let peer = Peer::start();
        peer.reply_always(Reply::status(503));
        let folder = tempfile::tempdir().expect("a folder");
        let directory = durability.map(|_| folder.path().to_owned());
        let durability = durability.unwrap_or(Durability::Memory);
        let buffer = Buffer { directory, durability, ..Buffer::default() };
        let plan = Plan { exporters: vec![exporter("one", &peer, buffer)], ..Plan::default() };
        let mut host = Host::new("program/1.0");
        let said = Arc::new(Mutex::new(Vec::new()));
        let of_notice = Arc::clone(&said);
        host.notice = Arc::new(move |notice| {
            let message = format!("{}: {}", notice.exporter, notice.message);
            of_notice.lock().expect("no panic under this lock").push(message);
        });
        hosted(&mut host);
        let telemetry = Telemetry::start(&plan, &Roles::default(), host).expect("it starts");
        Self { telemetry, plan, peer, said, folder, ended: Vec::new() }
    }

    fn end_spans(&mut self, name: &str, count: usize) {
        let tracer = self.telemetry.tracer_provider().tracer("test");
        for number in 0..count {
            let name = format!("{name} {number}");
            tracer.start(name.clone()).end();
            self.ended.push(name);
        }
    }

    fn reload(&self, plan: &Plan) {
        self.telemetry.reload(plan, &Roles::default()).expect("a good plan");
    }

    /// Reloads the same plan with another buffer.
    fn change_buffer(&mut self, change: impl FnOnce(&mut Buffer)) {
        change(&mut self.plan.exporters[0].buffer);
        self.reload(&self.plan);
    }

    fn remove_all(&self) {
        self.reload(&Plan::default());
    }

    fn counts(&self) -> Counts {
        let counts = self.telemetry.counts();
        assert_eq!(counts.len(), 1);
        counts[0].clone()
    }

    /// Lets the destination accept everything, shuts down, and checks that every span was delivered once.
    fn deliver(mut self) -> Report {
        self.peer.reply_always(Reply::Accept);
        let report = self.telemetry.shutdown(SHUTDOWN_MAX);
        let mut accepted = self.peer.accepted();
        accepted.sort();
        self.ended.sort();
        assert_eq!(accepted, self.ended);
        assert!(report.is_delivered() && is_balanced(&report), "{report:?}");
        report
    }
}

fn exporter(name: &str, peer: &Peer, buffer: Buffer) -> Exporter {
    let uri = |path: &str| format!("http://{}/v1/{path}", peer.address()).parse().expect("a URL");
    let endpoints = Endpoints { traces: uri("traces"), logs: uri("logs"), metrics: uri("metrics") };
    Exporter {
        name: name.to_owned(),
        service_name: "program".to_owned(),
        always: true,
        signals: Signals { spans: true, logs: false, metrics: None },
        sampling: 100.0,
        level: None,
        throttle: Duration::from_millis(20),
        lossy: false,
        buffer,
        destination: Destination::Otlp(Otlp {
            transport: Transport::Http,
            endpoints,
            headers: Vec::new(),
            tls: Tls::default(),
            timeout: Duration::from_secs(5),
            compression: Compression::None,
            retry: RETRY,
            concurrency: 2,
        }),
    }
}

fn is_balanced(report: &Report) -> bool {
    report.exporters.iter().all(Counts::is_balanced)
}

/// Waits until the condition is true; fails after 20 s.
#[expect(clippy::disallowed_methods, reason = "nobody tells of what is waited for here")]
fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(20), "waited for {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

#[expect(clippy::disallowed_methods, reason = "a test is a main: this is its clock")]
fn timed<T>(run: impl FnOnce() -> T) -> (T, Duration) {
    let began = Instant::now();
    (run(), began.elapsed())
}

#[test]
fn a_changed_buffer_keeps_its_backlog() {
    let starts = [
        None,
        Some(Durability::Memory),
        Some(Durability::Process),
        Some(Durability::WriteThrough),
        Some(Durability::Host),
    ];
    for start in starts {
        let mut program = Program::start(start);
        program.end_spans("first", 700);
        program.change_buffer(|buffer| buffer.memory *= 2);
        program.end_spans("more memory", 10);
        program.change_buffer(|buffer| buffer.disk /= 2);
        program.end_spans("less disk", 10);
        program.change_buffer(|buffer| buffer.durability = Durability::WriteThrough);
        program.end_spans("through", 10);
        program.change_buffer(|buffer| buffer.durability = Durability::Memory);
        program.change_buffer(|buffer| buffer.hold = Some(Duration::from_secs(1)));
        program.end_spans("last", 10);
        let counts = program.counts();
        assert_eq!((counts.accepted, counts.queued, counts.dropped), (740, 740, 0), "{start:?}");
        let report = program.deliver();
        assert_eq!(report.sum(|counts| counts.accepted), 740, "{start:?}");
    }
}

#[test]
fn producers_lose_nothing_while_buffers_change() {
    let mut program = Program::start(Some(Durability::Process));
    let is_over = AtomicBool::new(false);
    let ended = thread::scope(|scope| {
        let (telemetry, is_over) = (&program.telemetry, &is_over);
        let producer = scope.spawn(move || {
            let tracer = telemetry.tracer_provider().tracer("test");
            let mut ended = Vec::new();
            while !is_over.load(Ordering::Relaxed) {
                let name = format!("under way {}", ended.len());
                tracer.start(name.clone()).end();
                ended.push(name);
                thread::yield_now();
            }
            ended
        });
        for round in 0..20 {
            let mut plan = program.plan.clone();
            plan.exporters[0].buffer.memory += round;
            plan.exporters[0].buffer.durability =
                if round % 2 == 0 { Durability::Memory } else { Durability::Host };
            program.reload(&plan);
        }
        is_over.store(true, Ordering::Relaxed);
        producer.join().expect("no panic")
    });
    assert!(!ended.is_empty());
    program.ended = ended;
    drop(program.deliver());
}

#[test]
fn an_exporter_that_comes_back_goes_on() {
    for start in [None, Some(Durability::Process)] {
        let mut program = Program::start(start);
        program.end_spans("before", 600);
        program.remove_all();
        assert!(program.telemetry.counts().is_empty());
        // Like reading a file that is being written.
        program.remove_all();
        program.plan.exporters[0].buffer.memory *= 2;
        let (_, took) = timed(|| program.reload(&program.plan));
        assert!(took < LATE_MAX, "{took:?}");
        program.end_spans("after", 10);
        assert_eq!(program.counts().queued, 610, "{start:?}");
        let report = program.deliver();
        assert_eq!(report.sum(|counts| counts.accepted), 610, "{start:?}");
        assert_eq!(report.exporters.len(), 1);
    }
}

/// Whether the clock below is past the deadline of a draining exporter.
static IS_AHEAD: AtomicBool = AtomicBool::new(false);

#[expect(clippy::disallowed_methods, reason = "a test is a main: this is its clock")]
fn clock() -> Instant {
    let ahead = if IS_AHEAD.load(Ordering::SeqCst) { 20 } else { 0 };
    Instant::now() + Duration::from_secs(ahead)
}

#[test]
fn what_a_retiree_left_is_told_and_found_by_the_next_of_its_name() {
    let mut program = Program::start_with(Some(Durability::Process), |host| host.now = clock);
    program.end_spans("before", 600);
    program.remove_all();
    IS_AHEAD.store(true, Ordering::SeqCst);
    wait_for("its last words", || {
        let said = program.said.lock().expect("no panic");
        said.iter().any(|said| said.contains("600 items not delivered"))
    });
    IS_AHEAD.store(false, Ordering::SeqCst);
    let said = program.said.lock().expect("no panic").join("\n");
    assert!(said.contains(&program.folder.path().join("one").display().to_string()), "{said}");
    program.reload(&program.plan);
    assert_eq!(program.counts().recovered, 600);
    program.end_spans("after", 5);
    let report = program.deliver();
    assert_eq!(report.sum(|counts| counts.accepted), 605, "no item is in the books twice");
}

#[test]
fn the_books_of_retirees_are_in_the_report() {
    let mut program = Program::start(None);
    program.peer.reply_always(Reply::Accept);
    program.end_spans("delivered", 10);
    wait_for("the acknowledgement", || program.counts().queued == 0);
    program.remove_all();
    let mut other = program.plan.clone();
    other.exporters[0].name = "two".to_owned();
    program.reload(&other);
    program.end_spans("by two", 3);
    let report = program.telemetry.shutdown(SHUTDOWN_MAX);
    let counts = |name: &str| {
        let of: Vec<_> = report.exporters.iter().filter(|it| it.exporter == name).collect();
        assert_eq!(of.len(), 1, "{report:?}");
        (of[0].accepted, of[0].delivered)
    };
    assert_eq!((counts("one"), counts("two")), ((10, 10), (3, 3)));
    assert!(is_balanced(&report) && report.is_delivered());
}

#[test]
fn a_shutdown_keeps_its_deadline_with_retirees() {
    for (start, max) in [(None, 0), (Some(Durability::Process), 0), (None, 300)] {
        let mut program = Program::start(start);
        program.end_spans("never sent", 20);
        program.remove_all();
        let max = Duration::from_millis(max);
        let (report, took) = timed(|| program.telemetry.shutdown(max));
        assert!(took >= max && took < max + LATE_MAX, "{took:?}");
        let (queued, dropped) = if start.is_some() { (20, 0) } else { (0, 20) };
        assert_eq!(report.sum(|counts| counts.accepted), 20);
        assert_eq!(report.sum(|counts| counts.queued), queued);
        assert_eq!(report.sum(|counts| counts.dropped), dropped);
        assert!(is_balanced(&report));
        let said = program.said.lock().expect("no panic").join("\n");
        assert!(said.contains("20 items not delivered"), "{said}");
    }
}

#[test]
fn a_drop_does_not_wait_for_retirees() {
    let mut program = Program::start(Some(Durability::Process));
    program.end_spans("kept", 20);
    program.remove_all();
    let Program { telemetry, plan, folder, .. } = program;
    let ((), took) = timed(|| drop(telemetry));
    assert!(took < LATE_MAX, "{took:?}");
    let next = Telemetry::start(&plan, &Roles::default(), Host::new("program/1.0"));
    assert_eq!(next.expect("it starts").counts()[0].recovered, 20);
    drop(folder);
}

#[test]
fn a_shutdown_may_take_for_ever() {
    let mut program = Program::start(None);
    program.peer.reply_always(Reply::Accept);
    program.end_spans("sent", 3);
    assert!(program.telemetry.shutdown(Duration::MAX).is_delivered());
}

/// Whether the random number source below panics, and so kills the thread that calls it.
static IS_DEADLY: AtomicBool = AtomicBool::new(false);
static HAS_KILLED: AtomicBool = AtomicBool::new(false);

fn dice() -> u64 {
    if IS_DEADLY.load(Ordering::SeqCst) {
        HAS_KILLED.store(true, Ordering::SeqCst);
        std::panic::resume_unwind(Box::new("thrown by a test"));
    }
    7
}

#[test]
fn a_sender_that_died_is_replaced_by_the_same_plan() {
    IS_DEADLY.store(true, Ordering::SeqCst);
    let mut program = Program::start_with(None, |host| host.random = dice);
    program.end_spans("kept", 20);
    wait_for("the end of the sender", || HAS_KILLED.load(Ordering::SeqCst));
    IS_DEADLY.store(false, Ordering::SeqCst);
    program.peer.reply_always(Reply::Accept);
    wait_for("the next sender", || {
        program.reload(&program.plan);
        program.peer.accepted().len() == 20
    });
    let report = program.telemetry.shutdown(SHUTDOWN_MAX);
    assert!(report.is_delivered() && is_balanced(&report), "{report:?}");
}

#[test]
fn a_listener_that_panics_ends_nothing() {
    let mut program = Program::start_with(None, |host| {
        host.notice = Arc::new(|_| std::panic::resume_unwind(Box::new("thrown by a test")));
    });
    program.peer.reply_next([Reply::status(401)]);
    program.peer.reply_always(Reply::Accept);
    program.end_spans("kept", 5);
    program.peer.wait_for("the refusal", |seen| !seen.is_empty());
    let report = program.telemetry.shutdown(SHUTDOWN_MAX);
    assert!(report.is_delivered(), "{report:?}");
}

#[test]
fn a_plan_that_cannot_be_carried_out_changes_nothing() {
    let mut program = Program::start(Some(Durability::Process));
    program.end_spans("before", 5);
    let mut changed = program.plan.clone();
    changed.exporters[0].buffer.memory *= 2;
    let mut wrong = exporter("two", &program.peer, Buffer::default());
    if let Destination::Otlp(otlp) = &mut wrong.destination {
        otlp.endpoints.traces = "https://localhost:1/v1/traces".parse().expect("a URL");
        otlp.tls.ca_file = Some(program.folder.path().join("nowhere.pem"));
        let name = "authorization".parse().expect("a name");
        otlp.headers = vec![Header { name, value: Secret::new("secret") }];
    }
    changed.exporters.push(wrong);
    let refused = program.telemetry.reload(&changed, &Roles::default());
    let message = refused.expect_err("no such file").to_string();
    assert!(message.contains("nowhere.pem"), "{message}");
    program.end_spans("after", 5);
    assert_eq!(program.counts().queued, 10);
    drop(program.deliver());
}

#[test]
fn what_an_earlier_configuration_left_is_said_at_the_start() {
    let mut program = Program::start(Some(Durability::Process));
    program.end_spans("kept", 3);
    assert_eq!(program.telemetry.shutdown(Duration::ZERO).exporters[0].queued, 3);
    let directory = program.folder.path().to_owned();
    let start = |name: &str, said: &Arc<Mutex<Vec<String>>>| {
        let buffer = Buffer { directory: Some(directory.clone()), ..Buffer::default() };
        let exporters = vec![exporter(name, &program.peer, buffer)];
        let plan = Plan { exporters, ..Plan::default() };
        let mut host = Host::new("program/1.0");
        let said = Arc::clone(said);
        host.notice = Arc::new(move |notice| {
            let message = format!("{}: {}", notice.exporter, notice.message);
            said.lock().expect("no panic under this lock").push(message);
        });
        Telemetry::start(&plan, &Roles::default(), host).expect("it starts")
    };
    let said = Arc::default();
    let other = start("other", &said);
    let expected = format!(
        "one: `{}` has 3 items to deliver, and no exporter of this configuration sends what is there: an exporter of this name \
         and `directory` that sends what it had delivers it; if it is not needed, delete the folder",
        directory.join("one").display()
    );
    assert_eq!(*said.lock().expect("no panic"), [expected]);
    drop(other);
    // As the notice states: with such an exporter the items are delivered, and there is no notice.
    program.peer.reply_always(Reply::Accept);
    let said = Arc::default();
    assert!(start("one", &said).shutdown(SHUTDOWN_MAX).is_delivered());
    assert_eq!(program.peer.accepted(), ["kept 0", "kept 1", "kept 2"]);
    assert_eq!(*said.lock().expect("no panic"), [""; 0]);
}
