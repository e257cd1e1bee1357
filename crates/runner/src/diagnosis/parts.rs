//! Diagnoses for a trace of which some spans arrived and others did not.

use model::{
    Cause, Diagnosis, SpanId, UnansweredPeer, UnsettledReason,
    trace::{Kind, Span},
};

use super::{
    answer::{self, continuing},
    case::{Case, NAMED_MAX, diagnosis},
    clocks,
    foreign::Foreign,
    hops::{Hop, lost_at_edges, lost_inside, open_edges},
    losses, quiet, variables,
    words::{self, counted, quoted},
};
use crate::settle::peer::{is_call, is_entry, peer};

/// In OTLP span flags, the first bit states whether the second bit, which marks a remote parent, is meaningful.
const REMOTE_MEANT: u32 = 0x100;
const REMOTE: u32 = 0x200;

/// Returns why parts are missing, the likeliest cause first.
pub(super) fn causes(case: &Case<'_>, foreign: &Foreign) -> Vec<Diagnosis> {
    let unsettled = &case.settlement.unsettled;
    let spans = |ids: &[SpanId]| ids.iter().filter_map(|id| case.trace.find(*id)).collect();
    let (mut edges, mut orphans, mut expected) = (Vec::<Span<'_>>::new(), Vec::new(), &[][..]);
    for what in unsettled {
        match what {
            UnsettledReason::EdgesOpen(ids) | UnsettledReason::ContextLost(ids) => {
                let mut more: Vec<Span<'_>> = spans(ids);
                more.retain(|one| edges.iter().all(|it| it.id() != one.id()));
                edges.append(&mut more);
            }
            UnsettledReason::ParentsAbsent(ids) => orphans = spans(ids),
            UnsettledReason::ExpectedAbsent(names) => expected = names,
            _ => {}
        }
    }
    let is_short = !(edges.is_empty() && orphans.is_empty() && expected.is_empty());
    // A span that links to the call has its context, so that the context was not lost.
    edges.retain(|edge| !foreign.is_linked(case.fired.attempt.trace_id, edge.id()));
    let mut roots = foreign.roots(case);
    let at_edges = lost_at_edges(&edges, &mut roots, 0);
    let mut found = Vec::new();
    if is_short {
        found.extend(variables::causes(case));
        found.extend(answer::not_sampled(case));
    }
    if is_short || unsettled.contains(&UnsettledReason::SpansLost) {
        found.extend(losses::rejected_since(case));
    }
    found.extend(at_edges.iter().take(NAMED_MAX).map(|hop| lost(hop)));
    if is_short {
        let inside = lost_inside(case, &roots, expected);
        found.extend(inside.iter().take(NAMED_MAX).map(|hop| lost(hop)));
    }
    edges.retain(|edge| at_edges.iter().all(|hop| hop.before.map(Span::id) != Some(edge.id())));
    let trigger = case.fired.attempt.span_id;
    let is_unanswered = edges.iter().any(|edge| edge.id() == trigger);
    edges.retain(|edge| edge.id() != trigger);
    found.extend(linked(case, foreign));
    found.extend(parents(case, &orphans));
    found.extend(other_sides(&edges));
    found.extend(losses::lost(case));
    let skews = clocks::skews(case);
    found.extend(quiet::causes(case, &skews));
    found.extend(losses::dropped(case));
    // The trigger's other side is missing wherever a parent is missing, so it is reported only if no other cause was found.
    if is_unanswered && found.is_empty() {
        found.push(not_entered(case));
    }
    found.extend(clocks::causes(skews));
    found
}

/// Diagnoses a failed test with a complete trace: the other side of a call may still be in a separate trace. Only a trace that
/// is similar to the call counts, since nothing else indicates that something is missing.
pub(super) fn lost_though_whole(case: &Case<'_>) -> Vec<Diagnosis> {
    let edges = open_edges(case.trace, case.fired.attempt.span_id);
    if edges.is_empty() {
        return Vec::new();
    }
    let foreign = Foreign::decode(case);
    let hops = lost_at_edges(&edges, &mut foreign.roots(case), 1);
    hops.iter().take(NAMED_MAX).map(lost).collect()
}

/// Reports peers that were called and sent no span, if no other diagnosis names them: the trace does not contain their work,
/// whatever its verdict is.
pub(super) fn silent_peers(case: &Case<'_>, told: &[Diagnosis]) -> Vec<Diagnosis> {
    let is_told = |id: SpanId| told.iter().any(|diagnosis| diagnosis.spans.contains(&id));
    let is_new = |silent: &&UnansweredPeer| !silent.declared;
    let silent = case.settlement.unanswered.iter().filter(is_new).filter_map(|silent| {
        let is_of = |span: &Span<'_>| {
            is_call(*span)
                && peer(*span).unwrap_or_default() == silent.peer
                && (silent.peer.is_empty() || words::service(*span) == silent.service)
        };
        let calls: Vec<_> = case.trace.spans().filter(is_of).collect();
        let first = calls.first().filter(|_| !calls.iter().any(|call| is_told(call.id())))?;
        let (whom, absent) = match silent.peer.as_str() {
            "" => {
                ("a peer that it does not name".to_owned(), "name it by `peer.service`".to_owned())
            }
            peer => (quoted(peer), format!("declare `settle.absent: [{peer}]`")),
        };
        Some(diagnosis(
            Cause::PeerSilent,
            format!(
                "{} called {whom}, which sent no span: what happened there is not known",
                words::span(*first)
            ),
            calls.iter().map(|call| call.id()),
            format!("if it is instrumented, let it export here; if it never sends spans, {absent}"),
        ))
    });
    silent.take(NAMED_MAX).collect()
}

/// Reports that the context was lost on the way from one span to another.
fn lost(hop: &Hop<'_>) -> Diagnosis {
    let began = format!(
        "{} began a trace of its own with {}",
        quoted(words::service(hop.after)),
        quoted(hop.after.name())
    );
    let says = match hop.before {
        Some(before) => {
            let is_during = hop.after.start() <= before.end();
            let when = if is_during { "during" } else { "after" };
            format!("{began} {when} {}: the context was lost between the two", words::span(before))
        }
        None => format!("{began} after the trigger was fired, instead of continuing ours"),
    };
    let advice = match hop.is_inside {
        true => {
            "if it belongs to the request, pass the context on to the thread, task or callback that does it: an SDK \
             does not follow work that is queued by hand"
        }
        false => {
            "let the caller send `traceparent` (its client must be instrumented), let the called side continue it \
             (`OTEL_PROPAGATORS` must name `tracecontext` on both), and see that no proxy or queue between them drops it"
        }
    };
    let spans = hop.before.map(Span::id).into_iter().chain([hop.after.id()]);
    diagnosis(Cause::ContextLost, says, spans, advice)
}

/// Reports a span of another trace that links to ours.
fn linked(case: &Case<'_>, foreign: &Foreign) -> Option<Diagnosis> {
    let mut linking = foreign.linking(case.fired.attempt.trace_id);
    let span = linking.next()?;
    let to = span.links().find_map(|link| case.trace.find(link.span_id()?));
    let to = to.map_or_else(|| "our trace".to_owned(), words::span);
    let more = linking.map(|more| more.id());
    Some(diagnosis(
        Cause::Linked,
        format!("{} stands in a trace of its own, with a link to {to}", words::span(span)),
        [span.id()].into_iter().chain(more),
        "a test sees one trace: let the consumer be a child of the producer where the SDK has a setting for it, or say \
         nothing of the consumer in this test",
    ))
}

/// Reports spans for which the parent never arrived: one diagnosis for each service, separate for remote and local parents.
fn parents(case: &Case<'_>, orphans: &[Span<'_>]) -> Vec<Diagnosis> {
    fn of<'a>(span: &Span<'a>) -> (&'a str, bool) {
        (words::service(*span), is_remote(*span))
    }
    let mut groups: Vec<Vec<Span<'_>>> = Vec::new();
    for orphan in orphans {
        match groups.iter_mut().find(|group| of(&group[0]) == of(orphan)) {
            Some(group) => group.push(*orphan),
            None => groups.push(vec![*orphan]),
        }
    }
    groups.sort_by_key(|group| std::cmp::Reverse(is_remote(group[0])));
    groups.iter().take(NAMED_MAX).map(|group| parent_absent(case, group)).collect()
}

fn parent_absent(case: &Case<'_>, group: &[Span<'_>]) -> Diagnosis {
    let first = group[0];
    let service = quoted(words::service(first));
    let parent = first.parent().map(|parent| parent.to_string()).unwrap_or_default();
    let more = match group.len() as u64 - 1 {
        0 => String::new(),
        more => format!(" ({} of {service} too)", counted(more, "more span")),
    };
    let spans = group.iter().map(|span| span.id());
    if !is_remote(first) {
        return diagnosis(
            Cause::ParentLocal,
            format!(
                "{} names a parent in its own process that never came, `{parent}`{more}",
                words::span(first)
            ),
            spans,
            format!(
                "the parent was not ended in time, or {service} died or dropped it: look into its log for dropped spans \
                 (`OTEL_BSP_MAX_QUEUE_SIZE`), or raise `settle.timeout`"
            ),
        );
    }
    let ours = |span: &Span<'_>| span.id() != case.fired.attempt.span_id;
    let is_alone =
        case.trace.spans().filter(ours).all(|span| words::service(span) == words::service(first));
    let caller = match is_alone {
        true => format!("something between the trigger and {service}"),
        false => format!("what calls {service}"),
    };
    diagnosis(
        Cause::ParentRemote,
        format!("{} names a caller that never came, `{parent}`{more}", words::span(first)),
        spans,
        format!(
            "{caller} takes part in the trace and sends no spans here, as proxies and meshes do: let it export here too, \
             or declare `settle.absent: [{}]`. If its spans are only late, raise `settle.timeout`",
            words::service(first)
        ),
    )
}

fn is_remote(span: Span<'_>) -> bool {
    match span.flags() & REMOTE_MEANT {
        0 => is_entry(span),
        _ => span.flags() & REMOTE != 0,
    }
}

/// Reports that spans arrived, and that none names the trigger as its parent.
fn not_entered(case: &Case<'_>) -> Diagnosis {
    let trigger = case.fired.attempt.span_id;
    let first = case.trace.spans().find(|span| span.parent().is_none() && span.id() != trigger);
    let says = match first {
        Some(first) => format!(
            "{} has our trace id and no parent: the trigger's span was lost",
            words::span(first)
        ),
        None => "no span of the trace names the trigger as its parent".to_owned(),
    };
    diagnosis(Cause::ContextLost, says, first.map(Span::id), continuing(case.fired.request))
}

/// Reports calls for which the other side never arrived, and about which nothing else was observed.
fn other_sides(edges: &[Span<'_>]) -> Vec<Diagnosis> {
    let mut groups: Vec<(Option<String>, Vec<Span<'_>>)> = Vec::new();
    for edge in edges {
        let peer = peer(*edge);
        match groups.iter_mut().find(|(known, _)| *known == peer) {
            Some((_, group)) => group.push(*edge),
            None => groups.push((peer, vec![*edge])),
        }
    }
    let told = |(peer, group): &(Option<String>, Vec<Span<'_>>)| {
        let more = match group.len() as u64 - 1 {
            0 => String::new(),
            more => format!(" ({} too)", counted(more, "more call")),
        };
        let did = if group[0].kind() == Kind::Producer { "sent to" } else { "called" };
        let (whom, leaf) = match peer {
            Some(peer) => {
                (quoted(peer), format!("declare `settle.absent: [{peer}]`, or let runs learn it"))
            }
            None => {
                ("a peer that it does not name".to_owned(), "name it by `peer.service`".to_owned())
            }
        };
        diagnosis(
            Cause::OtherSideAbsent,
            format!("{} {did} {whom}, of which no span came{more}", words::span(group[0])),
            group.iter().map(|span| span.id()),
            format!(
                "if spans should come from there: instrument it, let it export here, and let it sample what its caller \
                 samples. If none ever do: {leaf}"
            ),
        )
    };
    groups.iter().take(NAMED_MAX).map(told).collect()
}
