//! `deploy/compose/compose.observability.yaml` without containers: the built binary with authentication on, a real Collector and a
//! real Prometheus, each with its token. The files are used as they are, except for addresses. Deliberately absent: the containers,
//! which `cargo xtask release verify compose` starts, and Grafana, which only shows the responses of Prometheus; the files that
//! provision it are checked here.

#[path = "observability/stand.rs"]
mod stand;

use std::{
    cell::RefCell,
    collections::BTreeSet,
    fs::{self, File},
    io::Write,
    process::Command,
};

use anyhow::{Context, Result, ensure};
use bench::parts::{free_port, setting};
use serde_json::Value;
use stand::{QUERY, RUN, Stand, compose, files};
use url::Url;

const BINARY: &str = env!("CARGO_BIN_EXE_qualitytrace");

/// Queries without a result on a healthy server, and the reason.
const EMPTY: [(&str, &str); 1] = [(
    r#"sum(rate(db_client_operation_duration_seconds_count{error_type!=""}[5m]))"#,
    "no statement has failed",
)];

/// Grafana's variable for the time range of a dashboard, and its value.
const RANGE: (&str, &str) = ("$__range", "1h");

/// A Collector that accepts hardly anything: data sent there is lost for good.
const SMALL_COLLECTOR: &str = "
receivers: {otlp: {protocols: {http: {endpoint: '127.0.0.1:PORT', max_request_body_size: 64}}}}
exporters: {nop: {}}
service:
  telemetry: {metrics: {level: none}}
  pipelines: {traces: {receivers: [otlp], exporters: [nop]}}
";

/// The exporter that sends there.
const SMALL_TRACER: &str = "
tracer: {small: {type: open-telemetry, transport: http, endpoint: 'http://127.0.0.1:PORT'}}
";

#[tokio::test(flavor = "multi_thread")]
async fn prometheus_answers_every_query_and_fires_an_alert() -> Result<()> {
    let stand = Stand::start().await?;
    each_token_is_needed(&stand).await?;
    stand.passes(RUN).await?;
    every_query_is_answered(&stand).await?;
    let queried = stand.passes(QUERY).await?;
    assert!(queried.contains("SUCCESS") && queried.contains("\"passed\""), "{queried}");
    every_rule_is_evaluated(&stand).await?;
    the_collector_has_all_of_it(&stand).await?;
    lost_telemetry_fires_an_alert(&stand).await?;
    stand.end().await
}

/// Checks that Prometheus and the Collector have no access without their tokens.
async fn each_token_is_needed(stand: &Stand) -> Result<()> {
    let client = reqwest::Client::new();
    let (metrics, spans) = (stand.url("11633") + "/metrics", stand.url("14318") + "/v1/traces");
    let cases = [
        (client.get(&metrics), None, 401),
        (client.get(&metrics), Some("collector"), 403),
        (client.get(&metrics), Some("prometheus"), 200),
        (client.post(&spans), None, 401),
        (client.post(&spans), Some("prometheus"), 403),
        (client.post(&spans), Some("collector"), 200),
    ];
    for (request, bearer, expected) in cases {
        let request = request.header("content-type", "application/x-protobuf");
        let request = match bearer {
            Some(name) => request.bearer_auth(stand.token(name)?),
            None => request,
        };
        let answer = request.send().await?;
        assert_eq!(answer.status(), expected, "{bearer:?}: {}", answer.url());
    }
    Ok(())
}

/// Checks that every query of every dashboard returns a number, except for those that are listed.
async fn every_query_is_answered(stand: &Stand) -> Result<()> {
    let queries = queries()?;
    assert!(queries.len() > 20, "{queries:?}");
    let listed: BTreeSet<_> = EMPTY.iter().map(|(query, _)| *query).collect();
    let unanswered = RefCell::new(Vec::new());
    let answered = stand.until("an answer to every query", async || {
        // Rates need a run before and after a scrape.
        stand.passes(RUN).await?;
        let mut without = Vec::new();
        for query in queries.iter().filter(|query| !listed.contains(query.as_str())) {
            if !is_answered(stand, query).await? {
                without.push(query.clone());
            }
        }
        let is_all = without.is_empty();
        unanswered.replace(without);
        Ok(is_all.then_some(()))
    });
    answered.await.with_context(|| format!("without an answer: {unanswered:?}"))?;
    for (query, why) in EMPTY {
        assert!(queries.contains(query), "`{query}` is in no dashboard");
        assert!(!is_answered(stand, query).await?, "`{query}` has an answer, although {why}");
    }
    Ok(())
}

/// Returns the queries of the dashboards.
fn queries() -> Result<BTreeSet<String>> {
    let mut queries = BTreeSet::new();
    for path in golden::files(&files().join("dashboards"), &["json"]) {
        let board: Value = serde_json::from_slice(&fs::read(&path)?)?;
        for panel in board["panels"].as_array().context("panels")? {
            let targets = panel["targets"].as_array().into_iter().flatten();
            for target in targets {
                let query = target["expr"].as_str().with_context(|| panel.to_string())?;
                queries.insert(query.replace(RANGE.0, RANGE.1));
            }
        }
    }
    Ok(queries)
}

/// Whether Prometheus returns at least one number for this query. A query that cannot be evaluated is an error.
async fn is_answered(stand: &Stand, query: &str) -> Result<bool> {
    let answer = prometheus(stand, "query", &[("query", query)]).await?;
    let found = answer["result"].as_array().context("a result")?;
    let is_number = |sample: &Value| {
        let value = sample["value"][1].as_str().and_then(|value| value.parse::<f64>().ok());
        value.is_some_and(f64::is_finite)
    };
    Ok(found.iter().any(is_number))
}

/// Queries Prometheus.
async fn prometheus(stand: &Stand, what: &str, parameters: &[(&str, &str)]) -> Result<Value> {
    let url = format!("{}/api/v1/{what}", stand.url("9090"));
    let url = Url::parse_with_params(&url, parameters)?;
    let mut answer: Value = reqwest::get(url.clone()).await?.json().await?;
    ensure!(answer["status"] == "success", "{url}: {answer}");
    Ok(answer["data"].take())
}

/// Checks that Prometheus has evaluated every rule of the file without an error, and that none of them fires.
async fn every_rule_is_evaluated(stand: &Stand) -> Result<()> {
    let rules = stand
        .until("every rule evaluated", async || {
            let groups = prometheus(stand, "rules", &[]).await?;
            let groups = groups["groups"].as_array().context("groups")?.clone();
            let rules = groups.iter().filter_map(|group| group["rules"].as_array()).flatten();
            let rules: Vec<_> = rules.cloned().collect();
            Ok(rules.iter().all(|rule| rule["health"] != "unknown").then_some(rules))
        })
        .await?;
    for rule in &rules {
        assert_eq!(rule["health"], "ok", "{rule}");
    }
    let names: Vec<_> = rules.iter().filter_map(|rule| rule["name"].as_str()).collect();
    assert_eq!(names, alerts()?);
    assert_eq!(firing(stand).await?, [] as [(String, String); 0]);
    Ok(())
}

/// Returns the alerts, in the order of the file.
fn alerts() -> Result<Vec<String>> {
    let text = fs::read_to_string(files().join("alerts.yaml"))?;
    let names = text.lines().filter_map(|line| line.trim().strip_prefix("- alert: "));
    let names: Vec<_> = names.map(str::to_owned).collect();
    ensure!(!names.is_empty(), "{text}");
    Ok(names)
}

/// Returns the alerts that fire, each with the exporter that it names.
async fn firing(stand: &Stand) -> Result<Vec<(String, String)>> {
    let alerts = prometheus(stand, "alerts", &[]).await?;
    let alerts = alerts["alerts"].as_array().context("alerts")?;
    let firing = alerts.iter().filter(|alert| alert["state"] == "firing").map(|alert| {
        let label = |name: &str| alert["labels"][name].as_str().unwrap_or_default().to_owned();
        (label("alertname"), label("otel_component_name"))
    });
    Ok(firing.collect())
}

/// Checks that the Collector has the server's metrics for Prometheus, and has stored spans of the server and of the shop.
async fn the_collector_has_all_of_it(stand: &Stand) -> Result<()> {
    let client = reqwest::Client::new();
    let (server, collector) = (stand.url("11633") + "/metrics", stand.url("8889") + "/metrics");
    stand
        .until("the same metrics at the server and the Collector", async || {
            let at_server = client.get(&server).bearer_auth(stand.token("prometheus")?);
            let at_server = families(&at_server.send().await?.text().await?);
            let at_collector = families(&client.get(&collector).send().await?.text().await?);
            let is_all = at_server.contains("qualitytrace_runs_total");
            Ok((is_all && at_server == at_collector).then_some(()))
        })
        .await?;
    stand
        .until("spans in the store", async || {
            let stored = fs::read_to_string(stand.path().join("traces.jsonl"))?;
            let has = |name: &str| stored.contains(&format!("\"name\":\"{name}\""));
            Ok((has("qualitytrace.run") && has("POST /orders")).then_some(()))
        })
        .await
}

/// Returns the metric families of a page.
fn families(page: &str) -> BTreeSet<String> {
    let lines = page.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    lines.filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
}

/// Checks that a further exporter, to a Collector that rejects every span, fires an alert that names only this exporter.
async fn lost_telemetry_fires_an_alert(stand: &Stand) -> Result<()> {
    let port = free_port()?.to_string();
    fs::write(stand.path().join("small.yaml"), SMALL_COLLECTOR.replace("PORT", &port))?;
    let _small = stand.spawn("otelcol --config small.yaml")?;
    let config = stand.path().join("quality-trace-config.yaml");
    // The server reloads the change while it runs.
    let mut config = File::options().append(true).open(config)?;
    config.write_all(SMALL_TRACER.replace("PORT", &port).as_bytes())?;
    let firing = stand
        .until("an alert", async || {
            stand.passes(RUN).await?;
            Ok(Some(firing(stand).await?).filter(|firing| !firing.is_empty()))
        })
        .await?;
    let expected = ("QualitytraceExporterLoses".to_owned(), "tracer.small".to_owned());
    assert_eq!(firing, [expected]);
    Ok(())
}

/// Checks alerts that take minutes to fire against recorded series.
#[test]
fn every_alert_fires_when_it_must_and_not_before() -> Result<()> {
    let cases = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/observability/alerts.yaml");
    let text = fs::read_to_string(cases)?;
    for alert in alerts()? {
        assert!(text.contains(&format!("        alertname: {alert}\n")), "{alert} never fires");
        assert!(
            text.contains(&format!("alertname: {alert}, exp_alerts: []")),
            "{alert} always fires"
        );
    }
    let ended = Command::new(setting("QUALITYTRACE_TEST_PROMTOOL")?)
        .args(["test", "rules", cases])
        .output()?;
    let said = [ended.stdout, ended.stderr].concat();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&said));
    Ok(())
}

/// Checks that Grafana finds the dashboards where Compose mounts them, and that each panel has the data source that is provisioned.
/// Grafana itself is not started.
#[test]
fn grafana_is_provisioned_with_every_dashboard_and_its_data_source() -> Result<()> {
    let compose = fs::read_to_string(compose().join("compose.observability.yaml"))?;
    let grafana = compose.split_once("\n  grafana:\n").context("a service for Grafana")?.1;
    let mounts = mounts(grafana.split_once("\nvolumes:").context("volumes")?.0);
    for (file, target) in [
        ("./observability/grafana/datasources.yaml", "/etc/grafana/provisioning/datasources/"),
        ("./observability/grafana/dashboards.yaml", "/etc/grafana/provisioning/dashboards/"),
    ] {
        let mount = mounts.iter().find(|(from, _)| from == file).context(file)?;
        assert!(mount.1.starts_with(target) && mount.1.ends_with(".yaml"), "{mount:?}");
    }
    let (_, folder) = mounts
        .iter()
        .find(|(from, _)| from == "./observability/dashboards")
        .context("a mount of the dashboards")?;
    let provider = fs::read_to_string(files().join("grafana/dashboards.yaml"))?;
    assert!(provider.contains(&format!("options: {{path: {folder}}}")), "{provider}");
    let source = fs::read_to_string(files().join("grafana/datasources.yaml"))?;
    for line in ["type: prometheus", "url: http://prometheus:9090", "isDefault: true"] {
        assert!(source.contains(line), "{line}: {source}");
    }
    assert!(compose.contains("\n  prometheus:\n"), "the data source names this service");
    let mut uids = BTreeSet::new();
    for path in golden::files(&files().join("dashboards"), &["json"]) {
        let board: Value = serde_json::from_slice(&fs::read(&path)?)?;
        let uid = board["uid"].as_str().context("a uid")?.to_owned();
        assert!(uids.insert(uid), "{path:?}: two dashboards with one uid replace each other");
        let variable = &board["templating"]["list"][0];
        assert_eq!(variable["name"], "datasource", "{path:?}");
        assert_eq!(
            (&variable["type"], &variable["query"]),
            (&"datasource".into(), &"prometheus".into())
        );
        for panel in board["panels"].as_array().context("panels")? {
            assert_eq!(panel["datasource"]["type"], "prometheus", "{path:?}: {panel}");
            assert_eq!(panel["datasource"]["uid"], "${datasource}", "{path:?}: {panel}");
        }
    }
    assert_eq!(uids.len(), 3, "{uids:?}");
    Ok(())
}

/// Returns the files and folders that a service mounts, and where.
fn mounts(service: &str) -> Vec<(String, String)> {
    let lines = service.lines().filter_map(|line| line.trim().strip_prefix("- \"./"));
    let mounts = lines.filter_map(|line| line.trim_end_matches('"').split_once(':'));
    mounts.map(|(from, to)| (format!("./{from}"), to.trim_end_matches(":ro").to_owned())).collect()
}

/// Checks that every file that a Compose file mounts is there: Docker makes an empty folder of one that is not.
#[test]
fn every_file_that_compose_mounts_is_there() -> Result<()> {
    let mut count = 0;
    for path in golden::files(&compose(), &["yaml"]) {
        for (from, _) in mounts(&fs::read_to_string(&path)?) {
            assert!(compose().join(&from).exists(), "{path:?} mounts `{from}`");
            count += 1;
        }
    }
    assert!(count >= 10, "{count}");
    Ok(())
}
