//! A batch of the journal during delivery: its requests, and their outcomes.
//!
//! Deliberately absent: sending, and the interpretation of a response.

use std::ops::Range;

use bytes::Bytes;
use journal::Batch;

use crate::{
    plan::Signal,
    record::{self, Item},
};

/// A request: consecutive items of one signal in a batch.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    /// The id of its batch.
    pub(crate) id: u64,
    pub(crate) signal: Signal,
    /// The range of its records, counted among those of the signal.
    pub(crate) records: Range<usize>,
    /// The number of its items.
    pub(crate) items: u64,
    pub(crate) body: Bytes,
    /// Whether it was sent before.
    pub(crate) is_repeated: bool,
    /// Whether the part itself may be the cause of its failure.
    pub(crate) doubt: Option<Doubt>,
}

/// The evidence that a part itself is the cause of its failures.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Doubt {
    /// The number of accepted requests when it last failed.
    pub(crate) accepted: u64,
    /// The number of times that it failed although other requests were accepted in between.
    pub(crate) alone: u32,
}

/// A batch during delivery.
#[derive(Debug)]
pub(crate) struct Work {
    pub(crate) id: u64,
    pub(crate) batch: Batch,
    /// The number of parts that have not ended.
    pub(crate) open: usize,
    pub(crate) spans: ItemCounts,
    pub(crate) logs: ItemCounts,
    pub(crate) unreadable: u64,
    pub(crate) letters: Vec<Letter>,
}

/// The number of items by outcome.
#[derive(Debug, Default)]
pub(crate) struct ItemCounts {
    pub(crate) delivered: u64,
    pub(crate) rejected: u64,
}

/// A rejection, to be stored as a dead letter.
#[derive(Debug)]
pub(crate) struct Letter {
    pub(crate) signal: Signal,
    pub(crate) records: Range<usize>,
    pub(crate) kind: LetterKind,
    pub(crate) message: String,
}

/// The kind of a dead letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LetterKind {
    /// An item that was rejected for its content.
    Refused,
    /// An item that is larger than the limit of the destination.
    TooLarge,
    /// A request of which some unidentified items were rejected.
    Partial { rejected: u64, of: u64 },
}

impl Work {
    /// Splits a batch into one part for each of its signals.
    pub(crate) fn new(id: u64, batch: Batch) -> (Self, Vec<Part>) {
        let unreadable = batch.records().filter(|it| record::read(it.bytes).is_none());
        let unreadable = unreadable.map(|it| u64::from(it.items)).sum();
        let (spans, logs, letters) = (ItemCounts::default(), ItemCounts::default(), Vec::new());
        let mut work = Self { id, batch, open: 0, spans, logs, unreadable, letters };
        let mut parts = Vec::new();
        for signal in [Signal::Spans, Signal::Logs] {
            let count = items(&work.batch, signal).count();
            if count > 0 {
                parts.push(work.part(signal, 0..count));
            }
        }
        work.open = parts.len();
        (work, parts)
    }

    /// Splits a part in two; `None` for a part with a single record.
    pub(crate) fn halve(&mut self, part: &Part) -> Option<[Part; 2]> {
        let Range { start, end } = part.records;
        if end - start < 2 {
            return None;
        }
        self.open += 1;
        let middle = start + (end - start) / 2;
        Some([self.part(part.signal, start..middle), self.part(part.signal, middle..end)])
    }

    /// Ends a part as delivered.
    pub(crate) fn delivered(&mut self, part: &Part) {
        self.end(part, 0);
    }

    /// Ends a part with `rejected` rejected items, and stores the reason.
    pub(crate) fn refused(&mut self, part: &Part, rejected: u64, kind: LetterKind, said: &str) {
        let message = said.to_owned();
        let (signal, records) = (part.signal, part.records.clone());
        self.letters.push(Letter { signal, records, kind, message });
        self.end(part, rejected);
    }

    fn end(&mut self, part: &Part, rejected: u64) {
        let ended = if part.signal == Signal::Logs { &mut self.logs } else { &mut self.spans };
        ended.rejected += rejected;
        ended.delivered += part.items - rejected;
        self.open -= 1;
    }

    /// Returns the letters to write, each with its request: items that were rejected one by one share one letter for
    /// each signal.
    pub(crate) fn dead_letters(&self) -> Vec<(Vec<u8>, Letter)> {
        let mut out = Vec::new();
        for signal in [Signal::Spans, Signal::Logs] {
            let of_signal = || self.letters.iter().filter(|it| it.signal == signal);
            let refused = || of_signal().filter(|it| it.kind == LetterKind::Refused);
            if let Some(first) = refused().next() {
                let ranges: Vec<_> = refused().map(|it| it.records.clone()).collect();
                let count: usize = ranges.iter().map(Range::len).sum();
                let message = format!("{count} {}: {}", signal.as_str(), first.message);
                let letter = Letter { signal, records: 0..0, kind: first.kind, message };
                out.push((request(&self.batch, signal, &ranges), letter));
            }
            for letter in of_signal().filter(|it| it.kind != LetterKind::Refused) {
                let records = letter.records.clone();
                let bytes = request(&self.batch, signal, std::slice::from_ref(&records));
                let (kind, message) = (letter.kind, letter.message.clone());
                out.push((bytes, Letter { signal, records, kind, message }));
            }
        }
        out
    }

    fn part(&self, signal: Signal, records: Range<usize>) -> Part {
        let items = items(&self.batch, signal);
        let items = items.skip(records.start).take(records.len()).map(|(_, items)| items).sum();
        let body = Bytes::from(request(&self.batch, signal, std::slice::from_ref(&records)));
        Part { id: self.id, signal, records, items, body, is_repeated: false, doubt: None }
    }
}

/// Returns the records of a signal, each with its number of items.
fn items(batch: &Batch, signal: Signal) -> impl Iterator<Item = (Item<'_>, u64)> {
    batch
        .records()
        .filter_map(|it| Some((record::read(it.bytes)?, u64::from(it.items))))
        .filter(move |(item, _)| item.signal == signal)
}

/// Builds the export request of some records of a signal.
fn request(batch: &Batch, signal: Signal, ranges: &[Range<usize>]) -> Vec<u8> {
    let is_wanted = |at: &usize| ranges.iter().any(|range| range.contains(at));
    let wanted = items(batch, signal).enumerate().filter(|(at, _)| is_wanted(at));
    let wanted: Vec<_> = wanted.map(|(_, (item, _))| item).collect();
    record::request(batch.head(), &wanted)
}
