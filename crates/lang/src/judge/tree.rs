//! Selects the part of the trace that evidence names, to render it.

use std::collections::BTreeSet;

use model::{ClaimJudgement, SpecJudgement, TreeSpan, trace::StatusCode};

use crate::{
    eval::{span_time::duration, world::EvalContext},
    value::{Value, shorten},
};

/// The maximum number of rendered spans.
const SPANS_MAX: usize = 200;

/// Returns the spans that evidence names, their ancestors, and the trigger span, depth first.
pub(super) fn of(
    specs: &[SpecJudgement],
    claims: &[ClaimJudgement],
    world: &EvalContext<'_>,
) -> Vec<TreeSpan> {
    let assertions = specs.iter().flat_map(|spec| &spec.assertions);
    let spans = assertions
        .flat_map(|assertion| &assertion.spans)
        .chain(claims.iter().flat_map(|claim| &claim.spans));
    let mut places: BTreeSet<usize> = world.trigger().into_iter().collect();
    for id in spans.filter_map(|evidence| evidence.span_id) {
        let Some(span) = world.trace.find(id) else { continue };
        let mut above = vec![world.tree.place(span.ix())];
        while let Some(parent) = above.last().and_then(|place| world.tree.parent_at(*place))
            && !places.contains(&parent)
            && places.len() + above.len() < SPANS_MAX
        {
            above.push(parent);
        }
        places.extend(above);
        if places.len() >= SPANS_MAX {
            break;
        }
    }
    places.into_iter().take(SPANS_MAX).map(|place| tree_span(place, world)).collect()
}

fn tree_span(place: usize, world: &EvalContext<'_>) -> TreeSpan {
    let span = world.span_at(place);
    let service = span.resource().attributes().get("service.name");
    TreeSpan {
        span_id: span.id(),
        name: shorten(span.name()).into_owned(),
        service: service.map(|value| shorten(&Value::from(value).text()).into_owned()),
        depth: world.depth_at(place),
        duration_ns: duration(span).ok().and_then(|nanos| u64::try_from(nanos).ok()),
        is_error: span.status() == StatusCode::Error,
    }
}
