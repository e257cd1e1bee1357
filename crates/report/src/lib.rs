//! From an outcome to text: [`pretty`] for a person at a terminal, [`json`] for programs.
//!
//! Both are pure functions of the outcome. The values in it come from strangers: a span's name, a header, a body may
//! hold anything. So neither form lets a control character or an invisible one through.
//!
//! Deliberately absent: where the outcome came from, where the text goes, and any decision. A report tells the verdict
//! that is in the outcome and never makes its own.

mod json;
mod pretty;
mod text;

pub use json::{SCHEMA_VERSION, json};
pub use pretty::pretty;
pub use text::harmless;
