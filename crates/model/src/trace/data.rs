//! The owned form of the contents of a trace: for pushing spans into it, and for encoding them.

use std::hash::{Hash, Hasher};

use crate::{SpanId, Timestamp, TraceId};

/// A typed attribute value. Equality is of content: `NaN` equals itself, `0.0` differs from `-0.0`.
#[derive(Clone, Debug, Default)]
pub enum Value {
    /// A value that was sent without content.
    #[default]
    Empty,
    /// A boolean.
    Bool(bool),
    /// A 64-bit integer.
    Int(i64),
    /// A double.
    Double(f64),
    /// A text.
    Str(String),
    /// Raw bytes.
    Bytes(Vec<u8>),
    /// A list of values, of any kinds.
    Array(Vec<Value>),
    /// Keys and values, in the order sent.
    Map(Vec<(String, Value)>),
}

/// The number of dropped items where only a trace store knows how many it does not keep.
pub const DROPPED_UNKNOWN: u32 = u32::MAX;

/// The resource that produced a span.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ResourceData {
    /// Keys and values, in the order sent.
    pub attributes: Vec<(String, Value)>,
    /// Attributes that the producer dropped.
    pub dropped_attributes: u32,
    /// Which attributes identify which entity.
    pub entities: Vec<EntityData>,
    /// The schema of the attributes.
    pub schema_url: String,
}

/// An entity of a resource, by the attributes that identify and describe it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct EntityData {
    /// The schema of the entity.
    pub schema_url: String,
    /// Its type, such as `service`.
    pub kind: String,
    /// Attributes that identify it.
    pub id_keys: Vec<String>,
    /// Attributes that describe it.
    pub description_keys: Vec<String>,
}

/// The instrumentation scope that created a span.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ScopeData {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Keys and values, in the order sent.
    pub attributes: Vec<(String, Value)>,
    /// Attributes that the producer dropped.
    pub dropped_attributes: u32,
    /// The schema of its telemetry.
    pub schema_url: String,
}

/// A span, without its resource and scope.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SpanData {
    /// Its id.
    pub id: SpanId,
    /// The id of its parent.
    pub parent: Option<SpanId>,
    /// W3C trace state, as sent.
    pub trace_state: String,
    /// W3C trace flags and OTLP's bits above them.
    pub flags: u32,
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: Kind,
    /// Its start.
    pub start: Timestamp,
    /// Its end.
    pub end: Timestamp,
    /// Keys and values, in the order sent.
    pub attributes: Vec<(String, Value)>,
    /// Attributes that the producer dropped.
    pub dropped_attributes: u32,
    /// Its events, in the order sent.
    pub events: Vec<EventData>,
    /// Events that the producer dropped.
    pub dropped_events: u32,
    /// Its links, in the order sent.
    pub links: Vec<LinkData>,
    /// Links that the producer dropped.
    pub dropped_links: u32,
    /// Its status.
    pub status: Status,
}

/// An event at a time within a span.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct EventData {
    /// The time of the event.
    pub at: Timestamp,
    /// The name of the event.
    pub name: String,
    /// Keys and values, in the order sent.
    pub attributes: Vec<(String, Value)>,
    /// Attributes that the producer dropped.
    pub dropped_attributes: u32,
}

/// A link to another span. An id that is invalid on the wire is none here.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct LinkData {
    /// The id of the linked trace.
    pub trace_id: Option<TraceId>,
    /// The id of the linked span.
    pub span_id: Option<SpanId>,
    /// W3C trace state of the link, as sent.
    pub trace_state: String,
    /// W3C trace flags and OTLP's bits above them.
    pub flags: u32,
    /// Keys and values, in the order sent.
    pub attributes: Vec<(String, Value)>,
    /// Attributes that the producer dropped.
    pub dropped_attributes: u32,
}

/// The kind of a span. The number of an unknown kind is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Not set.
    #[default]
    Unspecified,
    /// Work inside a process.
    Internal,
    /// The server side of a call.
    Server,
    /// The client side of a call.
    Client,
    /// The sending side of a message.
    Producer,
    /// The receiving side of a message.
    Consumer,
    /// A kind of a later OTLP version.
    Other(i32),
}

/// The status of a span.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Status {
    /// The code.
    pub code: StatusCode,
    /// The producer's message about an error.
    pub message: String,
}

/// The code of a status. The number of an unknown code is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum StatusCode {
    /// Not set.
    #[default]
    Unset,
    /// The application marked the span as successful.
    Ok,
    /// An error.
    Error,
    /// A code of a later OTLP version.
    Other(i32),
}

impl SpanData {
    /// Creates a span with these fields; all others have the defaults of OTLP.
    pub fn new(id: SpanId, parent: Option<SpanId>, name: impl Into<String>) -> Self {
        Self {
            id,
            parent,
            trace_state: String::new(),
            flags: 0,
            name: name.into(),
            kind: Kind::Unspecified,
            start: Timestamp::default(),
            end: Timestamp::default(),
            attributes: Vec::new(),
            dropped_attributes: 0,
            events: Vec::new(),
            dropped_events: 0,
            links: Vec::new(),
            dropped_links: 0,
            status: Status::default(),
        }
    }
}

impl Kind {
    /// Returns the kind with this number on the wire.
    pub fn from_number(number: i32) -> Self {
        match number {
            0 => Self::Unspecified,
            1 => Self::Internal,
            2 => Self::Server,
            3 => Self::Client,
            4 => Self::Producer,
            5 => Self::Consumer,
            other => Self::Other(other),
        }
    }

    /// Returns the number on the wire.
    pub fn number(self) -> i32 {
        match self {
            Self::Unspecified => 0,
            Self::Internal => 1,
            Self::Server => 2,
            Self::Client => 3,
            Self::Producer => 4,
            Self::Consumer => 5,
            Self::Other(other) => other,
        }
    }

    /// Returns the kind as one word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unspecified => "unspecified",
            Self::Internal => "internal",
            Self::Server => "server",
            Self::Client => "client",
            Self::Producer => "producer",
            Self::Consumer => "consumer",
            Self::Other(_) => "other",
        }
    }
}

impl StatusCode {
    /// Returns the code with this number on the wire.
    pub fn from_number(number: i32) -> Self {
        match number {
            0 => Self::Unset,
            1 => Self::Ok,
            2 => Self::Error,
            other => Self::Other(other),
        }
    }

    /// Returns the number on the wire.
    pub fn number(self) -> i32 {
        match self {
            Self::Unset => 0,
            Self::Ok => 1,
            Self::Error => 2,
            Self::Other(other) => other,
        }
    }

    /// Returns the code as one word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unset => "unset",
            Self::Ok => "ok",
            Self::Error => "error",
            Self::Other(_) => "other",
        }
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Empty, Self::Empty) => true,
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Int(a), Self::Int(b)) => a == b,
            (Self::Double(a), Self::Double(b)) => a.to_bits() == b.to_bits(),
            (Self::Str(a), Self::Str(b)) => a == b,
            (Self::Bytes(a), Self::Bytes(b)) => a == b,
            (Self::Array(a), Self::Array(b)) => a == b,
            (Self::Map(a), Self::Map(b)) => a == b,
            _ => false,
        }
    }
}

impl Eq for Value {}

impl Hash for Value {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::mem::discriminant(self).hash(state);
        match self {
            Self::Empty => {}
            Self::Bool(value) => value.hash(state),
            Self::Int(value) => value.hash(state),
            Self::Double(value) => value.to_bits().hash(state),
            Self::Str(value) => value.hash(state),
            Self::Bytes(value) => value.hash(state),
            Self::Array(values) => values.hash(state),
            Self::Map(entries) => entries.hash(state),
        }
    }
}
