//! A reader of columns, by the description of the format: it shares no line with the writer.

use serde::{Deserialize, Serialize};

/// The head, as the format describes it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Head {
    pub(crate) version: u32,
    pub(crate) spans: usize,
    pub(crate) start: String,
    pub(crate) duration: u64,
    pub(crate) names: Vec<String>,
    pub(crate) services: Vec<String>,
    pub(crate) processes: Vec<Process>,
    columns: Vec<Column>,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Process {
    pub(crate) service: u16,
    pub(crate) name: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Column {
    name: String,
    #[serde(rename = "type")]
    kind: String,
    offset: usize,
}

/// A row.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Row {
    pub(crate) start: f64,
    pub(crate) duration: f64,
    /// In hexadecimal.
    pub(crate) id: String,
    pub(crate) end: u32,
    pub(crate) name: u32,
    pub(crate) process: u32,
    pub(crate) service: u16,
    pub(crate) depth: u16,
    pub(crate) kind: u8,
    pub(crate) flags: u8,
}

/// The names, types and widths of the columns, in order.
const EXPECTED: [(&str, &str, usize); 10] = [
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

/// Reads all of it, and checks that nothing is between the columns.
pub(crate) fn read(bytes: &[u8]) -> (Head, Vec<Row>) {
    assert_eq!(&bytes[..4], b"QTCO");
    let length = u32::from_le_bytes(array(bytes, 4)) as usize;
    let mut next = 8 + length;
    assert_eq!(next % 8, 0, "columns begin at a multiple of eight");
    let head: Head = serde_json::from_slice(&bytes[8..next]).expect("a head");
    assert_eq!(head.columns.len(), EXPECTED.len());
    let mut offsets = Vec::new();
    for (column, (name, kind, width)) in head.columns.iter().zip(EXPECTED) {
        assert_eq!((&*column.name, &*column.kind), (name, kind));
        assert!(bytes[next..column.offset].iter().all(|byte| *byte == 0), "zeros are between");
        assert_eq!(column.offset, next.next_multiple_of(8), "{name}");
        next = column.offset + width * head.spans;
        offsets.push(column.offset);
    }
    assert_eq!(bytes.len(), next, "nothing is behind the last column");
    let rows = (0..head.spans).map(|at| row(bytes, &offsets, at)).collect();
    (head, rows)
}

fn row(bytes: &[u8], offsets: &[usize], at: usize) -> Row {
    let id: [u8; 8] = array(bytes, offsets[2] + 8 * at);
    Row {
        start: f64::from_le_bytes(array(bytes, offsets[0] + 8 * at)),
        duration: f64::from_le_bytes(array(bytes, offsets[1] + 8 * at)),
        id: id.iter().map(|byte| format!("{byte:02x}")).collect(),
        end: u32::from_le_bytes(array(bytes, offsets[3] + 4 * at)),
        name: u32::from_le_bytes(array(bytes, offsets[4] + 4 * at)),
        process: u32::from_le_bytes(array(bytes, offsets[5] + 4 * at)),
        service: u16::from_le_bytes(array(bytes, offsets[6] + 2 * at)),
        depth: u16::from_le_bytes(array(bytes, offsets[7] + 2 * at)),
        kind: bytes[offsets[8] + at],
        flags: bytes[offsets[9] + at],
    }
}

fn array<const LEN: usize>(bytes: &[u8], at: usize) -> [u8; LEN] {
    bytes[at..at + LEN].try_into().expect("the length of the slice")
}
