//! What a tree says of a trace.
//!
//! A [`World`](world::World) is a trace with everything that was found out about it. `select` finds the spans that a
//! selector means, `truth` says whether a statement holds and whether further spans can change that, `expression` what a
//! value is. Selections are computed on sets of places of the tree (`bits`), and what many selectors ask of single spans
//! is found out in one pass over them (`index`).

pub(crate) mod aggregate;
pub(crate) mod asked;
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
pub(crate) mod relation;
mod renamed;
pub(crate) mod resolve;
pub(crate) mod select;
mod several;
mod siblings;
pub(crate) mod span_time;
pub(crate) mod summary;
pub(crate) mod times;
mod tree;
pub(crate) mod truth;
pub(crate) mod world;
