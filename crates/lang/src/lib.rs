//! The test language: read, compile, resolve, judge.
//!
//! ```text
//! text --read--> documents --compile--> plan --resolve--> what is sent --judge--> verdicts
//! ```
//!
//! [`read`] takes a file apart and [`compile`] understands the strings in it; both tell every mistake at once, as
//! diagnostics that point at the place, also inside a YAML string; [`plans`] does both for a whole file. [`resolve`]
//! fills in variables, [`judge`] holds the evidence of a run against the plan. The grammars stand at the head of
//! `selector` and `expr`, the meaning of comparisons at the head of `compare`, what decides a verdict in `judge`.
//!
//! Deliberately absent: network, clock, randomness, files. Whatever the input is, nothing here panics.

mod compare;
mod document;
mod expr;
mod json;
mod judge;
mod lex;
mod mistake;
mod numeral;
mod plan;
mod planned;
mod property;
mod read;
mod resolve;
mod selector;
mod template;
mod value;

pub use document::{Document, Test};
pub use judge::{Evidence, judge};
pub use plan::{Plan, Settle, compile};
pub use planned::{Planned, plans};
pub use read::read;
pub use resolve::{ResolveError, Resolved, resolve};
pub use template::Vars;
