//! Proposes specs and claims from a trace: only properties that will hold in the next run too.
//!
//! It proposes services and their requests, their responses, counts, database statements and their repetition, and that
//! nothing failed. It omits everything that differs between runs: ids, times except generous bounds, names with numbers in
//! them. Each proposal was judged once, against the trace it was made from, before it is written.

use std::{collections::BTreeMap, time::Duration};

use model::{
    Answer, Trace,
    trace::{Kind, Span, StatusCode, ValueRef},
};

/// The factor by which a span may be slower than observed, and the lower bound of that limit.
const SLOWER: u32 = 10;
const DURATION_MIN: Duration = Duration::from_millis(500);
/// The upper bounds for specs of services and for keys of a response; a person has to read them.
const SPECS_MAX: usize = 20;
const KEYS_MAX: usize = 8;

/// The proposed specs and claims.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Proposals {
    pub(crate) specs: Vec<Spec>,
    /// The claims, each with an optional name.
    pub(crate) claims: Vec<(Option<String>, String)>,
}

/// A proposed spec.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Spec {
    pub(crate) name: String,
    pub(crate) selector: String,
    pub(crate) assertions: Vec<String>,
}

/// Proposes specs and claims from a response and a trace.
pub(crate) fn propose(answer: &Answer, trace: &Trace) -> Proposals {
    let spans: Vec<Span<'_>> = trace.spans().filter(|span| service(*span) != OWN).collect();
    let mut claims = of_answer(answer);
    claims.extend(of_databases(&spans));
    claims.extend(of_errors(&spans));
    let specs = of_services(&spans);
    Proposals { specs, claims }
}

/// The service name of our own trigger span, which is in the trace as well.
const OWN: &str = "qualitytrace";

fn of_answer(answer: &Answer) -> Vec<(Option<String>, String)> {
    let Answer::Response(response) = answer else { return Vec::new() };
    let mut claims = vec![(None, format!("response.status = {}", response.status))];
    let body = serde_json::from_slice::<serde_json::Value>(response.body.as_bytes());
    if let Ok(serde_json::Value::Object(fields)) = body {
        // The presence of a field is stable; a person has to decide on its value.
        let keys = fields.keys().filter(|key| is_word(key)).take(KEYS_MAX);
        claims.extend(
            keys.map(|key| (None, format!("response.body | json_path \"$.{key}\" exists"))),
        );
    }
    claims
}

/// Proposes specs for the SERVER and CONSUMER spans, in the order of their first start.
fn of_services(spans: &[Span<'_>]) -> Vec<Spec> {
    let mut groups: Vec<(String, Vec<Span<'_>>)> = Vec::new();
    let mut asked: Vec<_> = spans
        .iter()
        .copied()
        .filter(|span| matches!(span.kind(), Kind::Server | Kind::Consumer))
        .collect();
    asked.sort_by_key(|span| span.start());
    for span in asked {
        let selector = selector(span);
        match groups.iter_mut().find(|(known, _)| *known == selector) {
            Some((_, group)) => group.push(span),
            None => groups.push((selector, vec![span])),
        }
    }
    groups.truncate(SPECS_MAX);
    groups.into_iter().map(|(selector, group)| spec(selector, &group)).collect()
}

fn selector(span: Span<'_>) -> String {
    let service = text(service(span));
    match () {
        () if is_stable(span.name()) => {
            format!("span[service={service} name={}]", text(span.name()))
        }
        () => format!("span[service={service} kind=\"{}\"]", word(span.kind())),
    }
}

fn spec(selector: String, group: &[Span<'_>]) -> Spec {
    let span = group[0];
    let name = match span.kind() {
        _ if is_stable(span.name()) => format!("{} does {}", service(span), span.name()),
        Kind::Consumer => format!("{} takes messages", service(span)),
        _ => format!("{} answers", service(span)),
    };
    let mut assertions = vec![match group.len() {
        1 => "attr:tracetest.selected_spans.count = 1".to_owned(),
        several => format!("attr:tracetest.selected_spans.count <= {several}"),
    }];
    for key in [
        "http.response.status_code",
        "http.status_code",
        "rpc.grpc.status_code",
        "messaging.destination.name",
    ] {
        let mut values = group.iter().map(|span| literal(*span, key));
        let first = values.next().flatten();
        if let Some(value) = first.clone().filter(|_| values.all(|value| value == first)) {
            assertions.push(format!("attr:{key} = {value}"));
        }
    }
    let slowest = group.iter().map(|span| span.duration()).max().unwrap_or_default();
    assertions.push(format!("duration < {}", bound(slowest)));
    Spec { name, selector, assertions }
}

/// Proposes bounds for the statements of each service, and for the repetition of a statement below one span.
fn of_databases(spans: &[Span<'_>]) -> Vec<(Option<String>, String)> {
    let mut claims = Vec::new();
    for system in ["db.system.name", "db.system"] {
        let mut by_service: BTreeMap<&str, u64> = BTreeMap::new();
        for span in spans.iter().filter(|span| span.attributes().get(system).is_some()) {
            *by_service.entry(service(*span)).or_default() += 1;
        }
        for (service, count) in by_service {
            let name = format!("{service} queries its database at most {}", times(count));
            let selector = format!("span[service={} {system} exists]", text(service));
            claims.push((Some(name), format!("count({selector}) <= {count}")));
        }
    }
    for statement in ["db.query.text", "db.statement"] {
        let mut repeated: BTreeMap<_, u64> = BTreeMap::new();
        for span in spans {
            if let Some(ValueRef::Str(asked)) = span.attributes().get(statement) {
                *repeated.entry((span.parent(), asked)).or_default() += 1;
            }
        }
        if let Some(most) = repeated.values().max() {
            let name =
                format!("no statement is repeated below one span more than {}", times(*most));
            let groups = format!("span[{statement} exists] by parent_id, attr:{statement}");
            claims.push((Some(name), format!("count({groups}) <= {most}")));
        }
    }
    claims
}

fn of_errors(spans: &[Span<'_>]) -> Vec<(Option<String>, String)> {
    let mut failing: Vec<&str> = spans
        .iter()
        .filter(|span| span.status() == StatusCode::Error)
        .map(|span| service(*span))
        .collect();
    failing.sort_unstable();
    failing.dedup();
    let none = "no span[status=\"error\"]".to_owned();
    match failing.as_slice() {
        [] if spans.is_empty() => Vec::new(),
        [] => vec![(Some("nothing fails".to_owned()), none)],
        failing => {
            let but: Vec<_> = failing.iter().map(|service| text(service)).collect();
            let name = format!("nothing fails but in {}", failing.join(", "));
            let claim = format!("no span[status=\"error\" service not in [{}]]", but.join(", "));
            vec![(Some(name), claim)]
        }
    }
}

/// Returns a round upper bound well above the observed duration.
fn bound(seen: Duration) -> String {
    let wanted = (seen * SLOWER).max(DURATION_MIN).as_millis();
    let mut step = 100;
    while step < wanted {
        // 100, 200, 500, 1000, …
        step = if step.to_string().starts_with('2') { step / 2 * 5 } else { step * 2 };
    }
    if step % 1000 == 0 { format!("{}s", step / 1000) } else { format!("{step}ms") }
}

fn times(count: u64) -> String {
    match count {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        count => format!("{count} times"),
    }
}

/// Whether a name contains nothing that looks like an id: no number of two digits or more, no long hexadecimal word.
fn is_stable(name: &str) -> bool {
    let words = name.split(|c: char| !c.is_alphanumeric());
    let is_id = |word: &str| {
        let digits = word.chars().filter(char::is_ascii_digit).count();
        let is_hex = word.len() >= 8 && word.chars().all(|c| c.is_ascii_hexdigit());
        digits > 0 && (is_hex || digits == word.len() && digits > 1 || digits > 3)
    };
    !name.is_empty() && !words.into_iter().any(is_id) && !name.chars().any(char::is_control)
}

fn is_word(key: &str) -> bool {
    let mut letters = key.chars();
    letters.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && letters.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn literal(span: Span<'_>, key: &str) -> Option<String> {
    match span.attributes().get(key)? {
        ValueRef::Int(number) => Some(number.to_string()),
        ValueRef::Str(it) if is_stable(it) && !it.contains(['"', '$', '\\']) => {
            Some(format!("\"{it}\""))
        }
        _ => None,
    }
}

fn service(span: Span<'_>) -> &str {
    match span.resource().attributes().get("service.name") {
        Some(ValueRef::Str(name)) => name,
        _ => "",
    }
}

/// Quotes a string for a selector.
fn text(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

fn word(kind: Kind) -> &'static str {
    match kind {
        Kind::Server => "server",
        Kind::Consumer => "consumer",
        Kind::Client => "client",
        Kind::Producer => "producer",
        _ => "internal",
    }
}
