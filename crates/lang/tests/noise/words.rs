//! Valid words, from which invalid inputs are generated.

/// Fragments of all languages, valid and invalid.
#[rustfmt::skip]
pub(super) const PIECES: &[&str] = &[
    "span", "[", "]", "span[]", "event", "event[", "link[", "name", "kind", "status", "duration", "service", "=", "!=",
    "<", "<=", ">", ">=", "=~", "!~", "==", "contains", "not-contains", "starts-with", "not-starts-with", "ends-with",
    "matches", "in", "between", "exists", "and", "or", "not", "\"a\"", "'a'", "\"", "'", "\\", ",", ".", ":", ":first",
    ":last", ":nth_child(2)", ":nth_child(0)", ":root", ":leaf", ":orphan", ":has(", ":not(", "(", ")", "2", "-", "0x2",
    "1_0", "1.5", "5ms", "1h2m", "9999999999999999999999999999999999999999999", "1e9", "null", "true", "false", "attr:",
    "attr:name", "attr:a", "attr:tracetest.selected_spans.count", "attr:tracetest.response.body", "attr:span.events",
    "var:x", "env:y", "${", "}", "${var:x}", "|", "json_path", "'$..a[?(@.b)]'", "regex", "regex_group", "get_index",
    "length", "type", "+", "~", ">>", "<<", "=>", "*", "/", "uuid()", "date(", "randomInt(1, 2)", "count(", "sum(",
    "min(", "max(", "avg(", "p95(", "p101(", "percentile(", "value(", "values(", "gap(", "of", "by", "every", "some",
    "no", "has", "self", "before", "after", "inside", "overlaps", "calls", "resource.a", "scope.name", "event.a",
    "link.span_id", "response.status", "response.header.x", "response.body", "parent_id", "self_time", "critical_time",
    " ", "\n", "\t", "//", "/*", "*/", "#", "é", "\u{200b}", "\u{0}", "日本", "🚀", "{\"a\":1}", "[1, \"b\"]", "(((((((((((",
];

#[rustfmt::skip]
pub(super) const SELECTORS: &[&str] = &[
    "", "span[]", "span[name=\"a\"]", "span[name=\"a\" kind=\"server\"] span[status=\"error\"]:first",
    "span[a > 1 and not b exists] > span[]:nth_child(2), span[c =~ \"^x\"]:has(> span[d in [1, 2.5, \"e\"]])",
    "span[]:leaf:not(span[]:orphan) << span[duration >= 5ms]", "span[event[name=\"exception\" exception.type=\"T\"]]",
    "span[link[]] => span[service=\"s1\"]:last", "span[a between 1 and 5 or resource.a not-contains \"b\"] ~ span[] + span[]",
    "span[\"odd name\"=\"é\\\"\" http.status_code=0x1f4] < span[]:root", "span[self_time < attr:critical_time depth = attr:children]",
];

#[rustfmt::skip]
pub(super) const ASSERTIONS: &[&str] = &[
    "attr:a = 1", "attr:tracetest.selected_spans.count <= 3", "attr:b contains '{\"a\": 1}'", "attr:a + 2 * 3 = 7",
    "attr:b | json_path '$.a[?(@.c == 1)]' | length = 0", "attr:http.method in [\"GET\", \"POST\"]",
    "attr:duration < 5ms and not attr:x exists", "attr:a between 1 and 2 or attr:b matches \"^(a|b)+$\"",
    "name = \"a\" and count(self span[]) >= 0", "attr:tracetest.span.duration <= 1s", "event.a = 1",
    "response.status = 200", "response.body | json_path '$.id' exists", "attr:b | regex '[0-9]+' | get_index 0 = \"1\"",
    "attr:a | type = \"number\"", "attr:tracetest.response.headers | json_path '$[0].key' = \"Content-Type\"",
    "attr:a = value(attr:a of span[]:root)", "(1 + 2) * 3 - -4 / 0 = attr:a", "attr:b | regex_group '(a)(b)' = [\"a\", \"b\"]",
];

#[rustfmt::skip]
pub(super) const CLAIMS: &[&str] = &[
    "count(span[name=\"a\"]) = 1", "every span[name=\"a\"] has count(self span[db.system exists]) <= 3",
    "no span[http.request.resend_count > 0]", "span[name=\"a\"] before span[name=\"b\"]",
    "every span[db.system exists] inside some span[name=\"query\"]", "span[name=\"a\"] overlaps span[name=\"b\"]",
    "gap(span[name=\"a\"], span[name=\"b\"]) < 10ms", "some span[service=\"s1\"] calls some span[service=\"s2\"]",
    "count(span[a exists] by parent_id, attr:a) <= 2", "sum(attr:a of span[name=\"a\"]) <= 100",
    "p95(duration of span[kind=\"client\"]) < 50ms", "max(self_time of span[]) < 20ms", "sum(critical_time of span[]) >= 0ms",
    "value(attr:a of span[name=\"a\"]) = value(attr:a of span[name=\"b\"])",
    "every span[kind=\"consumer\"] has attr:a in values(attr:a of span[kind=\"producer\"])",
    "count(span[]:root) = 1", "no span[]:orphan", "values(service of span[]) contains [\"s1\", \"s2\"]",
    "no span[status=\"error\" and not name starts-with \"a\"]", "some span[event[name=\"exception\"]]",
    "not (some span[a=1] or every span[] has depth < 3) and percentile(99.9, attr:a of span[] by service) > 0",
    "every span[name=\"a\"] after no span[name=\"b\"]", "avg(duration of span[] by kind, attr:a) between 1ms and 2s",
    "min(start of span[]) <= max(end of span[]) + 1", "response.status = 200",
    "every span[] has some span[] has every span[] has duration >= 0ms",
];

#[rustfmt::skip]
pub(super) const VALUES: &[&str] = &[
    "attr:a", "attr:b | json_path '$.a' | length", "\"id-${attr:a}-${attr:b}\"", "response.header.content-type",
    "attr:a + 1", "count(self span[])", "name", "uuid()", "1 + 2 * (3 - 4)", "[attr:a, \"b\", 3]", "attr:tracetest.span.name",
];

#[rustfmt::skip]
pub(super) const URLS: &[&str] = &[
    "http://x", "http://x/${uuid()}", "${var:URL}/a?b=${randomInt(1, 10)}", "http://x/${var:A | json_path '$.b'}",
    "http://${env:HOST}:80/${date('2006-01-02')}", "$${", "http://x/${", "http://x/${'a' + \"}\"}",
];

/// A test that uses a little of every feature.
pub(super) const DOCUMENT: &str = "\
type: Test
spec:
  id: shop
  name: a shop
  description: |
    of many lines
  tags: [a, b]
  trigger:
    type: http
    httpRequest:
      method: POST
      url: http://x/${uuid()}
      headers:
      - key: Content-Type
        value: application/json
      body: '{\"a\": ${var:A}}'
      auth: {type: basic, basic: {username: u, password: p}}
  specs:
  - name: one
    selector: span[name=\"a\"]
    assertions:
    - attr:a = 1
    - attr:b contains \"x\"
  - selector: >-
      span[kind=\"server\"]
      span[]:first
    assertions: ['attr:tracetest.selected_spans.count = 1']
  trace:
  - count(span[]:root) = 1
  - {name: fast, claim: 'p95(duration of span[]) < 50ms'}
  outputs:
  - name: ID
    selector: span[name=\"a\"]
    value: attr:id
  settle:
    timeout: 10s
    expect: [orders, 'span[name=\"a\"]']
    absent: [gateway]
---
type: VariableSet
spec:
  id: v
  name: v
  values:
  - key: A
    value: &one '1'
  - {key: S, value: *one, type: secret}
---
type: TestSuite
spec:
  id: s
  name: s
  steps: [shop]
";

/// A trace in OTLP/JSON.
pub(super) const JSON: &str = include_str!("../mutation/traces/clocks.json");
