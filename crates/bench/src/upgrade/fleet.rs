//! Two processes of each role, and a balancer in front of those that accept connections.

use std::{
    path::Path,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use reqwest::{Client, RequestBuilder};
use serde_json::Value;

use crate::parts::{Server, answer};

/// The processes of a role.
pub(super) const REPLICAS: usize = 2;

/// The timeout of a request: that of the API itself.
const REQUEST_MAX: Duration = Duration::from_secs(30);

/// The failures that are kept for the reader.
const FAILURES_MAX: usize = 10;

/// What a process does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReplicaRole {
    Api,
    Ingest,
    Worker,
}

impl ReplicaRole {
    const ALL: [Self; 3] = [Self::Api, Self::Ingest, Self::Worker];

    fn as_str(self) -> &'static str {
        match self {
            Self::Api => "api",
            Self::Ingest => "ingest",
            Self::Worker => "worker",
        }
    }
}

/// All processes.
pub(super) struct Fleet {
    configuration: String,
    /// Those of a role; none while one is replaced.
    servers: [[Option<Server>; REPLICAS]; 3],
    balancers: [RetryBalancer; 3],
}

impl Fleet {
    pub(super) async fn start(binary: &Path, configuration: String) -> Result<Self> {
        let balancers = [RetryBalancer::new()?, RetryBalancer::new()?, RetryBalancer::new()?];
        let mut fleet = Self { configuration, servers: Default::default(), balancers };
        for role in ReplicaRole::ALL {
            for replica in 0..REPLICAS {
                fleet.start_one(role, replica, binary).await?;
            }
        }
        Ok(fleet)
    }

    /// Returns what sends requests to the processes of a role.
    pub(super) fn balancer(&self, role: ReplicaRole) -> RetryBalancer {
        self.balancers[role as usize].clone()
    }

    /// Ends a process in order, and starts one of this program in its place. Until that is ready, the balancer still knows the old one.
    pub(super) async fn replace(
        &mut self,
        role: ReplicaRole,
        replica: usize,
        binary: &Path,
    ) -> Result<()> {
        let old = self.servers[role as usize][replica].take().context("it runs")?;
        ensure!(
            old.terminate().await? == Some(0),
            "a process with `{}` did not end in order",
            role.as_str()
        );
        self.start_one(role, replica, binary).await
    }

    async fn start_one(&mut self, role: ReplicaRole, replica: usize, binary: &Path) -> Result<()> {
        let configuration =
            format!("{}server: {{roles: [{}]}}\n", self.configuration, role.as_str());
        let server = Server::start_with(binary, &configuration, "127.0.0.1:0").await?;
        let url = match role {
            ReplicaRole::Ingest => format!("http://127.0.0.1:{}", server.otlp_grpc),
            ReplicaRole::Api | ReplicaRole::Worker => server.api.clone(),
        };
        self.balancers[role as usize].set(replica, url);
        self.servers[role as usize][replica] = Some(server);
        Ok(())
    }

    /// Whether a further server of this program is refused, because the others have gone on to a later version.
    pub(super) async fn refuses(&self, binary: &Path) -> Result<bool> {
        let started = Server::start_with(binary, &self.configuration, "127.0.0.1:0").await;
        Ok(started.is_err_and(|error| {
            format!("{error:#}").contains("this version is too old for the database")
        }))
    }

    /// Ends all processes in order.
    pub(super) async fn end(self) -> Result<()> {
        for server in self.servers.into_iter().flatten().flatten() {
            ensure!(server.terminate().await? == Some(0), "a process did not end in order");
        }
        Ok(())
    }
}

/// Sends each request to one of two processes, and a failed one once to the other. Clones share their counts.
#[derive(Clone, Debug)]
pub(super) struct RetryBalancer(Arc<BalancerState>);

#[derive(Debug)]
struct BalancerState {
    client: Client,
    urls: Mutex<[String; REPLICAS]>,
    next: AtomicUsize,
    requests: AtomicU64,
    retried: AtomicU64,
    failed: AtomicU64,
    /// How the first of those ended that failed on both.
    failures: Mutex<Vec<String>>,
}

/// How requests ended.
#[derive(Clone, Copy, Debug, Default)]
pub struct BalancerCounts {
    /// All of them.
    pub requests: u64,
    /// Those that failed on the first process.
    pub retried: u64,
    /// Those that failed on both.
    pub failed: u64,
}

impl RetryBalancer {
    fn new() -> Result<Self> {
        let client = Client::builder().no_proxy().timeout(REQUEST_MAX).build()?;
        Ok(Self(Arc::new(BalancerState {
            client,
            urls: Mutex::default(),
            next: AtomicUsize::default(),
            requests: AtomicU64::default(),
            retried: AtomicU64::default(),
            failed: AtomicU64::default(),
            failures: Mutex::default(),
        })))
    }

    fn set(&self, replica: usize, url: String) {
        self.0.urls.lock().unwrap_or_else(PoisonError::into_inner)[replica] = url;
    }

    /// Sends a request, to which `of` adds the URL of a process; none if it fails on both, by its connection or with a 5xx.
    pub(super) async fn send(
        &self,
        of: impl Fn(&Client, &str) -> RequestBuilder,
    ) -> Option<(u16, Value)> {
        let state = &*self.0;
        state.requests.fetch_add(1, Ordering::Relaxed);
        let first = state.next.fetch_add(1, Ordering::Relaxed) % REPLICAS;
        let mut failures = Vec::new();
        for (at, counts) in [(first, &state.retried), (1 - first, &state.failed)] {
            let url = state.urls.lock().unwrap_or_else(PoisonError::into_inner)[at].clone();
            match answer(of(&state.client, &url)).await {
                Ok((status, body)) if status < 500 => return Some((status, body)),
                failure => {
                    counts.fetch_add(1, Ordering::Relaxed);
                    failures.push(format!("{failure:?}"));
                }
            }
        }
        let mut first = state.failures.lock().unwrap_or_else(PoisonError::into_inner);
        first.push(failures.join("; then "));
        first.truncate(FAILURES_MAX);
        None
    }

    /// Returns how the first requests ended that failed on both processes.
    pub(super) fn failures(&self) -> Vec<String> {
        self.0.failures.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn counts(&self) -> BalancerCounts {
        let count = |of: &AtomicU64| of.load(Ordering::Relaxed);
        let BalancerState { requests, retried, failed, .. } = &*self.0;
        BalancerCounts { requests: count(requests), retried: count(retried), failed: count(failed) }
    }
}
