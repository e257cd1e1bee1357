//! Executes every example of the language reference. The examples of the grammar are executed next to the parser.
//!
//! The words after the fence of a block state the expected result: `selector 3`, `claim passes`, `value SELECTOR` with `= text`
//! as its last line, `spec fails`, `yaml document`, and `refused` for a document that must not compile.

use std::{fs, path::Path};

use lang::{Evidence, Seed, Vars, compile, judge, read, resolve, select};
use model::{Judgement, Settlement, Timestamp, Trace, Verdict};
use source::{Colour, Diagnostic, Text, draw};

const HEAD: &str =
    "type: Test\nspec:\n  name: example\n  trigger: {type: traceid, traceid: {id: x}}\n";

#[test]
fn the_reference_is_true() {
    let counts = run("reference.md");
    assert!(counts.0 > 80, "{counts:?}");
    assert_eq!(counts.1, 0, "all examples of the reference are run");
}

#[test]
fn the_page_of_triggers_is_true() {
    let counts = run("../triggers.md");
    assert_eq!(counts, (5, 0), "all examples of the page are run");
}

/// Compiles the claims of the ADR, one table row each.
#[test]
fn the_record_of_claims_is_true() {
    let record = fs::read_to_string(root().join("docs/adr/0010-claims.md")).expect("the record");
    let rows = record.lines().filter(|line| line.starts_with("| ") && line.contains('`'));
    let mut claims = 0;
    for row in rows {
        let cell = row.trim_end_matches(" |").rsplit(" | ").next().unwrap_or_default();
        for claim in cell.split(" · ").map(|claim| claim.replace("\\|", "|")) {
            let Some(claim) = claim.strip_prefix('`').and_then(|claim| claim.strip_suffix('`'))
            else {
                continue;
            };
            if claim.starts_with('{') {
                continue;
            }
            // Unquoted, as the ADR promises.
            let yaml = format!("{HEAD}  trace:\n    - {claim}\n");
            let (document, pictures) = compiled(&yaml);
            assert!(document.is_some(), "{claim}\n{pictures}");
            claims += 1;
        }
    }
    assert!(claims >= 24, "only {claims} claims were found");
}

/// Returns the number of executed blocks, and of blocks with unknown words.
fn run(name: &str) -> (usize, usize) {
    let text = fs::read_to_string(root().join("docs/language").join(name)).expect("the page");
    let trace = trace();
    let (mut ran, mut unknown, mut wrong) = (0, 0, Vec::new());
    for (line, words, block) in blocks(&text) {
        let place = format!("{name}:{line}: {words}\n{block}");
        match example(&words, &block, &trace) {
            Some(Ok(())) => ran += 1,
            Some(Err(why)) => wrong.push(format!("{place}{why}\n")),
            None if words == "text" || words == "ebnf" || words == "sh" => {}
            None => unknown += 1,
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    (ran, unknown)
}

/// Returns the fenced blocks: the line of each, the words after its fence, and its content.
fn blocks(page: &str) -> Vec<(usize, String, String)> {
    let mut blocks = Vec::new();
    let mut open: Option<(usize, String, String)> = None;
    for (number, line) in (1..).zip(page.lines()) {
        match (line.strip_prefix("```"), open.take()) {
            (Some(words), None) => open = Some((number, words.to_owned(), String::new())),
            (Some(_), Some(block)) => blocks.push(block),
            (None, Some((start, words, block))) => {
                open = Some((start, words, format!("{block}{line}\n")));
            }
            (None, None) => {}
        }
    }
    blocks
}

fn example(words: &str, block: &str, trace: &Trace) -> Option<Result<(), String>> {
    let (kind, rest) = words.split_once(' ').unwrap_or((words, ""));
    let source = block.trim_end();
    Some(match (kind, rest) {
        ("selector", "refused") => refused(select(source, trace).is_err()),
        ("selector", "") => picture(select(source, trace)).map(drop),
        ("selector", count) => {
            picture(select(source, trace)).and_then(|spans| expect(&spans.len().to_string(), count))
        }
        ("assertion" | "claim" | "value", "refused") => {
            let (document, _) = compiled(&test_of(kind, source));
            refused(document.is_none())
        }
        ("assertion" | "claim", "") => {
            let (document, pictures) = compiled(&test_of(kind, source));
            document.map(drop).ok_or(pictures)
        }
        ("claim", expected) => judged(&test_of(kind, source), trace)
            .and_then(|judgement| expect(&verdict(&judgement), expected)),
        ("spec", expected) => {
            let lines: String = source.lines().map(|line| format!("      {line}\n")).collect();
            let yaml = format!("{HEAD}  specs:\n    -\n{lines}");
            judged(&yaml, trace).and_then(|judgement| expect(&verdict(&judgement), expected))
        }
        ("value", selector) => valued(source, selector, trace),
        ("yaml", "document") => {
            let (documents, mut found) = read(&Text::new("example.yaml", source));
            for document in &documents {
                if let lang::Document::Test(test) = document {
                    found.extend(compile(test).1);
                }
            }
            let is_right = !documents.is_empty() && !found.iter().any(Diagnostic::is_error);
            is_right.then_some(()).ok_or_else(|| draw(&found, Colour::Never))
        }
        _ => return None,
    })
}

fn test_of(kind: &str, source: &str) -> String {
    let quoted = format!("{source:?}");
    let quoted = serde_json::to_string(source).unwrap_or(quoted);
    match kind {
        "claim" => format!("{HEAD}  trace: [{quoted}]\n"),
        "assertion" => format!("{HEAD}  specs: [{{selector: 'span[]', assertions: [{quoted}]}}]\n"),
        _ => format!("{HEAD}  outputs: [{{name: O, selector: 'span[]', value: {quoted}}}]\n"),
    }
}

fn valued(source: &str, selector: &str, trace: &Trace) -> Result<(), String> {
    let (value, expected) = match source.rsplit_once("\n= ") {
        Some((value, expected)) => (value, Some(expected)),
        None => (source, None),
    };
    let json = |text: &str| serde_json::to_string(text).unwrap_or_default();
    let selector = if selector.is_empty() { "span[]" } else { selector };
    let yaml = format!(
        "{HEAD}  outputs: [{{name: O, selector: {}, value: {}}}]\n",
        json(selector),
        json(value)
    );
    let Some(expected) = expected else {
        let (document, pictures) = compiled(&yaml);
        return document.map(drop).ok_or(pictures);
    };
    let judgement = judged(&yaml, trace)?;
    let output = &judgement.outputs[0];
    let found = output.value.clone().or(output.reason.clone()).unwrap_or_default();
    expect(&found, expected)
}

fn compiled(yaml: &str) -> (Option<lang::Plan>, String) {
    let (documents, mut found) = read(&Text::new("example.yaml", yaml));
    let plan = match documents.as_slice() {
        [lang::Document::Test(test)] => {
            let (plan, more) = compile(test);
            found.extend(more);
            plan
        }
        _ => None,
    };
    let plan = plan.filter(|_| !found.iter().any(Diagnostic::is_error));
    (plan, draw(&found, Colour::Never))
}

fn judged(yaml: &str, trace: &Trace) -> Result<Judgement, String> {
    let (plan, pictures) = compiled(yaml);
    let plan = plan.ok_or(pictures)?;
    let vars =
        Vars { variables: [("REGION".to_owned(), "eu-1".to_owned())].into(), ..Vars::default() };
    let seed = Seed { now: Timestamp::from_nanos(1_794_708_000_000_000_000), random: [7; 32] };
    let resolved = resolve(&plan, &vars, &seed).map_err(|error| error.to_string())?;
    let spans = trace.len() as u64;
    let settlement = Settlement { spans, ..Settlement::default() };
    let evidence =
        Evidence { trace: Some(trace), trigger: None, answer: None, settlement: Some(&settlement) };
    Ok(judge(&resolved, &evidence))
}

fn verdict(judgement: &Judgement) -> String {
    match judgement.verdict {
        Verdict::Passed => "passes".to_owned(),
        Verdict::Failed => "fails".to_owned(),
        Verdict::Inconclusive => "inconclusive".to_owned(),
    }
}

fn expect(found: &str, expected: &str) -> Result<(), String> {
    if found == expected { Ok(()) } else { Err(format!("expected {expected}, found {found}")) }
}

fn refused(is_refused: bool) -> Result<(), String> {
    if is_refused { Ok(()) } else { Err("it compiles and should not".to_owned()) }
}

fn picture<T>(result: Result<T, Vec<Diagnostic>>) -> Result<T, String> {
    result.map_err(|found| draw(&found, Colour::Never))
}

fn trace() -> Trace {
    let bytes = fs::read(root().join("docs/language/example/checkout.json")).expect("the trace");
    otlp::read(&bytes).expect("a trace can be read").remove(0)
}

fn root() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
