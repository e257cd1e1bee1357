//! The traces of runs: OTLP bytes, compressed with zstd.
//!
//! Deliberately absent: the content of the traces.

use std::io::{self, Read};

use bytes::Bytes;
use model::{Project, RunId};
use tokio::task;

use crate::{Db, DbError};

/// The zstd level: a higher one compresses a trace little more and costs much more.
pub(crate) const LEVEL: i32 = 3;

/// A trace to be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtlpTrace {
    /// How many spans it has.
    pub spans: u64,
    /// An OTLP `TracesData` message.
    pub otlp: Bytes,
}

impl Db {
    /// Returns the trace of a run: an OTLP `TracesData` message.
    pub async fn trace(&self, project: &Project, run: RunId) -> Result<Option<Vec<u8>>, DbError> {
        let packed = sqlx::query_scalar!(
            "select otlp_zstd from traces where project = $1 and run_id = $2",
            project.as_str(),
            run.as_uuid(),
        )
        .fetch_optional(&self.pool)
        .await
        .map_err(|error| self.error(error))?;
        let Some(packed) = packed else { return Ok(None) };
        let bytes_max = self.trace_bytes_max;
        match aside(move || unpack(&packed, bytes_max)).await {
            Ok(Some(otlp)) => Ok(Some(otlp)),
            Ok(None) => Err(DbError::TraceTooLarge { run, bytes_max }),
            Err(error) => Err(DbError::corrupt(format!("the trace of run `{run}`"), error)),
        }
    }

    /// Compresses a trace that does not exceed the bound.
    pub(crate) async fn pack(&self, run: RunId, trace: &OtlpTrace) -> Result<Vec<u8>, DbError> {
        let bytes_max = self.trace_bytes_max;
        if trace.otlp.len() > bytes_max {
            return Err(DbError::TraceTooLarge { run, bytes_max });
        }
        let otlp = trace.otlp.clone();
        aside(move || zstd::bulk::compress(&otlp, LEVEL))
            .await
            .map_err(|error| DbError::Unwritable { run, what: "trace", reason: error.to_string() })
    }
}

/// Runs the work on a blocking thread: large traces take long enough to block other tasks.
pub(crate) async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    task::spawn_blocking(work).await?
}

/// Decompresses a trace; none where it exceeds `bytes_max`. Never buffers more than one byte beyond that, whatever size the
/// compressed bytes claim to have.
fn unpack(packed: &[u8], bytes_max: usize) -> io::Result<Option<Vec<u8>>> {
    let mut otlp = Vec::new();
    let one_more = u64::try_from(bytes_max).unwrap_or(u64::MAX).saturating_add(1);
    zstd::Decoder::with_buffer(packed)?.take(one_more).read_to_end(&mut otlp)?;
    Ok((otlp.len() <= bytes_max).then_some(otlp))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert_eq, proptest};

    use super::{LEVEL, unpack};

    proptest! {
        #[test]
        fn a_trace_comes_back_within_its_bound(otlp in proptest::collection::vec(any::<u8>(), 0..4096)) {
            let packed = zstd::bulk::compress(&otlp, LEVEL).expect("bytes can be compressed");
            let size = otlp.len();
            if size > 0 {
                prop_assert_eq!(unpack(&packed, size - 1).expect("a frame"), None);
            }
            prop_assert_eq!(unpack(&packed, size).expect("a frame"), Some(otlp));
        }

        #[test]
        fn what_is_no_frame_is_an_error_and_no_panic(bytes in proptest::collection::vec(any::<u8>(), 1..64)) {
            // Any first four bytes other than the magic number are an error; for the rest the test only checks that it ends.
            let known = bytes.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]);
            prop_assert_eq!(unpack(&bytes, 1024).is_err() || known, true);
        }
    }
}
