//! Addresses that an untrusted test cannot reach, in any notation.

use drivers::trigger::Triggers;
use model::{HttpRequest, NoAnswerKind};
use net::{Network, Networks};

use crate::{
    firing::{get, no_answer, response, triggers_under},
    proxy::Proxy,
    server::Server,
};

fn under(environment: &[(&str, &str)], allow: &[&str]) -> Triggers {
    let allow = allow.iter().map(|it| it.parse::<Network>().expect("a network")).collect();
    triggers_under(environment, Networks::new("server.triggers.networks", allow, Vec::new()))
}

/// Each notation of this machine that the system's resolver understands.
#[tokio::test]
async fn this_machine_is_not_reached_by_any_of_its_names() {
    let server = Server::plain().await;
    let hosts = [
        "127.0.0.1",
        "127.0.0.2",
        "localhost",
        "LOCALHOST",
        "127.1",
        "127.0.1",
        "2130706433",
        "0x7f000001",
        "0x7f.0.0.1",
        "0177.0.0.1",
        "017700000001",
        "0",
        "0.0.0.0",
        "[::1]",
        "[::]",
        "[0:0:0:0:0:0:0:1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::127.0.0.1]",
        "[64:ff9b::7f00:1]",
    ];
    for host in hosts {
        let url = server.url("http", host, "/");
        let answer = no_answer(&under(&[], &["public"]), get(&url)).await;
        assert_eq!(answer.kind, NoAnswerKind::Invalid, "{host}: {}", answer.message);
        for words in ["may not be reached from this server", "this machine itself", "`loopback`"] {
            assert!(answer.message.contains(words), "{host}: {}", answer.message);
        }
    }
    assert!(server.requests().is_empty());
    assert_eq!(
        response(&under(&[], &["loopback"]), get(&server.url("http", "127.1", "/"))).await.status,
        200
    );
}

/// Cloud credentials are unreachable, whatever the rules allow.
#[tokio::test]
async fn no_setting_reaches_credentials() {
    let hosts = [
        "169.254.169.254",
        "169.254.43518",
        "2852039166",
        "0xa9fea9fe",
        "0251.0376.0251.0376",
        "[::ffff:169.254.169.254]",
        "[fd00:ec2::254]",
        "[64:ff9b::169.254.169.254]",
    ];
    for host in hosts {
        let answer = no_answer(
            &triggers_under(&[], Networks::all("server.triggers.networks")),
            get(&format!("http://{host}/latest")),
        )
        .await;
        assert_eq!(answer.kind, NoAnswerKind::Invalid, "{host}: {}", answer.message);
        assert!(answer.message.contains("no setting allows it"), "{host}: {}", answer.message);
    }
}

/// The rules apply to a redirect as to the first request.
#[tokio::test]
async fn a_redirect_leads_nowhere_else() {
    let server = Server::plain().await;
    let triggers = under(&[], &["127.0.0.1"]);
    let port = server.address.port();
    for (there, words) in [
        (format!("http://127.0.0.2:{port}/"), "`127.0.0.2` is this machine itself"),
        (format!("http://0x7f000002:{port}/"), "`127.0.0.2` is this machine itself"),
        ("http://169.254.169.254/latest".to_owned(), "no setting allows it"),
        ("http://10.0.0.1/".to_owned(), "`private`, or `10.0.0.1/32`"),
    ] {
        let url = server.url("http", "127.0.0.1", &format!("/leads/307?{there}"));
        let answer = no_answer(&triggers, HttpRequest { redirects_max: 5, ..get(&url) }).await;
        // The system received the first request.
        assert_eq!(answer.kind, NoAnswerKind::Connection, "{there}: {}", answer.message);
        assert!(answer.message.starts_with("redirected to `"), "{there}: {}", answer.message);
        assert!(answer.message.contains(words), "{there}: {}", answer.message);
    }
    assert!(server.requests().iter().all(|it| it.starts_with("GET /leads/")));
    let url = server.url("http", "127.0.0.1", "/leads/307?/there");
    assert_eq!(
        response(&triggers, HttpRequest { redirects_max: 5, ..get(&url) }).await.status,
        200
    );
}

/// A proxy gets the address that was checked against the rules, and its own address is checked as well.
#[tokio::test]
async fn a_proxy_is_no_way_round() {
    let server = Server::plain().await;
    let proxy = Proxy::start(None, None).await;
    let url = format!("http://{}", proxy.address);
    let environment = [("HTTP_PROXY", url.as_str())];
    let port = server.address.port();
    let to = |host: &str| get(&format!("http://{host}:{port}/a"));
    let triggers = under(&environment, &["127.0.0.1", "10.1.2.3"]);
    for host in ["10.1.2.3", "012.1.2.3", "[::ffff:10.1.2.3]"] {
        assert_eq!(response(&triggers, to(host)).await.status, 200, "{host}");
        let head = proxy.heads().pop().expect("a head");
        assert!(head.starts_with(&format!("CONNECT 10.1.2.3:{port} ")), "{host}: {head}");
    }
    let asked = proxy.heads().len();
    for (allow, host, words) in [
        (["127.0.0.1", "10.1.2.3"], "10.1.2.4", "`10.1.2.4:"),
        (["10.1.2.3", "private"], "10.1.2.3", "on the way through the proxy: `127.0.0.1:"),
        (["0.0.0.0/0", "::/0"], "169.254.169.254", "no setting allows it"),
    ] {
        let answer = no_answer(&under(&environment, &allow), to(host)).await;
        assert_eq!(answer.kind, NoAnswerKind::Invalid, "{host}: {}", answer.message);
        assert!(answer.message.contains(words), "{host}: {}", answer.message);
    }
    assert_eq!(proxy.heads().len(), asked, "it was not asked");
}
