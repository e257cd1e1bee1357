//! All that is under the one short lock: what is in memory, what is where, and the counts.
//!
//! Deliberately absent: files, waiting and the clock. What takes time is done by others, outside of the lock, with what
//! they were told here.

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

/// What is under the lock.
#[derive(Debug)]
pub(crate) struct State {
    /// So many bytes can be appended without a second thought. Whatever asks for one sets it to zero.
    pub(crate) room: u64,
    /// The open chunk: what was appended behind the last segment's last chunk.
    pub(crate) open: Vec<u8>,
    pub(crate) open_from: Mark,
    /// The end of all records.
    pub(crate) end: Mark,
    /// Up to here everything is in files, or settled.
    pub(crate) written: Mark,
    /// The next record to read.
    pub(crate) reader: Mark,
    pub(crate) settled: SettledRanges,
    /// Never empty; appends go to the last.
    pub(crate) segments: VecDeque<Segment>,
    /// The segment whose file is being written: it must stay.
    pub(crate) writing: Option<u64>,
    /// Settled segments whose files must be deleted, with what they take on disk.
    pub(crate) doomed: Vec<(u64, u64)>,
    /// Deleting was refused; it is not tried before this moment.
    pub(crate) undeletable_until: Option<Instant>,
    /// What all segments but the last take on disk, or will; the doomed ones and files left alone included.
    pub(crate) others: u64,
    /// What damaged files take on disk, which are left alone.
    pub(crate) left_alone: u64,
    pub(crate) next_head: Arc<[u8]>,
    pub(crate) next_id: u64,
    /// What chunks and the heads of all segments but the last take in memory; the open chunk excluded.
    pub(crate) resident: u64,
    pub(crate) limits: Limits,
    pub(crate) pool: Arc<Pool>,
    pub(crate) ages: Ages,
    pub(crate) ready: Readiness,
    pub(crate) full: Full,
    /// Nothing is appended or read any more.
    pub(crate) closed: bool,
    /// Nor is anything written: the folder may be somebody else's.
    pub(crate) is_over: bool,
    /// When the oldest record that nobody has begun to write was appended.
    pub(crate) unwritten_since: Option<Instant>,
    /// The disk has refused; a producer does not try before this moment.
    pub(crate) refused_until: Option<Instant>,
    /// The device may lack something that it should have.
    pub(crate) unsynced: bool,
    /// The flusher waits to be woken.
    pub(crate) parked: bool,
    pub(crate) tally: Tally,
}

/// What stands between a record and its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    Made,
    /// Settled segments must be deleted first.
    Delete,
    /// Something must be written first.
    Write,
    None,
    /// There never will be any.
    Never,
}

impl State {
    /// The state of an empty journal, whose segments are counted from this id on.
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

    /// Copies a record for which there is room. Says whether the reader must be told.
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

    /// Makes room for a record of so many bytes, its header included, or says what must be done first.
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

    /// Makes a chunk of the open one.
    pub(crate) fn freeze(&mut self) {
        self.room = 0;
        if self.open.is_empty() {
            return;
        }
        let length = self.open.len();
        // A buffer that is hardly used is worth a copy: what is counted is what is taken.
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

    /// Later appends go to another segment.
    pub(crate) fn rotate(&mut self) {
        self.freeze();
        if self.is_last_empty() {
            self.pop_last();
        } else {
            self.others += on_disk_bytes(self.last_length());
        }
        self.push_last();
    }

    /// Takes the last segment away, which is empty; another one must follow.
    pub(crate) fn pop_last(&mut self) {
        let Some(last) = self.segments.pop_back() else { return };
        self.next_id = last.id;
        if let Some(before) = self.segments.back() {
            self.resident -= before.head_bytes(&last);
        }
    }

    /// Begins a segment at the end, under the latest head.
    pub(crate) fn push_last(&mut self) {
        let last = Segment::new(self.next_id, Arc::clone(&self.next_head), self.end);
        self.next_id += 1;
        self.push_segment(last);
    }

    /// Puts a segment behind all others.
    pub(crate) fn push_segment(&mut self, segment: Segment) {
        if let Some(before) = self.segments.back() {
            self.resident += before.head_bytes(&segment);
        }
        self.segments.push_back(segment);
    }

    /// Forgets the oldest chunks that are in files, until so many bytes fit into memory.
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

    /// Counts a stretch as acknowledged, and says how many of its items were not settled before.
    pub(crate) fn acknowledge(&mut self, from: Mark, to: Mark) -> u64 {
        let fresh = self.settled.settle(from, to);
        self.tally.acknowledged += fresh;
        self.release();
        fresh
    }

    /// Counts a stretch that cannot be read back.
    pub(crate) fn give_up(&mut self, from: Mark, to: Mark) {
        self.tally.damaged += self.settled.settle(from, to);
        self.release();
    }

    /// Files that may hold something that counts as unwritten, because the disk took only a part of a group, and how long
    /// each is without it.
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

    /// Gives up what is in no file, and says how many items that were.
    pub(crate) fn abandon(&mut self) -> u64 {
        self.freeze();
        // By segment: a file that was lost is no reason to let go of those behind it.
        let mut fresh = 0;
        for segment in &self.segments {
            fresh += self.settled.settle(segment.filled, segment.end);
        }
        self.tally.abandoned += fresh;
        self.written = self.end;
        self.release();
        fresh
    }

    /// The last segment, if its file is there and nobody needs it.
    pub(crate) fn settled_last(&self) -> Option<u64> {
        let last = self.last_segment();
        let is_settled = self.end.at == self.settled.cursor().at;
        (is_settled && last.on_disk != OnDisk::Absent).then_some(last.id)
    }

    /// Lets go of chunks and segments before the cursor.
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

    /// The disk did not take a group: producers leave it alone for a while.
    pub(crate) fn refuse(&mut self, error: &io::Error, now: Instant, pause: Duration) {
        self.tally.blame(error);
        self.refused_until = Some(now + pause);
        self.unwritten_since = Some(now);
    }

    /// Somebody has deleted a file. What is in memory will be written again; the rest is lost, and counted.
    pub(crate) fn lose_file(&mut self, id: u64) {
        let Some(segment) = self.segment_mut(id) else { return };
        segment.on_disk = OnDisk::Absent;
        segment.filled = segment.first;
        segment.slot = Slot { sequence: 1, offset: 0 };
        let (first, resident) = (segment.first, segment.resident());
        self.written = self.written.min(first);
        self.give_up(first, resident);
    }

    /// Ends it: no file is touched from now on, and nobody will ask for what is in memory.
    pub(crate) fn end(&mut self) {
        self.is_over = true;
        self.open = Vec::new();
        self.resident = 0;
        for segment in &mut self.segments {
            segment.chunks.clear();
        }
    }

    /// What the file of the cursor's segment should say about it, unless it does. The cursor may be ahead of the file,
    /// where there is only a gap to come: the file is told no more than it can lead to.
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

    /// By its id, wherever it has moved to.
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

    /// What memory holds when a record of so many bytes is in it.
    fn memory_bytes_with(&self, bytes: u64) -> u64 {
        let is_frozen =
            !self.open.is_empty() && ((self.open.capacity() - self.open.len()) as u64) < bytes;
        self.memory_bytes() + bytes + if is_frozen { CHUNK_COST } else { 0 }
    }

    pub(crate) fn queued(&self) -> u64 {
        let gone = self.tally.acknowledged + self.tally.damaged + self.tally.abandoned;
        self.end.items.saturating_sub(gone)
    }

    /// The share of the bound that is used.
    pub(crate) fn pressure(&self) -> f64 {
        let share = |bytes: u64, max: u64| (bytes as f64 / max.max(1) as f64).min(1.0);
        let memory = share(self.memory_bytes(), self.limits.memory_max);
        let Some(max) = self.limits.disk_max else { return memory };
        let last = if self.is_last_empty() { 0 } else { on_disk_bytes(self.last_length()) };
        let disk = share(self.others + last, max);
        if self.refused_until.is_some() { disk.max(memory) } else { disk }
    }
}
