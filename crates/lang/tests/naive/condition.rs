//! Evaluates a condition: `Some(true)`, `Some(false)`, or `None` if an attribute is absent.

use std::cmp::Ordering;

use model::trace::{EventData, LinkData, StatusCode, Value};

use super::{
    select::World,
    selector::{Comparator, Condition, Literal, Name, Operand},
    value::{Side, Val, contains, equal, has_edge, is_among, matches, ordered},
};

/// The subject of a condition.
#[derive(Clone, Copy)]
pub(crate) enum Subject<'a> {
    Span(usize),
    Event(&'a EventData),
    Link(&'a LinkData),
}

pub(crate) fn truth(condition: &Condition, world: &World<'_>, of: Subject<'_>) -> Option<bool> {
    match condition {
        Condition::And(all) => both(&all.iter().map(|it| truth(it, world, of)).collect::<Vec<_>>()),
        Condition::Or(any) => {
            either(&any.iter().map(|it| truth(it, world, of)).collect::<Vec<_>>())
        }
        Condition::Not(inner) => negated(truth(inner, world, of), true),
        Condition::Exists { value, is_negated } => {
            Some(look_up(value, world, of).is_empty() == *is_negated)
        }
        Condition::Event(inner) => {
            let Subject::Span(at) = of else { return None };
            let events = &world.sample.spans[at].span.events;
            within(inner.as_deref(), world, &events.iter().map(Subject::Event).collect::<Vec<_>>())
        }
        Condition::Link(inner) => {
            let Subject::Span(at) = of else { return None };
            let links = &world.sample.spans[at].span.links;
            within(inner.as_deref(), world, &links.iter().map(Subject::Link).collect::<Vec<_>>())
        }
        Condition::Compare { left, comparator, is_negated, right } => {
            let (left, right) = (sides(left, world, of), operand(right, world, of));
            let pairs = left.iter().flat_map(|a| right.iter().map(move |b| (a, b)));
            let any: Vec<Option<bool>> = pairs.map(|(a, b)| compare(a, *comparator, b)).collect();
            negated(one_of(&any), *is_negated)
        }
        Condition::Between { value, is_negated, low, high } => {
            let value = sides(value, world, of);
            let (low, high) = (operand(low, world, of), operand(high, world, of));
            let mut any = Vec::new();
            for value in &value {
                for (low, high) in low.iter().flat_map(|a| high.iter().map(move |b| (a, b))) {
                    let sides = [
                        compare(value, Comparator::AtLeast, low),
                        compare(value, Comparator::AtMost, high),
                    ];
                    // It is one comparison: a value that cannot be compared with a bound is neither inside nor outside.
                    any.push(if sides.contains(&None) { None } else { both(&sides) });
                }
            }
            negated(one_of(&any), *is_negated)
        }
        Condition::In { value, is_negated, list } => {
            let list: Vec<_> = list.iter().map(literal).collect();
            let is_in = |a: &Side| is_among(a, &list);
            let any: Vec<Option<bool>> = sides(value, world, of).iter().map(is_in).collect();
            negated(one_of(&any), *is_negated)
        }
    }
}

pub(crate) fn both(all: &[Option<bool>]) -> Option<bool> {
    if all.contains(&Some(false)) {
        Some(false)
    } else if all.contains(&None) {
        None
    } else {
        Some(true)
    }
}

pub(crate) fn either(any: &[Option<bool>]) -> Option<bool> {
    negated(both(&any.iter().map(|one| negated(*one, true)).collect::<Vec<_>>()), true)
}

/// Like [`either`], but `None` if there is nothing to compare.
fn one_of(any: &[Option<bool>]) -> Option<bool> {
    if any.is_empty() { None } else { either(any) }
}

fn negated(truth: Option<bool>, is_negated: bool) -> Option<bool> {
    truth.map(|holds| holds != is_negated)
}

/// Whether the condition holds for one of them; without a condition, whether there is one.
fn within(condition: Option<&Condition>, world: &World<'_>, all: &[Subject<'_>]) -> Option<bool> {
    let Some(condition) = condition else { return Some(!all.is_empty()) };
    let any: Vec<Option<bool>> = all.iter().map(|one| truth(condition, world, *one)).collect();
    either(&any)
}

fn compare(left: &Side, comparator: Comparator, right: &Side) -> Option<bool> {
    let order = |accepts: fn(Ordering) -> bool| ordered(left, right).ok()?.map(accepts);
    match comparator {
        Comparator::Equal => equal(left, right),
        Comparator::Less => order(Ordering::is_lt),
        Comparator::AtMost => order(Ordering::is_le),
        Comparator::Greater => order(Ordering::is_gt),
        Comparator::AtLeast => order(Ordering::is_ge),
        Comparator::Contains => contains(left, right),
        Comparator::StartsWith => has_edge(left, right, |text, part| text.starts_with(part)),
        Comparator::EndsWith => has_edge(left, right, |text, part| text.ends_with(part)),
        Comparator::Matches => match &right.val {
            Val::Text(pattern) => Some(matches(left, pattern)),
            _ => None,
        },
    }
}

fn sides(name: &Name, world: &World<'_>, of: Subject<'_>) -> Vec<Side> {
    look_up(name, world, of).into_iter().map(Side::found).collect()
}

fn operand(operand: &Operand, world: &World<'_>, of: Subject<'_>) -> Vec<Side> {
    match operand {
        Operand::Name(name) => sides(name, world, of),
        Operand::Literal(it) => vec![literal(it)],
    }
}

fn literal(literal: &Literal) -> Side {
    let (val, spelling) = match literal {
        Literal::Null => (Val::Null, "null".to_owned()),
        Literal::Bool(bool) => (Val::Bool(*bool), bool.to_string()),
        Literal::Int(int, spelling) => (Val::Int(*int), spelling.clone()),
        Literal::Double(double, spelling) => (Val::Double(*double), spelling.clone()),
        Literal::Duration(nanos) => (Val::Nanos(*nanos), nanos.to_string()),
        Literal::Text(text) => (Val::text(text), text.clone()),
        Literal::List(items) => {
            (Val::Written(items.iter().map(self::literal).collect()), String::new())
        }
    };
    Side { val, spelling: Some(spelling) }
}

/// Returns the values of a name; none if it is absent, several if there are several events or links.
fn look_up(name: &Name, world: &World<'_>, of: Subject<'_>) -> Vec<Val> {
    let name = name.0.as_str();
    match of {
        Subject::Span(at) => of_span(name, world, at),
        Subject::Event(event) => of_event(name, event).into_iter().collect(),
        Subject::Link(link) => of_link(name, link).into_iter().collect(),
    }
}

fn of_span(name: &str, world: &World<'_>, at: usize) -> Vec<Val> {
    let one = &world.sample.spans[at];
    let is_never_attribute =
        name == "name" || name == "kind" || name.starts_with("tracetest.span.");
    if !is_never_attribute {
        let own = attribute(&one.span.attributes, name);
        if let Some(val) = own.or_else(|| attribute(&one.resource.attributes, name)) {
            return vec![val];
        }
    }
    if let Some((scope, name)) = name.split_once('.') {
        match scope {
            "resource" => return attribute(&one.resource.attributes, name).into_iter().collect(),
            "scope" if name == "name" => return vec![Val::text(&one.scope.name)],
            "scope" if name == "version" => return vec![Val::text(&one.scope.version)],
            "scope" => return attribute(&one.scope.attributes, name).into_iter().collect(),
            "event" => {
                return one.span.events.iter().filter_map(|event| of_event(name, event)).collect();
            }
            "link" => {
                return one.span.links.iter().filter_map(|link| of_link(name, link)).collect();
            }
            _ => {}
        }
    }
    intrinsic(name, world, at).into_iter().collect()
}

fn of_event(name: &str, event: &EventData) -> Option<Val> {
    match name {
        "name" => Some(Val::text(&event.name)),
        _ => attribute(&event.attributes, name),
    }
}

fn of_link(name: &str, link: &LinkData) -> Option<Val> {
    match name {
        "trace_id" => link.trace_id.map(|id| Val::Text(id.to_string())),
        "span_id" => link.span_id.map(|id| Val::Text(id.to_string())),
        _ => attribute(&link.attributes, name),
    }
}

/// Returns the last one if a key is repeated.
fn attribute(attributes: &[(String, Value)], name: &str) -> Option<Val> {
    attributes.iter().rfind(|(key, _)| key == name).map(|(_, value)| Val::of(value))
}

fn intrinsic(name: &str, world: &World<'_>, at: usize) -> Option<Val> {
    let one = &world.sample.spans[at];
    let span = &one.span;
    let code = match span.status.code {
        StatusCode::Ok => "ok",
        StatusCode::Error => "error",
        _ => "unset",
    };
    Some(match name.strip_prefix("tracetest.span.").unwrap_or(name) {
        "name" => Val::text(&span.name),
        "kind" => Val::text(span.kind.as_str()),
        "status" => Val::text(code),
        "status_code" => Val::Text(format!("STATUS_CODE_{}", code.to_uppercase())),
        "status_message" | "status_description" => Val::text(&span.status.message),
        "duration" | "end" | "end_time" | "self_time" if span.end < span.start => return None,
        "duration" => {
            Val::Nanos(i128::from(span.end.as_nanos()) - i128::from(span.start.as_nanos()))
        }
        "start" | "start_time" => Val::Int(span.start.as_nanos().into()),
        "end" | "end_time" => Val::Int(span.end.as_nanos().into()),
        "service" => return attribute(&one.resource.attributes, "service.name"),
        "type" => Val::text(type_of(span.attributes.iter().map(|(key, _)| key.as_str()))),
        "id" => Val::Text(span.id.to_string()),
        "parent_id" => Val::Text(span.parent.map_or("0".repeat(16), |id| id.to_string())),
        "depth" => Val::Int(world.ancestors(at).len() as i128),
        "children" => Val::Int(world.children(at).len() as i128),
        "self_time" => Val::Nanos(self_time(world, at)),
        _ => return None,
    })
}

/// The samples have no browser spans, and no attribute of the other types.
fn type_of<'a>(keys: impl Iterator<Item = &'a str>) -> &'static str {
    let keys: Vec<&str> = keys.collect();
    let has = |prefix: &str| keys.iter().any(|key| key.starts_with(prefix));
    if has("http.") {
        "http"
    } else if has("db.") {
        "database"
    } else {
        "general"
    }
}

/// Adds up the intervals between neighbouring timestamps in which no child is active.
fn self_time(world: &World<'_>, at: usize) -> i128 {
    let times = |at: usize| {
        let span = &world.sample.spans[at].span;
        (span.start.as_nanos(), span.end.as_nanos())
    };
    let (start, end) = times(at);
    let children: Vec<(u64, u64)> = world.children(at).into_iter().map(times).collect();
    let mut moments = vec![start, end];
    for (from, to) in &children {
        moments.extend([*from, *to]);
    }
    moments.retain(|moment| (start..=end).contains(moment));
    moments.sort_unstable();
    let stretches = moments.windows(2).map(|pair| (pair[0], pair[1]));
    stretches
        .filter(|(from, to)| !children.iter().any(|child| child.0 <= *from && *to <= child.1))
        .map(|(from, to)| i128::from(to) - i128::from(from))
        .sum()
}
