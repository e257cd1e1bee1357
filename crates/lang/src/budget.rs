//! The budget of one judgement: the limits for its work and memory.
//!
//! The evaluator counts work in *steps* and memory in bytes, and never uses a clock: the same document and the same evidence cost
//! the same on every machine and at any time. A step is about the work of reading one property of one span. Searching, parsing
//! and comparing texts costs steps by their bytes.
//!
//! A *statement* is a claim, an assertion or an output. A statement that exceeds its share is inconclusive, whatever its partial
//! result is. The first statement that needs a value pays for computing it. Later statements find it memoized and are charged the
//! same, so that the cost of a statement does not depend on its position in the document. Only work that is really done counts
//! against the judgement.
//!
//! The counters are thread-local during a judgement: evaluation never leaves its thread, and deep functions such as the
//! comparison of two values need no budget parameter. Outside of a judgement nothing is counted.
//!
//! A caller can cancel a judgement: it then ends soon, with a result that must be discarded.

use std::{
    cell::{Cell, RefCell},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

/// The maximum number of steps of a judgement.
pub(crate) const STEPS_MAX: u64 = 8_000_000_000;

/// The maximum number of steps of one statement.
pub(crate) const STATEMENT_STEPS_MAX: u64 = STEPS_MAX / 4;

/// The maximum number of bytes that a judgement may hold in addition to the trace.
pub(crate) const BYTES_MAX: u64 = 1 << 30;

/// The number of steps between two checks for cancellation: about a millisecond.
const CANCEL_STEPS: u64 = 1 << 20;

/// A handle that cancels a judgement on another thread. A clone cancels the same judgement.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Cancels the work: from now on no caller needs the result.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Runs work that this handle can cancel.
    pub fn run<T>(&self, work: impl FnOnce() -> T) -> T {
        let _restore = Restore(CANCEL.replace(Some(self.clone())));
        work()
    }
}

/// A guard that restores the previous cancel handle of the thread on drop, also after a panic.
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

/// The reason why a statement has no verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Over {
    /// The statement exceeds the steps of a statement.
    Statement,
    /// The statement exceeds the memory limit.
    Memory,
    /// All statements together exceed the steps of a judgement.
    Judgement,
    /// The caller cancelled the judgement.
    Cancelled,
}

/// The cost of a judgement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// The steps of the complete judgement.
    pub steps: u64,
    /// The steps of the most expensive statement.
    pub statement_steps: u64,
    /// The peak number of bytes held.
    pub bytes: u64,
}

impl Work {
    /// The upper bounds for a judgement.
    pub const MAX: Self =
        Self { steps: STEPS_MAX, statement_steps: STATEMENT_STEPS_MAX, bytes: BYTES_MAX };
}

#[derive(Clone, Copy, Default)]
struct Meter {
    is_counting: bool,
    /// The steps really done.
    steps: u64,
    /// The steps charged to the current statement.
    charged: u64,
    /// The number of the current statement, from 1; 0 between statements.
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

/// Updates the meter of this thread.
fn change<T>(how: impl FnOnce(&mut Meter) -> T) -> T {
    METER.with(|cell| {
        let mut meter = cell.get();
        let made = how(&mut meter);
        cell.set(meter);
        made
    })
}

/// Runs a judgement and returns its cost.
pub(crate) fn judgement<T>(work: impl FnOnce() -> T) -> (T, Work) {
    let before = METER.replace(Meter { is_counting: true, ..Meter::NONE });
    let made = work();
    let Meter { steps, statement_steps_most, held_most, .. } = METER.replace(before);
    (made, Work { steps, statement_steps: statement_steps_most, bytes: held_most })
}

/// Evaluates a statement. Also returns whether it exceeds the budget: then the result must be discarded.
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

/// Returns the number of the statement that is being evaluated; 0 for none.
pub(crate) fn current_statement() -> u32 {
    METER.get().statement
}

/// Returns the steps charged to the current statement so far.
pub(crate) fn charged() -> u64 {
    METER.get().charged
}

/// Charges work before it is done, and returns whether it may be done. Refused work is charged to the statement, but does not
/// count as work of the judgement.
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

/// Charges the statement for a memoized value.
pub(crate) fn charge_again(steps: u64) {
    change(|meter| meter.charge(steps));
}

/// Whether the statement exceeds its budget, so that further evaluation is useless.
pub(crate) fn is_over() -> bool {
    METER.get().over.is_some()
}

/// Acquires memory, and returns whether it is within the budget.
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

/// Releases memory.
pub(crate) fn release(bytes: u64) {
    change(|meter| meter.held = meter.held.saturating_sub(bytes));
}

/// Whether this much memory is available for a moment. If it is not, the statement exceeds the budget.
pub(crate) fn has_room(bytes: u64) -> bool {
    let has = hold(bytes);
    release(bytes);
    has
}

/// Whether memory use is so high that memoized values should be evicted.
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
        // Work between statements is shared by all of them, so only the limit of the judgement applies.
        if self.statement > 0 && self.charged > STATEMENT_STEPS_MAX {
            self.over = Some(Over::Statement);
        } else if self.steps > STEPS_MAX {
            self.over = Some(Over::Judgement);
        }
    }
}

/// The reason for unknown values inside a statement that exceeds its budget; the caller of [`statement`] reports the details.
pub(crate) const OVER: &str = "it takes more work than a judgement may";

impl Over {
    /// Returns the reason, and what the user can do.
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
            // A memoized value costs the statement, but not the judgement.
            let again = statement(|| charge_again(STATEMENT_STEPS_MAX + 1));
            assert_eq!(again, ((), Some(Over::Statement)));
            for _ in 0..3 {
                assert_eq!(statement(|| spend(STATEMENT_STEPS_MAX)), (true, None));
            }
            assert_eq!(statement(is_over), (true, Some(Over::Judgement)));
        });
        // Refused work was not done.
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
