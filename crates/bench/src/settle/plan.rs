//! Tests of a generated system: their statements and their declarations, compiled once.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use lang::{Document, Plan};
use source::{Colour, Text, draw};

use super::{
    chance::{Dice, between, percent},
    play::{Parent, SimulatedRun},
    statement::{self, SettleStatement, SpanFilter, There},
    system::{MS, System},
};

/// A test, with the properties that are known without the language.
pub(super) struct Test {
    /// Its index among the tests of its system.
    pub(super) number: usize,
    pub(super) plan: Plan,
    /// Specs first, then claims, each in the order of the document.
    pub(super) statements: Vec<SettleStatement>,
    pub(super) flush: Option<u64>,
    /// Services.
    pub(super) absent: Vec<String>,
    pub(super) expected: Vec<ExpectedSpan>,
}

pub(super) enum ExpectedSpan {
    Service(String),
    Span(SpanFilter),
}

impl Test {
    /// Generates a test about the usual behavior of this system.
    pub(super) fn draw(
        number: usize,
        system: &System,
        usual: &[SimulatedRun<'_>],
        dice: &mut Dice,
    ) -> Result<Self> {
        let (first, _) = usual.split_first().context("nothing usual was played")?;
        let there = There::all(system, first);
        let count = 1 + dice.below(4);
        let mut statements: Vec<_> = (0..count).map(|_| statement::draw(&there, dice)).collect();
        statements.sort_by_key(|statement| !statement.is_spec());
        let flush = percent(dice, system.size.flush).then(|| flush(system, dice));
        // In real time there are not enough runs to learn the system.
        let absent = match percent(dice, 50) || system.is_real() {
            true => behind_gateways(system, usual),
            false => Vec::new(),
        };
        let expected = match percent(dice, 12) {
            true => expected(system, usual, dice).into_iter().collect(),
            false => Vec::new(),
        };
        let settle = settle(system.timeout(), flush, &absent, &expected);
        let plan = compile(&document(number, &statements, &settle))?;
        Ok(Self { number, plan, statements, flush, absent, expected })
    }
}

/// Returns a flush time that is mostly long enough for the slowest process.
fn flush(system: &System, dice: &mut Dice) -> u64 {
    let slowest = system.processes.iter().map(|process| process.batch.delay).max().unwrap_or(MS);
    match dice.below(6) {
        0 => between(dice, 1, 50) * MS,
        _ => (slowest + slowest / 2 + 30 * MS).min(9_000 * MS) / MS * MS,
    }
}

/// Returns the services with spans that name parents that never arrive.
fn behind_gateways(system: &System, usual: &[SimulatedRun<'_>]) -> Vec<String> {
    let spans = usual.iter().flat_map(|played| &played.spans);
    let behind = spans.filter(|span| matches!(span.parent, Parent::Absent(_)));
    let mut names: Vec<_> =
        behind.map(|span| system.service_of(span.process).name.clone()).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Returns an expectation that holds in all these runs.
fn expected(system: &System, usual: &[SimulatedRun<'_>], dice: &mut Dice) -> Option<ExpectedSpan> {
    let is_there = |filter: &SpanFilter| {
        let has =
            |played: &SimulatedRun<'_>| played.spans.iter().any(|it| filter.takes(it, system));
        usual.iter().all(has)
    };
    let spans = &usual.first()?.spans;
    let span = &spans[dice.below(spans.len())];
    let service = system.service_of(span.process).name.clone();
    let by_name = SpanFilter { name: Some(span.name.to_owned()), ..SpanFilter::default() };
    let by_service = SpanFilter { service: Some(service.clone()), ..SpanFilter::default() };
    match percent(dice, 60) {
        true => is_there(&by_service).then_some(ExpectedSpan::Service(service)),
        false => is_there(&by_name).then_some(ExpectedSpan::Span(by_name)),
    }
}

/// Renders the content of the test's `settle`.
fn settle(
    timeout: Duration,
    flush: Option<u64>,
    absent: &[String],
    expected: &[ExpectedSpan],
) -> String {
    let quoted = |text: &str| format!("'{text}'");
    let list = |texts: Vec<String>| texts.join(", ");
    let mut settle = format!("timeout: {}s", timeout.as_secs());
    if let Some(flush) = flush {
        settle.push_str(&format!(", flush: {}ms", flush / MS));
    }
    if !absent.is_empty() {
        let absent = list(absent.iter().map(|name| quoted(name)).collect());
        settle.push_str(&format!(", absent: [{absent}]"));
    }
    if !expected.is_empty() {
        let expected = expected.iter().map(|expected| match expected {
            ExpectedSpan::Service(name) => quoted(name),
            ExpectedSpan::Span(filter) => quoted(&filter.to_string()),
        });
        settle.push_str(&format!(", expect: [{}]", list(expected.collect())));
    }
    settle
}

fn document(number: usize, statements: &[SettleStatement], settle: &str) -> String {
    let (mut specs, mut claims) = (String::new(), String::new());
    for statement in statements {
        let text = statement.to_string();
        match text.split_once(" | ") {
            Some((selector, assertion)) => specs.push_str(&format!(
                "  - selector: '{selector}'\n    assertions: ['{assertion}']\n"
            )),
            None => claims.push_str(&format!("  - '{text}'\n")),
        }
    }
    let mut document = format!(
        "type: Test\nspec:\n  name: drawn {number}\n  trigger: {{type: http, httpRequest: {{method: GET, url: \
         'http://system/'}}}}\n  settle: {{{settle}}}\n"
    );
    for (key, part) in [("specs", specs), ("trace", claims)] {
        if !part.is_empty() {
            document.push_str(&format!("  {key}:\n{part}"));
        }
    }
    document
}

fn compile(document: &str) -> Result<Plan> {
    let (documents, mistakes) = lang::read(&Text::new("drawn.yaml", document));
    ensure!(mistakes.is_empty(), "{}\n{document}", draw(&mistakes, Colour::Never));
    let test = documents.iter().find_map(|document| match document {
        Document::Test(test) => Some(test),
        _ => None,
    });
    let (plan, mistakes) = lang::compile(test.context("no test was read")?);
    plan.with_context(|| format!("{}\n{document}", draw(&mistakes, Colour::Never)))
}
