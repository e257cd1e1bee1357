//! The records of the journal: batches, and marks that a trace was forgotten.
//!
//! A record is a kind, a number, a trace id and, for a batch, its sealed bytes. Numbers increase with publishing and stay with a
//! batch when it is copied to the end of the journal, so that the reader recognizes copies, and their order is that of
//! publishing.

use model::TraceId;

/// The head of every segment: the format below. A segment with another head was written by another version.
pub(crate) const HEAD: &[u8] = b"spans 2";

const BATCH: u8 = 1;
const FORGOTTEN: u8 = 2;

/// The size of kind, number and trace id.
pub(crate) const PREFIX_BYTES: usize = 1 + 8 + 16;

/// A decoded record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Record<'a> {
    Batch {
        number: u64,
        trace: TraceId,
        bytes: &'a [u8],
    },
    /// All batches of the trace with lower numbers are forgotten.
    Forgotten {
        before: u64,
        trace: TraceId,
    },
}

impl<'a> Record<'a> {
    /// Encodes the record into a reusable buffer.
    pub(crate) fn write(self, buffer: &mut Vec<u8>) {
        let (kind, number, trace, bytes) = match self {
            Self::Batch { number, trace, bytes } => (BATCH, number, trace, bytes),
            Self::Forgotten { before, trace } => (FORGOTTEN, before, trace, &[][..]),
        };
        buffer.clear();
        buffer.reserve(PREFIX_BYTES + bytes.len());
        buffer.push(kind);
        buffer.extend_from_slice(&number.to_le_bytes());
        buffer.extend_from_slice(trace.as_bytes());
        buffer.extend_from_slice(bytes);
    }

    /// Decodes a record. None where the format is invalid.
    pub(crate) fn read(record: &'a [u8]) -> Option<Self> {
        let (&kind, rest) = record.split_first()?;
        let (number, rest) = rest.split_first_chunk()?;
        let (trace, bytes) = rest.split_first_chunk()?;
        let (number, trace) = (u64::from_le_bytes(*number), TraceId::from_bytes(*trace)?);
        match kind {
            BATCH => Some(Self::Batch { number, trace, bytes }),
            FORGOTTEN if bytes.is_empty() => Some(Self::Forgotten { before: number, trace }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use model::TraceId;

    use super::Record;

    #[test]
    fn records_are_read_as_they_were_written_and_nothing_else_is() {
        let trace = TraceId::from_bytes([7; 16]).expect("not all zero");
        let mut buffer = Vec::new();
        for record in [
            Record::Batch { number: 1, trace, bytes: b"spans" },
            Record::Batch { number: u64::MAX, trace, bytes: b"" },
            Record::Forgotten { before: 9, trace },
        ] {
            record.write(&mut buffer);
            assert_eq!(Record::read(&buffer), Some(record));
        }
        let golden = [&[2, 9, 0, 0, 0, 0, 0, 0, 0][..], &[7; 16]].concat();
        assert_eq!(buffer, golden, "the form is promised to the next version");
        for noise in [&golden[..24], &[&golden[..], b"x"].concat(), &[3; 25], &[]] {
            assert_eq!(Record::read(noise), None);
        }
    }
}
