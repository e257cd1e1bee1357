//! Applies a mutant to a trace.

use std::time::Duration;

use model::{
    SpanId, Trace,
    trace::{SpanData, SpanIx, TraceFull},
};

use super::{Mutant, Operator, Parts};

/// The factor for the duration of a slowed span.
const SLOWER: u32 = 10;
/// The minimum additional duration.
const SLOWER_MIN: Duration = Duration::from_secs(1);

impl Mutant {
    /// Returns the trace with this single change.
    pub fn apply(&self, parts: &Parts) -> Result<Trace, TraceFull> {
        let mut spans = parts.spans.clone();
        let at = self.span.number();
        match &self.operator {
            Operator::Drop => {
                let (_, _, gone) = spans.remove(at);
                for (_, _, span) in &mut spans {
                    if span.parent == Some(gone.id) {
                        span.parent = gone.parent;
                    }
                }
            }
            Operator::Reparent(to) => spans[at].2.parent = Some(*to),
            Operator::Status(code) => spans[at].2.status.code = *code,
            Operator::Attribute(key) => spans[at].2.attributes.retain(|(other, _)| other != key),
            Operator::Slow => slow(parts, self.span, &mut spans),
            Operator::Duplicate => {
                let mut copy = spans[at].clone();
                copy.2.id = unused(copy.2.id, parts);
                spans.insert(at + 1, copy);
            }
        }
        parts.put_together(spans)
    }
}

impl Parts {
    fn put_together(&self, spans: Vec<(usize, usize, SpanData)>) -> Result<Trace, TraceFull> {
        let mut trace = Trace::new(self.id);
        let mut resources = Vec::with_capacity(self.resources.len());
        for resource in &self.resources {
            resources.push(trace.resource(resource.clone())?);
        }
        let mut scopes = Vec::with_capacity(self.scopes.len());
        for scope in &self.scopes {
            scopes.push(trace.scope(scope.clone())?);
        }
        for (resource, scope, span) in spans {
            trace.push(resources[resource], scopes[scope], span)?;
        }
        Ok(trace)
    }
}

/// Returns an unused id close to this one.
fn unused(id: SpanId, parts: &Parts) -> SpanId {
    let mut number = u64::from_be_bytes(*id.as_bytes());
    loop {
        number = number.wrapping_add(1);
        let id = SpanId::from_random(number.to_be_bytes());
        if parts.spans.iter().all(|(_, _, span)| span.id != id) {
            return id;
        }
    }
}

/// Ends a span later. The ancestors that waited for it end later too, and spans after it or after those start later, with all
/// their descendants. Concurrent spans stay unchanged.
fn slow(parts: &Parts, slowed: SpanIx, spans: &mut [(usize, usize, SpanData)]) {
    let tree = &parts.tree;
    let order = tree.order();
    let old = |place: usize| &parts.spans[order[place].number()].2;
    let place = tree.place(slowed);
    let duration = old(place).end.since(old(place).start);
    let delay = (duration * (SLOWER - 1)).max(SLOWER_MIN);
    let own = &mut spans[slowed.number()].2;
    own.end = own.start.plus(duration + delay);
    let (mut at, ended) = (place, old(place).end);
    while let Some(parent) = tree.parent_at(at) {
        for later in
            tree.children_at(parent).filter(|it| *it != at && old(*it).start >= old(at).end)
        {
            for below in later..tree.end_at(later) {
                shift(&mut spans[order[below].number()].2, delay);
            }
        }
        if old(parent).end < ended {
            // The parent did not wait.
            break;
        }
        let waiting = &mut spans[order[parent].number()].2;
        waiting.end = waiting.end.plus(delay);
        at = parent;
    }
}

fn shift(span: &mut SpanData, delay: Duration) {
    span.start = span.start.plus(delay);
    span.end = span.end.plus(delay);
    for event in &mut span.events {
        event.at = event.at.plus(delay);
    }
}
