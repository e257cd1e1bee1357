//! Describes results: the evaluated comparison with both values, or the reason why it could not be evaluated.

use model::trace::Span;

use crate::{
    eval::{
        aggregate,
        doubt::selection,
        expression::{ExprValue, Lack, Values},
        future::Truth,
        gap::{GapBounds, gap_bounds},
        misses::renamed_here,
        relation::{SAME_SPAN, relate},
        span_time::{TimeLack, end_of, start_of, time_lack},
        truth::{contrast_held, held, is_grouped, truth},
        world::EvalScope,
    },
    syntax::{
        ast::{Comparator, Expr, ExprKind, Inner, Intrinsic, Property, Relation, Selector},
        print,
    },
    value::{Value, shorten, show_duration},
};

/// The maximum number of parts of a statement that are described.
const PARTS_MAX: usize = 3;

/// The maximum number of values or names that are listed.
const LISTED_MAX: usize = 5;

/// The source of a statement.
#[derive(Clone, Copy)]
pub(super) struct StatementText<'s> {
    pub(super) source: &'s str,
    /// Whether `not` applies to the statement.
    pub(super) is_negated: bool,
}

impl StatementText<'_> {
    fn turned(self) -> Self {
        Self { is_negated: !self.is_negated, ..self }
    }
}

/// Describes the result of a statement in a scope, with the reason if it is open.
pub(super) fn describe<'a>(
    statement: &'a Expr,
    said: StatementText<'_>,
    scene: &EvalScope<'_, 'a>,
) -> String {
    let told = tell(statement, said, scene);
    let found = truth(statement, scene);
    let reason = found.reason.as_deref().filter(|_| found.truth == Truth::Open).map(named);
    match reason {
        Some(reason) if !reason.split("; ").all(|one| told.contains(one)) => {
            format!("{told} ({reason})")
        }
        _ => told,
    }
}

fn tell<'a>(statement: &'a Expr, said: StatementText<'_>, scene: &EvalScope<'_, 'a>) -> String {
    let StatementText { source, is_negated: is_turned } = said;
    match &statement.kind {
        ExprKind::Compare { .. } => compared(statement, said, scene),
        ExprKind::Between { value, is_negated, low, high } => {
            let word = if *is_negated != is_turned { "not between" } else { "between" };
            let ends = [low, high].map(|end| match held(end, scene) {
                Ok(held) => operand(end, held.valued(), (", which is", source)),
                Err(_) => format!("`{}`", name(end, source)),
            });
            match found(value, source, scene) {
                Ok(found) => format!("{found}, expected {word} {} and {}", ends[0], ends[1]),
                Err(lack) => lack,
            }
        }
        ExprKind::Exists { value, is_negated } => {
            let word = if *is_negated != is_turned { "not exists" } else { "exists" };
            match found(value, source, scene) {
                Ok(found) => format!("{found}, expected {word}"),
                Err(lack) => lack,
            }
        }
        ExprKind::Not(part) => describe(part, said.turned(), scene),
        ExprKind::And(parts) | ExprKind::Or(parts) => {
            // Only the parts that decide the result.
            let whole = truth(statement, scene).truth;
            let deciding = parts.iter().filter(|part| truth(part, scene).truth.decides(whole));
            let said: Vec<_> =
                deciding.take(PARTS_MAX).map(|part| describe(part, said, scene)).collect();
            said.join("; ")
        }
        ExprKind::Within { inner, .. } => within(*inner, (statement, source), scene),
        ExprKind::Quantified { subject, .. } => {
            let count = selection(&subject.selector, scene).sure.len();
            let written = selector(&subject.selector);
            let reason = truth(statement, scene).reason.map(|reason| named(&reason));
            reason.unwrap_or_else(|| format!("{} `{written}`", counted(count)))
        }
        ExprKind::Relation { left, relation, right } => {
            let related = relate(left, *relation, right, scene);
            match related.pair {
                Some((left, right)) if left == right => SAME_SPAN.to_owned(),
                Some(pair) => {
                    let offset = offset(*relation, pair, scene);
                    let offset = offset.map_or(String::new(), |offset| format!(" ({offset})"));
                    format!("{}{offset}", times(*relation, pair, scene))
                }
                None => related.found.reason.as_deref().map(named).unwrap_or_default(),
            }
        }
        _ => name(statement, source),
    }
}

/// `3 spans match`
pub(super) fn counted(spans: usize) -> String {
    match spans {
        0 => "no span matches".to_owned(),
        1 => "1 span matches".to_owned(),
        _ => format!("{spans} spans match"),
    }
}

fn compared<'a>(statement: &'a Expr, said: StatementText<'_>, scene: &EvalScope<'_, 'a>) -> String {
    let source = said.source;
    let ExprKind::Compare { left, comparator, is_negated, right } = &statement.kind else {
        return String::new();
    };
    // `not` negates a comparison of groups as a whole, not in each group.
    let word = match said.is_negated && (is_grouped(left) || is_grouped(right)) {
        true => format!("not in every group {}", spelled(*comparator, *is_negated)),
        false => spelled(*comparator, *is_negated != said.is_negated).to_owned(),
    };
    let (is, which_is) = ((" is", source), (", which is", source));
    if let ExprKind::Gap { from, to } = &left.kind
        && let Ok(bounds) = gap_bounds(from, to, scene)
        && let Ok(right_held) = held(right, scene)
    {
        let right = operand(right, right_held.valued(), which_is);
        return format!("{}, expected {word} {right}", gap(&name(left, source), &bounds, scene));
    }
    let (left_held, right_held) = match (held(left, scene), held(right, scene)) {
        (Ok(left), Ok(right)) => (left, right),
        (Err(missing), _) => return lacking(left, missing.lack, scene),
        (_, Err(missing)) => return lacking(right, missing.lack, scene),
    };
    let (left_valued, right_valued) = (left_held.valued(), right_held.valued());
    let (contrast, _) = contrast_held([&left_held, &right_held], *comparator, false);
    let remark = contrast.remark.map(str::to_owned).or(contrast.reason.as_deref().map(named));
    let notes = [left, right].into_iter().filter_map(|side| match &side.kind {
        ExprKind::Aggregate(aggregate) => aggregate::note(aggregate, scene),
        _ => None,
    });
    let moved = [left, right].into_iter().filter_map(|side| applied_offsets(side, scene));
    let remarks = remark.into_iter().chain(notes).chain(moved);
    let remarks = remarks.fold(Vec::new(), |mut all, remark| {
        if !all.contains(&remark) {
            all.push(remark);
        }
        all
    });
    let remark =
        if remarks.is_empty() { String::new() } else { format!(" ({})", remarks.join("; ")) };
    let left = operand(left, left_valued, is);
    let right = operand(right, right_valued, which_is);
    format!("{left}, expected {word} {right}{remark}")
}

/// Describes the value of an expression. The error describes why there is none.
fn found<'a>(value: &'a Expr, source: &str, scene: &EvalScope<'_, 'a>) -> Result<String, String> {
    match held(value, scene) {
        Ok(held) => Ok(operand(value, held.valued(), (" is", source))),
        Err(missing) => Err(lacking(value, missing.lack, scene)),
    }
}

/// Describes the value of an expression on a span.
pub(super) fn value<'a>(value: &'a Expr, source: &str, scene: &EvalScope<'_, 'a>) -> String {
    found(value, source, scene).unwrap_or_else(|lack| lack)
}

/// Describes why there is no value, and whether the span has it under another name.
fn lacking(value: &Expr, lack: Lack, scene: &EvalScope<'_, '_>) -> String {
    let (Lack::Undefined(reason) | Lack::Open(reason)) = lack;
    let reason = named(&reason);
    let renamed = match &value.kind {
        ExprKind::Property(property) => renamed_here(property, scene),
        _ => None,
    };
    match renamed {
        Some(renamed) => format!("{reason}; {renamed}"),
        None => reason,
    }
}

/// Formats an operand of a comparison: a literal as it is, any other expression with its name.
fn operand(expression: &Expr, valued: &ExprValue<'_>, (verb, source): (&str, &str)) -> String {
    let shown = if valued.is_secret { "***".to_owned() } else { show(&valued.values) };
    match is_literal(expression) {
        true => shown,
        false => format!("`{}`{verb} {shown}", name(expression, source)),
    }
}

/// Whether an expression is a value of the test, and not one of a span or a response.
pub(super) fn is_literal(expression: &Expr) -> bool {
    matches!(
        expression.kind,
        ExprKind::Null
            | ExprKind::Bool(_)
            | ExprKind::Number { .. }
            | ExprKind::Duration(_)
            | ExprKind::Text(_)
            | ExprKind::Known(_)
            | ExprKind::List(_)
    )
}

/// Formats values for users.
pub(super) fn show(values: &Values<'_>) -> String {
    match values {
        Values::One(value) => value.show(),
        Values::Many(several) => {
            let shown: Vec<_> = several.iter().take(LISTED_MAX).map(Value::show).collect();
            let more = if several.len() > LISTED_MAX { " and more" } else { "" };
            format!("one of {}{more}", shown.join(", "))
        }
        Values::Between(interval) => {
            format!("between {} and {}", interval.low.show(), interval.high.show())
        }
        Values::Groups(groups) if groups.is_empty() => "in no group".to_owned(),
        Values::Groups(groups) => {
            let shown: Vec<_> =
                groups.iter().take(LISTED_MAX).map(|(_, value)| value.show()).collect();
            let more = if groups.len() > LISTED_MAX { " and more" } else { "" };
            let count = match groups.len() {
                1 => "1 group".to_owned(),
                count => format!("{count} groups"),
            };
            format!("{}{more} in {count}", shown.join(", "))
        }
    }
}

/// Returns an expression as written, without the prefix `attr:` that only the parser needs.
pub(super) fn name(expression: &Expr, source: &str) -> String {
    let written = match source.get(expression.at.0.clone()) {
        Some(written) if !written.is_empty() => written.to_owned(),
        _ => print::expression(expression),
    };
    shorten(written.strip_prefix("attr:").unwrap_or(&written)).into_owned()
}

/// Returns a reason with names as they are shown.
pub(super) fn named(reason: &str) -> String {
    reason.replace("`attr:", "`")
}

pub(super) fn selector(selector: &Selector) -> String {
    let written = print::selector(selector);
    shorten(if written.is_empty() { "span[]" } else { &written }).into_owned()
}

pub(super) fn spelled(comparator: Comparator, is_negated: bool) -> &'static str {
    match (comparator, is_negated) {
        (Comparator::Equal, false) => "=",
        (Comparator::Equal, true) => "!=",
        (Comparator::Less, false) => "<",
        (Comparator::Less, true) => "not <",
        (Comparator::AtMost, false) => "<=",
        (Comparator::AtMost, true) => "not <=",
        (Comparator::Greater, false) => ">",
        (Comparator::Greater, true) => "not >",
        (Comparator::AtLeast, false) => ">=",
        (Comparator::AtLeast, true) => "not >=",
        (Comparator::Contains, false) => "contains",
        (Comparator::Contains, true) => "not-contains",
        (Comparator::StartsWith, false) => "starts-with",
        (Comparator::StartsWith, true) => "not starts-with",
        (Comparator::EndsWith, false) => "ends-with",
        (Comparator::EndsWith, true) => "not ends-with",
        (Comparator::Matches, false) => "matches",
        (Comparator::Matches, true) => "not matches",
        (Comparator::In, false) => "in",
        (Comparator::In, true) => "not in",
    }
}

fn within<'a>(
    inner: Inner,
    (statement, source): (&'a Expr, &str),
    scene: &EvalScope<'_, 'a>,
) -> String {
    let Some(span) = scene.span else { return String::new() };
    let written = name(statement, source);
    let (word, names): (_, Vec<String>) = match inner {
        Inner::Event => {
            ("event", span.events().map(|event| format!("{:?}", event.name())).collect())
        }
        Inner::Link => (
            "link",
            span.links()
                .map(|link| link.span_id().map_or_else(String::new, |id| id.to_string()))
                .collect(),
        ),
    };
    let there = match names.len() {
        0 => format!("there is no {word}"),
        count => {
            let more = if count > LISTED_MAX { " and more" } else { "" };
            let listed = names[..count.min(LISTED_MAX)].join(", ");
            format!("there {} {listed}{more}", if count == 1 { "is" } else { "are" })
        }
    };
    match truth(statement, scene).truth {
        Truth::True => format!("`{written}` matches; {there}"),
        _ => format!("`{written}` matches none; {there}"),
    }
}

/// Formats a time as the offset from the start of the trace.
fn moment(nanos: u64, scene: &EvalScope<'_, '_>) -> String {
    let first = scene.world.first_start();
    format!("+{}", show_duration(i128::from(nanos) - i128::from(first)))
}

/// Describes two spans with the times that a relation compares.
fn times(relation: Relation, (left, right): (u32, u32), scene: &EvalScope<'_, '_>) -> String {
    let [a, b] = [left, right].map(|place| scene.world.span_at(place as usize));
    let [a_name, b_name] = [a, b].map(|span| shorten(span.name()).into_owned());
    let [a_times, b_times] = side_times(relation, (left, right), scene);
    match relation {
        Relation::Calls => {
            let is_child = b.parent() == Some(a.id());
            let is_linked = b.links().any(|link| link.span_id() == Some(a.id()));
            let how = match (is_child, is_linked) {
                (true, _) => "stands directly below",
                (false, true) => "links to",
                (false, false) => "neither stands directly below nor links to",
            };
            format!("`{b_name}` {how} `{a_name}`")
        }
        _ => format!("`{a_name}` {a_times}, `{b_name}` {b_times}"),
    }
}

/// Describes the bounds of the clock offset between two spans that were compared, if they are on two hosts.
fn offset(
    relation: Relation,
    (left, right): (u32, u32),
    scene: &EvalScope<'_, '_>,
) -> Option<String> {
    let clocks = scene.world.clocks();
    let [host, other] =
        [left, right].map(|place| clocks.host_of(scene.world.tree.order()[place as usize]));
    (relation != Relation::Calls && host != other).then(|| clocks.doubt(host, other))
}

/// Describes the clock offsets that a value depends on: for a time that a span spent, those to the hosts of its children.
fn applied_offsets<'a>(value: &'a Expr, scene: &EvalScope<'_, 'a>) -> Option<String> {
    match &value.kind {
        ExprKind::Property(property) => {
            let place = scene.place()?;
            is_spent(property).then(|| scene.world.offsets_below(&[place as u32])).flatten()
        }
        ExprKind::Aggregate(aggregate) => match &aggregate.value.as_ref()?.kind {
            ExprKind::Property(property) if is_spent(property) => {
                scene.world.offsets_below(&selection(&aggregate.of, scene).sure)
            }
            _ => None,
        },
        _ => None,
    }
}

fn is_spent(property: &Property) -> bool {
    match property {
        Property::Attribute { otherwise: Some(otherwise), .. } => is_spent(otherwise),
        Property::Intrinsic(intrinsic, _) => {
            matches!(intrinsic, Intrinsic::SelfTime | Intrinsic::CriticalTime)
        }
        _ => false,
    }
}

/// Describes the times that a relation compares, for each side.
pub(super) fn side_times(
    relation: Relation,
    (left, right): (u32, u32),
    scene: &EvalScope<'_, '_>,
) -> [String; 2] {
    let [a, b] = [left, right].map(|place| scene.world.span_at(place as usize));
    let starts = |span: Span<'_>| match start_of(span) {
        Some(nanos) => format!("starts at {}", moment(nanos, scene)),
        None => TimeLack::NoStart.words().to_owned(),
    };
    let lack = |span: Span<'_>| time_lack(span).unwrap_or(TimeLack::NoEnd).words();
    let ends = |span: Span<'_>| match end_of(span) {
        Some(nanos) => format!("ends at {}", moment(nanos, scene)),
        None => lack(span).to_owned(),
    };
    match relation {
        Relation::Before => [ends(a), starts(b)],
        Relation::After => [starts(a), ends(b)],
        Relation::Inside | Relation::Overlaps => {
            [a, b].map(|span| match (start_of(span), end_of(span)) {
                (Some(start), Some(end)) => {
                    format!("lasts from {} to {}", moment(start, scene), moment(end, scene))
                }
                (Some(_), None) => format!("{}, {}", starts(span), lack(span)),
                (None, _) => format!("{}, {}", starts(span), ends(span)),
            })
        }
        Relation::Calls => [format!("is {}", a.id()), format!("is {}", b.id())],
    }
}

fn gap(written: &str, bounds: &GapBounds, scene: &EvalScope<'_, '_>) -> String {
    let spans = times(Relation::Before, bounds.pair, scene);
    let Some(doubt) = &bounds.doubt else {
        return format!("`{written}` is {} ({spans})", show_duration(bounds.low));
    };
    let between = match bounds.is_bounded() {
        true if bounds.low == bounds.high => show_duration(bounds.low),
        true => format!("between {} and {}", show_duration(bounds.low), show_duration(bounds.high)),
        false => "not known".to_owned(),
    };
    format!("`{written}` is {between} ({spans}; {doubt})")
}
