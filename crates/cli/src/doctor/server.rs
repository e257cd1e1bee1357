//! Checks between this machine and a server.

use std::time::Duration;

use model::{ErrorCode, Faulty, Timestamp};
use net::{CertificateRefusal, ServerCertificate};

use super::{DoctorCheck, Finding, Surroundings};
use crate::{
    args::Connection,
    contexts,
    remote::{self, Exporter, ReadyLook, ServerLook, StoreLook},
};

/// A clock that differs by less is right enough: spans are compared with each other.
const SKEW_MAX_S: u64 = 5;
/// A certificate that is valid for fewer days is reported.
const DAYS_MIN: u64 = 14;
/// A fuller buffer of an exporter keeps a server from accepting runs.
const BUFFER_MAX: f64 = 0.8;

/// Runs all checks; those that need the server end with the first that fails.
pub(super) async fn look(given: &Connection, surroundings: &Surroundings<'_>) -> Vec<Finding> {
    let access = match contexts::resolve(given, &surroundings.environment) {
        Ok(access) => access,
        Err(error) => return vec![failed(DoctorCheck::Context, &error)],
    };
    let mut findings = vec![match access.token.is_some() {
        true => Finding::ok(DoctorCheck::Token, "given"),
        false => Finding::ok(DoctorCheck::Token, "none"),
    }];
    if access.token.is_some() && access.is_plain && remote::is_readable(&access.url) {
        let advice = "Use `https://` wherever the network between is not yours.";
        findings.push(Finding::warning(
            DoctorCheck::Tls,
            "the token can be read on its way",
            advice,
        ));
    }
    let now = surroundings.world.now();
    match remote::certificate(&access, now).await {
        Ok(found) => findings.extend(found.map(|found| certificate(&found, &access.url, now))),
        Err(error) => {
            findings.push(failed(DoctorCheck::Certificate, &error));
            return findings;
        }
    }
    let look = match remote::look(&access).await {
        Ok(look) => look,
        Err(error) => {
            findings.push(failed(DoctorCheck::Connection, &error));
            return findings;
        }
    };
    let ServerLook { unready, date, ready } = look;
    findings.push(Finding::ok(DoctorCheck::Connection, format!("`{}` responds", access.url)));
    findings.extend(date.map(|date| skew(date, now)));
    findings.extend(unready.map(not_ready));
    findings.extend(ready.into_iter().flat_map(of_ready));
    findings
}

/// Names the part that keeps a server from being ready, as far as it states it.
fn not_ready(reason: String) -> Finding {
    let check = match reason.as_str() {
        it if it.contains("postgres") || it.contains("database") => DoctorCheck::Database,
        it if it.contains("journal") => DoctorCheck::Disk,
        _ => DoctorCheck::Readiness,
    };
    Finding::named(check, ErrorCode::NotReady, reason)
}

fn of_ready(ready: ReadyLook) -> Vec<Finding> {
    let ReadyLook { version, access, me, exporters, stores } = ready;
    let mut findings = vec![
        Finding::ok(DoctorCheck::Readiness, "the server is ready"),
        Finding::ok(DoctorCheck::Database, "the server reads and writes it"),
        versions(&version),
    ];
    match me {
        Some(Ok(me)) => {
            let projects = me.projects.map_or("all projects".to_owned(), |it| it.join(", "));
            let found = format!("`{}`, role `{}`, {projects}", me.name, me.role);
            findings.push(Finding::ok(DoctorCheck::Rights, found));
        }
        Some(Err(error)) => findings.push(failed(DoctorCheck::Rights, &error)),
        None => {}
    }
    if access == "off" {
        let found = "off: everyone who reaches the server may do everything";
        findings.push(Finding::ok(DoctorCheck::Access, found));
    }
    match exporters {
        Ok(exporters) => {
            findings.push(disk(&exporters));
            findings.extend(exporters.iter().map(exporter));
        }
        Err(error) if remote::is_out_of_reach(&error) => {}
        Err(error) => findings.push(failed(DoctorCheck::Exporter, &error)),
    }
    match stores {
        Ok(stores) => findings.extend(stores.iter().map(store)),
        Err(error) if remote::is_out_of_reach(&error) => {}
        Err(error) => findings.push(failed(DoctorCheck::Store, &error)),
    }
    findings
}

fn certificate(found: &ServerCertificate, url: &str, now: Timestamp) -> Finding {
    let ServerCertificate { refusal, ends } = found;
    let day = |time: Duration| {
        let time = Timestamp::from_nanos(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        time.to_string().chars().take(10).collect::<String>()
    };
    let until = ends.map(day).unwrap_or_default();
    let wrong = |what: String, advice: &str| {
        let found =
            Finding::error(DoctorCheck::Certificate, format!("that of `{url}` {what}"), advice);
        Finding { code: Some(ErrorCode::ServerUnreachable), ..found }
    };
    match refusal {
        Some(CertificateRefusal::Expired) => {
            wrong(format!("expired on {until}"), "Renew the certificate of the server.")
        }
        Some(CertificateRefusal::NotYetValid) => wrong(
            "is not valid yet".to_owned(),
            "Set the clock of this machine, or wait until the certificate is valid.",
        ),
        Some(CertificateRefusal::UnknownAuthority) => wrong(
            "is of an authority that this machine does not trust".to_owned(),
            "Name the file with the authority by `--ca FILE`, or add it to those of this machine.",
        ),
        Some(CertificateRefusal::OtherName) => wrong(
            "is for another host".to_owned(),
            "Use the name that the certificate has, or let it be issued for this one.",
        ),
        Some(CertificateRefusal::Other(why)) => {
            wrong(format!("is not trusted: {why}"), "Replace the certificate of the server.")
        }
        None => {
            let left = ends.map(|ends| ends.saturating_sub(now.since(Timestamp::default())));
            let days = left.map(|left| left.as_secs() / 86_400);
            match days {
                Some(days) if days < DAYS_MIN => Finding::warning(
                    DoctorCheck::Certificate,
                    format!("that of `{url}` expires in {days} days, on {until}"),
                    "Renew the certificate of the server before that day.",
                ),
                _ => Finding::ok(DoctorCheck::Certificate, format!("trusted, until {until}")),
            }
        }
    }
}

fn failed(check: DoctorCheck, error: &impl Faulty) -> Finding {
    Finding::named(check, error.code(), error.to_string())
}

fn versions(server: &str) -> Finding {
    let own = env!("CARGO_PKG_VERSION");
    match server == own {
        true => Finding::ok(DoctorCheck::Versions, format!("both are {own}")),
        false => Finding::warning(
            DoctorCheck::Versions,
            format!("the server is {server}, and this program {own}"),
            "Use the same version: newer flags have no effect on an older server.",
        ),
    }
}

fn skew(server: Timestamp, own: Timestamp) -> Finding {
    let (apart, direction) = match own > server {
        true => (own.since(server), "ahead of"),
        false => (server.since(own), "behind"),
    };
    let apart = apart.as_secs();
    if apart <= SKEW_MAX_S {
        return Finding::ok(DoctorCheck::Clocks, "this machine and the server agree");
    }
    Finding::warning(
        DoctorCheck::Clocks,
        format!("this machine is {apart} s {direction} the server"),
        "Set both clocks by NTP: times of runs and of spans are compared.",
    )
}

/// Reports buffers that have no room: at that level the server accepts no runs.
fn disk(exporters: &[Exporter]) -> Finding {
    let full = exporters.iter().find(|it| it.buffer >= BUFFER_MAX || it.is_unwritable());
    let Some(exporter) = full else {
        return Finding::ok(DoctorCheck::Disk, "the server can write its buffers");
    };
    let why = exporter.reason.as_ref().map_or(String::new(), |reason| format!(": {reason}"));
    let percent = (exporter.buffer * 100.0).floor();
    Finding::error(
        DoctorCheck::Disk,
        format!("the buffer of the exporter `{}` is {percent} % full{why}", exporter.name),
        "Make room on the disk of the server, and bring the destination of the exporter back.",
    )
}

fn exporter(exporter: &Exporter) -> Finding {
    let Exporter { name, state, reason, dropped, .. } = exporter;
    let why = reason.as_ref().map_or(String::new(), |reason| format!(": {reason}"));
    let lost = if *dropped > 0 { format!("; {dropped} items were dropped") } else { String::new() };
    let found = format!("`{name}` is {state}{why}{lost}");
    match state.as_str() {
        "delivering" | "waiting" | "catching-up" if *dropped == 0 && reason.is_none() => {
            Finding::ok(DoctorCheck::Exporter, found)
        }
        _ => Finding::warning(
            DoctorCheck::Exporter,
            found,
            "See more with `qualitytrace telemetry status`, and bring its collector back.",
        ),
    }
}

fn store(StoreLook { id, result }: &StoreLook) -> Finding {
    match result {
        Ok(None) => Finding::ok(DoctorCheck::Store, format!("`{id}` responds to the server")),
        Ok(Some(reason)) => Finding::named(
            DoctorCheck::Store,
            ErrorCode::StoreInvalid,
            format!("`{id}` does not respond to the server: {reason}"),
        ),
        Err(error) if remote::is_out_of_reach(error) => Finding::ok(
            DoctorCheck::Store,
            format!("`{id}` was not tried out: only the role `admin` can"),
        ),
        Err(error) => failed(DoctorCheck::Store, error),
    }
}
