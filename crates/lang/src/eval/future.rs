//! The four values of a statement, and what it may still become.
//!
//! | | |
//! | --- | --- |
//! | true, false | as everywhere |
//! | undefined | something is lacking: an attribute, a span, a value that could be compared |
//! | open | there is doubt: no answer, clocks, too large to compare |
//!
//! `and` is false if one part is, then undefined, then open; `or` is true if one part is, then open, then undefined; `not`
//! keeps undefined and open. (What is undefined never holds, denied or not. So `not (a and b)` fails where `a` is undefined,
//! although an open `b` may turn out to be false.) With each value goes the set of those that it may have once further spans have
//! come. What cannot become another verdict any more is final. A span that withholds something may still leave open what
//! was final, as a copy with other content may; it never turns it round.

use model::Verdict;

/// Whether a statement holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Truth {
    True,
    False,
    Undefined,
    Open,
}

use Truth::{False, Open, True, Undefined};

/// The values that a statement may have in the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Future(u8);

/// What looking at a statement brought.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) truth: Truth,
    pub(crate) future: Future,
    /// What is lacking, or what the doubt is.
    pub(crate) reason: Option<String>,
}

impl Truth {
    pub(crate) const ALL: [Self; 4] = [True, False, Undefined, Open];

    pub(crate) fn negated(self) -> Self {
        match self {
            True => False,
            False => True,
            Undefined | Open => self,
        }
    }

    pub(crate) fn and(self, other: Self) -> Self {
        [False, Undefined, Open].into_iter().find(|one| [self, other].contains(one)).unwrap_or(True)
    }

    pub(crate) fn or(self, other: Self) -> Self {
        [True, Open, Undefined].into_iter().find(|one| [self, other].contains(one)).unwrap_or(False)
    }

    /// The verdict on an assertion or claim with this value.
    pub(crate) fn verdict(self) -> Verdict {
        match self {
            True => Verdict::Passed,
            False | Undefined => Verdict::Failed,
            Open => Verdict::Inconclusive,
        }
    }
}

impl From<bool> for Truth {
    fn from(holds: bool) -> Self {
        if holds { True } else { False }
    }
}

impl Future {
    pub(crate) const ANY: Self = Self(15);
    /// Known, but not which of the two.
    pub(crate) const DEFINED: Self = Self::only(True).with(Self::only(False));
    /// The same, unless a span comes that leaves it in doubt: one that dropped what is asked for, or of another clock.
    pub(crate) const DEFINED_OR_OPEN: Self = Self::DEFINED.with(Self::only(Open));

    pub(crate) const fn only(truth: Truth) -> Self {
        Self(match truth {
            True => 1,
            False => 2,
            Undefined => 4,
            Open => 8,
        })
    }

    pub(crate) const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(crate) fn has(self, truth: Truth) -> bool {
        self.0 & Self::only(truth).0 != 0
    }

    pub(crate) fn is_only(self, truth: Truth) -> bool {
        self == Self::only(truth)
    }

    pub(crate) fn negated(self) -> Self {
        self.map(Truth::negated)
    }

    pub(crate) fn and(self, other: Self) -> Self {
        self.pairs(other, Truth::and)
    }

    pub(crate) fn or(self, other: Self) -> Self {
        self.pairs(other, Truth::or)
    }

    fn truths(self) -> impl Iterator<Item = Truth> {
        Truth::ALL.into_iter().filter(move |truth| self.has(*truth))
    }

    fn map(self, change: impl Fn(Truth) -> Truth) -> Self {
        self.truths().fold(Self(0), |all, one| all.with(Self::only(change(one))))
    }

    fn pairs(self, other: Self, join: impl Fn(Truth, Truth) -> Truth) -> Self {
        self.truths().fold(Self(0), |all, one| all.with(other.map(|other| join(one, other))))
    }
}

impl Found {
    /// What further spans cannot change.
    pub(crate) fn fixed(truth: Truth) -> Self {
        Self { truth, future: Future::only(truth), reason: None }
    }

    pub(crate) fn new(truth: Truth, future: Future) -> Self {
        Self { truth, future, reason: None }
    }

    /// Something is lacking, for now or for good.
    pub(crate) fn undefined(reason: impl Into<String>, future: Future) -> Self {
        Self { truth: Undefined, future, reason: Some(reason.into()) }
    }

    pub(crate) fn open(reason: impl Into<String>, future: Future) -> Self {
        Self { truth: Open, future, reason: Some(reason.into()) }
    }

    pub(crate) fn negated(self) -> Self {
        Self { truth: self.truth.negated(), future: self.future.negated(), ..self }
    }

    pub(crate) fn and(self, other: Self) -> Self {
        self.join(other, Truth::and, Future::and)
    }

    pub(crate) fn or(self, other: Self) -> Self {
        self.join(other, Truth::or, Future::or)
    }

    /// The same where `possible` is what it may be with all that may be there unseen. What that cannot change is found,
    /// and all else is open.
    pub(crate) fn doubted(self, possible: Future, reason: &str) -> Self {
        if possible.is_only(self.truth) { self } else { Self::open(reason, Future::ANY) }
    }

    pub(crate) fn is_true(&self) -> bool {
        self.truth == True
    }

    /// Whether no further span can change the verdict.
    pub(crate) fn is_final(&self) -> bool {
        let verdict = self.truth.verdict();
        self.future.truths().all(|truth| truth.verdict() == verdict)
    }

    fn join(
        self,
        other: Self,
        truth: impl Fn(Truth, Truth) -> Truth,
        future: impl Fn(Future, Future) -> Future,
    ) -> Self {
        let truth = truth(self.truth, other.truth);
        let future = future(self.future, other.future);
        // The part that decided says why.
        let reason = if self.truth == truth { self.reason } else { other.reason };
        Self { truth, future, reason }
    }
}

#[cfg(test)]
mod tests {
    use super::{Future, Truth};

    #[test]
    fn one_part_that_decides_is_enough() {
        for one in Truth::ALL {
            assert_eq!(Truth::False.and(one), Truth::False);
            assert_eq!(one.or(Truth::True), Truth::True);
            assert_eq!(Truth::True.and(one), one);
            assert_eq!(Truth::False.or(one), one);
            assert_eq!(one.negated().negated(), one);
        }
        assert_eq!(Truth::Undefined.and(Truth::Open), Truth::Undefined);
        assert_eq!(Truth::Open.or(Truth::Undefined), Truth::Open);
    }

    #[test]
    fn a_future_holds_what_its_parts_may_become() {
        let futures: Vec<_> = (1..16).map(Future).collect();
        for a in &futures {
            for b in &futures {
                for one in a.truths() {
                    for other in b.truths() {
                        assert!(a.and(*b).has(one.and(other)), "{a:?} and {b:?}");
                        assert!(a.or(*b).has(one.or(other)), "{a:?} or {b:?}");
                    }
                }
            }
        }
    }
}
