//! Determines from the syntax alone what can decide a statement before the trace is complete.
//!
//! This is the analysis of `truth.rs` without the values: it determines which verdicts present spans can make final,
//! whatever spans arrive later.

use super::{
    expression::Trend,
    lasting::{
        Steadiness, is_lasting, speaks_of_count, speaks_of_response, speaks_of_span,
        speaks_of_trace, steadiness,
    },
    truth::is_grouped,
};
use crate::syntax::ast::{
    Aggregate, Comparator, Expr, ExprKind, Property, Quantifier, Selector, Subject, Summary,
};

/// The evidence that can decide a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecidedBy {
    /// Only the response of the trigger.
    Response,
    /// Spans. A verdict that present spans cannot decide is decided by absent spans, once the trace is complete.
    Spans {
        /// Whether present spans can make a pass final.
        passing: bool,
        /// Whether present spans can make a failure final.
        failing: bool,
    },
}

/// The results that spans can make final.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Finals {
    /// Whether true can become final.
    holds: bool,
    /// Whether false can become final.
    breaks: bool,
    /// Whether the result can at least never become true again, and at least never become false again.
    never_true: bool,
    never_false: bool,
}

/// Returns what can decide a claim.
pub(crate) fn decides_claim(claim: &Expr) -> DecidedBy {
    if speaks_of_response(claim) && !speaks_of_trace(claim) {
        return DecidedBy::Response;
    }
    finals(claim).decided_by()
}

/// Returns what can decide an assertion about the spans of a selector.
pub(crate) fn decides_assertion(assertion: &Expr, selector: &Selector) -> DecidedBy {
    let is_of_spans = speaks_of_span(assertion);
    let is_more = is_of_spans || speaks_of_trace(assertion) || speaks_of_count(assertion);
    if speaks_of_response(assertion) && !is_more {
        return DecidedBy::Response;
    }
    let one = finals(assertion);
    let all = match is_of_spans {
        true => quantified(Quantifier::Every, one, is_lasting(selector)),
        false if speaks_of_count(assertion) && !is_lasting(selector) => Finals::NONE,
        false => one,
    };
    all.decided_by()
}

impl Finals {
    const NONE: Self = Self { holds: false, breaks: false, never_true: false, never_false: false };
    const ALL: Self = Self { holds: true, breaks: true, never_true: true, never_false: true };

    fn of(holds: bool, breaks: bool) -> Self {
        Self { holds, breaks, never_true: breaks, never_false: holds }
    }

    /// Returns the same, except that the result may also become undefined.
    fn loosened(self) -> Self {
        Self { holds: false, breaks: false, ..self }
    }

    fn negated(self) -> Self {
        Self {
            holds: self.breaks,
            breaks: self.holds,
            never_true: self.never_false,
            never_false: self.never_true,
        }
    }

    fn decided_by(self) -> DecidedBy {
        DecidedBy::Spans { passing: self.holds, failing: self.never_true }
    }
}

fn finals(statement: &Expr) -> Finals {
    match &statement.kind {
        ExprKind::Not(part) => finals(part).negated(),
        ExprKind::And(parts) => and(parts.iter().map(finals)),
        ExprKind::Or(parts) => and(parts.iter().map(|part| finals(part).negated())).negated(),
        ExprKind::Compare { left, comparator, is_negated, right } => {
            let found = compared(left, *comparator, right);
            if *is_negated { found.negated() } else { found }
        }
        ExprKind::Between { value, is_negated, low, high } => {
            let ends = [
                compared(value, Comparator::AtLeast, low),
                compared(value, Comparator::AtMost, high),
            ];
            let found = and(ends.into_iter());
            if *is_negated { found.negated() } else { found }
        }
        ExprKind::Quantified { subject, predicate: None } => {
            let some = Finals::of(is_lasting(&subject.selector), false);
            if subject.quantifier == Quantifier::No { some.negated() } else { some }
        }
        ExprKind::Quantified { subject, predicate: Some(predicate) } => {
            quantified(subject.quantifier, finals(predicate), is_lasting(&subject.selector))
        }
        ExprKind::Relation { left, right, .. } => {
            let lasting = |subject: &Subject| is_lasting(&subject.selector);
            let each = quantified(right.quantifier, Finals::ALL, lasting(right));
            quantified(left.quantifier, each, lasting(left))
        }
        _ if steadiness(statement) == Steadiness::Fixed => Finals::ALL,
        _ => Finals::NONE,
    }
}

fn and(parts: impl Iterator<Item = Finals>) -> Finals {
    let mut all = Finals { breaks: false, never_true: false, ..Finals::ALL };
    for part in parts {
        all.holds &= part.holds;
        all.breaks |= part.breaks;
        all.never_true |= part.never_true;
        all.never_false &= part.never_false;
    }
    all.never_false |= all.holds;
    all
}

/// Returns the final results of a quantified statement over a growing selection.
fn quantified(quantifier: Quantifier, one: Finals, is_lasting: bool) -> Finals {
    match quantifier {
        _ if !is_lasting => Finals::NONE,
        Quantifier::Every => {
            Finals { breaks: one.breaks, never_true: one.never_true, ..Finals::NONE }
        }
        Quantifier::Some => Finals::of(one.holds, false),
        Quantifier::No => Finals::of(one.holds, false).negated(),
        // A second span makes it undefined permanently.
        Quantifier::The => Finals { never_true: true, never_false: true, ..Finals::NONE },
    }
}

fn compared(left: &Expr, comparator: Comparator, right: &Expr) -> Finals {
    if matches!(left.kind, ExprKind::Gap { .. }) && steadiness(right) == Steadiness::Fixed {
        return Finals { never_true: true, never_false: true, ..Finals::NONE };
    }
    let steady = steadiness(left).max(steadiness(right));
    if steady == Steadiness::Fixed {
        return Finals::ALL;
    }
    let (is_list, moves) = (is_list(left) || is_list(right), moves(trend(left), trend(right)));
    let found = match (moves, comparator) {
        (Trend::Fixed, _) => Finals::ALL,
        (_, Comparator::Contains | Comparator::In) => {
            Finals::of(is_list && moves != Trend::Any, false)
        }
        _ if is_list => Finals::NONE,
        (Trend::Rising, Comparator::AtLeast | Comparator::Greater)
        | (Trend::Falling, Comparator::AtMost | Comparator::Less) => Finals::of(true, false),
        (Trend::Rising, Comparator::AtMost | Comparator::Less)
        | (Trend::Falling, Comparator::AtLeast | Comparator::Greater) => Finals::of(false, true),
        (Trend::Rising | Trend::Falling, Comparator::Equal) => Finals::of(false, true),
        _ => Finals::NONE,
    };
    let found = match is_grouped(left) || is_grouped(right) {
        // Another group may be added.
        true => Finals { holds: false, never_false: false, ..found },
        false => found,
    };
    match steady {
        Steadiness::Fixed | Steadiness::Total => found,
        Steadiness::Loose => found.loosened(),
        Steadiness::Wild => Finals::NONE,
    }
}

fn is_list(value: &Expr) -> bool {
    matches!(&value.kind, ExprKind::Aggregate(aggregate) if aggregate.function == Summary::Values)
}

/// Returns how further spans change a value.
fn trend(value: &Expr) -> Trend {
    match &value.kind {
        ExprKind::Property(Property::Count) => Trend::Rising,
        ExprKind::Aggregate(aggregate) => of_aggregate(aggregate),
        _ if steadiness(value) == Steadiness::Fixed => Trend::Fixed,
        _ => Trend::Any,
    }
}

fn of_aggregate(aggregate: &Aggregate) -> Trend {
    super::aggregate::trend(aggregate)
}

fn moves(left: Trend, right: Trend) -> Trend {
    super::contrast::trend(left, right)
}

#[cfg(test)]
mod tests {
    use super::{DecidedBy, decides_assertion, decides_claim};
    use crate::syntax::parse;

    fn shown(decided: DecidedBy) -> &'static str {
        match decided {
            DecidedBy::Response => "response",
            DecidedBy::Spans { passing: true, failing: true } => "both",
            DecidedBy::Spans { passing: true, failing: false } => "passing",
            DecidedBy::Spans { passing: false, failing: true } => "failing",
            DecidedBy::Spans { passing: false, failing: false } => "nothing",
        }
    }

    #[test]
    fn what_presence_decides_of_a_claim() {
        for (claim, expected) in [
            ("count(span[a=1]) >= 1", "passing"),
            ("count(span[a=1]) <= 3", "failing"),
            ("3 >= count(span[a=1])", "failing"),
            ("count(span[a=1]) = 1", "failing"),
            ("count(span[a=1]) != 1", "passing"),
            ("count(span[]:leaf) >= 1", "nothing"),
            ("some span[a=1]", "passing"),
            ("no span[a=1]", "failing"),
            ("not some span[a=1]", "failing"),
            ("every span[a=1] has attr:b = 1", "failing"),
            ("some span[a=1] has attr:b = 1", "passing"),
            ("no span[a=1] has attr:b = 1", "failing"),
            ("span[a=1] has attr:b = 1", "failing"),
            ("not span[a=1] has attr:b = 1", "failing"),
            ("every span[a=1] has count(self span[]) <= 3", "failing"),
            ("every span[a=1] has count(self span[]) >= 3", "nothing"),
            ("some span[a=1] before some span[b=1]", "passing"),
            ("every span[a=1] before some span[b=1]", "nothing"),
            ("every span[a=1] before every span[b=1]", "failing"),
            ("max(duration of span[a=1]) > 5ms", "passing"),
            ("max(duration of span[a=1]) < 5ms", "failing"),
            ("max(attr:x of span[a=1]) > 5", "nothing"),
            ("max(attr:x of span[a=1]) < 5", "failing"),
            ("min(duration of span[a=1]) < 5ms", "passing"),
            ("avg(duration of span[a=1]) < 5ms", "nothing"),
            ("count(span[a=1] by attr:b) <= 2", "failing"),
            ("count(span[a=1] by attr:b) >= 2", "nothing"),
            ("values(service of span[]) contains [\"a\"]", "passing"),
            ("value(attr:x of span[a=1]) = 5", "failing"),
            ("gap(span[a=1], span[b=1]) < 5ms", "failing"),
            ("some span[a=1] and no span[b=1]", "failing"),
            ("some span[a=1] or no span[b=1]", "passing"),
            ("some span[a=1] and some span[b=1]", "passing"),
            ("response.status = 200", "response"),
            ("response.status = 200 and some span[a=1]", "both"),
        ] {
            let claim_tree = parse::claim(claim).tree.expect(claim);
            assert_eq!(shown(decides_claim(&claim_tree)), expected, "{claim}");
        }
    }

    #[test]
    fn what_presence_decides_of_an_assertion() {
        for (selector, assertion, expected) in [
            ("span[a=1]", "attr:b = 1", "failing"),
            ("span[a=1]:first", "attr:b = 1", "nothing"),
            ("span[a=1]", "attr:tracetest.selected_spans.count >= 1", "passing"),
            ("span[a=1]", "attr:tracetest.selected_spans.count <= 1", "failing"),
            ("span[a=1]:last", "attr:tracetest.selected_spans.count <= 1", "nothing"),
            ("span[a=1]", "self_time < 5ms", "nothing"),
            ("span[a=1]", "response.status = 200", "response"),
        ] {
            let tree = parse::assertion(assertion).tree.expect(assertion);
            let of = parse::selector(selector).tree.expect(selector);
            assert_eq!(shown(decides_assertion(&tree, &of)), expected, "{selector} {assertion}");
        }
    }
}
