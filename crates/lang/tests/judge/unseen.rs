//! Checks that a verdict on a trace with missing data agrees with the verdict on the complete trace.
//!
//! The test generates a trace and then removes data: attributes, events, links and ends, which are counted as dropped; or the
//! common clock of all spans, which is replaced by one clock for each host. A verdict on the rest is inconclusive, or that of the
//! original trace.

use std::collections::{BTreeMap, BTreeSet};

use lang::{Evidence, ResolvedPlan, judge};
use model::{
    Settlement, SpanId, Timestamp, Trace, Verdict,
    trace::{Kind, ResourceData, SpanData, StatusCode, Value},
};
use proptest::prelude::{ProptestConfig, any, prop, prop_assert, proptest};

use crate::{
    case,
    monotone::{strategy, verdicts},
    random::{Circles, Drawn, span, test, trace_of},
};

type Given = (ResourceData, SpanData);

fn judged(resolved: &ResolvedPlan, trace: &Trace) -> Vec<(String, Verdict, String)> {
    let settlement = Settlement::default();
    let evidence =
        Evidence { trace: Some(trace), trigger: None, answer: None, settlement: Some(&settlement) };
    verdicts(&judge(resolved, &evidence))
}

/// Whether a verdict is consistent with that of the original trace. An undefined part fails a statement even under a negation,
/// although another part that is open may decide it otherwise.
pub(crate) fn stands((what, seen, _): &(String, Verdict, String), truth: Verdict) -> bool {
    let is_denied = what.contains("not (") || what.contains("no ");
    match (*seen, truth) {
        (Verdict::Failed, Verdict::Passed) => is_denied,
        (Verdict::Passed, Verdict::Failed) => false,
        _ => true,
    }
}

/// Returns one span of each id.
pub(crate) fn unlike(spans: Vec<Drawn>) -> Vec<Drawn> {
    let mut ids = BTreeSet::new();
    spans.into_iter().filter(|span| ids.insert(span.id)).collect()
}

/// Returns the span without the data that these bits select.
fn withhold((resource, mut span): Given, what: u8) -> Given {
    if what & 1 != 0 {
        span.dropped_attributes = span.attributes.len() as u32;
        span.attributes.clear();
    }
    if what & 2 != 0 {
        span.dropped_events = span.events.len() as u32;
        span.events.clear();
    }
    if what & 4 != 0 {
        span.dropped_links = span.links.len() as u32;
        span.links.clear();
    }
    if what & 8 != 0 {
        span.end = Timestamp::default();
    }
    if what & 16 != 0 && span.attributes.len() > 1 {
        span.dropped_attributes = 1;
        span.attributes.pop();
    }
    (resource, span)
}

/// Returns the spans with causally possible times: none ends before it starts, none starts before its parent, and none ends after
/// a client that waited for it.
fn causal(spans: &[Drawn]) -> Vec<Given> {
    let mut given: BTreeMap<SpanId, Given> = BTreeMap::new();
    // A parent has a smaller id than its child.
    let mut sorted: Vec<_> = spans.iter().map(Drawn::data).collect();
    sorted.sort_by_key(|(_, span)| span.id);
    for (resource, mut span) in sorted {
        let lasted = span.end.as_nanos().saturating_sub(span.start.as_nanos());
        let parent = span.parent.and_then(|id| given.get(&id)).map(|(_, parent)| parent);
        let mut start = span.start.as_nanos();
        if let Some(parent) = parent {
            start = start.max(parent.start.as_nanos());
        }
        let mut end = start + lasted;
        if let Some(parent) = parent
            && (parent.kind, span.kind) == (Kind::Client, Kind::Server)
            && parent.status.code != StatusCode::Error
        {
            start = start.min(parent.end.as_nanos());
            end = end.clamp(start, parent.end.as_nanos());
        }
        (span.start, span.end) = (Timestamp::from_nanos(start), Timestamp::from_nanos(end));
        given.insert(span.id, (resource, span));
    }
    let order: Vec<_> = spans.iter().map(|span| span.data().1.id).collect();
    order.into_iter().filter_map(|id| given.get(&id).cloned()).collect()
}

/// Causality puts `3` before `5`, against the times of their hosts: nothing is in front of `3`.
#[test]
fn a_position_behind_siblings_does_not_go_by_clocks_that_causality_refutes() {
    let id = |number: u8| SpanId::from_bytes([0, 0, 0, 0, 0, 0, 0, number]);
    let given = |number, parent, host: &str, start| -> Given {
        let host = ("host.name".to_owned(), Value::Str(host.to_owned()));
        let resource = ResourceData { attributes: vec![host], ..ResourceData::default() };
        let mut span = SpanData::new(id(number).expect("not zero"), parent, "x");
        (span.start, span.end) = (Timestamp::from_nanos(start), Timestamp::from_nanos(start));
        span.attributes.push(("number".to_owned(), Value::Int(number.into())));
        (resource, span)
    };
    let spans = [
        given(2, None, "n0", 1038),
        given(5, id(2), "n2", 1009),
        given(3, id(2), "n1", 1031),
        given(4, id(3), "n2", 1007),
    ];
    let trace = trace_of(spans.into_iter());
    for selector in ["span[] + span[number=3]:first", "span[] ~ span[number=3]:last"] {
        let assertion = ["attr:tracetest.selected_spans.count = 1".to_owned()];
        let resolved = case::resolved(&test(selector, &assertion, &[]));
        assert_eq!(judged(&resolved, &trace)[0].1, Verdict::Failed, "{selector}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(512) })]

    #[test]
    fn what_was_dropped_contradicts_no_verdict(
        (selector, assertions, claims) in strategy(),
        spans in prop::collection::vec(span(Circles::None), 1..9),
        withheld in prop::collection::vec(prop::option::weighted(0.4, 0u8..32), 9),
    ) {
        let resolved = case::resolved(&test(&selector, &assertions, &claims));
        let spans: Vec<Given> = unlike(spans).iter().map(Drawn::data).collect();
        let rest = spans.iter().cloned().zip(&withheld);
        let rest: Vec<Given> =
            rest.map(|(span, what)| withhold(span, what.unwrap_or(0))).collect();
        let whole = judged(&resolved, &trace_of(spans.iter().cloned()));
        let part = judged(&resolved, &trace_of(rest.iter().cloned()));
        for (part, whole) in part.iter().zip(&whole) {
            prop_assert!(stands(part, whole.1), "{}\npart {:?}: {}\nwhole {:?}: {}\n{:#?}", part.0, part.1, part.2, whole.1, whole.2, rest);
        }
    }

    #[test]
    fn no_clock_contradicts_a_verdict(
        (selector, assertions, claims) in strategy(),
        spans in prop::collection::vec(span(Circles::None), 1..9),
        skews in [0u64..40, 0u64..40, 0u64..40, 0u64..40],
        is_skewed in any::<bool>(),
    ) {
        // Statements about hosts or absolute times give other results.
        let is_told = |text: &String| !text.contains("host.name") && !text.contains("start");
        let assertions: Vec<_> = assertions.into_iter().filter(is_told).collect();
        let claims: Vec<_> = claims.into_iter().filter(is_told).collect();
        if !is_told(&selector) || assertions.is_empty() {
            return Ok(());
        }
        let resolved = case::resolved(&test(&selector, &assertions, &claims));
        let spans = unlike(spans);
        let given = causal(&spans);
        let one_clock = given.iter().cloned().map(|(mut resource, span)| {
            resource.attributes.retain(|(key, _)| key != "host.name");
            let host = ("host.id".to_owned(), model::trace::Value::Str("one".to_owned()));
            resource.attributes.push(host);
            (resource, span)
        });
        let skewed = given.iter().cloned().zip(&spans).map(|((resource, mut span), drawn)| {
            let skew = if is_skewed { skews[drawn.host] } else { 0 };
            let moved = |moment: Timestamp| Timestamp::from_nanos(moment.as_nanos() + skew);
            (span.start, span.end) = (moved(span.start), moved(span.end));
            (resource, span)
        });
        let skewed: Vec<_> = skewed.collect();
        let truth = judged(&resolved, &trace_of(one_clock));
        let seen = judged(&resolved, &trace_of(skewed.iter().cloned()));
        for (seen, truth) in seen.iter().zip(&truth) {
            prop_assert!(stands(seen, truth.1), "{}\nseen {:?}: {}\ntrue {:?}: {}\n{:#?}", seen.0, seen.1, seen.2, truth.1, truth.2, skewed);
        }
    }
}
