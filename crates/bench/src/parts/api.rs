//! A minimal client of the server's API.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use reqwest::{Client, Method, RequestBuilder};
use serde_json::Value;
use tokio::time::{Instant, sleep};

/// The timeout of one request.
const REQUEST_MAX: Duration = Duration::from_secs(20);

/// How long a start request is retried.
const START_MAX: Duration = Duration::from_secs(30);

/// A client of one server.
#[derive(Clone, Debug)]
pub struct Api {
    url: String,
    client: Client,
}

impl Api {
    /// Creates a client of the server at this URL.
    pub fn new(url: &str) -> Result<Self> {
        let client = Client::builder().no_proxy().timeout(REQUEST_MAX).build()?;
        Ok(Self { url: url.to_owned(), client })
    }

    /// Creates a request to a path, to be sent by [`answer`].
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("{}{path}", self.url))
    }

    /// Applies the documents of a file.
    pub async fn apply(&self, document: &str) -> Result<Value> {
        let applied = self.request(Method::PUT, "/api/v1/documents").body(document.to_owned());
        let (status, body) = answer(applied).await?;
        ensure!(status == 200, "the document is refused: {body:#}");
        Ok(body)
    }

    /// Starts a run, and returns its id.
    pub async fn start(&self, test: &str, body: &Value) -> Result<String> {
        let start = self.request(Method::POST, &format!("/api/v1/tests/{test}/runs"));
        let (status, run) = answer(start.body(body.to_string())).await?;
        ensure!(status == 202, "the run is refused: {run:#}");
        Ok(run["id"].as_str().context("a run has an id")?.to_owned())
    }

    /// Starts a run under an idempotency key, with retries, and returns its id.
    pub async fn start_once(&self, test: &str, body: &Value, key: &str) -> Result<String> {
        let began = Instant::now();
        loop {
            let start = self.request(Method::POST, &format!("/api/v1/tests/{test}/runs"));
            let start = start.header("idempotency-key", key).body(body.to_string());
            match answer(start).await {
                Ok((200 | 202, run)) => {
                    return Ok(run["id"].as_str().context("a run has an id")?.to_owned());
                }
                other if began.elapsed() > START_MAX => bail!("the run is refused: {other:#?}"),
                _ => sleep(Duration::from_millis(200)).await,
            }
        }
    }

    /// Returns a run.
    pub async fn run(&self, id: &str) -> Result<Value> {
        let read = self.request(Method::GET, &format!("/api/v1/runs/{id}"));
        Ok(answer(read).await?.1)
    }

    /// Returns a run once it has ended, or in its state after `max`.
    pub async fn ended(&self, id: &str, max: Duration) -> Result<Value> {
        let began = Instant::now();
        loop {
            let run = self.run(id).await?;
            if run["state"] == "ended" || began.elapsed() > max {
                return Ok(run);
            }
            sleep(Duration::from_millis(20)).await;
        }
    }
}

/// Sends a request, and returns the status and the body of the response.
pub async fn answer(request: RequestBuilder) -> Result<(u16, Value)> {
    let response = request.send().await?;
    let status = response.status().as_u16();
    let body = response.bytes().await?;
    Ok((status, serde_json::from_slice(&body).unwrap_or(Value::Null)))
}
