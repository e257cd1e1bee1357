//! What is too much is told, and what was told is kept within its bounds.

mod case;

use lang::plans;
use source::{DIAGNOSTICS_MAX, Diagnostic, Text};

#[test]
fn an_error_behind_many_warnings_leaves_no_plan() {
    let head = "type: Test\nspec:\n  trigger: {type: http, httpRequest: {url: http://x}}\n";
    let right = format!("{head}  name: x\n");
    let demo = "type: Demo\nspec: {}\n---\n".repeat(DIAGNOSTICS_MAX + 1);
    // Of one document with many positions of which only the last counts, each warned of.
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

#[test]
fn names_and_outputs_are_bounded() {
    let (name, body) = ("n".repeat(1_000), "b".repeat(64 * 1024));
    let judged = |body: &str| {
        let evidence = format!("answer 200 {body}\nsettled whole\n{name} [server 1ms]");
        let selector = "span[name contains \"nnnn\"]";
        let trigger = "span[name=\"Tracetest trigger\"]";
        case::judge(
            &evidence,
            &format!(
                "specs: [{{selector: '{selector}', assertions: ['attr:name != 5']}}]\noutputs: [{{name: BODY, selector: '{trigger}', value: 'attr:tracetest.response.body'}}]"
            ),
        )
    };
    let fits = judged(&body);
    assert!(fits.contains(&format!("passed 03 {}…:", "n".repeat(200))), "{fits}");
    assert!(!fits.contains(&"n".repeat(201)));
    assert!(fits.contains(&format!("output BODY: {body:?}")));
    let larger = judged(&format!("{body}b"));
    let reason = "nothing, the value has 65537 bytes, and an output may have 65536";
    assert!(larger.ends_with(&format!("output BODY: {reason}\n")), "{larger}");
}

#[test]
fn lists_too_large_to_compare_are_neither_in_nor_out() {
    let list = |count: usize| format!("[{}]", vec!["1"; count].join(","));
    let judged = |whole: usize, part: usize, comparator: &str| {
        let attributes = format!("{{\"whole\": {}, \"part\": \"{}\"}}", list(whole), list(part));
        case::judge(
            &format!("answer 200\nsettled whole\na [server 1ms] {attributes}"),
            &format!(
                "specs: [{{selector: 'span[name=\"a\"]', assertions: ['attr:whole {comparator} attr:part']}}]"
            ),
        )
    };
    for (whole, part, comparator, verdict, remark) in [
        (1_999, 2_000, "contains", "passed", "(compared as JSON)"),
        (1_999, 2_000, "not-contains", "failed", "(compared as JSON)"),
        (2_000, 2_000, "contains", "inconclusive", "(too large to compare)"),
        (2_000, 2_000, "not-contains", "inconclusive", "(too large to compare)"),
        // One value is held against a list of any size.
        (100_000, 1, "contains", "passed", "(compared as JSON)"),
    ] {
        let shown = judged(whole, part, comparator);
        assert!(shown.starts_with(verdict) && shown.contains(remark), "{comparator}: {shown}");
    }
}
