//! A trace as columns of fixed-width numbers: a reader needs no parser but views of a buffer.
//!
//! The file is `QTCO`, the length of a JSON head, the head, and one column after the other, each at a multiple of eight bytes:
//! 40 bytes a span. Numbers are little endian. Spans are in tree order, so that a subtree is a range. The head has the texts, each
//! once, and the offset of each column. `docs/server.md` describes it for other programs.
//!
//! Deliberately absent: attributes, events and links, which are read span by span; and compression.

use std::{borrow::Cow, collections::HashMap};

use model::{
    Fault, Faulty, Trace,
    trace::{Attributes, ResourceIx, Span, StatusCode, Tree, ValueRef},
};
use serde::Serialize;
use thiserror::Error;

/// The version of the format. A reader refuses another one.
pub const COLUMNS_VERSION: u32 = 1;

/// The first bytes.
const MAGIC: &[u8; 4] = b"QTCO";
/// The bytes before the head: the magic number and the length of the head.
const BEFORE_HEAD: usize = 8;
/// Where the head ends and columns begin: at multiples of this.
const ALIGNMENT: usize = 8;
/// The maximum length of a text, in bytes. A longer one is cut, and ends with `…`.
const TEXT_BYTES_MAX: usize = 1024;
/// The number of a service that has none of its own.
const OTHER_SERVICE: u16 = u16::MAX;

/// The columns in their order: the name, the type and the bytes of an element.
const COLUMNS: [(&str, &str, usize); 10] = [
    ("start", "f64", 8),
    ("duration", "f64", 8),
    ("id", "bytes8", 8),
    ("end", "u32", 4),
    ("name", "u32", 4),
    ("process", "u32", 4),
    ("service", "u16", 2),
    ("depth", "u16", 2),
    ("kind", "u8", 1),
    ("flags", "u8", 1),
];

/// Bits of the column `flags`.
mod flag {
    pub(super) const ERROR: u8 = 1;
    pub(super) const EVENTS: u8 = 2;
    pub(super) const LINKS: u8 = 4;
    /// The parent is not in the trace, or is the span itself or one of its descendants.
    pub(super) const ORPHAN: u8 = 8;
    /// The span is not within its parent, which is of another process.
    pub(super) const CLOCK: u8 = 16;
    pub(super) const OK: u8 = 32;
}

/// The error of a trace whose texts do not fit into one head.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("the names in the trace take more than 4 GiB")]
pub struct ColumnsTooLarge;

impl Faulty for ColumnsTooLarge {
    fn fault(&self) -> Fault {
        Fault::Overloaded
    }
}

/// Encodes a trace as columns.
///
/// The order in which spans arrived does not show, unless several have one id: then the first of them has the children. The work is
/// to sort siblings, and else the same for each span, however deep the trace is.
pub fn columns(trace: &Trace) -> Result<Vec<u8>, ColumnsTooLarge> {
    let tree = tree(trace);
    let texts = Texts::of(trace, &tree);
    let starts = trace.spans().map(|span| span.start().as_nanos());
    let start = starts.min().unwrap_or_default();
    let end = trace.spans().map(|span| span.end().as_nanos()).max().unwrap_or_default();
    let head = Head {
        version: COLUMNS_VERSION,
        spans: trace.len(),
        start: start.to_string(),
        duration: end.saturating_sub(start),
        names: &texts.names,
        services: &texts.services,
        processes: &texts.processes,
        columns: Vec::new(),
    };
    let (mut out, offsets, len) = begin(head)?;
    out.resize(len, 0);
    let mut rows = Rows { trace, tree: &tree, texts: &texts, start, out, offsets };
    for (place, ix) in tree.order().iter().enumerate() {
        rows.write(place, trace.span(*ix));
    }
    Ok(rows.out)
}

/// Returns the spans in the order of columns.
pub(crate) fn tree(trace: &Trace) -> Tree {
    Tree::with_ties(trace, |one, other| one.id().cmp(&other.id()))
}

/// The head, in JSON.
#[derive(Serialize)]
struct Head<'a> {
    version: u32,
    spans: usize,
    /// Nanoseconds since the epoch, as text: a number of JSON would lose some.
    start: String,
    /// From the first start to the last end, in nanoseconds.
    duration: u64,
    names: &'a [Cow<'a, str>],
    services: &'a [Cow<'a, str>],
    processes: &'a [ProcessHead<'a>],
    columns: Vec<ColumnHead>,
}

#[derive(Serialize)]
struct ProcessHead<'a> {
    service: u16,
    name: Cow<'a, str>,
}

#[derive(Serialize)]
struct ColumnHead {
    name: &'static str,
    #[serde(rename = "type")]
    kind: &'static str,
    offset: usize,
}

/// Returns everything before the columns, with their offsets and the length of the file.
///
/// The head has the offsets, and they depend on its length. So it is written again until its length is the assumed one; the numbers
/// only grow, by a digit at most.
fn begin(mut head: Head<'_>) -> Result<(Vec<u8>, [usize; COLUMNS.len()], usize), ColumnsTooLarge> {
    let mut first = 0;
    loop {
        let (offsets, len) = offsets(first, head.spans);
        let columns = COLUMNS.iter().zip(offsets);
        head.columns =
            columns.map(|((name, kind, _), offset)| ColumnHead { name, kind, offset }).collect();
        let json = serde_json::to_vec(&head).expect("texts and numbers can be written as JSON");
        let needed = (BEFORE_HEAD + json.len()).next_multiple_of(ALIGNMENT);
        if needed > first {
            first = needed;
            continue;
        }
        let length = u32::try_from(first - BEFORE_HEAD).map_err(|_| ColumnsTooLarge)?;
        let mut out = Vec::with_capacity(len);
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(&json);
        out.resize(first, b' ');
        return Ok((out, offsets, len));
    }
}

/// Returns where each column begins, if the first one begins here; and where the last one ends.
fn offsets(first: usize, spans: usize) -> ([usize; COLUMNS.len()], usize) {
    let mut next = first;
    let offsets = COLUMNS.map(|(_, _, width)| {
        let offset = next.next_multiple_of(ALIGNMENT);
        next = offset + width * spans;
        offset
    });
    (offsets, next)
}

/// The texts of the head, each once, in the order of the spans that have them.
#[derive(Default)]
struct Texts<'a> {
    names: Vec<Cow<'a, str>>,
    services: Vec<Cow<'a, str>>,
    processes: Vec<ProcessHead<'a>>,
    /// By the trace's number of a name.
    name_numbers: HashMap<u32, u32>,
    /// The process of a resource.
    process_numbers: HashMap<ResourceIx, u32>,
    service_numbers: HashMap<String, u16>,
    /// By service and name: two services may have processes of the same name.
    instance_numbers: HashMap<(String, String), u32>,
}

impl<'a> Texts<'a> {
    fn of(trace: &'a Trace, tree: &Tree) -> Self {
        let mut texts = Self::default();
        for ix in tree.order() {
            let span = trace.span(*ix);
            texts.name_numbers.entry(trace.name_number(*ix)).or_insert_with(|| {
                texts.names.push(cut(span.name().into()));
                texts.names.len() as u32 - 1
            });
            if !texts.process_numbers.contains_key(&span.resource_ix()) {
                let number = texts.add(span.resource().attributes());
                texts.process_numbers.insert(span.resource_ix(), number);
            }
        }
        texts
    }

    /// Returns the number of the process of a resource.
    fn add(&mut self, resource: Attributes<'_>) -> u32 {
        let service = text(resource, "service.name").unwrap_or_default();
        let key = (service, instance(resource).unwrap_or_default());
        if let Some(known) = self.instance_numbers.get(&key) {
            return *known;
        }
        let service = self.add_service(&key.0);
        self.processes.push(ProcessHead { service, name: cut(key.1.clone().into()) });
        let number = self.processes.len() as u32 - 1;
        self.instance_numbers.insert(key, number);
        number
    }

    fn add_service(&mut self, name: &str) -> u16 {
        if let Some(known) = self.service_numbers.get(name) {
            return *known;
        }
        let number = u16::try_from(self.services.len()).unwrap_or(OTHER_SERVICE);
        if number != OTHER_SERVICE {
            self.services.push(cut(name.to_owned().into()));
        }
        self.service_numbers.insert(name.to_owned(), number);
        number
    }

    fn process(&self, span: Span<'_>) -> u32 {
        self.process_numbers.get(&span.resource_ix()).copied().unwrap_or_default()
    }
}

/// Writes the rows of spans into their columns.
struct Rows<'a> {
    trace: &'a Trace,
    tree: &'a Tree,
    texts: &'a Texts<'a>,
    start: u64,
    out: Vec<u8>,
    offsets: [usize; COLUMNS.len()],
}

impl Rows<'_> {
    fn write(&mut self, place: usize, span: Span<'_>) {
        let parent = self.tree.parent_at(place);
        let process = self.texts.process(span);
        let name = self.texts.name_numbers.get(&self.trace.name_number(span.ix()));
        let service = self.texts.processes.get(process as usize).map_or(0, |it| it.service);
        // The parent comes first, so its depth is there.
        let depth = parent.map_or(0, |parent| self.depth(parent).saturating_add(1));
        let kind = u8::try_from(span.kind().number()).unwrap_or_default();
        let start = (span.start().as_nanos() - self.start) as f64;
        let end = self.tree.end_at(place) as u32;
        self.put(0, place, start.to_le_bytes());
        self.put(1, place, duration(span).to_le_bytes());
        self.put(2, place, *span.id().as_bytes());
        self.put(3, place, end.to_le_bytes());
        self.put(4, place, name.copied().unwrap_or_default().to_le_bytes());
        self.put(5, place, process.to_le_bytes());
        self.put(6, place, service.to_le_bytes());
        self.put(7, place, depth.to_le_bytes());
        // A kind of a later version of OTLP is not specified here.
        self.put(8, place, [if kind <= 5 { kind } else { 0 }]);
        let flags = self.flags(span, parent, process);
        self.put(9, place, [flags]);
    }

    fn flags(&self, span: Span<'_>, parent: Option<usize>, process: u32) -> u8 {
        let mut flags = match span.status() {
            StatusCode::Error => flag::ERROR,
            StatusCode::Ok => flag::OK,
            StatusCode::Unset | StatusCode::Other(_) => 0,
        };
        let mut set = |is_set: bool, bit: u8| flags |= if is_set { bit } else { 0 };
        set(span.events().next().is_some(), flag::EVENTS);
        set(span.links().next().is_some(), flag::LINKS);
        set(span.parent().is_some() && parent.is_none(), flag::ORPHAN);
        let is_outside = parent.is_some_and(|parent| {
            let parent = self.trace.span(self.tree.order()[parent]);
            let ((first, last), (above_first, above_last)) = (interval(span), interval(parent));
            self.texts.process(parent) != process && (first < above_first || last > above_last)
        });
        set(is_outside, flag::CLOCK);
        flags
    }

    fn depth(&self, place: usize) -> u16 {
        let at = self.offsets[7] + place * 2;
        u16::from_le_bytes([self.out[at], self.out[at + 1]])
    }

    fn put<const WIDTH: usize>(&mut self, column: usize, place: usize, bytes: [u8; WIDTH]) {
        let at = self.offsets[column] + place * WIDTH;
        self.out[at..at + WIDTH].copy_from_slice(&bytes);
    }
}

/// Returns nanoseconds; negative if the end is before the start.
fn duration(span: Span<'_>) -> f64 {
    let (start, end) = (span.start().as_nanos(), span.end().as_nanos());
    if end >= start { (end - start) as f64 } else { -((start - end) as f64) }
}

/// Returns the earlier and the later of start and end.
fn interval(span: Span<'_>) -> (u64, u64) {
    let (start, end) = (span.start().as_nanos(), span.end().as_nanos());
    (start.min(end), start.max(end))
}

/// Returns what distinguishes the instances of a service.
fn instance(resource: Attributes<'_>) -> Option<String> {
    text(resource, "service.instance.id").or_else(|| {
        match (text(resource, "host.name"), text(resource, "process.pid")) {
            (None, None) => None,
            (host, pid) => {
                Some(format!("{}:{}", host.unwrap_or_default(), pid.unwrap_or_default()))
            }
        }
    })
}

/// Returns the value of a key as text, if it is a text that is not empty, or an integer.
fn text(attributes: Attributes<'_>, key: &str) -> Option<String> {
    match attributes.get(key)? {
        ValueRef::Str(text) if !text.is_empty() => Some(text.to_owned()),
        ValueRef::Int(number) => Some(number.to_string()),
        _ => None,
    }
}

/// Shortens a text to its maximum length.
fn cut(text: Cow<'_, str>) -> Cow<'_, str> {
    if text.len() <= TEXT_BYTES_MAX {
        return text;
    }
    Cow::Owned(format!("{}…", &text[..text.floor_char_boundary(TEXT_BYTES_MAX)]))
}
