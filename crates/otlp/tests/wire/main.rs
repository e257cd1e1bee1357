//! What goes in comes out: random messages, fixed messages, broken messages.

mod counting;
mod golden;
mod roundtrip;
mod splitting;
mod strategy;
