//! Selectors: which spans of a trace are meant.
//!
//! ```text
//! selector = [ part { "," part } ]                  the union of its parts; nothing at all means every span
//! part     = step { step }                          each step below a span of the one before
//! step     = "span" "[" [ filter { [ "," ] filter } ] "]" [ ":" position ]
//! filter   = name ( "=" | "contains" ) value        all of them hold
//! name     = word { "." word } | text               a word may hold "-"
//! value    = text | number | "true" | "false"
//! position = "first" | "last" | "nth_child" "(" number ")"       from 1
//! ```
//!
//! A text stands in double quotes. A quoted value is text and is compared with the text of the property; a number is
//! compared as a number (`compare.rs`). An attribute that was sent without a value matches neither. A position picks
//! from what its own step matches, anew below each span of the step before. Matches come part by part, each in
//! document order: depth first, siblings by start; none comes twice.
//!
//! Deliberately absent so far: other operators, `and`/`or`/`not`, child and sibling steps, `:has` and its kin.

pub(crate) mod ast;
mod eval;
mod miss;
mod parse;

pub(crate) use ast::Selector;
pub(crate) use eval::select;
pub(crate) use miss::nearest_misses;
pub(crate) use parse::parse;
