//! What was left on disk by those before us.
//!
//! Nothing here changes a segment but for a torn tail, which is cut off. A file that is no segment of this version is
//! left alone.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, BufReader, Read, Seek, SeekFrom},
    path::Path,
    sync::Arc,
};

use crate::{
    folder::{Folder, OpenError},
    format::{self, HEADER_BYTES, Header, PREFIX_BYTES, Slot},
    segment::{OnDisk, Segment, on_disk_bytes},
    settled::{Mark, Settled},
};

const BUFFER_BYTES: usize = 256 * 1024;

/// The segments that were found, in order, and where they end.
#[derive(Debug, Default)]
pub(crate) struct Recovered {
    pub(crate) segments: Vec<Segment>,
    pub(crate) end: Mark,
    /// What was acknowledged, is a gap or is damaged: without items, since none of theirs are counted.
    pub(crate) settled: Settled,
    pub(crate) cut_bytes: u64,
    /// What the segments take on disk.
    pub(crate) disk_bytes: u64,
    pub(crate) next_id: u64,
}

/// What a file turned out to be.
enum Found {
    Segment {
        segment: Segment,
        settled: Vec<(Mark, Mark)>,
        cut_bytes: u64,
    },
    /// Nothing that anybody needs; the bytes that were cut.
    Nothing(u64),
    Foreign,
}

impl Recovered {
    /// Reads the segments of our folder, and moves those of dead journals behind them while they fit.
    pub(crate) fn find(folder: &Folder, disk_max: u64) -> Result<Self, OpenError> {
        let mut recovered = Self::default();
        let ids = folder.ids()?;
        recovered.next_id = ids.last().map_or(0, |last| last + 1);
        for (index, &id) in ids.iter().enumerate() {
            recovered.add(folder, id, index + 1 == ids.len())?;
        }
        for path in folder.others()? {
            if let Some(orphan) = folder.orphan(path) {
                recovered.adopt(folder, &orphan, disk_max)?;
            }
        }
        Ok(recovered)
    }

    /// What cannot be moved is left for another time.
    fn adopt(&mut self, folder: &Folder, orphan: &Folder, disk_max: u64) -> Result<(), OpenError> {
        let Ok(ids) = orphan.ids() else { return Ok(()) };
        for (index, &id) in ids.iter().enumerate() {
            let path = orphan.segment(id);
            match is_ours(&path) {
                Ok(true) => {}
                Ok(false) => continue,
                Err(_) => break,
            }
            let length = fs::metadata(&path).map_or(u64::MAX / 2, |metadata| metadata.len());
            let fits = self.disk_bytes + on_disk_bytes(length) <= disk_max;
            if !fits || fs::rename(&path, folder.segment(self.next_id)).is_err() {
                break;
            }
            self.next_id += 1;
            self.add(folder, self.next_id - 1, index + 1 == ids.len())?;
        }
        Ok(())
    }

    fn add(&mut self, folder: &Folder, id: u64, is_last: bool) -> Result<(), OpenError> {
        let path = folder.segment(id);
        match scan(folder, id, self.end).map_err(OpenError::at(&path))? {
            Found::Segment { mut segment, settled, cut_bytes } => {
                self.cut_bytes += cut_bytes;
                if is_last && segment.tail > 0 {
                    let length = segment.length(segment.end.at) - segment.tail;
                    let file = OpenOptions::new().write(true).open(&path);
                    if file.and_then(|file| file.set_len(length)).is_ok() {
                        segment.tail = 0;
                    }
                }
                for (from, to) in settled {
                    self.settled.settle(from, to);
                }
                self.end = segment.end;
                self.disk_bytes += on_disk_bytes(segment.length(segment.end.at));
                self.segments.push(segment);
            }
            Found::Nothing(cut_bytes) => {
                self.cut_bytes += cut_bytes;
                folder.remove(id).map_err(OpenError::at(&path))?;
            }
            Found::Foreign => {}
        }
        Ok(())
    }
}

fn is_ours(path: &Path) -> io::Result<bool> {
    let mut magic = [0; 8];
    let read = read_up_to(&mut File::open(path)?, &mut magic)?;
    Ok(is_torn(&magic[..read]) || magic == format::MAGIC)
}

/// Whether a file that begins like this was never written to the end of its beginning.
fn is_torn(magic: &[u8]) -> bool {
    magic.len() < 8 || magic.iter().all(|&byte| byte == 0)
}

fn scan(folder: &Folder, id: u64, first: Mark) -> io::Result<Found> {
    let file = File::open(folder.segment(id))?;
    let length = file.metadata()?.len();
    let mut reader = BufReader::with_capacity(BUFFER_BYTES, file);
    let mut prefix = [0; PREFIX_BYTES];
    let read = read_up_to(&mut reader, &mut prefix)?;
    if is_torn(&prefix[..read.min(8)]) {
        return Ok(Found::Nothing(length));
    }
    if prefix[..8] != format::MAGIC {
        return Ok(Found::Foreign);
    }
    let (head_length, head_checksum) = format::head_of(&prefix);
    if read < PREFIX_BYTES || length < PREFIX_BYTES as u64 + u64::from(head_length) {
        return Ok(Found::Nothing(length));
    }
    let mut head = vec![0; head_length as usize];
    reader.read_exact(&mut head)?;
    if crc32fast::hash(&head) != head_checksum {
        // Whose records these are, nobody can say.
        return Ok(Found::Foreign);
    }
    let mut segment = Segment::new(id, Arc::from(head), first);
    segment.on_disk = OnDisk::Ready;
    segment.slot = Slot::last(&prefix);
    let bytes = length - segment.records_at();
    if segment.slot.offset >= bytes {
        return Ok(Found::Nothing(0));
    }
    reader.seek(SeekFrom::Current(segment.slot.offset.cast_signed()))?;
    let mut walk =
        Walk { reader, left: bytes - segment.slot.offset, settled: Vec::new(), cut_bytes: 0 };
    let start = Mark { at: first.at + segment.slot.offset, items: first.items };
    walk.settled.push((first, start));
    let (end, records) = walk.run(start)?;
    segment.end = end;
    segment.filled = end.at;
    segment.tail = walk.left;
    let cut_bytes = walk.cut_bytes + walk.left;
    if records == 0 {
        return Ok(Found::Nothing(cut_bytes));
    }
    Ok(Found::Segment { segment, settled: walk.settled, cut_bytes })
}

/// A walk over the records of a file.
struct Walk {
    reader: BufReader<File>,
    /// Bytes of the file that were not walked over.
    left: u64,
    settled: Vec<(Mark, Mark)>,
    cut_bytes: u64,
}

impl Walk {
    /// Goes on until the end, or until a header is wrong: behind it nobody knows where a record begins. Says where that
    /// was, and how many records are good.
    fn run(&mut self, start: Mark) -> io::Result<(Mark, u64)> {
        let mut at = start;
        let mut records = 0;
        let mut bytes = [0; HEADER_BYTES];
        let mut payload = Vec::new();
        while self.left >= HEADER_BYTES as u64 {
            self.reader.read_exact(&mut bytes)?;
            let Some(header) =
                Header::parse(&bytes).filter(|header| header.record_bytes() <= self.left)
            else {
                break;
            };
            let mut next = Mark { at: at.at + header.record_bytes(), ..at };
            if header.is_gap {
                self.reader.seek_relative(i64::from(header.length))?;
                self.settled.push((at, next));
            } else {
                payload.resize(header.length as usize, 0);
                self.reader.read_exact(&mut payload)?;
                if crc32fast::hash(&payload) == header.checksum {
                    next.items += u64::from(header.items);
                    records += 1;
                } else {
                    self.cut_bytes += header.record_bytes();
                    self.settled.push((at, next));
                }
            }
            self.left -= header.record_bytes();
            at = next;
        }
        Ok((at, records))
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
