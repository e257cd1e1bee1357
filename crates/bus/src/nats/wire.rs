//! The messages of the bus in NATS: subjects and payloads.
//!
//! A payload begins with its version and kind. A batch that is larger than a message may be is sent in chunks. Spans are sealed as
//! in the journal: what precedes them, and the trace, are authenticated. A message of a later version counts as lost to its trace; a
//! process writes the version that all others read (ADR 0041).

use std::fmt;

use model::{BusSlot, Project, Timestamp, TraceId};

use crate::{Channel, Signal};

/// The first version of messages.
pub(super) const FIRST_VERSION: u8 = 1;

/// The last version of messages that this process reads and can write; it reads all versions before too.
pub const MESSAGE_VERSION: u8 = if cfg!(feature = "next-version") { 2 } else { FIRST_VERSION };

/// The number of slots that share a stream.
pub const STREAM_SLOTS: u16 = 32;

/// The last token of the subject of markers, and of messages to all slots of a stream.
const MARKERS: &str = "marker";
const ALL: &str = "all";

/// The number of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct StreamNumber(u16);

impl StreamNumber {
    /// Returns the stream of a slot. It depends on nothing else: more streams change no address.
    pub(super) fn of(slot: BusSlot) -> Self {
        Self(slot.0 / STREAM_SLOTS)
    }

    /// Returns the stream with this number.
    pub(super) fn from_number(number: u16) -> Self {
        Self(number)
    }

    /// Returns its number.
    pub(super) fn number(self) -> u16 {
        self.0
    }

    /// Returns the first streams.
    pub(super) fn first(streams: u16) -> impl Iterator<Item = Self> {
        (0..streams).map(Self)
    }

    pub(super) fn name(self, prefix: &str) -> String {
        format!("{}_SPANS_{}", prefix.to_uppercase(), self.0)
    }

    /// Returns the stream with this name, if it is one of these.
    pub(super) fn parse(name: &str, prefix: &str) -> Option<Self> {
        let number = name.strip_prefix(&prefix.to_uppercase())?.strip_prefix("_SPANS_")?;
        number.parse().ok().map(Self)
    }

    /// Returns the subjects of all its messages.
    pub(super) fn subjects(self, prefix: &str) -> String {
        format!("{prefix}.spans.{}.>", self.0)
    }

    /// Returns the subject of messages to all its slots.
    pub(super) fn all(self, prefix: &str) -> String {
        format!("{prefix}.spans.{}.{ALL}", self.0)
    }
}

/// Whether a subject is that of messages to all slots of a stream.
pub(super) fn is_to_all(subject: &str) -> bool {
    subject.rsplit('.').next() == Some(ALL)
}

/// Returns the subject of a trace.
pub(super) fn subject(prefix: &str, channel: Channel) -> String {
    let Channel { slot, trace } = channel;
    format!("{}.{trace}", slot_subject(prefix, slot))
}

/// Returns the subject of the markers of a slot.
pub(super) fn markers(prefix: &str, slot: BusSlot) -> String {
    format!("{}.{MARKERS}", slot_subject(prefix, slot))
}

/// Returns the subjects of all traces and markers of a slot.
pub(super) fn subjects(prefix: &str, slot: BusSlot) -> String {
    format!("{}.>", slot_subject(prefix, slot))
}

fn slot_subject(prefix: &str, slot: BusSlot) -> String {
    format!("{prefix}.spans.{}.{}", StreamNumber::of(slot).0, slot.0)
}

/// Returns the trace of a subject, if it has one.
pub(super) fn trace_of(subject: &str) -> Option<TraceId> {
    subject.rsplit('.').next()?.parse().ok()
}

/// A process that publishes, by a random number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct PublisherId(pub(super) [u8; 8]);

/// A part of a batch. The first one states the projects that its sender may write to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chunk {
    pub(super) publisher: PublisherId,
    /// The number of the batch.
    pub(super) number: u64,
    pub(super) index: u16,
    pub(super) count: u16,
    /// The number of spans of the batch.
    pub(super) spans: u32,
    /// When it was published.
    pub(super) at: Timestamp,
}

/// A payload without its sealed part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Head {
    Chunk(Chunk),
    /// Proves that all messages before it have been delivered.
    Marker(PublisherId, u64),
    /// Spans of the trace were lost.
    Loss(PublisherId),
    /// A batch of the trace was refused, and its sender may send it again or give up; its digest follows, sealed.
    Refused(PublisherId),
    /// This many log records of the trace arrived.
    Log(PublisherId, u64),
    /// A request to all processes, sealed.
    Request(PublisherId),
    /// The answer of a process to a request, sealed.
    Answer(PublisherId),
    /// What a process has stored for each project, sealed.
    Usage(PublisherId),
    /// This many exports could not be read; the projects of their senders follow, sealed.
    Unread(PublisherId, Signal, u64),
}

const CHUNK: u8 = 1;
const MARKER: u8 = 2;
const LOSS: u8 = 3;
const LOG: u8 = 4;
const UNREAD_SPANS: u8 = 5;
const UNREAD_LOGS: u8 = 6;
const REQUEST: u8 = 7;
const ANSWER: u8 = 8;
const USAGE: u8 = 9;
const REFUSED: u8 = 10;

/// The size of the head of a chunk.
pub(super) const CHUNK_BYTES: usize = 2 + 8 + 8 + 2 + 2 + 4 + 8;

impl Head {
    fn kind(self) -> u8 {
        match self {
            Self::Chunk(_) => CHUNK,
            Self::Marker(..) => MARKER,
            Self::Loss(_) => LOSS,
            Self::Refused(_) => REFUSED,
            Self::Log(..) => LOG,
            Self::Request(_) => REQUEST,
            Self::Answer(_) => ANSWER,
            Self::Usage(_) => USAGE,
            Self::Unread(_, Signal::Spans, _) => UNREAD_SPANS,
            Self::Unread(_, Signal::Logs, _) => UNREAD_LOGS,
        }
    }

    pub(super) fn write(self, version: u8) -> Vec<u8> {
        let mut bytes = vec![version, self.kind()];
        bytes.extend(added(version));
        match self {
            Self::Chunk(Chunk { publisher, number, index, count, spans, at }) => {
                bytes.extend(publisher.0);
                bytes.extend(number.to_be_bytes());
                bytes.extend(index.to_be_bytes());
                bytes.extend(count.to_be_bytes());
                bytes.extend(spans.to_be_bytes());
                bytes.extend(at.as_nanos().to_be_bytes());
            }
            Self::Loss(publisher)
            | Self::Refused(publisher)
            | Self::Request(publisher)
            | Self::Answer(publisher)
            | Self::Usage(publisher) => bytes.extend(publisher.0),
            Self::Marker(publisher, number)
            | Self::Log(publisher, number)
            | Self::Unread(publisher, _, number) => {
                bytes.extend(publisher.0);
                bytes.extend(number.to_be_bytes());
            }
        }
        bytes
    }

    /// Reads a payload; returns the rest of it too. None if it is damaged, or of a later version.
    pub(super) fn read(payload: &[u8]) -> Option<(Self, &[u8])> {
        let ([version, kind], rest) = payload.split_first_chunk()?;
        if !(FIRST_VERSION..=MESSAGE_VERSION).contains(version) {
            return None;
        }
        let (publisher, rest) = rest.strip_prefix(added(*version))?.split_first_chunk()?;
        let publisher = PublisherId(*publisher);
        match *kind {
            CHUNK => {
                let (number, rest) = rest.split_first_chunk()?;
                let (index, rest) = rest.split_first_chunk()?;
                let (count, rest) = rest.split_first_chunk()?;
                let (spans, rest) = rest.split_first_chunk()?;
                let (at, rest) = rest.split_first_chunk()?;
                let chunk = Chunk {
                    publisher,
                    number: u64::from_be_bytes(*number),
                    index: u16::from_be_bytes(*index),
                    count: u16::from_be_bytes(*count),
                    spans: u32::from_be_bytes(*spans),
                    at: Timestamp::from_nanos(u64::from_be_bytes(*at)),
                };
                (chunk.index < chunk.count).then_some((Self::Chunk(chunk), rest))
            }
            LOSS => Some((Self::Loss(publisher), rest)),
            REFUSED => Some((Self::Refused(publisher), rest)),
            REQUEST => Some((Self::Request(publisher), rest)),
            ANSWER => Some((Self::Answer(publisher), rest)),
            USAGE => Some((Self::Usage(publisher), rest)),
            kind => {
                let (number, rest) = rest.split_first_chunk()?;
                let number = u64::from_be_bytes(*number);
                let head = match kind {
                    MARKER => Self::Marker(publisher, number),
                    LOG => Self::Log(publisher, number),
                    UNREAD_SPANS => Self::Unread(publisher, Signal::Spans, number),
                    UNREAD_LOGS => Self::Unread(publisher, Signal::Logs, number),
                    _ => return None,
                };
                Some((head, rest))
            }
        }
    }
}

/// Returns what a version adds behind the kind: the one of the feature `next-version` a byte, which no reader of the first version
/// expects.
fn added(version: u8) -> &'static [u8] {
    match version {
        FIRST_VERSION => &[],
        _ => &[0xa5],
    }
}

/// Writes what precedes the spans of a batch: the projects that its sender may write to; none stands for all.
pub(super) fn write_projects(projects: Option<&[Project]>) -> Vec<u8> {
    let Some(projects) = projects else { return u16::MAX.to_be_bytes().to_vec() };
    // A sender with more projects than that may reach no project beyond them.
    let projects = &projects[..projects.len().min(usize::from(u16::MAX) - 1)];
    let mut bytes = (projects.len() as u16).to_be_bytes().to_vec();
    for project in projects {
        let name = project.as_str().as_bytes();
        bytes.extend((name.len() as u16).to_be_bytes());
        bytes.extend(name);
    }
    bytes
}

/// Returns the projects that were written; an outer none if they are damaged, an inner one for all.
pub(super) fn projects(mut bytes: &[u8]) -> Option<Option<Vec<Project>>> {
    let number = take_u16(&mut bytes)?;
    if number == u16::MAX {
        return Some(None);
    }
    let mut projects = Vec::new();
    for _ in 0..number {
        let length = usize::from(take_u16(&mut bytes)?);
        let (name, rest) = bytes.split_at_checked(length)?;
        projects.push(std::str::from_utf8(name).ok()?.parse().ok()?);
        bytes = rest;
    }
    Some(Some(projects))
}

/// Returns one project that was written, and what follows it.
pub(super) fn take_project(mut bytes: &[u8]) -> Option<(Project, &[u8])> {
    if take_u16(&mut bytes)? != 1 {
        return None;
    }
    let length = usize::from(take_u16(&mut bytes)?);
    let (name, rest) = bytes.split_at_checked(length)?;
    Some((std::str::from_utf8(name).ok()?.parse().ok()?, rest))
}

/// Whether a sender may write to a project, and the spans that it sent; none if it is damaged.
pub(crate) fn read_projects<'a>(
    mut bytes: &'a [u8],
    of: Option<&Project>,
) -> Option<(bool, &'a [u8])> {
    let number = take_u16(&mut bytes)?;
    if number == u16::MAX {
        return Some((true, bytes));
    }
    let mut is_of = of.is_none();
    for _ in 0..number {
        let length = usize::from(take_u16(&mut bytes)?);
        let (name, rest) = bytes.split_at_checked(length)?;
        is_of |= of.is_some_and(|project| project.as_str().as_bytes() == name);
        bytes = rest;
    }
    Some((is_of, bytes))
}

fn take_u16(bytes: &mut &[u8]) -> Option<u16> {
    let (number, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(u16::from_be_bytes(*number))
}

impl fmt::Display for StreamNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use model::{BusSlot, Project, Timestamp, TraceId};

    use super::{
        CHUNK_BYTES, Chunk, FIRST_VERSION, Head, MESSAGE_VERSION, PublisherId, StreamNumber,
        is_to_all, markers, read_projects, subject, subjects, trace_of, write_projects,
    };
    use crate::{Channel, Signal};

    const VERSIONS: [u8; 2] = [FIRST_VERSION, MESSAGE_VERSION];

    #[test]
    fn a_slot_has_its_stream_and_a_trace_its_subject() {
        let trace = TraceId::from_bytes([0xab; 16]).expect("not all zero");
        let channel = Channel { slot: BusSlot(33), trace };
        let subject = subject("qt", channel);
        assert_eq!(subject, "qt.spans.1.33.abababababababababababababababab");
        assert_eq!(trace_of(&subject), Some(trace));
        assert_eq!(trace_of(&markers("qt", BusSlot(33))), None);
        assert!(is_to_all(&StreamNumber::of(BusSlot(64)).all("qt")) && !is_to_all(&subject));
        assert_eq!(subjects("qt", BusSlot(31)), "qt.spans.0.31.>");
        assert_eq!(StreamNumber::of(BusSlot(64)).name("qt"), "QT_SPANS_2");
        assert_eq!(StreamNumber::of(BusSlot(64)).subjects("qt"), "qt.spans.2.>");
        assert_eq!(StreamNumber::of(BusSlot(64)).all("qt"), "qt.spans.2.all");
    }

    #[test]
    fn heads_are_read_as_they_were_written() {
        let publisher = PublisherId([7; 8]);
        let at = Timestamp::from_nanos(5);
        let chunk = Chunk { publisher, number: 9, index: 1, count: 2, spans: 3, at };
        let heads = [
            Head::Chunk(chunk),
            Head::Marker(publisher, 4),
            Head::Loss(publisher),
            Head::Refused(publisher),
            Head::Log(publisher, 5),
            Head::Unread(publisher, Signal::Spans, 6),
            Head::Unread(publisher, Signal::Logs, 7),
            Head::Usage(publisher),
        ];
        for (head, version) in heads.into_iter().flat_map(|head| VERSIONS.map(|it| (head, it))) {
            let mut bytes = head.write(version);
            let length = bytes.len();
            bytes.extend(b"rest");
            assert_eq!(Head::read(&bytes), Some((head, &b"rest"[..])));
            for cut in 0..length {
                assert_eq!(Head::read(&bytes[..cut]), None, "{head:?} {cut}");
            }
            for other in [0, MESSAGE_VERSION + 1] {
                bytes[0] = other;
                assert_eq!(Head::read(&bytes), None, "version {other}");
            }
        }
        assert_eq!(Head::Chunk(chunk).write(FIRST_VERSION).len(), CHUNK_BYTES);
        let outside = Chunk { index: 2, ..chunk };
        assert_eq!(Head::read(&Head::Chunk(outside).write(FIRST_VERSION)), None);
    }

    #[test]
    fn a_batch_names_the_projects_of_its_sender() {
        let [alpha, beta]: [Project; 2] =
            ["alpha", "beta"].map(|name| name.parse().expect("a name"));
        let of = |projects: Option<&[Project]>, of: Option<&Project>| {
            let mut bytes = write_projects(projects);
            bytes.extend(b"spans");
            let (is_of, rest) = read_projects(&bytes, of).expect("whole");
            assert_eq!(rest, b"spans");
            is_of
        };
        assert!(of(None, Some(&alpha)) && of(None, None));
        let alphas = std::slice::from_ref(&alpha);
        assert!(of(Some(alphas), Some(&alpha)) && of(Some(alphas), None));
        assert!(!of(Some(alphas), Some(&beta)) && !of(Some(&[]), Some(&beta)));
        assert_eq!(super::projects(&write_projects(None)), Some(None));
        let cut = write_projects(Some(alphas));
        assert_eq!(super::projects(&cut), Some(Some(alphas.to_vec())));
        for length in 0..cut.len() {
            assert_eq!(read_projects(&cut[..length], None), None);
        }
    }
}
