//! The subject's metrics and logs, as its Collector received them: they report the same runs as the spans do.

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::{Context, Result};
use model::trace::ValueRef;
use serde_json::Value;

use super::offline::Traces;

/// Runs that the subject has executed before the suite begins; all of them pass. As in `run.sh`.
const PAST_RUNS: u64 = 12;
/// The only test in which the server has an internal error, so that it logs an error.
const DAMAGED: &str = "read-lost-set";
/// Secrets that no telemetry may contain: tokens, the secret of a variable set, a header.
const SECRETS: [&str; 3] = ["qtt_", "dogfood-s3cr3t", "Bearer"];

/// Compares the Collector's file with the traces of the suite, and returns the differences.
pub(super) fn check(file: &Path, traces: &Traces) -> Result<Vec<String>> {
    let text = fs::read_to_string(file).with_context(|| file.display().to_string())?;
    let damaged = traces.all()?.into_iter().filter(|(test, _)| *test == DAMAGED);
    let damaged: Vec<_> = damaged.map(|(_, trace)| trace.id().to_string()).collect();
    compare(&text, &traced(traces)?, &damaged)
}

/// Returns the differences in the lines of a Collector: runs by verdict, and the traces with an internal error of the server.
fn compare(text: &str, traced: &BTreeMap<String, u64>, damaged: &[String]) -> Result<Vec<String>> {
    let lines = text.lines().map(serde_json::from_str).collect::<Result<Vec<Value>, _>>()?;
    let leaks = SECRETS.iter().filter(|secret| text.contains(**secret));
    let mut wrong: Vec<_> =
        leaks.map(|secret| format!("exported metrics and logs hold `{secret}`")).collect();
    let counted = counted(&lines);
    if counted != *traced {
        wrong.push(format!("`qualitytrace.runs` counts {counted:?}, and spans tell of {traced:?}"));
    }
    let errors = errors(&lines);
    if damaged.is_empty() || errors != damaged {
        wrong.push(format!("errors are logged of {errors:?}, and `{DAMAGED}` is {damaged:?}"));
    }
    Ok(wrong)
}

/// Returns the runs by verdict, by the last value of the metric.
fn counted(lines: &[Value]) -> BTreeMap<String, u64> {
    let mut counted = BTreeMap::new();
    for metric in each(lines, ["resourceMetrics", "scopeMetrics", "metrics"]) {
        if metric["name"] != "qualitytrace.runs" {
            continue;
        }
        for point in metric["sum"]["dataPoints"].as_array().into_iter().flatten() {
            let verdict = point["attributes"][0]["value"]["stringValue"].as_str();
            let count = point["asInt"].as_str().and_then(|count| count.parse().ok());
            counted.insert(verdict.unwrap_or_default().to_owned(), count.unwrap_or_default());
        }
    }
    counted
}

/// Returns the runs by verdict, by the spans of the runs that the suite started; plus those before the suite.
fn traced(traces: &Traces) -> Result<BTreeMap<String, u64>> {
    let mut traced = BTreeMap::from([("passed".to_owned(), PAST_RUNS)]);
    for (_, trace) in traces.all()? {
        for span in trace.spans().filter(|span| span.name() == "qualitytrace.run") {
            if let Some(ValueRef::Str(verdict)) = span.attributes().get("qualitytrace.run.verdict")
            {
                *traced.entry(verdict.to_owned()).or_default() += 1;
            }
        }
    }
    Ok(traced)
}

/// Returns the traces with logged errors.
fn errors(lines: &[Value]) -> Vec<String> {
    each(lines, ["resourceLogs", "scopeLogs", "logRecords"])
        .filter(|record| record["severityText"] == "ERROR")
        .map(|record| record["traceId"].as_str().unwrap_or_default().to_owned())
        .collect()
}

/// Returns the elements three lists deep in each line.
fn each<'a>(lines: &'a [Value], path: [&'a str; 3]) -> impl Iterator<Item = &'a Value> {
    let [first, second, third] = path;
    let within = |value: &'a Value, key: &str| value[key].as_array().into_iter().flatten();
    lines
        .iter()
        .flat_map(move |line| within(line, first))
        .flat_map(move |one| within(one, second))
        .flat_map(move |one| within(one, third))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn metric(passed: u64) -> String {
        let verdict =
            json!({"key": "qualitytrace.run.verdict", "value": {"stringValue": "passed"}});
        let point = json!({"attributes": [verdict], "asInt": passed.to_string()});
        let runs = json!({"name": "qualitytrace.runs", "sum": {"dataPoints": [point]}});
        json!({"resourceMetrics": [{"scopeMetrics": [{"metrics": [runs]}]}]}).to_string()
    }

    fn log(trace: &str, body: &str) -> String {
        let record =
            json!({"severityText": "ERROR", "traceId": trace, "body": {"stringValue": body}});
        json!({"resourceLogs": [{"scopeLogs": [{"logRecords": [record]}]}]}).to_string()
    }

    #[test]
    fn metrics_and_logs_that_do_not_fit_are_told() {
        let cases = [
            (vec![metric(11), metric(12), log("a", "damaged")], None),
            (vec![metric(11), log("a", "damaged")], Some(r#"counts {"passed": 11}"#)),
            (vec![log("a", "damaged")], Some("counts {}")),
            (vec![metric(12)], Some("errors are logged of []")),
            (vec![metric(12), log("b", "damaged")], Some(r#"errors are logged of ["b"]"#)),
            (vec![metric(12), log("a", "qtt_x")], Some("hold `qtt_`")),
        ];
        let traced = BTreeMap::from([("passed".to_owned(), 12)]);
        for (lines, expected) in cases {
            let wrong = compare(&lines.join("\n"), &traced, &["a".to_owned()]).expect("it is JSON");
            assert_eq!(wrong.len(), usize::from(expected.is_some()), "{wrong:?}");
            assert!(wrong.concat().contains(expected.unwrap_or_default()), "{wrong:?}");
        }
    }
}
