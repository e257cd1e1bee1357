#![doc = include_str!("../README.md")]
//!
//! # How it is built
//!
//! The grammars are those of `saphyr-parser` and `toml_parser`; what they report is turned into one tree of
//! [`Node`]s. Neither says which byte a decoded character came from, so each scalar is decoded a second time from
//! its raw text, this time with the places kept. Where the two decodings differ, the places are forgotten and
//! every part of the scalar points at the whole of it: a place is exact or wide, never wrong.
//!
//! # What is deliberately absent
//!
//! Meaning: this crate does not know what a document is for. Writing: it never prints YAML or TOML. Files: it reads
//! text that the caller has read. Merging, defaults and environment variables belong to the caller as well.

mod decode;
mod diagnostic;
mod draw;
mod duration;
mod fields;
mod mistakes;
mod node;
mod scalar;
mod size;
mod suggest;
mod text;
mod toml;
mod yaml;

pub use diagnostic::{Diagnostic, Diagnostics, Severity};
pub use draw::{Colour, draw};
pub use duration::{duration_nanos, is_duration_unit, parse_duration};
pub use fields::{Fields, Item};
pub use node::{Entry, Node, Value};
pub use scalar::{Scalar, Style};
pub use size::{format_size, parse_size};
pub use suggest::did_you_mean;
pub use text::{Place, Span, Text};
pub use toml::read_toml;
pub use yaml::read_yaml;

/// Reads a text that is to hold one document: TOML if its name ends so, else YAML, in which a second document is a
/// mistake. `None` is an empty text, or one of which nothing could be read.
pub fn read_one(text: &Text) -> (Option<Node>, Vec<Diagnostic>) {
    if text.name().ends_with(".toml") {
        return read_toml(text);
    }
    let (documents, mut mistakes) = read_yaml(text);
    let mut documents = documents.into_iter();
    let first = documents.next();
    mistakes.extend(documents.map(|more| {
        Diagnostic::error(text, text.first_line(more.span), "a configuration is one document")
            .label("a second one begins here")
    }));
    (first, mistakes)
}

/// The largest text that is read, in bytes.
pub const TEXT_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The deepest nesting that is read; aliases count with what they stand for.
pub const NESTING_MAX: usize = 128;

/// How many diagnostics one reading keeps; of the others only the number is told.
pub const DIAGNOSTICS_MAX: usize = 256;
