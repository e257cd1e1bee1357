//! The outcome of each response, over both transports, and the contents of every request.

use std::{sync::mpsc, time::Duration};

use bytes::Bytes;
use opentelemetry_proto::tonic::{
    collector::trace::v1::ExportTraceServiceRequest,
    trace::v1::{ResourceSpans, ScopeSpans, Span},
};
use prost::Message;

use super::{BOTH, header, now, otlp};
use crate::{
    plan::{Compression, Otlp, Signal, Transport},
    send::{
        Answer, Client,
        answer::WhyKind,
        peer::{Peer, Reply},
    },
};

pub(super) fn request(name: &str) -> Bytes {
    let spans = vec![Span { name: name.to_owned(), ..Span::default() }];
    let scope_spans = vec![ScopeSpans { spans, ..ScopeSpans::default() }];
    let resource_spans = vec![ResourceSpans { scope_spans, ..ResourceSpans::default() }];
    ExportTraceServiceRequest { resource_spans }.encode_to_vec().into()
}

/// Sends requests one after the other with one client.
pub(super) fn send(otlp: &Otlp, signals: &[Signal]) -> Vec<Answer> {
    let client = Client::new(otlp, "shop/1.0").expect("a client");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut answers = Vec::new();
        for signal in signals {
            let body = if *signal == Signal::Spans { request("one") } else { Bytes::new() };
            answers.push(client.send(*signal, body).await);
        }
        answers
    })
}

fn send_one(otlp: &Otlp) -> Answer {
    send(otlp, &[Signal::Spans]).remove(0)
}

/// Returns the name of an outcome, with its kind.
fn class(answer: &Answer) -> (&'static str, Option<WhyKind>) {
    match answer {
        Answer::Accepted => ("accepted", None),
        Answer::Partial { .. } => ("partial", None),
        Answer::Later { why, .. } => ("later", Some(why.kind)),
        Answer::Misconfigured(why) => ("misconfigured", Some(why.kind)),
        Answer::TooLarge(why) => ("too large", Some(why.kind)),
        Answer::Poison(why) => ("poison", Some(why.kind)),
    }
}

#[test]
fn each_http_status_has_its_answer() {
    let peer = Peer::start();
    let cases = [
        (200, "accepted"),
        (202, "accepted"),
        (204, "accepted"),
        (301, "misconfigured"),
        (307, "misconfigured"),
        (400, "misconfigured"),
        (401, "misconfigured"),
        (403, "misconfigured"),
        (404, "misconfigured"),
        (405, "misconfigured"),
        (408, "later"),
        (413, "too large"),
        (415, "misconfigured"),
        (422, "misconfigured"),
        (429, "later"),
        (500, "later"),
        (501, "later"),
        (502, "later"),
        (503, "later"),
        (504, "later"),
    ];
    for (status, word) in cases {
        peer.reply_next([Reply::status(status)]);
        let answer = send_one(&otlp(Transport::Http, &peer.endpoint()));
        let kind = (word != "accepted").then_some(WhyKind::Status(status));
        assert_eq!(class(&answer), (word, kind), "{answer:?}");
    }
}

#[test]
fn each_grpc_status_has_its_answer() {
    let peer = Peer::start();
    let cases = [
        (0, "", "accepted"),
        (1, "", "later"),
        (2, "", "later"),
        (3, "", "poison"),
        (4, "", "later"),
        (5, "", "misconfigured"),
        (6, "", "poison"),
        (7, "", "misconfigured"),
        (8, "", "later"),
        (8, "quota of 5 requests", "later"),
        (8, "grpc: received message larger than max (5 vs. 4)", "too large"),
        (8, "more than 10000 bytes; send smaller batches", "too large"),
        (9, "", "poison"),
        (10, "", "later"),
        (11, "", "later"),
        (11, "Error, decoded message length too large: found 5 bytes", "too large"),
        (12, "", "misconfigured"),
        (13, "", "later"),
        (14, "", "later"),
        (15, "", "later"),
        (16, "", "misconfigured"),
        (99, "", "later"),
    ];
    for (code, message, word) in cases {
        peer.reply_next([Reply::grpc(code, message)]);
        let answer = send_one(&otlp(Transport::Grpc, &peer.endpoint()));
        let kind = (word != "accepted").then_some(WhyKind::Grpc(code));
        assert_eq!(class(&answer), (word, kind), "{answer:?}");
    }
}

#[test]
fn a_proxy_before_a_grpc_server_has_its_say() {
    let peer = Peer::start();
    let cases = [
        (400, "later"),
        (401, "misconfigured"),
        (404, "misconfigured"),
        (413, "too large"),
        (429, "later"),
        (502, "later"),
        (503, "later"),
    ];
    for (status, word) in cases {
        peer.reply_next([Reply::status(status)]);
        let answer = send_one(&otlp(Transport::Grpc, &peer.endpoint()));
        assert_eq!(class(&answer), (word, Some(WhyKind::Status(status))), "{answer:?}");
    }
    // A web server that speaks HTTP/2 is not a gRPC server, regardless of its status.
    peer.reply_next([Reply::status(200)]);
    let answer = send_one(&otlp(Transport::Grpc, &peer.endpoint()));
    assert_eq!(class(&answer), ("misconfigured", Some(WhyKind::Protocol)));
}

#[test]
fn a_refusal_is_about_the_data_where_the_data_was_read() {
    let peer = Peer::start();
    let go = "Client sent an HTTP request to an HTTPS server.\n";
    let nginx = "<center>The plain HTTP request was sent to HTTPS port</center>";
    // As the first response, and as one after a success.
    let cases = [
        (400, "application/x-protobuf", "\x12\x03odd", ["poison", "poison"]),
        (422, "application/json; charset=utf-8", "{\"message\":\"odd\"}", ["poison", "poison"]),
        (400, "text/plain; charset=utf-8", "odd", ["misconfigured", "poison"]),
        (402, "text/html", "<html>pay!</html>", ["misconfigured", "poison"]),
        (400, "text/plain; charset=utf-8", go, ["misconfigured", "misconfigured"]),
        (400, "text/html", nginx, ["misconfigured", "misconfigured"]),
        (400, "text/plain", "http: request body too large", ["too large", "too large"]),
        (400, "application/json", "attribute value too large", ["poison", "poison"]),
    ];
    for (status, media, body, words) in cases {
        let headers = vec![("content-type", media.to_owned())];
        let reply = Reply::Http { status, headers, body };
        peer.reply_next([reply.clone(), Reply::Accept, reply]);
        let answers = send(&otlp(Transport::Http, &peer.endpoint()), &[Signal::Spans; 3]);
        let classes = [class(&answers[0]), class(&answers[2])];
        assert_eq!(classes, words.map(|word| (word, Some(WhyKind::Status(status)))), "{body}");
    }
}

#[test]
fn a_web_page_is_no_success() {
    let peer = Peer::start();
    let headers = vec![("content-type", "text/html; charset=utf-8".to_owned())];
    peer.reply_next([Reply::Http { status: 200, headers, body: "<html>Welcome</html>" }]);
    let answer = send_one(&otlp(Transport::Http, &peer.endpoint()));
    assert_eq!(class(&answer), ("misconfigured", Some(WhyKind::Protocol)));
}

#[test]
fn partial_success_is_read() {
    for transport in BOTH {
        let peer = Peer::start();
        peer.reply_next([Reply::Partial { rejected: 3, message: "too old" }]);
        peer.reply_next([Reply::Partial { rejected: 0, message: "just a warning" }]);
        let otlp = otlp(transport, &peer.endpoint());
        let answers = send(&otlp, &[Signal::Spans, Signal::Spans]);
        let partial = Answer::Partial { rejected: 3, message: "too old".to_owned() };
        assert_eq!(answers, [partial, Answer::Accepted]);
    }
}

#[test]
fn the_time_to_come_back_is_read() {
    let peer = Peer::start();
    let date = ("date", "Sun, 06 Nov 1994 08:49:37 GMT".to_owned());
    let retry = |text: &str| ("retry-after", text.to_owned());
    let cases = [
        (vec![retry("7")], Some(7.0)),
        (vec![date.clone(), retry("Sun, 06 Nov 1994 08:50:07 GMT")], Some(30.0)),
        (vec![date.clone(), retry("Sun, 06 Nov 1994 08:00:00 GMT")], Some(0.0)),
        (vec![retry("soon")], None),
        (vec![], None),
    ];
    for (headers, seconds) in cases {
        peer.reply_next([Reply::Http { status: 503, headers, body: "" }]);
        let answer = send_one(&otlp(Transport::Http, &peer.endpoint()));
        let Answer::Later { after, .. } = answer else { panic!("{answer:?}") };
        assert_eq!(after.map(|after| after.as_secs_f64()), seconds);
    }
    peer.reply_next([Reply::grpc_after(14, 1500), Reply::grpc_after(8, 20)]);
    // Invalid base64, or an invalid status, must not cause a failure.
    let odd = |details: &str| Reply::Grpc { code: 14, message: "", details: details.to_owned() };
    peer.reply_next([odd("%%%"), odd("AAAA")]);
    let answers = send(&otlp(Transport::Grpc, &peer.endpoint()), &[Signal::Spans; 4]);
    let afters: Vec<_> = answers
        .iter()
        .map(|answer| match answer {
            Answer::Later { after, .. } => after.map(|after| after.as_millis()),
            answer => panic!("{answer:?}"),
        })
        .collect();
    assert_eq!(afters, [Some(1500), Some(20), None, None]);
}

#[test]
fn headers_go_with_every_request_of_both_transports() {
    for transport in BOTH {
        let peer = Peer::start();
        let mut otlp = otlp(transport, &peer.endpoint());
        otlp.headers = vec![
            header("authorization", "Bearer sesame-open"),
            header("x-scope", "a"),
            header("x-scope", "b"),
            header("content-type", "text/plain"),
        ];
        let signals = Signal::ALL;
        assert_eq!(send(&otlp, &signals), [Answer::Accepted, Answer::Accepted, Answer::Accepted]);
        let seen = peer.seen();
        for seen in &seen {
            assert_eq!(seen.header("authorization"), Some("Bearer sesame-open"));
            assert_eq!(seen.headers.get_all("x-scope").iter().count(), 2);
            assert_eq!(seen.header("user-agent"), Some("shop/1.0"));
        }
        let media = if transport == Transport::Grpc {
            "application/grpc"
        } else {
            "application/x-protobuf"
        };
        assert_eq!(seen[0].header("content-type"), Some(media));
        let paths: Vec<_> = seen.iter().map(|seen| seen.path.as_str()).collect();
        if transport == Transport::Grpc {
            assert_eq!(seen[0].header("te"), Some("trailers"));
            assert_eq!(paths[1], "/opentelemetry.proto.collector.logs.v1.LogsService/Export");
            assert_eq!(seen[0].version, http::Version::HTTP_2);
        } else {
            assert_eq!(paths, ["/v1/traces", "/v1/logs", "/v1/metrics"]);
        }
        assert!(seen.iter().all(|it| it.connection == 0), "one connection serves all");
    }
}

#[test]
fn bodies_are_compressed_or_not() {
    for transport in BOTH {
        let peer = Peer::start();
        for compression in [Compression::Gzip, Compression::None] {
            let otlp = Otlp { compression, ..otlp(transport, &peer.endpoint()) };
            assert_eq!(send_one(&otlp), Answer::Accepted);
        }
        let seen = peer.seen();
        assert_eq!([&seen[0].body, &seen[1].body], [&request("one"), &request("one")]);
        let name = if transport == Transport::Grpc { "grpc-encoding" } else { "content-encoding" };
        assert_eq!([seen[0].header(name), seen[1].header(name)], [Some("gzip"), None]);
        assert_ne!(seen[0].wire_bytes, seen[0].body.len());
        assert_eq!(seen[1].wire_bytes, seen[1].body.len());
    }
}

#[test]
fn a_peers_words_are_told_without_our_secrets() {
    let peer = Peer::start();
    let mut otlp = otlp(Transport::Http, &peer.endpoint().replace("://", "://user:password@"));
    otlp.headers = vec![header("authorization", "Bearer sesame-open")];
    let body = "no such token:\nsesame-open";
    peer.reply_next([Reply::Http { status: 401, headers: Vec::new(), body }]);
    let Answer::Misconfigured(why) = send_one(&otlp) else { panic!("not so") };
    let place = format!("{}/v1/traces", peer.endpoint());
    let said = "401 Unauthorized: no such token: ***; check the headers of this exporter";
    assert_eq!(why.message, format!("`{place}` answered {said}"));
}

#[test]
fn secrets_are_hidden_before_words_are_cut_and_however_short() {
    let peer = Peer::start();
    let mut otlp = otlp(Transport::Http, &peer.endpoint());
    otlp.headers = ["Bearer sesame-open", "pin", "pin-and-more"]
        .map(|value| header("authorization", value))
        .into();
    let cut: &str = Box::leak(format!("{}sesame-open", "-".repeat(295)).into_boxed_str());
    for (body, said) in [("not pin-and-more, not pin", "not ***, not ***"), (cut, "-***;")] {
        peer.reply_next([Reply::Http { status: 401, headers: Vec::new(), body }]);
        let Answer::Misconfigured(why) = send_one(&otlp) else { panic!("not so") };
        assert!(why.message.contains(said) && !why.message.contains("sesa"), "{}", why.message);
    }
    // Neither is the query of a redirect target, which may be our own.
    let headers = vec![("location", "https://there/v1/traces?key=hidden".to_owned())];
    peer.reply_next([Reply::Http { status: 301, headers, body: "" }]);
    let Answer::Misconfigured(why) = send_one(&otlp) else { panic!("not so") };
    assert!(why.message.ends_with("; set the endpoint to `https://there/v1/traces`"), "{why:?}");
}

#[test]
fn failures_of_the_network_are_told_apart() {
    for transport in BOTH {
        let gone = {
            let peer = Peer::start();
            peer.endpoint()
        };
        let cases =
            [(gone.as_str(), WhyKind::Refused), ("http://no-such-host.invalid:4317", WhyKind::Dns)];
        for (endpoint, kind) in cases {
            let answer = send_one(&otlp(transport, endpoint));
            assert_eq!(class(&answer), ("later", Some(kind)), "{answer:?}");
        }
        for reply in [Reply::ResetInRequest, Reply::ResetBeforeAnswer, Reply::ResetInAnswer] {
            let peer = Peer::start();
            peer.reply_next([reply]);
            let answers = send(&otlp(transport, &peer.endpoint()), &[Signal::Spans; 2]);
            assert_eq!(class(&answers[0]), ("later", Some(WhyKind::Reset)), "{answers:?}");
            assert_eq!(answers[1], Answer::Accepted);
        }
    }
}

#[test]
fn a_peer_of_another_protocol_is_said_to_be_one() {
    // A server that sends a greeting of another protocol, regardless of the request.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let (stop, stopped) = mpsc::channel::<()>();
    let thread = std::thread::spawn(move || {
        for _ in BOTH {
            let (mut stream, _) = listener.accept().unwrap();
            std::io::Write::write_all(&mut stream, b"220 mail.example.com ESMTP ready\r\n")
                .unwrap();
            stopped.recv().unwrap();
        }
    });
    for transport in BOTH {
        let answer = send_one(&otlp(transport, &endpoint));
        let Answer::Later { why, .. } = answer else { panic!("{answer:?}") };
        // With HTTP/2 the error sometimes only reports that the connection is closed.
        assert!([WhyKind::Protocol, WhyKind::Reset].contains(&why.kind), "{why:?}");
        assert!(why.message.contains("port") && why.message.contains("transport"), "{why:?}");
        stop.send(()).unwrap();
    }
    thread.join().unwrap();
}

#[test]
fn a_hung_peer_costs_the_timeout_and_its_connection() {
    for transport in BOTH {
        let peer = Peer::start();
        peer.reply_next([Reply::Hang]);
        let timeout = Duration::from_millis(200);
        let otlp = Otlp { timeout, ..otlp(transport, &peer.endpoint()) };
        let start = now();
        let answers = send(&otlp, &[Signal::Spans; 2]);
        assert_eq!(class(&answers[0]), ("later", Some(WhyKind::Timeout)));
        assert_eq!(answers[1], Answer::Accepted);
        assert!(start.elapsed() >= timeout && start.elapsed() < timeout * 20);
        assert_eq!(peer.seen().iter().map(|it| it.connection).collect::<Vec<_>>(), [0, 1]);
    }
}
