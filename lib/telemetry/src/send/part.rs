//! A batch of the journal while it is being delivered: the requests that it is cut into, and how they end.
//!
//! Deliberately absent: sending, and what an answer means.

use std::ops::Range;

use bytes::Bytes;
use journal::Batch;

use crate::{
    plan::Signal,
    record::{self, Item},
};

/// One request: a run of those items of a batch that are of one signal.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    /// Which batch under way it belongs to.
    pub(crate) id: u64,
    pub(crate) signal: Signal,
    /// Which records, counted among those of the signal.
    pub(crate) records: Range<usize>,
    /// How many items are in it.
    pub(crate) items: u64,
    pub(crate) body: Bytes,
    /// Whether it was sent before.
    pub(crate) is_repeated: bool,
    /// Whether it may be its own fault that it failed.
    pub(crate) doubt: Option<Doubt>,
}

/// Whether it may be a part's own fault that it fails.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Doubt {
    /// How many requests were accepted when it last failed.
    pub(crate) accepted: u64,
    /// How many times it failed again although others were accepted since.
    pub(crate) alone: u32,
}

/// A batch under way.
#[derive(Debug)]
pub(crate) struct Work {
    pub(crate) id: u64,
    pub(crate) batch: Batch,
    /// Parts that have not ended.
    pub(crate) open: usize,
    pub(crate) spans: ItemCounts,
    pub(crate) logs: ItemCounts,
    pub(crate) unreadable: u64,
    pub(crate) letters: Vec<Letter>,
}

/// How many items have ended how.
#[derive(Debug, Default)]
pub(crate) struct ItemCounts {
    pub(crate) delivered: u64,
    pub(crate) rejected: u64,
}

/// What is kept of a refusal.
#[derive(Debug)]
pub(crate) struct Letter {
    pub(crate) signal: Signal,
    pub(crate) records: Range<usize>,
    pub(crate) kind: LetterKind,
    pub(crate) message: String,
}

/// What a dead letter is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LetterKind {
    /// An item that was refused for what it is.
    Refused,
    /// An item that is larger than the destination takes.
    TooLarge,
    /// A request of which some items, nobody knows which, were refused.
    Partial { rejected: u64, of: u64 },
}

impl Work {
    /// Takes a batch up, and cuts it into a part for each signal in it.
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

    /// Cuts a part in two; `None` for one that is a single record.
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

    /// Ends a part of which so many items are refused, and keeps what was said.
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

    /// The letters to write, each with its request: what was refused item by item is one letter for each signal.
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

/// The records of a signal, with the items that each stands for.
fn items(batch: &Batch, signal: Signal) -> impl Iterator<Item = (Item<'_>, u64)> {
    batch
        .records()
        .filter_map(|it| Some((record::read(it.bytes)?, u64::from(it.items))))
        .filter(move |(item, _)| item.signal == signal)
}

/// The export request of some records of a signal.
fn request(batch: &Batch, signal: Signal, ranges: &[Range<usize>]) -> Vec<u8> {
    let is_wanted = |at: &usize| ranges.iter().any(|range| range.contains(at));
    let wanted = items(batch, signal).enumerate().filter(|(at, _)| is_wanted(at));
    let wanted: Vec<_> = wanted.map(|(_, (item, _))| item).collect();
    record::request(batch.head(), &wanted)
}
