//! Evaluates syntax trees on a trace.
//!
//! An [`EvalContext`](world::EvalContext) is a trace with all data that is derived from it. `select` returns the spans
//! that a selector matches, `truth` evaluates whether a statement holds and whether further spans can change that,
//! `expression` evaluates values. Selections are computed on sets of tree positions (`bits`), and the predicates that
//! many selectors have on single spans are evaluated in one pass over the spans (`index`).

pub(crate) mod aggregate;
mod atom;
pub(crate) mod bits;
pub(crate) mod clocks;
pub(crate) mod contrast;
pub(crate) mod decided;
pub(crate) mod doubt;
mod drop_count;
pub(crate) mod expression;
mod extreme;
pub(crate) mod future;
pub(crate) mod gap;
mod group;
mod hop;
pub(crate) mod index;
pub(crate) mod lasting;
pub(crate) mod lookup;
mod members;
mod memo;
pub(crate) mod misses;
mod pass;
mod patterns;
pub(crate) mod queried;
pub(crate) mod relation;
mod renamed;
mod response;
pub(crate) mod select;
mod several;
mod siblings;
pub(crate) mod span_time;
pub(crate) mod summary;
pub(crate) mod times;
mod tree;
pub(crate) mod truth;
pub(crate) mod world;
