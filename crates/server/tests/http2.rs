//! The API over HTTP/2, beside HTTP/1.1 on the same port.

use std::{net::SocketAddr, sync::Arc};

use anyhow::{Context, Result};
use bench::parts::Database;
use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::{Request, StatusCode, Version, client::conn::http2::SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use model::{Timestamp, World};
use serde_json::Value;
use server::{
    Handle, Telemetry,
    config::{self, Environment},
};
use source::Text;
use tokio::{net::TcpStream, runtime, task::JoinSet};

const WORLD: World = World::new(|| Timestamp::from_nanos(1_700_000_000_000_000_000), random);

fn random() -> [u8; 32] {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).expect("the system has randomness");
    bytes
}

async fn start(database: &Database, directory: &str) -> Result<Handle> {
    let text = Text::new("config.yaml", database.section()?);
    let mut config =
        config::read(&text, &Environment::default()).config.context("a configuration")?;
    let any: SocketAddr = "127.0.0.1:0".parse()?;
    config.listen = config::Listen { http: any, otlp_grpc: any, otlp_http: any, probes: None };
    config.data_directory = format!("{}/{directory}", env!("CARGO_TARGET_TMPDIR")).into();
    let telemetry = Arc::new(Telemetry::start(&config, server::host())?);
    let server = server::start(config, telemetry, WORLD, runtime::Handle::current(), None).await?;
    server.ready().await;
    Ok(server)
}

type Headers<'a> = &'a [(&'a str, &'a str)];

/// Connects without a negotiation.
async fn connect(
    address: SocketAddr,
    tasks: &mut JoinSet<()>,
) -> Result<SendRequest<Empty<Bytes>>> {
    let stream = TcpStream::connect(address).await?;
    let (sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await?;
    tasks.spawn(async move {
        connection.await.ok();
    });
    Ok(sender)
}

/// Sends a request with this authority, and these headers.
async fn send(
    sender: &SendRequest<Empty<Bytes>>,
    authority: &str,
    path: &str,
    headers: Headers<'_>,
) -> Result<(StatusCode, Value)> {
    let mut request = Request::get(format!("http://{authority}{path}"));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let mut sender = sender.clone();
    sender.ready().await?;
    let response = sender.send_request(request.body(Empty::new())?).await?;
    assert_eq!(response.version(), Version::HTTP_2);
    let status = response.status();
    let body = response.into_body().collect().await?.to_bytes();
    Ok((status, serde_json::from_slice(&body)?))
}

#[tokio::test(flavor = "multi_thread")]
async fn one_connection_carries_many_requests() -> Result<()> {
    let database = Database::create("http2_many").await?;
    let server = start(&database, "http2_many").await?;
    let (address, mut tasks) = (server.addresses().http, JoinSet::new());
    let sender = connect(address, &mut tasks).await?;
    // The first response brings the server's settings. Before that, a client may open too many streams, which are refused.
    assert_eq!(send(&sender, &address.to_string(), "/readyz", &[]).await?.0, 200);
    let mut requests = JoinSet::new();
    // More than run at a time: the others wait for a stream.
    for number in 0..100 {
        let (sender, authority) = (sender.clone(), address.to_string());
        let path = if number % 2 == 0 { "/readyz" } else { "/api/v1/tests" };
        requests.spawn(async move { send(&sender, &authority, path, &[]).await });
    }
    while let Some(done) = requests.join_next().await {
        assert_eq!(done??.0, 200);
    }
    let over_http1 = reqwest::Client::builder().no_proxy().http1_only().build()?;
    let response = over_http1.get(format!("http://{address}/readyz")).send().await?;
    assert_eq!((response.status().as_u16(), response.version()), (200, Version::HTTP_11));
    assert!(server.shutdown().await.is_delivered());
    database.remove().await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_authority_is_the_host() -> Result<()> {
    let database = Database::create("http2_host").await?;
    let server = start(&database, "http2_host").await?;
    let (address, mut tasks) = (server.addresses().http, JoinSet::new());
    let sender = connect(address, &mut tasks).await?;
    let (own, port) = (address.to_string(), address.port());
    let (origin, evil) = (format!("http://{own}"), format!("evil.example:{port}"));
    let evil_origin = format!("http://{evil}");
    let cases: [(&str, Headers<'_>, u16); 6] = [
        (&own, &[], 200),
        (&own, &[("origin", &origin), ("sec-fetch-site", "same-origin")], 200),
        (&own, &[("origin", &evil_origin)], 403),
        (&evil, &[], 403),
        (&evil, &[("origin", &evil_origin), ("sec-fetch-site", "same-origin")], 403),
        // A `Host` beside the authority does not count.
        (&evil, &[("host", &own)], 403),
    ];
    for (authority, headers, expected) in cases {
        let (status, body) = send(&sender, authority, "/api/v1/tests", headers).await?;
        assert_eq!(status, expected, "{authority} {headers:?}: {body}");
        assert_eq!(body["code"] == "cross-origin", expected == 403, "{body}");
    }
    assert!(server.shutdown().await.is_delivered());
    database.remove().await
}
