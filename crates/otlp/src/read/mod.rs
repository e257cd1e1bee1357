//! Trace files: the format is detected by content, not by file name.
//!
//! The parser supports OTLP as protobuf and as JSON, one message or many after each other as the Collector's file exporter
//! writes them, and the responses of Tempo and Jaeger to a query for a trace. An error names the detected format and the
//! location. Deliberately absent: the file system, compression, and formats of other tools.

mod export;
mod jaeger;
mod json;
mod lanes;
mod otlp;
mod outline;
mod traces;

use std::fmt;

use model::{Fault, Faulty, Trace, TraceId, trace::TraceFull};
use serde_json::{Deserializer, Value};
use thiserror::Error;

use crate::{
    AppendError, DecodeError, append,
    schema::{check, resource_spans, scope_spans, traces_data},
    split::{ids, split},
    wire::Fields,
};
pub use export::{count_metrics_json, read_logs_json, traces_from_json};
use json::{Mistake, Node};
use lanes::Lanes;
use outline::{Outline, SpanError};
use traces::Traces;

/// Why a trace file could not be read.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum ReadError {
    /// It has none of the known formats.
    #[error(
        "not a trace file: {found}; expected OTLP as protobuf or JSON, the lines of the Collector's file exporter, \
         or the JSON of Jaeger's or Tempo's API"
    )]
    Unknown {
        /// The start of the content.
        found: String,
    },
    /// It starts like OTLP protobuf.
    #[error("taken for OTLP protobuf: {reason}, at byte {at}")]
    Protobuf {
        /// The error.
        reason: String,
        /// The offset of the error in bytes.
        at: usize,
    },
    /// It starts like JSON.
    #[error("taken for JSON: {reason}")]
    Json {
        /// The error, with line and column.
        reason: String,
    },
    /// It is JSON of a known format, with a wrong value.
    #[error("taken for {form}: {reason}, at `{path}` of the object that starts in line {line}")]
    Content {
        /// The detected format of the object.
        form: Form,
        /// The line in which the object starts.
        line: usize,
        /// The path in the object, such as `resourceSpans[0].scopeSpans[1].spans[7].spanId`.
        path: String,
        /// The error at this path.
        reason: String,
    },
    /// The shared resources and scopes of the traces would have to be copied too often.
    #[error("too many traces share large resources: put fewer traces into one file")]
    TooLarge,
    /// A trace has no room for its spans.
    #[error(transparent)]
    Full(#[from] TraceFull),
}

/// A JSON format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The JSON format of OTLP.
    Otlp,
    /// A response of Tempo.
    Tempo,
    /// A response of Jaeger.
    Jaeger,
}

impl Faulty for ReadError {
    fn fault(&self) -> Fault {
        match self {
            Self::Full(error) => error.fault(),
            _ => Fault::Invalid,
        }
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Otlp => "OTLP JSON",
            Self::Tempo => "Tempo's JSON",
            Self::Jaeger => "Jaeger's JSON",
        })
    }
}

/// The first byte of OTLP protobuf: field 1, followed by its length. In a text it is a line feed.
const PROTOBUF_START: u8 = 0x0a;

const IDS_EXPECTED: &str = "the ids of a span are malformed: expected 16 bytes for its trace, 8 for itself and 8 for \
                            its parent, not all zero";

/// The contents of a file.
#[derive(Debug, Default)]
pub struct TraceFile {
    /// Its traces, ordered by id.
    pub traces: Vec<Trace>,
    /// The trace ids of its log records, each as often as a record names it.
    pub logs: Vec<TraceId>,
}

/// Reads the traces of a file, ordered by id.
pub fn read(bytes: &[u8]) -> Result<Vec<Trace>, ReadError> {
    Ok(read_recording(bytes)?.traces)
}

/// Reads a file.
///
/// Spans of one trace may be anywhere in the file, and a span may occur twice. All must have ids: a span without a trace is an
/// error, since the trace without it would look complete.
pub fn read_recording(bytes: &[u8]) -> Result<TraceFile, ReadError> {
    let of_protobuf = |bytes| Ok(TraceFile { traces: read_protobuf(bytes)?, logs: Vec::new() });
    let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    match (bytes.first(), text.trim_ascii_start().first()) {
        // Both match if a text starts with an empty line. Content that is also a complete message is protobuf, not text.
        (Some(&PROTOBUF_START), _) if check(Fields::new(bytes), &traces_data::SCHEMA).is_ok() => {
            of_protobuf(bytes)
        }
        (_, Some(b'{' | b'[')) => read_json(text),
        (Some(&PROTOBUF_START), Some(_)) => of_protobuf(bytes),
        _ => Err(ReadError::Unknown { found: start_of(bytes) }),
    }
}

fn start_of(bytes: &[u8]) -> String {
    match bytes {
        [] => "it is empty".to_owned(),
        [0x1f, 0x8b, ..] => "it is compressed by gzip, unpack it first".to_owned(),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => "it is compressed by zstd, unpack it first".to_owned(),
        _ => {
            let start = String::from_utf8_lossy(&bytes[..bytes.len().min(64)]);
            let start: String = start.chars().take(16).collect();
            format!("it starts with `{}`", start.escape_debug())
        }
    }
}

fn read_protobuf(bytes: &[u8]) -> Result<Vec<Trace>, ReadError> {
    check(Fields::new(bytes), &traces_data::SCHEMA)?;
    let one_trace = check_ids(bytes)?;
    // A file with one trace is decoded in place; with several, each is copied out of it.
    if let Some(id) = one_trace {
        return Ok(vec![append_to(Trace::new(id), bytes)?]);
    }
    let mut traces = Vec::new();
    for batch in split(bytes, |_| true)?.batches {
        traces.push(append_to(Trace::new(batch.trace_id), &batch.bytes)?);
    }
    Ok(traces)
}

fn append_to(mut trace: Trace, bytes: &[u8]) -> Result<Trace, ReadError> {
    match append(&mut trace, bytes) {
        Ok(_) => Ok(trace),
        Err(AppendError::Decode(error)) => Err(error.into()),
        Err(AppendError::Full(full)) => Err(full.into()),
    }
}

impl From<DecodeError> for ReadError {
    fn from(error: DecodeError) -> Self {
        match error {
            DecodeError::Malformed { reason, at } => Self::Protobuf { reason, at },
            DecodeError::TooLarge => Self::TooLarge,
        }
    }
}

/// Checks that each span has valid ids; returns the trace id if it is the same for all of them.
fn check_ids(bytes: &[u8]) -> Result<Option<TraceId>, DecodeError> {
    let (mut first, mut is_one) = (None, true);
    for of_resource in Fields::new(bytes).children(traces_data::RESOURCE_SPANS) {
        for of_scope in of_resource?.children(resource_spans::SCOPE_SPANS) {
            for span in of_scope?.children(scope_spans::SPANS) {
                let span = span?;
                let ids = ids(span.clone())?;
                let Some(trace_id) = ids.trace_id().filter(|_| ids.are_valid()) else {
                    return Err(span.malformed(IDS_EXPECTED));
                };
                is_one &= *first.get_or_insert(trace_id) == trace_id;
            }
        }
    }
    Ok(first.filter(|_| is_one))
}

/// Reads the objects of a text, of which there may be many, one per line or not.
fn read_json(text: &[u8]) -> Result<TraceFile, ReadError> {
    let (mut traces, mut logs) = (Traces::of_file(text.len()), Vec::new());
    let mut objects = Deserializer::from_slice(text).into_iter();
    let mut seen = TextPosition::default();
    while let Some(object) = objects.next() {
        let object: Outline =
            object.map_err(|error| ReadError::Json { reason: error.to_string() })?;
        let gap = text[seen.bytes..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        seen.pass(text, seen.bytes + gap);
        let bytes = &text[seen.bytes..objects.byte_offset()];
        let object = Node::root(&object.0);
        if object.has("resourceLogs") {
            let records = export::log_records(&object).map_err(|Mistake { path, reason }| {
                ReadError::Content { form: Form::Otlp, line: seen.lines + 1, path, reason }
            })?;
            logs.extend(records.traces);
        }
        read_object(&object, bytes, &seen, &mut traces)?;
        seen.pass(text, objects.byte_offset());
    }
    Ok(TraceFile { traces: traces.into_vec(), logs })
}

/// The position up to which a text was read.
#[derive(Default)]
struct TextPosition {
    bytes: usize,
    lines: usize,
    /// Bytes of the last line.
    column: usize,
}

impl TextPosition {
    fn pass(&mut self, text: &[u8], until: usize) {
        let passed = &text[self.bytes..until];
        self.lines += passed.iter().filter(|byte| **byte == b'\n').count();
        self.column = match passed.iter().rposition(|byte| *byte == b'\n') {
            Some(at) => passed.len() - at - 1,
            None => self.column + passed.len(),
        };
        self.bytes = until;
    }
}

/// Reads an object by its outline, and then its spans from its bytes.
fn read_object(
    object: &Node<'_>,
    bytes: &[u8],
    seen: &TextPosition,
    traces: &mut Traces,
) -> Result<(), ReadError> {
    let mut lanes = Lanes::default();
    let line = seen.lines + 1;
    let (form, read) = if object.has("resourceSpans") {
        (Form::Otlp, otlp::read(object, &mut lanes))
    } else if object.has("batches") || object.has("trace") {
        (Form::Tempo, otlp::read_tempo(object, &mut lanes))
    } else if object.has("data") || object.has("spans") || object.has("result") {
        (Form::Jaeger, jaeger::read(object, &mut lanes))
    } else if object.has("resourceLogs") || object.has("resourceMetrics") {
        // The Collector writes all signals of an exporter into one file.
        return Ok(());
    } else {
        let found = format!("{} in line {line}", object.sketch());
        return Err(ReadError::Unknown { found });
    };
    let content = |Mistake { path, reason }| ReadError::Content { form, line, path, reason };
    read.map_err(content)?;
    let mut told = |lane: usize, ix: usize, span: &Value| lanes.read_span(lane, ix, span, traces);
    outline::spans(bytes, &mut told).map_err(|error| match error {
        SpanError::Json(error) => outline::in_file(&error, seen.lines, seen.column),
        SpanError::Problem(Problem::Mistake(mistake)) => content(mistake),
        SpanError::Problem(Problem::TooLarge) => ReadError::TooLarge,
        SpanError::Problem(Problem::Full(full)) => ReadError::Full(full),
    })
}

/// Why reading an object stopped.
enum Problem {
    Mistake(Mistake),
    TooLarge,
    Full(TraceFull),
}

impl From<Mistake> for Problem {
    fn from(mistake: Mistake) -> Self {
        Self::Mistake(mistake)
    }
}

impl From<TraceFull> for Problem {
    fn from(full: TraceFull) -> Self {
        Self::Full(full)
    }
}
