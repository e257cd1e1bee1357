//! Checks of this machine: what a local run needs.

use std::{
    io::ErrorKind,
    net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener},
    path::Path,
};

use model::{ErrorCode, World};
use net::{Proxies, tls};
use server::config::Environment;

use super::{DoctorCheck, Finding};
use crate::{
    project::{self, ProjectFile},
    sockets,
    terminal::Terminal,
};

/// The ports on which a local run receives OTLP.
pub(super) const OTLP: [u16; 2] = [4317, 4318];
/// No clock was right before this program was written: 2026-11-01, in seconds since 1970.
const WRITTEN: u64 = 1_793_491_200;
const PROXIES: [&str; 4] = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"];

/// What the checks look at.
pub(crate) struct Surroundings<'a> {
    pub(crate) environment: Environment,
    pub(crate) folder: &'a Path,
    pub(crate) world: World,
    pub(crate) terminal: &'a Terminal,
}

/// Runs all checks.
pub(super) fn look(surroundings: &Surroundings<'_>) -> Vec<Finding> {
    let Surroundings { environment, folder, world, terminal } = surroundings;
    let mut findings = vec![version(), project_file(folder, terminal)];
    findings.extend(OTLP.map(port));
    findings.push(clock(world));
    findings.push(proxies(environment));
    findings.extend(telemetry(environment));
    findings.push(authorities(environment));
    findings.push(shown(environment, terminal));
    findings
}

fn version() -> Finding {
    let (system, machine) = (std::env::consts::OS, std::env::consts::ARCH);
    Finding::ok(
        DoctorCheck::Version,
        format!("{} for {system} on {machine}", env!("CARGO_PKG_VERSION")),
    )
}

fn project_file(folder: &Path, terminal: &Terminal) -> Finding {
    match ProjectFile::find(folder, None, terminal) {
        Ok(None) => Finding::ok(
            DoctorCheck::ProjectFile,
            format!("no `{}` is here or above", project::FILE),
        ),
        Ok(Some(file)) => {
            Finding::ok(DoctorCheck::ProjectFile, format!("`{}`", file.path().display()))
        }
        // What is wrong was shown.
        Err(_) => Finding::named(
            DoctorCheck::ProjectFile,
            ErrorCode::ProjectFileInvalid,
            format!("`{}` is invalid", project::FILE),
        ),
    }
}

fn port(port: u16) -> Finding {
    let check = if port == OTLP[0] { DoctorCheck::OtlpGrpcPort } else { DoctorCheck::OtlpHttpPort };
    let address = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port);
    match TcpListener::bind(address) {
        Ok(_) => Finding::ok(check, "free for `qualitytrace run`"),
        Err(error) if error.kind() == ErrorKind::AddrInUse => {
            let by = sockets::listener(port);
            let by = by.unwrap_or_else(|| "a process that this user may not see".to_owned());
            let found = format!("`{address}` is taken by {by}");
            Finding::named(check, ErrorCode::OtlpPortInUse, found)
        }
        Err(error) => Finding::error(
            check,
            format!("cannot listen on `{address}`: {error}"),
            "Choose another address with `--otlp 127.0.0.1:PORT`.",
        ),
    }
}

fn clock(world: &World) -> Finding {
    let now = world.now();
    if now.as_secs() < WRITTEN {
        let found = format!("it is {now} by the clock of this machine");
        return Finding::error(
            DoctorCheck::Clock,
            found,
            "Set the clock: certificates and spans have times.",
        );
    }
    Finding::ok(DoctorCheck::Clock, now.to_string())
}

fn proxies(environment: &Environment) -> Finding {
    let set: Vec<_> =
        PROXIES.into_iter().filter(|name| proxy(environment, name).is_some()).collect();
    if set.is_empty() {
        return Finding::ok(DoctorCheck::Proxy, "no variable names one");
    }
    let variables: Vec<_> =
        environment.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let proxies = Proxies::new(&variables);
    let wrong = ["http://example.com/", "https://example.com/"]
        .into_iter()
        .find_map(|url| url.parse().ok().and_then(|url| proxies.on_the_way_to(&url).err()));
    match wrong {
        Some(wrong) => {
            Finding::error(DoctorCheck::Proxy, wrong, "Correct the variable, or remove it.")
        }
        None => {
            let found =
                format!("{} set: triggers use the proxy, but not for this machine", list(&set));
            Finding::ok(DoctorCheck::Proxy, found)
        }
    }
}

/// Returns the value of a variable about proxies, which is read in lower case too.
fn proxy<'e>(environment: &'e Environment, name: &str) -> Option<&'e str> {
    let value = environment.get(name).or_else(|| environment.get(&name.to_lowercase()));
    value.filter(|value| !value.trim().is_empty())
}

/// Looks for a proxy that gets the spans that a command sends to this machine: unlike triggers, many exporters use one for it too.
pub(super) fn proxy_of_spans(environment: &Environment) -> Option<Finding> {
    let used =
        ["HTTP_PROXY", "ALL_PROXY"].into_iter().find(|name| proxy(environment, name).is_some())?;
    let spared = proxy(environment, "NO_PROXY").unwrap_or_default();
    let is_spared = |host: &str| matches!(host.trim(), "127.0.0.1" | "127.0.0.0/8" | "*");
    if spared.split(',').any(is_spared) {
        return None;
    }
    Some(Finding::error(
        DoctorCheck::Proxy,
        format!(
            "`{used}` is set for the command, and `NO_PROXY` does not name 127.0.0.1: its exporters may send spans to the proxy"
        ),
        "Add `127.0.0.1` to `NO_PROXY`.",
    ))
}

/// Looks at the variables of OpenTelemetry that keep a system that is started in this shell from exporting.
fn telemetry(environment: &Environment) -> Vec<Finding> {
    const CHECK: DoctorCheck = DoctorCheck::Variables;
    let is = |name: &str, wrong: &[&str]| {
        let value = environment.get(name)?.trim();
        wrong.iter().any(|it| value.eq_ignore_ascii_case(it)).then(|| format!("`{name}={value}`"))
    };
    let wrong = [
        (is("OTEL_SDK_DISABLED", &["true"]), "the SDK records nothing"),
        (is("OTEL_TRACES_EXPORTER", &["none", "console"]), "spans are not exported by OTLP"),
        (
            is("OTEL_TRACES_SAMPLER", &["always_off", "parentbased_always_off"]),
            "no span is recorded",
        ),
        (is("OTEL_PROPAGATORS", &["none", "b3", "b3multi", "jaeger"]), "`traceparent` is not read"),
    ];
    let wrong: Vec<_> = wrong
        .into_iter()
        .filter_map(|(set, effect)| {
            let found = format!("{}: {effect}", set?);
            Some(Finding::warning(CHECK, found, "Remove it from the environment of the system."))
        })
        .collect();
    if !wrong.is_empty() {
        return wrong;
    }
    // A value may hold a key: headers do.
    let names: Vec<_> =
        environment.iter().map(|(name, _)| name).filter(|name| name.starts_with("OTEL_")).collect();
    let found = match names.as_slice() {
        [] => "none in this shell".to_owned(),
        names => format!("{} in this shell", list(names)),
    };
    vec![Finding::ok(CHECK, found)]
}

fn authorities(environment: &Environment) -> Finding {
    let path = |name| environment.get(name).map(Path::new);
    let (roots, wrong) = tls::system_roots(path("SSL_CERT_FILE"), path("SSL_CERT_DIR"));
    match (roots.len(), wrong) {
        (0, wrong) => {
            let why = wrong.map_or(String::new(), |wrong| format!(": {wrong}"));
            let advice = "Install the certificates of authorities (`ca-certificates`), or correct `SSL_CERT_FILE` and `SSL_CERT_DIR`.";
            Finding::error(DoctorCheck::Authorities, format!("there are none{why}"), advice)
        }
        // Of the usual places some may be missing.
        (_, Some(wrong))
            if ["SSL_CERT_FILE", "SSL_CERT_DIR"].iter().any(|it| path(it).is_some()) =>
        {
            Finding::warning(
                DoctorCheck::Authorities,
                wrong,
                "Correct `SSL_CERT_FILE` and `SSL_CERT_DIR`.",
            )
        }
        (count, _) => Finding::ok(DoctorCheck::Authorities, format!("{count} certificates")),
    }
}

fn shown(environment: &Environment, terminal: &Terminal) -> Finding {
    let place = if terminal.is_shown() { "a terminal" } else { "no terminal" };
    let width = terminal.width.map_or(String::new(), |width| format!(", {width} columns"));
    let ci = if environment.get("CI").is_some() { ", in CI" } else { "" };
    Finding::ok(DoctorCheck::Output, format!("{place}{width}{ci}"))
}

fn list(names: &[impl AsRef<str>]) -> String {
    let names: Vec<_> = names.iter().map(|name| format!("`{}`", name.as_ref())).collect();
    names.join(", ")
}
