//! A trace that loses no data of OTLP, with a memory layout for a million spans.
//!
//! Strings, resources and scopes are stored once. Spans, attributes, events and links are fixed-size rows in their own vectors,
//! read through views ([`Span`], [`ValueRef`]). A trace grows by appending, since spans arrive late. The reasons and the
//! alternatives are in `docs/adr/0007-trace-layout.md`.
//!
//! Deliberately absent: removal in place, and any wire format (that is `otlp`).

mod content;
mod data;
mod number;
mod push;
mod store;
mod strings;
mod tree;
mod view;
mod writer;

pub use data::{
    DROPPED_UNKNOWN, EntityData, EventData, Kind, LinkData, ResourceData, ScopeData, SpanData,
    Status, StatusCode, Value,
};
pub use number::NumberedAttribute;
pub use store::{Cell, PushResult, ResourceIx, Run, ScopeIx, SpanIx, Trace, TraceFull, Wide};
pub use strings::Text;
pub use tree::Tree;
pub use view::{Attributes, Event, Link, Resource, Scope, Span, ValueRef, Values};
pub use writer::{EventHead, LinkHead, Mark, ResourceHead, ScopeHead, SpanHead, Writer};
