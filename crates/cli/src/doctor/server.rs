//! Checks between this machine and a server.

use model::{ErrorCode, Faulty, Secret, Timestamp};

use super::{Finding, Surroundings};
use crate::{
    args::Connection,
    contexts,
    remote::{self, ServerLook},
};

/// A clock that differs by less is right enough: spans are compared with each other.
const SKEW_MAX_S: u64 = 5;

/// Runs all checks; those that need the server end with the first that fails.
pub(super) async fn look(given: &Connection, surroundings: &Surroundings<'_>) -> Vec<Finding> {
    let access = match contexts::resolve(given, &surroundings.environment) {
        Ok(access) => access,
        Err(error) => return vec![failed("context", &error)],
    };
    let mut findings = vec![match access.token.as_ref().map(Secret::expose) {
        Some(_) => Finding::ok("token", "given"),
        None => Finding::ok("token", "none"),
    }];
    if access.url.starts_with("http://") && access.is_plain {
        let advice = "Use `https://` wherever the network between is not yours.";
        findings.push(Finding::warning("TLS", "what is sent can be read on its way", advice));
    }
    let look = match remote::look(&access).await {
        Ok(look) => look,
        Err(error) => {
            findings.push(failed("connection", &error));
            return findings;
        }
    };
    let ServerLook { unready, version, access: mode, me, exporters, date } = look;
    findings.push(Finding::ok("connection", format!("`{}` responds", access.url)));
    if let Some(reason) = unready {
        findings.push(Finding::named("readiness", ErrorCode::NotReady, reason));
        return findings;
    }
    findings.push(Finding::ok("readiness", "the server is ready"));
    if let Some(version) = version {
        findings.push(versions(&version));
    }
    match me {
        Some(Ok(me)) => {
            let projects = me.projects.map_or("all projects".to_owned(), |it| it.join(", "));
            let found = format!("`{}`, role `{}`, {projects}", me.name, me.role);
            findings.push(Finding::ok("rights", found));
        }
        Some(Err(error)) => findings.push(failed("rights", &error)),
        None => {}
    }
    if mode.as_deref() == Some("off") {
        findings
            .push(Finding::ok("access", "off: everyone who reaches the server may do everything"));
    }
    findings.extend(date.map(|date| skew(date, surroundings)));
    for (name, state) in exporters {
        findings.push(exporter(&name, &state));
    }
    findings
}

fn failed(check: &'static str, error: &impl Faulty) -> Finding {
    Finding::named(check, error.code(), error.to_string())
}

fn versions(server: &str) -> Finding {
    let own = env!("CARGO_PKG_VERSION");
    match server == own {
        true => Finding::ok("versions", format!("both are {own}")),
        false => Finding::warning(
            "versions",
            format!("the server is {server}, and this program {own}"),
            "Use the same version: newer flags have no effect on an older server.",
        ),
    }
}

fn skew(server: Timestamp, surroundings: &Surroundings<'_>) -> Finding {
    let own = surroundings.world.now();
    let (apart, direction) = match own > server {
        true => (own.since(server), "ahead of"),
        false => (server.since(own), "behind"),
    };
    let apart = apart.as_secs();
    if apart <= SKEW_MAX_S {
        return Finding::ok("clocks", "this machine and the server agree");
    }
    Finding::warning(
        "clocks",
        format!("this machine is {apart} s {direction} the server"),
        "Set both clocks by NTP: times of runs and of spans are compared.",
    )
}

fn exporter(name: &str, state: &str) -> Finding {
    match state {
        "delivering" | "waiting" | "catching-up" => {
            Finding::ok("exporter", format!("`{name}` is {state}"))
        }
        _ => Finding::warning(
            "exporter",
            format!("`{name}` is {state}"),
            "See why with `qualitytrace telemetry status`, and bring its collector back.",
        ),
    }
}
