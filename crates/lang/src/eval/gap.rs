//! The time from the end of one span to the start of another.

use std::cell::Cell;

use super::{
    contrast::{any_pair, listed},
    doubt::{Selection, selection},
    expression::{ExprValue, Lack, Trend, Values},
    extreme::{Side, Times, host_at, times},
    future::{Evaluation, Future, Truth},
    lasting::{Steadiness, is_lasting, steadiness},
    relation::{SAME_SPAN, why_open},
    summary::NoValue,
    truth::{expect_spans, held, lacking},
    world::EvalScope,
};
use crate::{
    syntax::ast::{Comparator, Expr, ExprKind, Quantifier, Relation, Selector},
    value::Value,
};

/// The time from the end of one span to the start of another, within the bounds that their clocks allow.
#[derive(Clone, Debug)]
pub(crate) struct GapBounds {
    pub(crate) low: i128,
    pub(crate) high: i128,
    /// Whether both spans are on one host.
    pub(crate) is_exact: bool,
    is_bounded: bool,
    pub(crate) doubt: Option<String>,
    pub(crate) pair: (u32, u32),
    /// Why it is uncertain whether other spans match as well.
    pub(crate) unsure: Option<String>,
}

/// Compares a gap. A gap between two hosts is an interval: if both its bounds compare the same way, so does the gap.
pub(super) fn compare_gap<'a>(
    left: &'a Expr,
    comparator: Comparator,
    right: &'a Expr,
    scene: &EvalScope<'_, 'a>,
) -> Option<Evaluation> {
    let ExprKind::Gap { from, to } = &left.kind else { return None };
    if steadiness(right) != Steadiness::Fixed {
        return None;
    }
    let bounds = match gap_bounds(from, to, scene) {
        Ok(bounds) => bounds,
        Err(missing) => return Some(lacking(missing)),
    };
    let right = match held(right, scene) {
        Ok(right) => right,
        Err(missing) => return Some(lacking(missing)),
    };
    let right = right.valued();
    let at = |nanos: i128, comparator| {
        let gap = Value::Duration(nanos);
        any_pair(&[gap], comparator, listed(&right.values)).truth
    };
    let ends = bounds.ends();
    let truth = match comparator {
        Comparator::Equal if bounds.low != bounds.high => {
            let is_outside = ends.iter().all(|end| at(*end, Comparator::Less) == Truth::True)
                || ends.iter().all(|end| at(*end, Comparator::Greater) == Truth::True);
            if is_outside { Truth::False } else { Truth::Open }
        }
        _ => {
            let [low, high] = ends.map(|end| at(end, comparator));
            if low == high { low } else { Truth::Open }
        }
    };
    let is_steady = is_lasting(from) && is_lasting(to) && truth != Truth::Open;
    let mut future = if is_steady { Future::only(truth) } else { Future::ANY };
    // A second span may match later, and clocks may turn out to contradict each other.
    future = future.with(Future::only(Truth::Undefined));
    if !bounds.is_exact {
        future = future.with(Future::only(Truth::Open));
    }
    let reason = (truth == Truth::Open).then(|| bounds.doubt.clone()).flatten();
    let found = Evaluation { truth, future, reason };
    Some(match &bounds.unsure {
        None => found,
        // Exactly one span has to match.
        Some(unsure) => Evaluation::open(unsure, Future::ANY),
    })
}

/// Returns `gap(from, to)` if both spans share a clock, or if the offset of their clocks is known to the nanosecond.
pub(crate) fn gap<'a>(
    from: &'a Selector,
    to: &'a Selector,
    scene: &EvalScope<'_, 'a>,
) -> Result<ExprValue<'a>, Lack> {
    let bounds = gap_bounds(from, to, scene).map_err(|missing| missing.lack)?;
    if let Some(unsure) = bounds.unsure {
        return Err(Lack::Open(unsure));
    }
    if bounds.low != bounds.high {
        return Err(Lack::Open(bounds.doubt.unwrap_or_default()));
    }
    let values = Values::One(Value::Duration(bounds.low));
    Ok(ExprValue {
        values,
        trend: Trend::Any,
        is_secret: false,
        doubt: None,
        literal: None,
        is_several: false,
    })
}

/// Returns the bounds of `gap(from, to)`.
pub(crate) fn gap_bounds<'a>(
    from: &'a Selector,
    to: &'a Selector,
    scene: &EvalScope<'_, 'a>,
) -> Result<GapBounds, NoValue> {
    let world = scene.world;
    let unsure = Cell::new(None);
    let only = |selector: &'a Selector, side: Side| -> Result<Times, NoValue> {
        let Selection { sure: places, doubt } = selection(selector, scene);
        let open = |reason: String| NoValue { lack: Lack::Open(reason), is_for_good: false };
        match doubt {
            Some(doubt) if places.is_empty() => return Err(open(doubt.reason.clone())),
            Some(doubt) => unsure.set(Some(doubt.reason.clone())),
            None => {}
        }
        let expected = expect_spans(Quantifier::The, places.len(), is_lasting(selector), selector);
        expected.map_err(|found| NoValue {
            is_for_good: found.future.is_only(Truth::Undefined),
            lack: Lack::Undefined(found.reason.unwrap_or_default()),
        })?;
        let times = times(places[0], world);
        match times.has(side, Relation::Before) {
            true => Ok(times),
            false => Err(open(why_open(Relation::Before, [places[0]; 2], world))),
        }
    };
    let (from, to) = match (only(from, Side::Left), only(to, Side::Right)) {
        (Ok(from), Ok(to)) => (from, to),
        // A permanent lack of a value decides.
        (Err(left), Err(right)) => return Err(if right.is_for_good { right } else { left }),
        (Err(missing), Ok(_)) | (Ok(_), Err(missing)) => return Err(missing),
    };
    if from.place == to.place {
        let lack = Lack::Undefined(SAME_SPAN.to_owned());
        return Err(NoValue { lack, is_for_good: false });
    }
    let clocks = world.clocks();
    let hosts = (host_at(world, from.place), host_at(world, to.place));
    let offset = clocks.offset(hosts.0, hosts.1);
    let is_exact = hosts.0 == hosts.1;
    Ok(GapBounds {
        low: to.start + offset.low - from.end,
        high: to.start + offset.high - from.end,
        is_exact,
        is_bounded: offset.is_bounded(),
        doubt: (!is_exact).then(|| clocks.doubt(hosts.0, hosts.1)),
        pair: (from.place, to.place),
        unsure: unsure.take(),
    })
}

impl GapBounds {
    pub(crate) fn ends(&self) -> [i128; 2] {
        [self.low, self.high]
    }

    /// Whether both bounds are known.
    pub(crate) fn is_bounded(&self) -> bool {
        self.is_bounded
    }
}
