//! Every format stays well-formed, whatever untrusted senders write.

mod outcomes;
#[path = "forms/page.rs"]
mod page;
#[path = "forms/tap.rs"]
mod tap;
#[path = "forms/texts.rs"]
mod texts;

use std::slice;

use model::{Outcome, Verdict};
use outcomes::{cases, several};
use proptest::prelude::{ProptestConfig, Strategy, any, prop, prop_oneof, proptest};
use report::{
    COMMENT_BYTES_MAX, FORMATS, Format, ReportInput, SUMMARY_BYTES_MAX, markdown, render,
};
use serde_json::Value;
use source::Colour;
use texts::rewritten;

/// Fragments with a meaning in one of the formats, or for its reader.
const PIECES: &[&str] = &[
    "]]>",
    "-->",
    "</failure>",
    "</code>",
    "</pre>",
    "</details>",
    "<script>",
    "&amp;",
    "&",
    "\"",
    "'",
    "<",
    ">",
    "::",
    "::error ",
    "file=a,line=1::",
    "##[",
    "##vso[",
    "##teamcity[",
    "#",
    " # SKIP",
    " # TODO",
    "\\",
    "\\#",
    "ok 1",
    "not ok",
    "1..0",
    "Bail out!",
    "  ---",
    "  ...",
    "|",
    "`",
    "**",
    "[a](b)",
    "@octocat",
    "http://x",
    "%",
    "%0A",
    ",",
    ":",
    "\n",
    "\n\n",
    "\r",
    "\t",
    " ",
    "    ",
    "\u{1b}[2J",
    "\u{9b}",
    "\u{0}",
    "\u{7f}",
    "\u{85}",
    "\u{202e}",
    "\u{2066}",
    "\u{2028}",
    "\u{200b}",
    "\u{feff}",
    "\u{fffe}",
    "\u{ffff}",
    "\u{e0041}",
    "日本",
    "👩\u{200d}💻",
    "…",
    "x",
];

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::collection::vec(prop::sample::select(PIECES), 0..12)
            .prop_map(|pieces| pieces.concat()),
        prop::collection::vec(any::<char>(), 0..60).prop_map(String::from_iter),
        prop::sample::select(PIECES).prop_map(|piece| piece.repeat(400)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn no_text_breaks_a_form(
        texts in prop::collection::vec(text(), 1..12),
        at in prop::sample::select((0..cases().len()).collect::<Vec<_>>()),
    ) {
        let (_, outcome) = cases().swap_remove(at);
        stays(&[rewritten(outcome, &texts)]);
    }

    #[test]
    fn no_text_breaks_a_form_of_several(texts in prop::collection::vec(text(), 1..6)) {
        let outcomes: Vec<Outcome> =
            several().into_iter().map(|outcome| rewritten(outcome, &texts)).collect();
        stays(&outcomes);
    }
}

#[test]
fn the_cases_stay_what_they_are() {
    for (_, outcome) in cases() {
        stays(&[outcome]);
    }
    stays(&several());
    stays(&[]);
    READERS.iter().for_each(|(name, _)| assert!(Format::parse(name).is_some(), "{name}"));
}

/// Checks that every format of these outcomes can be parsed, and reports the right number of results.
fn stays(outcomes: &[Outcome]) {
    for format in FORMATS {
        let text = written(format, outcomes);
        page::safe(format, &text);
        if format.is_for_people {
            page::lines_end(&text);
        }
        if let Some((_, read)) = READERS.iter().find(|(name, _)| *name == format.name) {
            read(&text, outcomes);
        }
    }
}

fn written(format: &Format, outcomes: &[Outcome]) -> String {
    render(format, &ReportInput { outcomes, waterfalls: &[], colour: Colour::Never })
}

/// Parses a report of these outcomes.
type Reader = fn(&str, &[Outcome]);

/// The readers of formats with a syntax, by name.
const READERS: &[(&str, Reader)] = &[
    ("json", |text, outcomes| assert_eq!(json(text).len(), outcomes.len())),
    ("ndjson", ndjson),
    ("junit", junit),
    ("tap", |text, outcomes| tap::read(text, outcomes, &expected)),
    ("markdown", html),
    ("github", github),
    ("html", browser),
];

/// Returns the verdicts of the reported results: the assertions, the claims, and the run if they do not explain it.
fn expected(outcome: &Outcome) -> Vec<Verdict> {
    let judgement = &outcome.judgement;
    let assertions = judgement.specs.iter().flat_map(|spec| &spec.assertions);
    let assertions = assertions.map(|assertion| assertion.verdict);
    let mut all: Vec<Verdict> =
        assertions.chain(judgement.claims.iter().map(|claim| claim.verdict)).collect();
    if all.is_empty() || Verdict::over(all.iter().copied()) != outcome.verdict {
        all.push(outcome.verdict);
    }
    all
}

fn count(outcomes: &[Outcome], wanted: Verdict) -> usize {
    outcomes.iter().flat_map(expected).filter(|verdict| *verdict == wanted).count()
}

fn json(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect()
}

fn ndjson(text: &str, outcomes: &[Outcome]) {
    let lines = json(text);
    let of = |kind: &str| lines.iter().filter(|line| line["type"] == kind).collect::<Vec<_>>();
    let tests: Vec<&str> =
        of("test").iter().map(|line| line["test"].as_str().expect("a name")).collect();
    let names: Vec<&str> = outcomes.iter().map(|outcome| outcome.test.as_str()).collect();
    assert_eq!(tests, names, "nothing is lost");
    let specs = outcomes.iter().flat_map(|outcome| &outcome.judgement.specs);
    assert_eq!(of("assertion").len(), specs.map(|spec| spec.assertions.len()).sum::<usize>());
    let claims = outcomes.iter().map(|outcome| outcome.judgement.claims.len());
    assert_eq!(of("claim").len(), claims.sum::<usize>());
    let outputs = outcomes.iter().map(|outcome| outcome.judgement.outputs.len());
    assert_eq!(of("output").len(), outputs.sum::<usize>());
    let plugins =
        outcomes.iter().flat_map(|outcome| &outcome.analysis).flat_map(|all| &all.plugins);
    let findings = plugins.flat_map(|plugin| &plugin.rules).map(|rule| rule.findings.len());
    assert_eq!(of("finding").len(), findings.sum::<usize>());
    let last = lines.last().expect("there is a summary");
    assert_eq!((&last["type"], &last["tests"]), (&"summary".into(), &outcomes.len().into()));
    assert!(lines.iter().all(|line| line["schemaVersion"] == report::SCHEMA_VERSION));
}

fn junit(text: &str, outcomes: &[Outcome]) {
    let document = roxmltree::Document::parse(text).expect("it is XML");
    let all = |name: &str| {
        document.descendants().filter(|node| node.has_tag_name(name)).collect::<Vec<_>>()
    };
    let number = |node: &roxmltree::Node<'_, '_>, name: &str| {
        node.attribute(name).and_then(|number| number.parse::<usize>().ok()).expect(name)
    };
    let (failed, inconclusive) =
        (count(outcomes, Verdict::Failed), count(outcomes, Verdict::Inconclusive));
    let root = document.root_element();
    assert!(root.has_tag_name("testsuites"));
    assert_eq!(all("testsuite").len(), outcomes.len());
    assert_eq!((all("failure").len(), number(&root, "failures")), (failed, failed));
    assert_eq!((all("error").len(), number(&root, "errors")), (inconclusive, inconclusive));
    let cases = outcomes.iter().map(|outcome| expected(outcome).len()).sum();
    assert_eq!((all("testcase").len(), number(&root, "tests")), (cases, cases));
    for suite in all("testsuite") {
        let inside = suite.children().filter(|node| node.has_tag_name("testcase")).count();
        assert_eq!(number(&suite, "tests"), inside);
    }
    let known = [
        "testsuites",
        "testsuite",
        "properties",
        "property",
        "testcase",
        "failure",
        "error",
        "system-out",
    ];
    let elements = document.descendants().filter(roxmltree::Node::is_element);
    elements.for_each(|node| assert!(known.contains(&node.tag_name().name())));
}

/// Checks that the part below the heading is HTML, with every untrusted text in a `code` or a `pre`.
fn html(text: &str, outcomes: &[Outcome]) {
    let (heading, body) = text.split_once('\n').expect("there is a heading");
    assert!(heading.starts_with("### Qualitytrace: "), "{heading}");
    let open = outcomes.iter().filter(|outcome| outcome.verdict != Verdict::Passed).count();
    // An empty line ends HTML: there is one before each block, and none in it.
    let blocks = body.split("\n\n").count() - 1;
    assert_eq!(body.starts_with('\n'), !outcomes.is_empty());
    assert_eq!(blocks, open);
    let document = format!("<body>{body}</body>");
    let document = roxmltree::Document::parse(&document).expect("it is well formed");
    let rows = document.descendants().find(|node| node.has_tag_name("table"));
    let rows = rows.map_or(0, |table| table.children().filter(roxmltree::Node::is_element).count());
    assert_eq!(rows, if outcomes.is_empty() { 0 } else { outcomes.len() + 1 });
    let sections = document.descendants().filter(|node| node.has_tag_name("details"));
    assert_eq!(sections.count(), open);
    let known = [
        "body", "table", "tr", "th", "td", "details", "summary", "ul", "li", "p", "br", "pre",
        "code",
    ];
    for node in document.descendants() {
        if node.is_element() {
            assert!(known.contains(&node.tag_name().name()), "{node:?}");
        }
        let quoted =
            node.ancestors().any(|node| node.has_tag_name("code") || node.has_tag_name("pre"));
        if let Some(text) = node.text().filter(|_| node.is_text() && !quoted) {
            assert!(!text.contains(['@', '#', '/', '<', '`', '[']), "{text}");
        }
    }
}

/// Checks that the page has our elements and no others, whatever untrusted senders write.
fn browser(text: &str, outcomes: &[Outcome]) {
    let body = text.split_once("<main>").and_then(|(_, rest)| rest.split_once("</main>"));
    let (body, _) = body.expect("there is a page");
    assert_eq!(text.matches("<script").count(), 1, "ours");
    assert_eq!(body.matches("<details class=\"test\"").count(), outcomes.len());
    let known = [
        "details", "summary", "section", "span", "p", "h2", "h3", "h4", "h5", "ul", "li", "div",
        "b", "code", "pre", "table", "tr", "td", "dl", "dt", "dd",
    ];
    for element in body.split('<').skip(1) {
        let name = element.trim_start_matches('/');
        let name: String = name.chars().take_while(char::is_ascii_alphanumeric).collect();
        assert!(known.contains(&name.as_str()), "<{element}");
    }
}

fn github(text: &str, outcomes: &[Outcome]) {
    let of = |name: &str| text.lines().filter(|line| line.starts_with(name)).collect::<Vec<_>>();
    let errors = count(outcomes, Verdict::Failed) + count(outcomes, Verdict::Inconclusive);
    assert_eq!(of("::error ").len(), errors);
    let broken = outcomes.iter().filter(|outcome| {
        let plugins = outcome.analysis.iter().flat_map(|analysis| &analysis.plugins);
        plugins.flat_map(|plugin| &plugin.rules).any(|rule| !rule.holds())
    });
    let warnings = broken.count();
    assert_eq!(of("::warning ").len(), warnings);
    assert_eq!(text.lines().count(), errors + warnings + 1);
    for line in text.lines().take(errors + warnings) {
        let (properties, _) = line[2..].split_once("::").expect("a command has two parts");
        let (_, properties) = properties.split_once(' ').expect("it has properties");
        for property in properties.split(',') {
            let (name, value) = property.split_once('=').expect("a property has a value");
            assert!(["file", "line", "col", "title"].contains(&name), "{property}");
            assert!(!value.contains(':'), "{property}");
        }
    }
}

#[test]
fn the_longest_strangers_are_bounded() {
    for endless in ["\u{1b}", "&", "#", "%", "words and "].map(|piece| piece.repeat(20_000)) {
        for (name, outcome) in cases() {
            let outcomes = [rewritten(outcome, slice::from_ref(&endless))];
            for format in FORMATS {
                // Formats for programs shorten nothing.
                if ["json", "ndjson"].contains(&format.name) {
                    continue;
                }
                let text = written(format, &outcomes);
                assert!(text.len() < 200_000, "{name} {format:?} {}", text.len());
            }
        }
    }
}

#[test]
fn what_github_does_not_take_is_left_out_with_a_remark() {
    for (tests, bytes_max) in
        [(5_000, SUMMARY_BYTES_MAX), (5_000, COMMENT_BYTES_MAX), (40, COMMENT_BYTES_MAX), (9, 0)]
    {
        let mut outcomes = vec![outcomes::passed(); tests];
        outcomes.extend(vec![outcomes::checkout(); tests]);
        let text = markdown(&outcomes, bytes_max);
        assert!(text.len() <= bytes_max.max(1024), "{} of {bytes_max}", text.len());
        assert!(text.contains("There is no room here for the evidence of"), "{bytes_max}");
        assert!(text.starts_with(&format!("### Qualitytrace: {} tests", 2 * tests)));
        assert!(text.ends_with("</p>\n"));
    }
}
