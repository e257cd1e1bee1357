//! Where a redirect leads, and which headers and body are sent along.

use std::time::Duration;

use model::{Body, HttpRequest, NoAnswerKind};

use crate::{
    firing::{get, no_answer, response, triggers},
    server::Server,
};

fn redirected(server: &Server, path: &str, redirects_max: u32) -> HttpRequest {
    HttpRequest { redirects_max, ..get(&server.url("http", "127.0.0.1", path)) }
}

/// Each status with each kind of method: the request that arrives at the end.
#[tokio::test]
async fn method_and_body_go_along_where_they_must() {
    let server = Server::plain().await;
    let cases = [
        (301, "POST", "GET"),
        (302, "PUT", "GET"),
        (303, "DELETE", "GET"),
        (307, "POST", "POST"),
        (308, "PATCH", "PATCH"),
        (301, "GET", "GET"),
        (303, "HEAD", "HEAD"),
    ];
    for (status, method, arrives) in cases {
        let request = HttpRequest {
            method: method.to_owned(),
            headers: vec![
                ("Content-Type".to_owned(), "text/plain".to_owned()),
                ("X-Kept".to_owned(), "yes".to_owned()),
            ],
            auth: Some(("Authorization".to_owned(), "Bearer t".to_owned())),
            body: Body::Text("all".into()),
            ..redirected(&server, &format!("/leads/{status}?../there%20?a=1"), 10)
        };
        assert_eq!(response(&triggers(&[]), request).await.status, 200, "{status} {method}");
        let [first, last] = <[String; 2]>::try_from(server.requests()).expect("two requests");
        let what = format!("{status} {method}: {last}");
        assert!(last.starts_with(&format!("{arrives} /there%20?a=1 ")), "{what}");
        assert!(last.contains("x-kept: yes\n"), "{what}");
        assert!(last.contains("authorization: Bearer t\n"), "{what}");
        let keeps_body = arrives == method;
        assert_eq!(last.contains("content-type: text/plain\n"), keeps_body, "{what}");
        assert_eq!(last.ends_with("\n\nall"), keeps_body, "{what}");
        let told = |text: &str| text.lines().filter(|line| line.starts_with("trace")).count();
        assert_eq!((told(&first), told(&last)), (2, 2), "{what}: told of the trace each time");
        server.seen.requests.lock().expect("no panic").clear();
    }
}

/// Credentials are not sent to another origin, and neither is the `Host` header that was meant for the first one.
#[tokio::test]
async fn credentials_stay_with_their_origin() {
    let (first, second) = (Server::plain().await, Server::plain().await);
    let there = second.url("http", "localhost", "/there");
    let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    for (name, value) in [("X-Api-Key", "s3cr3t-key"), ("Authorization", "Basic czNjcjN0")] {
        let request = HttpRequest {
            headers: vec![
                header("Cookie", "session=s3cr3t"),
                header("Authorization", "Bearer s3cr3t"),
                header("Host", "shop.example"),
                header("X-Kept", "yes"),
            ],
            auth: Some(header(name, value)),
            ..redirected(&first, &format!("/leads/307?{there}"), 1)
        };
        assert_eq!(response(&triggers(&[]), request).await.status, 200);
        let asked = first.requests().pop().expect("a request");
        assert!(asked.contains(value) && asked.contains("session=s3cr3t"), "{asked}");
        let asked = second.requests().pop().expect("a request");
        for secret in ["s3cr3t", "czNjcjN0", "shop.example"] {
            assert!(!asked.contains(secret), "{asked}");
        }
        assert!(asked.contains("x-kept: yes\n"), "{asked}");
        assert!(asked.contains(&format!("host: localhost:{}\n", second.address.port())), "{asked}");
        assert!(asked.contains("traceparent: "), "{asked}");
    }
}

/// A header with a secret stays with its origin; a secret body that must be sent along stops the redirect.
#[tokio::test]
async fn what_holds_a_secret_stays_with_its_origin() {
    let (first, second) = (Server::plain().await, Server::plain().await);
    let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    for (status, server, arrives) in
        [(307, &second, false), (308, &first, true), (303, &second, true)]
    {
        let there = server.url("http", "127.0.0.1", "/there");
        let request = HttpRequest {
            method: "POST".to_owned(),
            headers: vec![
                header("X-Api-Key", "written"),
                header("X-Mine", "s3cr3t"),
                header("X-Kept", "yes"),
            ],
            secret_headers: vec!["X-Mine".to_owned()],
            body: Body::Text("password=s3cr3t".into()),
            is_body_secret: true,
            ..redirected(&first, &format!("/leads/{status}?{there}"), 1)
        };
        let expected = if arrives { 200 } else { status };
        assert_eq!(response(&triggers(&[]), request).await.status, expected, "{status}");
    }
    let asked = second.requests();
    assert!(asked.len() == 1 && asked[0].contains("x-kept: yes\n"), "{asked:?}");
    assert!(!asked[0].contains("s3cr3t") && !asked[0].contains("written"), "{asked:?}");
    let mut asked = first.requests().into_iter().filter(|asked| asked.contains("/there "));
    assert!(asked.all(|asked| asked.contains("x-mine: s3cr3t\n")), "its own origin");
}

/// With no redirects allowed, a redirect is the response; so is one without a valid location.
#[tokio::test]
async fn a_redirect_that_is_not_followed_is_the_answer() {
    let server = Server::plain().await;
    let triggers = triggers(&[]);
    for (path, redirects_max, status) in [
        ("/leads/302?/there", 0, 302),
        ("/leads/302", 10, 302),
        ("/leads/301?mailto:a@b", 10, 301),
        ("/leads/307?http://user:secret@localhost/", 10, 307),
        ("/leads/304?/there", 10, 304),
    ] {
        let said = response(&triggers, redirected(&server, path, redirects_max)).await;
        assert_eq!(said.status, status, "{path}");
    }
}

/// Too many redirects end with an error that states it.
#[tokio::test]
async fn a_loop_ends() {
    let (first, second) = (Server::plain().await, Server::plain().await);
    let mut path = "/there".to_owned();
    for hop in 0..4 {
        let server = if hop % 2 == 0 { &first } else { &second };
        path = format!("/leads/302?{}", server.url("http", "127.0.0.1", &path));
    }
    let triggers = triggers(&[]);
    assert_eq!(response(&triggers, redirected(&first, &path, 4)).await.status, 200);
    let answer = no_answer(&triggers, redirected(&first, &path, 3)).await;
    assert_eq!(answer.kind, NoAnswerKind::Redirects, "{}", answer.message);
    assert!(answer.message.starts_with("redirected more than 3 times"), "{}", answer.message);
}

/// A failure after a redirect counts as sent, and names the target of the redirect.
#[tokio::test]
async fn a_redirect_to_nobody_is_no_unsent_request() {
    let (server, gone) = (Server::plain().await, Server::plain().await);
    let url = gone.url("http", "127.0.0.1", "/");
    drop(gone);
    crate::server::until("the listener is closed", || {
        std::net::TcpStream::connect(url.trim_start_matches("http://").trim_end_matches('/'))
            .is_err()
    })
    .await;
    let request = redirected(&server, &format!("/leads/307?{url}"), 10);
    let answer = no_answer(&triggers(&[]), request).await;
    assert_eq!(answer.kind, NoAnswerKind::Connection, "{}", answer.message);
    assert!(answer.message.contains("redirected to `127.0.0.1:"), "{}", answer.message);
    assert!(answer.message.contains("nobody answers at"), "{}", answer.message);
}

/// One timeout covers all redirects.
#[tokio::test]
async fn the_timeout_is_for_the_whole_way() {
    let server = Server::plain().await;
    let timeout = Duration::from_secs(2);
    let request = redirected(&server, "/leads/302?/stalls", 10);
    let answer = no_answer(&triggers(&[]), HttpRequest { timeout, ..request }).await;
    assert_eq!(answer.kind, NoAnswerKind::Timeout, "{}", answer.message);
    assert_eq!(server.requests().len(), 2);
}
