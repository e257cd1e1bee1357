//! Which requests use a proxy, and what the proxy receives.

use model::{HttpRequest, NoAnswerKind, Tls, Verify};

use crate::{
    certificates::{Authority, Flaw},
    firing::{get, no_answer, response, triggers},
    proxy::Proxy,
    server::Server,
};

type Environment<'a> = &'a [(&'a str, &'a str)];

/// Each environment with each URL: whether the proxy got a request.
#[tokio::test]
async fn the_environment_says_what_goes_through_a_proxy() {
    let server = Server::plain().await;
    let proxy = Proxy::start(None, None).await;
    let port = server.address.port();
    let url = format!("http://{}", proxy.address);
    let bare = proxy.address.to_string();
    let cases: [(Environment<'_>, &str, bool); 9] = [
        (&[("HTTP_PROXY", &url)], "shop.test", true),
        (&[("http_proxy", &bare)], "shop.test", true),
        (&[("ALL_PROXY", &url)], "shop.test", true),
        (&[("HTTP_PROXY", &url), ("NO_PROXY", "other.test")], "shop.test", true),
        (&[("HTTP_PROXY", &url), ("HTTPS_PROXY", "http://127.0.0.1:1")], "shop.test", true),
        (&[("HTTP_PROXY", &url)], "localhost", false),
        (&[("HTTP_PROXY", &url)], "127.0.0.1", false),
        (&[("HTTPS_PROXY", &url)], "127.0.0.1", false),
        (&[("HTTP_PROXY", ""), ("ALL_PROXY", "")], "127.0.0.1", false),
    ];
    for (environment, host, is_asked) in cases {
        let before = proxy.heads().len();
        let request = get(&format!("http://{host}:{port}/a?b"));
        assert_eq!(response(&triggers(environment), request).await.status, 200, "{host}");
        let heads = proxy.heads();
        assert_eq!(heads.len() - before, usize::from(is_asked), "{environment:?} {host}");
        if is_asked {
            let head = heads.last().expect("a head");
            let line = format!("GET http://{host}:{port}/a?b HTTP/1.1\r\nhost: {host}:{port}\r\n");
            assert!(head.starts_with(&line), "{head}");
        }
        let seen = server.requests().pop().expect("a request");
        assert!(seen.starts_with("GET /a?b HTTP/1.1\n"), "{seen}");
    }
}

/// Without the proxy the name has no address; through the proxy it would have one.
#[tokio::test]
async fn no_proxy_keeps_names_from_the_proxy() {
    let proxy = Proxy::start(None, None).await;
    let url = format!("http://{}", proxy.address);
    for no_proxy in ["shop.invalid", ".invalid", "a, shop.invalid ,b", "*"] {
        let triggers = triggers(&[("HTTP_PROXY", &url), ("NO_PROXY", no_proxy)]);
        let answer = no_answer(&triggers, get("http://shop.invalid/")).await;
        assert_eq!(answer.kind, NoAnswerKind::Dns, "{no_proxy}: {}", answer.message);
    }
    assert!(proxy.heads().is_empty());
}

/// A tunnel carries the TLS session with the server: the proxy sees neither path nor header.
#[tokio::test]
async fn a_tunnel_hides_what_it_carries() {
    let authority = Authority::make("ours");
    let shown = authority.sign("shop.test", Flaw::None);
    let server = Server::tls(shown.server(&[], None)).await;
    let proxy = Proxy::start(None, None).await;
    let asking = |proxy: &str| {
        let triggers = triggers(&[("HTTPS_PROXY", proxy)]);
        let tls = Tls { verify: Verify::Ca(authority.pem()), ..Tls::default() };
        let auth = Some(("Authorization".to_owned(), "Bearer s3cr3t".to_owned()));
        let url = server.url("https", "shop.test", "/hidden");
        (triggers, HttpRequest { tls, auth, ..get(&url) })
    };
    let (triggers, request) = asking(&format!("http://me:p%40ss@{}", proxy.address));
    assert_eq!(response(&triggers, request).await.status, 200);
    let port = server.address.port();
    let expected = format!(
        "CONNECT shop.test:{port} HTTP/1.1\r\n\
         host: shop.test:{port}\r\n\
         proxy-authorization: Basic bWU6cEBzcw==\r\n\r\n"
    );
    assert_eq!(proxy.heads(), [expected]);
    assert!(!server.requests()[0].contains("proxy-authorization"), "it is the proxy's alone");
}

/// A proxy may itself require TLS; it is verified by the trusted roots of this machine.
#[tokio::test]
async fn a_proxy_may_ask_for_tls() {
    let authority = Authority::make("ours");
    let server = Server::plain().await;
    let shown = authority.sign("localhost", Flaw::None);
    let proxy = Proxy::start(Some(shown.server(&["h2", "http/1.1"], None)), None).await;
    let folder = tempfile::tempdir().expect("a folder");
    let roots = folder.path().join("roots.pem");
    std::fs::write(&roots, authority.pem()).expect("written");
    let url = format!("https://localhost:{}", proxy.address.port());
    let roots = roots.to_str().expect("a path");
    let triggers = triggers(&[("HTTP_PROXY", &url), ("SSL_CERT_FILE", roots)]);
    let request = get(&server.url("http", "shop.test", "/"));
    assert_eq!(response(&triggers, request).await.status, 200);
    assert_eq!(proxy.heads().len(), 1);
}

/// A refusal of a proxy, and an unusable proxy, are reported as such, and no request bypasses the proxy.
#[tokio::test]
async fn a_proxy_that_does_not_help_is_told() {
    let unknown = Proxy::start(None, Some("HTTP/1.1 407 Who\r\ncontent-length: 0\r\n\r\n")).await;
    let closed = Proxy::start(None, Some("HTTP/1.1 403 No\r\ncontent-length: 0\r\n\r\n")).await;
    let silent = Proxy::start(None, Some("")).await;
    let at = |proxy: &Proxy| format!("http://{}", proxy.address);
    let cases = [
        (at(&unknown), NoAnswerKind::Refused, "it requires authentication"),
        (at(&closed), NoAnswerKind::Refused, "it says `403 Forbidden`"),
        (at(&silent), NoAnswerKind::Refused, "does not connect to `shop.test:443`"),
        (
            "http://127.0.0.1:1".to_owned(),
            NoAnswerKind::Refused,
            "on the way through the proxy: nobody",
        ),
        ("http://nobody.invalid:1".to_owned(), NoAnswerKind::Dns, "on the way through the proxy: "),
        (
            "socks5://127.0.0.1:1".to_owned(),
            NoAnswerKind::Invalid,
            "`HTTPS_PROXY` is not the URL of a proxy",
        ),
        (
            "ftp://me:s3cr3t@host".to_owned(),
            NoAnswerKind::Invalid,
            "`HTTPS_PROXY` is not the URL of a proxy",
        ),
        ("a b".to_owned(), NoAnswerKind::Invalid, "`HTTPS_PROXY` is not the URL of a proxy"),
    ];
    for (proxy, kind, words) in cases {
        let triggers = triggers(&[("HTTPS_PROXY", &proxy)]);
        let answer = no_answer(&triggers, get("https://shop.test/")).await;
        assert_eq!(answer.kind, kind, "{proxy}: {}", answer.message);
        assert!(answer.message.contains(words), "{proxy}: {}", answer.message);
        assert!(!answer.message.contains("s3cr3t"), "{}", answer.message);
    }
}
