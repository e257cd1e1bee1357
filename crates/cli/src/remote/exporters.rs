//! The status of the exporters of a running server.

use http::Method;
use serde::Deserialize;
use serde_json::Value;
use server::config::Environment;

use super::client::connect;
use crate::{
    args::{self, OutputFormat},
    exit::Exit,
    listing,
    terminal::Terminal,
};

#[derive(Debug, Deserialize)]
pub(super) struct StatusResponse {
    pub(super) exporters: Vec<Exporter>,
}

/// How an exporter of a server is doing.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Exporter {
    pub(crate) name: String,
    destination: String,
    pub(crate) state: String,
    failing_seconds: Option<f64>,
    pub(crate) reason: Option<String>,
    delivered: u64,
    queued: u64,
    rejected: u64,
    pub(crate) dropped: u64,
    /// How full its buffer is, from 0 to 1.
    pub(crate) buffer: f64,
    holding: u64,
}

/// How the reason of an exporter begins that cannot write its buffer.
const UNWRITABLE: &str = "the buffer cannot be used";

impl Exporter {
    /// Whether it cannot write its buffer.
    pub(crate) fn is_unwritable(&self) -> bool {
        self.reason.as_ref().is_some_and(|reason| reason.starts_with(UNWRITABLE))
    }
}

/// Prints two lines for each exporter: its status, and its counts of accepted items.
pub(crate) async fn exporters(
    args: &args::Exporters,
    environment: &Environment,
    terminal: &Terminal,
) -> Result<Exit, Exit> {
    let server = connect(&args.connection, environment, terminal)?;
    let answer = server.send::<Value>(server.request(Method::GET, "/api/v1/telemetry")).await;
    let answer = answer.map_err(|error| terminal.refuse(&error))?;
    let status = StatusResponse::deserialize(&answer);
    let status = status.map_err(|error| terminal.refuse(&server.foreign(&error)))?;
    let exporters = status.exporters;
    match args.output.format {
        OutputFormat::Table if exporters.is_empty() => {
            terminal.result("no exporter is used: nothing leaves this server");
        }
        OutputFormat::Table => {
            exporters.iter().for_each(|exporter| terminal.result(&lines(exporter)));
        }
        OutputFormat::Name => {
            exporters.iter().for_each(|exporter| terminal.result(&exporter.name));
        }
        format => listing::value(&answer["exporters"], format, terminal),
    }
    let is_bad = |exporter: &Exporter| matches!(exporter.state.as_str(), "failing" | "rejecting");
    Ok(if exporters.iter().any(is_bad) { Exit::Failed } else { Exit::Passed })
}

fn lines(exporter: &Exporter) -> String {
    let Exporter { name, destination, state, delivered, queued, .. } = exporter;
    let long = exporter.failing_seconds.map(|seconds| format!(" for {seconds:.0} s"));
    let reason = exporter.reason.as_ref().map(|reason| format!(": {reason}"));
    let buffer = (exporter.buffer * 100.0).floor();
    let mut line = format!(
        "{name} to {destination}: {state}{}{}\n  {delivered} delivered, {queued} queued, buffer {buffer} % full",
        long.unwrap_or_default(),
        reason.unwrap_or_default(),
    );
    for (count, what) in [
        (exporter.rejected, "refused for good"),
        (exporter.dropped, "dropped"),
        (exporter.holding, "threads held"),
    ] {
        if count > 0 {
            line += &format!(", {count} {what}");
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::{StatusResponse, lines};

    #[test]
    fn an_exporter_is_two_lines() {
        let answer = r#"{"exporters": [
            {"name": "tracer.otel", "destination": "http://c:4317/", "state": "failing", "failingSeconds": 12.4,
             "reason": "`http://c:4317/` has no address", "accepted": 17, "delivered": 3, "queued": 14, "rejected": 0,
             "dropped": 0, "buffer": 0.031, "holding": 0},
            {"name": "m", "destination": "http://d:4317/", "state": "delivering", "failingSeconds": null,
             "reason": null, "accepted": 9, "delivered": 4, "queued": 1, "rejected": 2, "dropped": 2, "buffer": 1.0,
             "holding": 3}]}"#;
        let answer: StatusResponse = serde_json::from_str(answer).expect("an answer");
        let said: Vec<_> = answer.exporters.iter().map(lines).collect();
        assert_eq!(
            said,
            [
                "tracer.otel to http://c:4317/: failing for 12 s: `http://c:4317/` has no address\n  \
                 3 delivered, 14 queued, buffer 3 % full",
                "m to http://d:4317/: delivering\n  4 delivered, 1 queued, buffer 100 % full, \
                 2 refused for good, 2 dropped, 3 threads held",
            ]
        );
    }
}
