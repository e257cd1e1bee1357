//! Property tests: a printed tree parses to the same tree; invalid strings are rejected and nothing panics.

mod draw;

use proptest::prelude::{ProptestConfig, Strategy, any, prop, prop_oneof, proptest};

use draw::{DrawContext, Tape, selector, statement, value};

use super::{
    ast::{Expr, Selector},
    parse::{self, ParseResult},
    print,
};

fn tapes() -> impl Strategy<Value = Vec<u16>> {
    prop::collection::vec(any::<u16>(), 0..60)
}

/// Parses the printed tree and checks that it is equal.
#[track_caller]
fn comes_back(tree: &Expr, read: fn(&str) -> ParseResult<Expr>) {
    for quote in ['"', '\''] {
        let printed = print::expression_in(tree, quote);
        let again = read(&printed);
        assert_eq!(again.tree.as_ref(), Some(tree), "{printed}\n{:#?}", again.mistakes);
    }
}

#[track_caller]
fn selector_comes_back(tree: &Selector) {
    let printed = print::selector(tree);
    let again = parse::selector(&printed);
    assert_eq!(again.tree.as_ref(), Some(tree), "{printed}\n{:#?}", again.mistakes);
}

/// Every parser accepts any string without a panic; accepted strings round-trip, and rejections have a range.
fn takes(source: &str) {
    fn places<T>(source: &str, parsed: &ParseResult<T>) {
        assert_eq!(parsed.tree.is_none(), parsed.mistakes.iter().any(|m| m.is_error()), "{source}");
        for mistake in &parsed.mistakes {
            assert!(source.get(mistake.range.clone()).is_some(), "{source:?} {mistake:?}");
        }
    }
    for read in [parse::assertion, parse::claim, parse::value] {
        let parsed = read(source);
        places(source, &parsed);
        if let Some(tree) = &parsed.tree {
            comes_back(tree, read);
        }
    }
    let parsed = parse::selector(source);
    places(source, &parsed);
    if let Some(tree) = &parsed.tree {
        selector_comes_back(tree);
    }
    places(source, &parse::template(source));
}

/// Fragments of the language, valid and invalid.
const PIECES: &str = "span [ ] name = contains not-contains \"a\" 'a' \" ' \\ , . : first nth_child ( ) 2 - 0x2 1.5 5ms \
    attr: attr:name attr:tracetest.selected_spans.count var:x ${ } != < >> => == | || && ! json_path regex length + * / \
    and or not true null // /* */ é 日本 🚀 every some no has self before calls count sum p95 percentile gap of by event \
    link in between exists matches response.status resource.a duration uuid randomInt span[] root { \
    9999999999999999999999999999999999999999999";

fn pieces() -> Vec<&'static str> {
    PIECES.split_whitespace().chain([" ", "\n", "5 ms"]).collect()
}

fn soup() -> impl Strategy<Value = String> {
    let pieces = || prop::collection::vec(prop::sample::select(pieces()), 0..24);
    prop_oneof![
        pieces().prop_map(|pieces| pieces.concat()),
        pieces().prop_map(|pieces| pieces.join(" ")),
        any::<String>(),
    ]
}

/// Returns the string with some of its words dropped, doubled or swapped.
fn mutated(source: &str, slips: &[(u16, u8)]) -> String {
    let mut words: Vec<String> = Vec::new();
    let mut last = None;
    for c in source.chars() {
        let kind = (c.is_alphanumeric(), c.is_whitespace());
        match words.last_mut() {
            Some(word) if last == Some(kind) && kind.0 => word.push(c),
            _ => words.push(c.to_string()),
        }
        last = Some(kind);
    }
    for (at, how) in slips {
        if words.is_empty() {
            break;
        }
        let at = usize::from(*at) % words.len();
        match how % 4 {
            0 => drop(words.remove(at)),
            1 => words.insert(at, words[at].clone()),
            2 => {
                let other = usize::from(*how) % words.len();
                words.swap(at, other);
            }
            _ => words.insert(at, pieces()[usize::from(*how) % pieces().len()].to_owned()),
        }
    }
    words.concat()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1024) })]

    #[test]
    fn trees_come_back(tape in tapes()) {
        let claim = statement(&mut Tape(tape.clone()), DrawContext::CLAIM);
        comes_back(&claim, parse::claim);
        let assertion = statement(&mut Tape(tape.clone()), DrawContext::ASSERTION);
        comes_back(&assertion, parse::assertion);
        let value = value(&mut Tape(tape.clone()), DrawContext::ASSERTION);
        comes_back(&value, parse::value);
        selector_comes_back(&selector(&mut Tape(tape), DrawContext::SELECTOR));
    }

    #[test]
    fn slips_do_no_harm(tape in tapes(), slips in prop::collection::vec(any::<(u16, u8)>(), 1..4)) {
        let claim = print::expression(&statement(&mut Tape(tape.clone()), DrawContext::CLAIM));
        takes(&mutated(&claim, &slips));
        let selector = print::selector(&selector(&mut Tape(tape), DrawContext::SELECTOR));
        takes(&mutated(&selector, &slips));
    }

    #[test]
    fn no_string_panics(source in soup()) {
        takes(&source);
    }
}

#[test]
fn depth_and_length_are_bounded() {
    for (source, is_taken) in [
        (format!("{}1 = 1{}", "(".repeat(64), ")".repeat(64)), true),
        (format!("{}1 = 1{}", "(".repeat(65), ")".repeat(65)), false),
        (format!("{}1 = 1", "1 + ".repeat(255)), true),
        (format!("{}1 = 1", "1 + ".repeat(256)), false),
        (format!("1{} = 1", " | length".repeat(256)), false),
        (format!("attr:x in [1{}]", ", 1".repeat(4096)), true),
        (format!("attr:x = \"{}\"", "a".repeat(65_000)), true),
        (format!("attr:x = \"{}\"", "a".repeat(66_000)), false),
    ] {
        assert_eq!(parse::assertion(&source).tree.is_some(), is_taken, "{source:.80}");
    }
    for (inserts, is_taken) in [(1024, true), (1025, false)] {
        let source = "${var:a}".repeat(inserts);
        assert_eq!(parse::template(&source).tree.is_some(), is_taken, "{inserts} inserts");
    }
    for (open, inside, close) in [
        ("(", "1 = 1", ")"),
        ("not ", "1 = 1", ""),
        ("[", "", "]"),
        ("count(self span[", "", "]) = 1"),
        ("span[]:has(", "span[]", ")"),
        ("span[]:not(", "span[]", ")"),
        ("every self has ", "1 = 1", ""),
        ("-(", "1", ")"),
        ("1 + ", "1", ""),
        ("1 | length | ", "", ""),
        ("uuid(", "", ")"),
        ("event[", "", "]"),
        ("\"${", "", "}\""),
    ] {
        for depth in [1, 8, 60, 64, 65, 20_000] {
            takes(&format!("{}{inside}{}", open.repeat(depth), close.repeat(depth)));
        }
    }
}
