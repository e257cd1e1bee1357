//! The connection of an exporter: the keys that tracers, collectors and the metrics push share.

use std::time::Duration;

use source::Fields;

use super::{
    Context,
    buffer::path,
    duration::{self, SPAN},
    endpoint::{self, Origin},
    headers, otel,
};
use crate::plan::{Compression, Otlp, Retry, Signal, Tls, Transport};

/// The concurrency of requests of one exporter: high enough that a backlog does not wait for the peer's responses, and
/// low enough that a recovering peer is not overloaded.
const CONCURRENCY: usize = 4;

const TIMEOUT: Duration = Duration::from_secs(10);

/// The properties of an exporter that are known before its connection is read.
pub(super) struct Shape<'a> {
    /// Its name in the plan.
    pub(super) name: &'a str,
    pub(super) transport: Transport,
    pub(super) carried: &'a [Signal],
}

/// Reads the transport under `transport`. Falls back to OpenTelemetry's variable, then to gRPC.
pub(super) fn transport(
    fields: &mut Fields<'_>,
    carried: &[Signal],
    context: &Context<'_>,
) -> Transport {
    let options = [("grpc", Transport::Grpc), ("http", Transport::Http)];
    let told = fields.choice("transport", &options);
    told.or_else(|| context.otel.transport(carried)).unwrap_or(Transport::Grpc)
}

/// Reads all settings of a connection except its transport.
pub(super) fn otlp(fields: &mut Fields<'_>, shape: &Shape<'_>, context: &Context<'_>) -> Otlp {
    let carried = shape.carried;
    let (endpoints, origin) = endpoint::endpoints(fields, shape, context);
    let headers = headers::take(fields).unwrap_or_else(|| {
        let names = otel::names(carried, "HEADERS");
        let Some((variable, headers)) = headers::from_variable(&context.otel, &names) else {
            return Vec::new();
        };
        if origin == Origin::File && !headers.is_empty() {
            let name = shape.name;
            context.note(format!(
                "`{name}`: its endpoint is the file's, and gets the headers of `{variable}`"
            ));
        }
        headers
    });
    let timeout = duration::take(fields, "timeout", &SPAN);
    let compression =
        fields.choice("compression", &[("gzip", Compression::Gzip), ("none", Compression::None)]);
    Otlp {
        transport: shape.transport,
        endpoints,
        headers,
        tls: tls(fields, carried, context),
        timeout: timeout.or_else(|| context.otel.timeout(carried)).unwrap_or(TIMEOUT),
        compression: compression
            .or_else(|| context.otel.compression(carried))
            .unwrap_or(Compression::Gzip),
        retry: retry(fields, context),
        concurrency: CONCURRENCY,
    }
}

/// Reads the files under `tls`. Certificate and key must come from one source: those of two sources would not match.
fn tls(fields: &mut Fields<'_>, carried: &[Signal], context: &Context<'_>) -> Tls {
    let mut tls = Tls::default();
    if let Some(item) = fields.take("tls")
        && let Some(mut fields) = item.fields()
    {
        let mut file = |key| fields.take(key).and_then(|item| path(&item));
        tls.ca_file = file("caFile");
        tls.cert_file = file("certFile");
        tls.key_file = file("keyFile");
        fields.finish();
        if tls.cert_file.is_some() != tls.key_file.is_some() {
            let message = format!("`{}` has only one of `certFile` and `keyFile`", item.path);
            let span = context.found.text().first_line(item.node.span);
            context
                .found
                .push(context.found.error(span, message).help("a certificate needs its key"));
        }
    }
    tls.ca_file = tls.ca_file.or_else(|| context.otel.file(carried, "CERTIFICATE"));
    if tls.cert_file.is_none() && tls.key_file.is_none() {
        tls.cert_file = context.otel.file(carried, "CLIENT_CERTIFICATE");
        tls.key_file = context.otel.file(carried, "CLIENT_KEY");
    }
    tls
}

fn retry(fields: &mut Fields<'_>, context: &Context<'_>) -> Retry {
    let mut retry = Retry::default();
    let Some(item) = fields.take("retry") else { return retry };
    let Some(mut fields) = item.fields() else { return retry };
    let initial = duration::take(&mut fields, "initial", &SPAN);
    let max = duration::take(&mut fields, "max", &SPAN);
    fields.finish();
    // If a user sets one of them beyond the other's default, that value is used as the maximum, or the minimum.
    retry.initial = initial.or(max.map(|max| retry.initial.min(max))).unwrap_or(retry.initial);
    retry.max = max.unwrap_or(retry.max.max(retry.initial));
    if retry.initial > retry.max {
        let message = format!("`{0}.initial` is longer than `{0}.max`", item.path);
        let span = context.found.text().first_line(item.node.span);
        context.found.push(context.found.error(span, message));
    }
    retry
}
