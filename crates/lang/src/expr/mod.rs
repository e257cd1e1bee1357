//! Expressions: what is asserted of a span, and what an output takes from one.
//!
//! ```text
//! assertion  = term comparator term
//! value      = term
//! term       = "attr:" name | text | number | duration | "true" | "false"
//! comparator = "=" | "!=" | "<" | "<=" | ">" | ">=" | "contains" | "not-contains"
//! name       = letters, digits, "_", "." and "-" | text
//! number     = [ "-" ] digits [ "." digits ]
//! duration   = number [ " " ] unit { digits [ "." digits ] unit }
//! unit       = "ns" | "us" | "µs" | "ms" | "s" | "m" | "h"
//! ```
//!
//! A text stands in single or double quotes; a backslash before the same quote escapes it and otherwise stands for
//! itself. What the comparators mean is in `compare.rs`, what a name means in `property.rs`.
//!
//! Deliberately absent so far, and refused by name: filters (`|`), functions, arithmetic, lists, parentheses,
//! variables, `${…}`, `and`, `or` and `not`.

pub(crate) mod ast;
mod eval;
mod parse;

pub(crate) use ast::{Assertion, Term};
pub(crate) use eval::{Doubt, evaluate, output};
pub(crate) use parse::{parse_assertion, parse_value};
