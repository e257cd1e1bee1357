//! The language and a second implementation of its reference agree, in short form; `cargo xtask prove referee` has many more
//! cases.

use bench::lang::referee;

/// Traces, each with several questions, which are evaluated three times.
const CASES: u64 = 250;
/// The lower bound of verdicts: fewer would prove little.
const VERDICTS_MIN: u64 = 5_000;

#[test]
fn the_language_judges_as_its_reference_reads() {
    let (differences, compared) = referee::differences(CASES).expect("they are judged");
    assert_eq!(differences, 0, "`cargo xtask prove referee --cases {CASES}` shows them");
    assert!(compared >= VERDICTS_MIN, "{compared} verdicts were compared");
}
