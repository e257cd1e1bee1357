//! Gives every half its own id and its parent.
//!
//! The server's half of a shared id gets an id that depends on nothing but the half itself, so that it is the same in every answer, and the client's half, or
//! the span of the trigger, is its parent. Spans below a shared id hang below the half of their own service.

use std::collections::BTreeMap;

use model::{
    SpanId, Trace, TraceId,
    trace::{DROPPED_UNKNOWN, ResourceData},
};

use super::{
    half::{SpanHalf, merge},
    report::{Endpoint, Report, ReportKind},
    tags::{self, text},
};

/// The spans that are final.
#[derive(Debug)]
pub(super) struct Tree {
    pub(super) trace: Trace,
    /// Why other spans are not, if there are any.
    pub(super) withheld: Option<String>,
}

/// Whether clients and servers may share ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SharedIds {
    /// No sign of it: the parent of a span is the one that it names.
    Unknown,
    /// Some do: the parent of a span is known once its own service reported it.
    Possible,
}

pub(super) fn build(trace: TraceId, reports: Vec<Report>, ids: SharedIds) -> Result<Tree, String> {
    let mut by_id: BTreeMap<SpanId, Vec<SpanHalf>> = BTreeMap::new();
    for half in merge(reports) {
        by_id.entry(half.report.id).or_default().push(half);
    }
    let mut built = Trace::new(trace);
    let mut withheld = Vec::new();
    for half in by_id.values().flatten() {
        match place(half, &by_id, ids) {
            Ok(place) => push(&mut built, &half.report, place)
                .map_err(|error| format!("{}: {error}", label(&half.report)))?,
            Err(why) => withheld.push(format!("{} {why}", label(&half.report))),
        }
    }
    let withheld = withheld.first().map(|first| match withheld.len() {
        1 => first.clone(),
        count => format!("{first}, and {} more spans are not final", count - 1),
    });
    Ok(Tree { trace: built, withheld })
}

/// The identity of a span: its own id, and its parent's.
type Place = (SpanId, Option<SpanId>);

/// Returns the place of a half, or why it is not final.
fn place(
    half: &SpanHalf,
    by_id: &BTreeMap<SpanId, Vec<SpanHalf>>,
    ids: SharedIds,
) -> Result<Place, &'static str> {
    let SpanHalf { report, has_two_ends } = half;
    let beside = by_id.get(&report.id).map_or(&[][..], Vec::as_slice);
    let is_unshared = |half: &&SpanHalf| !half.report.shared;
    if !report.shared && beside.iter().filter(is_unshared).count() > 1 {
        return Err("has the id of another span, and neither is marked as shared");
    }
    if *has_two_ends {
        return Err("was reported with two different ends");
    }
    if report.timestamp.is_none() || report.duration.is_none() {
        return Err("has no duration yet");
    }
    if report.shared {
        return Ok((own_id(report), Some(report.id)));
    }
    let Some(parent) = report.parent_id else { return Ok((report.id, None)) };
    let halves = by_id.get(&parent).map_or(&[][..], Vec::as_slice);
    Ok((report.id, Some(parent_of(report, parent, (halves, ids))?)))
}

/// Returns the id of the parent: of the halves with the named id, the one of the span's own service.
fn parent_of(
    report: &Report,
    parent: SpanId,
    (halves, ids): (&[SpanHalf], SharedIds),
) -> Result<SpanId, &'static str> {
    let is_own = |half: &&SpanHalf| half.report.service() == report.service();
    let servers = || halves.iter().filter(|half| half.report.shared && is_own(half));
    let is_here = |half: &&SpanHalf| half.report.local_endpoint == report.local_endpoint;
    if report.service().is_none() {
        return Ok(parent);
    }
    match (servers().find(is_here), servers().count()) {
        (Some(here), _) => return Ok(own_id(&here.report)),
        (None, 1) => return Ok(servers().next().map_or(parent, |half| own_id(&half.report))),
        (None, 0) => {}
        (None, _) => return Err("is below one of several servers with the same id"),
    }
    // A span that does not begin at another service has a parent in its own, which may be the server's half of a call.
    let begins_here = matches!(report.kind, Some(ReportKind::Server | ReportKind::Consumer));
    let mut others = halves.iter().filter(|half| !half.report.shared);
    let is_certain =
        others.any(|half| is_own(&half) || half.report.kind != Some(ReportKind::Client));
    match ids {
        SharedIds::Possible if !begins_here && !is_certain => {
            Err("is below a span that its service has not reported yet")
        }
        _ => Ok(parent),
    }
}

fn push(trace: &mut Trace, report: &Report, (id, parent): Place) -> Result<(), String> {
    let (mut span, scope) = tags::span(report);
    (span.id, span.parent) = (id, parent);
    let service = report.service().map(|name| ("service.name".to_owned(), text(name)));
    let resource = ResourceData {
        attributes: service.into_iter().collect(),
        dropped_attributes: DROPPED_UNKNOWN,
        ..ResourceData::default()
    };
    let resource = trace.resource(resource).map_err(|error| error.to_string())?;
    let scope = trace.scope(scope).map_err(|error| error.to_string())?;
    trace.push(resource, scope, span).map(drop).map_err(|error| error.to_string())
}

/// Returns the id of the server's half of a shared id: the FNV-1a hash of that id and of the server's endpoint.
fn own_id(report: &Report) -> SpanId {
    let endpoint = report.local_endpoint.as_ref();
    let part =
        |field: fn(&Endpoint) -> Option<String>| endpoint.and_then(field).unwrap_or_default();
    let key = [
        report.id.to_string(),
        part(|it| it.service_name.clone()),
        part(|it| it.ipv4.clone()),
        part(|it| it.ipv6.clone()),
        part(|it| it.port.map(|port| port.to_string())),
    ];
    let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = key.join("\n").bytes().fold(0xcbf2_9ce4_8422_2325, mix);
    SpanId::from_random(hash.to_be_bytes())
}

/// Names a span in a message.
fn label(report: &Report) -> String {
    let name = report.name.as_deref().unwrap_or_default();
    match report.service() {
        Some(service) => format!("span `{name}` of `{service}` ({})", report.id),
        None => format!("span `{name}` ({})", report.id),
    }
}
