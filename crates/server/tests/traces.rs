//! Stored traces from the view of a caller: as OTLP, as columns, span by span, and by a selector.

use std::{io::Read, net::SocketAddr, sync::Arc, time::Duration};

use anyhow::{Context, Result};
use base64::{Engine, engine::general_purpose::STANDARD};
use bench::parts::Database;
use db::{
    Connect, Db, LeaseRequest, NewRun, OtlpTrace, RunCompletion, RunVars, Starter, StoredColumns,
};
use flate2::read::GzDecoder;
use model::{
    Outcome, Project, RunId, SpanId, Timestamp, Trace, TraceId, World,
    trace::{EventData, Kind, LinkData, ResourceData, SpanData, StatusCode, Value as TraceValue},
};
use reqwest::{Client, Response, header};
use serde_json::{Value, json};
use server::{
    Handle, Telemetry,
    config::{self, Config, Environment},
};
use source::Text;
use tokio::runtime;
use url::Url;

const WORLD: World = World::new(now, random);

const TEST: &str = "type: Test
spec: {id: shop, name: shop, trigger: {type: http, httpRequest: {url: 'http://127.0.0.1:1/'}}}
";

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

/// A server without workers, and the database behind it.
struct Stage {
    database: Database,
    server: Handle,
    db: Db,
    client: Client,
    project: Project,
}

impl Stage {
    async fn set(name: &str) -> Result<Self> {
        let database = Database::create(name).await?;
        let text = Text::new("config.yaml", database.section()?);
        let mut config: Config =
            config::read(&text, &Environment::default()).config.context("a configuration")?;
        let any: SocketAddr = "127.0.0.1:0".parse()?;
        config.listen = config::Listen { http: any, otlp_grpc: any, otlp_http: any, probes: None };
        config.roles = "api".parse()?;
        let telemetry = Arc::new(Telemetry::start(&config, server::host())?);
        let postgres = config.postgres.clone();
        let server =
            server::start(config, telemetry, WORLD, runtime::Handle::current(), None).await?;
        // On a busy machine the database is opened only after the start.
        server.ready().await;
        let db = Db::connect(&Connect {
            host: postgres.host,
            port: postgres.port,
            user: postgres.user,
            password: postgres.password.expose().to_owned(),
            dbname: postgres.dbname,
            ..Connect::default()
        })
        .await?;
        let client = Client::builder().no_proxy().build()?;
        let stage = Self { database, server, db, client, project: Project::default() };
        let url = format!("http://{}/api/v1/tests", stage.server.addresses().http);
        stage.client.put(url).body(TEST).send().await?.error_for_status()?;
        Ok(stage)
    }

    /// Stores a run that ended, with its trace.
    async fn ended(&self, number: u8, trace: Option<OtlpTrace>) -> Result<RunId> {
        let id = RunId::new(now(), [number; 10]);
        let new = NewRun {
            id,
            project: self.project.clone(),
            test: "shop".parse()?,
            accepted_at: now(),
            traceparent: None,
            vars: RunVars::default(),
            timeout: None,
            key: None,
            starter: Starter::Token,
        };
        self.db.create_run(&new).await?;
        let request = LeaseRequest {
            worker: "the test",
            lease: Duration::from_secs(600),
            at: now(),
            runs_max: 1,
            host_max: 1,
            runs_reserved: 0,
            host_reserved: 0,
            with_expired: true,
            oldest_lease: None,
        };
        self.db.lease_runs(&request).await?.context("no other worker leases")?;
        let outcome = Outcome::open("shop".to_owned(), "none".to_owned());
        let completion = RunCompletion { outcome: &outcome, events: &[], trace };
        self.db.finish(id, 1, &completion).await?;
        Ok(id)
    }

    async fn get(&self, path: &str, headers: &[(&str, &str)]) -> Result<Response> {
        let url = format!("http://{}/api/v1/runs/{path}", self.server.addresses().http);
        let request = self.client.get(url);
        let request = headers.iter().fold(request, |it, (name, value)| it.header(*name, *value));
        Ok(request.send().await?)
    }

    async fn json(&self, path: &str) -> Result<(u16, Value)> {
        let response = self.get(path, &[]).await?;
        let status = response.status().as_u16();
        Ok((status, serde_json::from_slice(&response.bytes().await?)?))
    }

    async fn end(self) -> Result<()> {
        self.db.close().await;
        assert!(self.server.shutdown().await.is_delivered());
        self.database.remove().await
    }
}

fn id(number: u8) -> SpanId {
    SpanId::from_bytes([0xa0, 0, 0, 0, 0, 0, 0, number]).expect("not all zero")
}

fn text(key: &str, value: &str) -> (String, TraceValue) {
    (key.to_owned(), TraceValue::Str(value.to_owned()))
}

/// Three spans, of which two have one id.
fn trace() -> Trace {
    let mut trace = Trace::new(TraceId::from_bytes([7; 16]).expect("an id"));
    let attributes = vec![text("service.name", "shop")];
    let resource = ResourceData { attributes, ..ResourceData::default() };
    let resource = trace.resource(resource).expect("room");
    let scope = trace.scope(Default::default()).expect("room");
    let at = |ms: u64| Timestamp::from_nanos(1_780_000_000_000_000_000 + ms * 1_000_000);
    let mut root = SpanData {
        kind: Kind::Server,
        start: at(0),
        end: at(9),
        ..SpanData::new(id(1), None, "POST /orders")
    };
    root.status.code = StatusCode::Error;
    root.status.message = "no stock".to_owned();
    root.attributes = vec![
        text("url.path", "/orders"),
        ("large".to_owned(), TraceValue::Int((1 << 53) + 1)),
        ("bytes".to_owned(), TraceValue::Bytes(vec![0xff, 0])),
    ];
    root.events =
        vec![EventData { at: at(4), name: "exception".to_owned(), ..EventData::default() }];
    root.links = vec![LinkData {
        trace_id: TraceId::from_bytes([8; 16]),
        span_id: None,
        attributes: vec![text("a", "b")],
        ..LinkData::default()
    }];
    let copy =
        |ms| SpanData { start: at(ms), end: at(5), ..SpanData::new(id(2), Some(id(1)), "copy") };
    for data in [root, copy(1), copy(2)] {
        trace.push(resource, scope, data).expect("room");
    }
    trace
}

fn stored(trace: &Trace, with_columns: bool) -> OtlpTrace {
    let columns = with_columns.then(|| otlp::columns(trace).expect("short names").into());
    OtlpTrace { spans: trace.len() as u64, otlp: otlp::encode(trace).into(), columns }
}

fn headers(response: &Response) -> [&str; 4] {
    [header::CONTENT_ENCODING, header::ETAG, header::VARY, header::CACHE_CONTROL].map(|name| {
        response.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trace_and_its_columns_are_sent_as_the_client_accepts_them() -> Result<()> {
    let stage = Stage::set("traces_forms").await?;
    let trace = trace();
    let (otlp, columns) = (otlp::encode(&trace), otlp::columns(&trace)?);
    let new = stage.ended(1, Some(stored(&trace, true))).await?;
    let old = stage.ended(2, Some(stored(&trace, false))).await?;
    let made = async || anyhow::Ok(stage.db.columns(&stage.project, old).await?);
    assert_eq!(made().await?, Some(StoredColumns { zstd: None }));
    for run in [new, old] {
        for (name, tag, plain) in
            [("trace", "W/\"otlp\"", &otlp), ("trace/columns", "W/\"columns-1\"", &columns)]
        {
            let path = format!("{run}/{name}");
            let response = stage.get(&path, &[]).await?;
            assert_eq!(response.status(), 200, "{path}");
            let expected = ["", tag, "accept-encoding", "private, no-cache"];
            assert_eq!(headers(&response), expected, "{path}");
            assert_eq!(response.bytes().await?, plain, "{path}");

            let response = stage.get(&path, &[("accept-encoding", "gzip, zstd")]).await?;
            assert_eq!(headers(&response)[0], "zstd", "{path}");
            let packed = response.bytes().await?.to_vec();
            if name == "trace" {
                let as_stored = stage.db.trace_zstd(&stage.project, run).await?;
                assert_eq!(as_stored, Some(packed), "{path}");
            } else {
                assert_eq!(stage.db.unpack_columns(run, packed).await?, columns, "{path}");
            }

            let response = stage.get(&path, &[("accept-encoding", "gzip")]).await?;
            let is_packed = name == "trace/columns";
            assert_eq!(headers(&response)[0], if is_packed { "gzip" } else { "" }, "{path}");
            let mut bytes = response.bytes().await?.to_vec();
            if is_packed {
                let packed = std::mem::take(&mut bytes);
                GzDecoder::new(&*packed).read_to_end(&mut bytes)?;
            }
            assert_eq!(&bytes, plain, "{path}");

            let response = stage.get(&path, &[("if-none-match", tag)]).await?;
            assert_eq!((response.status().as_u16(), headers(&response)[1]), (304, tag), "{path}");
            assert!(response.bytes().await?.is_empty());
            let response = stage.get(&path, &[("if-none-match", "W/\"other\"")]).await?;
            assert_eq!(response.status(), 200, "{path}");
        }
    }
    let made =
        made().await?.and_then(|stored| stored.zstd).context("the first reader made them")?;
    assert_eq!(stage.db.unpack_columns(old, made).await?, columns);
    stage.end().await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_there_is_missing() -> Result<()> {
    let stage = Stage::set("traces_missing").await?;
    let run = stage.ended(1, Some(stored(&trace(), true))).await?;
    let bare = stage.ended(2, None).await?;
    let names = [
        "trace",
        "trace/columns",
        "trace/attribute?key=url.path",
        "trace/select?q=span[]",
        "trace/spans/a000000000000001",
    ];
    for name in names {
        let (status, problem) = stage.json(&format!("{bare}/{name}")).await?;
        let detail = problem["detail"].as_str().unwrap_or_default();
        assert!(status == 404 && detail.contains("has no trace (yet)"), "{name}: {problem}");
        let and = if name.contains('?') { '&' } else { '?' };
        let tag = [("if-none-match", "*")];
        let other = stage.get(&format!("{run}/{name}{and}project=other"), &tag).await?;
        assert_eq!(other.status(), 404, "another project has no such run: {name}");
    }
    let cases = [
        ("spans/b000000000000001", 404, "has no span `b000000000000001`"),
        ("spans/absent", 400, "`absent` is not a span id"),
        ("select", 400, "missing field `q`"),
        ("select?q=span[]&more=1", 400, "unknown field `more`"),
    ];
    for (path, expected, words) in cases {
        let (status, problem) = stage.json(&format!("{run}/trace/{path}")).await?;
        let detail = problem["detail"].as_str().unwrap_or_default();
        assert!(status == expected && detail.contains(words), "{path}: {problem}");
    }
    stage.end().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_span_has_everything_and_copies_are_several() -> Result<()> {
    let stage = Stage::set("traces_spans").await?;
    let run = stage.ended(1, Some(stored(&trace(), true))).await?;
    let (status, found) = stage.json(&format!("{run}/trace/spans/a000000000000001")).await?;
    let resource = json!([{"key": "service.name", "type": "string", "value": "shop"}]);
    let root = json!({
        "id": "a000000000000001",
        "parentSpanId": null,
        "name": "POST /orders",
        "kind": "server",
        "service": "shop",
        "status": {"code": "error", "message": "no stock"},
        "start": "1780000000000000000",
        "end": "1780000000009000000",
        "attributes": [
            {"key": "url.path", "type": "string", "value": "/orders"},
            {"key": "large", "type": "int", "value": "9007199254740993"},
            {"key": "bytes", "type": "bytes", "value": "/wA="},
        ],
        "events": [{"name": "exception", "time": "1780000000004000000", "attributes": []}],
        "links": [{
            "traceId": "08".repeat(16),
            "spanId": null,
            "attributes": [{"key": "a", "type": "string", "value": "b"}],
        }],
        "resource": resource,
        "scope": {"name": "", "version": ""},
    });
    assert_eq!((status, found), (200, json!({"spans": [root], "total": 1})));
    let (_, copies) = stage.json(&format!("{run}/trace/spans/a000000000000002")).await?;
    let starts: Vec<_> = copies["spans"].as_array().context("spans")?.iter().collect();
    let starts: Vec<_> = starts.iter().map(|span| &span["start"]).collect();
    assert_eq!(starts, ["1780000000001000000", "1780000000002000000"]);
    assert_eq!(copies["spans"][1]["parentSpanId"], "a000000000000001");
    assert_eq!(copies["total"], 2);
    stage.end().await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_values_of_an_attribute_are_in_the_order_of_the_columns() -> Result<()> {
    let stage = Stage::set("traces_attribute").await?;
    let run = stage.ended(1, Some(stored(&trace(), true))).await?;
    let cases = [
        ("url.path", json!(["/orders"]), [0, 65535, 65535]),
        ("large", json!(["9007199254740993"]), [0, 65535, 65535]),
        // Of the resource.
        ("service.name", json!(["shop"]), [0, 0, 0]),
        ("absent", json!([]), [65535; 3]),
    ];
    for (key, values, numbers) in cases {
        let (status, found) = stage.json(&format!("{run}/trace/attribute?key={key}")).await?;
        assert_eq!((status, &found["values"]), (200, &values), "{key}: {found}");
        let bytes = STANDARD.decode(found["spans"].as_str().context("text")?)?;
        let spans: Vec<_> = bytes.chunks(2).map(|it| u16::from_le_bytes([it[0], it[1]])).collect();
        assert_eq!(spans, numbers, "{key}");
    }
    let long = "a".repeat(1025);
    let (status, _) = stage.json(&format!("{run}/trace/attribute?key={long}")).await?;
    assert_eq!(status, 400);
    let (value, cut) = ("ä".repeat(600), format!("{}…", "ä".repeat(512)));
    let mut many = Trace::new(TraceId::from_bytes([7; 16]).context("an id")?);
    let (resource, scope) = (many.resource(Default::default())?, many.scope(Default::default())?);
    for number in 1..=10_002u64 {
        let span = SpanId::from_bytes(number.to_be_bytes()).context("an id")?;
        let first = if number == 1 { text("k", &value) } else { text("k", &number.to_string()) };
        many.push(
            resource,
            scope,
            SpanData { attributes: vec![first], ..SpanData::new(span, None, "a") },
        )?;
    }
    let run = stage.ended(2, Some(stored(&many, true))).await?;
    let (_, found) = stage.json(&format!("{run}/trace/attribute?key=k")).await?;
    assert_eq!(found["values"][0], cut);
    assert_eq!(found["values"].as_array().map(Vec::len), Some(10_000));
    let bytes = STANDARD.decode(found["spans"].as_str().context("text")?)?;
    assert_eq!(bytes[2 * 9_999..], [0x0f, 0x27, 0xfe, 0xff, 0xfe, 0xff], "two more are others");
    stage.end().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_selector_selects_spans_or_its_mistake_is_shown() -> Result<()> {
    let stage = Stage::set("traces_select").await?;
    let run = stage.ended(1, Some(stored(&trace(), true))).await?;
    let many = {
        let mut trace = Trace::new(TraceId::from_bytes([7; 16]).context("an id")?);
        let resource = trace.resource(Default::default())?;
        let scope = trace.scope(Default::default())?;
        for number in 1..=10_001u64 {
            let id = SpanId::from_bytes(number.to_be_bytes()).context("an id")?;
            trace.push(resource, scope, SpanData::new(id, None, "a"))?;
        }
        stage.ended(2, Some(stored(&trace, true))).await?
    };
    let select = async |run: RunId, selector: &str| {
        let url =
            format!("http://{}/api/v1/runs/{run}/trace/select", stage.server.addresses().http);
        let url = Url::parse_with_params(&url, [("q", selector)])?;
        let response = stage.client.get(url).send().await?;
        let status = response.status().as_u16();
        anyhow::Ok((status, serde_json::from_slice::<Value>(&response.bytes().await?)?))
    };
    let (status, found) = select(run, "span[name=\"POST /orders\"]").await?;
    let expected = json!({"spans": ["a000000000000001"], "total": 1, "cut": false});
    assert_eq!((status, found), (200, expected));
    let (_, found) = select(many, "span[]").await?;
    assert_eq!((&found["total"], &found["cut"]), (&json!(10_001), &json!(true)));
    assert_eq!(found["spans"].as_array().map(Vec::len), Some(10_000));
    let (status, problem) = select(run, "span[name=").await?;
    assert_eq!((status, &problem["code"]), (422, &json!("invalid-document")), "{problem}");
    let diagnostic = &problem["diagnostics"][0];
    assert_eq!((&diagnostic["line"], &diagnostic["column"]), (&json!(1), &json!(11)), "{problem}");
    let (status, problem) = select(run, &" ".repeat(8193)).await?;
    assert_eq!((status, &problem["code"]), (400, &json!("too-large")), "{problem}");
    stage.end().await
}
