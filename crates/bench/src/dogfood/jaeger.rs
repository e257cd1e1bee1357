//! The subject's spans in a real Jaeger, beside the observer: a search there finds a run by the name of its test.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use model::{Trace, trace::ValueRef};
use reqwest::{Client, Url};
use serde_json::{Value, json};

use super::{offline::Traces, say, stand};

/// The test with the trace to search for.
const TEST: &str = "start-run";
/// The service name in the Jaeger query.
const SUBJECT: &str = "quality-trace";
/// The steps of a run: the child spans of its span.
const STEPS: [&str; 8] =
    ["compile", "judge", "linger", "queue", "record", "resolve", "settle", "trigger"];
/// The margin in microseconds before and after a trace in the search.
const MARGIN_US: u64 = 1_000_000;
/// The upper bound of traces in a search result.
const FOUND_MAX: &str = "1000";

/// Searches for a run in Jaeger, and returns the differences. If Jaeger is not installed, it logs that.
pub(super) async fn check(traces: &Traces) -> Result<Vec<String>> {
    let Some([api, _]) = stand::jaeger() else {
        say(
            "skipped: `a run is found in Jaeger`, because Jaeger is not installed: cargo xtask services up jaeger",
        );
        return Ok(Vec::new());
    };
    let all = traces.all()?;
    let (_, trace) =
        all.iter().find(|(test, _)| *test == TEST).context("`start-run` has a trace")?;
    let name = trace.spans().find_map(|span| match span.attributes().get("test.case.name") {
        Some(ValueRef::Str(name)) => Some(name),
        _ => None,
    });
    let name = name.context("a run tells the name of its test")?;
    ensure!(
        search(&api, trace, "nobody's test").await?.is_empty(),
        "Jaeger finds what it was not asked for"
    );
    let found = search(&api, trace, name).await?;
    let id = trace.id().to_string();
    let Some(stored) = found.iter().find(|stored| stored["traceID"] == id.as_str()) else {
        return Ok(vec![format!("of {} runs of `{name}` in Jaeger, none is {id}", found.len())]);
    };
    let is_subject = |service| matches!(service, Some(ValueRef::Str(SUBJECT)));
    let spans = trace.spans();
    let spans = spans.filter(|span| is_subject(span.resource().attributes().get("service.name")));
    let wrong = differences(&spans.map(|span| span.id().to_string()).collect(), stored);
    if wrong.is_empty() {
        say(&format!("Jaeger has {id}, found by `{name}`, with all spans of the subject"));
    }
    Ok(wrong)
}

/// Returns the traces of the subject around the time of this one that have a span with this test name.
async fn search(api: &str, trace: &Trace, name: &str) -> Result<Vec<Value>> {
    let micros = |nanos: u64| nanos / 1_000;
    let first = trace.spans().map(|span| micros(span.start().as_nanos())).min();
    let last = trace.spans().map(|span| micros(span.end().as_nanos())).max();
    let query = [
        ("service", SUBJECT.to_owned()),
        ("tags", json!({"test.case.name": name}).to_string()),
        ("start", (first.unwrap_or_default() - MARGIN_US).to_string()),
        ("end", (last.unwrap_or_default() + MARGIN_US).to_string()),
        ("limit", FOUND_MAX.to_owned()),
    ];
    let client = Client::builder().no_proxy().build()?;
    let url = Url::parse_with_params(&format!("{api}/api/traces"), &query)?;
    let body = client.get(url).send().await?.error_for_status()?.bytes().await?;
    let answered: Value = serde_json::from_slice(&body)?;
    Ok(answered["data"].as_array().cloned().unwrap_or_default())
}

/// Returns the parts of a trace that Jaeger lacks: spans of the subject, which are these, or the steps below their run.
fn differences(expected: &BTreeSet<String>, stored: &Value) -> Vec<String> {
    let spans = || stored["spans"].as_array().into_iter().flatten();
    let text = |span: &Value, key: &str| span[key].as_str().unwrap_or_default().to_owned();
    let processes = &stored["processes"];
    let is_stored = |span: &&Value| processes[text(span, "processID")]["serviceName"] == SUBJECT;
    let found: BTreeSet<_> = spans().filter(is_stored).map(|span| text(span, "spanID")).collect();
    let mut wrong = Vec::new();
    if found != *expected || expected.is_empty() {
        wrong.push(format!("Jaeger has the spans {found:?}, and the observer {expected:?}"));
    }

    let is_run = |span: &&Value| span["operationName"] == "qualitytrace.run";
    let runs: Vec<_> = spans().filter(is_run).map(|span| text(span, "spanID")).collect();
    let is_below = |span: &&Value, run: &str| span["references"][0]["spanID"] == run;
    let below = |run: &str| -> BTreeSet<_> {
        let children = spans().filter(|span| is_below(span, run));
        children.map(|span| text(span, "operationName")).collect()
    };
    let steps: BTreeSet<_> = STEPS.iter().map(|step| format!("qualitytrace.run.{step}")).collect();
    match &runs[..] {
        [run] if below(run) == steps => {}
        _ => wrong.push(format!("Jaeger has {} runs, and not one with its steps", runs.len())),
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A request of the subject and its run, in the form of Jaeger's API.
    fn stored() -> Value {
        let span = |id: &str, name: &str, parent: &str| {
            let references = json!([{"refType": "CHILD_OF", "spanID": parent}]);
            json!({"spanID": id, "operationName": name, "processID": "p1", "references": references})
        };
        let mut spans =
            vec![span("request", "POST /", "trigger"), span("run", "qualitytrace.run", "request")];
        let steps = STEPS.iter().map(|step| span(step, &format!("qualitytrace.run.{step}"), "run"));
        spans.extend(steps);
        json!({"spans": spans, "processes": {"p1": {"serviceName": SUBJECT}}})
    }

    #[test]
    fn a_trace_that_is_not_complete_in_jaeger_is_told() {
        let expected: BTreeSet<_> =
            ["request", "run"].iter().chain(&STEPS).map(|id| (*id).to_owned()).collect();
        assert_eq!(differences(&expected, &stored()), Vec::<String>::new());

        let mut without_request = stored();
        without_request["spans"].as_array_mut().expect("a list").remove(0);
        assert_eq!(differences(&expected, &without_request).len(), 1, "a span is missing");
        let mut without_parent = stored();
        without_parent["spans"][2]["references"] = json!([]);
        assert_eq!(differences(&expected, &without_parent).len(), 1, "a step is elsewhere");
        let mut of_another = stored();
        of_another["processes"]["p1"]["serviceName"] = json!("shop");
        assert_eq!(differences(&expected, &of_another).len(), 1, "spans are of another service");
        assert_eq!(differences(&BTreeSet::new(), &json!({})).len(), 2, "nothing proves nothing");
    }
}
