//! The statements about leases on a model of the rows: what `db` promises, each as one step. `crates/db/tests/record` tests the
//! real statements on a real Postgres.

use std::time::Duration;

use super::LeaseFault;

/// The length of a lease: the shortest that can be configured.
pub(super) const LEASE: Duration = Duration::from_secs(3);

/// What one owner wrote: its epoch, and the number of its task, which stands for the values.
type OwnerMark = (i64, u64);

/// The row of a run.
#[derive(Clone, Debug, Default)]
pub(super) struct ModelRow {
    pub(super) epoch: i64,
    lease_until: Option<Duration>,
    stalls: i32,
    pub(super) attempted: Option<OwnerMark>,
    answered: Option<OwnerMark>,
    provisional: Option<OwnerMark>,
    /// With a verdict the run is not open any more.
    pub(super) verdict: Option<OwnerMark>,
}

/// How far an earlier owner got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ModelProgress {
    New,
    Attempted,
    Answered,
}

/// A run that was leased.
#[derive(Clone, Copy, Debug)]
pub(super) struct ModelLease {
    pub(super) run: usize,
    pub(super) epoch: i64,
    pub(super) stalls: i32,
    pub(super) progress: ModelProgress,
    pub(super) has_provisional: bool,
}

/// What the write of an owner is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WriteKind {
    Attempted,
    Answered,
    Provisional,
    Finish,
}

#[derive(Clone, Debug)]
pub(super) enum Statement {
    /// Leases all runs without an owner; has the clock of the worker for a fault.
    Lease(Duration),
    Renew(Vec<(usize, i64)>),
    Release(Vec<(usize, i64)>),
    Write(WriteKind, usize, OwnerMark),
}

#[derive(Clone, Debug)]
pub(super) enum DbAnswer {
    Leased(Vec<ModelLease>),
    /// Of these runs the caller is still the owner.
    Renewed(Vec<(usize, i64)>),
    Written,
    Fenced,
    /// The statement was executed or not.
    Failed,
}

#[derive(Debug)]
pub(super) struct ModelDatabase {
    pub(super) now: Duration,
    pub(super) rows: Vec<ModelRow>,
    fault: Option<LeaseFault>,
}

impl ModelDatabase {
    pub(super) fn new(runs: usize, fault: Option<LeaseFault>) -> Self {
        Self { now: Duration::ZERO, rows: vec![ModelRow::default(); runs], fault }
    }

    /// Executes a statement; an error if a write of a former owner took effect.
    pub(super) fn execute(&mut self, statement: &Statement) -> Result<DbAnswer, String> {
        match statement {
            Statement::Lease(clock) => Ok(DbAnswer::Leased(self.lease(*clock))),
            Statement::Renew(runs) => Ok(DbAnswer::Renewed(self.renew(runs))),
            Statement::Release(runs) => {
                for (run, epoch) in runs {
                    let row = &mut self.rows[*run];
                    if row.verdict.is_none() && row.epoch == *epoch {
                        row.lease_until = None;
                    }
                }
                Ok(DbAnswer::Written)
            }
            Statement::Write(kind, run, mark) => self.write(*kind, *run, *mark),
        }
    }

    fn lease(&mut self, clock: Duration) -> Vec<ModelLease> {
        let now = if self.fault == Some(LeaseFault::OwnClock) { clock } else { self.now };
        let mut leased = Vec::new();
        for (run, row) in self.rows.iter_mut().enumerate() {
            let is_expired = row.epoch > 0 && row.lease_until.is_none_or(|until| until <= now);
            let is_found = is_expired && self.fault != Some(LeaseFault::ForgottenExpiry);
            if row.verdict.is_some() || (row.epoch > 0 && !is_found) {
                continue;
            }
            row.stalls += i32::from(row.epoch > 0 && row.lease_until.is_some());
            row.epoch += 1;
            row.lease_until = Some(now + LEASE);
            leased.push(ModelLease {
                run,
                epoch: row.epoch,
                stalls: row.stalls,
                progress: match (row.attempted, row.answered) {
                    (None, _) => ModelProgress::New,
                    (Some(_), None) => ModelProgress::Attempted,
                    (Some(_), Some(_)) => ModelProgress::Answered,
                },
                has_provisional: row.provisional.is_some(),
            });
        }
        leased
    }

    fn renew(&mut self, runs: &[(usize, i64)]) -> Vec<(usize, i64)> {
        let mut renewed = Vec::new();
        for (run, epoch) in runs {
            let row = &mut self.rows[*run];
            if row.epoch != *epoch {
                continue;
            }
            if row.verdict.is_none() {
                row.lease_until = Some(self.now + LEASE);
            }
            renewed.push((*run, *epoch));
        }
        renewed
    }

    /// A write of an owner: once, and fenced by the epoch; the same write of the same owner succeeds again.
    fn write(&mut self, kind: WriteKind, run: usize, mark: OwnerMark) -> Result<DbAnswer, String> {
        let fault = self.fault;
        let row = &mut self.rows[run];
        let is_owner = row.epoch == mark.0;
        let is_open = row.verdict.is_none();
        let may_answer = row.attempted.is_some();
        let place = match kind {
            WriteKind::Attempted => &mut row.attempted,
            WriteKind::Answered => &mut row.answered,
            WriteKind::Provisional => &mut row.provisional,
            WriteKind::Finish => &mut row.verdict,
        };
        let is_first = place.is_none() && (kind != WriteKind::Answered || may_answer);
        if is_open && is_first && (is_owner || fault == Some(LeaseFault::NoEpoch)) {
            *place = Some(mark);
            return match is_owner {
                true => Ok(DbAnswer::Written),
                false => {
                    Err(format!("{kind:?} of epoch {} is written in epoch {}", mark.0, row.epoch))
                }
            };
        }
        let is_repeated = (*place == Some(mark) && is_owner)
            || (place.is_some() && fault == Some(LeaseFault::BlindRepeat));
        Ok(if is_repeated { DbAnswer::Written } else { DbAnswer::Fenced })
    }
}
