//! DNS rebinding: a name server that returns an allowed address first and a forbidden one shortly after.
//!
//! The name server and the small client that queries it use real DNS over UDP. They replace the system's resolver, which
//! queries port 53 of the servers in `/etc/resolv.conf` and cannot be redirected; all code behind it is the code that triggers
//! use.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, UdpSocket},
    task::JoinSet,
    time::timeout,
};

use super::{
    ConnectError, Names, Networks, Origin, Proxy, Route, Target, TlsClient, connect, lookup,
};
use crate::{network::Network, tls};

const NAME: &str = "rebind.example";
const HERE: Ipv4Addr = Ipv4Addr::LOCALHOST;
/// Another address of this machine, as an example of an allowed address that accepts connections.
const ALLOWED: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
const PUBLIC: Ipv4Addr = Ipv4Addr::new(93, 184, 215, 14);
const METADATA: Ipv4Addr = Ipv4Addr::new(169, 254, 169, 254);
const HEAD_BYTES: usize = 12;
const IN_TIME: Duration = Duration::from_secs(5);

/// A name server that returns the next answer to each query, and then starts again.
struct NameServer {
    address: SocketAddr,
    queries: Arc<Mutex<usize>>,
    _serving: JoinSet<()>,
}

impl NameServer {
    async fn start(answers: &'static [&'static [Ipv4Addr]]) -> Self {
        let socket = UdpSocket::bind((HERE, 0)).await.expect("a port");
        let address = socket.local_addr().expect("an address");
        let queries = Arc::new(Mutex::new(0));
        let mut serving = JoinSet::new();
        let counted = Arc::clone(&queries);
        serving.spawn(async move {
            let mut query = [0; 512];
            while let Ok((length, from)) = socket.recv_from(&mut query).await {
                let turn = {
                    let mut count = counted.lock().expect("no panic");
                    *count += 1;
                    *count - 1
                };
                let answer = answer(&query[..length], answers[turn % answers.len()]);
                socket.send_to(&answer, from).await.expect("sent");
            }
        });
        Self { address, queries, _serving: serving }
    }

    fn queries(&self) -> usize {
        *self.queries.lock().expect("no panic")
    }
}

/// Builds an answer with these addresses and a TTL of 0 s.
fn answer(query: &[u8], addresses: &[Ipv4Addr]) -> Vec<u8> {
    let mut message = query.to_vec();
    message[2..4].copy_from_slice(&[0x81, 0x80]);
    message[6..8].copy_from_slice(&(addresses.len() as u16).to_be_bytes());
    for address in addresses {
        message.extend([0xc0, HEAD_BYTES as u8, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4]);
        message.extend(address.octets());
    }
    message
}

/// Queries a name server, and returns the addresses in its order.
pub(super) async fn resolve(
    server: SocketAddr,
    host: &str,
    port: u16,
) -> io::Result<Vec<SocketAddr>> {
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(address, port)]);
    }
    let mut question = vec![7, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in host.split('.') {
        question.push(label.len() as u8);
        question.extend(label.bytes());
    }
    question.extend([0, 0, 1, 0, 1]);
    let socket = UdpSocket::bind((HERE, 0)).await?;
    socket.send_to(&question, server).await?;
    let mut message = [0; 512];
    let length = timeout(IN_TIME, socket.recv(&mut message)).await??;
    let records = message[question.len()..length].chunks_exact(16);
    Ok(records.map(|it| SocketAddr::from(([it[12], it[13], it[14], it[15]], port))).collect())
}

/// Binds a listener on the same port of both addresses, to see which one a client connects to.
async fn listeners() -> (u16, [TcpListener; 2]) {
    loop {
        let allowed = TcpListener::bind((ALLOWED, 0)).await.expect("a port");
        let port = allowed.local_addr().expect("an address").port();
        if let Ok(here) = TcpListener::bind((HERE, port)).await {
            return (port, [allowed, here]);
        }
    }
}

/// Whether a client has connected: on this machine a connection is established at once.
async fn is_reached(listener: &TcpListener) -> bool {
    timeout(Duration::from_millis(20), listener.accept()).await.is_ok()
}

fn rules(allow: &[&str]) -> Networks {
    let allow = allow.iter().map(|it| it.parse::<Network>().expect("a network")).collect();
    Networks::new("networks", allow, Vec::new())
}

fn target(port: u16) -> Target {
    Target { host: NAME.to_owned(), port }
}

async fn connected(route: Route<'_>, port: u16) -> Result<(), ConnectError> {
    let origin = Origin { target: target(port), is_tls: false };
    timeout(IN_TIME, connect(&origin, route)).await.expect("in time").map(drop)
}

/// A client without trusted authorities: no case uses TLS.
fn no_tls() -> TlsClient {
    TlsClient::new(tls::anonymous(Arc::new(tls::RootCertStore::empty()), &[]))
}

/// If the answer changes between two queries, each connection goes to the address that was checked for it, or fails.
#[tokio::test]
async fn an_address_is_connected_to_only_as_it_was_checked() {
    let cases: [(&[&[Ipv4Addr]], &[bool]); 4] = [
        // The answer changes after the first query: a second query between check and connection would get the other one.
        (&[&[ALLOWED], &[HERE]], &[true, false, true, false]),
        (&[&[HERE], &[ALLOWED]], &[false, true, false, true]),
        // Both in one answer, in either order.
        (&[&[ALLOWED, HERE], &[HERE, ALLOWED]], &[true, true, true, true]),
        (&[&[HERE, METADATA], &[METADATA]], &[false, false, false, false]),
    ];
    for (answers, expected) in cases {
        let server = NameServer::start(answers).await;
        let (port, [allowed, here]) = listeners().await;
        let networks = rules(&["127.0.0.2"]);
        let names = Names::Server(server.address);
        let tls = no_tls();
        let route = Route { proxy: None, networks: Some(&networks), names, tls: &tls };
        for (turn, is_expected) in expected.iter().enumerate() {
            let seen = connected(route, port).await;
            assert_eq!(seen.is_ok(), *is_expected, "{answers:?}, {turn}: {seen:?}");
            if let Err(error) = seen {
                assert!(matches!(error, ConnectError::Forbidden { .. }), "{error}");
            }
            assert_eq!(is_reached(&allowed).await, *is_expected, "{answers:?}, {turn}");
            assert!(!is_reached(&here).await, "{answers:?}, {turn}: the forbidden one was reached");
            assert_eq!(server.queries(), turn + 1, "one query for one connection");
        }
    }
}

/// If an allowed address refuses the connection, a forbidden one of the same answer is not tried.
#[tokio::test]
async fn no_failure_leads_to_a_forbidden_address() {
    let server = NameServer::start(&[&[ALLOWED, HERE], &[HERE, ALLOWED]]).await;
    let (port, [allowed, here]) = listeners().await;
    drop(allowed);
    let networks = rules(&["127.0.0.2"]);
    let names = Names::Server(server.address);
    let tls = no_tls();
    let route = Route { proxy: None, networks: Some(&networks), names, tls: &tls };
    for _ in 0..2 {
        let error = connected(route, port).await.expect_err("nobody listens at the allowed one");
        assert!(matches!(error, ConnectError::Refused { .. }), "{error}");
        assert!(!is_reached(&here).await);
    }
}

/// The default rules of a server: of a mixed answer only the public address remains, and of a changed one nothing.
#[tokio::test]
async fn of_an_answer_only_public_addresses_are_left() {
    let answers: &[&[Ipv4Addr]] = &[&[PUBLIC], &[HERE], &[PUBLIC, HERE, METADATA], &[HERE, PUBLIC]];
    let server = NameServer::start(answers).await;
    let networks = Networks::public("networks");
    let names = Names::Server(server.address);
    let tls = no_tls();
    let route = Route { proxy: None, networks: Some(&networks), names, tls: &tls };
    for is_left in [true, false, true, true] {
        match lookup(&target(80), route).await {
            Ok(found) => assert_eq!((found, is_left), (vec![(PUBLIC, 80).into()], true)),
            Err(error) => {
                assert!(!is_left && matches!(error, ConnectError::Forbidden { .. }), "{error}");
            }
        }
    }
}

/// A proxy would resolve the name again: it gets the address that was checked, and never the name.
#[tokio::test]
async fn a_proxy_is_given_the_address_that_was_checked() {
    let server = NameServer::start(&[&[PUBLIC], &[HERE], &[HERE, PUBLIC]]).await;
    let listener = TcpListener::bind((ALLOWED, 0)).await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let mut serving = JoinSet::new();
    serving.spawn(async move {
        let mut heads = Vec::new();
        for _ in 0..2 {
            let (mut stream, _) = listener.accept().await.expect("a connection");
            let mut head = [0; 512];
            let length = stream.read(&mut head).await.expect("a request");
            heads.push(String::from_utf8_lossy(&head[..length]).into_owned());
            stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.expect("answered");
        }
        heads
    });
    let origin = Origin { target: Target { host: ALLOWED.to_string(), port }, is_tls: false };
    let proxy = Proxy { origin, auth: None };
    let networks = rules(&["public", "127.0.0.2"]);
    let names = Names::Server(server.address);
    let tls = no_tls();
    let route = Route { proxy: Some((&proxy, &tls)), networks: Some(&networks), names, tls: &tls };
    for is_expected in [true, false, true] {
        assert_eq!(connected(route, 80).await.is_ok(), is_expected);
    }
    let heads = serving.join_next().await.expect("one was begun").expect("no panic");
    for head in heads {
        assert!(head.starts_with(&format!("CONNECT {PUBLIC}:80 ")), "{head}");
        assert!(!head.contains(NAME), "{head}");
    }
}
