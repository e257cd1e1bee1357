//! Decoding and encoding preserve the content: random messages, fixed messages, broken messages.

mod counting;
mod differential;
mod golden;
mod raw;
mod reference;
mod roundtrip;
mod splitting;
mod strategy;
