//! Checks that selectors select the spans of their definition, written out span by span.

use std::collections::BTreeSet;

use lang::{Evidence, judge};
use model::{Settlement, Trace, Verdict, trace::Tree};
use proptest::prelude::{BoxedStrategy, ProptestConfig, Strategy, prop, prop_assert_eq, proptest};

use crate::{
    case,
    random::{Circles, Drawn, id, span, test, trace},
};

const COMBINATORS: [&str; 7] = ["", ">", "+", "~", "<", "<<", "=>"];
const CONDITIONS: [&str; 5] = ["", "name=\"x\"", "a=1", "a!=1 or b exists", "kind=\"client\""];
const POSITIONS: [&str; 4] = ["", ":first", ":last", ":nth_child(2)"];

/// A generated step, with its combinator.
#[derive(Clone, Debug)]
struct Hop {
    combinator: usize,
    condition: usize,
    pseudo: Pseudo,
    position: usize,
}

#[derive(Clone, Debug)]
enum Pseudo {
    None,
    Root,
    Leaf,
    Orphan,
    Has(Vec<Hop>),
    Not(Vec<Hop>),
}

fn hop(depth: u32) -> BoxedStrategy<Hop> {
    let plain = prop::sample::select(vec![
        Pseudo::None,
        Pseudo::None,
        Pseudo::None,
        Pseudo::Root,
        Pseudo::Leaf,
        Pseudo::Orphan,
    ]);
    let pseudo = match depth {
        0 => plain.boxed(),
        _ => {
            let inner = || prop::collection::vec(hop(depth - 1), 1..3);
            proptest::prop_oneof![
                4 => plain,
                1 => inner().prop_map(Pseudo::Has),
                1 => inner().prop_map(Pseudo::Not),
            ]
            .boxed()
        }
    };
    let positions = prop::sample::select(vec![0usize, 0, 0, 1, 2, 3]);
    (0..COMBINATORS.len(), 0..CONDITIONS.len(), pseudo, positions)
        .prop_map(|(combinator, condition, pseudo, position)| Hop {
            combinator,
            condition,
            pseudo,
            position,
        })
        .boxed()
}

/// Prints the hops; the first without its combinator unless it is inside `has`.
fn written(hops: &[Hop], is_relative: bool) -> String {
    let mut text = String::new();
    for (at, hop) in hops.iter().enumerate() {
        if at > 0 || is_relative {
            text.push_str(&format!(" {} ", COMBINATORS[hop.combinator]));
        }
        text.push_str(&format!("span[{}]", CONDITIONS[hop.condition]));
        match &hop.pseudo {
            Pseudo::None => {}
            Pseudo::Root => text.push_str(":root"),
            Pseudo::Leaf => text.push_str(":leaf"),
            Pseudo::Orphan => text.push_str(":orphan"),
            Pseudo::Has(hops) => text.push_str(&format!(":has({})", written(hops, true).trim())),
            Pseudo::Not(hops) => text.push_str(&format!(":not({})", written(hops, false))),
        }
        text.push_str(POSITIONS[hop.position]);
    }
    text
}

/// A trace by tree positions, with all data that the definition needs.
struct Naive<'a> {
    trace: &'a Trace,
    tree: Tree,
    trigger: Option<usize>,
}

impl Naive<'_> {
    fn span(&self, place: usize) -> model::trace::Span<'_> {
        self.trace.span(self.tree.order()[place])
    }

    fn parent(&self, place: usize) -> Option<usize> {
        self.tree.parent(self.tree.order()[place]).map(|parent| self.tree.place(parent))
    }

    fn is_above(&self, above: usize, place: usize) -> bool {
        let mut at = self.parent(place);
        while let Some(parent) = at {
            if parent == above {
                return true;
            }
            at = self.parent(parent);
        }
        self.trigger == Some(above) && above != place
    }

    fn siblings_behind(&self, place: usize) -> Vec<usize> {
        let parent = self.parent(place);
        let is_sibling = |other: &usize| parent.is_some() && self.parent(*other) == parent;
        (place + 1..self.trace.len()).filter(is_sibling).collect()
    }

    fn leads(&self, combinator: usize, from: usize, to: usize) -> bool {
        match COMBINATORS[combinator] {
            "" => self.is_above(from, to),
            ">" => self.parent(to) == Some(from),
            "+" => self.siblings_behind(from).first() == Some(&to),
            "~" => self.siblings_behind(from).contains(&to),
            "<" => self.parent(from) == Some(to),
            "<<" => self.is_above(to, from),
            _ => self.span(to).links().any(|link| {
                let target = link.span_id().and_then(|id| self.trace.find(id));
                target.is_some_and(|span| self.tree.place(span.ix()) == from)
            }),
        }
    }

    fn matches(&self, hop: &Hop, place: usize) -> bool {
        let span = self.span(place);
        let int = |key: &str| match span.attributes().get(key) {
            Some(model::trace::ValueRef::Int(int)) => Some(int),
            _ => None,
        };
        let condition = match hop.condition {
            0 => true,
            1 => span.name() == "x",
            2 => int("a") == Some(1),
            3 => int("a").is_some_and(|a| a != 1) || int("b").is_some(),
            _ => span.kind().as_str() == "client",
        };
        let is_absent = |id| self.trace.find(id).is_none();
        condition
            && match &hop.pseudo {
                Pseudo::None => true,
                Pseudo::Root => span.parent().is_none(),
                Pseudo::Leaf => !(0..self.trace.len()).any(|other| self.is_above(place, other)),
                Pseudo::Orphan => span.parent().is_some_and(is_absent),
                Pseudo::Has(hops) => !self.walk(hops, Some(place)).is_empty(),
                Pseudo::Not(hops) => !self.walk(hops, None).contains(&place),
            }
    }

    fn walk(&self, hops: &[Hop], from: Option<usize>) -> BTreeSet<usize> {
        let mut at: Option<BTreeSet<usize>> = from.map(|from| [from].into());
        for hop in hops {
            let candidates = |from: Option<usize>| -> Vec<usize> {
                (0..self.trace.len())
                    .filter(|to| from.is_none_or(|from| self.leads(hop.combinator, from, *to)))
                    .filter(|to| self.matches(hop, *to))
                    .collect()
            };
            let picked = |found: Vec<usize>| match hop.position {
                0 => found,
                1 => found.first().copied().into_iter().collect(),
                2 => found.last().copied().into_iter().collect(),
                _ => found.get(1).copied().into_iter().collect(),
            };
            at = Some(match &at {
                None => picked(candidates(None)).into_iter().collect(),
                Some(froms) => {
                    froms.iter().flat_map(|from| picked(candidates(Some(*from)))).collect()
                }
            });
        }
        at.unwrap_or_default()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(512) })]

    #[test]
    fn selectors_select_what_they_say(
        hops in prop::collection::vec(hop(2), 1..4),
        spans in prop::collection::vec(span(Circles::Allowed), 0..20),
        trigger in prop::option::weighted(0.4, 1u8..12),
    ) {
        // Of several spans with one id, only one is selected at a time.
        let mut ids = BTreeSet::new();
        let spans = spans.into_iter().filter(|span| ids.insert(span.id));
        let spans: Vec<_> = spans.map(Drawn::on_one_host).collect();
        let trace = trace(&spans);
        let selector = written(&hops, false);
        let resolved = case::resolved(&test(&selector, &["attr:nobody not exists".to_owned()], &[]));
        let settlement =
            Settlement::default();
        let evidence = Evidence {
            trace: Some(&trace),
            trigger: trigger.and_then(id),
            answer: None,
            settlement: Some(&settlement),
        };
        let judgement = judge(&resolved, &evidence);
        // The order of arrival must not matter: the definition is evaluated on the same spans in sorted order.
        let mut ordered = spans.clone();
        ordered.sort_by_key(|span| (span.times.0, span.name, span.id));
        let trace = self::trace(&ordered);
        let tree = Tree::of(&trace);
        let first = trigger.and_then(id).and_then(|id| trace.find(id));
        let trigger = first.map(|span| tree.place(span.ix()));
        let naive = Naive { trace: &trace, tree, trigger };
        let expected: Vec<_> = naive
            .walk(&hops, None)
            .into_iter()
            .map(|place| naive.span(place))
            .map(|span| (span.id(), span.name().to_owned()))
            .collect();
        let found: Vec<_> = judgement.specs[0].assertions[0]
            .spans
            .iter()
            .map(|span| {
                assert_eq!(span.verdict, Verdict::Passed);
                (span.span_id.expect("each is about a span"), span.name.clone())
            })
            .collect();
        prop_assert_eq!(found, expected, "{}\n{:#?}", selector, spans);
    }
}
