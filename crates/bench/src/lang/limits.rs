//! The cost of tests and traces at their limits: many patterns, positions, deep traces, many claims, large files; and how much of
//! the budget of a judgement they use.
//!
//! Each case has its own process, in which a trace is generated or read and judged once. CPU time is that of judging, memory the
//! peak of the process.

use std::{
    fs::{self, File},
    io::{BufWriter, Write},
    path::Path,
};

use anyhow::{Context, Result, bail, ensure};
use lang::{Evidence, Work};
use model::{
    Settlement, SpanId, Timestamp, Trace, TraceId, Verdict,
    trace::{ResourceData, ScopeData, SpanData, Value},
};
use serde::{Deserialize, Serialize};
use tokio::process::Command;

use super::{cpu_ns, plan_of, resolved};
use crate::table::{Goal, Row, median};

const BEGIN: u64 = 1_794_700_000_000_000_000;
const TRACE_ID: [u8; 16] = [7; 16];
/// The repetitions of a case with a time that is compared with another.
const ROUNDS: usize = 5;
/// The minimum CPU time for which a case is judged.
const MEASURED_NS_MIN: f64 = 200e6;
/// The upper bound of the cost of a pattern among 33 relative to one among 32.
const PATTERN_RATIO_MAX: f64 = 1.5;
/// The upper bound of the cost of a span in a chain of 10,000 relative to one in a chain of 1,000.
const DEPTH_RATIO_MAX: f64 = 2.0;
const POSITIONS_SECONDS_MAX: f64 = 0.5;
const CLAIMS_SECONDS_MAX: f64 = 5.0;
const JSON_MB_MAX: f64 = 1_200.0;
const PROTOBUF_MB_MAX: f64 = 500.0;
/// The lower bound of the budget relative to the largest use among these cases.
const BUDGET_RATIO_MIN: f64 = 4.0;

/// The figures of one process.
#[derive(Debug, Serialize, Deserialize)]
struct LimitFigures {
    judge_ns: f64,
    resident_kb: f64,
    steps: u64,
    statement_steps: u64,
    held_bytes: u64,
}

/// The tree structure of a trace.
#[derive(Clone, Copy)]
enum TraceShape {
    /// Each span has three children.
    Tree,
    /// Each span has one child.
    Chain,
}

/// Measures all cases.
pub(super) async fn measure() -> Result<Vec<Row>> {
    let row = |name: &str, value: f64, unit, goal| Row { name: name.to_owned(), value, unit, goal };
    let patterns = [repeated("patterns:32").await?, repeated("patterns:33").await?];
    let depths = [repeated("ancestors:1000").await?, repeated("ancestors:10000").await?];
    let positions = alone("positions", None).await?;
    let claims = alone("claims", None).await?;
    let thirty = alone("thirty", None).await?;
    let folder = tempfile::tempdir()?;
    let (json, protobuf) = (folder.path().join("trace.json"), folder.path().join("trace.pb"));
    write_json(&json, 1_000_000)?;
    alone("encode", Some(&protobuf)).await?;
    let json = alone("file", Some(&json)).await?;
    let protobuf = alone("file", Some(&protobuf)).await?;
    let all = [&positions, &claims, &thirty, &json, &protobuf];
    let most =
        |of: fn(&LimitFigures) -> u64| all.iter().map(|it| of(it)).max().unwrap_or(0).max(1) as f64;
    let steps = Work::MAX.steps as f64 / most(|it| it.steps);
    let statement_steps = Work::MAX.statement_steps as f64 / most(|it| it.statement_steps);
    let bytes = Work::MAX.bytes as f64 / most(|it| it.held_bytes);
    let (at_most, budget) = (Goal::AtMost, Some(Goal::AtLeast(BUDGET_RATIO_MIN)));
    let per_pattern = (patterns[1] / 33.0) / (patterns[0] / 32.0);
    let per_span = depths[1] / 10.0 / depths[0];
    let seconds = |it: &LimitFigures| it.judge_ns / 1e9;
    let megabytes = |it: &LimitFigures| it.resident_kb / 1e3;
    Ok(vec![
        row(
            "a pattern of 33 over one of 32",
            per_pattern,
            "ratio",
            Some(at_most(PATTERN_RATIO_MAX)),
        ),
        row(
            "ancestors, a span at depth 10000 over 1000",
            per_span,
            "ratio",
            Some(at_most(DEPTH_RATIO_MAX)),
        ),
        row(
            "4 claims with positions, 100000 spans",
            seconds(&positions),
            "s",
            Some(at_most(POSITIONS_SECONDS_MAX)),
        ),
        row(
            "1000 claims, 100 patterns, 100000 spans",
            seconds(&claims),
            "s",
            Some(at_most(CLAIMS_SECONDS_MAX)),
        ),
        row("1000000 spans as JSON, resident", megabytes(&json), "MB", Some(at_most(JSON_MB_MAX))),
        row(
            "1000000 spans as protobuf, resident",
            megabytes(&protobuf),
            "MB",
            Some(at_most(PROTOBUF_MB_MAX)),
        ),
        row("budget over the largest, steps", steps, "ratio", budget),
        row("budget over the largest, steps of a statement", statement_steps, "ratio", budget),
        row("budget over the largest, bytes", bytes, "ratio", budget),
    ])
}

async fn repeated(case: &str) -> Result<f64> {
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        times.push(alone(case, None).await?.judge_ns);
    }
    Ok(median(times))
}

async fn alone(case: &str, file: Option<&Path>) -> Result<LimitFigures> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["lang:limit", case]).args(file);
    let output = command.output().await?;
    ensure!(output.status.success(), "{case}: {}", String::from_utf8_lossy(&output.stdout));
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// Measures one case in this process; the figures are JSON.
pub fn limit(case: &str, file: Option<&str>) -> Result<String> {
    let (name, number) = case.split_once(':').unwrap_or((case, "0"));
    let number: usize = number.parse()?;
    let (claims, trace) = match (name, file) {
        ("patterns", None) => (patterns(number), trace(5_000, TraceShape::Tree)?),
        ("ancestors", None) => {
            let claim = r#"every span[] has some self << span[name="op0"] or depth = 0"#;
            (vec![claim.to_owned()], trace(number, TraceShape::Chain)?)
        }
        ("positions", None) => (positions(), trace(100_000, TraceShape::Tree)?),
        ("claims", None) => (many_claims(), trace(100_000, TraceShape::Tree)?),
        ("thirty", None) => return figures(super::TEST, &super::traffic::trace(1_000_000)?),
        ("encode", Some(file)) => {
            fs::write(file, otlp::encode(&trace(1_000_000, TraceShape::Tree)?))?;
            (vec!["some span[]".to_owned()], trace(1, TraceShape::Tree)?)
        }
        ("file", Some(file)) => {
            let claim = "every span[] has depth >= 0".to_owned();
            (vec![claim], read(file)?)
        }
        _ => bail!("there is no case `{case}`"),
    };
    figures(&test(&claims)?, &trace)
}

/// Reads a trace as `check` does.
fn read(file: &str) -> Result<Trace> {
    let bytes = fs::read(file)?;
    otlp::read(&bytes)?.pop().context("one trace")
}

fn figures(test: &str, trace: &Trace) -> Result<String> {
    let (plan, found) = plan_of(test);
    let plan = plan.with_context(|| source::draw(&found, source::Colour::Never))?;
    let resolved = resolved(&plan)?;
    let settlement = Settlement { spans: trace.len() as u64, ..Settlement::default() };
    let evidence =
        Evidence { trace: Some(trace), trigger: None, answer: None, settlement: Some(&settlement) };
    let (began, mut judged) = (cpu_ns()?, 0.0);
    // The CPU clock counts in ticks, and a short judgement takes less than one.
    let (judge_ns, work) = loop {
        let (judgement, work) = lang::judge_measured(&resolved, &evidence);
        ensure!(judgement.verdict == Verdict::Passed, "{:?}", judgement.claims.first());
        judged += 1.0;
        let spent = cpu_ns()? - began;
        if spent >= MEASURED_NS_MIN {
            break (spent / judged, work);
        }
    };
    Ok(serde_json::to_string(&LimitFigures {
        judge_ns,
        resident_kb: resident_kb()?,
        steps: work.steps,
        statement_steps: work.statement_steps,
        held_bytes: work.bytes,
    })?)
}

/// Returns the peak memory of this process.
fn resident_kb() -> Result<f64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).context("a figure")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}

fn test(claims: &[String]) -> Result<String> {
    let trigger = serde_json::json!({"type": "http", "httpRequest": {"url": "http://gateway/"}});
    let spec = serde_json::json!({"name": "limits", "trigger": trigger, "trace": claims});
    Ok(serde_json::to_string(&serde_json::json!({"type": "Test", "spec": spec}))?)
}

fn patterns(count: usize) -> Vec<String> {
    (0..count).map(|number| format!(r#"some span[user=~"^user-{number}@.*org$"]"#)).collect()
}

fn positions() -> Vec<String> {
    [
        r#"every span[] has some self >> span[name="op1"]:first or depth > 0 or children = 0"#,
        "count(span[]:has(> span[]:nth_child(2))) > 1",
        r#"count(span[name="op0"]:has(<< span[name="op1"]:last)) > 0"#,
        "count(span[]:has(span[]:last)) > 0",
    ]
    .map(str::to_owned)
    .to_vec()
}

/// Returns a thousand claims with a hundred patterns.
fn many_claims() -> Vec<String> {
    let claim = |number: usize| {
        let (pattern, name) = (number % 100, number % 50);
        match number % 4 {
            0 => format!(r#"some span[user=~"^user-{pattern}[0-9]*@.*org$"]"#),
            1 => {
                format!(r#"every span[name="op{name}" user=~"user-.*{pattern}"] has duration < 2s"#)
            }
            2 => format!(r#"count(span[name="op{name}" route=~"^/a/{pattern}"]) >= 0"#),
            _ => format!(r#"no span[user=~"^nobody-{pattern}@" name="op{name}"]"#),
        }
    };
    (0..1_000).map(claim).collect()
}

/// Returns the number of a span's parent.
fn parent(number: usize, shape: TraceShape) -> Option<usize> {
    let before = number.checked_sub(1)?;
    Some(match shape {
        TraceShape::Tree => before / 3,
        TraceShape::Chain => before,
    })
}

fn trace(spans: usize, shape: TraceShape) -> Result<Trace> {
    let id = |number: usize| SpanId::from_bytes((number as u64 + 1).to_be_bytes()).context("an id");
    let mut trace = Trace::new(TraceId::from_bytes(TRACE_ID).context("an id")?);
    let service = ("service.name".to_owned(), Value::Str("shop".to_owned()));
    let resource =
        trace.resource(ResourceData { attributes: vec![service], ..ResourceData::default() })?;
    let scope = trace.scope(ScopeData::default())?;
    for number in 0..spans {
        let parent = parent(number, shape).map(id).transpose()?;
        let mut span = SpanData::new(id(number)?, parent, format!("op{}", number % 50));
        span.start = Timestamp::from_nanos(BEGIN + number as u64);
        span.end = Timestamp::from_nanos(BEGIN + 1_000_000_000 - number as u64 / 2);
        let text = |key: &str, text: String| (key.to_owned(), Value::Str(text));
        span.attributes = vec![
            text("user", format!("user-{number}@example.org")),
            ("http.status_code".to_owned(), Value::Int(200 + number as i64 % 7)),
            text("route", format!("/a/{}", number % 1_000)),
        ];
        trace.push(resource, scope, span)?;
    }
    Ok(trace)
}

/// Writes the same trace as JSON, without building it in memory.
fn write_json(file: &Path, spans: usize) -> Result<()> {
    let mut out = BufWriter::new(File::create(file)?);
    let trace_id = "07".repeat(16);
    write!(out, r#"{{"resourceSpans":[{{"resource":{{"attributes":["#)?;
    write!(out, r#"{{"key":"service.name","value":{{"stringValue":"shop"}}}}]}},"#)?;
    write!(out, r#""scopeSpans":[{{"spans":["#)?;
    for number in 0..spans {
        let comma = if number > 0 { "," } else { "" };
        write!(out, r#"{comma}{{"traceId":"{trace_id}","spanId":"{:016x}","#, number + 1)?;
        if let Some(parent) = parent(number, TraceShape::Tree) {
            write!(out, r#""parentSpanId":"{:016x}","#, parent + 1)?;
        }
        let (start, end) = (BEGIN + number as u64, BEGIN + 1_000_000_000);
        write!(out, r#""name":"op{}","kind":1,"startTimeUnixNano":"{start}","#, number % 50)?;
        write!(out, r#""endTimeUnixNano":"{end}","attributes":["#)?;
        write!(out, r#"{{"key":"user","value":{{"stringValue":"user-{number}@example.org"}}}},"#)?;
        let status = 200 + number % 7;
        write!(out, r#"{{"key":"http.status_code","value":{{"intValue":"{status}"}}}},"#)?;
        let route = number % 1_000;
        write!(out, r#"{{"key":"route","value":{{"stringValue":"/a/{route}"}}}}]}}"#)?;
    }
    write!(out, "]}}]}}]}}")?;
    Ok(out.flush()?)
}
