//! The tree of a trace, in an order that does not depend on the arrival of its spans.
//!
//! Two spans that started in the same nanosecond are ordered by name, which is the same in every run, and then by id.
//! They are not ordered by end, which a span may not report. Only copies of one span stay in the order of arrival.

use model::{Trace, trace::Tree};

pub(super) fn in_order(trace: &Trace) -> Tree {
    Tree::with_ties(trace, |one, other| (one.name(), one.id()).cmp(&(other.name(), other.id())))
}

#[cfg(test)]
mod tests {
    use model::{
        SpanId, Timestamp, Trace, TraceId,
        trace::{ResourceData, ScopeData, SpanData},
    };
    use proptest::prelude::*;

    use super::in_order;

    /// The id, the parent or 0, the start and the end of a span.
    type Drawn = (u8, u8, u64, u64);

    fn trace(spans: &[Drawn]) -> Trace {
        let mut trace = Trace::new(TraceId::from_bytes([7; 16]).expect("not zero"));
        let id = |number: u8| SpanId::from_bytes(u64::from(number).to_be_bytes());
        for (own, parent, start, end) in spans {
            let resource = trace.resource(ResourceData::default()).expect("room");
            let scope = trace.scope(ScopeData::default()).expect("room");
            let mut span = SpanData::new(id(*own).expect("ids start at 1"), id(*parent), "x");
            span.start = Timestamp::from_nanos(*start);
            span.end = Timestamp::from_nanos(*end);
            trace.push(resource, scope, span).expect("room");
        }
        trace
    }

    /// Returns each span with its parent and its subtree, depth first.
    fn shape(spans: &[Drawn]) -> Vec<(String, Option<usize>, usize)> {
        let trace = trace(spans);
        let tree = in_order(&trace);
        let told = |(place, span)| {
            assert_eq!(tree.place(span), place, "a place is that of its span");
            (trace.span(span).id().to_string(), tree.parent_at(place), tree.end_at(place))
        };
        tree.order().iter().copied().enumerate().map(told).collect()
    }

    proptest! {
        #[test]
        fn arrival_decides_nothing(
            spans in prop::collection::vec((1u8..16, 0u8..16, 1u64..4, 1u64..4), 1..16),
            order in any::<prop::sample::Index>(),
        ) {
            let mut ids = std::collections::BTreeSet::new();
            let spans: Vec<_> = spans.into_iter().filter(|span| ids.insert(span.0)).collect();
            let mut others = spans.clone();
            others.rotate_left(order.index(spans.len()));
            prop_assert_eq!(shape(&spans), shape(&others));
            others.reverse();
            prop_assert_eq!(shape(&spans), shape(&others));
        }
    }
}
