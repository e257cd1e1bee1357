//! Checks that a verdict on spans of a store that does not keep all of them agrees with the verdict on the spans that were sent.
//!
//! The test generates a trace and removes what a store lacks. A verdict on the rest is inconclusive, or that of the original
//! trace. Which statements need what is a table.

use lang::{Evidence, ResolvedPlan, judge};
use model::{
    Settlement, SpanDetail, StoreQueries, Timestamp, Trace, Verdict,
    trace::{DROPPED_UNKNOWN, Kind, ResourceData, SpanData, Value},
};
use proptest::prelude::{ProptestConfig, any, prop, prop_assert, proptest};

use crate::{
    case,
    monotone::{strategy, verdicts},
    random::{Circles, span, test, trace_of},
    unseen::{stands, unlike},
};

type Given = (ResourceData, SpanData);

/// The details that the traces of the test have.
const DETAILS: [SpanDetail; 7] = [
    SpanDetail::Links,
    SpanDetail::EventAttributes,
    SpanDetail::ValueTypes,
    SpanDetail::Resource,
    SpanDetail::StatusMessage,
    SpanDetail::Nanoseconds,
    SpanDetail::Kinds,
];

fn judged(
    resolved: &ResolvedPlan,
    trace: &Trace,
    lacks: &[SpanDetail],
) -> Vec<(String, Verdict, String)> {
    let stores = vec![StoreQueries { store: "prod".to_owned(), lag_ns: 0, lacks: lacks.to_vec() }];
    let settlement = Settlement { stores, ..Settlement::default() };
    let evidence =
        Evidence { trace: Some(trace), trigger: None, answer: None, settlement: Some(&settlement) };
    verdicts(&judge(resolved, &evidence))
}

/// Returns the span with times that only nanoseconds tell apart from others, and a duration of whole microseconds.
fn exact((resource, mut span): Given) -> Given {
    let nanos = |time: Timestamp| time.as_nanos().saturating_sub(998);
    let begin = 1_000_000 + nanos(span.start) / 4 * 1_000 + nanos(span.start) % 4 * 200;
    let lasted = span.end.as_nanos().saturating_sub(span.start.as_nanos()) / 4 * 1_000;
    span.start = Timestamp::from_nanos(begin);
    span.end = Timestamp::from_nanos(begin + lasted);
    (resource, span)
}

/// Returns the span as a store gives it back that does not keep a detail.
fn without((mut resource, mut span): Given, detail: SpanDetail) -> Given {
    let as_text = |attributes: &mut Vec<(String, Value)>| {
        for (_, value) in attributes {
            if let Value::Int(number) = value {
                *value = Value::Str(number.to_string());
            }
        }
    };
    match detail {
        SpanDetail::Links => span.links.clear(),
        SpanDetail::EventAttributes => {
            span.events.iter_mut().for_each(|event| event.attributes.clear());
        }
        SpanDetail::ValueTypes => {
            as_text(&mut span.attributes);
            span.events.iter_mut().for_each(|event| as_text(&mut event.attributes));
        }
        SpanDetail::Resource => {
            resource.attributes.retain(|(key, _)| key == "service.name");
            resource.dropped_attributes = DROPPED_UNKNOWN;
        }
        SpanDetail::StatusMessage => span.status.message.clear(),
        SpanDetail::Nanoseconds => {
            for time in [&mut span.start, &mut span.end] {
                *time = Timestamp::from_nanos(time.as_nanos() / 1_000 * 1_000);
            }
        }
        SpanDetail::Kinds if span.kind == Kind::Internal => span.kind = Kind::Unspecified,
        _ => {}
    }
    (resource, span)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn what_a_store_does_not_keep_decides_nothing(
        (selector, assertions, claims) in strategy(),
        spans in prop::collection::vec(span(Circles::None), 1..9),
        lacks in any::<u8>(),
    ) {
        let resolved = case::resolved(&test(&selector, &assertions, &claims));
        let sent: Vec<_> = unlike(spans).iter().map(|span| exact(span.data())).collect();
        let lacks: Vec<_> =
            (0..).zip(DETAILS).filter(|(bit, _)| lacks & (1 << bit) != 0).map(|(_, it)| it).collect();
        let stored = sent.iter().map(|span| {
            lacks.iter().fold(span.clone(), |span, detail| without(span, *detail))
        });
        let truth = judged(&resolved, &trace_of(sent.iter().cloned()), &[]);
        for (seen, (what, truth, why)) in judged(&resolved, &trace_of(stored), &lacks).iter().zip(truth) {
            prop_assert!(stands(seen, truth), "{what}: {truth:?} ({why}), without {lacks:?}: {seen:?}");
        }
    }
}

/// Statements, and what they need. The first is a condition of a selector too.
const NEEDS: &[(&str, &[SpanDetail])] = &[
    ("count(span[attr:a = 1]) = 1", &[]),
    ("every span[] has duration < 1s", &[]),
    ("some span[name = \"get orders\"]", &[]),
    ("some span[name = \"GET orders\"]", &[SpanDetail::NameCase]),
    ("some span[name = \"Qualitytrace trigger\"]", &[]),
    ("some span[name != attr:a]", &[SpanDetail::NameCase]),
    ("values(name of span[]) contains \"GET\"", &[SpanDetail::NameCase]),
    ("some span[service = \"Shop\"]", &[SpanDetail::NameCase]),
    ("some span[name matches \"^get .*\"]", &[]),
    ("some span[name matches \"[[:upper:]]\"]", &[SpanDetail::NameCase]),
    ("every span[] has name | regex \"^g.\" = \"ge\"", &[SpanDetail::NameCase]),
    ("count(span[] by name) <= 1", &[SpanDetail::NameCase]),
    ("count(span[] by kind) <= 1", &[SpanDetail::Kinds]),
    ("some span[kind = \"server\"]", &[]),
    ("some span[kind = \"internal\"]", &[SpanDetail::Kinds]),
    ("some span[kind in [\"server\", \"internal\"]]", &[SpanDetail::Kinds]),
    ("some span[] => span[]", &[SpanDetail::Links]),
    ("some span[link[span_id exists]]", &[SpanDetail::Links]),
    ("some span[link.trace_id exists]", &[SpanDetail::Links]),
    ("span[a=1] calls span[a=2]", &[SpanDetail::Links]),
    ("some span[event[name = \"x\"]]", &[]),
    ("some span[event[e = 1]]", &[SpanDetail::EventAttributes]),
    ("some span[event.e = 1]", &[SpanDetail::EventAttributes]),
    ("some span[scope.name = \"x\"]", &[SpanDetail::Scope]),
    ("some span[scope.key = 1]", &[SpanDetail::Scope, SpanDetail::ScopeAttributes]),
    ("some span[resource.host.name = \"x\"]", &[SpanDetail::Resource]),
    ("some span[resource.service.name = \"x\"]", &[]),
    ("some span[status_message = \"x\"]", &[SpanDetail::StatusMessage]),
    ("some span[status = \"error\"]", &[]),
    ("span[a=1] before span[a=2]", &[SpanDetail::Nanoseconds]),
    ("gap(span[a=1], span[a=2]) < 1s", &[SpanDetail::Nanoseconds]),
    ("some span[a=1] ~ span[a=2]", &[SpanDetail::Nanoseconds]),
    ("some span[a=1]:last", &[SpanDetail::Nanoseconds]),
    ("some span[self_time > 1s]", &[SpanDetail::Nanoseconds]),
    ("some span[]:not(span[attr:a | type = \"string\"])", &[SpanDetail::ValueTypes]),
    ("some span[attr:a = [1, 2]]", &[SpanDetail::ValueTypes]),
    ("some span[attr:a = 200]", &[]),
];

const ALL: [SpanDetail; 12] = [
    SpanDetail::Links,
    SpanDetail::EventAttributes,
    SpanDetail::ValueTypes,
    SpanDetail::Scope,
    SpanDetail::ScopeAttributes,
    SpanDetail::Resource,
    SpanDetail::StatusMessage,
    SpanDetail::Nanoseconds,
    SpanDetail::Flags,
    SpanDetail::TraceState,
    SpanDetail::NameCase,
    SpanDetail::Kinds,
];

#[test]
fn a_statement_that_needs_what_the_store_lacks_is_inconclusive() {
    let trace = trace_of(std::iter::empty());
    for (claim, needs) in NEEDS {
        let resolved = case::resolved(&format!("trace: [{claim:?}]"));
        for detail in ALL {
            let judged = judged(&resolved, &trace, &[detail]);
            let (_, verdict, why) = judged.last().expect("a claim");
            let words = format!("the trace store `prod` keeps no {}, which", detail.words());
            assert_eq!(why.contains(&words), needs.contains(&detail), "{claim}: {detail:?}: {why}");
            if needs.contains(&detail) {
                assert_eq!(*verdict, Verdict::Inconclusive, "{claim}");
            }
        }
    }
}
