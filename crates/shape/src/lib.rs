//! What a trace looks like apart from its accidents.
//!
//! [`Shape::of`] takes ids, times and volatile values from a trace, puts siblings into one order and folds equal ones to
//! counts. [`write()`] makes a text of a shape that people read, edit and commit, and [`read()`] takes it back; [`diff()`]
//! tells how a trace differs from such a text, [`accept()`] brings the text up to date and keeps what a person said in it.
//! [`mutants`] lists how a trace could have been otherwise, so that tests can be asked whether they would have noticed.
//!
//! Deliberately absent: files, terminals, and any judgement of a trace, which is `lang`'s.

mod accept;
mod cover;
mod diff;
mod keep;
mod literal;
mod mutant;
mod node;
mod of;
mod read;
mod volatile;
mod write;

pub use accept::accept;
pub use diff::{Difference, TooMuch, diff};
pub use keep::{InvalidKeep, Keep};
pub use literal::Literal;
pub use mutant::{Mutant, Mutants, Operator, Parts, mutants};
pub use node::{Attribute, Count, Event, Link, Node, Shape, Span, What};
pub use of::ShapeError;
pub use read::read;
pub use write::write;

/// Levels of a shape at the most: deeper ones nobody reads.
pub const DEPTH_MAX: usize = 256;

/// Lines of a shape at the most.
pub const LINES_MAX: usize = 20_000;
