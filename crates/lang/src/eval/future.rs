//! The truth values of a statement, and the values that it may still get.
//!
//! | | |
//! | --- | --- |
//! | true, false | as everywhere |
//! | undefined | something is missing: an attribute, a span, a comparable value |
//! | open | uncertain: no response, clocks, too large to compare. It may be any of these three |
//! | unmet | uncertain whether it is false or undefined. It is not true |
//!
//! `and` is false if one operand is, `or` is true if one operand is; otherwise undefined outweighs true and false.
//! `not` keeps undefined. So `a and b` is unmet if `a` is undefined and `b` is open, which fails; and `not (a and b)`
//! is open, since `b` may be false. Each value has the set of values that it may get once further spans have arrived. A
//! value that cannot get another verdict is final. A span with dropped data, or a copy with different content, may
//! still make a final result open, but never reverses it.

use model::Verdict;

/// Whether a statement holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Truth {
    True,
    False,
    Undefined,
    Unmet,
    Open,
}

use Truth::{False, Open, True, Undefined, Unmet};

/// The set of values that a statement may have in the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Future(u8);

/// The result of the evaluation of a statement.
#[derive(Clone, Debug)]
pub(crate) struct Evaluation {
    pub(crate) truth: Truth,
    pub(crate) future: Future,
    /// What is missing, or why the result is uncertain.
    pub(crate) reason: Option<String>,
}

impl Truth {
    pub(crate) const ALL: [Self; 5] = [True, False, Undefined, Unmet, Open];

    pub(crate) fn negated(self) -> Self {
        match self {
            True => False,
            False => True,
            Undefined => Undefined,
            Unmet | Open => Open,
        }
    }

    pub(crate) fn and(self, other: Self) -> Self {
        match (self, other) {
            (False, _) | (_, False) => False,
            (True, other) | (other, True) => other,
            (Undefined, Undefined) => Undefined,
            (Open, Open) => Open,
            _ => Unmet,
        }
    }

    pub(crate) fn or(self, other: Self) -> Self {
        match (self, other) {
            (True, _) | (_, True) => True,
            (False, other) | (other, False) => other,
            (Open, _) | (_, Open) => Open,
            (Unmet, Unmet) => Unmet,
            _ => Undefined,
        }
    }

    /// Whether an operand with this value decides the result.
    pub(crate) fn decides(self, whole: Self) -> bool {
        self == whole || (whole == Unmet && matches!(self, Undefined | Open))
    }

    /// Returns the verdict on an assertion or claim with this value.
    pub(crate) fn verdict(self) -> Verdict {
        match self {
            True => Verdict::Passed,
            False | Undefined | Unmet => Verdict::Failed,
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
    pub(crate) const ANY: Self = Self(31);
    /// True or false, but it is unknown which.
    pub(crate) const DEFINED: Self = Self::only(True).with(Self::only(False));
    /// The same, or open after a later span that dropped the queried data or has another clock.
    pub(crate) const DEFINED_OR_OPEN: Self = Self::DEFINED.with(Self::only(Open));

    pub(crate) const fn only(truth: Truth) -> Self {
        Self(match truth {
            True => 1,
            False => 2,
            Undefined => 4,
            Open => 8,
            Unmet => 16,
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

impl Evaluation {
    /// Creates a result that further spans cannot change.
    pub(crate) fn fixed(truth: Truth) -> Self {
        Self { truth, future: Future::only(truth), reason: None }
    }

    pub(crate) fn new(truth: Truth, future: Future) -> Self {
        Self { truth, future, reason: None }
    }

    /// Creates an undefined result: something is missing, for now or permanently.
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

    /// Returns the result if data that is possibly missing cannot change it, and open otherwise. `possible` is the set
    /// of results with all such data.
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
        // The reason is that of the deciding operand, or of both.
        let reason = match (self.reason, other.reason) {
            (Some(one), Some(other_one)) if truth == Unmet && self.truth != other.truth => {
                Some(format!("{one}; {other_one}"))
            }
            (reason, _) if self.truth.decides(truth) => reason,
            (_, reason) => reason,
        };
        Self { truth, future, reason }
    }
}

#[cfg(test)]
mod tests {
    use model::Verdict;

    use super::{Future, Truth};

    /// Returns the values that it may have once nothing is uncertain.
    fn worlds(truth: Truth) -> Vec<Truth> {
        match truth {
            Truth::Open => vec![Truth::True, Truth::False, Truth::Undefined],
            Truth::Unmet => vec![Truth::False, Truth::Undefined],
            known => vec![known],
        }
    }

    #[test]
    fn one_part_that_decides_is_enough() {
        for one in Truth::ALL {
            assert_eq!(Truth::False.and(one), Truth::False);
            assert_eq!(one.or(Truth::True), Truth::True);
            assert_eq!(Truth::True.and(one), one);
            assert_eq!(Truth::False.or(one), one);
        }
        assert_eq!(Truth::Undefined.and(Truth::Open).verdict(), Verdict::Failed);
        assert_eq!(Truth::Undefined.and(Truth::Open).negated().verdict(), Verdict::Inconclusive);
        assert_eq!(Truth::Open.or(Truth::Undefined), Truth::Open);
    }

    #[test]
    fn doubt_holds_whatever_its_parts_turn_out_to_be() {
        for one in Truth::ALL {
            for world in worlds(one) {
                assert!(worlds(one.negated()).contains(&world.negated()), "not {one:?}");
            }
            for other in Truth::ALL {
                assert_eq!(one.and(other), other.and(one));
                assert_eq!(one.or(other), other.or(one));
                for a in worlds(one) {
                    for b in worlds(other) {
                        let [and, or] = [one.and(other), one.or(other)].map(worlds);
                        assert!(and.contains(&a.and(b)), "{one:?} and {other:?}");
                        assert!(or.contains(&a.or(b)), "{one:?} or {other:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_future_holds_what_its_parts_may_become() {
        let futures: Vec<_> = (1..32).map(Future).collect();
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
