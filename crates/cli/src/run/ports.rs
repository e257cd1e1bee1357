//! The ports of a local run: it stores no progress, since no other process could resume it.

use std::sync::{Arc, Mutex, PoisonError};

use drivers::{
    arrivals::Arrivals,
    receiver::ReceiverSnapshot,
    store::{StoreClient, poll},
    trigger::AnswerHold,
};
use model::{Answer, Attempt, KeyRing, Request, RunEvent, Timestamp, TraceId, What};
use runner::{LeaseLost, Ports, Share, diagnosis::Process};
use tokio::{sync::mpsc, time::Instant};

use super::{
    progress::{self, Line},
    session::Session,
    system::{Life, RunningSystem},
};

/// The ports of one run.
pub(super) struct LocalPorts<'a> {
    pub(super) session: &'a Session,
    pub(super) running: Option<&'a RunningSystem>,
    pub(super) line: &'a Line,
    stage: Stage,
    /// The trace stores to query.
    pub(super) stores: Vec<Arc<StoreClient>>,
    pub(super) trace: Mutex<Option<TraceId>>,
    /// The reason why the command did not export its remaining spans during a drain.
    pub(super) undrained: Mutex<Option<String>>,
    /// The notifier for the response of the trigger: from then on the run only waits for spans.
    pub(super) answered: Mutex<Option<ResponseNotifier>>,
}

/// The stage of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Before its verdict.
    Running,
    /// It has a verdict; `ready` is the time at which the verdict is final if no further span arrives.
    Judged { ready: Instant },
}

/// A notifier that a run only waits for spans: it sends the number of the case.
#[derive(Clone, Debug)]
pub(crate) struct ResponseNotifier {
    pub(super) case: usize,
    pub(super) to: mpsc::Sender<usize>,
}

impl<'a> LocalPorts<'a> {
    pub(super) fn new(
        session: &'a Session,
        running: Option<&'a RunningSystem>,
        line: &'a Line,
        stage: Stage,
    ) -> Self {
        Self {
            session,
            running,
            line,
            stage,
            stores: Vec::new(),
            trace: Mutex::default(),
            undrained: Mutex::default(),
            answered: Mutex::default(),
        }
    }
}

impl LocalPorts<'_> {
    /// Stops the wait for spans: the run continues with the spans received so far.
    pub(super) fn let_go(&self) {
        let trace = *self.trace.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(trace) = trace {
            self.session.inbox.let_go(trace);
        }
    }
}

impl LocalPorts<'_> {
    /// Returns how the command ended by itself after a provisional verdict.
    pub(super) fn ended_meanwhile(&self) -> Option<String> {
        let Stage::Judged { ready } = self.stage else { return None };
        let running = self.running.filter(|running| running.had_ended_early(ready))?;
        running.ended_early().map(|ended| ended.to_string())
    }

    pub(super) fn take_undrained(&self) -> Option<String> {
        self.undrained.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn tell_now(&self, what: &What) {
        if let Some(words) = progress::words(what) {
            self.line.say(&words);
        }
    }

    fn is_undrained(&self) -> bool {
        self.undrained.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }
}

impl Ports for LocalPorts<'_> {
    fn now(&self) -> Timestamp {
        self.session.world.now()
    }

    fn random(&self) -> [u8; 32] {
        self.session.world.random()
    }

    fn keys(&self) -> &KeyRing {
        &self.session.keys
    }

    fn share(&self) -> Share {
        self.session.pool.share(self.project())
    }

    async fn spans(&self, trace: TraceId) -> Arrivals {
        *self.trace.lock().unwrap_or_else(PoisonError::into_inner) = Some(trace);
        let mut arrivals = self.session.inbox.expect(trace);
        for store in &self.stores {
            poll(&mut arrivals, Arc::clone(store), trace);
        }
        arrivals
    }

    fn has_lost_spans(&self, trace: TraceId) -> bool {
        // An ended process sends nothing more: its unsent spans are lost.
        let has_ended = self.running.is_some_and(|running| match self.stage {
            Stage::Judged { ready } => running.had_ended_early(ready),
            Stage::Running => running.ended_early().is_some(),
        });
        has_ended || self.is_undrained() || self.session.inbox.refused(trace) > 0
    }

    async fn attempted(&self, attempt: &Attempt) -> Result<(), LeaseLost> {
        self.tell_now(&What::Attempted(*attempt));
        Ok(())
    }

    async fn fire(&self, request: &Request, attempt: &Attempt) -> Result<Answer, LeaseLost> {
        let answer =
            self.session.triggers.fire(request, attempt, || true, &AnswerHold::unlimited()).await;
        answer.ok_or_else(|| LeaseLost("nothing was sent".to_owned()))
    }

    async fn answered(&self, answer: &Answer) -> Result<(), LeaseLost> {
        self.tell_now(&What::from(answer));
        let answered = self.answered.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(ResponseNotifier { case, to }) = answered {
            // If the channel is full, the run keeps its job slot, which is harmless.
            let _full = to.try_send(case);
        }
        Ok(())
    }

    async fn drain(&self) -> bool {
        match (&self.session.system, self.running) {
            (Some(system), Some(running)) if system.life() == Life::PerTest => {
                self.line.say("stopping the command, which sends what it has");
                match running.drain().await {
                    Ok(()) => true,
                    Err(why) => {
                        *self.undrained.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
                        false
                    }
                }
            }
            _ => false,
        }
    }

    fn logs(&self, trace: TraceId) -> u64 {
        self.session.inbox.logs(trace)
    }

    async fn seen(&self) -> Option<ReceiverSnapshot> {
        Some(self.session.receiver.seen())
    }

    fn processes(&self) -> Vec<Process> {
        let started = self.session.system.as_ref().zip(self.running);
        started.map_or_else(Vec::new, |(system, running)| system.processes(running))
    }

    fn tell(&self, _event: RunEvent) {
        // The report contains all of it a moment later.
    }
}
