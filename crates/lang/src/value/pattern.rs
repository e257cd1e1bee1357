//! Regular expressions.
//!
//! Their time is linear in the text, whatever the pattern is; the size of a pattern is bounded here. A pattern of the test is
//! compiled once and cached in its [`Literal`](super::Literal); a pattern from a span is compiled for a single search.

use regex::{Regex, RegexBuilder};
use regex_syntax::hir::{Hir, HirKind};

use crate::budget;

/// The maximum size of a compiled pattern in bytes, and of its search memory.
const PATTERN_BYTES_MAX: usize = 1 << 20;

/// The size classes of patterns, in bytes: each pattern costs the budget as much as the smallest class that it fits.
const SIZES: [usize; 4] = [1 << 14, 1 << 16, 1 << 18, PATTERN_BYTES_MAX];

/// The cost of compiling a pattern of the smallest class; larger ones cost by their size.
const COMPILE_STEPS: u64 = 8192;

/// The number of positions of a pattern for which one byte of text costs one step. A position is a character or a class of the
/// pattern, counted with its repetitions: all of them may be active at once, and then each byte is matched against all of them.
const POSITIONS_BY_STEP: u64 = 4;

/// With more positions than this, states computed for one byte are rarely reusable for the next.
const POSITIONS_QUICK_MAX: u64 = 256;

/// The cost of a position for each byte in that case.
const POSITION_STEPS: u64 = 12;

/// The fixed cost of a search.
const SEARCH_STEPS: u64 = 16;

/// A compiled pattern.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    regex: Regex,
    /// The size class in bytes.
    size: usize,
    /// The cost of a byte of text.
    byte_steps: u64,
}

impl Pattern {
    /// Whether the pattern matches anywhere in a text; `false` if the search exceeds the budget.
    pub(crate) fn is_match(&self, text: &str) -> bool {
        self.may_search(text) && self.regex.is_match(text)
    }

    /// Returns its maximum size in bytes, including the search memory.
    pub(crate) fn bytes(&self) -> u64 {
        2 * self.size as u64
    }

    /// Returns the cost of compiling it.
    pub(crate) fn compile_steps(&self) -> u64 {
        if self.size == SIZES[0] { COMPILE_STEPS } else { 2 * self.size as u64 }
    }

    fn may_search(&self, text: &str) -> bool {
        budget::spend(
            SEARCH_STEPS.saturating_add(self.byte_steps.saturating_mul(text.len() as u64)),
        )
    }

    /// Returns all matches, from left to right.
    pub(crate) fn find_all<'t>(&self, text: &'t str) -> impl Iterator<Item = &'t str> {
        let text = if self.may_search(text) { text } else { "" };
        self.regex.find_iter(text).map(|found| found.as_str())
    }

    /// Returns the groups of all matches; a group that did not participate is the empty text.
    pub(crate) fn groups_of_all<'t>(&self, text: &'t str) -> impl Iterator<Item = &'t str> {
        // The engine finds groups by a slower method than matches.
        let text = if self.may_search(text) && self.may_search(text) { text } else { "" };
        self.regex.captures_iter(text).flat_map(|captures| {
            let group = |index| captures.get(index).map_or("", |group| group.as_str());
            (1..captures.len()).map(group).collect::<Vec<_>>()
        })
    }
}

/// Validates a pattern of a test; the error is the reason.
pub(crate) fn check(source: &str) -> Result<(), String> {
    compile(source).map(|_| ())
}

/// Compiles a pattern; the error is the reason why it is invalid.
pub(crate) fn compile(source: &str) -> Result<Pattern, String> {
    let mut size = SIZES[0];
    loop {
        let mut builder = RegexBuilder::new(source);
        match builder.size_limit(size).dfa_size_limit(size.max(SIZES[2])).build() {
            Ok(regex) => {
                let byte_steps = match positions_of(source) {
                    quick @ ..=POSITIONS_QUICK_MAX => 1 + quick / POSITIONS_BY_STEP,
                    many => many.saturating_mul(POSITION_STEPS),
                };
                return Ok(Pattern { regex, size, byte_steps });
            }
            Err(regex::Error::CompiledTooBig(_)) if size < PATTERN_BYTES_MAX => size *= 4,
            // The error text shows the pattern line by line; its last line is the reason.
            Err(regex::Error::Syntax(text)) => {
                let what = text.rsplit_once("error: ").map_or("it is malformed", |(_, what)| what);
                return Err(format!("the pattern is no regular expression: {}", what.trim()));
            }
            Err(_) => return Err("the pattern is too large".to_owned()),
        }
    }
}

fn positions_of(source: &str) -> u64 {
    regex_syntax::parse(source).map_or(0, |hir| positions(&hir))
}

/// Counts positions. The recursion is as deep as a pattern may nest.
fn positions(hir: &Hir) -> u64 {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => 0,
        HirKind::Literal(literal) => literal.0.len() as u64,
        HirKind::Class(_) => 1,
        HirKind::Capture(capture) => positions(&capture.sub),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => parts.iter().map(positions).sum(),
        HirKind::Repetition(repetition) => {
            let times = repetition.max.unwrap_or(repetition.min).max(1);
            positions(&repetition.sub).saturating_mul(times.into())
        }
    }
}

/// Compiles a pattern for a single search.
pub(crate) fn compile_for_once(source: &str) -> Result<Pattern, String> {
    let pattern = compile(source)?;
    budget::spend(pattern.compile_steps());
    Ok(pattern)
}

#[cfg(test)]
mod tests {
    use super::{check, compile, positions_of};

    #[test]
    fn mistakes_are_told_without_the_pattern() {
        for (source, expected) in [
            ("(", "the pattern is no regular expression: unclosed group"),
            ("[a", "the pattern is no regular expression: unclosed character class"),
            (
                "(?=x)",
                "the pattern is no regular expression: look-around, including look-ahead and look-behind, is not supported",
            ),
            ("(a{1000}){1000}", "the pattern is too large"),
        ] {
            assert_eq!(check(source), Err(expected.to_owned()), "{source}");
        }
    }

    #[test]
    fn a_byte_costs_by_what_may_be_possible_at_once() {
        for (source, expected) in [
            ("", 0),
            (r"^\w+$", 1),
            (r"^user-\d*@.*org$", 11),
            ("(a|bc){0,50}", 150),
            ("(?:[ab]{1,100}x){30}y", 3031),
        ] {
            assert_eq!(positions_of(source), expected, "{source}");
        }
    }

    #[test]
    fn texts_match_as_unicode() {
        for (source, text) in [(r"^\p{Han}+$", "日本語"), (r"(?i)É", "é")] {
            assert!(compile(source).is_ok_and(|pattern| pattern.is_match(text)), "{source}");
        }
    }
}
