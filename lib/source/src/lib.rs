#![doc = include_str!("../README.md")]
//!
//! # How it is built
//!
//! The parsers are `saphyr-parser` and `toml_parser`; their events become one tree of [`Node`]s. Neither parser reports
//! which byte a decoded character came from, so each scalar is decoded a second time from its raw text, this time with
//! its locations. If the two decodings differ, the locations are discarded and every part of the scalar points at the
//! entire scalar: a location is exact or wide, never wrong.
//!
//! # What is deliberately absent
//!
//! Meaning: this crate does not know the purpose of a document. Writing: it never prints YAML or TOML. Files: it parses
//! text that the caller has read. Merging, defaults and environment variables belong to the caller too.

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

/// Reads a text with a single document: TOML if its name ends in `.toml`, otherwise YAML, in which a second document is
/// an error. Returns `None` for an empty text, or for one in which nothing could be read.
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

/// The maximum size of a text that is read, in bytes.
pub const TEXT_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The maximum nesting that is read; the nesting of an alias includes that of its anchor.
pub const NESTING_MAX: usize = 128;

/// The maximum number of diagnostics that one read stores; the others are only counted.
pub const DIAGNOSTICS_MAX: usize = 256;
