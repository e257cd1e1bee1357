#![doc = include_str!("../README.md")]
//!
//! # How it is built
//!
//! One short lock guards the state: an open chunk that records are copied into, the closed chunks of each segment, and
//! positions. A position counts bytes and items over the whole life of the journal, so what is queued, unread or
//! unwritten is a subtraction. What takes time is done outside of that lock: groups of records are written under a
//! lock of their own, acknowledgements under another, and the reader reads files under a third.
//!
//! # What is deliberately absent
//!
//! Meaning: a record is bytes and a number of items. Async: whoever waits, waits in a thread. More than one reader:
//! a second destination has a journal of its own, so that none waits for another. Compression and encryption: the
//! owner can do both before appending.
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
