//! Checks that the language selects the same spans as the simplest possible evaluator.

mod chance;
#[path = "naive/mod.rs"]
mod evaluator;

use evaluator::check;

/// The number of cases for a fast test; `cargo xtask prove lang` takes ten thousand and more.
const CASES: u64 = 2_000;

#[test]
fn both_evaluators_select_the_same() {
    let (mut some, mut part) = (0, 0);
    for number in 0..CASES {
        let case = check(number, lang::select);
        assert!(case.difference.is_none(), "\n{}\n", case.difference.unwrap_or_default());
        some += u64::from(case.selected > 0);
        part += u64::from((1..case.spans).contains(&case.selected));
    }
    assert!(some > CASES / 2 && part > CASES / 3, "selected: {some} something, {part} a part");
}

/// Agreement is only meaningful if the comparison would detect an error.
#[test]
fn a_mistake_is_found_and_made_small() {
    let mistaken: evaluator::Answer =
        |text, trace| lang::select(&text.replace("] > span", "] >> span"), trace);
    let found = (0..CASES).find_map(|number| check(number, mistaken).difference);
    let found = found.expect("a child is not any descendant");
    assert!(found.lines().count() <= 6, "{found}");
}
