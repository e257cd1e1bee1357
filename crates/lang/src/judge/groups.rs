//! Collects the groups of an aggregate as evidence, the worst first.

use model::{EvidenceValue, GroupEvidence, GroupKeyPart, GroupsEvidence};

use super::{
    evidence::EvidenceCollector,
    values::{shown, value_of},
    words,
};
use crate::{
    budget,
    eval::{
        aggregate,
        contrast::contrast,
        expression::{ExprValue, Values},
        future::Truth,
        truth::{ExprOperand, held},
        world::EvalScope,
    },
    secrets::MASK,
    syntax::{
        ast::{Aggregate, Comparator, Expr, ExprKind},
        print,
    },
    value::{Number, Size, Value, shorten},
};

/// The maximum number of groups that are listed.
const GROUPS_MAX: usize = 20;

/// The budget steps to compare the value of one group.
const GROUP_STEPS: u64 = 16;

/// A group by its number in the order of their first spans.
struct RatedGroup {
    number: usize,
    holds: bool,
    /// The distance beyond what is required, or before it: only the order has a meaning.
    excess: f64,
}

impl EvidenceCollector<'_> {
    /// Adds the groups of a comparison, and the spans of those that break it.
    pub(super) fn add_groups<'a>(
        &mut self,
        statement: &'a Expr,
        is_negated: bool,
        scene: &EvalScope<'_, 'a>,
    ) {
        let ExprKind::Compare { left, comparator, is_negated: is_turned, right } = &statement.kind
        else {
            return;
        };
        let (Ok(held_left), Ok(required)) = (held(left, scene), held(right, scene)) else {
            return self.compare(statement, is_negated, scene);
        };
        let (ExprKind::Aggregate(aggregate), Values::Groups(values)) =
            (&left.kind, &held_left.valued().values)
        else {
            self.compare(statement, is_negated, scene);
            return self.decide_by(left, scene);
        };
        if !budget::spend(GROUP_STEPS * values.len() as u64) {
            return;
        }
        let rated = rate(&held_left, (*comparator, *is_turned), &required);
        let groups = aggregate::groups(aggregate, scene);
        let broken = rated.iter().filter(|group| !group.holds).count();
        // `not` negates the comparison of all groups: if none breaks it, all of them decide.
        let deciding = if is_negated { rated.len() } else { broken };
        for group in rated.iter().take(deciding) {
            self.decide(groups.get(group.number).map_or(&[], Vec::as_slice), scene);
        }
        let shown_value = |value: &Value<'a>| match held_left.valued().is_secret {
            true => EvidenceValue::Text(MASK.to_owned()),
            false => shown(value),
        };
        let listed = rated.iter().take(GROUPS_MAX).filter_map(|group| {
            let places = groups.get(group.number)?;
            Some(GroupEvidence {
                key: key(aggregate, &scene.at(*places.first()? as usize)),
                value: shown_value(&values.get(group.number)?.1),
                spans: places.len() as u64,
                holds: group.holds,
            })
        });
        let worst: Vec<_> = listed.collect();
        let operator = match is_negated {
            true => format!("not in every group {}", words::spelled(*comparator, *is_turned)),
            false => words::spelled(*comparator, *is_turned).to_owned(),
        };
        let found = worst.first().map(|group| group.value.clone());
        self.push((left, operator), [value_of(right, scene), found], scene);
        let more = (values.len() - worst.len()) as u64;
        self.evidence.groups = Some(GroupsEvidence { worst, more, broken: broken as u64 });
    }
}

/// Returns all groups, the worst first.
fn rate<'a>(
    left: &ExprOperand<'a>,
    (comparator, is_turned): (Comparator, bool),
    required: &ExprOperand<'a>,
) -> Vec<RatedGroup> {
    let ExprValue { trend, is_secret, .. } = *left.valued();
    let Values::Groups(values) = &left.valued().values else { return Vec::new() };
    let sign = match comparator {
        Comparator::Greater | Comparator::AtLeast => -1.0,
        _ => 1.0,
    };
    let sign = if is_turned { -sign } else { sign };
    let rate = |(number, (_, value)): (usize, &(String, Value<'a>))| {
        let one = ExprValue {
            values: Values::One(value.clone()),
            trend,
            is_secret,
            doubt: None,
            literal: None,
            is_several: false,
        };
        let truth = contrast(&one, comparator, false, required.valued()).truth;
        let size = match value.size() {
            Some(Size::Number(Number::Int(int))) => int as f64,
            Some(Size::Number(Number::Double(double))) => double,
            Some(Size::Nanos(nanos)) => nanos as f64,
            None => 0.0,
        };
        RatedGroup { number, holds: (truth == Truth::True) != is_turned, excess: sign * size }
    };
    let mut rated: Vec<_> = values.iter().enumerate().map(rate).collect();
    rated.sort_by(|a, b| a.holds.cmp(&b.holds).then(b.excess.total_cmp(&a.excess)));
    rated
}

fn key<'a>(aggregate: &'a Aggregate, scene: &EvalScope<'_, 'a>) -> Vec<GroupKeyPart> {
    let part = |by: &'a Expr| {
        let name = print::expression(by);
        let name = shorten(name.strip_prefix("attr:").unwrap_or(&name)).into_owned();
        // A span without the value is in the group of spans that lack it.
        GroupKeyPart { name, value: value_of(by, scene).unwrap_or(EvidenceValue::Absent) }
    };
    aggregate.by.iter().map(part).collect()
}
