//! ClickHouse, its real engine behind the HTTP server of `cargo xtask services`, with both kinds of tables of the Collector's exporter.
//!
//! The rows are those that the exporter writes. The exporter itself is not used: it prepares its inserts by the native formats of its client,
//! which the server of the tests does not speak.

mod table;

use std::{net::SocketAddr, time::Duration};

use drivers::store::{Completeness, QueryResult, StoreClient};
use model::{
    Secret, SpanDetail, StoreConfig, Trace,
    trace::{SpanData, Value},
};
use tokio::task::JoinSet;

use crate::{
    conformance::{self, Intake, Subject, told},
    faults::{answering, form},
    sample::{self, Content, address, as_text, content, decoded, flat, fresh, full},
};

use table::{create, create_lookup, execute, insert, quoted};

/// The tables: that of the exporter by default, and one with `json: true` in another database.
const TABLES: [&str; 2] = [MAP, JSON];
const MAP: &str = "otel_traces";
const JSON: &str = "observed.json-spans";

fn open(url: &str, index: &str, profile: Option<&str>) -> StoreClient {
    let header = |it| ("X-Test-Profile".to_owned(), Secret::new(it));
    let config = StoreConfig {
        headers: profile.map(header).into_iter().collect(),
        index: (index != MAP).then(|| index.to_owned()),
        ..sample::config("clickhouse", url)
    };
    sample::open(&config)
}

/// Returns the installed ClickHouse, with both tables.
async fn prepared() -> Option<String> {
    let url = address("QUALITYTRACE_TEST_CLICKHOUSE")?;
    execute(&url, "CREATE DATABASE IF NOT EXISTS observed").await;
    for (index, attributes) in [(MAP, "Map(LowCardinality(String), String)"), (JSON, "JSON")] {
        create(&url, index, attributes).await;
        create_lookup(&url, index).await;
    }
    Some(url)
}

fn subject(url: &str, index: &'static str) -> Subject {
    let changes = if index == JSON { changes_of_json } else { |_: &mut _| () };
    Subject { client: open(url, index, None), intake: intake(url, index), changes }
}

fn intake(url: &str, index: &'static str) -> Intake {
    let url = url.to_owned();
    Intake::Api(Box::new(move |trace| {
        let (url, statement) = (url.clone(), insert(trace, index));
        Box::pin(async move { execute(&url, &statement).await })
    }))
}

/// Bytes are Base64, and a map is one attribute for each path.
fn changes_of_json(content: &mut Content) {
    for (span, resource, scope) in content {
        let events = span.events.iter_mut().map(|event| &mut event.attributes);
        let links = span.links.iter_mut().map(|link| &mut link.attributes);
        let all = [&mut span.attributes, &mut resource.attributes, &mut scope.attributes];
        for attributes in all.into_iter().chain(events).chain(links) {
            let pairs = std::mem::take(attributes).into_iter();
            *attributes = pairs.flat_map(|(key, value)| path(key, value)).collect();
        }
    }
}

fn path(key: String, value: Value) -> Vec<(String, Value)> {
    match value {
        Value::Map(inner) => {
            let inner = inner.into_iter();
            inner.flat_map(|(it, value)| path(format!("{key}.{it}"), value)).collect()
        }
        Value::Bytes(_) => vec![(key, Value::Str(as_text(&value)))],
        value => vec![(key, value)],
    }
}

/// Returns a trace of one span with these attributes.
fn one(attributes: &[(&str, Value)]) -> Trace {
    let mut made = flat(fresh(), 1);
    let first = content(&made).remove(0);
    let mut span = SpanData { attributes: Vec::new(), ..first.0 };
    span.attributes = attributes.iter().map(|(key, it)| ((*key).to_owned(), it.clone())).collect();
    let id = made.id();
    made = Trace::new(id);
    let resource = made.resource(first.1).expect("room");
    let scope = made.scope(first.2).expect("room");
    made.push(resource, scope, span).expect("room");
    made
}

#[tokio::test]
async fn clickhouse_gives_back_what_it_was_sent() {
    let Some(url) = prepared().await else { return };
    for index in TABLES {
        let subject = subject(&url, index);
        conformance::an_unknown_trace(&subject).await;
        conformance::what_was_sent(&subject).await;
        conformance::a_trace_that_grows(&subject).await;
        conformance::answers_that_repeat(&subject, Duration::from_secs(1)).await;
        let lacks = subject.client.store.profile().lacks;
        assert_eq!(lacks.contains(&SpanDetail::ValueTypes), index == MAP, "{lacks:?}");
    }
}

#[tokio::test]
async fn clickhouse_gives_back_a_large_trace_from_map_columns() {
    let Some(url) = prepared().await else { return };
    conformance::a_large_trace(&subject(&url, MAP)).await;
}

#[tokio::test]
async fn clickhouse_gives_back_a_large_trace_from_json_columns() {
    let Some(url) = prepared().await else { return };
    conformance::a_large_trace(&subject(&url, JSON)).await;
}

#[tokio::test]
async fn an_answer_of_clickhouse_that_is_cut_or_held_is_no_answer() {
    let Some(url) = prepared().await else { return };
    let query = url.trim_start_matches("http://").parse().expect("an address");
    let open = |at: SocketAddr| open(&format!("http://{at}"), MAP, None);
    conformance::cut_answers((query, intake(&url, MAP)), open).await;
}

#[tokio::test]
async fn rows_that_the_exporter_wrote_twice_are_one_span() {
    let Some(url) = prepared().await else { return };
    for index in TABLES {
        let (subject, sent) = (subject(&url, index), full(fresh()));
        subject.intake.send(&sent).await;
        let first = subject.client.store.query(sent.id(), None).await;
        subject.intake.send(&sent).await;
        let again = subject.client.store.query(sent.id(), None).await;
        assert_eq!(decoded(sent.id(), &again).len(), sent.len(), "{}", told(&again));
        assert_eq!(again, first);
    }
}

#[tokio::test]
async fn a_setting_of_a_profile_does_not_cut_an_answer_without_a_sign() {
    const READ: &str =
        "max_rows_to_read = 2500, max_block_size = 100, read_overflow_mode = 'break'";
    const RESULT: &str =
        "max_result_rows = 1, max_result_bytes = 1, result_overflow_mode = 'break'";
    let Some(url) = prepared().await else { return };
    let (sent, other) = (flat(fresh(), 3_000), fresh());
    let own = [
        (MAP, "observed.limited", "Map(LowCardinality(String), String)"),
        (JSON, "observed.limited-json", "JSON"),
    ];
    for (like, index, attributes) in own {
        create(&url, index, attributes).await;
        execute(&url, &format!("TRUNCATE TABLE {}", quoted(index))).await;
        execute(&url, &insert(&sent, like).replace(&quoted(like), &quoted(index))).await;
        let whole = open(&url, index, None).store.query(sent.id(), None).await;
        assert_eq!(decoded(sent.id(), &whole).len(), 3_000);
        // One row is not cut by the size of results, by whatever limit.
        let bound = format!("{RESULT}, readonly = 1");
        for profile in [RESULT, "limit = 1", "readonly = 2", "readonly = 1", &bound] {
            let store = open(&url, index, Some(profile)).store;
            let result = store.query(sent.id(), None).await;
            assert!(result == whole, "{index}, {profile}: {}", told(&result));
            assert_eq!(store.query(other, None).await, QueryResult::Nothing, "{index}, {profile}");
        }
        // The limit of rows that may be read stays, but exceeding it is an error.
        let store = open(&url, index, Some(READ)).store;
        // A user who may not change how the limit is applied.
        let bound = open(&url, index, Some(&format!("{READ}, readonly = 1"))).store;
        // Each of the unknown traces is another: ClickHouse remembers which parts of a table lack an id, and does not read them.
        for (trace, spans) in [(sent.id(), 1..3_000), (fresh(), 0..1)] {
            let result = store.query(trace, None).await;
            let (may_succeed, message, _) = form(&result);
            assert!(!may_succeed && message.starts_with("exception 158: "), "{message}");
            let trace = if trace == sent.id() { trace } else { fresh() };
            let result = bound.query(trace, None).await;
            let QueryResult::Spans { completeness: Completeness::Partial(why), .. } = &result
            else {
                unreachable!("{index}: {}", told(&result));
            };
            assert!(why.contains("`read_overflow_mode` = `break`"), "{why}");
            let found = decoded(trace, &result).len();
            assert!(spans.contains(&found), "{index}: {found}");
        }
    }
}

#[tokio::test]
async fn integers_that_a_profile_quotes_are_not_taken_for_texts() {
    let Some(url) = prepared().await else { return };
    let sent = one(&[("integer", Value::Int(7))]);
    let profile = "output_format_json_quote_64bit_integers = 1";
    for index in TABLES {
        intake(&url, index).send(&sent).await;
        let whole = open(&url, index, None).store.query(sent.id(), None).await;
        let result = open(&url, index, Some(profile)).store.query(sent.id(), None).await;
        assert_eq!(result, whole, "{index}");
        let bound = format!("{profile}, readonly = 1");
        let result = open(&url, index, Some(&bound)).store.query(sent.id(), None).await;
        if index == MAP {
            assert_eq!(result, whole);
        } else {
            let (may_succeed, message, _) = form(&result);
            assert!(!may_succeed && message.contains("quote_64bit_integers"), "{message}");
        }
    }
}

#[tokio::test]
async fn a_table_of_another_product_is_refused_by_name() {
    let Some(url) = prepared().await else { return };
    let cases = [
        (
            "signoz_index_v3",
            "ts_bucket_start UInt64, resource_fingerprint String, timestamp DateTime64(9), trace_id String, duration_nano UInt64",
            "is a table of SigNoz",
        ),
        (
            "signoz_index_v2",
            "timestamp DateTime64(9), traceID String, spanID String, durationNano UInt64",
            "is a table of SigNoz",
        ),
        (
            "spans",
            "id String, trace_id String, parent_span_id String, start_time DateTime64(9), scope_name String",
            "is a table of Jaeger",
        ),
        ("else", "Timestamp DateTime64(9), TraceId String", "has no column `SpanId`"),
    ];
    for (table, columns, expected) in cases {
        let create =
            format!("CREATE TABLE IF NOT EXISTS observed.`{table}` ({columns}) ENGINE = Memory");
        execute(&url, &create).await;
        let index = format!("observed.{table}");
        let result = open(&url, &index, None).store.query(fresh(), None).await;
        let message = format!(
            "`{index}` {expected}: only tables of the Collector's `clickhouseexporter` are queried"
        );
        assert_eq!(form(&result), (false, message.as_str(), None));
    }
    create(&url, "observed.texts", "String").await;
    let result = open(&url, "observed.texts", None).store.query(fresh(), None).await;
    let (may_succeed, message, _) = form(&result);
    assert!(!may_succeed && message.contains("`SpanAttributes` String"), "{message}");
}

#[tokio::test]
async fn a_name_that_is_no_table_is_refused_and_never_part_of_a_statement() {
    let Some(url) = prepared().await else { return };
    let names = [
        "",
        ".",
        "otel_traces`; DROP TABLE otel_traces --",
        "otel_traces` WHERE 1 --",
        "system.one.two",
        "a b",
        "numbers(10)",
        "otel_traces'",
        "otel_traces\\",
        "otel_traces&param_trace_id=1",
    ];
    for name in names {
        let result = open(&url, name, None).store.query(fresh(), None).await;
        let (may_succeed, message, _) = form(&result);
        assert!(
            !may_succeed && message.contains("is not the name of a table"),
            "{name}: {message}"
        );
    }
    for name in ["nothing", "nowhere.nothing"] {
        let result = open(&url, name, None).store.query(fresh(), None).await;
        let message = format!("there is no table `{name}`, or its user may not read it");
        assert_eq!(form(&result), (false, message.as_str(), None));
    }
}

#[tokio::test]
async fn no_span_is_missing_because_of_the_lookup_table_or_of_clocks() {
    let Some(url) = prepared().await else { return };
    let index = "observed.loose";
    create(&url, index, "Map(LowCardinality(String), String)").await;
    let client = open(&url, index, None);
    let sent = flat(fresh(), 3);
    // There is no lookup table, and the clock of the system under test is late.
    execute(&url, &insert(&sent, MAP).replace("`otel_traces`", &quoted(index))).await;
    let late = sent.spans().next().expect("a span").start().plus(Duration::from_secs(3_600));
    for since in [None, Some(late)] {
        let result = client.store.query(sent.id(), since).await;
        assert_eq!(decoded(sent.id(), &result).len(), 3, "{}", told(&result));
    }
    // The lookup table has come later: it lacks the trace, and then has only the first batch, of an earlier second.
    create_lookup(&url, index).await;
    let client = open(&url, index, None);
    let result = client.store.query(sent.id(), Some(late)).await;
    assert_eq!(decoded(sent.id(), &result).len(), 3, "{}", told(&result));
    let lookup = quoted(&format!("{index}_trace_id_ts"));
    for seconds in [late.as_secs() - 6_000, late.as_secs() - 1_200] {
        execute(&url, &format!("TRUNCATE TABLE {lookup}")).await;
        let (id, at) = (sent.id(), seconds);
        execute(&url, &format!("INSERT INTO {lookup} VALUES ('{id}', {at}, {at})")).await;
        let result = client.store.query(sent.id(), Some(late)).await;
        assert_eq!(decoded(sent.id(), &result).len(), 3, "{}", told(&result));
    }
}

#[tokio::test]
async fn json_columns_keep_every_attribute_and_most_types() {
    let Some(url) = prepared().await else { return };
    let text = |it: &str| Value::Str(it.to_owned());
    let (client, intake) = (open(&url, JSON, None), intake(&url, JSON));
    let sent = one(&[
        // Both are in one object of the answer, as two keys `http`.
        ("http", text("yes")),
        ("http.method", text("GET")),
        ("http.request.size", Value::Int(7)),
        ("digits", text("17")),
        ("day", text("2026-01-02")),
        ("list", Value::Array(vec![Value::Int(1), Value::Double(2.5)])),
        ("large", Value::Double(1e300)),
    ]);
    intake.send(&sent).await;
    let result = client.store.query(sent.id(), None).await;
    assert_eq!(decoded(sent.id(), &result), content(&sent), "{}", told(&result));
    // What the page about stores lists as changes.
    let sent = one(&[
        ("empty", Value::Empty),
        ("time", text("2026-01-02T03:04:05Z")),
        ("whole", Value::Double(3.0)),
        ("inside", Value::Array(vec![Value::Map(vec![("a.b".to_owned(), Value::Int(1))])])),
    ]);
    let statement = insert(&sent, JSON).replace("3.0", "3");
    execute(&url, &statement).await;
    let result = client.store.query(sent.id(), None).await;
    let found = &decoded(sent.id(), &result)[0].0.attributes;
    let inside = Value::Array(vec![Value::Map(vec![("a.b".to_owned(), Value::Int(1))])]);
    let expected =
        [("inside", inside), ("time", text("2026-01-02 03:04:05")), ("whole", Value::Int(3))];
    assert_eq!(*found, expected.map(|(key, value)| (key.to_owned(), value)));
}

#[tokio::test]
async fn rows_that_cannot_be_read_make_an_answer_partial() {
    let Some(url) = prepared().await else { return };
    let client = open(&url, MAP, None);
    for (right, wrong, expected) in [
        ("\"SpanKind\":\"Unspecified\"", "\"SpanKind\":\"Robot\"", "`Robot` is not a kind of span"),
        ("\"StatusCode\":\"Unset\"", "\"StatusCode\":\"Fine\"", "`Fine` is not a status code"),
        ("\"SpanId\":\"0000000000000002\"", "\"SpanId\":\"\"", "a span `span 1` has no id"),
        ("\"SpanId\":\"0000000000000002\"", "\"SpanId\":\"2\"", "`2` is not a span id"),
    ] {
        let sent = flat(fresh(), 2);
        let statement = insert(&sent, MAP);
        let (first, second) = statement.rsplit_once("{\"Duration\"").expect("two rows");
        assert!(second.contains(right), "{second}");
        let statement = format!("{first}{{\"Duration\"{}", second.replace(right, wrong));
        execute(&url, &statement).await;
        let result = client.store.query(sent.id(), None).await;
        let QueryResult::Spans { completeness: Completeness::Partial(why), .. } = &result else {
            unreachable!("{}", told(&result));
        };
        assert!(why.starts_with("1 of 2 rows cannot be read: ") && why.contains(expected), "{why}");
        assert_eq!(decoded(sent.id(), &result).len(), 1);
    }
    // What older versions of the exporter wrote, and an end before the start.
    let sent = flat(fresh(), 1);
    let statement = insert(&sent, MAP)
        .replace("\"Unspecified\"", "\"SPAN_KIND_SERVER\"")
        .replace("\"Unset\"", "\"STATUS_CODE_ERROR\"")
        .replace("\"Duration\":1000000", "\"Duration\":18446744073709551615");
    execute(&url, &statement).await;
    let result = client.store.query(sent.id(), None).await;
    let span = &decoded(sent.id(), &result)[0].0;
    assert_eq!(span.kind, model::trace::Kind::Server);
    assert_eq!(span.status.code, model::trace::StatusCode::Error);
    assert_eq!(span.end, span.start.minus(Duration::from_nanos(1)));
}

#[tokio::test]
async fn every_exception_is_either_mended_by_time_or_by_the_user() {
    // The numbers, and whether another query may succeed.
    let cases = [
        (60, false),
        (81, false),
        (516, false),
        (192, false),
        (194, false),
        (497, false),
        (159, true),
        (241, true),
        (202, true),
        (999, true),
    ];
    let mut tasks = JoinSet::new();
    for (code, expected) in cases {
        let body = format!("Code: {code}. DB::Exception: s3cret words. (NAME)");
        let answers = [
            (
                format!("500 Internal Server Error\r\nX-ClickHouse-Exception-Code: {code}"),
                body.clone(),
            ),
            (format!("404 Not Found\r\nX-ClickHouse-Exception-Code: {code}"), body.clone()),
            (format!("200 OK\r\nX-ClickHouse-Exception-Code: {code}"), body.clone()),
            ("200 OK".to_owned(), body.clone()),
            ("200 OK".to_owned(), format!("{{\"columns\":[[\"otel_traces\",\"Tim{body}\n")),
            ("200 OK".to_owned(), format!("{{\"exception\": \"{body}\"}}")),
        ];
        for (head, body) in answers {
            let url = answering(&head, &body, &mut tasks).await;
            let result = open(&url, MAP, Some("s3cret")).store.query(fresh(), None).await;
            let (may_succeed, message, _) = form(&result);
            assert_eq!(may_succeed, expected, "{head}: {message}");
            let words = format!("exception {code}: ");
            assert!(message.starts_with(&words) && message.contains("*** words"), "{message}");
            let is_credentials = message.ends_with("it does not accept the credentials");
            assert_eq!(is_credentials, matches!(code, 192..=194 | 516), "{message}");
        }
    }
}
