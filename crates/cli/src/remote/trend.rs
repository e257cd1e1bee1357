//! The results of the last runs of tests, from a server.

use http::Method;
use model::{DocumentKind, TestId, Timestamp, Verdict};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};
use server::config::Environment;

use super::{
    client::{Server, connect},
    error::ClientError,
};
use crate::{
    args::{self, OutputFormat},
    exit::Exit,
    listing::{ListedRow, Listing},
    terminal::Terminal,
};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Trend {
    runs: usize,
    passed: usize,
    failed: usize,
    inconclusive: usize,
    flips: usize,
    /// An older server does not send this field.
    #[serde(default)]
    flaky: usize,
    median_ns: Option<u64>,
    last: Vec<Last>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Last {
    accepted_at: Timestamp,
    ended_at: Option<Timestamp>,
    verdict: Option<Verdict>,
}

/// Prints the verdicts and durations of the last runs of tests.
pub(crate) async fn trend(
    args: &args::TrendArgs,
    environment: &Environment,
    terminal: &Terminal,
) -> Result<Exit, Exit> {
    let server = connect(&args.connection, environment, terminal)?;
    let tests = match &args.tests[..] {
        [] => {
            let listed = server.list(DocumentKind::Test).await;
            let listed = listed.map_err(|error| terminal.refuse(&error))?;
            listed.into_iter().map(|listed| listed.id).collect()
        }
        named => named.to_vec(),
    };
    if args.output.format != OutputFormat::Table {
        return values(&server, args, &tests, terminal).await;
    }
    let width = tests.iter().map(|test| test.as_str().chars().count()).max().unwrap_or_default();
    for test in &tests {
        let trend: Trend =
            server.trend(test, args).await.map_err(|error| terminal.refuse(&error))?;
        terminal.result(&format!("{:width$}  {}", test.as_str(), line(&trend)));
    }
    Ok(Exit::Passed)
}

/// Prints trends for programs: as the API has them, each with the id of its test.
async fn values(
    server: &Server,
    args: &args::TrendArgs,
    tests: &[TestId],
    terminal: &Terminal,
) -> Result<Exit, Exit> {
    let mut rows = Vec::with_capacity(tests.len());
    for test in tests {
        let trend: Value =
            server.trend(test, args).await.map_err(|error| terminal.refuse(&error))?;
        let value = json!({"test": test, "trend": trend});
        rows.push(ListedRow { name: test.to_string(), cells: Vec::new(), value });
    }
    Listing { heads: &[], rows, none: "no tests" }.print(args.output.format, terminal);
    Ok(Exit::Passed)
}

impl Server {
    async fn trend<T: DeserializeOwned>(
        &self,
        test: &TestId,
        args: &args::TrendArgs,
    ) -> Result<T, ClientError> {
        let read = self.request_in_project(Method::GET, &format!("/api/v1/tests/{test}/trend"));
        self.send(read.query(&[("last", &args.last.to_string())])).await
    }
}

/// Formats a trend as one line: a mark for each run, the oldest first, then the totals.
fn line(trend: &Trend) -> String {
    if trend.last.is_empty() {
        return "no runs yet".to_owned();
    }
    let marks: String = trend.last.iter().rev().map(|last| mark(last.verdict)).collect();
    let counts =
        [(trend.passed, "passed"), (trend.failed, "failed"), (trend.inconclusive, "inconclusive")];
    let counts: Vec<_> = counts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| format!("{count} {word}"))
        .collect();
    let newest = trend.last.iter().find_map(|last| Some(last.ended_at?.since(last.accepted_at)));
    let newest = newest.map(|time| time.as_nanos()).and_then(|nanos| u64::try_from(nanos).ok());
    let time = |nanos: Option<u64>| nanos.map_or("-".to_owned(), report::duration);
    let flips =
        |count: usize| if count == 1 { "1 flip".to_owned() } else { format!("{count} flips") };
    let flaky = match (trend.flaky, trend.flips) {
        (0, 0) => String::new(),
        (0, all) => format!(", {}", flips(all)),
        (flaky, _) => format!(", FLAKY: {} on the same revision", flips(flaky)),
    };
    format!(
        "{marks}  {} of {}, median {}, last {}{flaky}",
        counts.join(", "),
        trend.runs,
        time(trend.median_ns),
        time(newest)
    )
}

fn mark(verdict: Option<Verdict>) -> char {
    match verdict {
        Some(Verdict::Passed) => '✔',
        Some(Verdict::Failed) => '✘',
        Some(Verdict::Inconclusive) => '?',
        None => '·',
    }
}

#[cfg(test)]
mod tests {
    use super::{Trend, line};

    fn rendered(runs: &[(&str, u64)], flaky: usize) -> String {
        let at = |seconds: u64| format!("2026-01-01T00:00:{seconds:02}Z");
        let last = |(verdict, seconds): &(&str, u64)| {
            let verdict = Some(*verdict).filter(|word| !word.is_empty());
            serde_json::json!({"acceptedAt": at(0), "endedAt": verdict.map(|_| at(*seconds)), "verdict": verdict})
        };
        let count = |word: &str| runs.iter().filter(|run| run.0 == word).count();
        let trend = serde_json::json!({
            "runs": runs.iter().filter(|run| !run.0.is_empty()).count(),
            "passed": count("passed"), "failed": count("failed"), "inconclusive": count("inconclusive"),
            "flips": flaky, "flaky": flaky, "medianNs": 2_000_000_000_u64,
            "last": runs.iter().map(last).collect::<Vec<_>>(),
        });
        line(&serde_json::from_value::<Trend>(trend).expect("a trend"))
    }

    #[test]
    fn a_trend_is_one_line_the_newest_run_last() {
        assert_eq!(rendered(&[], 0), "no runs yet");
        assert_eq!(
            rendered(&[("", 0), ("passed", 3), ("failed", 2), ("inconclusive", 1)], 0),
            "?✘✔·  1 passed, 1 failed, 1 inconclusive of 3, median 2 s, last 3 s"
        );
        assert_eq!(
            rendered(&[("passed", 1), ("failed", 1), ("passed", 1)], 2),
            "✔✘✔  2 passed, 1 failed of 3, median 2 s, last 1 s, FLAKY: 2 flips on the same revision"
        );
    }
}
