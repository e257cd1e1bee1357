//! Proof that this version goes on with the database of the last release: its server fills it and is killed in the middle of runs,
//! this version reads every run and ends those that were active, and the last release reads everything again.
//!
//! Deliberately absent: two versions at a time, which `prove upgrade` has, and building the last release, which `cargo xtask` does.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

use crate::{
    parts::{Api, Database, Server, Target, answer},
    table::{Goal, Row},
};

/// Finished runs of each test.
const RUNS: usize = 10;
/// Runs that are active when the old server is killed.
const ACTIVE_RUNS: usize = 5;
/// How long their trigger takes.
const ACTIVE_MS: u64 = 3_000;
/// How long a run may take, its next lease included.
const ENDED_MAX: Duration = Duration::from_secs(60);
/// How a server states that a database requires a later version.
const TOO_OLD: &str = "this version is too old for the database";

/// The tests, with the verdict that each has to have.
const TESTS: [(&str, &str); 3] =
    [("good", "passed"), ("wrong", "failed"), ("open", "inconclusive")];

/// What is read of a run.
const OF_RUN: [&str; 4] = ["", "/events", "/trace", "/report?format=json"];

/// What a path of the API responds, by the path.
type Answers = BTreeMap<String, Response>;

/// A response: JSON, to which a later version may add fields, or bytes.
#[derive(Clone, Debug, PartialEq)]
enum Response {
    Json(Value),
    Bytes(Vec<u8>),
}

/// The result.
#[derive(Clone, Debug, Default)]
pub struct ReleaseUpgrade {
    /// Runs that ended on the old version, suite runs included.
    pub finished: usize,
    /// What was read of them, by path.
    pub read: usize,
    /// Responses that the new version gives otherwise, beside new fields.
    pub different: Vec<String>,
    /// Runs that were active when the old server was killed.
    pub active: usize,
    /// Those of them that did not end on the new version, or were fired twice.
    pub lost: Vec<String>,
    /// Runs that the new version judged otherwise than the old one: of the same tests, or again.
    pub judged_otherwise: Vec<String>,
    /// Runs that the old version read after the new one had run; none where it refused to start.
    pub rolled_back: Option<usize>,
    /// What it read otherwise, or not at all.
    pub unread: Vec<String>,
}

/// `cargo xtask prove release-upgrade`.
pub async fn measure(rest: &[String]) -> Result<Vec<Row>> {
    let [flag, old] = rest else { bail!("`prove release-upgrade` needs `--old PROGRAM`") };
    ensure!(flag == "--old", "`{flag}` is not `--old`");
    let result = play(&PathBuf::from(old), &Server::binary_beside_this()?).await?;
    let rows = result.rows();
    ensure!(
        result.is_right(),
        "{}\n{result:#?}",
        crate::table::render("prove release-upgrade", &rows)
    );
    Ok(rows)
}

/// Upgrades from one program to the other on one database, and goes back.
pub async fn play(old: &Path, new: &Path) -> Result<ReleaseUpgrade> {
    let database = Database::create("release").await?;
    // Everything that is sealed has to be opened by the other version.
    let configuration = format!(
        "{}\nsecrets: {{keys: ['a:{}']}}\nworkers: {{lease: 3s}}\n",
        database.section()?,
        "0f".repeat(32)
    );
    let mut result = ReleaseUpgrade::default();
    let server = Server::start_with(old, &configuration, "127.0.0.1:0").await?;
    // The sender finds each server at the same port.
    let otlp = format!("127.0.0.1:{}", server.otlp_grpc);
    let target = Target::start(Some(server.otlp_grpc)).await?;
    let api = Api::new(&server.api)?;
    api.apply(&documents(&target.url)).await?;
    let runs = finished(&api).await?;
    result.finished = runs.len();
    let before = answers(&api, &runs).await?;
    result.read = before.len();
    let active = active(&api, &target).await?;
    result.active = active.len();
    let folder = server.kill_keeping_data().await?;

    let server = Server::start_in(folder, new, &configuration, &otlp).await?;
    let api = Api::new(&server.api)?;
    result.lost = lost(&api, &active, &target).await?;
    result.different = differences(&before, &answers(&api, &runs).await?);
    alone(&database).await?;
    let later = finished(&api).await?;
    result.judged_otherwise = judged_again(&api, &runs).await?;
    let all: Vec<_> = runs.into_iter().chain(active).chain(later).collect();
    let now = answers(&api, &all).await?;
    let folder = server.kill_keeping_data().await?;
    go_back(&mut result, (old, folder), (&configuration, &otlp), (&all, &now)).await?;
    database.remove().await?;
    Ok(result)
}

/// Waits until the killed server does not count any more: until then the absence of a span proves nothing.
async fn alone(database: &Database) -> Result<()> {
    let began = Instant::now();
    let counted = "select count(*) from servers where counts_until > clock_timestamp()";
    while database.count(counted).await? > 1 {
        ensure!(began.elapsed() < ENDED_MAX, "the killed server still counts");
        sleep(Duration::from_millis(100)).await;
    }
    Ok(())
}

/// Starts the old version again, which reads everything, or refuses with the reason.
async fn go_back(
    result: &mut ReleaseUpgrade,
    (old, folder): (&Path, TempDir),
    (configuration, otlp): (&str, &str),
    (runs, now): (&[FinishedRun], &Answers),
) -> Result<()> {
    let server = match Server::start_in(folder, old, configuration, otlp).await {
        Ok(server) => server,
        Err(error) if format!("{error:#}").contains(TOO_OLD) => return Ok(()),
        Err(error) => return Err(error.context("the old version does not start again")),
    };
    let back = answers(&Api::new(&server.api)?, runs).await?;
    // The old version does not know the fields that are new.
    result.unread = differences(&back, now);
    result.rolled_back = Some(runs.len());
    server.kill().await
}

/// A run: of a test, or of the suite.
#[derive(Clone, Debug)]
struct FinishedRun {
    path: String,
    verdict: &'static str,
}

/// Runs everything, and returns the runs once they have ended as they should.
async fn finished(api: &Api) -> Result<Vec<FinishedRun>> {
    let mut runs = Vec::new();
    for (test, verdict) in TESTS {
        for _ in 0..RUNS {
            let id = api.start(test, &json!({"variables": {"wait": "0"}})).await?;
            runs.push(FinishedRun { path: format!("/api/v1/runs/{id}"), verdict });
        }
    }
    let suite = api.request(Method::POST, "/api/v1/test-suites/all/runs");
    let (status, suite) =
        answer(suite.body(json!({"variables": {"wait": "0"}}).to_string())).await?;
    ensure!(status == 202, "{suite:#}");
    let id = suite["id"].as_str().context("an id")?;
    runs.push(FinishedRun { path: format!("/api/v1/suite-runs/{id}"), verdict: "failed" });
    for run in &runs {
        let ended = ended(api, &run.path).await?;
        ensure!(ended["verdict"] == run.verdict, "not {}: {ended:#}", run.verdict);
    }
    Ok(runs)
}

/// Starts runs that do not end soon, and returns them once their triggers were fired.
async fn active(api: &Api, target: &Target) -> Result<Vec<FinishedRun>> {
    let fired = target.requests();
    let mut runs = Vec::new();
    for _ in 0..ACTIVE_RUNS {
        let id = api.start("good", &json!({"variables": {"wait": ACTIVE_MS.to_string()}})).await?;
        // The response is lost with the server.
        runs.push(FinishedRun { path: format!("/api/v1/runs/{id}"), verdict: "inconclusive" });
    }
    let began = Instant::now();
    while target.requests() < fired + ACTIVE_RUNS as u64 {
        ensure!(began.elapsed() < ENDED_MAX, "the triggers are not fired");
        sleep(Duration::from_millis(10)).await;
    }
    Ok(runs)
}

/// Returns the active runs that did not end with the right verdict, and whether one was fired again.
async fn lost(api: &Api, active: &[FinishedRun], target: &Target) -> Result<Vec<String>> {
    let fired = target.requests();
    let mut lost = Vec::new();
    for run in active {
        let ended = ended(api, &run.path).await?;
        if ended["verdict"] != run.verdict {
            lost.push(format!("{}: {} and not {}", run.path, ended["verdict"], run.verdict));
        }
    }
    let again = target.requests() - fired;
    lost.extend((again > 0).then(|| format!("{again} triggers were fired again")));
    Ok(lost)
}

/// Returns a run once it has ended.
async fn ended(api: &Api, path: &str) -> Result<Value> {
    let began = Instant::now();
    loop {
        let (status, run) = answer(api.request(Method::GET, path)).await?;
        ensure!(status == 200, "{path}: {status} {run:#}");
        if run["state"] == "ended" {
            return Ok(run);
        }
        ensure!(began.elapsed() < ENDED_MAX, "it does not end: {run:#}");
        sleep(Duration::from_millis(50)).await;
    }
}

/// Judges each run again that has a trace; returns those with another verdict.
async fn judged_again(api: &Api, runs: &[FinishedRun]) -> Result<Vec<String>> {
    let mut otherwise = Vec::new();
    for run in runs.iter().filter(|run| run.path.contains("/runs/")) {
        if run.verdict == "inconclusive" {
            continue;
        }
        let path = format!("{}/judgements", run.path);
        let (status, judged) = answer(api.request(Method::POST, &path)).await?;
        if status != 200 || judged["outcome"]["verdict"] != run.verdict {
            otherwise.push(format!("{path}: {status} {judged}"));
        }
    }
    Ok(otherwise)
}

/// Reads what the API has of these runs and of the documents.
async fn answers(api: &Api, runs: &[FinishedRun]) -> Result<Answers> {
    let mut paths: Vec<_> = TESTS.iter().map(|(id, _)| format!("/api/v1/tests/{id}")).collect();
    paths.extend(["/api/v1/test-suites/all", "/api/v1/variable-sets/shop"].map(str::to_owned));
    for run in runs {
        let is_suite = run.path.contains("/suite-runs/");
        let parts = OF_RUN.iter().filter(|part| !is_suite || part.is_empty());
        paths.extend(parts.map(|part| format!("{}{part}", run.path)));
    }
    let mut answers = Answers::new();
    for path in paths {
        let response = api.request(Method::GET, &path).send().await?;
        let status = response.status();
        let body = response.bytes().await?;
        // A run whose response was lost has no trace.
        let is_absent = status == 404 && path.ends_with("/trace");
        ensure!(status.is_success() || is_absent, "{path}: {status} {body:?}");
        let response = match serde_json::from_slice(&body) {
            _ if is_absent => Response::Bytes(Vec::new()),
            Ok(json) => Response::Json(json),
            Err(_) => Response::Bytes(body.to_vec()),
        };
        answers.insert(path, response);
    }
    Ok(answers)
}

/// Returns where the responses of the later version lack something that the earlier one has, or have it otherwise.
fn differences(earlier: &Answers, later: &Answers) -> Vec<String> {
    let mut found = Vec::new();
    for (path, expected) in earlier {
        match (expected, later.get(path)) {
            (Response::Json(expected), Some(Response::Json(response))) => {
                lacks(expected, response, path, &mut found);
            }
            (expected, Some(response)) if expected == response => {}
            (_, Some(_)) => found.push(format!("{path}: other bytes")),
            (_, None) => found.push(format!("{path}: not there")),
        }
    }
    found
}

/// Adds where a value lacks something of another one. It may have more fields.
fn lacks(expected: &Value, value: &Value, at: &str, found: &mut Vec<String>) {
    match (expected, value) {
        (Value::Object(expected), Value::Object(value)) => {
            for (key, expected) in expected {
                let at = format!("{at} {key}");
                match value.get(key) {
                    Some(value) => lacks(expected, value, &at, found),
                    None => found.push(format!("{at}: missing")),
                }
            }
        }
        (Value::Array(expected), Value::Array(value)) if expected.len() == value.len() => {
            for (at_item, (expected, value)) in expected.iter().zip(value).enumerate() {
                lacks(expected, value, &format!("{at}[{at_item}]"), found);
            }
        }
        (expected, value) if expected == value => {}
        (expected, value) => found.push(format!("{at}: {value} and not {expected}")),
    }
}

fn documents(url: &str) -> String {
    let test = |id: &str, status: u16| {
        format!(
            "type: Test
spec:
  id: {id}
  name: {id}
  trigger: {{type: http, httpRequest: {{method: GET, url: '{url}/cart?wait=${{var:wait}}'}}}}
  settle: {{timeout: 50s, flush: 100ms}}
  specs:
    - selector: span[name=\"GET /cart\"]
      assertions: ['attr:http.response.status_code = {status}']
---
"
        )
    };
    let (good, wrong) = (test("good", 200), test("wrong", 500));
    format!(
        "{good}{wrong}type: Test
spec:
  id: open
  name: open
  trigger: {{type: http, httpRequest: {{method: GET, url: '${{var:nowhere}}'}}}}
  specs: [{{selector: 'span[]', assertions: ['attr:name = \"x\"']}}]
---
type: VariableSet
spec:
  id: shop
  name: shop
  values: [{{key: secret, value: hunter2, type: secret}}]
---
type: TestSuite
spec: {{id: all, name: All, steps: [good, wrong]}}
"
    )
}

impl ReleaseUpgrade {
    /// Whether nothing was lost or changed.
    pub fn is_right(&self) -> bool {
        let lists = [&self.different, &self.lost, &self.judged_otherwise, &self.unread];
        lists.iter().all(|list| list.is_empty()) && self.finished > 0 && self.active > 0
    }

    /// One row for each figure.
    pub fn rows(&self) -> Vec<Row> {
        let row = |name: &str, count: usize, unit, goal| Row {
            name: name.to_owned(),
            value: count as f64,
            unit,
            goal,
        };
        let none = Some(Goal::AtMost(0.0));
        let back = self.rolled_back;
        vec![
            row("finished on the old version", self.finished, "runs", None),
            row("responses of the API about them and the documents", self.read, "", None),
            row("otherwise on this version", self.different.len(), "values", none),
            row("active when the old server was killed", self.active, "runs", None),
            row("of them lost or fired twice", self.lost.len(), "runs", none),
            row("judged otherwise by this version", self.judged_otherwise.len(), "runs", none),
            row(
                "old version starts again: 1, or refuses with the reason: 0",
                usize::from(back.is_some()),
                "",
                None,
            ),
            row("runs that it then reads", back.unwrap_or_default(), "runs", None),
            row("otherwise, or not at all", self.unread.len(), "values", none),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_version_may_add_fields_and_change_none() {
        let earlier = json!({"a": 1, "b": [{"c": "x"}], "d": null});
        let cases = [
            (earlier.clone(), vec![]),
            (json!({"a": 1, "b": [{"c": "x", "new": 2}], "d": null, "new": 3}), vec![]),
            (json!({"a": 2, "b": [{"c": "x"}], "d": null}), vec!["run a: 2 and not 1"]),
            (json!({"a": 1, "b": [{}], "d": null}), vec!["run b[0] c: missing"]),
            (json!({"a": 1, "b": [], "d": null}), vec![r#"run b: [] and not [{"c":"x"}]"#]),
            (json!({"a": 1, "b": [{"c": "x"}]}), vec!["run d: missing"]),
        ];
        for (later, expected) in cases {
            let of =
                |value: &Value| Answers::from([("run".to_owned(), Response::Json(value.clone()))]);
            assert_eq!(differences(&of(&earlier), &of(&later)), expected, "{later}");
        }
        let bytes = |of: &[u8]| Answers::from([("trace".to_owned(), Response::Bytes(of.to_vec()))]);
        assert_eq!(differences(&bytes(b"a"), &bytes(b"a")), Vec::<String>::new());
        assert_eq!(differences(&bytes(b"a"), &bytes(b"b")), ["trace: other bytes"]);
        assert_eq!(differences(&bytes(b"a"), &Answers::new()), ["trace: not there"]);
    }
}
