//! Parses strings into syntax trees and prints them.
//!
//! [`parse`] parses a selector, an assertion, a claim, a value or a template, [`mod@print`] prints the tree in canonical form.
//! Both work on the string alone. The grammar is in `docs/language/grammar.md`.
//!
//! Deliberately absent: semantics. `eval` evaluates a tree on a trace.

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
