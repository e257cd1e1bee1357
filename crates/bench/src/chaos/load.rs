//! The clients: they start runs at a rate through the balancer, each under an idempotency key, and request again what got no response.

use std::{sync::Arc, time::Duration};

use anyhow::{Context, Result};
use serde_json::{Value, json};
use tokio::{
    sync::Semaphore,
    task::JoinSet,
    time::{Instant, sleep, sleep_until},
};

use super::{
    history::{HistoryFile, HistoryLine, now},
    readers::StreamReaders,
    schedule::SeededRandom,
    target,
};

/// The timeout of a request.
const REQUEST_MAX: Duration = Duration::from_secs(10);
/// How long a client requests a run.
const START_MAX: Duration = Duration::from_secs(90);
/// The wait before a request is repeated.
const RETRY_AFTER: Duration = Duration::from_millis(300);
/// Requests at a time: beyond them the rate is lower than configured.
const CLIENTS_MAX: usize = 256;
/// Readers at a time: fewer than the streams that two replicas serve for one project.
const READERS_MAX: usize = 100;

/// The clients of a proof.
#[derive(Debug)]
pub(super) struct RunClients {
    url: String,
    client: reqwest::Client,
    history: Arc<HistoryFile>,
    readers: StreamReaders,
    reader_slots: Arc<Semaphore>,
    random: SeededRandom,
    number: u64,
    tasks: JoinSet<()>,
}

impl RunClients {
    /// Creates clients of the balancer at this port.
    pub(super) fn new(
        http: u16,
        seed: u64,
        readers: StreamReaders,
        history: Arc<HistoryFile>,
    ) -> Result<Self> {
        let client = reqwest::Client::builder().no_proxy().pool_max_idle_per_host(0);
        Ok(Self {
            url: format!("http://127.0.0.1:{http}/api/v1"),
            client: client.timeout(REQUEST_MAX).build()?,
            history,
            readers,
            reader_slots: Arc::new(Semaphore::new(READERS_MAX)),
            random: SeededRandom::new(!seed),
            number: 0,
            tasks: JoinSet::new(),
        })
    }

    /// Applies a document.
    pub(super) async fn apply(&self, document: &str) -> Result<()> {
        let request = self.client.put(format!("{}/documents", self.url));
        let answer = request.body(document.to_owned()).send().await?.error_for_status();
        answer.map(drop).context("a document is refused")
    }

    /// Starts runs at this rate for this time, and returns how many were requested in a second.
    pub(super) async fn run(&mut self, per_second: f64, length: Duration) -> Result<f64> {
        let (began, first) = (Instant::now(), self.number);
        while began.elapsed() < length {
            while self.tasks.try_join_next().is_some() {}
            let busy = self.tasks.len().saturating_sub(READERS_MAX);
            if busy >= CLIENTS_MAX {
                self.tasks.join_next().await;
            }
            self.start();
            let nth = (self.number - first) as f64;
            sleep_until(began + Duration::from_secs_f64(nth / per_second)).await;
        }
        Ok((self.number - first) as f64 / began.elapsed().as_secs_f64())
    }

    /// Waits until all requests are answered and all readers have ended.
    pub(super) async fn rest(&mut self) -> Result<()> {
        while let Some(ended) = self.tasks.join_next().await {
            ended?;
        }
        Ok(())
    }

    fn start(&mut self) {
        let number = self.number;
        self.number += 1;
        let draw = self.random.number();
        let tests = target::tests();
        let test = tests[(draw % tests.len() as u64) as usize].id.clone();
        let is_deleted = (draw >> 32).is_multiple_of(2);
        let key = format!("key-{number}");
        let body = json!({"variables": {"run": key, "deleted": is_deleted.to_string()}});
        let url = format!("{}/tests/{test}/runs", self.url);
        let (client, history) = (self.client.clone(), Arc::clone(&self.history));
        let (readers, slots) = (self.readers.clone(), Arc::clone(&self.reader_slots));
        self.tasks.spawn(async move {
            let request = RunRequest { client, history, url, test, key, body: body.to_string() };
            let Some(run) = request.accepted().await else { return };
            // Without a slot there is no reader for this run.
            if let Ok(_slot) = slots.try_acquire_owned() {
                readers.read(number, run).await;
            }
        });
    }
}

/// The request of one run.
#[derive(Debug)]
struct RunRequest {
    client: reqwest::Client,
    history: Arc<HistoryFile>,
    url: String,
    test: String,
    key: String,
    body: String,
}

impl RunRequest {
    /// Requests the run until it is accepted, and returns its id.
    async fn accepted(&self) -> Option<String> {
        let began = Instant::now();
        while began.elapsed() < START_MAX {
            let (at, key, test) = (now(), self.key.clone(), self.test.clone());
            self.history.write(HistoryLine::Request { at, key, test });
            let (status, run) = self.send().await.map_or((None, None), |(status, answer)| {
                let run = answer["id"].as_str().map(str::to_owned);
                (Some(status), run.filter(|_| (200..300).contains(&status)))
            });
            let (at, key) = (now(), self.key.clone());
            self.history.write(HistoryLine::Reply { at, key, status, run: run.clone() });
            if run.is_some() {
                return run;
            }
            sleep(RETRY_AFTER).await;
        }
        None
    }

    async fn send(&self) -> Result<(u16, Value)> {
        let request = self.client.post(&self.url).header("idempotency-key", &self.key);
        let response = request.body(self.body.clone()).send().await?;
        let status = response.status().as_u16();
        let body = response.bytes().await?;
        Ok((status, serde_json::from_slice(&body).unwrap_or(Value::Null)))
    }
}
