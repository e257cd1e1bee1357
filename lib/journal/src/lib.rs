#![doc = include_str!("../README.md")]
//!
//! # How it is built
//!
//! One short lock guards the state: an open chunk that records are copied into, the closed chunks of each segment, and
//! positions. A position counts bytes and items since the journal was opened, so the number of queued, unread or
//! unwritten items is a subtraction. Slow work runs outside of that lock: groups of records are written under a second
//! lock, acknowledgements under a third, and the reader reads files under a fourth.
//!
//! # What is deliberately absent
//!
//! Meaning: a record is bytes and a number of items. Async: a caller that waits blocks its thread. More than one
//! reader: a second destination has its own journal, so that no destination waits for another. Compression and
//! encryption: the owner can do both before appending.
#![warn(missing_docs)]

mod adopt;
mod age;
mod batch;
mod chunk;
mod counts;
mod flusher;
mod folder;
mod format;
mod group;
mod journal;
mod limits;
mod options;
mod produce;
mod reader;
mod ready;
mod recover;
mod segment;
mod settled_ranges;
mod shared;
mod state;
mod sync;
mod tally;
mod writer;

pub use batch::{Batch, Record};
pub use counts::{AppendResult, CloseReport, Counts, Why};
pub use folder::OpenError;
pub use journal::Journal;
pub use options::{Durability, Full, Options, Ready};
pub use recover::left_items;
pub use settled_ranges::Stretch;
