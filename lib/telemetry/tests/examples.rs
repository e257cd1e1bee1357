//! Runs the examples as programs against a peer: each delivers every span that it created, over gRPC and over HTTP.
//!
//! A plain `cargo test` builds them; with `--all-targets` or a selected test, run `cargo build --examples` first. A
//! program that is older than one of its source files is rejected.

#[expect(dead_code, reason = "a peer that only takes what it is sent")]
mod peer;

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    process::{Child, ChildStdout, Command, Stdio},
};

use peer::Peer;

const TRANSPORTS: [&str; 2] = ["grpc", "http"];

#[test]
fn a_plain_program_delivers_all_it_made() {
    for transport in TRANSPORTS {
        let peer = Peer::start();
        let said = run("plain", &peer, transport);
        assert_eq!(said, "tracer.otel: 10 of 10 delivered\n", "by {transport}");
        assert_eq!(peer.accepted(), ["step"; 10], "by {transport}");
    }
}

#[test]
fn a_runtime_of_one_thread_delivers_all_it_made() {
    for transport in TRANSPORTS {
        let peer = Peer::start();
        let said = run("current_thread", &peer, transport);
        assert_eq!(said, "tracer.otel: 10 of 10 delivered\n", "by {transport}");
        assert_eq!(peer.accepted(), ["step"; 10], "by {transport}");
    }
}

#[test]
fn a_service_delivers_all_it_made_and_shows_its_metrics() {
    for transport in TRANSPORTS {
        let peer = Peer::start();
        let mut service = Service::start(&peer.endpoint(), transport);
        for _ in 0..10 {
            assert!(service.get("/work").starts_with("HTTP/1.1 200"));
        }
        let metrics = service.get("/metrics");
        assert!(metrics.contains("otel_sdk_processor_span_processed"), "{metrics}");
        assert_eq!(service.stop(), "tracer.otel: 10 of 10 delivered\n", "by {transport}");
        assert_eq!(peer.accepted(), ["work"; 10], "by {transport}");
    }
}

#[test]
fn a_service_refuses_work_before_it_would_be_held_and_loses_nothing() {
    let address = free_address();
    let mut service = Service::start(&format!("http://{address}"), "grpc");
    let mut worked = 0;
    let refused = loop {
        let answer = service.get("/work");
        if !answer.starts_with("HTTP/1.1 200") {
            break answer;
        }
        worked += 1;
        assert!(worked < 100_000, "a buffer of 1 MiB must be full by now");
    };
    assert!(refused.starts_with("HTTP/1.1 503"), "{refused}");
    assert!(refused.contains("retry-after: 1\r\n"), "{refused}");

    let peer = Peer::start_at(address);
    assert_eq!(service.stop(), format!("tracer.otel: {worked} of {worked} delivered\n"));
    assert_eq!(peer.accepted().len(), worked);
}

/// Runs an example against this peer, and returns its output. It must exit successfully.
fn run(name: &str, peer: &Peer, transport: &str) -> String {
    let output = example(name).args([&peer.endpoint(), transport]).output().expect("it is built");
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "`{name}` by {transport}: {complaint}");
    String::from_utf8(output.stdout).expect("words")
}

/// Returns the command of an example, beside the binary of this test. It passes no `OTEL_…` variable on.
fn example(name: &str) -> Command {
    let test = std::env::current_exe().expect("a running test is a file");
    let target = test.parent().and_then(|deps| deps.parent()).expect("it stands in `deps`");
    let program = target.join("examples").join(name);
    let made_of = fs::read_to_string(program.with_extension("d")).unwrap_or_default();
    let built = fs::metadata(&program).and_then(|program| program.modified()).ok();
    for file in made_of.split_whitespace().skip(1) {
        let changed = fs::metadata(file).and_then(|file| file.modified()).ok();
        assert!(changed <= built, "`{name}` is older than `{file}`: run `cargo build --examples`");
    }
    assert!(built.is_some(), "`{name}` is not built: run `cargo build --examples`");
    let mut command = Command::new(program);
    command.env_clear();
    command
}

/// Returns the address of an unused port.
fn free_address() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    listener.local_addr().expect("bound")
}

/// The running example `axum`, and a connection to it.
struct Service {
    process: Process,
    said: BufReader<ChildStdout>,
    connection: BufReader<TcpStream>,
}

/// A process that is killed if the test fails.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        drop((self.0.kill(), self.0.wait()));
    }
}

impl Service {
    fn start(endpoint: &str, transport: &str) -> Self {
        let mut process = example("axum")
            .args([endpoint, transport])
            .stdout(Stdio::piped())
            .spawn()
            .expect("it is built");
        let mut said = BufReader::new(process.stdout.take().expect("piped"));
        let mut line = String::new();
        said.read_line(&mut line).expect("words");
        let address = line.trim().strip_prefix("listening on ").expect("it says where it listens");
        let connection = TcpStream::connect(address).expect("it listens");
        Self { process: Process(process), said, connection: BufReader::new(connection) }
    }

    /// Returns the response to a request: its head, and a body of the announced length.
    fn get(&mut self, path: &str) -> String {
        let request = format!("GET {path} HTTP/1.1\r\nhost: service\r\n\r\n");
        self.connection.get_mut().write_all(request.as_bytes()).expect("it is there");
        let mut answer = String::new();
        let mut length = 0;
        while !answer.ends_with("\r\n\r\n") {
            let start = answer.len();
            assert_ne!(self.connection.read_line(&mut answer).expect("a head"), 0, "{answer}");
            if let Some(value) = answer[start..].strip_prefix("content-length: ") {
                length = value.trim().parse().expect("a number");
            }
        }
        let mut body = vec![0; length];
        self.connection.read_exact(&mut body).expect("a body");
        answer + &String::from_utf8_lossy(&body)
    }

    /// Interrupts the service as a user would, and returns its output after that. It must exit successfully.
    fn stop(mut self) -> String {
        let id = self.process.0.id().to_string();
        let sent = Command::new("kill").args(["-s", "INT", &id]).status().expect("a system");
        assert!(sent.success(), "the service ended by itself");
        // A graceful shutdown waits for open connections.
        drop(self.connection);
        let mut said = String::new();
        self.said.read_to_string(&mut said).expect("words");
        assert!(self.process.0.wait().expect("it ends").success(), "{said}");
        said
    }
}
