//! The possible results of a statement, as a set: with unknown clocks, dropped data or later spans, more than one is possible.

use std::ops::{BitOr, BitOrAssign};

use model::Verdict;

use super::document::Quantifier;

/// A set of `true`, `false` and `undefined`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Truths(u8);

/// Whether a span is selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Member {
    No,
    Maybe,
    Yes,
}

impl Truths {
    pub(super) const EMPTY: Self = Self(0);
    pub(super) const TRUE: Self = Self(1);
    pub(super) const FALSE: Self = Self(2);
    pub(super) const UNDEFINED: Self = Self(4);
    pub(super) const OPEN: Self = Self(3);
    pub(super) const ANY: Self = Self(7);

    pub(super) fn of(is_true: bool) -> Self {
        if is_true { Self::TRUE } else { Self::FALSE }
    }

    pub(super) fn may_be(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    fn each(self) -> impl Iterator<Item = Self> {
        [Self::TRUE, Self::FALSE, Self::UNDEFINED].into_iter().filter(move |it| self.may_be(*it))
    }

    pub(super) fn not(self) -> Self {
        self.map(|one| match one {
            Self::TRUE => Self::FALSE,
            Self::FALSE => Self::TRUE,
            other => other,
        })
    }

    fn map(self, of: impl Fn(Self) -> Self) -> Self {
        self.each().fold(Self::EMPTY, |all, one| all | of(one))
    }

    /// False dominates, then undefined.
    pub(super) fn and(self, other: Self) -> Self {
        self.map(|left| {
            other.map(|right| match (left, right) {
                (Self::FALSE, _) | (_, Self::FALSE) => Self::FALSE,
                (Self::UNDEFINED, _) | (_, Self::UNDEFINED) => Self::UNDEFINED,
                _ => Self::TRUE,
            })
        })
    }

    pub(super) fn or(self, other: Self) -> Self {
        self.not().and(other.not()).not()
    }

    /// Returns the membership in a selection of a span with this result.
    pub(super) fn member(self) -> Member {
        match (self.may_be(Self::TRUE), self == Self::TRUE) {
            (_, true) => Member::Yes,
            (true, false) => Member::Maybe,
            (false, false) => Member::No,
        }
    }

    pub(super) fn verdict(self) -> Verdict {
        match self.member() {
            Member::Yes => Verdict::Passed,
            Member::Maybe => Verdict::Inconclusive,
            Member::No => Verdict::Failed,
        }
    }
}

impl BitOr for Truths {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for Truths {
    fn bitor_assign(&mut self, other: Self) {
        *self = *self | other;
    }
}

impl Member {
    pub(super) fn of(is_member: bool) -> Self {
        if is_member { Self::Yes } else { Self::No }
    }

    pub(super) fn not(self) -> Self {
        match self {
            Self::No => Self::Yes,
            Self::Maybe => Self::Maybe,
            Self::Yes => Self::No,
        }
    }
}

/// Quantifies over spans that are or may be selected, each with its result; `nothing` is the result for no span at all.
pub(super) fn quantify(
    quantifier: Quantifier,
    items: impl IntoIterator<Item = (Member, Truths)>,
    nothing: Truths,
) -> Truths {
    // The possible states so far: the number of spans (none, one, several), and the combined truth of them.
    let mut none = true;
    let mut one = Truths::EMPTY;
    let mut several = Truths::EMPTY;
    let join = |left: Truths, right: Truths| match quantifier {
        Quantifier::Every => left.and(right),
        Quantifier::Some | Quantifier::No => left.or(right),
        Quantifier::The => Truths::UNDEFINED,
    };
    for (member, truths) in items {
        if member == Member::No {
            continue;
        }
        let mut several_now = Truths::EMPTY;
        for earlier in [one, several] {
            if earlier != Truths::EMPTY {
                several_now |= join(earlier, truths);
            }
        }
        let one_now = if none { truths } else { Truths::EMPTY };
        if member == Member::Yes {
            (none, one, several) = (false, one_now, several_now);
        } else {
            one |= one_now;
            several |= several_now;
        }
    }
    let some = one | several;
    let some = if quantifier == Quantifier::No { some.not() } else { some };
    if none { some | nothing } else { some }
}
