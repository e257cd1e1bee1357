//! The data under the one short lock: the records in memory, the positions, and the counters.
//!
//! Deliberately absent: files, waiting and the clock. Slow work runs outside of the lock, in other modules, with the
//! data that this module returns.

use std::{
    collections::VecDeque,
    io, mem,
    sync::Arc,
    time::{Duration, Instant},
};

use crate::{
    age::Ages,
    chunk::{CHUNK_COST, Chunk, ChunkRange, Pool},
    format::{HEAD_BYTES_MAX, HEADER_BYTES, PREFIX_BYTES, RECORD_BYTES_MAX, Slot},
    limits::Limits,
    options::{Full, Options},
    ready::Readiness,
    segment::{OnDisk, Segment, length_within, on_disk_bytes},
    settled_ranges::{Mark, SettledRanges},
    tally::Tally,
};

/// The data under the state lock.
#[derive(Debug)]
pub(crate) struct State {
    /// The number of bytes that can be appended without another check. Every change that requires a check sets it to
    /// zero.
    pub(crate) room: u64,
    /// The open chunk: the records behind the last chunk of the last segment.
    pub(crate) open: Vec<u8>,
    pub(crate) open_from: Mark,
    /// The end of all records.
    pub(crate) end: Mark,
    /// Up to this position all records are in files, or settled.
    pub(crate) written: Mark,
    /// The position of the next record to read.
    pub(crate) reader: Mark,
    pub(crate) settled: SettledRanges,
    /// Never empty; appends go to the last.
    pub(crate) segments: VecDeque<Segment>,
    /// The segment with a file that is being written: it must not be deleted.
    pub(crate) writing: Option<u64>,
    /// Settled segments with files that must be deleted, and the disk space of each.
    pub(crate) doomed: Vec<(u64, u64)>,
    /// Deleting failed; it is not retried before this time.
    pub(crate) undeletable_until: Option<Instant>,
    /// The disk space of all segments but the last, now or once written, including the doomed segments and the files
    /// left alone.
    pub(crate) others: u64,
    /// The disk space of damaged files that the journal does not touch.
    pub(crate) left_alone: u64,
    pub(crate) next_head: Arc<[u8]>,
    pub(crate) next_id: u64,
    /// The memory of chunks and of the heads of all segments but the last, without the open chunk.
    pub(crate) resident: u64,
    pub(crate) limits: Limits,
    pub(crate) pool: Arc<Pool>,
    pub(crate) ages: Ages,
    pub(crate) ready: Readiness,
    pub(crate) full: Full,
    /// Whether appending and reading have ended.
    pub(crate) closed: bool,
    /// Whether writing has ended too: another journal may own the folder.
    pub(crate) is_over: bool,
    /// When the oldest record was appended that no thread has begun to write.
    pub(crate) unwritten_since: Option<Instant>,
    /// A write failed; producers do not retry before this time.
    pub(crate) refused_until: Option<Instant>,
    /// Whether written data may not be synced to the device.
    pub(crate) unsynced: bool,
    /// Whether the flusher is parked.
    pub(crate) parked: bool,
    pub(crate) tally: Tally,
}

/// The result of making room for a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    Made,
    /// Settled segments must be deleted first.
    Delete,
    /// Records must be written first.
    Write,
    None,
    /// The record will never fit.
    Never,
}

impl State {
    /// Creates the state of an empty journal, with segment ids that start at `next_id`.
    pub(crate) fn new(options: &Options, next_id: u64, head: &[u8]) -> Self {
        let limits = Limits::of(options);
        let head: Arc<[u8]> = Arc::from(head);
        let end = Mark::default();
        let segments = VecDeque::from([Segment::new(next_id, Arc::clone(&head), end)]);
        Self {
            room: 0,
            open: Vec::new(),
            open_from: end,
            end,
            written: end,
            reader: Mark::default(),
            settled: SettledRanges::default(),
            segments,
            writing: None,
            doomed: Vec::new(),
            undeletable_until: None,
            others: 0,
            left_alone: 0,
            next_head: head,
            next_id: next_id + 1,
            resident: 0,
            limits,
            pool: Arc::default(),
            ages: Ages::new(),
            ready: Readiness::new(options.ready.clone()),
            full: options.full,
            closed: false,
            is_over: false,
            unwritten_since: None,
            refused_until: None,
            unsynced: false,
            parked: false,
            tally: Tally::default(),
        }
    }

    /// Copies a record for which there is room. Returns whether the reader must be notified.
    #[inline]
    pub(crate) fn push(&mut self, items: u32, header: &[u8; HEADER_BYTES], payload: &[u8]) -> bool {
        let bytes = (HEADER_BYTES + payload.len()) as u64;
        self.room -= bytes;
        self.open.extend_from_slice(header);
        self.open.extend_from_slice(payload);
        self.end.at += bytes;
        self.end.items += u64::from(items);
        self.ready.is_reached(self.end)
    }

    /// Makes room for a record of `bytes` bytes, header included, or returns the step that must come first.
    pub(crate) fn make_room(&mut self, bytes: u64, now: Instant) -> Room {
        if self.is_too_large(bytes) {
            return Room::Never;
        }
        if let Some(max) = self.limits.disk_max {
            if !self.is_last_empty() && self.last_length() + bytes > self.limits.segment_max {
                self.rotate();
            }
            let is_over =
                |state: &Self| state.others + on_disk_bytes(state.last_length() + bytes) > max;
            if is_over(self) {
                if !self.is_last_empty() && self.settled.cursor().at == self.end.at {
                    self.rotate();
                    self.release();
                }
                if !self.doomed.is_empty() {
                    return Room::Delete;
                }
                if is_over(self) {
                    return Room::None;
                }
            }
        }
        self.forget_written(bytes);
        if self.memory_bytes_with(bytes) > self.limits.memory_max {
            let can_write = self.limits.disk_max.is_some() && self.written.at < self.end.at;
            return if can_write { Room::Write } else { Room::None };
        }
        self.open_chunk(bytes as usize);
        self.ages.note(self.end.at, now);
        self.room = self.room_bytes(bytes);
        Room::Made
    }

    fn is_too_large(&self, bytes: u64) -> bool {
        let beginning = self.last_segment().records_at();
        let disk = self.left_alone + on_disk_bytes(beginning + bytes);
        bytes > RECORD_BYTES_MAX
            || beginning > (PREFIX_BYTES + HEAD_BYTES_MAX) as u64
            || bytes > self.limits.memory_max
            || self.limits.disk_max.is_some_and(|max| disk > max)
    }

    fn room_bytes(&self, bytes: u64) -> u64 {
        let chunk = (self.open.capacity() - self.open.len()) as u64;
        let memory = self.limits.memory_max - self.memory_bytes();
        let room = chunk.min(memory);
        let Some(max) = self.limits.disk_max else { return room };
        let length = self.last_length();
        let disk = length_within(max - self.others) - length;
        let segment = self.limits.segment_max.max(length + bytes) - length;
        room.min(disk).min(segment)
    }

    fn open_chunk(&mut self, bytes: usize) {
        if self.open.capacity() - self.open.len() < bytes {
            self.freeze();
        }
        if self.open.capacity() < bytes {
            self.open = self.pool.take(bytes.max(self.limits.chunk_bytes));
        }
    }

    /// Turns the open chunk into a closed one.
    pub(crate) fn freeze(&mut self) {
        self.room = 0;
        if self.open.is_empty() {
            return;
        }
        let length = self.open.len();
        // A buffer that is mostly empty is copied, so that the counted memory matches the allocated memory.
        let bytes = if length * 4 >= self.open.capacity() * 3 {
            mem::take(&mut self.open)
        } else {
            let copy = self.open.clone();
            self.open.clear();
            copy
        };
        let chunk = Chunk::new(bytes, &self.pool);
        let placed = ChunkRange { from: self.open_from, to: self.end, chunk };
        let end = self.end;
        self.resident += placed.memory_bytes();
        let last = self.last_segment_mut();
        last.chunks.push_back(placed);
        last.end = end;
        self.open_from = end;
    }

    /// Starts a new segment for later appends.
    pub(crate) fn rotate(&mut self) {
        self.freeze();
        if self.is_last_empty() {
            self.pop_last();
        } else {
            self.others += on_disk_bytes(self.last_length());
        }
        self.push_last();
    }

    /// Removes the last segment, which is empty. The caller must push another one.
    pub(crate) fn pop_last(&mut self) {
        let Some(last) = self.segments.pop_back() else { return };
        self.next_id = last.id;
        if let Some(before) = self.segments.back() {
            self.resident -= before.head_bytes(&last);
        }
    }

    /// Appends a new segment under the latest head.
    pub(crate) fn push_last(&mut self) {
        let last = Segment::new(self.next_id, Arc::clone(&self.next_head), self.end);
        self.next_id += 1;
        self.push_segment(last);
    }

    /// Appends a segment behind all others.
    pub(crate) fn push_segment(&mut self, segment: Segment) {
        if let Some(before) = self.segments.back() {
            self.resident += before.head_bytes(&segment);
        }
        self.segments.push_back(segment);
    }

    /// Discards the oldest chunks that are in files, until `bytes` fit into memory.
    fn forget_written(&mut self, bytes: u64) {
        if self.memory_bytes_with(bytes) <= self.limits.memory_max {
            return;
        }
        if self.limits.disk_max.is_some() && self.written.at == self.end.at {
            self.freeze();
        }
        let more = self.memory_bytes_with(bytes) - self.resident;
        let enough = self.limits.memory_max.saturating_sub(more);
        for segment in &mut self.segments {
            while let Some(oldest) = segment.chunks.front() {
                if self.resident <= enough || oldest.to.at > self.written.at {
                    return;
                }
                self.resident -= oldest.memory_bytes();
                segment.chunks.pop_front();
            }
        }
    }

    /// Counts a range as acknowledged, and returns how many of its items were not settled before.
    pub(crate) fn acknowledge(&mut self, from: Mark, to: Mark) -> u64 {
        let fresh = self.settled.settle(from, to);
        self.tally.acknowledged += fresh;
        self.release();
        fresh
    }

    /// Counts a range that cannot be read back as damaged.
    pub(crate) fn give_up(&mut self, from: Mark, to: Mark) {
        self.tally.damaged += self.settled.settle(from, to);
        self.release();
    }

    /// Returns the files that may contain records that count as unwritten, because the disk accepted only a part of a
    /// group, and the length of each file without them.
    pub(crate) fn half_written(&mut self) -> Vec<(u64, u64)> {
        self.freeze();
        let torn = self.segments.iter().filter(|segment| {
            segment.on_disk != OnDisk::Absent && segment.filled.at < segment.end.at
        });
        let length = |segment: &Segment| match segment.on_disk {
            OnDisk::Ready => segment.length(segment.filled.at),
            _ => 0,
        };
        torn.map(|segment| (segment.id, length(segment))).collect()
    }

    /// Drops the records that are in no file, and returns how many items they had.
    pub(crate) fn abandon(&mut self) -> u64 {
        self.freeze();
        // Per segment: the loss of one file is no reason to drop the records of later files.
        let mut fresh = 0;
        for segment in &self.segments {
            fresh += self.settled.settle(segment.filled, segment.end);
        }
        self.tally.abandoned += fresh;
        self.written = self.end;
        self.release();
        fresh
    }

    /// Returns the last segment, if it has a file and all its records are settled.
    pub(crate) fn settled_last(&self) -> Option<u64> {
        let last = self.last_segment();
        let is_settled = self.end.at == self.settled.cursor().at;
        (is_settled && last.on_disk != OnDisk::Absent).then_some(last.id)
    }

    /// Discards chunks and segments before the cursor.
    pub(crate) fn release(&mut self) {
        let cursor = self.settled.cursor();
        if cursor.at == self.end.at {
            self.freeze();
            self.ages.clear();
            if self.last_length() > self.limits.segment_max / 2 {
                self.rotate();
            }
        } else {
            self.ages.forget_before(cursor.at);
        }
        while let Some(front) = self.segments.front_mut() {
            while let Some(oldest) = front.chunks.pop_front_if(|oldest| oldest.to.at <= cursor.at) {
                self.resident -= oldest.memory_bytes();
            }
            if front.end.at > cursor.at
                || self.writing == Some(front.id)
                || self.segments.len() == 1
            {
                break;
            }
            self.retire();
        }
    }

    fn retire(&mut self) {
        let Some(front) = self.segments.pop_front() else { return };
        if let Some(next) = self.segments.front() {
            self.resident -= front.head_bytes(next);
        }
        let bytes = on_disk_bytes(front.length(front.end.at));
        if front.on_disk == OnDisk::Absent {
            self.others -= bytes;
        } else {
            self.doomed.push((front.id, bytes));
        }
    }

    /// Records that writing a group failed: producers do not retry for a while.
    pub(crate) fn refuse(&mut self, error: &io::Error, now: Instant, pause: Duration) {
        self.tally.blame(error);
        self.refused_until = Some(now + pause);
        self.unwritten_since = Some(now);
    }

    /// Handles a file that was deleted from outside. Records in memory will be written again; the rest is lost and
    /// counted.
    pub(crate) fn lose_file(&mut self, id: u64) {
        let Some(segment) = self.segment_mut(id) else { return };
        segment.on_disk = OnDisk::Absent;
        segment.filled = segment.first;
        segment.slot = Slot { sequence: 1, offset: 0 };
        let (first, resident) = (segment.first, segment.resident());
        self.written = self.written.min(first);
        self.give_up(first, resident);
    }

    /// Ends the journal: no file is changed from now on, and the records in memory are discarded.
    pub(crate) fn end(&mut self) {
        self.is_over = true;
        self.open = Vec::new();
        self.resident = 0;
        for segment in &mut self.segments {
            segment.chunks.clear();
        }
    }

    /// Returns the acknowledgement that must be written to the file of the cursor's segment, or `None` if it is up to
    /// date. The cursor may be ahead of the file, where only a gap would follow: the slot never points behind the end
    /// of the file.
    pub(crate) fn lagging_slot(&self) -> Option<(u64, Slot)> {
        let front = self.segments.front().filter(|front| front.on_disk == OnDisk::Ready)?;
        if self.is_over {
            return None;
        }
        let offset = self.settled.cursor().at.min(front.filled.at).saturating_sub(front.first.at);
        let slot = Slot { sequence: front.slot.sequence + 1, offset };
        (offset > front.slot.offset).then_some((front.id, slot))
    }

    pub(crate) fn last_segment(&self) -> &Segment {
        self.segments.back().expect("a journal has a segment to append to")
    }

    pub(crate) fn last_segment_mut(&mut self) -> &mut Segment {
        self.segments.back_mut().expect("a journal has a segment to append to")
    }

    /// Finds a segment by its id, at any index.
    pub(crate) fn segment_mut(&mut self, id: u64) -> Option<&mut Segment> {
        let index = self.segments.binary_search_by_key(&id, |segment| segment.id).ok()?;
        self.segments.get_mut(index)
    }

    pub(crate) fn is_last_empty(&self) -> bool {
        self.last_segment().first.at == self.end.at
    }

    fn last_length(&self) -> u64 {
        self.last_segment().length(self.end.at)
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        self.resident + self.open.len() as u64
    }

    /// The memory in use once a record of `bytes` bytes is in it.
    fn memory_bytes_with(&self, bytes: u64) -> u64 {
        let is_frozen =
            !self.open.is_empty() && ((self.open.capacity() - self.open.len()) as u64) < bytes;
        self.memory_bytes() + bytes + if is_frozen { CHUNK_COST } else { 0 }
    }

    pub(crate) fn queued(&self) -> u64 {
        let gone = self.tally.acknowledged + self.tally.damaged + self.tally.abandoned;
        self.end.items.saturating_sub(gone)
    }

    /// The used share of the limit.
    pub(crate) fn pressure(&self) -> f64 {
        let share = |bytes: u64, max: u64| (bytes as f64 / max.max(1) as f64).min(1.0);
        let memory = share(self.memory_bytes(), self.limits.memory_max);
        let Some(max) = self.limits.disk_max else { return memory };
        let last = if self.is_last_empty() { 0 } else { on_disk_bytes(self.last_length()) };
        let disk = share(self.others + last, max);
        if self.refused_until.is_some() { disk.max(memory) } else { disk }
    }
}
