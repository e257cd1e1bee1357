//! Rules on calls that one request repeats: the query in a loop, known as N+1.
//!
//! A request comprises all spans below one serving span, or below a root, down to the next serving span. Spans between,
//! such as those of an object-relational mapper, make no difference.

use std::collections::HashMap;

use model::trace::{Kind, Span, SpanIx, ValueRef};

use super::{
    dns::{host_of_url, without_port},
    finding::{Findings, shown},
    statement::{shape_of_path, shape_of_statement},
    world::{AnalysisContext, AnalyzedSpan, Area, first, text},
};

/// The maximum number of times that one request may repeat a call.
const TIMES_MAX: u64 = 5;

/// A call that one request makes, with its count.
struct RepeatedCall<'a> {
    first: Span<'a>,
    request: Span<'a>,
    shape: usize,
    times: u64,
}

pub(super) fn repeated_statements(world: &AnalysisContext<'_>, findings: &mut Findings) {
    let is_statement = |subject: &AnalyzedSpan<'_>| {
        let is_call =
            matches!(subject.span.kind(), Kind::Client | Kind::Internal | Kind::Unspecified);
        is_call && subject.areas.has(Area::Database)
    };
    let mut shapes = Shapes::default();
    let groups = groups(world, is_statement, |span| shapes.of_statement(span));
    tell(&groups, findings, |group, request| {
        let (times, statement) = (group.times, shown(&shapes.texts[group.shape]));
        format!("runs {times} times below {request}: {statement}; ask once, by a join or a list")
    });
}

pub(super) fn repeated_calls(world: &AnalysisContext<'_>, findings: &mut Findings) {
    let is_call = |subject: &AnalyzedSpan<'_>| {
        let is_other = subject.areas.has(Area::Database) || is_resent(subject.span);
        let is_remote = subject.areas.has(Area::Http) || subject.areas.has(Area::Rpc);
        subject.span.kind() == Kind::Client && is_remote && !is_other
    };
    let mut shapes = Shapes::default();
    let groups = groups(world, is_call, |span| shapes.of_call(span));
    tell(&groups, findings, |group, request| {
        let (times, call) = (group.times, shown(&shapes.texts[group.shape]));
        format!("is made {times} times below {request}: {call}; ask for all of them at once")
    });
}

fn tell(
    groups: &[RepeatedCall<'_>],
    findings: &mut Findings,
    message: impl Fn(&RepeatedCall<'_>, &str) -> String,
) {
    for group in groups.iter().filter(|group| group.times > TIMES_MAX) {
        findings.add(group.first, || message(group, &shown(group.request.name())));
    }
}

/// Returns all calls of each request, in the order of arrival.
fn groups<'a>(
    world: &AnalysisContext<'a>,
    is_meant: impl Fn(&AnalyzedSpan<'_>) -> bool,
    mut shape_of: impl FnMut(Span<'_>) -> Option<usize>,
) -> Vec<RepeatedCall<'a>> {
    let requests = requests(world);
    let mut groups: Vec<RepeatedCall<'a>> = Vec::new();
    let mut numbers = HashMap::new();
    // A driver span that repeats the shape of the library span above it is the same call.
    let mut shapes: HashMap<SpanIx, usize> = HashMap::new();
    let in_order = world.subjects().iter().filter(|subject| is_meant(subject));
    for subject in in_order {
        let Some(shape) = shape_of(subject.span) else { continue };
        shapes.insert(subject.span.ix(), shape);
    }
    for subject in world.subjects() {
        let ix = subject.span.ix();
        let Some(shape) = shapes.get(&ix).copied() else { continue };
        let above = world.tree.parent(ix).and_then(|parent| shapes.get(&parent));
        if above == Some(&shape) {
            continue;
        }
        let request = requests[world.tree.place(ix)];
        let number = *numbers.entry((request, shape)).or_insert_with(|| {
            let request = world.trace.span(request);
            groups.push(RepeatedCall { first: subject.span, request, shape, times: 0 });
            groups.len() - 1
        });
        groups[number].times += 1;
    }
    groups
}

/// Returns the span of the request that each span belongs to, by position in the tree order.
fn requests(world: &AnalysisContext<'_>) -> Vec<SpanIx> {
    let mut requests: Vec<SpanIx> = Vec::with_capacity(world.trace.len());
    for ix in world.tree.order() {
        let parent = world.tree.parent(*ix).map(|parent| world.trace.span(parent));
        requests.push(match parent {
            None => *ix,
            Some(parent) if matches!(parent.kind(), Kind::Server | Kind::Consumer) => parent.ix(),
            // A parent precedes its children in the tree order.
            Some(parent) => requests[world.tree.place(parent.ix())],
        });
    }
    requests
}

/// The shapes of texts (texts without their values), each with a number.
#[derive(Default)]
struct Shapes {
    texts: Vec<String>,
    numbers: HashMap<String, usize>,
    /// A trace stores each text once, so its address and length identify a text.
    seen: HashMap<(usize, usize), usize>,
}

impl Shapes {
    fn of_statement(&mut self, span: Span<'_>) -> Option<usize> {
        if let Some(statement) = first(span, &["db.query.text", "db.statement"]) {
            let place = (statement.as_ptr() as usize, statement.len());
            if let Some(known) = self.seen.get(&place) {
                return Some(*known);
            }
            let number = self.number(shape_of_statement(statement));
            self.seen.insert(place, number);
            return Some(number);
        }
        let operation = first(span, &["db.query.summary", "db.operation.name", "db.operation"])?;
        let target = first(
            span,
            &[
                "db.collection.name",
                "db.sql.table",
                "db.mongodb.collection",
                "db.namespace",
                "db.name",
            ],
        );
        Some(self.number(format!("{operation} {}", target?)))
    }

    fn of_call(&mut self, span: Span<'_>) -> Option<usize> {
        let host = first(span, &["server.address", "net.peer.name"]).map(without_port);
        if let Some(method) = text(span, "rpc.method") {
            let service = text(span, "rpc.service").map_or(String::new(), |it| format!("{it}/"));
            let host = host.unwrap_or_default();
            return Some(self.number(format!("{service}{method} {host}").trim_end().to_owned()));
        }
        let method = first(span, &["http.request.method", "http.method"])?;
        let url = first(span, &["url.full", "http.url"])?;
        let host = host.or_else(|| host_of_url(url)).unwrap_or_default();
        let path = text(span, "url.template").map(str::to_owned);
        let path = path.unwrap_or_else(|| shape_of_path(path_of_url(url)));
        Some(self.number(format!("{method} {host}{path}")))
    }

    fn number(&mut self, text: String) -> usize {
        if let Some(known) = self.numbers.get(&text) {
            return *known;
        }
        self.texts.push(text.clone());
        self.numbers.insert(text, self.texts.len() - 1);
        self.texts.len() - 1
    }
}

/// Returns the part of a URL after the host, query included.
fn path_of_url(url: &str) -> &str {
    let behind_scheme = url.split_once("//").map_or(url, |(_, rest)| rest);
    let start = behind_scheme.find(['/', '?', '#']).unwrap_or(behind_scheme.len());
    &behind_scheme[start..]
}

/// Whether a span is a retry of another call.
fn is_resent(span: Span<'_>) -> bool {
    let count = ["http.request.resend_count", "http.resend_count"]
        .iter()
        .find_map(|key| span.attributes().get(key));
    matches!(count, Some(ValueRef::Int(count)) if count > 0)
}
