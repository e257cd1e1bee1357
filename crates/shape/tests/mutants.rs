//! Checks that a mutant has exactly one change.

mod drawing;

use drawing::{spans, trace};
use model::{
    Trace,
    trace::{Span, Tree},
};
use proptest::prelude::{ProptestConfig, any, prop_assert, prop_assert_eq, proptest};
use shape::{Keep, Operator, Parts, Shape, diff, mutants};

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn one_thing_is_wrong(drawn in spans(16), seed in any::<u64>(), start in 0u64..1 << 40) {
        let order: Vec<_> = (0..drawn.len()).collect();
        let whole = trace(&drawn, seed, start, &order);
        if !whole.conflicts().is_empty() {
            // The seed generated equal ids.
            return Ok(());
        }
        let parts = Parts::of(&whole);
        let shape = |trace: &Trace| Shape::of(trace, &Keep::default()).expect("small");
        let before = shape(&whole);
        for mutant in mutants(&whole, &Keep::default(), usize::MAX, None).list {
            let mutated = mutant.apply(&parts).expect("room");
            let spans = match mutant.operator {
                Operator::Drop => whole.len() - 1,
                Operator::Duplicate => whole.len() + 1,
                _ => whole.len(),
            };
            prop_assert_eq!(mutated.len(), spans, "{}", &mutant.id);
            let is_same = diff(&before, &shape(&mutated)) == Ok(Vec::new());
            prop_assert_eq!(is_same, mutant.operator == Operator::Slow, "{}", &mutant.id);
            if mutant.operator == Operator::Slow {
                let slowed = |trace: &Trace| trace.span(mutant.span).duration();
                prop_assert!(slowed(&mutated) >= slowed(&whole) * 10, "{}", &mutant.id);
                // A span that outlived the slowed span may now be within it.
                let stays = nested(&whole).into_iter().zip(nested(&mutated)).all(|(a, b)| b || !a);
                prop_assert!(stays, "{}", &mutant.id);
            }
        }
    }

    #[test]
    fn a_sample_is_even_and_part_of_all(drawn in spans(16), most in 0usize..40) {
        let order: Vec<_> = (0..drawn.len()).collect();
        let whole = trace(&drawn, 5, 0, &order);
        let all = mutants(&whole, &Keep::default(), usize::MAX, None).list;
        let sample = mutants(&whole, &Keep::default(), most, None);
        prop_assert_eq!(sample.list.len(), all.len().min(most));
        prop_assert_eq!(sample.list.len() + sample.left_out.len(), all.len());
        prop_assert!(sample.list.iter().all(|mutant| all.contains(mutant)));
    }
}

/// Returns for each span whether it is within its parent.
fn nested(trace: &Trace) -> Vec<bool> {
    let tree = Tree::of(trace);
    let within = |span: Span<'_>| {
        let parent = tree.parent(span.ix()).map(|parent| trace.span(parent));
        parent.is_some_and(|parent| parent.start() <= span.start() && span.end() <= parent.end())
    };
    trace.spans().map(within).collect()
}
