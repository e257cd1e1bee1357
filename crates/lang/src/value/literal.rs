//! A text that is written in the test, or replaces one that is, with its compiled forms.

use std::{
    fmt,
    ops::Deref,
    sync::{Arc, OnceLock},
};

use super::{
    json_path::{self, Query},
    pattern::{self, Pattern},
};

/// A text of the test. It is compiled as a pattern and as a path at most once, on first use. The text owns both, so that the
/// thousandth pattern of a test costs the same as the first.
#[derive(Clone, Default)]
pub(crate) struct Literal {
    text: String,
    pattern: OnceLock<Arc<Result<Pattern, String>>>,
    path: OnceLock<Arc<Result<Query, String>>>,
}

impl Literal {
    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the text as a regular expression; the error is the reason why it is invalid.
    pub(crate) fn pattern(&self) -> Result<&Pattern, &str> {
        let compiled = self.pattern.get_or_init(|| Arc::new(pattern::compile(&self.text)));
        (**compiled).as_ref().map_err(String::as_str)
    }

    /// Returns the text as a JSON path; the error is the reason why it is invalid.
    pub(crate) fn path(&self) -> Result<&Query, &str> {
        let compiled = self.path.get_or_init(|| Arc::new(json_path::parse(&self.text)));
        (**compiled).as_ref().map_err(String::as_str)
    }
}

impl From<String> for Literal {
    fn from(text: String) -> Self {
        Self { text, ..Self::default() }
    }
}

impl Deref for Literal {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl PartialEq for Literal {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl PartialEq<str> for Literal {
    fn eq(&self, other: &str) -> bool {
        self.text == other
    }
}

impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text.fmt(f)
    }
}

impl fmt::Debug for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::Literal;

    #[test]
    fn a_pattern_is_compiled_once() {
        let literals: Vec<_> = (0..100).map(|n| Literal::from(format!("^{n}$"))).collect();
        let compiled = |literal: &Literal| std::ptr::from_ref(literal.pattern().expect("one"));
        let first: Vec<_> = literals.iter().map(compiled).collect();
        assert_eq!(literals.iter().map(compiled).collect::<Vec<_>>(), first);
        // A clone of a tree shares the compiled forms.
        assert_eq!(literals.clone().iter().map(compiled).collect::<Vec<_>>(), first);
        for (number, literal) in literals.iter().enumerate() {
            let pattern = literal.pattern().expect("one");
            assert!(pattern.is_match(&number.to_string()) && !pattern.is_match("x"), "{number}");
        }
    }
}
