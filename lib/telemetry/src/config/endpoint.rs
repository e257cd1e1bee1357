//! Where each signal goes: the rules that turn one endpoint into a URL for each signal.
//!
//! OTLP over HTTP has a path for each signal, gRPC has none. Users write the path of one signal, of all signals, no
//! path, or a custom path.

use http::{Uri, uri::PathAndQuery};
use source::{Fields, Item};

use super::{Context, otel, otlp::Shape};
use crate::plan::{Endpoints, Signal, Transport};

/// The maximum length of a URL; a signal path appended to it still fits the `Uri` type.
const URL_BYTES_MAX: usize = 2048;

const EXPECTED: &str = "`host:port`, `http://host:port` or `https://host:port`";

/// Returns the host and the port of a URL; the default port is that of the scheme.
pub fn address(uri: &Uri) -> (&str, u16) {
    let default = if uri.scheme_str() == Some("https") { 443 } else { 80 };
    (uri.host().unwrap_or_default(), uri.port_u16().unwrap_or(default))
}

/// Reads `endpoint` and `endpoints`. Falls back to OpenTelemetry's variables, then to localhost.
pub(super) fn endpoints(
    fields: &mut Fields<'_>,
    shape: &Shape<'_>,
    context: &Context<'_>,
) -> (Endpoints, Origin) {
    let common = fields.take("endpoint").and_then(|item| url(&item));
    let mut own = [const { None }; 3];
    // An exporter that only carries metrics needs one endpoint.
    if shape.carried != [Signal::Metrics] {
        let mut fields = fields.section("endpoints");
        for (signal, own) in Signal::ALL.into_iter().zip(&mut own) {
            *own = fields.take(word(signal)).and_then(|item| url(&item));
        }
        fields.finish();
    }
    let in_file = common.is_some() || own.iter().any(Option::is_some);
    let origin = if in_file { Origin::File } else { Origin::Elsewhere };
    let is_set = |signal: &Signal| {
        let of_signal = otel::of_signal(*signal, "ENDPOINT");
        ["OTEL_EXPORTER_OTLP_ENDPOINT", &of_signal].iter().any(|it| context.otel.get(it).is_some())
    };
    if !in_file && !shape.carried.iter().any(is_set) {
        context.by_default.borrow_mut().push(shape.name.to_owned());
    }
    let [traces, logs, metrics] = own.map(|own| (own, common.clone()));
    let resolve = |signal, (own, common)| match shape.transport {
        Transport::Grpc => bare(&resolved(signal, own, common, (shape, context))),
        Transport::Http => resolved(signal, own, common, (shape, context)),
    };
    let endpoints = Endpoints {
        traces: resolve(Signal::Spans, traces),
        logs: resolve(Signal::Logs, logs),
        metrics: resolve(Signal::Metrics, metrics),
    };
    note_shared_path(&endpoints, shape, context);
    (endpoints, origin)
}

/// The source of an endpoint.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    File,
    Elsewhere,
}

/// Returns the URL of one signal, before gRPC removes its path.
fn resolved(
    signal: Signal,
    own: Option<Uri>,
    common: Option<Uri>,
    (shape, context): (&Shape<'_>, &Context<'_>),
) -> Uri {
    let variable = |name: &str| {
        let value = context.otel.get(name)?;
        let uri = parse_url(value);
        if uri.is_none() {
            context.otel.warn(name, EXPECTED);
        }
        uri
    };
    let is_carried = shape.carried.contains(&signal);
    let ignored_path = |uri: &Uri| {
        if is_carried && shape.transport == Transport::Grpc && !is_root(uri) {
            let (name, path) = (shape.name, uri.path());
            context
                .note(format!("`{name}`: gRPC has no paths, `{path}` of its endpoint is ignored"));
        }
    };
    let from_file = own.or(common).map(|uri| {
        ignored_path(&uri);
        by_path(&uri, signal)
    });
    let from_signal_variable = || variable(&otel::of_signal(signal, "ENDPOINT"));
    let from_variable = || {
        let uri = variable("OTEL_EXPORTER_OTLP_ENDPOINT")?;
        let path = format!("{}/v1/{}", uri.path().trim_end_matches('/'), word(signal));
        Some(with_path(&uri, &path))
    };
    let default = || {
        let port = match shape.transport {
            Transport::Grpc => 4317,
            Transport::Http => 4318,
        };
        let default = format!("http://localhost:{port}/v1/{}", word(signal));
        default.parse().expect("an URL of known parts")
    };
    from_file.or_else(from_signal_variable).or_else(from_variable).unwrap_or_else(default)
}

/// Returns the URL of one signal from the file: an empty path becomes the default one, the path of another signal is
/// replaced, and any other path is used unchanged.
fn by_path(uri: &Uri, signal: Signal) -> Uri {
    if is_root(uri) {
        return with_path(uri, &format!("/v1/{}", word(signal)));
    }
    let path = uri.path();
    let before = Signal::ALL.iter().find_map(|other| {
        path.strip_suffix(word(*other)).filter(|before| before.ends_with("/v1/"))
    });
    match before {
        Some(before) => with_path(uri, &format!("{before}{}", word(signal))),
        None => uri.clone(),
    }
}

fn note_shared_path(endpoints: &Endpoints, shape: &Shape<'_>, context: &Context<'_>) {
    let of = |signal| match signal {
        Signal::Spans => &endpoints.traces,
        Signal::Logs => &endpoints.logs,
        Signal::Metrics => &endpoints.metrics,
    };
    let [first, others @ ..] = shape.carried else { return };
    if shape.transport == Transport::Http
        && let Some(other) = others.iter().find(|other| of(**other) == of(*first))
    {
        context.note(format!(
            "`{}`: {} and {} go to the same path `{}`; `endpoints: {{{}, {}}}` separates them",
            shape.name,
            first.as_str(),
            other.as_str(),
            of(*first).path(),
            word(*first),
            word(*other),
        ));
    }
}

/// Returns the name of a signal in paths and keys.
pub(super) fn word(signal: Signal) -> &'static str {
    match signal {
        Signal::Spans => "traces",
        Signal::Logs => "logs",
        Signal::Metrics => "metrics",
    }
}

fn url(item: &Item<'_>) -> Option<Uri> {
    let text = item.string()?;
    let uri = parse_url(text);
    if uri.is_none() {
        let has_user = text.contains('@');
        let instead = "an URL without user and password: those go into `headers`";
        item.misfit(if has_user { instead } else { EXPECTED });
    }
    uri
}

/// Parses a URL: `host:port` and `http://…` are plaintext, `https://…` is TLS. Without a scheme the port is required.
fn parse_url(text: &str) -> Option<Uri> {
    if text.len() > URL_BYTES_MAX {
        return None;
    }
    let has_scheme = text.contains("://");
    let url = if has_scheme { text.to_owned() } else { format!("http://{text}") };
    let uri: Uri = url.parse().ok()?;
    let authority = uri.authority()?.as_str();
    let is_known = matches!(uri.scheme_str(), Some("http" | "https"));
    let host = uri.host().filter(|host| !host.is_empty() && *host != "[]")?;
    // After the host, only a port may follow.
    let port = match authority.strip_prefix(host)? {
        "" => None,
        port => Some(port.strip_prefix(':')?.parse::<u16>().ok().filter(|port| *port > 0)?),
    };
    (is_known && (has_scheme || port.is_some()) && !authority.contains('@')).then_some(uri)
}

fn is_root(uri: &Uri) -> bool {
    matches!(uri.path(), "" | "/")
}

/// Returns the scheme, host and port.
fn bare(uri: &Uri) -> Uri {
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(PathAndQuery::from_static("/"));
    Uri::from_parts(parts).expect("the parts of an URL but its path")
}

/// Replaces the path and keeps the query.
fn with_path(uri: &Uri, path: &str) -> Uri {
    let path = match uri.query() {
        Some(query) => format!("{path}?{query}"),
        None => path.to_owned(),
    };
    let mut parts = uri.clone().into_parts();
    // The path was valid before a known word was appended.
    parts.path_and_query = Some(path.parse().expect("a path from parts of paths"));
    Uri::from_parts(parts).expect("the parts of an URL but its path")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_read() {
        for (text, expected) in [
            ("otel-collector:4317", Some(("otel-collector", 4317))),
            ("http://collector", Some(("collector", 80))),
            (
                "https://otel-collector.example.com/v1/metrics",
                Some(("otel-collector.example.com", 443)),
            ),
            ("HTTPS://h:1/", Some(("h", 1))),
            ("[::1]:4317", Some(("[::1]", 4317))),
            ("https://[::1]", Some(("[::1]", 443))),
            ("127.0.0.1:65535", Some(("127.0.0.1", 65535))),
            ("collector", None),
            ("collector:", None),
            ("collector:0", None),
            ("collector:65536", None),
            ("http://h:65536", None),
            ("http://h:", None),
            ("ftp://h:1", None),
            ("http://", None),
            ("http://:80", None),
            ("http://user:password@h:1", None),
            ("user@h:1", None),
            ("/v1/traces", None),
            ("a b:1", None),
            ("", None),
            (&format!("http://h/{}", "x".repeat(70_000)), None),
        ] {
            let uri = parse_url(text);
            assert_eq!(uri.as_ref().map(address), expected, "{text}");
        }
    }

    #[test]
    fn a_path_of_one_signal_serves_the_others() {
        for (endpoint, traces, logs) in [
            ("h:1", "http://h:1/v1/traces", "http://h:1/v1/logs"),
            ("https://h/", "https://h/v1/traces", "https://h/v1/logs"),
            ("https://h?k=1", "https://h/v1/traces?k=1", "https://h/v1/logs?k=1"),
            ("https://h/v1/traces", "https://h/v1/traces", "https://h/v1/logs"),
            ("https://h/a/v1/metrics?k=1", "https://h/a/v1/traces?k=1", "https://h/a/v1/logs?k=1"),
            ("https://h/v1/otel", "https://h/v1/otel", "https://h/v1/otel"),
            ("https://h/logs", "https://h/logs", "https://h/logs"),
            ("https://h/v1/logs/", "https://h/v1/logs/", "https://h/v1/logs/"),
        ] {
            let uri = parse_url(endpoint).expect("an URL");
            assert_eq!(by_path(&uri, Signal::Spans).to_string(), traces);
            assert_eq!(by_path(&uri, Signal::Logs).to_string(), logs);
        }
    }
}
