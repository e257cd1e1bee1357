//! Triggers: a resolved request in, an answer out.
//!
//! A trigger always gives an answer: that there was none is one too, with its kind.
//!
//! Deliberately absent: a trait. It comes with the second trigger.

mod connect;
mod http;

pub use http::{BuildError, Http, Limits};
