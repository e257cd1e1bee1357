//! A trace that loses nothing of OTLP, laid out for a million spans in memory.
//!
//! Strings, resources and scopes stand once; spans, attributes, events and links are fixed-size rows in
//! vectors of their own, read through views ([`Span`], [`ValueRef`]). A trace grows by appending, since spans
//! come late. The reasons and the alternatives are in `docs/adr/0007-trace-layout.md`.
//!
//! Deliberately absent: removal in place, and any wire format (that is `otlp`).

mod data;
mod store;
mod strings;
mod tree;
mod view;

pub use data::{
    EntityData, EventData, Kind, LinkData, ResourceData, ScopeData, SpanData, Status, StatusCode,
    Value,
};
pub use store::{Pushed, ResourceIx, ScopeIx, SpanIx, Trace, TraceFull};
pub use tree::Tree;
pub use view::{Attributes, Event, Link, Resource, Scope, Span, ValueRef, Values};
