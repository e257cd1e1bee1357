//! Shapes: traces without ids, times and other values that change from run to run.
//!
//! [`Shape::of`] removes ids, times and volatile values from a trace, sorts siblings into canonical order and folds equal ones
//! into counts. [`write()`] renders a shape as a text that people read, edit and commit, and [`read()`] parses it; [`diff()`]
//! reports the differences between a trace and such a text, [`accept()`] updates the text and preserves manual edits. [`mutants`]
//! lists variations of a trace, to check whether tests would detect them.
//!
//! Deliberately absent: files, terminals, and any judgement of a trace, which is the task of `lang`.

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

/// The maximum depth of a shape: deeper ones are unreadable.
pub const DEPTH_MAX: usize = 256;

/// The maximum number of lines of a shape.
pub const LINES_MAX: usize = 20_000;
