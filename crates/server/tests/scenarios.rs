//! Every operation of the API as a scenario: requests and responses in a text file, from top to bottom.
//!
//! A file of `golden/api` holds exchanges: `>>>` with method and path, headers and a body, then `<<<` with the expected
//! response. Values that change from run to run have a name: `<id-1>`, `<time>`; a request may use the name of an id from an
//! earlier response. A line `>>> wait METHOD PATH` repeats the request until the response shows that the run ended.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    net::SocketAddr,
    path::Path,
    sync::Arc,
    time::Duration,
};

use anyhow::{Context, Result, bail};
use bench::parts::Database;
use golden::Golden;
use model::{RunId, Timestamp, World};
use reqwest::{Client, Method, Response};
use serde_json::Value;
use server::{
    DemoFault, DemoShop, Handle, OpenShop, Telemetry,
    config::{self, Config, Environment},
};
use source::Text;
use tokio::{runtime, time::sleep};

/// The poll interval for a run, and the maximum number of polls.
const POLL: Duration = Duration::from_millis(50);
const POLLS_MAX: usize = 400;

/// Response headers that are part of the API's contract.
const HEADERS: &[&str] = &["allow", "content-type", "etag", "location", "retry-after"];

/// Operations that succeed only with a stored trace, which `traces.rs` has, with a person who logged in, which `oidc.rs` has, or with
/// a trace store, which `crates/cli/tests/stores.rs` has, or without an end, which `crates/cli/tests/live.rs` has.
const ELSEWHERE: &[(&str, &str)] = &[
    ("GET", "/api/v1/events"),
    ("GET", "/api/v1/runs/{run}/trace"),
    ("GET", "/api/v1/runs/{run}/trace/attribute"),
    ("GET", "/api/v1/runs/{run}/trace/columns"),
    ("GET", "/api/v1/runs/{run}/trace/select"),
    ("GET", "/api/v1/runs/{run}/trace/spans/{span}"),
    ("DELETE", "/api/v1/sessions/{id}"),
    ("POST", "/api/v1/trace-stores/{id}/probe"),
];

const WORLD: World = World::new(now, random);

fn now() -> Timestamp {
    #[expect(clippy::disallowed_methods, reason = "a test is a main of its own")]
    let now =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_nanos(u64::try_from(now.as_nanos()).unwrap_or(u64::MAX))
}

fn random() -> [u8; 32] {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).expect("the system has randomness");
    bytes
}

/// A shop that has an address and does not listen, so that its address is the same in every run.
fn shop() -> DemoShop {
    DemoShop {
        faults: || {
            vec![
                DemoFault { name: "slow", about: "it takes its time" },
                DemoFault { name: "late", about: "it keeps its spans" },
            ]
        },
        test: |address| {
            format!(
                "type: Test\nspec:\n  id: checkout\n  name: an order is paid once\n  trigger: {{type: http, httpRequest: {{method: GET, url: 'http://{address}/orders'}}}}\n"
            )
        },
        open: |_, _| {
            let address = SocketAddr::from(([127, 0, 0, 1], 41634));
            Box::pin(async move { Ok(OpenShop { address, close: Box::pin(async {}) }) })
        },
    }
}

async fn start(database: &Database) -> Result<Handle> {
    let keys = format!("secrets:\n  keys: ['first:{}']\n", "07".repeat(32));
    let text = Text::new("config.yaml", format!("{}\n{keys}", database.section()?));
    let read = config::read(&text, &Environment::default());
    let told = source::draw(&read.diagnostics, source::Colour::Never);
    let mut config: Config = read.config.context(told)?;
    let any: SocketAddr = "127.0.0.1:0".parse()?;
    config.listen = config::Listen { http: any, otlp_grpc: any, otlp_http: any, probes: None };
    config.data_directory = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("scenarios");
    let telemetry = Arc::new(Telemetry::start(&config, server::host())?);
    let server =
        server::start(config, telemetry, WORLD, runtime::Handle::current(), Some(shop())).await?;
    // On a busy machine the database is opened only after the start.
    server.ready().await;
    Ok(server)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_operation_has_a_scenario() -> Result<()> {
    let database = Database::create("api_scenarios").await?;
    let server = start(&database).await?;
    let client = Client::builder().no_proxy().build()?;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/api");
    let mut golden = Golden::default();
    let mut open = operations()?;
    for file in golden::files(&folder, &["http"]) {
        let mut scenario = Scenario {
            client: &client,
            base: format!("http://{}", server.addresses().http),
            names: Names::default(),
        };
        let mut told = String::new();
        for exchange in exchanges(&fs::read_to_string(&file)?) {
            let (text, status) = scenario.play(&exchange).await?;
            told.push_str(&text);
            if (200..300).contains(&status) {
                open.retain(|operation| !operation.fits(&exchange.method, &exchange.path));
            }
        }
        golden.compare(&file, &told);
    }
    golden.finish(8);
    open.retain(|operation| {
        !ELSEWHERE.contains(&(operation.method.as_str(), operation.path.as_str()))
    });
    assert!(open.is_empty(), "operations that no scenario has done: {open:#?}");
    assert!(server.shutdown().await.is_delivered());
    database.remove().await
}

/// An operation of the OpenAPI document.
#[derive(Debug)]
struct Operation {
    method: String,
    path: String,
}

fn operations() -> Result<Vec<Operation>> {
    let document: Value = serde_json::from_str(server::openapi())?;
    let paths = document["paths"].as_object().context("paths")?;
    let of_path = |(path, item): (&String, &Value)| {
        let methods: Vec<_> =
            item.as_object().into_iter().flatten().map(|(name, _)| name.to_uppercase()).collect();
        let path = path.clone();
        methods.into_iter().map(move |method| Operation { method, path: path.clone() })
    };
    Ok(paths.iter().flat_map(of_path).collect())
}

impl Operation {
    fn fits(&self, method: &str, path: &str) -> bool {
        let path = path.split('?').next().unwrap_or_default();
        let (mut given, mut known) = (path.split('/'), self.path.split('/'));
        self.method == method
            && path.split('/').count() == self.path.split('/').count()
            && known
                .all(|part| given.next().is_some_and(|one| part.starts_with('{') || part == one))
    }
}

/// A request in a scenario file.
#[derive(Debug, Default)]
struct Exchange {
    /// Its first line, and the comments before it.
    head: String,
    is_waiting: bool,
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    body: String,
}

fn exchanges(text: &str) -> Vec<Exchange> {
    let mut all: Vec<Exchange> = Vec::new();
    let mut comment = String::new();
    /// The part of an exchange that a line belongs to.
    enum At {
        Comment,
        Headers,
        Body,
    }
    let mut at = At::Comment;
    for line in text.lines() {
        if let Some(request) = line.strip_prefix(">>> ") {
            let waiting = request.strip_prefix("wait ");
            let (method, path) =
                waiting.unwrap_or(request).split_once(' ').unwrap_or((request, ""));
            all.push(Exchange {
                head: format!("{}{line}\n", std::mem::take(&mut comment)),
                is_waiting: waiting.is_some(),
                method: method.to_owned(),
                path: path.to_owned(),
                ..Exchange::default()
            });
            at = At::Headers;
        } else if line.starts_with("<<<") {
            at = At::Comment;
        } else if line.starts_with("# ") && matches!(at, At::Comment) {
            comment.push_str(&format!("{line}\n"));
        } else if let Some(exchange) = all.last_mut() {
            match at {
                At::Comment => {}
                At::Headers if line.is_empty() => at = At::Body,
                At::Headers => {
                    let (name, value) = line.split_once(": ").unwrap_or((line, ""));
                    exchange.headers.push((name.to_owned(), value.to_owned()));
                }
                At::Body => exchange.body.push_str(&format!("{line}\n")),
            }
        }
    }
    all
}

struct Scenario<'a> {
    client: &'a Client,
    base: String,
    names: Names,
}

impl Scenario<'_> {
    /// Sends the request. Returns the actual exchange, and the status of the response.
    async fn play(&mut self, exchange: &Exchange) -> Result<(String, u16)> {
        let mut text = exchange.head.clone();
        for (name, value) in &exchange.headers {
            text.push_str(&format!("{name}: {value}\n"));
        }
        let body = exchange.body.trim_end_matches('\n');
        if !body.is_empty() {
            text.push_str(&format!("\n{body}\n"));
        }
        let (response, answer) = self.answered(exchange).await?;
        let status = response.0;
        text.push_str(&format!("<<< {status}\n"));
        for (name, value) in &response.1 {
            text.push_str(&format!("{name}: {}\n", self.names.hide(value)));
        }
        let shown = match serde_json::from_str::<Value>(&answer) {
            Ok(value) => format!("{:#}", self.names.hide_all(value)),
            Err(_) => self.names.hide(&answer),
        };
        if !shown.is_empty() {
            text.push_str(&format!("\n{}\n", shown.trim_end()));
        }
        text.push('\n');
        Ok((text, status))
    }

    async fn answered(
        &self,
        exchange: &Exchange,
    ) -> Result<((u16, Vec<(String, String)>), String)> {
        for _ in 0..POLLS_MAX {
            let response = self.send(exchange).await?;
            let head = head(&response);
            let bytes = response.bytes().await?;
            let is_text = std::str::from_utf8(&bytes).is_ok_and(|text| !text.contains('\0'));
            let answer = match is_text {
                true => String::from_utf8_lossy(&bytes).into_owned(),
                false => "<bytes>".to_owned(),
            };
            if !exchange.is_waiting || answer.contains("\"state\":\"ended\"") {
                return Ok((head, answer));
            }
            // At most `POLLS_MAX` times.
            sleep(POLL).await;
        }
        bail!("the run did not end: {}", exchange.path)
    }

    async fn send(&self, exchange: &Exchange) -> Result<Response> {
        let method = Method::from_bytes(exchange.method.as_bytes())?;
        let url = format!("{}{}", self.base, self.names.show(&exchange.path));
        let mut request = self.client.request(method, url).body(self.names.show(&exchange.body));
        for (name, value) in &exchange.headers {
            request = request.header(name, self.names.show(value));
        }
        Ok(request.send().await?)
    }
}

fn head(response: &Response) -> (u16, Vec<(String, String)>) {
    let header = |name: &&str| {
        let value = response.headers().get(*name)?.to_str().ok()?;
        Some(((*name).to_owned(), value.to_owned()))
    };
    (response.status().as_u16(), HEADERS.iter().filter_map(header).collect())
}

/// The names of values that change from run to run.
#[derive(Debug, Default)]
struct Names {
    by_value: BTreeMap<String, String>,
}

impl Names {
    /// Replaces values that change by their names.
    fn hide(&mut self, text: &str) -> String {
        if text.starts_with("qtt_") {
            return "<token>".to_owned();
        }
        let is_word = |c: char| c.is_ascii_alphanumeric() || "-:.+".contains(c);
        let words: BTreeSet<&str> = text.split(|c| !is_word(c)).collect();
        let mut hidden = text.to_owned();
        for word in words {
            if let Some(name) = self.name(word) {
                hidden = hidden.replace(word, &name);
            }
        }
        hidden
    }

    fn hide_all(&mut self, value: Value) -> Value {
        match value {
            Value::String(text) => Value::from(self.hide(&text)),
            Value::Array(items) => items.into_iter().map(|item| self.hide_all(item)).collect(),
            Value::Object(map) => {
                let hide = |(key, value): (String, Value)| {
                    let value = match (&value, key.ends_with("Ns")) {
                        (Value::Number(_), true) => Value::from("<nanoseconds>"),
                        (Value::Number(_), _) if key.ends_with("Port") => Value::from("<port>"),
                        _ => self.hide_all(value),
                    };
                    (key, value)
                };
                Value::Object(map.into_iter().map(hide).collect())
            }
            other => other,
        }
    }

    fn name(&mut self, word: &str) -> Option<String> {
        let is_hex = |size| word.len() == size && word.bytes().all(|it| it.is_ascii_hexdigit());
        let kind = if word.len() == 36 && word.parse::<RunId>().is_ok() {
            "id"
        } else if is_hex(32) {
            "trace"
        } else if is_hex(16) {
            "span"
        } else if word.len() > 19 && word.ends_with('Z') && word.as_bytes()[10] == b'T' {
            return Some("<time>".to_owned());
        } else {
            return None;
        };
        let next = self.by_value.values().filter(|name| name.contains(kind)).count() + 1;
        let name = || format!("<{kind}-{next}>");
        Some(self.by_value.entry(word.to_owned()).or_insert_with(name).clone())
    }

    /// Replaces names by their values.
    fn show(&self, text: &str) -> String {
        self.by_value.iter().fold(text.to_owned(), |text, (value, name)| text.replace(name, value))
    }
}
