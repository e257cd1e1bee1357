//! Outcomes with a recorded request.

use model::{Answer, Body, Exit, Outcome, RecordedRequest, Reply, Response, Verdict::Passed};

use super::{outcome, passed};

fn pair(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

/// A request by HTTP with a JSON body, and more of both bodies and of the headers than a page shows.
pub(super) fn cut() -> Outcome {
    let items: Vec<String> = (0..900).map(|n| format!("{{\"sku\":{n},\"tags\":[]}}")).collect();
    let body = format!("[{}]", items.join(","));
    let headers = (0..20).map(|n| pair(&format!("x-number-{n}"), &"1".repeat(450))).collect();
    let request = RecordedRequest {
        protocol: "http".to_owned(),
        method: "POST".to_owned(),
        target: "http://***@127.0.0.1:8080/orders?of=<me>&\u{202e}drow".to_owned(),
        fields: vec![pair("content-type", "application/json"), pair("Authorization", "***")],
        more_fields: 2,
        body: Body::Text(body.into()),
        more_body_bytes: 1_000_000,
    };
    let lines = "::error::a line\n\tof \u{1b}[2J</pre><script>text\u{200b}\r\n".repeat(400);
    let response =
        Response { status: 201, headers, body: Body::Text(lines.into()), duration_ns: 12_340_000 };
    Outcome { request: Some(request), answer: Some(Answer::Response(response)), ..passed() }
}

/// A call of a method with a reply that its protocol counts as a failure.
pub(super) fn called() -> Outcome {
    let request = RecordedRequest {
        protocol: "grpc".to_owned(),
        method: "shop.Orders.Get".to_owned(),
        target: "127.0.0.1:9090".to_owned(),
        fields: vec![pair("x-tenant", "blue"), pair("auth", "***")],
        more_fields: 0,
        body: Body::Text("{\"id\": 17, \"with\": {\"a\\\"b\": [1, 2.50, {}]}}".into()),
        more_body_bytes: 0,
    };
    let reply = Reply {
        protocol: "grpc".to_owned(),
        status: 5,
        status_name: "NOT_FOUND".to_owned(),
        is_error: true,
        headers: vec![pair("grpc-message", "no such order")],
        body: Body::Bytes(vec![255, 0].into()),
        duration_ns: 3_000_000,
    };
    Outcome { request: Some(request), answer: Some(Answer::Reply(reply)), ..outcome(Passed) }
}

/// A command.
pub(super) fn started() -> Outcome {
    let request = RecordedRequest {
        protocol: "exec".to_owned(),
        method: String::new(),
        target: "./order.sh --sku 17".to_owned(),
        fields: vec![pair("working directory", "tests/shop"), pair("TOKEN", "***")],
        more_fields: 0,
        body: Body::default(),
        more_body_bytes: 0,
    };
    let exit = Exit {
        code: 0,
        stdout: Body::Text("1 order\n".into()),
        stderr: String::new(),
        duration_ns: 2_000_000,
    };
    Outcome { request: Some(request), answer: Some(Answer::Exit(exit)), ..outcome(Passed) }
}
