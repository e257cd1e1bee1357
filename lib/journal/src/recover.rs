//! Recovers the segments that earlier journals left on disk.
//!
//! Recovery changes no segment, except that it cuts off a torn tail. It does not touch a file that is no segment of
//! this version, nor a file that cannot be read: it may be readable later.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, BufRead, BufReader, Read, Seek, SeekFrom},
    path::Path,
    slice,
    sync::Arc,
};

use crate::{
    folder::{Folder, OpenError},
    format::{
        self, FILE_BYTES_MAX, HEAD_BYTES_MAX, HEADER_BYTES, Header, PREFIX_BYTES, RECORD_BYTES_MAX,
        Slot,
    },
    segment::{OnDisk, Segment, on_disk_bytes},
    settled_ranges::Mark,
};

const BUFFER_BYTES: usize = 256 * 1024;

/// Counts the items that journals left in a directory, in folders that no journal has open now. Does not change them.
pub fn left_items(directory: &Path) -> io::Result<u64> {
    let items = |folder: &Folder| {
        let left = RecoveredFolder::of(folder).map(|it| it.left).unwrap_or_default();
        left.iter().map(|left| left.segment.end.items).sum::<u64>()
    };
    Ok(Folder::all_dead(directory)?.iter().map(items).sum())
}

/// The segments that were found in one folder.
#[derive(Debug, Default)]
pub(crate) struct RecoveredFolder {
    /// The recovered segments, in order.
    pub(crate) left: Vec<LeftSegment>,
    /// Torn and damaged bytes, including those of files that recovery does not touch.
    pub(crate) cut_bytes: u64,
    /// The bytes on disk of damaged files that recovery does not touch.
    pub(crate) left_alone: u64,
    pub(crate) next_id: u64,
}

/// A recovered segment, with positions as if it were the first of a journal.
#[derive(Debug)]
pub(crate) struct LeftSegment {
    pub(crate) segment: Segment,
    /// The ranges that are acknowledged, a gap or damaged. They have no items, because their items are not counted.
    pub(crate) settled: Vec<(Mark, Mark)>,
}

/// The result of scanning a file.
enum SegmentScan {
    Segment {
        left: LeftSegment,
        cut_bytes: u64,
    },
    /// The file has no record that is needed; the number of cut bytes.
    Nothing(u64),
    /// The file is damaged, so the head of its records is unknown; its length in bytes.
    Damaged(u64),
    Foreign,
}

impl RecoveredFolder {
    /// Reads the segments of a folder that we own. Does not touch a file that cannot be read.
    pub(crate) fn of(folder: &Folder) -> Result<Self, OpenError> {
        let mut recovered = Self::default();
        let ids = folder.ids()?;
        recovered.next_id = ids.last().map_or(0, |last| last + 1);
        for (index, &id) in ids.iter().enumerate() {
            recovered.add(folder, id, index + 1 == ids.len());
        }
        Ok(recovered)
    }

    fn add(&mut self, folder: &Folder, id: u64, is_last: bool) {
        let path = folder.segment(id);
        let length = || fs::symlink_metadata(&path).map_or(0, |metadata| metadata.len());
        match scan(&path, id).unwrap_or_else(|_unreadable| SegmentScan::Damaged(length())) {
            SegmentScan::Segment { mut left, cut_bytes } => {
                self.cut_bytes += cut_bytes;
                let segment = &mut left.segment;
                if is_last && segment.tail > 0 {
                    let length = segment.length(segment.end.at) - segment.tail;
                    let file = OpenOptions::new().write(true).open(&path);
                    if file.and_then(|file| file.set_len(length)).is_ok() {
                        segment.tail = 0;
                    }
                }
                // Most segments have the same head, so they share it.
                if let Some(before) = self.left.last()
                    && before.segment.head == segment.head
                {
                    segment.head = Arc::clone(&before.segment.head);
                }
                self.left.push(left);
            }
            SegmentScan::Nothing(cut_bytes) => {
                self.cut_bytes += cut_bytes;
                if folder.remove(id).is_err() {
                    self.left_alone += on_disk_bytes(length());
                }
            }
            SegmentScan::Damaged(bytes) => {
                self.cut_bytes += bytes;
                self.left_alone += on_disk_bytes(bytes);
            }
            SegmentScan::Foreign => {}
        }
    }
}

/// Returns whether a file with this beginning is torn: its beginning was never written completely.
fn is_torn(magic: &[u8]) -> bool {
    magic.len() < 8 || magic.iter().all(|&byte| byte == 0)
}

fn scan(path: &Path, id: u64) -> io::Result<SegmentScan> {
    // Checked before the file is opened: opening a pipe would block.
    if !fs::symlink_metadata(path)?.is_file() {
        return Ok(SegmentScan::Foreign);
    }
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    let mut reader = BufReader::with_capacity(BUFFER_BYTES, file);
    let mut prefix = [0; PREFIX_BYTES];
    let read = read_up_to(&mut reader, &mut prefix)?;
    if is_torn(&prefix[..read.min(8)]) {
        return Ok(SegmentScan::Nothing(length));
    }
    if prefix[..8] != format::MAGIC {
        return Ok(SegmentScan::Foreign);
    }
    if read < PREFIX_BYTES {
        return Ok(SegmentScan::Nothing(length));
    }
    let (head_length, head_checksum) = format::head_of(&prefix);
    if head_length as usize > HEAD_BYTES_MAX || length > FILE_BYTES_MAX {
        return Ok(SegmentScan::Damaged(length));
    }
    let mut head = vec![0; head_length as usize];
    let read = read_up_to(&mut reader, &mut head)?;
    head.truncate(read);
    if read < head_length as usize {
        let is_longer = begins_with(&head, head_checksum);
        return Ok(if is_longer {
            SegmentScan::Damaged(length)
        } else {
            SegmentScan::Nothing(length)
        });
    }
    if crc32fast::hash(&head) != head_checksum {
        // Without a valid head it is unknown what the records belong to.
        return Ok(SegmentScan::Damaged(length));
    }
    let first = Mark::default();
    let mut segment = Segment::new(id, Arc::from(head), first);
    segment.on_disk = OnDisk::Ready;
    segment.slot = Slot::last(&prefix);
    let bytes = length.saturating_sub(segment.records_at());
    if segment.slot.offset >= bytes {
        return Ok(SegmentScan::Nothing(0));
    }
    reader.seek(SeekFrom::Current(segment.slot.offset.cast_signed()))?;
    let mut walk =
        Walk { reader, left: bytes - segment.slot.offset, settled: Vec::new(), cut_bytes: 0 };
    let start = Mark { at: segment.slot.offset, items: 0 };
    walk.settle(first, start);
    let (end, records) = walk.run(start)?;
    segment.end = end;
    segment.filled = end;
    segment.tail = walk.left;
    let cut_bytes = walk.cut_bytes + walk.left;
    if records == 0 {
        return Ok(SegmentScan::Nothing(cut_bytes));
    }
    Ok(SegmentScan::Segment { left: LeftSegment { segment, settled: walk.settled }, cut_bytes })
}

/// Returns whether a prefix of these bytes has this checksum. If so, the length is wrong and the head is complete;
/// otherwise the head was never written to its end.
fn begins_with(bytes: &[u8], checksum: u32) -> bool {
    let mut hasher = crc32fast::Hasher::new();
    bytes.iter().any(|byte| {
        let is_it = hasher.clone().finalize() == checksum;
        hasher.update(slice::from_ref(byte));
        is_it
    })
}

/// A scan over the records of a file.
struct Walk {
    reader: BufReader<File>,
    /// The bytes of the file that are not scanned yet.
    left: u64,
    settled: Vec<(Mark, Mark)>,
    cut_bytes: u64,
}

impl Walk {
    /// Scans until the end, or until an invalid header: behind it the start of the next record is unknown. Returns
    /// where the scan ended, and how many records are valid.
    fn run(&mut self, start: Mark) -> io::Result<(Mark, u64)> {
        let mut at = start;
        let mut records = 0;
        let mut bytes = [0; HEADER_BYTES];
        while self.left >= HEADER_BYTES as u64 {
            self.reader.read_exact(&mut bytes)?;
            let Some(header) = Header::parse(&bytes)
                .filter(|header| header.record_bytes() <= RECORD_BYTES_MAX.min(self.left))
            else {
                break;
            };
            let mut next = Mark { at: at.at + header.record_bytes(), ..at };
            if header.is_gap {
                self.reader.seek_relative(i64::from(header.length))?;
                self.settle(at, next);
            } else {
                if self.next_checksum(header.length as usize)? == header.checksum {
                    next.items += u64::from(header.items);
                    records += 1;
                } else {
                    self.cut_bytes += header.record_bytes();
                    self.settle(at, next);
                }
            }
            self.left -= header.record_bytes();
            at = next;
        }
        Ok((at, records))
    }

    fn settle(&mut self, from: Mark, to: Mark) {
        match self.settled.last_mut() {
            Some((_, end)) if end.at == from.at => *end = to,
            _ => self.settled.push((from, to)),
        }
    }

    /// Returns the checksum of the next `bytes` bytes, which need not fit into memory.
    fn next_checksum(&mut self, mut bytes: usize) -> io::Result<u32> {
        let mut hasher = crc32fast::Hasher::new();
        while bytes > 0 {
            let buffer = self.reader.fill_buf()?;
            if buffer.is_empty() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let read = buffer.len().min(bytes);
            hasher.update(&buffer[..read]);
            self.reader.consume(read);
            bytes -= read;
        }
        Ok(hasher.finalize())
    }
}

fn read_up_to(reader: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut read = 0;
    while read < buffer.len() {
        match reader.read(&mut buffer[read..]) {
            Ok(0) => break,
            Ok(bytes) => read += bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(read)
}
