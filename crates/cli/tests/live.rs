//! Live events of a run: over several servers, a restart, and a stop.

use std::{path::Path, time::Duration};

use anyhow::{Context, Result, bail, ensure};
use bench::parts::{Api, Database, Server, Target, answer};
use reqwest::{Client, Method, Response};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

const BINARY: &str = env!("CARGO_BIN_EXE_qualitytrace");
/// The timeout for everything in this file.
const NEXT_MAX: Duration = Duration::from_secs(20);

/// An open event stream.
struct Live {
    response: Response,
    text: String,
}

/// One event of the stream.
#[derive(Clone, Debug, PartialEq)]
struct Said {
    n: Option<i64>,
    kind: String,
    data: Value,
}

impl Live {
    async fn open(api: &str, run: &str, query: &str, last: Option<i64>) -> Result<Self> {
        let url = format!("{api}/api/v1/runs/{run}/events{query}");
        let mut request = Client::builder().no_proxy().build()?.get(url);
        request = request.header("accept", "text/event-stream");
        if let Some(last) = last {
            request = request.header("last-event-id", last.to_string());
        }
        let response = timeout(NEXT_MAX, request.send()).await??;
        ensure!(response.status() == 200, "{}", response.status());
        let kind = response.headers().get("content-type").context("a type")?;
        ensure!(kind == "text/event-stream", "{kind:?}");
        Ok(Self { response, text: String::new() })
    }

    /// Returns the next event; none at the end, which may be abrupt after a kill.
    async fn next(&mut self) -> Result<Option<Said>> {
        loop {
            if let Some((said, rest)) = self.text.split_once("\n\n") {
                let (said, rest) = (said.to_owned(), rest.to_owned());
                self.text = rest;
                if said.starts_with(':') {
                    continue;
                }
                return Ok(Some(read(&said)?));
            }
            match timeout(NEXT_MAX, self.response.chunk()).await? {
                Ok(Some(chunk)) => self.text.push_str(std::str::from_utf8(&chunk)?),
                Ok(None) | Err(_) => return Ok(None),
            }
        }
    }

    async fn until(&mut self, kind: &str) -> Result<Vec<Said>> {
        let mut all = Vec::new();
        while let Some(said) = self.next().await? {
            let is_it = said.kind == kind;
            all.push(said);
            if is_it {
                return Ok(all);
            }
        }
        bail!("no `{kind}` came: {all:#?}")
    }

    async fn rest(mut self) -> Result<Vec<Said>> {
        let mut all = Vec::new();
        while let Some(said) = self.next().await? {
            all.push(said);
        }
        Ok(all)
    }
}

fn read(said: &str) -> Result<Said> {
    let field = |name: &str| said.lines().find_map(|line| line.strip_prefix(name));
    let data = serde_json::from_str(field("data: ").context("data")?)?;
    let n = field("id: ").map(str::parse).transpose()?;
    Ok(Said { n, kind: field("event: ").context("event")?.to_owned(), data })
}

/// Returns all events of a run in the list, and then the end event.
async fn listed(api: &Api, run: &str, after: i64) -> Result<Vec<Said>> {
    let list = api.request(Method::GET, &format!("/api/v1/runs/{run}/events?after={after}"));
    let (_, list) = answer(list).await?;
    let mut all = Vec::new();
    let mut verdict = Value::Null;
    for item in list.as_array().context("a list")? {
        let what = &item["event"]["what"];
        let word = what.as_str().map(str::to_owned);
        let kind = word.or_else(|| Some(what.as_object()?.keys().next()?.clone()));
        verdict = what["judged"]["verdict"].clone();
        all.push(Said { n: item["n"].as_i64(), kind: kind.context("a kind")?, data: item.clone() });
    }
    all.push(Said { n: None, kind: "end".to_owned(), data: json!({"verdict": verdict}) });
    Ok(all)
}

fn document(url: &str) -> String {
    format!(
        "type: Test
spec:
  id: cart
  name: the cart
  skipTraceCollection: true
  trigger: {{type: http, httpRequest: {{method: GET, url: '{url}/cart?wait=${{var:wait}}'}}}}
  specs:
    - selector: span[name=\"Qualitytrace trigger\"]
      assertions: ['attr:tracetest.response.status = 200']
"
    )
}

async fn start(api: &Api, wait: u32) -> Result<String> {
    api.start("cart", &json!({"variables": {"wait": wait.to_string()}})).await
}

#[tokio::test(flavor = "multi_thread")]
async fn events_come_as_they_happen_on_any_server() -> Result<()> {
    let database = Database::create("live").await?;
    let target = Target::start(None).await?;
    let section = database.section()?;
    let owner = Server::start_with(Path::new(BINARY), &section, "127.0.0.1:0").await?;
    // It polls for runs once a minute, so that the other server leases all of them.
    let idle = format!("{section}\nworkers: {{poll: 60s}}\n");
    let other = Server::start_with(Path::new(BINARY), &idle, "127.0.0.1:0").await?;
    let api = Api::new(&owner.api)?;
    api.apply(&document(&target.url)).await?;

    let id = start(&api, 5000).await?;
    let mut here = Live::open(&owner.api, &id, "", None).await?;
    let mut there = Live::open(&other.api, &id, "", None).await?;
    let (mut at_owner, mut at_other) =
        tokio::try_join!(here.until("attempted"), there.until("attempted"))?;
    assert_eq!(api.run(&id).await?["state"], "running", "before the answer: {at_owner:#?}");
    at_owner.extend(here.rest().await?);
    at_other.extend(there.rest().await?);
    let all = listed(&api, &id, 0).await?;
    assert_eq!(at_owner, all);
    assert_eq!(at_other, all);
    let kinds: Vec<_> = all.iter().map(|said| said.kind.as_str()).collect();
    assert_eq!(kinds, ["accepted", "taken", "attempted", "answered", "judged", "end"]);
    let numbers: Vec<_> = all.iter().filter_map(|said| said.n).collect();
    assert_eq!(numbers, [1, 2, 3, 4, 5], "without gaps");

    // The events of an ended run can be streamed again, from any event on, to the end event.
    for after in 0..=4 {
        let rest = &all[usize::try_from(after)?..];
        let by_query = Live::open(&other.api, &id, &format!("?after={after}"), None).await?;
        assert_eq!(by_query.rest().await?, rest);
        let by_header = Live::open(&other.api, &id, "?after=0", Some(after)).await?;
        assert_eq!(by_header.rest().await?, rest);
    }
    let over = api.request(Method::GET, &format!("/api/v1/runs/{id}/events"));
    let over = over.header("accept", "text/event-stream").header("last-event-id", "5");
    assert_eq!(answer(over).await?.0, 204, "nothing more will come");
    assert_eq!(owner.terminate().await?, Some(0));
    assert_eq!(other.terminate().await?, Some(0));
    database.remove().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_goes_on_where_its_server_was_restarted() -> Result<()> {
    let database = Database::create("live_restart").await?;
    let target = Target::start(None).await?;
    let section = database.section()?;
    let server = Server::start_with(Path::new(BINARY), &section, "127.0.0.1:0").await?;
    let api = Api::new(&server.api)?;
    api.apply(&document(&target.url)).await?;
    let id = start(&api, 2000).await?;
    let mut live = Live::open(&server.api, &id, "", None).await?;
    let mut seen = live.until("attempted").await?;
    server.kill().await?;
    assert_eq!(live.rest().await?, [], "it ends with its server, and without an end");

    let server = Server::start_with(Path::new(BINARY), &section, "127.0.0.1:0").await?;
    let last = seen.last().and_then(|said| said.n);
    seen.extend(Live::open(&server.api, &id, "", last).await?.rest().await?);
    assert_eq!(seen, listed(&Api::new(&server.api)?, &id, 0).await?, "no gap and no repeat");
    // The kill may have happened between the database write and the first byte of the request.
    assert!(target.requests() <= 1);
    assert_eq!(server.terminate().await?, Some(0));
    database.remove().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stops_ends_what_is_live() -> Result<()> {
    let database = Database::create("live_stop").await?;
    let target = Target::start(None).await?;
    let section = database.section()?;
    // The run belongs to the owner: only its readers could delay the stop of the other server.
    let owner = Server::start_with(Path::new(BINARY), &section, "127.0.0.1:0").await?;
    let api = Api::new(&owner.api)?;
    api.apply(&document(&target.url)).await?;
    let id = start(&api, 60_000).await?;
    Live::open(&owner.api, &id, "", None).await?.until("attempted").await?;
    let other = Server::start_with(Path::new(BINARY), &section, "127.0.0.1:0").await?;
    let mut readers = Vec::new();
    for _ in 0..20 {
        let mut live = Live::open(&other.api, &id, "", None).await?;
        live.until("attempted").await?;
        readers.push(live);
    }
    // A stream that is never read.
    let unread = Live::open(&other.api, &id, "", None).await?;
    let began = Instant::now();
    assert_eq!(other.terminate().await?, Some(0));
    let took = began.elapsed();
    assert!(took < Duration::from_secs(3), "{took:?}");
    for live in readers {
        assert_eq!(live.rest().await?, [], "cut in order, without an end");
    }
    drop(unread);
    let stop = api.request(Method::POST, &format!("/api/v1/runs/{id}/stop"));
    assert_eq!(answer(stop).await?.0, 200);
    let ended = Live::open(&owner.api, &id, "?after=3", None).await?.rest().await?;
    assert_eq!(
        ended.last().map(|said| said.data.clone()),
        Some(json!({"verdict": "inconclusive"}))
    );
    assert_eq!(owner.terminate().await?, Some(0));
    database.remove().await
}

#[tokio::test(flavor = "multi_thread")]
async fn live_answers_are_bounded() -> Result<()> {
    // The runs of one project may use half of all slots.
    const ALL: usize = 128;
    let database = Database::create("live_bounded").await?;
    let target = Target::start(None).await?;
    let section = database.section()?;
    let server = Server::start_with(Path::new(BINARY), &section, "127.0.0.1:0").await?;
    let api = Api::new(&server.api)?;
    api.apply(&document(&target.url)).await?;
    let id = start(&api, 60_000).await?;
    let mut readers = Vec::new();
    for _ in 0..ALL {
        readers.push(Live::open(&server.api, &id, "", None).await?);
    }
    let more = || {
        let more = api.request(Method::GET, &format!("/api/v1/runs/{id}/events"));
        answer(more.header("accept", "text/event-stream"))
    };
    let (status, why) = more().await?;
    assert_eq!(status, 429, "{why:#}");
    assert!(why["detail"].to_string().contains("as many live answers are open"), "{why:#}");
    let list = api.request(Method::GET, &format!("/api/v1/runs/{id}/events"));
    assert_eq!(answer(list).await?.0, 200, "the list is there for everyone");
    readers.pop();
    let began = Instant::now();
    while Live::open(&server.api, &id, "", None).await.is_err() {
        ensure!(began.elapsed() < NEXT_MAX, "a place that was left is free again");
        sleep(Duration::from_millis(50)).await;
    }
    drop(readers);
    let stop = api.request(Method::POST, &format!("/api/v1/runs/{id}/stop"));
    assert_eq!(answer(stop).await?.0, 200);
    assert_eq!(server.terminate().await?, Some(0));
    database.remove().await
}
