//! Traces as columns: a fixed trace, random traces, and very deep ones.

mod deep;
mod golden;
mod random;
mod reader;
