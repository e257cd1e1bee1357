//! From YAML to documents: the structure, every mistake in it at once.
//!
//! What Tracetest knows and this language does not is refused or noticed in words, never passed over. Deliberately
//! absent: what the strings mean (`plan.rs`).

use std::time::Duration;

use source::{
    Diagnostic, Diagnostics, Fields, Item, Node, Scalar, Span, Text, did_you_mean, read_yaml,
};

use crate::{
    document::{Document, Output, Spec, Test, Trigger},
    plan::Settle,
};

/// How long an HTTP trigger may take if its document does not say.
const TRIGGER_TIMEOUT: Duration = Duration::from_secs(30);

/// The longest that a run may be told to wait for one thing.
const WAIT_MAX: Duration = Duration::from_secs(60 * 60);

/// Kinds of Tracetest that have no meaning here so far.
const LATER_KINDS: &[&str] = &[
    "TestSuite",
    "Transaction",
    "VariableSet",
    "Environment",
    "DataStore",
    "PollingProfile",
    "Analyzer",
    "TestRunner",
];

/// Kinds of Tracetest that never will have one: they set up its server.
const IGNORED_KINDS: &[&str] = &["Config", "Demo"];

const LATER_TRIGGERS: &[&str] = &[
    "grpc",
    "graphql",
    "kafka",
    "traceid",
    "cypress",
    "playwright",
    "artillery",
    "k6",
    "playwrightengine",
    "exec",
];

/// Where the fields of other triggers stand.
const OTHER_SECTIONS: &[&str] = &["grpc", "graphql", "kafka", "traceid", "playwrightEngine"];

/// What Tracetest writes into a test when it exports one.
const READ_ONLY: &[&str] = &["version", "createdAt", "summary"];

/// Reads all documents of a file, as far as they can be read, with everything that is wrong with them.
pub fn read(text: &Text) -> (Vec<Document>, Vec<Diagnostic>) {
    let (nodes, mistakes) = read_yaml(text);
    let all = Diagnostics::new(text);
    all.extend(mistakes);
    let is_valid = !all.has_errors();
    let mut documents = Vec::new();
    for node in &nodes {
        let found = Diagnostics::new(text);
        let test = read_document(node, &found);
        let is_broken = found.has_errors() || !is_valid;
        documents
            .extend(test.map(|test| Document::Test(Test { is_broken, whole: node.span, ..test })));
        all.extend(found.into_vec());
    }
    (documents, all.into_vec())
}

fn read_document(node: &Node, found: &Diagnostics) -> Option<Test> {
    let mut root = Fields::of(node, "the document", found)?;
    let kind = root.require("type")?.text()?;
    let spec = root.require("spec");
    root.finish();
    if kind.text == "Test" {
        return read_test(&spec?, found);
    }
    let known = || LATER_KINDS.iter().chain(IGNORED_KINDS).copied().chain(["Test"]);
    found.push(match kind.text.as_str() {
        kind_text if IGNORED_KINDS.contains(&kind_text) => {
            found.warning(kind.span, format!("documents of type `{kind_text}` are ignored"))
        }
        kind_text if LATER_KINDS.contains(&kind_text) => {
            found.error(kind.span, format!("documents of type `{kind_text}` are not supported yet"))
        }
        kind_text => found
            .error(kind.span, format!("unknown type of document `{kind_text}`"))
            .suggest(did_you_mean(kind_text, known())),
    });
    None
}

fn read_test(item: &Item<'_>, found: &Diagnostics) -> Option<Test> {
    let mut fields = item.fields()?;
    let id = fields.take("id").and_then(|id| id.text());
    let name = fields.require("name").and_then(|name| name.text());
    fields.take("description").and_then(|description| description.text());
    let trigger = fields.require("trigger").and_then(|trigger| read_trigger(&trigger, found));
    let specs = fields.list("specs").unwrap_or_default();
    let outputs = fields.list("outputs").unwrap_or_default();
    let skip_trace_collection = fields.boolean("skipTraceCollection").unwrap_or(false);
    let settle =
        fields.table("settle").map_or_else(Settle::default, |settle| read_settle(settle, found));
    if fields.take("pollingProfile").is_some() {
        let span = key_span(item.node, "pollingProfile", found);
        found.push(
            found
                .warning(span, "`pollingProfile` is not supported yet and ignored")
                .help("nothing is polled here; how long to wait stands under `settle`"),
        );
    }
    for key in READ_ONLY {
        if fields.take(key).is_some() {
            let span = key_span(item.node, key, found);
            found.push(found.warning(span, format!("`{key}` is ignored")));
        }
    }
    fields.finish();
    Some(Test {
        text: found.text().clone(),
        span: found.text().first_line(item.node.span),
        whole: item.node.span,
        is_broken: false,
        id: id.cloned(),
        name: name.cloned(),
        trigger,
        specs: specs.iter().filter_map(|spec| read_spec(spec, found)).collect(),
        outputs: outputs.iter().filter_map(read_output).collect(),
        skip_trace_collection,
        settle,
    })
}

fn read_trigger(item: &Item<'_>, found: &Diagnostics) -> Option<Trigger> {
    let mut fields = item.fields()?;
    let kind = fields.require("type").and_then(|kind| kind.text());
    if kind.is_none_or(|kind| kind.text != "http") {
        fields.rest();
        fields.finish();
        found.push(wrong_trigger(kind?, found));
        return None;
    }
    let timeout = fields.take("timeout").and_then(|timeout| read_wait(&timeout, found));
    let timeout = timeout.unwrap_or(TRIGGER_TIMEOUT);
    let request = fields.require("httpRequest");
    for key in OTHER_SECTIONS {
        if fields.take(key).is_some() {
            let span = key_span(item.node, key, found);
            let message = format!("`{key}` belongs to another type of trigger and is ignored");
            found.push(found.warning(span, message));
        }
    }
    fields.finish();
    read_request(&request?, timeout, found)
}

fn wrong_trigger(kind: &Scalar, found: &Diagnostics) -> Diagnostic {
    let name = kind.text.as_str();
    if LATER_TRIGGERS.contains(&name) {
        let message = format!("triggers of type `{name}` are not supported yet");
        return found.error(kind.span, message);
    }
    let known = LATER_TRIGGERS.iter().copied().chain(["http"]);
    let mistake = found.error(kind.span, format!("unknown type of trigger `{name}`"));
    mistake.suggest(did_you_mean(name, known))
}

fn read_request(item: &Item<'_>, timeout: Duration, found: &Diagnostics) -> Option<Trigger> {
    let mut fields = item.fields()?;
    let url = fields.require("url").and_then(|url| url.text()).cloned();
    let method = fields.take("method").and_then(|method| method.text()).cloned();
    let headers = fields.list("headers").unwrap_or_default();
    let body = fields.take("body").and_then(|body| body.text()).cloned();
    if fields.take("auth").is_some() {
        let span = key_span(item.node, "auth", found);
        found.push(
            found
                .error(span, "`auth` is not supported yet")
                .help("write the `Authorization` header"),
        );
    }
    if fields.boolean("sslVerification") == Some(false) {
        let span = key_span(item.node, "sslVerification", found);
        let message = "`sslVerification: false` is not supported yet: certificates are verified";
        found.push(found.warning(span, message));
    }
    fields.finish();
    let headers = headers.iter().filter_map(read_header).collect();
    Some(Trigger { url: url?, method, headers, body, timeout })
}

fn read_header(item: &Item<'_>) -> Option<(Scalar, Option<Scalar>)> {
    let mut fields = item.fields()?;
    let key = fields.require("key").and_then(|key| key.text());
    let value = fields.take("value").and_then(|value| value.text());
    fields.finish();
    Some((key?.clone(), value.cloned()))
}

fn read_spec(item: &Item<'_>, found: &Diagnostics) -> Option<Spec> {
    let mut fields = item.fields()?;
    let name = fields.take("name").and_then(|name| name.text()).cloned();
    let selector = fields.take("selector").and_then(|selector| read_selector(&selector));
    let assertions = fields.require("assertions");
    fields.finish();
    let list = assertions.as_ref().and_then(Item::list).unwrap_or_default();
    if let Some(assertions) = assertions.filter(|_| list.is_empty())
        && assertions.node.as_sequence().is_some()
    {
        let span = found.text().first_line(assertions.node.span);
        found.push(
            found
                .error(span, "a spec needs at least one assertion")
                .help("to ask for a match alone, write `attr:tracetest.selected_spans.count >= 1`"),
        );
    }
    let assertions = list.iter().filter_map(|item| read_assertion(item, found)).collect();
    let span = found.text().first_line(item.node.span);
    Some(Spec { span, name, selector, assertions })
}

fn read_assertion(item: &Item<'_>, found: &Diagnostics) -> Option<Scalar> {
    if item.node.as_table().is_some() {
        let span = found.text().first_line(item.node.span);
        let mistake = found.error(span, format!("`{}` must be a single value", item.path));
        let mistake = mistake.label("YAML reads a table");
        found.push(mistake.help("put an assertion that holds `: ` in quotes, or behind `>-`"));
        return None;
    }
    item.text().cloned()
}

/// A selector: a string, or as Tracetest once wrote it, a table with the string under `query`.
fn read_selector(item: &Item<'_>) -> Option<Scalar> {
    if item.node.as_table().is_none() {
        return item.text().cloned();
    }
    let mut fields = item.fields()?;
    let query = fields.require("query").and_then(|query| query.text()).cloned();
    fields.take("parsedSelector");
    fields.finish();
    query
}

fn read_output(item: &Item<'_>) -> Option<Output> {
    let mut fields = item.fields()?;
    let name = fields.require("name").and_then(|name| name.text());
    let selector = fields.take("selector").and_then(|selector| read_selector(&selector));
    let value = fields.require("value").and_then(|value| value.text());
    fields.finish();
    Some(Output { name: name?.clone(), selector, value: value?.clone() })
}

fn read_settle(mut fields: Fields<'_>, found: &Diagnostics) -> Settle {
    let default = Settle::default();
    let (timeout, flush) = (fields.take("timeout"), fields.take("flush"));
    let wait = |item: Option<&Item<'_>>, default| match item {
        Some(item) => read_wait(item, found),
        None => Some(default),
    };
    let waits = (wait(timeout.as_ref(), default.timeout), wait(flush.as_ref(), default.flush));
    fields.finish();
    let (Some(timeout_wait), Some(flush_wait)) = waits else { return default };
    if let Some(item) = flush.as_ref().or(timeout.as_ref())
        && flush_wait >= timeout_wait
    {
        let span = found.text().first_line(item.node.span);
        let message = "`flush` must be less than `timeout`, or no trace is ever whole";
        let left_out = match (&timeout, &flush) {
            (None, _) => format!("; `timeout` is {timeout_wait:?} if it is left out"),
            (_, None) => format!("; `flush` is {flush_wait:?} if it is left out"),
            _ => String::new(),
        };
        let help = format!("write a longer `timeout` or a shorter `flush`{left_out}");
        found.push(found.error(span, message).help(help));
    }
    Settle { timeout: timeout_wait, flush: flush_wait }
}

/// A duration for which somebody waits.
fn read_wait(item: &Item<'_>, found: &Diagnostics) -> Option<Duration> {
    let wait = item.duration()?;
    if wait > WAIT_MAX {
        let span = found.text().first_line(item.node.span);
        let mistake = found.error(span, format!("`{}` is too long", item.path));
        found.push(mistake.help("write `1h` or less"));
        return None;
    }
    Some(wait)
}

fn key_span(table: &Node, key: &str, found: &Diagnostics) -> Span {
    let entries = table.as_table().unwrap_or_default();
    let entry = entries.iter().find(|entry| entry.key.text == key);
    entry.map_or(found.text().first_line(table.span), |entry| entry.key.span)
}
