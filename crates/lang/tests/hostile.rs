//! Checks that no document causes a panic, and that the diagnostics stay within their bounds.

use lang::{Document, compile, format, plans, read};
use proptest::{prelude::*, sample::select};
use source::{Colour, DIAGNOSTICS_MAX, Diagnostic, Text, draw};

/// Fragments of the language, valid and invalid.
#[rustfmt::skip]
const PIECES: &[&str] = &[
    "span", "[", "]", "event", "link", "self", "name", "kind", "=", "!=", "=~", "!~", "<", "<=", ">", ">=", "==",
    ">>", "<<", "=>", "contains", "not-contains", "starts-with", "matches", "in", "between", "exists", "and", "or",
    "not", "every", "some", "no", "has", "of", "by", "before", "inside", "calls", "count", "p95", "value", "gap",
    "\"a\"", "'a'", "\"", "'", "\\", ",", ".", ":", "first", "last", "nth_child", "root", "leaf", "(", ")", "2", "-",
    "0x2", "1_0", "1.5", "5ms", "5 ms", "9999999999999999999999", "attr:", "attr:name", "response.status",
    "attr:tracetest.selected_spans.count", "attr:tracetest.response.body", "var:x", "env:", "${", "}", "|",
    "json_path", "length", "uuid", "+", "*", "~", "true", "null", " ", "\n", "//", "/*", "*/", "é", "\u{200b}", "日本",
    "🚀", "{\"a\":1}", "[1]", "#", ": ",
];

/// Lines of documents, valid and invalid.
#[rustfmt::skip]
const LINES: &[&str] = &[
    "type: Test", "type: TestSuite", "type: VariableSet", "type: TraceStore", "type: Analyzer", "type: SettleProfile", "type: PollingProfile", "type: DataStore",
    "type: QualityGate", "type: Demo", "type: Monitor", "spec:", "  name: x", "  id: y", "  tags: [a]", "  trigger:",
    "    type: http", "    type: grpc", "    type: exec", "    type: k6", "    httpRequest:", "      url: http://x",
    "      headers:", "        - key: a", "          value: b", "      auth: {type: basic, basic: {}}", "      body: |",
    "        ${var:x}", "    exec: {command: [a], env: {A: b}}", "    tls: {caFile: ./a}", "  specs:",
    "    - selector: span[]", "      assertions:", "        - attr:a = 1", "        - 5", "  trace: ['no span[]', {a: b}]",
    "  outputs:", "    - name: z", "      value: attr:a", "  settle:", "    timeout: 1s", "    expect: [a, 'span[']",
    "  specs: [{selector: [], assertions: {}}]", "  steps: [a, {test: b, needs: [c, a]}, {test: c, needs: [b]}]",
    "  values: [{key: a, value: b, type: secret}]", "  jaeger: {endpoint: a, tls: {}}", "  plugins: [{id: common}]",
    "  periodic: {timeout: 1m}", "---", "  ? a", "  - [", "  key: &a b", "  <<: *a", "\t", "# ${",
    "  skipTraceCollection: maybe",
];

#[test]
fn an_error_behind_many_warnings_leaves_no_plan() {
    let head = "type: Test\nspec:\n  trigger: {type: http, httpRequest: {url: http://x}}\n";
    let right = format!("{head}  name: x\n");
    let demo = "type: Demo\nspec: {}\n---\n".repeat(DIAGNOSTICS_MAX + 1);
    // One document with many positions; only the last one counts, and each other one causes a warning.
    let positions = ":first".repeat(DIAGNOSTICS_MAX + 2);
    let warned = |selector: &str| {
        format!(
            "{right}  specs: [{{selector: 'span[]{positions}, {selector}', assertions: ['attr:a = 1']}}]\n"
        )
    };
    for (yaml, count) in [
        (format!("{demo}{right}"), 1),
        (format!("{demo}{head}"), 0),
        (warned("span[]"), 1),
        (warned("span[]:nth_child(0)"), 0),
        (format!("{}---\n{head}", warned("span[]")), 0),
        (format!("{right}---\n{demo}{head}"), 0),
    ] {
        let (planned, found) = plans(&Text::new("t.yaml", yaml.as_str()));
        assert_eq!(planned.len(), count, "{yaml}");
        assert_eq!(found.iter().any(Diagnostic::is_error), count == 0, "{yaml}");
        assert!(found.len() <= DIAGNOSTICS_MAX + 1);
    }
}

/// A suite with the maximum number of steps, in the worst order for the search for cycles.
#[test]
fn a_large_suite_is_read_in_no_time() {
    let suite = |last: &str| {
        let step = |at: usize| format!("  - {{test: s{at}, needs: [s{}, s{}]}}\n", at + 1, at + 2);
        let steps: String = (0..9_998).map(step).collect();
        let end =
            format!("  - {{test: s9998, needs: [s9999]}}\n  - {{test: s9999, needs: [{last}]}}\n");
        format!("type: TestSuite\nspec:\n  name: x\n  steps:\n{steps}{end}")
    };
    for (last, expected) in
        [("", None), ("s0", Some("these steps wait for each other: `s0` needs `s1`"))]
    {
        let (documents, found) = read(&Text::new("t", suite(last)));
        assert_eq!(documents.len(), usize::from(expected.is_none()));
        let message = found.first().map(|mistake| mistake.message.as_str());
        assert!(message.is_none() == expected.is_none(), "{message:?}");
        assert!(message.unwrap_or_default().starts_with(expected.unwrap_or_default()));
        assert!(message.unwrap_or_default().len() < 200, "a message is short");
    }
}

fn soup(pieces: &'static [&'static str], between: &'static str) -> impl Strategy<Value = String> {
    prop::collection::vec(select(pieces), 0..24).prop_map(move |p| p.join(between))
}

fn anything() -> impl Strategy<Value = String> {
    prop_oneof![soup(PIECES, ""), soup(PIECES, " "), any::<String>()]
}

/// Parses, compiles, renders and formats a document.
fn take(yaml: &str) {
    let text = Text::new("t.yaml", yaml);
    let (documents, mut found) = read(&text);
    for document in &documents {
        if let Document::Test(test) = document {
            found.extend(compile(test).1);
        }
    }
    draw(&found, Colour::Never);
    let is_right = !found.iter().any(Diagnostic::is_error);
    let formatted = format(&text);
    assert_eq!(formatted.is_ok(), is_right, "only what is right is formatted");
    if let Ok(formatted) = formatted {
        let again = format(&Text::new("t.yaml", formatted.text.as_str()));
        let again = again.expect("what is formatted is right");
        assert_eq!(again.text, formatted.text, "formatted once and for all");
        assert!(formatted.notes.iter().all(|note| note.span.is_some()), "never gives up");
    }
}

fn quoted(text: &str) -> String {
    serde_json::Value::String(text.to_owned()).to_string()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_string_panics(selector in anything(), statement in anything(), url in anything()) {
        let statement = quoted(&statement);
        take(&format!(
            "type: Test\nspec:\n  name: x\n  trigger: {{type: http, httpRequest: {{url: {}}}}}\n  specs:\n  \
             - selector: {}\n    assertions: [{statement}]\n  trace: [{statement}]\n  \
             outputs: [{{name: x, value: {statement}}}]\n",
            quoted(&url), quoted(&selector),
        ));
    }

    #[test]
    fn no_document_panics(document in prop_oneof![soup(LINES, "\n"), any::<String>()]) {
        take(&document);
    }

    /// A document with one random string is valid more often than one with three.
    #[test]
    fn what_is_right_is_formatted_once(statement in soup(PIECES, " "), selector in soup(PIECES, " ")) {
        let head = "type: Test\nspec:\n  name: x\n  trigger: {type: k6}\n";
        take(&format!("{head}  trace: [{}]\n", quoted(&statement)));
        take(&format!("{head}  specs:\n  - selector: {}\n    assertions: [attr:a exists]\n", quoted(&selector)));
        take(&format!("{head}  specs:\n  - assertions:\n    - |\n      {}\n", statement.replace('\n', "\n      ")));
    }
}
