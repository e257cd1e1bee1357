//! Tries out the way to a store, step by step, up to the first that fails.

use std::time::Duration;

use model::{StoreConfig, Timestamp, TraceId};
use tokio::time::Instant;

use super::{QueryResult, StoreDialer};
use crate::arrivals::Lag;

/// One step of the way to a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeStep {
    /// What was tried.
    pub name: &'static str,
    /// What was found; or why it failed, and what to do.
    pub result: Result<String, String>,
}

impl StoreDialer {
    /// Tries out a store: its configuration, a connection, a query for a trace that does not exist, its lag and what it keeps.
    /// `unknown` is the id of such a trace.
    pub async fn probe(
        &self,
        config: &StoreConfig,
        unknown: TraceId,
        now: Timestamp,
    ) -> Vec<ProbeStep> {
        let mut steps = Vec::new();
        let mut step = |name, result: Result<String, String>| {
            let is_ok = result.is_ok();
            steps.push(ProbeStep { name, result });
            is_ok
        };
        let opened =
            self.connection(config).and_then(|connection| Ok((connection, self.open(config)?)));
        let address = format!("`{}`, as a store of type `{}`", config.url, config.kind);
        let result = opened.as_ref().map(|_| address).map_err(ToString::to_string);
        let (true, Ok((connection, client))) = (step("configuration", result), &opened) else {
            return steps;
        };
        let began = Instant::now();
        let connected = connection.connect().await;
        let connected = connected.map(|()| format!("open after {}", shown(began.elapsed())));
        if !step("connection", connected) {
            return steps;
        }
        let began = Instant::now();
        let answer = match client.store.query(unknown, Some(now)).await {
            QueryResult::Nothing => {
                Ok(format!("answered in {}: an unknown trace has no spans", shown(began.elapsed())))
            }
            QueryResult::Spans { .. } => Err(format!(
                "it shows spans of the trace {unknown}, which does not exist: what answers there is no trace store"
            )),
            QueryResult::Refused { message } | QueryResult::Failed { message, .. } => Err(message),
        };
        if !step("query", answer) {
            return steps;
        }
        step("lag", Ok(lag(client.lag())));
        let lacks = client.store.profile().lacks;
        let lacks: Vec<_> = lacks.iter().map(|detail| detail.words()).collect();
        let kept = match lacks.as_slice() {
            [] => "it keeps whole spans".to_owned(),
            lacks => format!(
                "it keeps no {}: `check --store` shows the statements that need it",
                lacks.join(", no ")
            ),
        };
        step("spans", Ok(kept));
        steps
    }
}

fn lag(lag: Lag) -> String {
    match lag {
        Lag::Declared(lag) => format!("{lag:?}, as its document declares"),
        Lag::Usual(lag) => {
            format!("{lag:?}, unless earlier runs have seen another; `lag` declares it")
        }
    }
}

fn shown(time: Duration) -> String {
    format!("{} ms", time.as_millis().max(1))
}
