//! What the proofs of the bus mean with other servers: a server that could not store something for a moment may have had spans of
//! the run, and a proof counts only if it began after that moment.

use std::{
    future::Future,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

use bus::Doubt;
use db::{AwaitedTrace, Db, DbError};
use model::Faulty;
use tokio::time::{Instant, sleep};

use super::{active_runs::RETRY, state::Worker};
use crate::{
    Watch,
    database::peers::{Announcement, OtherServers, Peers, RunTimes},
};

/// The proofs of one run.
#[derive(Debug)]
pub(super) struct SpanProofs {
    db: Db,
    peers: Peers,
    watch: Watch,
    /// Whether servers share the bus.
    is_shared: bool,
    /// From when on spans of the run may have been sent, to any server.
    since: Instant,
    /// The announcement of an external trace, once servers on a shared bus have answered it.
    announcement: OnceLock<Announcement>,
    last: Mutex<Option<CheckedProof>>,
}

/// The last proof, and the servers that may have spans of the run in spite of it.
#[derive(Clone, Debug)]
struct CheckedProof {
    began: Instant,
    others: Vec<String>,
}

impl SpanProofs {
    pub(super) fn new(worker: &Worker, since: Instant) -> Arc<Self> {
        Arc::new(Self {
            db: worker.db.clone(),
            peers: worker.peers.clone(),
            watch: worker.watch.clone(),
            is_shared: worker.bus.is_shared(),
            since,
            announcement: OnceLock::new(),
            last: Mutex::default(),
        })
    }

    /// Sets the answers to the announcement of an external trace. A run has one attempt.
    pub(super) fn announced(&self, announcement: Announcement) {
        let _first = self.announcement.set(announcement);
    }

    /// Counts a proof that the bus gave, or the doubt.
    pub(super) fn note(&self, took: Duration, doubt: Option<&Doubt>) {
        if self.is_shared {
            self.watch.telemetry.metrics().proved(took, doubt.map(Doubt::kind));
        }
    }

    /// Whether a proof that began then counts. It does not if a later one may cover servers that this one does not. If there are servers
    /// that a later proof cannot cover either, it counts, and [`Self::others`] names them.
    pub(super) fn counts(
        self: &Arc<Self>,
        trace: &AwaitedTrace,
        began: Instant,
    ) -> impl Future<Output = bool> + Send + use<> {
        let (proofs, trace) = (Arc::clone(self), trace.clone());
        async move {
            if !proofs.is_shared {
                return true;
            }
            let Ok(OtherServers { late, apart }) = proofs.query(&trace, began).await else {
                // The database may answer the next time.
                return false;
            };
            if !late.is_empty() && apart.is_empty() {
                return false;
            }
            let others = [late, apart].concat();
            *proofs.last() = Some(CheckedProof { began, others });
            true
        }
    }

    /// Returns the names of the other servers that may have received spans of the trace that are not here.
    pub(super) async fn others(&self, trace: &AwaitedTrace) -> Result<Vec<String>, DbError> {
        let checked = self.last().clone();
        if let Some(CheckedProof { others, .. }) =
            checked.as_ref().filter(|it| it.others.is_empty())
        {
            return Ok(others.clone());
        }
        let proved = checked.map_or(self.since, |it| it.began);
        loop {
            match self.query(trace, proved).await {
                Err(error) if error.fault().is_transient() => sleep(RETRY).await,
                found => return found.map(|OtherServers { late, apart }| [late, apart].concat()),
            }
        }
    }

    /// Many runs share one query, which is in no run's trace.
    async fn query(&self, trace: &AwaitedTrace, proved: Instant) -> Result<OtherServers, DbError> {
        let run = RunTimes { since: self.since, proved };
        match self.announcement.get() {
            None => self.peers.others(&self.db, run, trace).await,
            Some(announcement) => self.peers.others_of(&self.db, run, (trace, announcement)).await,
        }
    }

    fn last(&self) -> MutexGuard<'_, Option<CheckedProof>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
