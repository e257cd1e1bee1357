//! Checks that a final verdict stays the same when further spans arrive; that it is the verdict for each span if several spans
//! have one id; and that no trace causes a panic.

use std::collections::BTreeMap;

use lang::{Evidence, judge};
use model::{Answer, Judgement, NoAnswer, NoAnswerKind, Settlement, UnsettledReason, Verdict};
use proptest::prelude::{ProptestConfig, Strategy, any, prop, prop_assert_eq, proptest};

use crate::{
    case,
    random::{Circles, Drawn, claim, id, part, predicate, span, test, trace},
};

fn settlement(unsettled: Vec<UnsettledReason>) -> Settlement {
    Settlement { unsettled, ..Settlement::default() }
}

/// Judges the first spans, as a partial or as a complete trace.
fn judged(
    resolved: &lang::ResolvedPlan,
    spans: &[Drawn],
    trigger: Option<u8>,
    is_whole: bool,
) -> Judgement {
    let trace = trace(spans);
    let unsettled = if is_whole { Vec::new() } else { vec![UnsettledReason::NotQuiet] };
    let settlement = settlement(unsettled);
    let answer = Answer::NoAnswer(NoAnswer { kind: NoAnswerKind::Timeout, message: String::new() });
    let evidence = Evidence {
        trace: Some(&trace),
        trigger: trigger.and_then(id),
        answer: trigger.map(|_| &answer),
        settlement: Some(&settlement),
    };
    judge(resolved, &evidence)
}

/// Returns each verdict with its statement.
pub(crate) fn verdicts(judgement: &Judgement) -> Vec<(String, Verdict, String)> {
    let specs = judgement.specs.iter().flat_map(|spec| {
        spec.assertions.iter().map(|one| {
            let told = format!("{:?} {:?}", one.reason, one.spans);
            (format!("{}: {}", spec.selector, one.assertion), one.verdict, told)
        })
    });
    let claims = judgement
        .claims
        .iter()
        .map(|one| (one.claim.clone(), one.verdict, format!("{:?} {:?}", one.reason, one.spans)));
    specs.chain(claims).collect()
}

pub(crate) fn strategy() -> impl Strategy<Value = (String, Vec<String>, Vec<String>)> {
    let counted = prop::sample::select(vec![
        "attr:tracetest.selected_spans.count >= 2",
        "attr:tracetest.selected_spans.count <= 1",
        "attr:tracetest.selected_spans.count = 1",
        "attr:tracetest.selected_spans.count != attr:a",
    ]);
    (
        part(),
        prop::collection::vec(predicate(), 1..4),
        counted,
        prop::collection::vec(claim(), 1..5),
    )
        .prop_map(|(selector, mut assertions, counted, claims)| {
            assertions.push(counted.to_owned());
            (selector, assertions, claims)
        })
}

/// Returns the span with a start that no span of another id has, so that no order depends on arrival.
fn apart(mut span: Drawn) -> Drawn {
    let (start, lasted) = span.times;
    span.times = (start * 16 + u64::from(span.id), lasted * 16);
    span
}

/// Returns every combination with one span for each id.
fn readings(spans: &[Drawn]) -> Vec<Vec<Drawn>> {
    let mut copies: BTreeMap<u8, Vec<&Drawn>> = BTreeMap::new();
    for span in spans {
        copies.entry(span.id).or_default().push(span);
    }
    copies.values().fold(vec![Vec::new()], |readings, copies| {
        let with = |copy: &&Drawn| {
            let copy = (*copy).clone();
            readings
                .iter()
                .map(move |reading| [reading.as_slice(), std::slice::from_ref(&copy)].concat())
        };
        copies.iter().flat_map(with).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    #[test]
    fn what_is_final_stays(
        (selector, assertions, claims) in strategy(),
        spans in prop::collection::vec(span(Circles::None), 1..9),
        trigger in prop::option::weighted(0.3, 1u8..12),
    ) {
        let resolved = case::resolved(&test(&selector, &assertions, &claims));
        let mut before: Vec<(String, Verdict, String)> = Vec::new();
        for count in 1..=spans.len() {
            let now = verdicts(&judged(&resolved, &spans[..count], trigger, false));
            let whole = verdicts(&judged(&resolved, &spans[..count], trigger, true));
            // A copy with other content revokes the verdict on the first one, and so does a span with missing data; neither
            // reverses it.
            let given = trace(&spans[..count]);
            let is_doubted =
                !given.conflicts().is_empty() || given.spans().any(|span| span.end() < span.start());
            for (at, (what, was, told)) in before.iter().enumerate() {
                let is_taken_back = is_doubted && now[at].1 == Verdict::Inconclusive;
                if *was != Verdict::Inconclusive && !is_taken_back {
                    prop_assert_eq!(now[at].1, *was, "{}\nbefore: {}\nnow: {}\n{:#?}", what, told, now[at].2, &spans[..count]);
                }
            }
            for (part, whole) in now.iter().zip(&whole) {
                if part.1 != Verdict::Inconclusive {
                    prop_assert_eq!(part.1, whole.1, "{}\npart: {}\nwhole: {}", part.0, part.2, whole.2);
                }
            }
            before = now;
        }
    }

    #[test]
    fn no_choice_among_copies_contradicts_a_verdict(
        (selector, assertions, claims) in strategy(),
        spans in prop::collection::vec(span(Circles::None), 2..9),
    ) {
        let resolved = case::resolved(&test(&selector, &assertions, &claims));
        let spans: Vec<_> = spans.into_iter().map(apart).collect();
        let all = verdicts(&judged(&resolved, &spans, None, true));
        for reading in readings(&spans) {
            let one = verdicts(&judged(&resolved, &reading, None, true));
            for (all, one) in all.iter().zip(&one) {
                if all.1 != Verdict::Inconclusive && one.1 != Verdict::Inconclusive {
                    prop_assert_eq!(all.1, one.1, "{}\nall: {}\none: {}\n{:#?}", all.0, all.2, one.2, &reading);
                }
            }
        }
    }

    #[test]
    fn no_trace_panics(
        (selector, assertions, claims) in strategy(),
        spans in prop::collection::vec(span(Circles::Allowed), 0..12),
        trigger in prop::option::weighted(0.5, 1u8..12),
        is_whole in any::<bool>(),
    ) {
        let resolved = case::resolved(&test(&selector, &assertions, &claims));
        let judgement = judged(&resolved, &spans, trigger, is_whole);
        prop_assert_eq!(&judgement, &judged(&resolved, &spans, trigger, is_whole));
    }
}
