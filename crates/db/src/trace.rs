//! The traces of runs: OTLP bytes, and their outline as columns of numbers; both compressed with zstd.
//!
//! Columns are derived from the trace. A trace may have none: it was stored by a version that did not make them, or they are too large.
//!
//! Deliberately absent: the content of the traces.

use std::io::{self, Read};

use bytes::Bytes;
use model::{Project, RunId};
use tokio::task;

use crate::{Db, DbError};

/// The zstd level: a higher one compresses a trace little more and costs much more.
pub(crate) const LEVEL: i32 = 3;

/// The maximum size of columns, as a multiple of that of a trace. The shortest span has 30 bytes in OTLP and 40 in columns.
const COLUMNS_FACTOR_MAX: usize = 2;

/// A trace to be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtlpTrace {
    /// How many spans it has.
    pub spans: u64,
    /// An OTLP `TracesData` message.
    pub otlp: Bytes,
    /// Its outline as columns, where it has been made.
    pub columns: Option<Bytes>,
}

/// The columns of a stored trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredColumns {
    /// Compressed with zstd; none if they have not been made.
    pub zstd: Option<Vec<u8>>,
}

/// A trace in the form that is stored.
#[derive(Debug)]
pub(crate) struct PackedTrace {
    pub(crate) spans: i64,
    pub(crate) otlp: Vec<u8>,
    pub(crate) columns: Option<Vec<u8>>,
}

impl Db {
    /// Returns the trace of a run: an OTLP `TracesData` message.
    pub async fn trace(&self, project: &Project, run: RunId) -> Result<Option<Vec<u8>>, DbError> {
        let Some(zstd) = self.trace_zstd(project, run).await? else { return Ok(None) };
        let bytes_max = self.trace_bytes_max;
        let otlp = decompress(zstd, bytes_max, || format!("the trace of run `{run}`")).await?;
        otlp.ok_or(DbError::TraceTooLarge { run, bytes_max }).map(Some)
    }

    /// Returns the trace of a run as it is stored: an OTLP `TracesData` message, compressed with zstd.
    pub async fn trace_zstd(
        &self,
        project: &Project,
        run: RunId,
    ) -> Result<Option<Vec<u8>>, DbError> {
        sqlx::query_scalar!(
            "select otlp_zstd from traces where project = $1 and run_id = $2",
            project.as_str(),
            run.as_uuid(),
        )
        .fetch_optional(&self.pool)
        .await
        .map_err(|error| self.error(error))
    }

    /// Whether the trace of a run is stored.
    pub async fn has_trace(&self, project: &Project, run: RunId) -> Result<bool, DbError> {
        let found = sqlx::query_scalar!(
            "select run_id from traces where project = $1 and run_id = $2",
            project.as_str(),
            run.as_uuid(),
        )
        .fetch_optional(&self.pool)
        .await
        .map_err(|error| self.error(error))?;
        Ok(found.is_some())
    }

    /// Returns the columns of a run's trace, as they are stored; none if no trace is stored.
    pub async fn columns(
        &self,
        project: &Project,
        run: RunId,
    ) -> Result<Option<StoredColumns>, DbError> {
        let zstd = sqlx::query_scalar!(
            "select columns_zstd from traces where project = $1 and run_id = $2",
            project.as_str(),
            run.as_uuid(),
        )
        .fetch_optional(&self.pool)
        .await
        .map_err(|error| self.error(error))?;
        Ok(zstd.map(|zstd| StoredColumns { zstd }))
    }

    /// Decompresses the stored columns of a run.
    pub async fn unpack_columns(&self, run: RunId, zstd: Vec<u8>) -> Result<Vec<u8>, DbError> {
        let bytes_max = self.columns_bytes_max();
        let what = || format!("the columns of the trace of run `{run}`");
        let columns = decompress(zstd, bytes_max, what).await?;
        columns.ok_or(DbError::ColumnsTooLarge { run, bytes_max })
    }

    /// Stores the columns of a trace that has none, and returns them compressed. Does nothing if the trace has columns by now, or is
    /// not stored any longer.
    pub async fn keep_columns(
        &self,
        project: &Project,
        run: RunId,
        columns: Bytes,
    ) -> Result<Vec<u8>, DbError> {
        let bytes_max = self.columns_bytes_max();
        if columns.len() > bytes_max {
            return Err(DbError::ColumnsTooLarge { run, bytes_max });
        }
        let zstd = compress(run, columns).await?;
        sqlx::query!(
            "update traces set columns_zstd = $3
             where project = $1 and run_id = $2 and columns_zstd is null",
            project.as_str(),
            run.as_uuid(),
            zstd,
        )
        .execute(&self.pool)
        .await
        .map_err(|error| self.error(error))?;
        Ok(zstd)
    }

    /// Compresses a trace that does not exceed the bound. Columns that exceed theirs are left out.
    pub(crate) async fn pack(&self, run: RunId, trace: &OtlpTrace) -> Result<PackedTrace, DbError> {
        let bytes_max = self.trace_bytes_max;
        if trace.otlp.len() > bytes_max {
            return Err(DbError::TraceTooLarge { run, bytes_max });
        }
        let columns_bytes_max = self.columns_bytes_max();
        let columns = match &trace.columns {
            Some(columns) if columns.len() <= columns_bytes_max => {
                Some(compress(run, columns.clone()).await?)
            }
            _ => None,
        };
        let otlp = compress(run, trace.otlp.clone()).await?;
        Ok(PackedTrace { spans: i64::try_from(trace.spans).unwrap_or(i64::MAX), otlp, columns })
    }

    fn columns_bytes_max(&self) -> usize {
        self.trace_bytes_max.saturating_mul(COLUMNS_FACTOR_MAX)
    }
}

/// Decompresses what is stored; none if it exceeds the bound.
async fn decompress(
    zstd: Vec<u8>,
    bytes_max: usize,
    what: impl FnOnce() -> String,
) -> Result<Option<Vec<u8>>, DbError> {
    let unpacked = aside(move || unpack(&zstd, bytes_max)).await;
    unpacked.map_err(|error| DbError::corrupt(what(), error))
}

async fn compress(run: RunId, bytes: Bytes) -> Result<Vec<u8>, DbError> {
    aside(move || zstd::bulk::compress(&bytes, LEVEL)).await.map_err(|error| DbError::Unwritable {
        run,
        what: "trace",
        reason: error.to_string(),
    })
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
