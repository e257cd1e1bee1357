//! The ports that a worker gives to a run: the database under its lease, the bus, the trigger.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

use bus::{Bus, Channel, Doubt, Signal};
use db::{AwaitedTrace, BusPlace, Db, DbError, RunLease};
use drivers::{
    arrivals::Arrivals,
    receiver::ReceiverSnapshot,
    store::{StoreClient, poll},
    trigger::AnswerHold,
};
use lang::Secrets;
use model::{
    Answer, Attempt, BusSlot, Faulty, KeyRing, Progress, Project, Request, RunEvent, Step,
    Timestamp, TraceId, Verdict, What,
};
use runner::{LeaseLost, Ports, Share, SnapshotRequest};
use tokio::{task::JoinSet, time::sleep};

use super::{
    active_runs::{Lease, RETRY},
    proofs::SpanProofs,
    pump::pump,
    state::Worker,
};
use crate::{
    ingest::interests::{Interest, channel},
    live::snapshots::SnapshotQueue,
    plant::{Plant, is_planted},
    span_bus::SpanBus,
    subjects,
    telemetry::{call::Call, events, spans::RunTrace},
};

/// Converts a permanent error of a write.
pub(super) fn lost(error: &DbError) -> LeaseLost {
    LeaseLost(error.to_string())
}

/// The ports of one run.
#[derive(Debug)]
pub(super) struct WorkerPorts<'a> {
    worker: &'a Worker,
    lease: &'a Lease,
    project: Project,
    trace: RunTrace,
    /// The memory that the response occupies.
    hold: AnswerHold,
    /// The events to be written together with the verdict.
    events: Mutex<Vec<RunEvent>>,
    /// The attempt that this worker recorded.
    attempt: Mutex<Option<Attempt>>,
    linger: Mutex<Linger>,
    listening: Mutex<SpanSources>,
    /// The secrets to mask in a response, once the variables are known.
    secrets: OnceLock<Secrets>,
    /// The trace stores to query, once they are known.
    stores: OnceLock<Vec<Arc<StoreClient>>>,
    /// The number of unreadable exports when the run began.
    unread_before: u64,
    unread_logs_before: u64,
    /// When an earlier owner fired the trigger, and where its spans are on the bus since then.
    resumed: Option<(Timestamp, BusPlace)>,
    /// The proofs that all spans are here.
    proofs: Arc<SpanProofs>,
    /// The requests of people who look on.
    snapshots: SnapshotQueue,
}

/// The state of a run's linger.
#[derive(Clone, Copy, Debug, Default)]
struct Linger {
    /// The provisional verdict in the database, from this or an earlier owner.
    verdict: Option<Verdict>,
    /// Since when the run lingers on this worker.
    since: Option<Timestamp>,
}

/// The sources of a run's spans, until they are dropped.
#[derive(Debug, Default)]
pub(super) struct SpanSources {
    /// The tasks that pass spans from the bus to the run.
    pumps: JoinSet<()>,
    /// The registered interest in an external trace id.
    interest: Option<Interest>,
}

impl<'a> WorkerPorts<'a> {
    /// Sets the secrets to mask.
    pub(super) fn hide(&self, secrets: Secrets) {
        // Variables are read once, so this is set once.
        let _known = self.secrets.set(secrets);
    }

    /// Sets the trace stores to query.
    pub(super) fn query(&self, stores: Vec<Arc<StoreClient>>) {
        // They are read once, like the variables.
        let _known = self.stores.set(stores);
    }

    /// Returns the ports of a run under its lease, in the state in which it was leased.
    pub(super) fn new(
        worker: &'a Worker,
        lease: &'a Lease,
        trace: RunTrace,
        taken: &RunLease,
    ) -> Self {
        let RunLease { project, progress, provisional, bus, .. } = taken;
        Self {
            worker,
            lease,
            project: project.clone(),
            trace,
            hold: worker.shared.answer_memory.hold(project.clone()),
            events: Mutex::default(),
            attempt: Mutex::default(),
            linger: Mutex::new(Linger { verdict: *provisional, since: None }),
            secrets: OnceLock::new(),
            stores: OnceLock::new(),
            listening: Mutex::default(),
            unread_before: worker.bus.unread(Signal::Spans, project),
            unread_logs_before: worker.bus.unread(Signal::Logs, project),
            resumed: progress.attempt().map(|attempt| (attempt.at, bus.clone())),
            proofs: SpanProofs::new(worker, worker.peers.since(progress)),
            snapshots: worker.snapshots.register(lease.run, project.clone()),
        }
    }

    /// Returns the progress of an earlier owner, after reserving memory for the response that it recorded.
    pub(super) async fn progress(&self, taken: &RunLease) -> Result<Progress, DbError> {
        let Some(bytes) = taken.answer_bytes else { return Ok(taken.progress.clone()) };
        self.hold.grow(bytes).await;
        let call = (Step::Resolve, Call("SELECT", "runs"));
        self.insist_on(call, |db| async move { db.progress(taken).await }).await
    }

    /// Whether the run holds a large response.
    pub(super) fn holds_large_answer(&self) -> bool {
        self.hold.is_large()
    }

    pub(super) fn bus(&self) -> &'a Arc<SpanBus> {
        &self.worker.bus
    }

    /// Returns the bus channel with the spans of a trace that this run may see.
    pub(super) fn channel(&self, trace: TraceId) -> Channel {
        channel(self.worker.keys.of_open(), &self.project, trace, self.slot())
    }

    /// Returns the trace of a channel, as other servers know it.
    fn awaited(&self, Channel { slot, trace }: Channel) -> AwaitedTrace {
        AwaitedTrace { project: self.project.clone(), trace, slot: Some(slot) }
    }

    /// Returns the slot to which the spans of an external trace go: that of the worker that fired the trigger.
    fn slot(&self) -> Option<BusSlot> {
        let resumed = self.resumed.as_ref().and_then(|(_, bus)| bus.slot);
        resumed.or_else(|| self.worker.bus.slot())
    }

    /// Announces an external trace to the servers on a shared bus, before any user can see that the run waits for it.
    async fn announce(&self) -> Result<(), LeaseLost> {
        let awaited = self.listening().interest.as_ref().map(|it| it.awaited.clone());
        let Some(awaited) = awaited.filter(|it| it.slot.is_some()) else { return Ok(()) };
        let announcement = loop {
            match self.worker.peers.announce(&self.worker.db, awaited.clone()).await {
                Err(error) if error.fault().is_transient() => sleep(RETRY).await,
                announced => break announced.map_err(|error| lost(&error))?,
            }
        };
        self.proofs.announced(announcement);
        Ok(())
    }

    /// Waits until a stop of the run is requested.
    pub(super) async fn stopped(&self) {
        self.lease.stopped().await;
    }

    /// The attempt that this worker recorded; `None` if there is none.
    pub(super) fn attempt(&self) -> Option<Attempt> {
        *self.attempt.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that a run lingers with this verdict, with all events until now. A run has one provisional verdict:
    /// a worker that continues a lingering run writes none.
    pub(super) async fn linger(&self, verdict: Verdict) -> Result<(), LeaseLost> {
        let known = self.provisional();
        self.lingering().since = Some(self.now());
        if known.is_some() {
            let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
            events.retain(|event| !matches!(event.what, What::Provisional { .. }));
            return Ok(());
        }
        let Lease { run, epoch, .. } = *self.lease;
        let events = self.take_events();
        let events = &events;
        let write = |db: Db| async move { db.provisional(run, epoch, verdict, events).await };
        // Set before the write: if a stop cancels the write, it is unknown whether the database has it.
        self.lingering().verdict = Some(verdict);
        self.insist(Step::Linger, write).await.map_err(|error| lost(&error))?;
        self.worker.bus.hint(subjects::run_events(run));
        Ok(())
    }

    /// The provisional verdict of this run in the database.
    pub(super) fn provisional(&self) -> Option<Verdict> {
        self.lingering().verdict
    }

    /// Since when the run lingers on this worker; `None` if it does not.
    pub(super) fn lingers_since(&self) -> Option<Timestamp> {
        self.lingering().since
    }

    fn lingering(&self) -> MutexGuard<'_, Linger> {
        self.linger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the sources that still bring spans after the verdict.
    pub(super) fn into_listening(self) -> SpanSources {
        self.listening.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn trace(&self) -> RunTrace {
        self.trace
    }

    fn listening(&self) -> MutexGuard<'_, SpanSources> {
        self.listening.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn take_events(&self) -> Vec<RunEvent> {
        std::mem::take(&mut self.events.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Retries a write while its error is transient, with a span for each try below `step`; the end of the lease cancels
    /// this. A write that was executed but not acknowledged takes effect once: the database recognizes it by
    /// its epoch and values.
    pub(super) async fn insist<T, F>(
        &self,
        step: Step,
        write: impl Fn(Db) -> F,
    ) -> Result<T, DbError>
    where
        F: Future<Output = Result<T, DbError>>,
    {
        self.insist_on((step, Call("UPDATE", "runs")), write).await
    }

    async fn insist_on<T, F>(
        &self,
        (step, call): (Step, Call),
        ask: impl Fn(Db) -> F,
    ) -> Result<T, DbError>
    where
        F: Future<Output = Result<T, DbError>>,
    {
        let Worker { db, watch, .. } = self.worker;
        let mut is_noted = false;
        loop {
            let asked = ask(db.clone());
            match watch.db(self.trace.step(step), call, asked).await {
                Err(error) if error.fault().is_transient() => {
                    // Once: an outage lasts for many tries, and a server has many runs.
                    if !std::mem::replace(&mut is_noted, true) {
                        let (step, fault) = (step.as_str(), error.fault());
                        self.debug(format_args!(
                            "{step}: the database cannot be used ({fault:?}); tried every {RETRY:?}"
                        ));
                    }
                    sleep(RETRY).await;
                }
                done => return done,
            }
        }
    }
}

impl Ports for WorkerPorts<'_> {
    fn now(&self) -> Timestamp {
        self.worker.world.now()
    }

    fn random(&self) -> [u8; 32] {
        self.worker.world.random()
    }

    fn keys(&self) -> &KeyRing {
        self.worker.keys.of_open()
    }

    fn project(&self) -> Project {
        self.project.clone()
    }

    fn mint(&self, now: Timestamp, random: [u8; 5]) -> TraceId {
        let keys = self.keys();
        match self.worker.bus.slot() {
            None => keys.mint(&self.project, now, random),
            Some(slot) => {
                let unique = self.worker.shared.minted.next(random);
                keys.mint_for(slot, &self.project, now, unique)
            }
        }
    }

    fn share(&self) -> Share {
        self.worker.pool.share(self.project.clone())
    }

    async fn spans(&self, trace: TraceId) -> Arrivals {
        let channel = self.channel(trace);
        if channel.trace != trace {
            let (project, slot) = (self.project.clone(), self.slot());
            let interest = self.worker.interests.register(AwaitedTrace { project, trace, slot });
            self.listening().interest = Some(interest);
        }
        let note = {
            let proofs = Arc::clone(&self.proofs);
            move |took, doubt: Option<&Doubt>| proofs.note(took, doubt)
        };
        let counts = {
            let (proofs, trace) = (Arc::clone(&self.proofs), self.awaited(channel));
            move |began| proofs.counts(&trace, began)
        };
        let (pump, mut arrivals) = pump(&self.worker.bus, channel, &self.project, (note, counts));
        if let Some((at, bus)) = &self.resumed {
            // Which servers confirmed an external trace was known to its first owner only.
            let state = bus.state.as_deref().filter(|_| channel.trace == trace);
            self.worker.bus.resume(channel, *at, state);
        }
        self.debug(format_args!("the bus delivers the spans of the trace from now on"));
        self.listening().pumps.spawn(pump);
        for store in self.stores.get().into_iter().flatten() {
            poll(&mut arrivals, Arc::clone(store), trace);
        }
        arrivals
    }

    async fn snapshot_request(&self) -> SnapshotRequest {
        self.snapshots.next().await
    }

    fn logs(&self, trace: TraceId) -> u64 {
        let unread = self.worker.bus.unread(Signal::Logs, &self.project) - self.unread_logs_before;
        unread + self.worker.bus.logs(self.channel(trace))
    }

    fn has_lost_spans(&self, trace: TraceId) -> bool {
        let unread = self.worker.bus.unread(Signal::Spans, &self.project);
        let doubt = self.worker.bus.doubt(self.channel(trace));
        unread > self.unread_before || doubt.is_some_and(|doubt| doubt.is_loss())
    }

    async fn other_servers(&self, trace: TraceId) -> Result<Vec<String>, LeaseLost> {
        let others = self.proofs.others(&self.awaited(self.channel(trace))).await;
        others.map_err(|error| lost(&error))
    }

    async fn seen(&self) -> Option<ReceiverSnapshot> {
        let Worker { db, peers, witness, .. } = self.worker;
        Some(peers.seen(db, &self.project, witness.seen(&self.project)).await)
    }

    async fn attempted(&self, attempt: &Attempt) -> Result<(), LeaseLost> {
        let Lease { run, epoch, .. } = *self.lease;
        // The trigger was not sent yet, and the run has subscribed.
        let channel = self.channel(attempt.trace_id);
        self.worker.bus.expect(channel);
        let is_external = channel.trace != attempt.trace_id;
        let slot = self.worker.bus.slot().filter(|_| is_external);
        let bus = &BusPlace { slot, state: self.worker.bus.state(channel) };
        self.announce().await?;
        // An attempt is recorded only if there is time to send it; the next renewal extends the lease.
        while !self.lease.allows_trigger() {
            sleep(RETRY).await;
        }
        let written = self
            .insist(Step::Trigger, |db| async move { db.attempted(run, epoch, attempt, bus).await })
            .await;
        written.map_err(|error| lost(&error))?;
        *self.attempt.lock().unwrap_or_else(PoisonError::into_inner) = Some(*attempt);
        self.debug(format_args!("the attempt is stored, and the trigger is fired next"));
        self.worker.bus.hint(subjects::run_events(run));
        Ok(())
    }

    async fn fire(&self, request: &Request, attempt: &Attempt) -> Result<Answer, LeaseLost> {
        let (permit, hold) = (|| self.lease.allows_trigger(), &self.hold);
        if is_planted(Plant::SecondTrigger) {
            self.worker.triggers.fire(request, attempt, permit, hold).await;
        }
        loop {
            if let Some(answer) = self.worker.triggers.fire(request, attempt, permit, hold).await {
                return Ok(answer);
            }
            self.debug(format_args!("nothing was sent: the lease has to be renewed before"));
            while !self.lease.allows_trigger() {
                sleep(RETRY).await;
            }
        }
    }

    async fn answered(&self, answer: &Answer) -> Result<(), LeaseLost> {
        let Lease { run, epoch, .. } = *self.lease;
        let at = self.now();
        // The reason for a missing response becomes an event, and may quote the request.
        let masked = match (answer, self.secrets.get()) {
            (Answer::NoAnswer(_), Some(secrets)) => Some(secrets.masked(answer)),
            _ => None,
        };
        let answer = masked.as_ref().unwrap_or(answer);
        let written = self
            .insist(Step::Trigger, |db| async move { db.answered(run, epoch, answer, at).await })
            .await;
        written.map_err(|error| lost(&error))?;
        match answer.status() {
            Some(status) => {
                let took = Duration::from_nanos(status.duration_ns);
                self.debug(format_args!("the answer is stored: {} after {took:?}", status.code));
            }
            None => self.debug(format_args!("that there is no answer is stored")),
        }
        self.worker.bus.hint(subjects::run_events(run));
        Ok(())
    }

    fn debug(&self, note: fmt::Arguments<'_>) {
        events::run_debug(self.lease.run, note);
    }

    fn tell(&self, event: RunEvent) {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).push(event);
    }
}
