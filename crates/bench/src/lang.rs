//! The cost of judging: twenty specs and ten claims over traces of a thousand to a million spans.
//!
//! Each size has its own process, so that sizes share no memory; the figure is CPU time, so that a busy machine changes little.
//! The reference is one pass of xxh3 over the same spans as they are in memory: their names, and the keys and values of their
//! attributes. To count instructions, run such a process under callgrind and subtract: `docs/performance.md` explains how.

#[path = "../../lang/tests/chance/mod.rs"]
pub(crate) mod chance;
mod limits;
pub mod prove;
pub mod referee;
pub(crate) mod traffic;

use std::{fs, hint::black_box};

use anyhow::{Context, Result, bail, ensure};
use lang::{Document, Evidence, Plan, ResolvedPlan, Seed, Vars};
use model::{
    Settlement, Timestamp, Trace, Verdict,
    trace::{Span, ValueRef},
};
use serde::{Deserialize, Serialize};
use source::{Colour, Text, draw};
use tokio::process::Command;
use xxhash_rust::xxh3::Xxh3;

pub use limits::limit;

use crate::{
    decode,
    table::{Goal, Row, median},
};

const SIZES: [usize; 4] = [1_000, 10_000, 100_000, 1_000_000];
/// The upper bound relative to the time of one pass of xxh3, at a hundred thousand spans.
const HASH_RATIO_MAX: f64 = 10.0;
/// The upper bound of the cost of a span among a million relative to one among ten thousand.
const GROWTH_MAX: f64 = 1.5;
/// Rounds of which the median counts.
const ROUNDS: usize = 7;
/// The minimum CPU time of a round, which repeats its work: the clock of a process ticks in milliseconds.
const ROUND_NS: f64 = 200_000_000.0;

pub(crate) const TEST: &str = include_str!("lang/test.yaml");

/// The figures of one process; times are those of one repetition.
#[derive(Debug, Serialize, Deserialize)]
struct LangFigures {
    spans: usize,
    judge_ns: f64,
    hash_ns: f64,
    /// The median of the ratios of the rounds.
    judge_over_hash: f64,
    hashed_bytes: u64,
    compile_ns: f64,
}

/// Measures each size in its own process, and then decoding.
pub async fn measure() -> Result<Vec<Row>> {
    let mut figures = Vec::new();
    for size in SIZES {
        figures.push(alone(size).await?);
    }
    let row = |name: String, value: f64, unit, goal| Row { name, value, unit, goal };
    let mut rows = Vec::new();
    for (size, it) in SIZES.iter().zip(&figures) {
        let spans = it.spans as f64;
        rows.push(row(format!("judging {size} spans"), it.judge_ns / 1e6, "ms", None));
        rows.push(row(format!("judging, of {size}"), it.judge_ns / spans, "ns/span", None));
        rows.push(row(format!("xxh3 over {size} spans"), it.hash_ns / spans, "ns/span", None));
        let goal = (*size == 100_000).then_some(Goal::AtMost(HASH_RATIO_MAX));
        rows.push(row(format!("judging over xxh3, {size}"), it.judge_over_hash, "ratio", goal));
    }
    let [_, small, middle, large] = figures.as_slice() else { bail!("four sizes") };
    let per_span = |it: &LangFigures| it.judge_ns / it.spans as f64;
    let growth = per_span(large) / per_span(small);
    let goal = Some(Goal::AtMost(GROWTH_MAX));
    rows.push(row("a span among 1000000 over one among 10000".to_owned(), growth, "ratio", goal));
    let bytes = middle.hashed_bytes as f64 / middle.spans as f64;
    rows.push(row("names, keys and values".to_owned(), bytes, "bytes/span", None));
    rows.push(row("reading and compiling the test".to_owned(), small.compile_ns / 1e3, "us", None));
    rows.extend(limits::measure().await?);
    for decoding in decode::measure().await? {
        rows.push(Row { name: format!("decoding: {}", decoding.name), ..decoding });
    }
    Ok(rows)
}

async fn alone(size: usize) -> Result<LangFigures> {
    let mut command = Command::new(std::env::current_exe()?);
    let output = command.args(["lang:judge", &size.to_string()]).output().await?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// Measures in this process; the figures are JSON.
pub fn judge(size: &str) -> Result<String> {
    let trace = traffic::trace(size.parse()?)?;
    let plan = plan()?;
    let resolved = resolved(&plan)?;
    ensure!(once(&resolved, &trace) == Verdict::Passed, "{}", why(&resolved, &trace));
    let (mut judged, mut hashed, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let judge_ns = repeat(|| {
            black_box(once(&resolved, &trace));
        })?;
        let hash_ns = repeat(|| {
            black_box(hash(&trace));
        })?;
        judged.push(judge_ns);
        hashed.push(hash_ns);
        ratios.push(judge_ns / hash_ns);
    }
    let figures = LangFigures {
        spans: trace.len(),
        judge_ns: median(judged),
        hash_ns: median(hashed),
        judge_over_hash: median(ratios),
        hashed_bytes: hash(&trace).1,
        compile_ns: repeat(|| {
            black_box(plan_of_test());
        })?,
    };
    Ok(serde_json::to_string(&figures)?)
}

/// Repeats one operation this many times without output: for callgrind, where the difference of two runs counts.
pub fn times(what: &str, times: &str) -> Result<String> {
    let times: usize = times.parse()?;
    match what {
        "lang:judging" => {
            let trace = traffic::trace(10_000)?;
            let plan = plan()?;
            let resolved = resolved(&plan)?;
            for _ in 0..times {
                black_box(once(&resolved, &trace));
            }
        }
        "lang:compiling" => {
            for _ in 0..times {
                black_box(plan_of_test());
            }
        }
        _ => bail!("there is nothing to repeat that is called `{what}`"),
    }
    Ok(String::new())
}

fn plan() -> Result<Plan> {
    let (plan, found) = plan_of_test();
    plan.with_context(|| draw(&found, Colour::Never))
}

fn plan_of_test() -> (Option<Plan>, Vec<source::Diagnostic>) {
    plan_of(TEST)
}

fn plan_of(test: &str) -> (Option<Plan>, Vec<source::Diagnostic>) {
    let (documents, mut found) = lang::read(&Text::new("test.yaml", test.to_owned()));
    let [Document::Test(test)] = documents.as_slice() else { return (None, found) };
    let (plan, more) = lang::compile(test);
    found.extend(more);
    (plan, found)
}

fn resolved(plan: &Plan) -> Result<ResolvedPlan> {
    let seed = Seed { now: Timestamp::default(), random: [7; 32] };
    Ok(lang::resolve(plan, &Vars::default(), &seed)?)
}

fn once(resolved: &ResolvedPlan, trace: &Trace) -> Verdict {
    judgement(resolved, trace).verdict
}

fn judgement(resolved: &ResolvedPlan, trace: &Trace) -> model::Judgement {
    let spans = trace.len() as u64;
    let settlement = Settlement { spans, ..Settlement::default() };
    let evidence =
        Evidence { trace: Some(trace), trigger: None, answer: None, settlement: Some(&settlement) };
    lang::judge(resolved, &evidence)
}

/// Renders the specs and claims that do not pass, where all should.
fn why(resolved: &ResolvedPlan, trace: &Trace) -> String {
    let judgement = judgement(resolved, trace);
    let specs = judgement.specs.iter().filter(|it| it.verdict != Verdict::Passed);
    let claims = judgement.claims.iter().filter(|it| it.verdict != Verdict::Passed);
    let mut lines: Vec<String> = specs.map(|it| format!("{it:#?}")).collect();
    lines.extend(claims.map(|it| format!("{it:#?}")));
    lines.join("\n")
}

/// Hashes all spans in one pass: returns the hash, and the number of hashed bytes.
fn hash(trace: &Trace) -> (u64, u64) {
    let mut hash = Xxh3::new();
    let mut bytes = 0;
    for span in trace.spans() {
        hash_span(span, &mut |part: &[u8]| {
            hash.update(part);
            bytes += part.len() as u64;
        });
    }
    (hash.digest(), bytes)
}

fn hash_span(span: Span<'_>, update: &mut dyn FnMut(&[u8])) {
    update(span.name().as_bytes());
    for (key, value) in span.attributes().iter() {
        update(key.as_bytes());
        hash_value(value, update);
    }
}

fn hash_value(value: ValueRef<'_>, update: &mut dyn FnMut(&[u8])) {
    match value {
        ValueRef::Empty => {}
        ValueRef::Bool(bool) => update(&[u8::from(bool)]),
        ValueRef::Int(int) => update(&int.to_le_bytes()),
        ValueRef::Double(double) => update(&double.to_le_bytes()),
        ValueRef::Str(text) => update(text.as_bytes()),
        ValueRef::Bytes(bytes) => update(bytes),
        ValueRef::Array(items) => items.iter().for_each(|item| hash_value(item, update)),
        ValueRef::Map(entries) => entries.iter().for_each(|(key, value)| {
            update(key.as_bytes());
            hash_value(value, update);
        }),
    }
}

/// Returns the CPU time of one repetition, in nanoseconds.
fn repeat(mut work: impl FnMut()) -> Result<f64> {
    let began = cpu_ns()?;
    let mut times = 0_u32;
    loop {
        work();
        times += 1;
        let took = cpu_ns()? - began;
        if took >= ROUND_NS {
            return Ok(took / f64::from(times));
        }
    }
}

/// Returns the CPU time of this thread, in nanoseconds.
fn cpu_ns() -> Result<f64> {
    let figures = fs::read_to_string("/proc/thread-self/schedstat")?;
    Ok(figures.split_whitespace().next().context("a figure")?.parse()?)
}
