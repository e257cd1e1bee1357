//! Parses triggers.

use std::time::Duration;

use model::Propagator;
use source::{Diagnostic, Diagnostics, Fields, Item, Node, Scalar, Value, did_you_mean};

use super::{
    Auth, Call, Command, Content, Exec, Graphql, Header, HttpTrigger, JsonTemplate, KeyPlace,
    TYPES, Trigger, TriggerKind, TriggerTls, TriggerType,
};
use crate::document::{
    FileRef, is_blank, is_relative_path, place_at, read_wait, take_others, tell_other,
};

/// The default timeout of a trigger.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The maximum number of redirects that a document may allow, and the default.
pub(crate) const REDIRECTS_MAX: u32 = 20;
pub(crate) const REDIRECTS: u32 = 10;

/// Programs that start the trace themselves and put its id into the environment.
const TOOLS: &[&str] = &["cypress", "playwright", "artillery", "k6"];

/// The variable with the trace id of such a program.
const TOOL_TRACE_ID: &str = "${env:TRACE_ID}";

/// The methods that Tracetest accepts.
pub(crate) const METHODS: &[&str] = &[
    "GET", "PUT", "POST", "PATCH", "DELETE", "COPY", "HEAD", "OPTIONS", "LINK", "UNLINK", "PURGE",
    "LOCK", "UNLOCK", "PROPFIND", "VIEW",
];

impl Trigger<Scalar> {
    pub(in super::super) fn read(item: &Item<'_>, found: &Diagnostics) -> Option<Self> {
        let mut fields = item.fields()?;
        let name = fields.require("type").and_then(|name| name.text());
        let timeout = fields.take("timeout");
        let (tls, propagation) = (fields.take("tls"), fields.take("propagation"));
        let is_tool = |name: &Scalar| TOOLS.contains(&name.text.as_str());
        let kind = name.and_then(|name| match is_tool(name) {
            true => Some(TriggerType::TraceId),
            false => TYPES.iter().copied().find(|known| known.name() == name.text),
        });
        let Some(kind) = kind else {
            fields.rest();
            fields.finish();
            found.push(wrong_type(name?, found));
            return None;
        };
        let (name, key) = (name?, kind.section());
        let section = if is_tool(name) { fields.take(key) } else { fields.require(key) };
        let sections = TYPES.iter().map(|known| known.section());
        let others: Vec<_> = sections.filter(|section| *section != key).collect();
        take_others(&mut fields, &others, "trigger", found);
        if matches!(kind, TriggerType::TraceId | TriggerType::Exec) {
            // No connection is opened.
            tell_other(tls.as_ref(), "trigger", found);
        }
        if matches!(kind, TriggerType::TraceId) {
            // No request is sent, so there is no trace context to propagate and no response to wait for.
            tell_other(propagation.as_ref(), "trigger", found);
            tell_other(timeout.as_ref(), "trigger", found);
        }
        fields.finish();
        tell_unfired(kind, name, section.is_some(), found);
        let timeout = timeout.and_then(|timeout| read_wait(&timeout, found)).unwrap_or(TIMEOUT);
        let tls = tls.and_then(|tls| read_tls(&tls, found));
        let propagation = propagation.and_then(|forms| read_propagation(&forms));
        let kind = match section {
            Some(section) => read_section(kind, &section, found)?,
            None if is_tool(name) => {
                TriggerKind::TraceId(Scalar::instead(TOOL_TRACE_ID, name.span))
            }
            None => return None,
        };
        let place = place_at(name.span, found.text());
        let propagation = propagation.unwrap_or_else(|| vec![Propagator::W3c]);
        Some(Self { kind, name: name.text.clone(), place, timeout, tls, propagation })
    }
}

/// Warns of a type that no run supports yet, and of one that another program has to start.
fn tell_unfired(kind: TriggerType, name: &Scalar, has_section: bool, found: &Diagnostics) {
    let is_unfired = matches!(kind, TriggerType::Call(protocol) if !protocol.is_fired);
    let kind = &name.text;
    if is_unfired {
        let message = format!("a trigger of type `{kind}` cannot be fired by this version yet");
        let warning = found.warning(name.span, message);
        found.push(warning.help(
            "`run` refuses the test; let a program send it (`type: exec`), or judge the trace of one that was sent \
             (`type: traceid`)",
        ));
    } else if TOOLS.contains(&kind.as_str()) && !has_section {
        let message = format!("`{kind}` is not started by a run: start it before");
        let note = found.note(name.span, message);
        found.push(note.help("the trace is judged whose id the variable `TRACE_ID` holds"));
    }
}

/// Parses the propagation formats of a trigger and removes duplicates.
fn read_propagation(item: &Item<'_>) -> Option<Vec<Propagator>> {
    let options = Propagator::ALL.map(|form| (form.as_str(), form));
    let mut forms = Vec::new();
    for form in item.list()?.iter().filter_map(|form| form.choice(&options)) {
        if !forms.contains(&form) {
            forms.push(form);
        }
    }
    if item.node.as_sequence().is_some_and(<[_]>::is_empty) {
        item.misfit("a list of `w3c`, `b3`, `b3multi` or `jaeger`");
    }
    Some(forms)
}

fn wrong_type(name: &Scalar, found: &Diagnostics) -> Diagnostic {
    let known = TYPES.iter().map(|known| known.name()).chain(TOOLS.iter().copied());
    let mistake = found.error(name.span, format!("unknown type of trigger `{}`", name.text));
    mistake.suggest(did_you_mean(&name.text, known))
}

/// Returns the types that a document may name. Programs that start the trace are variants of `traceid`.
pub(crate) fn trigger_types() -> Vec<&'static str> {
    let names = |known: &TriggerType| {
        let tools = if let TriggerType::TraceId = known { TOOLS } else { &[] };
        std::iter::once(known.name()).chain(tools.iter().copied())
    };
    TYPES.iter().flat_map(names).collect()
}

fn read_section(
    kind: TriggerType,
    item: &Item<'_>,
    found: &Diagnostics,
) -> Option<TriggerKind<Scalar>> {
    let mut fields = item.fields()?;
    match kind {
        TriggerType::Http => read_http(fields, found).map(TriggerKind::Http),
        TriggerType::Graphql => read_graphql(fields, found).map(TriggerKind::Graphql),
        TriggerType::Exec => read_exec(fields).map(TriggerKind::Exec),
        TriggerType::Call(protocol) => Call::read(protocol, fields, found).map(TriggerKind::Call),
        TriggerType::TraceId => {
            let id = scalar(fields.require("id"));
            fields.finish();
            id.map(TriggerKind::TraceId)
        }
    }
}

fn read_http(mut fields: Fields<'_>, found: &Diagnostics) -> Option<HttpTrigger<Scalar>> {
    let url = scalar(fields.require("url"));
    let method = fields.take("method").and_then(|method| method.text());
    let headers = read_headers(&mut fields, "headers");
    let body = content(fields.take("body"), found);
    let auth = fields.take("auth").and_then(|auth| read_auth(&auth, found));
    let ssl_verification = fields.boolean("sslVerification");
    let redirects = fields.integer("redirects", 0..=REDIRECTS_MAX);
    fields.finish();
    let method = method.map_or("GET".to_owned(), |method| read_method(method, found));
    Some(HttpTrigger { url: url?, method, headers, body, auth, ssl_verification, redirects })
}

fn read_method(method: &Scalar, found: &Diagnostics) -> String {
    let capitals = method.text.to_ascii_uppercase();
    if !METHODS.contains(&capitals.as_str()) {
        let mistake = found.error(method.span, format!("unknown method `{}`", method.text));
        found.push(mistake.suggest(did_you_mean(&capitals, METHODS.iter().copied())));
    }
    capitals
}

fn read_graphql(mut fields: Fields<'_>, found: &Diagnostics) -> Option<Graphql<Scalar>> {
    let url = scalar(fields.require("url"));
    let headers = read_headers(&mut fields, "headers");
    let auth = fields.take("auth").and_then(|auth| read_auth(&auth, found));
    let body = fields.require("body").and_then(|body| body.fields());
    let ssl_verification = fields.boolean("sslVerification");
    let schema = content(fields.take("schema"), found);
    fields.finish();
    let mut body = body?;
    let query = content(body.require("query"), found);
    let variables = body.take("variables").map(|variables| json(variables.node));
    let operation_name = scalar(body.take("operationName"));
    body.finish();
    Some(Graphql {
        url: url?,
        headers,
        auth,
        query: query?,
        variables,
        operation_name,
        ssl_verification,
        schema,
    })
}

fn read_exec(mut fields: Fields<'_>) -> Option<Exec<Scalar>> {
    let command = fields.require("command").and_then(|command| {
        if command.node.as_sequence().is_none() {
            return command.text().cloned().map(Command::Line);
        }
        let words = command.list()?;
        if words.is_empty() {
            command.misfit("a program and its arguments, or a line for the shell");
        }
        Some(Command::Words(words.iter().filter_map(|word| word.text().cloned()).collect()))
    });
    let env = fields.table("env").map_or_else(Vec::new, |mut env| {
        let rest = env.rest();
        env.finish();
        let pair =
            |(key, value): &(&Scalar, Item<'_>)| Some((key.text.clone(), value.text()?.clone()));
        rest.iter().filter_map(pair).collect()
    });
    let workdir = scalar(fields.take("workdir"));
    fields.finish();
    Some(Exec { command: command?, env, workdir })
}

pub(super) fn read_headers(fields: &mut Fields<'_>, key: &str) -> Vec<Header<Scalar>> {
    let list = fields.list(key).unwrap_or_default();
    let header = |item: &Item<'_>| {
        let mut fields = item.fields()?;
        let (key, value) = (scalar(fields.require("key")), scalar(fields.take("value")));
        fields.finish();
        Some(Header { key: key?, value })
    };
    list.iter().filter_map(header).collect()
}

pub(super) fn read_auth(item: &Item<'_>, found: &Diagnostics) -> Option<Auth<Scalar>> {
    if is_blank(item.node) {
        return None;
    }
    let mut fields = item.fields()?;
    let kinds = ["apiKey", "basic", "bearer"].map(|kind| (kind, kind));
    let kind = fields.require("type").and_then(|kind| kind.choice(&kinds));
    let section = kind.and_then(|kind| fields.require(kind)).and_then(|section| section.fields());
    let others = kinds.map(|(other, _)| other);
    match kind {
        Some(kind) => {
            let others: Vec<_> = others.into_iter().filter(|other| *other != kind).collect();
            take_others(&mut fields, &others, "authentication", found);
        }
        None => drop(others.map(|other| fields.take(other))),
    }
    fields.finish();
    let mut section = section?;
    let auth = match kind? {
        "apiKey" => {
            let places = [("header", KeyPlace::Header), ("query", KeyPlace::Query)];
            let place = section.choice("in", &places).unwrap_or(KeyPlace::Header);
            let (key, value) = (scalar(section.require("key")), scalar(section.require("value")));
            key.zip(value).map(|(key, value)| Auth::ApiKey { key, value, place })
        }
        "basic" => {
            let username = scalar(section.require("username"));
            let password = scalar(section.require("password"));
            username.zip(password).map(|(username, password)| Auth::Basic { username, password })
        }
        _ => scalar(section.require("token")).map(|token| Auth::Bearer { token }),
    };
    section.finish();
    auth
}

fn read_tls(item: &Item<'_>, found: &Diagnostics) -> Option<TriggerTls<Scalar>> {
    let mut fields = item.fields()?;
    let mut file = |key: &str| {
        let scalar = fields.take(key)?.text()?;
        Some(FileRef::new(scalar, found.text()))
    };
    let (ca_file, cert_file, key_file) = (file("caFile"), file("certFile"), file("keyFile"));
    let server_name = scalar(fields.take("serverName"));
    fields.finish();
    if key_file.is_some() && cert_file.is_none() {
        let message = format!("`{}.keyFile` is the key of no certificate", item.path);
        found.push(found.error(item.head(), message).help("name the certificate by `certFile`"));
    }
    Some(TriggerTls { ca_file, cert_file, key_file, server_name })
}

pub(super) fn scalar(item: Option<Item<'_>>) -> Option<Scalar> {
    item?.text().cloned()
}

/// Returns a text, or a file reference if the text starts like a path.
pub(super) fn content(item: Option<Item<'_>>, found: &Diagnostics) -> Option<Content<Scalar>> {
    let scalar = scalar(item)?;
    Some(match is_relative_path(&scalar.text) {
        true => Content::File(FileRef::new(&scalar, found.text())),
        false => Content::Text(scalar),
    })
}

/// Returns a text that is never a single word, such as a program, or a reference to its file.
pub(super) fn word_or_text(item: Option<Item<'_>>, found: &Diagnostics) -> Option<Content<Scalar>> {
    let scalar = scalar(item)?;
    let is_word = !scalar.text.trim().is_empty()
        && !scalar.text.trim().contains(|c: char| c.is_whitespace() || "{}();".contains(c));
    Some(match is_word {
        true => Content::File(FileRef::new(&scalar, found.text())),
        false => Content::Text(scalar),
    })
}

/// Converts a node to a JSON value. The YAML parser bounds its depth.
fn json(node: &Node) -> JsonTemplate<Scalar> {
    match &node.value {
        Value::Scalar(scalar) if scalar.as_str().is_some() => JsonTemplate::Text(scalar.clone()),
        Value::Scalar(scalar) if scalar.is_null() => JsonTemplate::Bare("null".to_owned()),
        Value::Scalar(scalar) => JsonTemplate::Bare(scalar.text.clone()),
        Value::Sequence(items) => JsonTemplate::List(items.iter().map(json).collect()),
        Value::Table(entries) => {
            let entry = |entry: &source::Entry| (entry.key.text.clone(), json(&entry.value));
            JsonTemplate::Table(entries.iter().map(entry).collect())
        }
    }
}
