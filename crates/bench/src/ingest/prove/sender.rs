//! Sends malformed requests, and reads the responses.

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::{http1, http2};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::JoinSet,
};

use super::{
    super::load::{connect_http1, connect_http2},
    broken::{Broken, Request},
};

/// A connection of each kind, reopened when the last one has ended.
pub(super) struct Senders {
    port: u16,
    http1: Option<http1::SendRequest<Full<Bytes>>>,
    http2: Option<http2::SendRequest<Full<Bytes>>>,
    connections: JoinSet<()>,
}

impl Senders {
    pub(super) fn new(port: u16) -> Self {
        Self { port, http1: None, http2: None, connections: JoinSet::new() }
    }

    /// Sends a request. Returns whether it was accepted. An error means that there is no response.
    pub(super) async fn send(&mut self, broken: Broken) -> Result<bool> {
        while self.connections.try_join_next().is_some() {}
        match broken {
            Broken::Raw(bytes) => self.send_raw(&bytes).await,
            Broken::Http1(request) => {
                let request = built(request, "")?;
                let response = self.http1().await?.send_request(request).await?;
                let is_taken = response.status().is_success();
                response.into_body().collect().await.context("the answer broke off")?;
                Ok(is_taken)
            }
            Broken::Http2(request) => {
                let request = built(request, "http://receiver")?;
                let response = self.http2().await?.send_request(request).await?;
                let is_taken = response.status().is_success();
                response.into_body().collect().await.context("the answer broke off")?;
                Ok(is_taken)
            }
            Broken::Call(request) => {
                let request = built(request, "http://receiver")?;
                let response = self.http2().await?.send_request(request).await?;
                let (head, body) = response.into_parts();
                let body = body.collect().await.context("the answer broke off")?;
                let trailers = body.trailers().cloned().unwrap_or_default();
                let status = head.headers.get("grpc-status").or(trailers.get("grpc-status"));
                // A request that declares another content type gets a response of that type.
                ensure!(status.is_some() || !head.status.is_success(), "no status");
                Ok(status.is_some_and(|status| status == "0"))
            }
        }
    }

    async fn send_raw(&self, bytes: &[u8]) -> Result<bool> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).await?;
        // The receiver may close the connection while this is being sent, and need not read all of it.
        stream.write_all(bytes).await.ok();
        stream.shutdown().await.ok();
        let mut said = Vec::new();
        stream.read_to_end(&mut said).await.ok();
        Ok(said.starts_with(b"HTTP/1.1 200 "))
    }

    async fn http1(&mut self) -> Result<&mut http1::SendRequest<Full<Bytes>>> {
        // A connection that the receiver closes after a response shows as closed a moment later.
        if let Some(open) = &mut self.http1
            && open.ready().await.is_err()
        {
            self.http1 = None;
        }
        let open = match self.http1.take() {
            Some(open) => open,
            None => connect_http1(self.port, &mut self.connections).await?,
        };
        Ok(self.http1.insert(open))
    }

    async fn http2(&mut self) -> Result<&mut http2::SendRequest<Full<Bytes>>> {
        if let Some(open) = &mut self.http2
            && open.ready().await.is_err()
        {
            self.http2 = None;
        }
        let open = match self.http2.take() {
            Some(open) => open,
            None => connect_http2(self.port, &mut self.connections).await?,
        };
        Ok(self.http2.insert(open))
    }
}

fn built(request: Request, before: &str) -> Result<http::Request<Full<Bytes>>> {
    let Request { method, path, headers, body } = request;
    let mut built = http::Request::builder().method(method).uri(format!("{before}{path}"));
    for (name, value) in headers {
        // Text that is not a valid header value is sent as raw bytes.
        built = built.header(name, http::HeaderValue::from_bytes(value.as_bytes())?);
    }
    if before.is_empty() {
        built = built.header("host", "receiver");
    }
    Ok(built.body(Full::new(body.into()))?)
}
