//! From strings to syntax trees and back.
//!
//! [`parse`] reads a selector, an assertion, a claim, a value or a template, [`mod@print`] writes the tree in its one form.
//! Both know the string alone. The grammar is in `docs/language/grammar.md`.
//!
//! Deliberately absent: meaning. What a tree says of a trace is in `eval`.

pub(crate) mod ast;
#[cfg(test)]
mod cases;
mod lex;
pub(crate) mod mistake;
pub(crate) mod name;
pub(crate) mod number;
pub(crate) mod parse;
pub(crate) mod print;
#[cfg(test)]
mod round_trip;
