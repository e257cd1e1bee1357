//! The checks of `doctor`: one table, for what it prints and for the page `docs/reference/doctor.md`.

use model::Cause;
use serde::{Serialize, Serializer};

/// What is looked at. The order is that of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DoctorCheck {
    Version,
    ProjectFile,
    OtlpGrpcPort,
    OtlpHttpPort,
    Clock,
    Proxy,
    Variables,
    Authorities,
    Output,
    Command,
    Receiver,
    Request,
    Environment,
    Protocol,
    Export,
    Sampling,
    Propagation,
    Peers,
    Dropped,
    BatchDelay,
    ServiceClocks,
    Trace,
    Context,
    Token,
    Tls,
    Certificate,
    Connection,
    Readiness,
    Database,
    Disk,
    Versions,
    Rights,
    Access,
    Clocks,
    Exporter,
    Store,
}

/// When a check is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CheckGroup {
    /// Without arguments.
    Machine,
    /// With a URL or a command.
    Request,
    /// With a server.
    Server,
}

/// A line of the table.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(
    not(test),
    expect(dead_code, reason = "the page has all of it, and a test makes the page")
)]
pub(crate) struct CheckRow {
    pub(crate) check: DoctorCheck,
    pub(crate) group: CheckGroup,
    /// The name, which does not change.
    pub(crate) name: &'static str,
    /// What is looked at.
    pub(crate) about: &'static str,
    /// The page with more about it, in the folder of the documentation.
    pub(crate) page: &'static str,
}

const fn row(
    (check, group): (DoctorCheck, CheckGroup),
    name: &'static str,
    about: &'static str,
    page: &'static str,
) -> CheckRow {
    CheckRow { check, group, name, about, page }
}

/// All checks, in the order in which they are made.
pub(crate) const CHECKS: &[CheckRow] = &[
    row(
        (DoctorCheck::Version, CheckGroup::Machine),
        "version",
        "The version of this program, the operating system and the machine.",
        "reference/commands.md#version",
    ),
    row(
        (DoctorCheck::ProjectFile, CheckGroup::Machine),
        "project file",
        "`qualitytrace.toml` here or above: is it valid?",
        "run.md#the-project-file",
    ),
    row(
        (DoctorCheck::OtlpGrpcPort, CheckGroup::Machine),
        "OTLP port 4317",
        "Is the port free for `qualitytrace run`, or which process has it?",
        "reference/errors.md#otlp-port-in-use",
    ),
    row(
        (DoctorCheck::OtlpHttpPort, CheckGroup::Machine),
        "OTLP port 4318",
        "Is the port free for `qualitytrace run`, or which process has it?",
        "reference/errors.md#otlp-port-in-use",
    ),
    row(
        (DoctorCheck::Clock, CheckGroup::Machine),
        "clock",
        "The clock of this machine: certificates and spans have times.",
        "diagnosis.md#only-some-spans-arrived",
    ),
    row(
        (DoctorCheck::Proxy, CheckGroup::Machine),
        "proxy",
        "`HTTP_PROXY` and the like: are they valid; and, with a command of which nothing arrives, do they lead its spans away?",
        "diagnosis.md#no-span-arrived",
    ),
    row(
        (DoctorCheck::Variables, CheckGroup::Machine),
        "OTEL_ variables",
        "Variables of this shell that keep a system that is started in it from exporting.",
        "run.md#environment-of-command",
    ),
    row(
        (DoctorCheck::Authorities, CheckGroup::Machine),
        "trusted authorities",
        "The certificates by which `https://` is trusted: are there any, and can they be read?",
        "triggers.md#http",
    ),
    row(
        (DoctorCheck::Output, CheckGroup::Machine),
        "output",
        "Whether a terminal shows the output, how wide it is, and whether this is CI.",
        "run.md#flags",
    ),
    row(
        (DoctorCheck::Command, CheckGroup::Request),
        "command",
        "Does the command start and become ready, and where does it listen?",
        "run.md#the-system-under-test",
    ),
    row(
        (DoctorCheck::Receiver, CheckGroup::Request),
        "receiver",
        "Where OTLP is received, and what came: connections, requests, spans of this trace and of others, metric points, log records.",
        "run.md#the-system-under-test",
    ),
    row(
        (DoctorCheck::Request, CheckGroup::Request),
        "request",
        "The request is sent once, with `traceparent`: is there a response, and with which status?",
        "triggers.md#http",
    ),
    row(
        (DoctorCheck::Environment, CheckGroup::Request),
        "environment",
        "Variables of the processes of the command that differ from those that were set for it: switched off, sent elsewhere, not passed on.",
        "diagnosis.md#the-command-does-not-use-its-environment-variables",
    ),
    row(
        (DoctorCheck::Protocol, CheckGroup::Request),
        "protocol",
        "What the receiver refused: a wrong path, content type or protocol, TLS to a port without it.",
        "diagnosis.md#no-span-arrived",
    ),
    row(
        (DoctorCheck::Export, CheckGroup::Request),
        "export",
        "Did anything connect to the receiver, and did spans come, or only metrics and logs?",
        "diagnosis.md#no-span-arrived",
    ),
    row(
        (DoctorCheck::Sampling, CheckGroup::Request),
        "sampling",
        "Does the system keep what its caller samples?",
        "diagnosis.md#no-span-arrived",
    ),
    row(
        (DoctorCheck::Propagation, CheckGroup::Request),
        "propagation",
        "Does each service continue the context that it gets, or does a trace of its own begin: at the first service, or between two?",
        "diagnosis.md#only-some-spans-arrived",
    ),
    row(
        (DoctorCheck::Peers, CheckGroup::Request),
        "peers",
        "Calls of which the other side sent no span.",
        "diagnosis.md#only-some-spans-arrived",
    ),
    row(
        (DoctorCheck::Dropped, CheckGroup::Request),
        "dropped spans",
        "Spans that the receiver had no room for, or that a process dropped or did not end.",
        "diagnosis.md#only-some-spans-arrived",
    ),
    row(
        (DoctorCheck::BatchDelay, CheckGroup::Request),
        "batch delay",
        "Do spans come before the timeout? It listens longer than that, and states how late they came.",
        "diagnosis.md#spans-arrived-too-late",
    ),
    row(
        (DoctorCheck::ServiceClocks, CheckGroup::Request),
        "clocks of services",
        "Do the clocks of services agree with each other and with this machine?",
        "diagnosis.md#only-some-spans-arrived",
    ),
    row(
        (DoctorCheck::Trace, CheckGroup::Request),
        "trace",
        "The spans of the trace by service, and whether it is complete.",
        "settling.md#when-a-trace-is-complete",
    ),
    row(
        (DoctorCheck::Context, CheckGroup::Server),
        "context",
        "The context of `--context`, and the file of contexts.",
        "reference/commands.md#login",
    ),
    row(
        (DoctorCheck::Token, CheckGroup::Server),
        "token",
        "Whether a token is sent.",
        "server.md#access",
    ),
    row(
        (DoctorCheck::Tls, CheckGroup::Server),
        "TLS",
        "Can the token be read on its way?",
        "server.md#access",
    ),
    row(
        (DoctorCheck::Certificate, CheckGroup::Server),
        "certificate",
        "The certificate of an `https://` server: is it trusted, for this host, and valid for 14 more days?",
        "server.md#access",
    ),
    row(
        (DoctorCheck::Connection, CheckGroup::Server),
        "connection",
        "Does the server respond?",
        "reference/errors.md#server-unreachable",
    ),
    row(
        (DoctorCheck::Readiness, CheckGroup::Server),
        "readiness",
        "Is the server ready?",
        "operations.md#probes-and-alerts",
    ),
    row(
        (DoctorCheck::Database, CheckGroup::Server),
        "database",
        "Does the server reach its database, and may it write there?",
        "operations.md#failures",
    ),
    row(
        (DoctorCheck::Disk, CheckGroup::Server),
        "disk",
        "Can the server write its journal of spans, and the buffers of its exporters?",
        "operations.md#failures",
    ),
    row(
        (DoctorCheck::Versions, CheckGroup::Server),
        "versions",
        "Are this program and the server of one version?",
        "operations.md#upgrade",
    ),
    row(
        (DoctorCheck::Rights, CheckGroup::Server),
        "rights",
        "Whom the server knows by the token, with role and projects.",
        "server.md#access",
    ),
    row(
        (DoctorCheck::Access, CheckGroup::Server),
        "access",
        "Whether the server requires a token at all.",
        "server.md#access",
    ),
    row(
        (DoctorCheck::Clocks, CheckGroup::Server),
        "clocks",
        "Do the clocks of this machine and of the server agree?",
        "operations.md#failures",
    ),
    row(
        (DoctorCheck::Exporter, CheckGroup::Server),
        "exporter",
        "Does each exporter of the server's own telemetry deliver?",
        "telemetry.md#when-telemetry-is-not-delivered",
    ),
    row(
        (DoctorCheck::Store, CheckGroup::Server),
        "trace store",
        "Does each trace store of the project respond to the server? Only the role `admin` can try that out.",
        "stores.md#when-a-store-cannot-be-read",
    ),
];

impl DoctorCheck {
    /// Returns the check that a cause of missing telemetry belongs to.
    pub(super) fn of(cause: Cause) -> Self {
        match cause {
            Cause::NothingConnected | Cause::NoSpans => Self::Export,
            Cause::Rejected => Self::Protocol,
            Cause::VariablesIgnored | Cause::SwitchedOff | Cause::SentElsewhere => {
                Self::Environment
            }
            Cause::NotSampled => Self::Sampling,
            Cause::OtherTraces | Cause::ContextLost | Cause::Linked | Cause::ParentRemote => {
                Self::Propagation
            }
            Cause::OtherSideAbsent | Cause::PeerSilent => Self::Peers,
            Cause::ParentLocal | Cause::SenderLost => Self::Dropped,
            Cause::NotQuiet => Self::BatchDelay,
            Cause::ClockSkew => Self::ServiceClocks,
            Cause::StoreLags => Self::Trace,
        }
    }

    /// Returns the name.
    pub(super) fn name(self) -> &'static str {
        CHECKS[self as usize].name
    }

    /// Returns the page with more about it, as seen from the root of the repository.
    pub(super) fn link(self) -> String {
        format!("docs/{}", CHECKS[self as usize].page)
    }
}

impl Serialize for DoctorCheck {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fs, path::Path};

    use super::CHECKS;

    #[test]
    fn every_check_has_a_line_and_a_page() {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
        let mut names = BTreeSet::new();
        for (at, row) in CHECKS.iter().enumerate() {
            assert_eq!(row.check as usize, at, "{}", row.name);
            assert!(names.insert(row.name), "{} is there twice", row.name);
            assert!(row.about.ends_with(['.', '?']), "{}", row.about);
            let (file, anchor) = row.page.split_once('#').expect("a page with an anchor");
            let page = fs::read_to_string(docs.join(file)).expect("the page");
            let headings = page.lines().filter(|line| line.starts_with('#'));
            let mut anchors = headings.map(|line| {
                let text = line.trim_start_matches('#').trim().to_lowercase().replace(' ', "-");
                text.chars().filter(|c| c.is_alphanumeric() || *c == '-').collect::<String>()
            });
            assert!(anchors.any(|it| it == anchor), "{}: no `{anchor}` in {file}", row.name);
        }
    }
}
