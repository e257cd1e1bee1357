//! Checks that a test detects the changes that it refers to and no others: traces are changed, and the verdict must follow.

#![expect(clippy::panic, reason = "a case that cannot be read is a broken test")]

#[path = "mutation/change.rs"]
mod change;

use std::{fs, path::Path};

use change::{One, apply, rename_all_but};
use lang::{Document, Evidence, Seed, Vars, compile, judge, read, resolve};
use model::{Settlement, Timestamp, Trace, TraceId, UnsettledReason, Verdict};
use source::{Colour, Text, draw};

struct Case<'a> {
    name: &'a str,
    trace: &'a str,
    test: String,
    /// The verdict, and the changes that lead to it.
    changes: Vec<(&'a str, &'a str)>,
}

#[test]
fn verdicts_follow_the_trace() {
    let text = fs::read_to_string(folder().join("cases.txt")).expect("the cases are there");
    let cases = cases(&text);
    assert!(cases.len() >= 30, "{} cases", cases.len());
    let wrong: Vec<String> = cases.iter().flat_map(check).collect();
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

fn check(case: &Case<'_>) -> Vec<String> {
    let mut wrong = Vec::new();
    let (id, spans) = captured(case.trace);
    let mut expect = |changes: &str, changed: &[One], is_whole: bool, expected: &str| {
        if changes != "unchanged" && changes != "partial" && *changed == *spans {
            wrong.push(format!("{}: `{changes}` changes nothing", case.name));
        }
        let (verdict, why) = verdict(&case.test, &trace(id, changed), is_whole);
        if verdict.as_str() != expected {
            wrong.push(format!("{}: `{changes}`: {} {why}", case.name, verdict.as_str()));
        }
    };
    expect("unchanged", &spans, true, "passed");
    let mut renamed = spans.clone();
    rename_all_but(&mut renamed, &case.test);
    expect("attributes that nobody speaks of", &renamed, true, "passed");
    for (expected, changes) in &case.changes {
        let mut changed = spans.clone();
        let each = changes.split("; ");
        each.clone().filter(|it| *it != "partial").for_each(|it| apply(&mut changed, it));
        expect(changes, &changed, !each.clone().any(|it| it == "partial"), expected);
    }
    wrong
}

fn cases(text: &str) -> Vec<Case<'_>> {
    let mut cases: Vec<Case<'_>> = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        if let Some(head) = line.strip_prefix("case ") {
            let (name, trace) = head.split_once(" / ").expect("a name and a trace");
            cases.push(Case { name, trace, test: String::new(), changes: Vec::new() });
            continue;
        }
        let case = cases.last_mut().expect("a case begins with its name");
        if line.starts_with(' ') {
            case.test.push_str(line);
            case.test.push('\n');
        } else {
            case.changes.push(line.split_once(' ').expect("a verdict and changes"));
        }
    }
    cases
}

fn verdict(test: &str, trace: &Trace, is_whole: bool) -> (Verdict, String) {
    let yaml = format!(
        "type: Test\nspec:\n  name: case\n  trigger: {{type: http, httpRequest: {{url: http://x}}}}\n{test}"
    );
    let (documents, mut found) = read(&Text::new("case", yaml));
    let [Document::Test(test)] = documents.as_slice() else {
        panic!("{}", draw(&found, Colour::Never))
    };
    let (plan, more) = compile(test);
    found.extend(more);
    let plan = plan.unwrap_or_else(|| panic!("{}", draw(&found, Colour::Never)));
    let seed = Seed { now: Timestamp::default(), random: [7; 32] };
    let resolved = resolve(&plan, &Vars::default(), &seed).expect("there is nothing to resolve");
    let unsettled = if is_whole { Vec::new() } else { vec![UnsettledReason::Partial] };
    let settlement = Settlement { unsettled, ..Settlement::default() };
    let judgement = judge(
        &resolved,
        &Evidence {
            trace: Some(trace),
            trigger: None,
            answer: None,
            settlement: Some(&settlement),
        },
    );
    (judgement.verdict, format!("{:?} {:?}", judgement.claims, judgement.specs))
}

fn trace(id: TraceId, spans: &[One]) -> Trace {
    let mut trace = Trace::new(id);
    for One { resource, scope, span } in spans {
        let resource = trace.resource(resource.clone()).expect("room");
        let scope = trace.scope(scope.clone()).expect("room");
        trace.push(resource, scope, span.clone()).expect("room");
    }
    trace
}

/// Loads a captured trace: its id and its spans.
fn captured(name: &str) -> (TraceId, Vec<One>) {
    let bytes = fs::read(folder().join("traces").join(format!("{name}.json"))).expect(name);
    let traces = otlp::read(&bytes).expect(name);
    let [trace] = traces.as_slice() else { panic!("{name}: one trace") };
    let one = |span: model::trace::Span<'_>| One {
        resource: span.resource().to_data(),
        scope: span.scope().to_data(),
        span: span.to_data(),
    };
    (trace.id(), trace.spans().map(one).collect())
}

fn folder() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mutation"))
}
