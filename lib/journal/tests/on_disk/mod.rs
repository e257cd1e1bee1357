//! A second, independent parser of the file format, and ways to damage a file.

use std::{fs, path::Path, path::PathBuf};

use proptest::prelude::*;

/// A segment's file.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) path: PathBuf,
    /// The offset of its first record.
    records_at: usize,
    /// For each record: its offset, the length of its payload, and the number at the start of the payload.
    records: Vec<(usize, usize, u64)>,
}

/// The segments in a folder, in order.
pub(crate) fn segments(folder: &Path) -> Vec<Found> {
    let files = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut paths: Vec<_> =
        files.filter(|path| path.extension().is_some_and(|it| it == "segment")).collect();
    paths.sort();
    paths.into_iter().map(parse).collect()
}

fn parse(path: PathBuf) -> Found {
    let bytes = fs::read(&path).unwrap_or_default();
    let number = |at: usize| {
        let field = bytes.get(at..at + 4).and_then(|field| field.try_into().ok());
        field.map_or(0, u32::from_le_bytes) as usize
    };
    let records_at = 64 + number(56);
    let mut records = Vec::new();
    let mut at = records_at;
    while at + 16 <= bytes.len() {
        let length = number(at) & 0x7fff_ffff;
        if number(at) == length {
            let first = u64::from(number(at + 16) as u32) | u64::from(number(at + 20) as u32) << 32;
            records.push((at, length, first));
        }
        at += 16 + length;
    }
    Found { path, records_at, records }
}

/// Copies the segments as they are now.
pub(crate) fn copy(from: &Path, to: &Path) {
    for found in segments(from) {
        let name = found.path.file_name().expect("a segment has a name");
        fs::copy(&found.path, to.join(name)).expect("a segment can be copied");
    }
}

/// Damage to a file between two restarts.
#[derive(Clone, Debug)]
pub(crate) enum Damage {
    /// The last file is truncated: at this byte, modulo its length.
    Truncate(usize),
    /// One bit of one of the files is flipped.
    Flip { file: usize, byte: usize, bit: u8 },
}

pub(crate) fn damage() -> impl Strategy<Value = Damage> {
    prop_oneof![
        any::<usize>().prop_map(Damage::Truncate),
        (any::<usize>(), any::<usize>(), 0u8..8).prop_map(|(file, byte, bit)| Damage::Flip {
            file,
            byte,
            bit
        }),
    ]
}

impl Damage {
    /// Applies the damage, and returns the records that may be missing because of it.
    pub(crate) fn apply(self, folder: &Path) -> Vec<u64> {
        let mut found = segments(folder);
        if found.is_empty() {
            return Vec::new();
        }
        match self {
            Self::Truncate(byte) => {
                let last = found.pop().expect("there is one");
                let mut bytes = fs::read(&last.path).expect("it is there");
                let byte = byte % (bytes.len() + 1);
                bytes.truncate(byte);
                fs::write(&last.path, bytes).expect("it can be written");
                last.numbers(|at, length| at + 16 + length > byte)
            }
            Self::Flip { file, byte, bit } => {
                let index = file % found.len();
                let hit = found.swap_remove(index);
                let mut bytes = fs::read(&hit.path).expect("it is there");
                let byte = byte % bytes.len();
                bytes[byte] ^= 1 << bit;
                fs::write(&hit.path, bytes).expect("it can be written");
                let in_header = hit.records.iter().any(|&(at, ..)| (at..at + 16).contains(&byte));
                let is_slot = (8..56).contains(&byte);
                hit.numbers(|at, length| match byte {
                    _ if is_slot => false,
                    _ if byte < hit.records_at => true,
                    _ if in_header => at + 16 > byte,
                    _ => (at..at + 16 + length).contains(&byte),
                })
            }
        }
    }
}

impl Found {
    fn numbers(&self, is_hit: impl Fn(usize, usize) -> bool) -> Vec<u64> {
        let hit = self.records.iter().filter(|&&(at, length, _)| is_hit(at, length));
        hit.map(|&(.., number)| number).collect()
    }
}
