//! Regular expressions, each compiled once.
//!
//! They take time in proportion to the text, whatever the pattern is; how large a pattern may become is bounded here. What
//! was compiled is kept for the thread, since one pattern is held against many spans. Nothing else can be seen of that.

use std::{cell::RefCell, collections::HashMap, rc::Rc};

use regex::{Regex, RegexBuilder};

/// How many bytes a pattern may take when compiled, and again while it searches.
const PATTERN_BYTES_MAX: usize = 1 << 20;

/// How many patterns a thread keeps. A test has fewer, unless its patterns come from spans.
const KEPT_MAX: usize = 32;

thread_local! {
    static KEPT: RefCell<HashMap<String, Result<Rc<Regex>, String>>> = RefCell::default();
}

/// What `search` finds with the pattern; or what is wrong with the pattern.
pub(crate) fn with<T>(source: &str, search: impl FnOnce(&Regex) -> T) -> Result<T, String> {
    let regex = KEPT.with_borrow_mut(|kept| {
        if let Some(regex) = kept.get(source) {
            return regex.clone();
        }
        if kept.len() == KEPT_MAX {
            kept.clear();
        }
        kept.entry(source.to_owned()).or_insert_with(|| compile(source).map(Rc::new)).clone()
    })?;
    Ok(search(&regex))
}

/// What is wrong with a pattern, for the test that holds it.
pub(crate) fn check(source: &str) -> Result<(), String> {
    compile(source).map(|_| ())
}

fn compile(source: &str) -> Result<Regex, String> {
    let regex = RegexBuilder::new(source)
        .size_limit(PATTERN_BYTES_MAX)
        .dfa_size_limit(PATTERN_BYTES_MAX)
        .build();
    regex.map_err(|error| match error {
        // Its text shows the pattern, line by line; the last line says what is wrong.
        regex::Error::Syntax(text) => {
            let what = text.rsplit_once("error: ").map_or("it is malformed", |(_, what)| what);
            format!("the pattern is no regular expression: {}", what.trim())
        }
        _ => "the pattern is too large".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::{KEPT_MAX, check, with};

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
    fn more_patterns_than_are_kept_all_match() {
        for number in 0..3 * KEPT_MAX {
            let source = format!("^{number}$");
            assert_eq!(with(&source, |regex| regex.is_match(&number.to_string())), Ok(true));
        }
        assert_eq!(with(r"^\p{Han}+$", |regex| regex.is_match("日本語")), Ok(true));
        assert_eq!(with(r"(?i)É", |regex| regex.is_match("é")), Ok(true));
    }
}
