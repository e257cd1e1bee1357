//! A TCP proxy before the HTTP API of a store, which counts the queries for traces.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use anyhow::{Context, Result};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy},
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time::Instant,
};

#[derive(Debug)]
pub(super) struct QueryCounter {
    port: u16,
    queries: Arc<Mutex<Vec<Instant>>>,
    /// Dropping it closes all connections.
    _tasks: JoinSet<()>,
}

impl QueryCounter {
    /// Starts a proxy to the API at this URL. The first line of a query contains `request`.
    pub(super) async fn start(url: &str, request: &'static str) -> Result<Self> {
        let target = url.strip_prefix("http://").context("a URL without TLS")?.to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        let queries = Arc::new(Mutex::new(Vec::new()));
        let mut tasks = JoinSet::new();
        let seen = Arc::clone(&queries);
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(forward(stream, target.clone(), request, Arc::clone(&seen)));
            }
        });
        Ok(Self { port, queries, _tasks: tasks })
    }

    pub(super) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Returns the times of all queries.
    pub(super) fn queries(&self) -> Vec<Instant> {
        self.queries.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the largest number of queries in a window of this length.
    pub(super) fn most_within(queries: &[Instant], window: Duration) -> usize {
        let within = |at: &Instant| {
            queries.iter().filter(|other| **other >= *at && **other < *at + window).count()
        };
        queries.iter().map(within).max().unwrap_or(0)
    }
}

/// Forwards a connection. A client sends a request only after the response to the one before, so each is read by itself.
async fn forward(
    client: TcpStream,
    target: String,
    request: &'static str,
    queries: Arc<Mutex<Vec<Instant>>>,
) {
    let Ok(store) = TcpStream::connect(&target).await else { return };
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_store, mut to_store) = store.into_split();
    let requests = async {
        let mut buffer = vec![0; 16 << 10];
        while let Ok(read @ 1..) = from_client.read(&mut buffer).await {
            let line = buffer[..read].split(|byte| *byte == b'\r').next().unwrap_or_default();
            if line.windows(request.len()).any(|part| part == request.as_bytes()) {
                queries.lock().unwrap_or_else(PoisonError::into_inner).push(Instant::now());
            }
            if to_store.write_all(&buffer[..read]).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = requests => {}
        _ = copy(&mut from_store, &mut to_client) => {}
    }
}
