//! The decisions about leases, played on virtual clocks: a run has one trigger, one verdict and an end, whatever its workers do.
//!
//! What is real: `lease_term.rs`, which decides when a worker still owns a run, when it may fire, and when it gives a run up. What
//! is a model: the order of steps of a run, which is that of `runner`, and the statements of the database. The play believes that
//! each statement is one step, by the clock of the database; that a statement may be executed after its caller has given it up, or
//! never; and that a committed statement may be reported as failed. Workers hang and wake up, their clocks differ in speed by up to
//! a third and stop with the machine (a monotonic clock does not count while a virtual machine is suspended), they are killed, and
//! they release their runs.
//!
//! After a loss that its clock could show, a worker fires nothing. If its clock stood still meanwhile it may fire late; never
//! twice, since the attempt is in the database. Deliberately absent: spans and their proofs, which `bus` plays.

mod database;
mod task;

use std::time::Duration;

use database::{DbAnswer, LEASE, ModelDatabase, Statement};
use task::{ModelTask, TaskEnd};

/// A fault of a worker or a statement that a play has to find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseFault {
    /// Writes do not name the epoch.
    NoEpoch,
    /// A write counts as repeated, also if another worker wrote it first.
    BlindRepeat,
    /// Leases expire by the clock of the worker that wants the run.
    OwnClock,
    /// Expired leases are not looked for.
    ForgottenExpiry,
    /// A renewal counts from when its answer arrived.
    LateRenewal,
    /// A renewal that does not name the run counts as one that does.
    IgnoredLoss,
    /// The trigger is fired without a look at the lease.
    UncheckedTrigger,
    /// The trigger is fired until the very end of the lease.
    NoMargin,
    /// The trigger is fired before the attempt is stored.
    EarlyTrigger,
    /// Runs are released while their tasks still work on them.
    EarlyRelease,
}

impl LeaseFault {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::NoEpoch,
        Self::BlindRepeat,
        Self::OwnClock,
        Self::ForgottenExpiry,
        Self::LateRenewal,
        Self::IgnoredLoss,
        Self::UncheckedTrigger,
        Self::NoMargin,
        Self::EarlyTrigger,
        Self::EarlyRelease,
    ];
}

/// What happened in a play.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeaseCounts {
    /// Runs that ended.
    pub ended: u64,
    /// Triggers that were fired.
    pub fired: u64,
    /// Leases of runs that had an owner before.
    pub taken_over: u64,
    /// Tasks that noticed the end of their lease, or another owner.
    pub lost: u64,
    /// Triggers that were not fired because too little of the lease was left.
    pub withheld: u64,
    /// Runs that were given up after two owners.
    pub given_up: u64,
}

impl LeaseCounts {
    /// Adds the counts of another play.
    pub fn add(&mut self, other: &Self) {
        self.ended += other.ended;
        self.fired += other.fired;
        self.taken_over += other.taken_over;
        self.lost += other.lost;
        self.withheld += other.withheld;
        self.given_up += other.given_up;
    }
}

const RUNS: usize = 2;
const WORKERS: usize = 3;
/// The number of steps in a play, before all workers and the database work again.
const STEPS: u32 = 200;
/// The number of steps after which a run that has not ended is without an end.
const END_STEPS: u32 = 20_000;
/// The pause before a failed statement, or a trigger that was not allowed, is tried again.
const RETRY: Duration = Duration::from_millis(200);

/// Plays once; an error describes what must not happen.
pub fn play(seed: u64, fault: Option<LeaseFault>) -> Result<LeaseCounts, String> {
    let mut rng = PlayRng(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let workers = (0..WORKERS).map(|_| ModelWorker::new(&mut rng)).collect();
    let mut play = LeasePlay {
        database: ModelDatabase::new(RUNS, fault),
        is_away: false,
        is_calm: false,
        workers,
        calls: Vec::new(),
        fired: [0; RUNS],
        judged: [None; RUNS],
        tasks: 0,
        fault,
        counts: LeaseCounts::default(),
        rng,
    };
    play.run().map_err(|why| format!("seed {seed}: {why}"))?;
    Ok(play.counts)
}

/// A generator of random numbers (xorshift).
struct PlayRng(u64);

impl PlayRng {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }

    fn one_in(&mut self, number: u64) -> bool {
        self.below(number) == 0
    }
}

/// A process that executes runs.
struct ModelWorker {
    /// Its monotonic clock.
    clock: Duration,
    /// The speed of its clock, in percent of that of the database.
    speed: u32,
    state: WorkerState,
    /// The time of its clock at which the clock stood still.
    stood_at: Option<Duration>,
    tasks: Vec<ModelTask>,
    renew_at: Duration,
    lease_at: Duration,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum WorkerState {
    Awake,
    /// It does nothing, and its clock goes on.
    Hung,
    /// It does nothing, and its clock stands still.
    Suspended,
}

/// Who waits for the answer of a statement.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CallOwner {
    Task(u64),
    Renewal,
    Lease,
    Nobody,
}

/// A statement on its way, or its answer.
struct StatementCall {
    worker: usize,
    owner: CallOwner,
    statement: Statement,
    /// When it was requested, by the worker's clock.
    asked: Duration,
    answer: Option<DbAnswer>,
}

struct LeasePlay {
    database: ModelDatabase,
    is_away: bool,
    /// Nothing fails any more.
    is_calm: bool,
    workers: Vec<ModelWorker>,
    calls: Vec<StatementCall>,
    /// The triggers of each run.
    fired: [u32; RUNS],
    /// The task whose verdict was accepted.
    judged: [Option<u64>; RUNS],
    tasks: u64,
    fault: Option<LeaseFault>,
    counts: LeaseCounts,
    rng: PlayRng,
}

impl ModelWorker {
    fn new(rng: &mut PlayRng) -> Self {
        let clock = Duration::from_millis(rng.below(100_000));
        let speed = 75 + u32::try_from(rng.below(60)).unwrap_or_default();
        let (renew_at, lease_at) = (clock, clock);
        let (state, stood_at, tasks) = (WorkerState::Awake, None, Vec::new());
        Self { clock, speed, state, stood_at, tasks, renew_at, lease_at }
    }

    /// Returns the runs whose leases it renews: of each run only the latest lease.
    fn renewed_runs(&self) -> Vec<(usize, i64)> {
        let is_latest = |task: &&ModelTask| {
            self.tasks.iter().all(|other| other.run != task.run || other.epoch <= task.epoch)
        };
        self.tasks.iter().filter(is_latest).map(|task| (task.run, task.epoch)).collect()
    }
}

impl LeasePlay {
    fn run(&mut self) -> Result<(), String> {
        for _ in 0..STEPS {
            self.step()?;
        }
        self.is_calm = true;
        self.is_away = false;
        for worker in &mut self.workers {
            worker.state = WorkerState::Awake;
        }
        for _ in 0..END_STEPS {
            if self.database.rows.iter().all(|row| row.verdict.is_some()) {
                self.counts.ended += RUNS as u64;
                self.counts.fired += self.fired.iter().map(|fired| u64::from(*fired)).sum::<u64>();
                return Ok(());
            }
            self.step()?;
        }
        Err("a run has no end".to_owned())
    }

    fn step(&mut self) -> Result<(), String> {
        self.advance();
        for worker in 0..WORKERS {
            self.ask(worker);
        }
        let worker = self.rng.below(WORKERS as u64) as usize;
        match self.rng.below(100) {
            0..45 => return self.work(worker),
            45..90 => return self.call(),
            _ if self.is_calm => {}
            90..92 => self.disturb(worker),
            92..94 => self.is_away = self.rng.one_in(4),
            _ => self.workers[worker].state = WorkerState::Awake,
        }
        Ok(())
    }

    fn advance(&mut self) {
        // Most steps take a moment, and some as long as a lease.
        let most = if self.rng.one_in(30) { 4000 } else { 40 };
        let time = Duration::from_millis(self.rng.below(most));
        self.database.now += time;
        for worker in &mut self.workers {
            match worker.state {
                WorkerState::Suspended => worker.stood_at = Some(worker.clock),
                WorkerState::Awake | WorkerState::Hung => worker.clock += time * worker.speed / 100,
            }
        }
    }

    /// A worker hangs, is suspended, is killed, or releases its runs.
    fn disturb(&mut self, index: usize) {
        let kind = self.rng.below(4);
        let worker = &mut self.workers[index];
        match kind {
            0 => worker.state = WorkerState::Hung,
            1 => worker.state = WorkerState::Suspended,
            2 => {
                worker.tasks.clear();
                (worker.renew_at, worker.lease_at) = (worker.clock, worker.clock);
                for call in self.calls.iter_mut().filter(|call| call.worker == index) {
                    call.owner = CallOwner::Nobody;
                }
            }
            _ => {
                let runs = worker.tasks.iter().map(|task| (task.run, task.epoch)).collect();
                if self.fault != Some(LeaseFault::EarlyRelease) {
                    worker.tasks.clear();
                }
                self.send(index, CallOwner::Nobody, Statement::Release(runs));
            }
        }
    }

    /// Requests leases, and renewals, when they are due.
    fn ask(&mut self, index: usize) {
        let worker = &mut self.workers[index];
        if worker.state != WorkerState::Awake {
            return;
        }
        let clock = worker.clock;
        if clock >= worker.renew_at && !worker.tasks.is_empty() {
            // Until its answer comes.
            worker.renew_at = Duration::MAX;
            let runs = worker.renewed_runs();
            self.send(index, CallOwner::Renewal, Statement::Renew(runs));
        } else if clock >= worker.lease_at {
            worker.lease_at = Duration::MAX;
            self.send(index, CallOwner::Lease, Statement::Lease(clock));
        }
    }

    fn send(&mut self, worker: usize, owner: CallOwner, statement: Statement) {
        let asked = self.workers[worker].clock;
        self.calls.push(StatementCall { worker, owner, statement, asked, answer: None });
    }

    /// A statement is executed, or its answer arrives; in any order.
    fn call(&mut self) -> Result<(), String> {
        if self.calls.is_empty() {
            return Ok(());
        }
        let index = self.rng.below(self.calls.len() as u64) as usize;
        let fails = !self.is_calm && self.rng.one_in(8);
        let is_late = !self.is_calm && self.rng.one_in(20);
        let call = &mut self.calls[index];
        if call.answer.is_some() {
            if self.workers[call.worker].state == WorkerState::Awake {
                let call = self.calls.swap_remove(index);
                return self.arrive(&call);
            }
            return Ok(());
        }
        if is_late {
            // Its caller gives up; it is executed later.
            let (worker, asked) = (call.worker, call.asked);
            let owner = std::mem::replace(&mut call.owner, CallOwner::Nobody);
            let statement = call.statement.clone();
            let answer = Some(DbAnswer::Failed);
            self.calls.push(StatementCall { worker, owner, statement, asked, answer });
            return Ok(());
        }
        if self.is_away {
            call.answer = Some(DbAnswer::Failed);
            return Ok(());
        }
        let answer = self.database.execute(&call.statement)?;
        call.answer = Some(if fails { DbAnswer::Failed } else { answer });
        Ok(())
    }

    /// A worker gets an answer.
    fn arrive(&mut self, call: &StatementCall) -> Result<(), String> {
        let (fault, worker) = (self.fault, &mut self.workers[call.worker]);
        let clock = worker.clock;
        match (call.owner, &call.answer) {
            (CallOwner::Nobody, _) | (_, None) => {}
            (CallOwner::Renewal, Some(DbAnswer::Renewed(renewed))) => {
                worker.renew_at = clock + LEASE / 3;
                let Statement::Renew(runs) = &call.statement else { return Ok(()) };
                let is_asked = |task: &&mut ModelTask| runs.contains(&(task.run, task.epoch));
                for task in worker.tasks.iter_mut().filter(is_asked) {
                    let is_owned = renewed.contains(&(task.run, task.epoch));
                    if is_owned || fault == Some(LeaseFault::IgnoredLoss) {
                        let is_late = fault == Some(LeaseFault::LateRenewal);
                        task.renewed(if is_late { clock } else { call.asked });
                    } else {
                        task.term.lose();
                    }
                }
            }
            (CallOwner::Renewal, _) => worker.renew_at = clock + RETRY,
            (CallOwner::Lease, Some(DbAnswer::Leased(leased))) => {
                worker.lease_at = clock + LEASE / 3;
                if worker.renew_at != Duration::MAX && worker.tasks.is_empty() {
                    worker.renew_at = call.asked + LEASE / 3;
                }
                for lease in leased {
                    self.tasks += 1;
                    self.counts.taken_over += u64::from(lease.epoch > 1);
                    worker.tasks.push(ModelTask::new(self.tasks, lease, call.asked));
                }
            }
            (CallOwner::Lease, _) => worker.lease_at = clock + RETRY,
            (CallOwner::Task(id), Some(answer)) => {
                let task = worker.tasks.iter().position(|task| task.id == id);
                let Some(task) = task else { return Ok(()) };
                if let Some(end) = worker.tasks[task].arrive(answer, clock + RETRY) {
                    let task = worker.tasks.remove(task);
                    return self.end(&task, end);
                }
            }
        }
        Ok(())
    }

    fn end(&mut self, task: &ModelTask, end: TaskEnd) -> Result<(), String> {
        match end {
            TaskEnd::Judged => match self.judged[task.run].replace(task.id) {
                Some(_) => Err("two verdicts of a run were accepted".to_owned()),
                None => {
                    self.counts.given_up += u64::from(task.is_given_up);
                    Ok(())
                }
            },
            TaskEnd::Lost => {
                self.counts.lost += 1;
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{LeaseCounts, LeaseFault, play};

    /// The short form of `cargo xtask prove plays`.
    #[test]
    fn a_run_has_one_trigger_one_verdict_and_an_end() {
        let mut all = LeaseCounts::default();
        for seed in 0..5_000 {
            all.add(&play(seed, None).unwrap_or_else(|why| unreachable!("{why}")));
        }
        assert_eq!(all.ended, 10_000);
        let least = [all.fired, all.taken_over, all.lost].into_iter().min().unwrap_or_default();
        assert!(least > 1_000 && all.withheld > 50 && all.given_up > 50, "{all:?}");
    }

    #[test]
    fn planted_faults_of_leases_are_found() {
        for fault in LeaseFault::ALL {
            let is_found = (0..50_000).any(|seed| play(seed, Some(fault)).is_err());
            assert!(is_found, "{fault:?}");
        }
    }
}
