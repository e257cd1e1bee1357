//! The budget of one judgement: how much work and memory it may take.
//!
//! Work is counted in *steps* and memory in bytes, both by the evaluator itself and never by a clock: the same document and
//! the same evidence cost the same on every machine and whenever they are judged. A step is about what it takes to look at
//! one property of one span; searching, parsing and comparing texts costs steps by their bytes.
//!
//! A *statement* is a claim, an assertion or an output. What is over its share is inconclusive, whatever was found so far.
//! The first statement that needs something pays for computing it; the next ones, which find it remembered, are charged
//! the same for it, so that a statement costs what it costs alone, wherever it stands in the document. Only what is
//! really computed counts against the judgement as a whole.
//!
//! The counters belong to the thread while a judgement lasts: evaluation never leaves its thread, and what compares two
//! values deep below should not have to be handed a purse. Outside of a judgement nothing is counted.
//!
//! Whoever waits for a judgement can cancel it: it ends soon, with a result that means nothing.

use std::{
    cell::{Cell, RefCell},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

/// How many steps a judgement may take.
pub(crate) const STEPS_MAX: u64 = 8_000_000_000;

/// How many steps one statement may take.
pub(crate) const STATEMENT_STEPS_MAX: u64 = STEPS_MAX / 4;

/// How many bytes a judgement may hold beside the trace.
pub(crate) const BYTES_MAX: u64 = 1 << 30;

/// Steps between two looks at whether the judgement is cancelled: about a millisecond.
const CANCEL_STEPS: u64 = 1 << 20;

/// Cancels what is judged on another thread. A clone cancels the same.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// From now on the result is wanted by nobody.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Does work that this can cancel.
    pub fn run<T>(&self, work: impl FnOnce() -> T) -> T {
        let _restore = Restore(CANCEL.replace(Some(self.clone())));
        work()
    }
}

/// What could cancel this thread's work before, also after a panic.
struct Restore(Option<Cancel>);

impl Drop for Restore {
    fn drop(&mut self) {
        CANCEL.set(self.0.take());
    }
}

/// Whether the work on this thread is cancelled.
pub fn is_cancelled() -> bool {
    CANCEL.with_borrow(|cancel| cancel.as_ref().is_some_and(|it| it.0.load(Ordering::Relaxed)))
}

/// Why a statement has no verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Over {
    /// It takes more steps than a statement may.
    Statement,
    /// It takes more memory than there is.
    Memory,
    /// All statements together take more steps than a judgement may.
    Judgement,
    /// Nobody waits for the judgement any more.
    Cancelled,
}

/// What a judgement took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Steps of the whole judgement.
    pub steps: u64,
    /// Steps of the statement that took the most.
    pub statement_steps: u64,
    /// Bytes that were held at once, at the most.
    pub bytes: u64,
}

impl Work {
    /// What a judgement may take.
    pub const MAX: Self =
        Self { steps: STEPS_MAX, statement_steps: STATEMENT_STEPS_MAX, bytes: BYTES_MAX };
}

#[derive(Clone, Copy, Default)]
struct Meter {
    is_counting: bool,
    /// Steps that were really taken.
    steps: u64,
    /// Steps that this statement was charged.
    charged: u64,
    /// The statement of which they are, from 1; 0 between statements.
    statement: u32,
    statements: u32,
    statement_steps_most: u64,
    held: u64,
    held_most: u64,
    over: Option<Over>,
    is_cancelled: bool,
}

thread_local! {
    static METER: Cell<Meter> = const { Cell::new(Meter::NONE) };
    static CANCEL: RefCell<Option<Cancel>> = const { RefCell::new(None) };
}

impl Meter {
    const NONE: Self = Self {
        is_counting: false,
        steps: 0,
        charged: 0,
        statement: 0,
        statements: 0,
        statement_steps_most: 0,
        held: 0,
        held_most: 0,
        over: None,
        is_cancelled: false,
    };
}

/// Changes the meter.
fn change<T>(how: impl FnOnce(&mut Meter) -> T) -> T {
    METER.with(|cell| {
        let mut meter = cell.get();
        let made = how(&mut meter);
        cell.set(meter);
        made
    })
}

/// Counts what a judgement takes.
pub(crate) fn judgement<T>(work: impl FnOnce() -> T) -> (T, Work) {
    let before = METER.replace(Meter { is_counting: true, ..Meter::NONE });
    let made = work();
    let Meter { steps, statement_steps_most, held_most, .. } = METER.replace(before);
    (made, Work { steps, statement_steps: statement_steps_most, bytes: held_most })
}

/// Evaluates a statement, and says if it is over the budget: then what came of it means nothing.
pub(crate) fn statement<T>(work: impl FnOnce() -> T) -> (T, Option<Over>) {
    change(|meter| {
        meter.statements += 1;
        (meter.statement, meter.charged) = (meter.statements, 0);
        meter.over = match meter {
            Meter { is_counting: false, .. } => None,
            Meter { is_cancelled: true, .. } => Some(Over::Cancelled),
            Meter { steps: STEPS_MAX.., .. } => Some(Over::Judgement),
            Meter { held, .. } if *held > BYTES_MAX => Some(Over::Memory),
            _ => None,
        };
    });
    let made = work();
    let over = change(|meter| {
        meter.statement = 0;
        meter.statement_steps_most = meter.statement_steps_most.max(meter.charged);
        meter.over.take()
    });
    (made, over)
}

/// The number of the statement that is evaluated; 0 for none.
pub(crate) fn current_statement() -> u32 {
    METER.get().statement
}

/// What was charged so far.
pub(crate) fn charged() -> u64 {
    METER.get().charged
}

/// Charges work before it is done, and says whether it may be. What may not be is the statement's debt, and no work of the
/// judgement.
pub(crate) fn spend(steps: u64) -> bool {
    change(|meter| {
        let is_more = steps > STATEMENT_STEPS_MAX
            || (meter.statement > 0 && meter.charged.saturating_add(steps) > STATEMENT_STEPS_MAX);
        if meter.is_counting && is_more {
            meter.charge(steps);
            return false;
        }
        let before = meter.steps;
        meter.steps = meter.steps.saturating_add(steps);
        if meter.is_counting
            && before / CANCEL_STEPS != meter.steps / CANCEL_STEPS
            && is_cancelled()
        {
            (meter.is_cancelled, meter.over) = (true, Some(Over::Cancelled));
        }
        meter.charge(steps);
        meter.over.is_none()
    })
}

/// Charges the statement for something that was computed before.
pub(crate) fn charge_again(steps: u64) {
    change(|meter| meter.charge(steps));
}

/// Whether the statement is over, so that nothing more is worth finding out for it.
pub(crate) fn is_over() -> bool {
    METER.get().over.is_some()
}

/// Takes memory, and says whether there is so much.
pub(crate) fn hold(bytes: u64) -> bool {
    change(|meter| {
        meter.held = meter.held.saturating_add(bytes);
        meter.held_most = meter.held_most.max(meter.held);
        if meter.is_counting && meter.held > BYTES_MAX {
            meter.over.get_or_insert(Over::Memory);
        }
        meter.over.is_none()
    })
}

/// Gives memory back.
pub(crate) fn release(bytes: u64) {
    change(|meter| meter.held = meter.held.saturating_sub(bytes));
}

/// Whether there is so much memory for a moment. What asks and gets none is over.
pub(crate) fn has_room(bytes: u64) -> bool {
    let has = hold(bytes);
    release(bytes);
    has
}

/// Whether so much is held that what is only remembered should go.
pub(crate) fn is_tight() -> bool {
    let meter = METER.get();
    meter.is_counting && meter.held > BYTES_MAX / 2
}

impl Meter {
    fn charge(&mut self, steps: u64) {
        self.charged = self.charged.saturating_add(steps);
        if !self.is_counting || self.over.is_some() {
            return;
        }
        // Between statements work is done for all of them, which has the room of the judgement.
        if self.statement > 0 && self.charged > STATEMENT_STEPS_MAX {
            self.over = Some(Over::Statement);
        } else if self.steps > STEPS_MAX {
            self.over = Some(Over::Judgement);
        }
    }
}

/// Why something is not known within a statement that is over; whoever asked for the statement says more.
pub(crate) const OVER: &str = "it takes more work than a judgement may";

impl Over {
    /// The reason, and what to do.
    pub(crate) fn reason(self) -> String {
        let giga = |steps: u64| steps / 1_000_000_000;
        match self {
            Self::Statement => format!(
                "it takes more than {} billion steps on this trace, and no statement may take more: ask fewer spans for \
                 spans around them, or narrow the selectors, patterns and paths in it",
                giga(STATEMENT_STEPS_MAX)
            ),
            Self::Memory => format!(
                "it takes more than {} MiB of memory on this trace, and no judgement may take more: narrow its selectors, \
                 or compare shorter texts and lists",
                BYTES_MAX >> 20
            ),
            Self::Judgement => format!(
                "the statements before it took the {} billion steps that a judgement may take: split the test",
                giga(STEPS_MAX)
            ),
            Self::Cancelled => "the judgement was cancelled: judge the run again".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{
        BYTES_MAX, CANCEL_STEPS, Cancel, Over, STATEMENT_STEPS_MAX, Work, charge_again, has_room,
        hold, is_cancelled, is_over, judgement, release, spend, statement,
    };

    #[test]
    fn each_statement_has_its_share() {
        let ((), work) = judgement(|| {
            assert_eq!(statement(|| spend(STATEMENT_STEPS_MAX)), (true, None));
            assert_eq!(
                statement(|| spend(STATEMENT_STEPS_MAX + 1)),
                (false, Some(Over::Statement))
            );
            // What was remembered costs the statement, and not the judgement.
            let again = statement(|| charge_again(STATEMENT_STEPS_MAX + 1));
            assert_eq!(again, ((), Some(Over::Statement)));
            for _ in 0..3 {
                assert_eq!(statement(|| spend(STATEMENT_STEPS_MAX)), (true, None));
            }
            assert_eq!(statement(is_over), (true, Some(Over::Judgement)));
        });
        // What was refused was not done.
        assert_eq!(work.steps, 4 * STATEMENT_STEPS_MAX);
        assert_eq!(work.statement_steps, STATEMENT_STEPS_MAX + 1);
    }

    #[test]
    fn what_is_cancelled_ends_soon_and_stays_over() {
        let cancel = Cancel::default();
        let ((), work) = cancel.run(|| {
            judgement(|| {
                assert_eq!(statement(|| spend(CANCEL_STEPS)), (true, None));
                cancel.cancel();
                assert_eq!(statement(|| spend(1)), (true, None), "it is not looked at each step");
                assert_eq!(statement(|| spend(CANCEL_STEPS)), (false, Some(Over::Cancelled)));
                assert_eq!(statement(is_over), (true, Some(Over::Cancelled)));
            })
        });
        assert_eq!(work.steps, 2 * CANCEL_STEPS + 1);
        assert!(!is_cancelled(), "what comes next on this thread is not");
        assert_eq!(judgement(|| statement(|| spend(CANCEL_STEPS))).0, (true, None));
    }

    #[test]
    fn memory_is_given_back() {
        let ((), work) = judgement(|| {
            assert_eq!(statement(|| hold(BYTES_MAX) && !has_room(1)), (true, Some(Over::Memory)));
            release(BYTES_MAX);
            assert_eq!(statement(|| has_room(BYTES_MAX)), (true, None));
        });
        assert_eq!(work.bytes, BYTES_MAX + 1);
    }

    #[test]
    fn outside_of_a_judgement_nothing_is_counted() {
        assert_eq!(statement(|| spend(u64::MAX) && hold(u64::MAX)), (true, None));
        release(u64::MAX);
        assert_eq!(judgement(|| ()).1, Work::default());
    }
}
