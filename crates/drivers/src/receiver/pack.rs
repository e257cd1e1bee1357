//! Compressed messages: gzip and zstd, decompressed within limits.

use std::io::{self, Read};

use bytes::Bytes;
use flate2::bufread::GzDecoder;
use tokio::task::yield_now;
use zstd::stream::read::Decoder;

use super::{error::ExportError, room::Room};

/// The maximum window size of zstd, as a power of two. The specification requires every decoder to support this much.
const ZSTD_WINDOW_LOG_MAX: u32 = 23;

/// The maximum number of gzip members of a message. Each costs as much as some kilobytes, though it may be empty.
const MEMBERS_MAX: usize = 1024;

/// The number of bytes that are decompressed before the buffer limit is checked, and before other tasks get their turn.
const STEP_BYTES: usize = 64 * 1024;

/// The compression of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    None,
    Gzip,
    Zstd,
}

impl Encoding {
    /// The supported encodings, as gRPC announces them to clients.
    pub(super) const NAMES: &'static str = "identity,gzip,zstd";

    pub(super) fn parse(name: &str) -> Option<Self> {
        Some(match name.trim() {
            "" => Self::None,
            name if name.eq_ignore_ascii_case("identity") => Self::None,
            name if name.eq_ignore_ascii_case("gzip") => Self::Gzip,
            name if name.eq_ignore_ascii_case("zstd") => Self::Zstd,
            _ => return None,
        })
    }

    /// Decompresses a message of at most this many bytes.
    pub(super) async fn unpack(
        self,
        packed: Bytes,
        bytes_max: usize,
        room: &mut Room<'_>,
    ) -> Result<Bytes, ExportError> {
        let broken = |error: io::Error| ExportError::Broken(format!("{self:?}: {error}"));
        match self {
            Self::None => Ok(packed),
            Self::Gzip => {
                let message = Box::pin(read(Members::new(&packed), bytes_max, room));
                message.await?.map_err(broken)
            }
            Self::Zstd => {
                let mut decoder = Decoder::with_buffer(&packed[..]).map_err(broken)?;
                decoder.window_log_max(ZSTD_WINDOW_LOG_MAX).map_err(broken)?;
                Box::pin(read(decoder, bytes_max, room)).await?.map_err(broken)
            }
        }
    }
}

/// The gzip members of a message, in order.
struct Members<'p> {
    member: Option<GzDecoder<&'p [u8]>>,
    count: usize,
}

impl<'p> Members<'p> {
    fn new(packed: &'p [u8]) -> Self {
        Self { member: Some(GzDecoder::new(packed)), count: 1 }
    }
}

impl Read for Members<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.member {
            let read = member.read(into)?;
            if read > 0 || into.is_empty() {
                return Ok(read);
            }
            let rest = self.member.take().map(GzDecoder::into_inner).unwrap_or_default();
            if !rest.is_empty() {
                if self.count == MEMBERS_MAX {
                    let reason = format!("it has more than {MEMBERS_MAX} members; send it as one");
                    return Err(io::Error::other(reason));
                }
                (self.member, self.count) = (Some(GzDecoder::new(rest)), self.count + 1);
            }
        }
        Ok(0)
    }
}

/// Reads to the end, or at most one byte beyond the limit.
async fn read(
    mut from: impl Read,
    bytes_max: usize,
    room: &mut Room<'_>,
) -> Result<io::Result<Bytes>, ExportError> {
    let mut message = Vec::new();
    loop {
        let before = message.len();
        let step = (bytes_max + 1 - before).min(STEP_BYTES);
        match from.by_ref().take(step as u64).read_to_end(&mut message) {
            Ok(0) => return Ok(Ok(message.into())),
            Ok(more) => room.grow(more)?,
            Err(error) => return Ok(Err(error)),
        }
        if message.len() > bytes_max {
            return Err(ExportError::TooLarge(bytes_max));
        }
        yield_now().await;
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use flate2::{Compression, write::GzEncoder};

    use super::{MEMBERS_MAX, Members};

    #[test]
    fn a_message_has_so_many_members_and_no_more() {
        let member = |text: &[u8]| {
            let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
            packed.write_all(text).expect("memory");
            packed.finish().expect("memory")
        };
        let read = |packed: &[u8]| {
            let mut message = String::new();
            Members::new(packed).read_to_string(&mut message).map(|_| message)
        };
        let as_many = [member(b""), member(b"a")].concat().repeat(MEMBERS_MAX / 2);
        assert_eq!(read(&as_many).expect("that is allowed"), "a".repeat(MEMBERS_MAX / 2));
        let more = [as_many, member(b"")].concat();
        let refused = read(&more).expect_err("one more").to_string();
        assert_eq!(refused, "it has more than 1024 members; send it as one");
    }
}
