//! One run on one worker: its steps, and what it does at each.

use std::time::Duration;

use super::{
    CallOwner, LeaseFault, LeasePlay, RETRY, WorkerState,
    database::{DbAnswer, LEASE, ModelLease, ModelProgress, Statement, WriteKind},
};
use crate::worker::lease_term::{LeaseState, LeaseTerm, is_given_up};

/// A task that executes a run.
#[derive(Debug)]
pub(super) struct ModelTask {
    pub(super) id: u64,
    pub(super) run: usize,
    pub(super) epoch: i64,
    pub(super) term: LeaseTerm,
    pub(super) is_given_up: bool,
    /// When the lease, or its last renewal, was requested.
    asked: Duration,
    step: TaskStep,
    has_provisional: bool,
    /// Whether a statement is on its way.
    waits: bool,
    /// When it does its next step.
    due: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TaskStep {
    Attempt,
    Fire,
    /// The response has not come yet.
    Respond,
    Answer,
    Provisional,
    Finish,
}

/// How a task ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TaskEnd {
    /// The database has its verdict.
    Judged,
    /// The lease was over, or a write was fenced.
    Lost,
}

impl ModelTask {
    pub(super) fn new(id: u64, lease: &ModelLease, asked: Duration) -> Self {
        let is_given_up = is_given_up(lease.stalls);
        let step = match lease.progress {
            _ if is_given_up => TaskStep::Finish,
            ModelProgress::New => TaskStep::Attempt,
            // The response is unknown.
            ModelProgress::Attempted => TaskStep::Answer,
            ModelProgress::Answered => TaskStep::Provisional,
        };
        Self {
            id,
            run: lease.run,
            epoch: lease.epoch,
            term: LeaseTerm::new(asked, LEASE),
            is_given_up,
            asked,
            step,
            has_provisional: lease.has_provisional,
            waits: false,
            due: Duration::ZERO,
        }
    }

    pub(super) fn renewed(&mut self, asked: Duration) {
        self.term.renewed(asked);
        self.asked = asked;
    }

    /// Takes the answer to its write; a failed one is tried again at `retry_at`.
    pub(super) fn arrive(&mut self, answer: &DbAnswer, retry_at: Duration) -> Option<TaskEnd> {
        self.waits = false;
        match answer {
            DbAnswer::Written => {
                self.step = match self.step {
                    TaskStep::Attempt => TaskStep::Fire,
                    TaskStep::Fire | TaskStep::Respond => self.step,
                    TaskStep::Answer => TaskStep::Provisional,
                    TaskStep::Provisional => TaskStep::Finish,
                    TaskStep::Finish => return Some(TaskEnd::Judged),
                };
                None
            }
            DbAnswer::Fenced => Some(TaskEnd::Lost),
            DbAnswer::Failed | DbAnswer::Leased(_) | DbAnswer::Renewed(_) => {
                self.due = retry_at;
                None
            }
        }
    }

    /// Returns the write of its step, if that is one.
    fn write(&self) -> Option<WriteKind> {
        match self.step {
            TaskStep::Attempt => Some(WriteKind::Attempted),
            TaskStep::Fire | TaskStep::Respond => None,
            TaskStep::Answer => Some(WriteKind::Answered),
            TaskStep::Provisional => Some(WriteKind::Provisional),
            TaskStep::Finish => Some(WriteKind::Finish),
        }
    }
}

impl LeasePlay {
    /// A task of a worker does its next step, before or after it looks at its lease.
    pub(super) fn work(&mut self, index: usize) -> Result<(), String> {
        let worker = &self.workers[index];
        if worker.state != WorkerState::Awake || worker.tasks.is_empty() {
            return Ok(());
        }
        let at = self.rng.below(worker.tasks.len() as u64) as usize;
        let (looks_first, clock) = (self.rng.one_in(2), worker.clock);
        let state = self.workers[index].tasks[at].term.state(clock);
        if looks_first && state != LeaseState::Held {
            let task = self.workers[index].tasks.remove(at);
            return self.end(&task, TaskEnd::Lost);
        }
        let task = &mut self.workers[index].tasks[at];
        if task.waits || clock < task.due {
            return Ok(());
        }
        match task.step {
            TaskStep::Fire => self.fire(index, at),
            TaskStep::Attempt if self.fault == Some(LeaseFault::EarlyTrigger) => {
                self.fire(index, at)
            }
            TaskStep::Attempt if !task.term.allows_trigger(clock) => Ok(()),
            TaskStep::Respond => {
                task.step = TaskStep::Answer;
                Ok(())
            }
            // Of most runs the verdict is final at once.
            TaskStep::Provisional if task.has_provisional || self.rng.one_in(2) => {
                task.step = TaskStep::Finish;
                Ok(())
            }
            TaskStep::Attempt | TaskStep::Answer | TaskStep::Provisional | TaskStep::Finish => {
                let Some(kind) = task.write() else { return Ok(()) };
                task.waits = true;
                let (id, mark) = (task.id, (task.epoch, task.id));
                let statement = Statement::Write(kind, task.run, mark);
                self.send(index, CallOwner::Task(id), statement);
                Ok(())
            }
        }
    }

    /// Fires the trigger, if enough of the lease is left; an error if that must not be.
    fn fire(&mut self, index: usize, at: usize) -> Result<(), String> {
        let (clock, stood_at) = (self.workers[index].clock, self.workers[index].stood_at);
        let pause = Duration::from_millis(self.rng.below(4000));
        let task = &mut self.workers[index].tasks[at];
        let is_allowed = match self.fault {
            Some(LeaseFault::UncheckedTrigger) => true,
            Some(LeaseFault::NoMargin) => task.term.state(clock) == LeaseState::Held,
            _ => task.term.allows_trigger(clock),
        };
        if !is_allowed {
            // Nothing was sent. The task waits for a renewal, or for the end of its lease.
            task.due = clock + RETRY;
            self.counts.withheld += 1;
            return Ok(());
        }
        let is_early = task.step == TaskStep::Attempt;
        task.step = if is_early { TaskStep::Answer } else { TaskStep::Respond };
        task.due = clock + pause;
        let (run, epoch, mark) = (task.run, task.epoch, (task.epoch, task.id));
        // A clock that stood still since the lease was requested shows nothing.
        let could_know = stood_at.is_none_or(|stood_at| stood_at < task.asked);
        self.fired[run] += 1;
        let row = &self.database.rows[run];
        if self.fired[run] > 1 {
            return Err("a run was fired twice".to_owned());
        }
        if !is_early && row.attempted != Some(mark) {
            return Err("a run was fired without a record".to_owned());
        }
        if could_know && (row.verdict.is_some() || row.epoch != epoch) {
            return Err(format!("a run was fired in epoch {epoch}, and is in epoch {}", row.epoch));
        }
        Ok(())
    }
}
