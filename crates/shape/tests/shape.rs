//! Checks the properties of shapes: stable for every run of the same operation, parsed as written, compared soundly.

mod drawing;

use drawing::{Drawn, spans, trace};
use model::{
    SpanId, Trace, TraceId,
    trace::{ResourceData, ScopeData, SpanData, Tree},
};
use proptest::{
    prelude::{Just, ProptestConfig, Strategy, any, prop_assert_eq, proptest},
    sample::Index,
};
use shape::{Count, Difference, Keep, Node, Shape, ShapeError, What, accept, diff, read, write};
use source::{Colour, Text, draw};

fn shape(trace: &Trace) -> Shape {
    Shape::of(trace, &Keep::default()).expect("a small trace has a shape")
}

fn parsed(text: &str) -> Shape {
    let (shape, diagnostics) = read(&Text::new("a.shape", text));
    shape.ok_or_else(|| draw(&diagnostics, Colour::Never)).expect(text)
}

fn in_order(drawn: &[Drawn]) -> Vec<usize> {
    (0..drawn.len()).collect()
}

fn drawn() -> impl Strategy<Value = (Vec<Drawn>, Vec<usize>)> {
    spans(24).prop_flat_map(|drawn| {
        let order = Just(in_order(&drawn)).prop_shuffle();
        (Just(drawn), order)
    })
}

/// Returns the names of all mutants, and checks that they are unique.
fn names(trace: &Trace) -> Vec<String> {
    let mutants = shape::mutants(trace, &Keep::default(), usize::MAX, None).list;
    let mut names: Vec<_> = mutants.into_iter().map(|mutant| mutant.id).collect();
    names.sort();
    let all = names.len();
    names.dedup();
    assert_eq!(names.len(), all, "{names:?}");
    names
}

/// Returns the number of spans, including their counts.
fn total(nodes: &[Node]) -> u64 {
    let of = |node: &Node| {
        let below = total(&node.children);
        node.count.min * (u64::from(matches!(node.what, What::Span(_))) + below)
    };
    nodes.iter().map(of).sum()
}

/// Widens counts, so that the shape still matches the trace.
fn widened(nodes: &mut [Node], by: &[Index]) {
    for (node, by) in nodes.iter_mut().zip(by.iter().cycle()) {
        match by.index(3) {
            0 => {}
            1 => node.count = Count { min: node.count.min.saturating_sub(1), max: None },
            _ => node.count.max = node.count.max.map(|max| max + 2),
        }
        node.notes.extend((by.index(4) == 0).then(|| " a note".to_owned()));
        widened(&mut node.children, &[*by]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn arrival_ids_and_times_do_not_count(
        (drawn, order) in drawn(), seeds in any::<[u64; 2]>(), starts in any::<[u64; 2]>()
    ) {
        let one = trace(&drawn, seeds[0], starts[0], &in_order(&drawn));
        let other = trace(&drawn, seeds[1], starts[1], &order);
        // Equal ids from a seed, and cycles, make another trace.
        if one.len() == other.len() && one.conflicts().is_empty() && other.conflicts().is_empty() {
            prop_assert_eq!(write(&shape(&one)), write(&shape(&other)));
            prop_assert_eq!(diff(&shape(&one), &shape(&other)), Ok(Vec::new()));
            prop_assert_eq!(names(&one), names(&other), "and so have its mutants");
        }
    }

    #[test]
    fn what_is_written_is_read_back((drawn, _) in drawn(), by in any::<[Index; 5]>()) {
        let mut shape = shape(&trace(&drawn, 5, 0, &in_order(&drawn)));
        widened(&mut shape.roots, &by);
        let text = write(&shape);
        // Widening may have made two nodes equal; the parser folds them again.
        let read = parsed(&text);
        prop_assert_eq!(&parsed(&write(&read)), &read);
        prop_assert_eq!(write(&parsed(&write(&read))), write(&read));
    }

    #[test]
    fn a_shape_is_what_was_written((drawn, _) in drawn()) {
        let shape = shape(&trace(&drawn, 5, 0, &in_order(&drawn)));
        prop_assert_eq!(parsed(&write(&shape)), shape);
    }

    #[test]
    fn folding_loses_no_span((drawn, _) in drawn()) {
        let trace = trace(&drawn, 5, 0, &in_order(&drawn));
        let shape = shape(&trace);
        prop_assert_eq!(total(&shape.roots), trace.len() as u64);
        for node in &shape.roots {
            let same = shape.roots.iter().filter(|it| it.what == node.what && it.children == node.children);
            prop_assert_eq!(same.count(), 1);
        }
        prop_assert_eq!(Tree::of(&trace).order().len(), trace.len());
    }

    #[test]
    fn a_difference_is_found_exactly_where_there_is_one((a, _) in drawn(), (b, _) in drawn()) {
        let [a, b] = [a, b].map(|drawn| shape(&trace(&drawn, 5, 0, &in_order(&drawn))));
        prop_assert_eq!(diff(&a, &a), Ok(Vec::new()));
        let differences = diff(&a, &b).expect("small");
        prop_assert_eq!(differences.is_empty(), a == b, "{:?}", differences);
        let accepted = accept(&a, &b);
        prop_assert_eq!(diff(&accepted, &b), Ok(Vec::new()));
        prop_assert_eq!(accepted, b, "what has no range is taken over as it is");
    }

    #[test]
    fn ranges_that_still_hold_are_kept((a, _) in drawn(), (b, _) in drawn(), by in any::<[Index; 5]>()) {
        let [a, b] = [a, b].map(|drawn| shape(&trace(&drawn, 5, 0, &in_order(&drawn))));
        let mut wide = a.clone();
        widened(&mut wide.roots, &by);
        prop_assert_eq!(diff(&wide, &a), Ok(Vec::new()));
        prop_assert_eq!(&accept(&wide, &a).roots, &parsed(&write(&wide)).roots);
        let accepted = accept(&wide, &b);
        prop_assert_eq!(diff(&accepted, &b), Ok(Vec::new()));
        prop_assert_eq!(&accept(&accepted, &b), &accepted, "twice is once");
    }

    #[test]
    fn no_text_is_too_odd(text in "\\PC{0,40}", lines in proptest::collection::vec("[ a:!→x×0-9.\"(),=\\[\\]#-]{0,20}", 0..8)) {
        let _ = read(&Text::new("a", text));
        let text = format!("qualitytrace shape 1\nkeep: none\n\n{}", lines.join("\n"));
        let (shape, diagnostics) = read(&Text::new("a", text));
        prop_assert_eq!(shape.is_none(), !diagnostics.is_empty());
    }
}

fn chain(length: u64) -> Trace {
    let mut trace = Trace::new(TraceId::from_random([1; 16]));
    let resource = trace.resource(ResourceData::default()).expect("room");
    let scope = trace.scope(ScopeData::default()).expect("room");
    let id = |number: u64| SpanId::from_random((number + 1).to_be_bytes());
    for number in 0..length {
        let parent = (number > 0).then(|| id(number - 1));
        trace.push(resource, scope, SpanData::new(id(number), parent, "down")).expect("room");
    }
    trace
}

#[test]
fn a_chain_that_nobody_can_read_is_refused() {
    let refused = Shape::of(&chain(100_000), &Keep::default()).expect_err("too deep");
    assert_eq!(refused, ShapeError::TooDeep { depth: 100_000 });
    let mutants = shape::mutants(&chain(5_000), &Keep::default(), 10, None);
    assert_eq!(mutants.list.len(), 10);
    // Five for each span, except for the root, which has no other parent, and its child, which has no sibling.
    assert_eq!(mutants.left_out.len(), 5 * 5_000 - 2 - 10);
}

/// The messages for a change of a line or two.
#[test]
fn differences_are_told_as_a_person_would() {
    let base = "gateway: POST /checkout (server)\n  orders: POST /orders (server) [http.route=/orders]\n    orders: reserve ×2\n    orders: charge\n      payments: pay\n";
    let cases = [
        (
            "    orders: charge\n      payments: pay\n",
            "",
            "missing: orders: charge and 1 span under it, under gateway: POST /checkout > orders: POST /orders",
        ),
        ("", "  orders: new\n", "extra: orders: new, under gateway: POST /checkout"),
        (
            "reserve ×2",
            "reserve ×3",
            "count 2 → 3: orders: reserve, under gateway: POST /checkout > orders: POST /orders",
        ),
        (
            "reserve ×2",
            "reserve",
            "count 2 → 1: orders: reserve, under gateway: POST /checkout > orders: POST /orders",
        ),
        (
            "orders: charge",
            "orders: charge (error)",
            "status changed: unset → error, on orders: charge, under gateway: POST /checkout > orders: POST /orders",
        ),
        (
            "/orders]",
            "/all]",
            "attribute http.route changed: /orders → /all, on orders: POST /orders, under gateway: POST /checkout",
        ),
        (
            " [http.route=/orders]",
            "",
            "attribute http.route changed: /orders → none, on orders: POST /orders, under gateway: POST /checkout",
        ),
        (
            "    orders: charge\n      payments: pay\n",
            "    payments: pay\n    orders: charge\n",
            "moved: payments: pay, from under gateway: POST /checkout > orders: POST /orders > orders: charge to under gateway: POST /checkout > orders: POST /orders",
        ),
        (
            "(server)\n  orders",
            "(client)\n  orders",
            "kind changed: server → client, on gateway: POST /checkout, at the top",
        ),
        (
            "charge\n",
            "charge\n      ! exception\n",
            "extra: ! exception, under gateway: POST /checkout > orders: POST /orders > orders: charge",
        ),
    ];
    let whole = |tree: &str| parsed(&format!("qualitytrace shape 1\n\n{tree}"));
    for (from, to, expected) in cases {
        let changed = match from {
            "" => format!("{base}{to}"),
            from => base.replacen(from, to, 1),
        };
        let told = diff(&whole(base), &whole(&changed)).expect("small");
        let told: Vec<_> = told.iter().map(Difference::to_string).collect();
        assert_eq!(told, [expected], "{changed}");
    }
    let dropped = base.replace("    orders: charge\n      payments: pay\n", "    payments: pay\n");
    let told = diff(&whole(base), &whole(&dropped)).expect("small");
    let told: Vec<_> = told.iter().map(Difference::word).collect();
    assert_eq!(told, ["moved", "missing"], "a span that is gone leaves those under it behind");
}

/// Manual edits: ranges, `x` for `×`, values that may be anything, lines in any order.
#[test]
fn a_person_may_write() {
    let asked = parsed(
        "\nqualitytrace shape 1\nkeep: http.route\n# who wrote it\n\n# polls\na: poll x2..5\na: b [http.route=*]\na: maybe ×0..1\n  a: never ×0\na: many ×2..\n",
    );
    let tree = |polls: u64| {
        parsed(&format!(
            "qualitytrace shape 1\nkeep: http.route\n\na: b [http.route=\"7 8\"]\na: many ×90\na: poll ×{polls}\n"
        ))
    };
    for polls in 2..=5 {
        assert_eq!(diff(&asked, &tree(polls)), Ok(Vec::new()), "{polls}");
        assert_eq!(accept(&asked, &tree(polls)), asked);
    }
    let told = diff(&asked, &tree(6)).expect("small");
    assert_eq!(told[0].to_string(), "count 2..5 → 6: a: poll, at the top");
    let accepted = write(&accept(&asked, &tree(6)));
    let expected = "# who wrote it\n\na: b [http.route=*]\na: many ×2..\na: maybe ×0..1\n  a: never ×0\n# polls\na: poll ×6\n";
    assert!(accepted.ends_with(expected), "{accepted}");
}

/// Two expected nodes with overlapping ranges do not take each other's nodes.
#[test]
fn who_stands_for_whom_does_not_hang_on_the_order() {
    let asked = parsed("qualitytrace shape 1\n\na: r\n  a: x ×1..2\na: r\n  a: x ×2..3\n");
    let both = parsed("qualitytrace shape 1\n\na: r\n  a: x ×2\na: r\n  a: x\n");
    assert_eq!(diff(&asked, &both), Ok(Vec::new()));
    let upper = parsed("qualitytrace shape 1\n\na: r\n  a: x ×2\na: r\n  a: x ×3\n");
    assert_eq!(diff(&asked, &upper), Ok(Vec::new()));
    let neither = parsed("qualitytrace shape 1\n\na: r ×2\n  a: x ×3\n");
    assert_ne!(diff(&asked, &neither), Ok(Vec::new()));
}
