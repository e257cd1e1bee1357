//! The delivered data, in a form that a check compares.

use opentelemetry_proto::tonic::{
    collector::{
        logs::v1::ExportLogsServiceRequest, metrics::v1::ExportMetricsServiceRequest,
        trace::v1::ExportTraceServiceRequest,
    },
    common::v1::any_value::Value,
    resource::v1::Resource,
};
use prost::Message;

use crate::peer::{Peer, Seen};

/// The names of all spans that arrived, sorted.
pub(crate) fn spans(peer: &Peer) -> Vec<String> {
    let seen = accepted(peer);
    let mut names: Vec<_> =
        seen.iter().flat_map(|it| &it.spans).map(|span| span.name.clone()).collect();
    names.sort();
    names
}

/// The bodies of all logs that arrived, sorted.
pub(crate) fn logs(peer: &Peer) -> Vec<String> {
    let seen = accepted(peer).into_iter().filter(|seen| !seen.logs.is_empty());
    let mut bodies: Vec<_> = seen.flat_map(|seen| seen.names()).collect();
    bodies.sort();
    bodies
}

/// The trace ids of all spans that arrived, sorted.
pub(crate) fn traces(peer: &Peer) -> Vec<Vec<u8>> {
    let seen = accepted(peer);
    let mut traces: Vec<_> =
        seen.iter().flat_map(|it| &it.spans).map(|span| span.trace_id.clone()).collect();
    traces.sort();
    traces
}

/// The requests that carried metrics.
pub(crate) fn pushes(seen: &[Seen]) -> Vec<Seen> {
    seen.iter().filter(|seen| seen.path.contains("etrics")).cloned().collect()
}

/// The names of the metrics that a request carried.
pub(crate) fn metrics(seen: &Seen) -> Vec<String> {
    let request = ExportMetricsServiceRequest::decode(&seen.body[..]).expect("metrics");
    let scopes = request.resource_metrics.into_iter().flat_map(|it| it.scope_metrics);
    scopes.flat_map(|it| it.metrics).map(|metric| metric.name).collect()
}

/// `service.name` of a request, for any signal.
pub(crate) fn service(seen: &Seen) -> String {
    let body = &seen.body[..];
    let resource = if seen.path.contains("etrics") {
        let request = ExportMetricsServiceRequest::decode(body).expect("metrics");
        request.resource_metrics.into_iter().find_map(|it| it.resource)
    } else if seen.path.contains("ogs") {
        let request = ExportLogsServiceRequest::decode(body).expect("logs");
        request.resource_logs.into_iter().find_map(|it| it.resource)
    } else {
        let request = ExportTraceServiceRequest::decode(body).expect("spans");
        request.resource_spans.into_iter().find_map(|it| it.resource)
    };
    service_name(&resource.expect("a resource"))
}

fn service_name(resource: &Resource) -> String {
    let names: Vec<_> = resource.attributes.iter().filter(|it| it.key == "service.name").collect();
    assert_eq!(names.len(), 1, "one name: {resource:?}");
    let value = names[0].value.clone().and_then(|value| value.value);
    let text = value.and_then(|value| match value {
        Value::StringValue(name) => Some(name),
        _ => None,
    });
    text.expect("a name is a text")
}

/// The requested paths, each once, sorted.
pub(crate) fn paths(peer: &Peer) -> Vec<String> {
    let mut paths: Vec<_> = peer.seen().into_iter().map(|seen| seen.path).collect();
    paths.sort();
    paths.dedup();
    paths
}

fn accepted(peer: &Peer) -> Vec<Seen> {
    peer.seen().into_iter().filter(|seen| seen.is_accepted).collect()
}
