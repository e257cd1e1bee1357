//! Permits for requests that hold a trace, or data derived from one: each may hold tens of megabytes.

use bytes::Bytes;
use drivers::shares::Permit;
use model::{Fault, Project, RunId, Trace};
use runner::Share;

use super::{app::App, problem::Problem};
use crate::telemetry::{call::Call, traceparent::TraceParent};

/// A reader permit of a project; released when dropped.
pub(crate) struct ReaderPermit {
    _permit: Permit,
    share: Share,
}

/// Response bytes that hold their permit until the last of them is sent.
struct PermitBytes {
    bytes: Vec<u8>,
    _place: ReaderPermit,
}

impl ReaderPermit {
    /// Waits for a permit.
    pub(crate) async fn take(app: &App, project: &Project) -> Self {
        let permit = app.readers.acquire(project).await;
        Self { _permit: permit, share: app.pool.share(project.clone()) }
    }

    /// Runs a long computation on the thread pool. It holds the permit until it is done, even if its caller goes away.
    pub(crate) async fn work<T: Send + 'static>(
        self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> (Self, T) {
        let share = self.share.clone();
        share.run(move || (self, work())).await
    }

    /// Reads the trace that a run was judged by; `None` if none is stored.
    pub(crate) async fn trace(
        self,
        app: &App,
        context: TraceParent,
        (project, run): (&Project, RunId),
    ) -> Result<(Self, Option<Trace>), Problem> {
        let bytes = app.db.trace(project, run);
        let bytes = app.watch.db(context, Call("SELECT", "traces"), bytes).await?;
        let Some(bytes) = bytes else { return Ok((self, None)) };
        let (place, read) = self.work(move || otlp::read(&bytes)).await;
        let traces = read.map_err(|error| {
            let detail = format!("the trace of the run `{run}` cannot be read: {error}");
            Problem::new(Fault::Internal, detail)
        })?;
        Ok((place, traces.into_iter().next()))
    }

    /// Returns bytes that hold the permit until they are sent.
    pub(crate) fn held(self, bytes: Vec<u8>) -> Bytes {
        Bytes::from_owner(PermitBytes { bytes, _place: self })
    }
}

impl AsRef<[u8]> for PermitBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}
