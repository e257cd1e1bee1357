//! Evaluates a query on a document.

use std::borrow::Cow;

use super::{Comparison, Condition, Json, Number, Operand, PathSelector, Query, Segment, Start};
use crate::{
    budget,
    value::{json, pattern},
};

/// The maximum number of values to visit: filters within `..` would visit their square.
const LOOKS_MAX: usize = 2_000_000;

/// The cost of visiting a value.
const LOOK_STEPS: u64 = 8;

/// The query exceeds the limit of visited values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooLarge;

/// Returns all results of the query, in document order.
pub(crate) fn find<'d>(query: &Query, document: &'d Json) -> Result<Vec<&'d Json>, TooLarge> {
    let mut finder = PathFinder { document, looks: LOOKS_MAX };
    let found = finder.query(query, document);
    budget::spend(LOOK_STEPS * (LOOKS_MAX - finder.looks) as u64);
    found
}

struct PathFinder<'d> {
    document: &'d Json,
    /// The number of values that may still be visited.
    looks: usize,
}

impl<'d> PathFinder<'d> {
    fn query(&mut self, query: &Query, this: &'d Json) -> Result<Vec<&'d Json>, TooLarge> {
        let mut nodes = vec![match query.start {
            Start::Document => self.document,
            Start::This => this,
        }];
        for segment in &query.segments {
            let mut found = Vec::new();
            for node in nodes {
                self.segment(segment, node, &mut found)?;
            }
            nodes = found;
        }
        Ok(nodes)
    }

    fn segment(
        &mut self,
        segment: &Segment,
        node: &'d Json,
        found: &mut Vec<&'d Json>,
    ) -> Result<(), TooLarge> {
        for selector in &segment.selectors {
            self.select(selector, node, found)?;
        }
        if segment.is_deep {
            for child in children(node) {
                self.segment(segment, child, found)?;
            }
        }
        Ok(())
    }

    fn select(
        &mut self,
        selector: &PathSelector,
        node: &'d Json,
        found: &mut Vec<&'d Json>,
    ) -> Result<(), TooLarge> {
        self.look()?;
        match (selector, node) {
            (PathSelector::Name(name), Json::Object(entries)) => found.extend(entries.get(name)),
            (PathSelector::Index(index), Json::List(items)) => {
                let places = usize::try_from(index.unsigned_abs()).ok();
                let from_end = |places| items.len().checked_sub(places);
                let index = if *index < 0 { places.and_then(from_end) } else { places };
                found.extend(index.and_then(|index| items.get(index)));
            }
            (PathSelector::Slice { start, end, step }, Json::List(items)) => {
                for index in slice(*start, *end, *step, items.len()) {
                    self.look()?;
                    found.extend(items.get(index));
                }
            }
            (PathSelector::Wildcard, _) => {
                for child in children(node) {
                    self.look()?;
                    found.push(child);
                }
            }
            (PathSelector::Filter(condition), _) => {
                for child in children(node) {
                    if self.holds(condition, child)? {
                        found.push(child);
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn holds(&mut self, condition: &Condition, this: &'d Json) -> Result<bool, TooLarge> {
        self.look()?;
        Ok(match condition {
            Condition::Or(any) => {
                for one in any {
                    if self.holds(one, this)? {
                        return Ok(true);
                    }
                }
                false
            }
            Condition::And(all) => {
                for one in all {
                    if !self.holds(one, this)? {
                        return Ok(false);
                    }
                }
                true
            }
            Condition::Not(condition) => !self.holds(condition, this)?,
            Condition::Exists(query) => !self.query(query, this)?.is_empty(),
            Condition::Compare { left, comparison, right } => {
                let (left, right) = (self.operand(left, this)?, self.operand(right, this)?);
                self.compare(left.as_deref(), *comparison, right.as_deref())?
            }
            Condition::Matches { text, compiled: Some(pattern), .. } => {
                match self.operand(text, this)?.as_deref() {
                    Some(Json::Text(text)) => {
                        pattern.pattern().is_ok_and(|pattern| pattern.is_match(text))
                    }
                    _ => false,
                }
            }
            Condition::Matches { text, pattern, is_whole, compiled: None } => {
                let (text, pattern) = (self.operand(text, this)?, self.operand(pattern, this)?);
                match (text.as_deref(), pattern.as_deref()) {
                    (Some(Json::Text(text)), Some(Json::Text(pattern))) => {
                        is_match(text, pattern, *is_whole)
                    }
                    _ => false,
                }
            }
        })
    }

    fn operand<'o>(
        &mut self,
        operand: &'o Operand,
        this: &'d Json,
    ) -> Result<Option<Cow<'o, Json>>, TooLarge>
    where
        'd: 'o,
    {
        let number = |count: usize| Cow::Owned(Json::Number(Number::Int(count as i128)));
        Ok(match operand {
            Operand::Literal(json) => Some(Cow::Borrowed(json)),
            Operand::Query(query) | Operand::Value(query) => match *self.query(query, this)? {
                [one] => Some(Cow::Borrowed(one)),
                _ => None,
            },
            Operand::Count(query) => Some(number(self.query(query, this)?.len())),
            Operand::Length(operand) => match self.operand(operand, this)?.as_deref() {
                Some(Json::Text(text)) => Some(number(text.chars().count())),
                Some(Json::List(items)) => Some(number(items.len())),
                Some(Json::Object(entries)) => Some(number(entries.len())),
                _ => None,
            },
        })
    }

    /// Compares two values. Two absent values are equal. Only numbers and texts have an order.
    fn compare(
        &mut self,
        left: Option<&Json>,
        comparison: Comparison,
        right: Option<&Json>,
    ) -> Result<bool, TooLarge> {
        // Equality compares down to the last value.
        let cost = left.zip(right).map_or(0, |(left, right)| left.weight().min(right.weight()));
        self.looks = self.looks.checked_sub(cost).ok_or(TooLarge)?;
        let is_equal = || match (left, right) {
            (Some(left), Some(right)) => json::equals(left, right),
            (left, right) => left.is_none() && right.is_none(),
        };
        let order = match (left, right) {
            (Some(Json::Number(a)), Some(Json::Number(b))) => a.compare(*b),
            (Some(Json::Text(a)), Some(Json::Text(b))) => Some(a.cmp(b)),
            _ => None,
        };
        Ok(match comparison {
            Comparison::Equal => is_equal(),
            Comparison::NotEqual => !is_equal(),
            Comparison::Less => order.is_some_and(|order| order.is_lt()),
            Comparison::Greater => order.is_some_and(|order| order.is_gt()),
            Comparison::AtMost => order.map_or_else(is_equal, |order| order.is_le()),
            Comparison::AtLeast => order.map_or_else(is_equal, |order| order.is_ge()),
        })
    }

    fn look(&mut self) -> Result<(), TooLarge> {
        self.looks = self.looks.checked_sub(1).ok_or(TooLarge)?;
        Ok(())
    }
}

fn children(node: &Json) -> impl Iterator<Item = &Json> {
    let (items, entries) = match node {
        Json::List(items) => (Some(items), None),
        Json::Object(entries) => (None, Some(entries)),
        _ => (None, None),
    };
    let values = entries.into_iter().flat_map(|entries| entries.iter().map(|(_, value)| value));
    items.into_iter().flatten().chain(values)
}

/// Returns the indexes of a slice, in its direction.
fn slice(start: Option<i64>, end: Option<i64>, step: i64, length: usize) -> Vec<usize> {
    let length = i64::try_from(length).unwrap_or(i64::MAX);
    let counted = |index: i64| if index < 0 { index.saturating_add(length) } else { index };
    let mut indices = Vec::new();
    if step > 0 {
        let mut at = counted(start.unwrap_or(0)).clamp(0, length);
        let end = counted(end.unwrap_or(length)).clamp(0, length);
        while at < end {
            indices.push(at as usize);
            at = at.saturating_add(step);
        }
    } else if step < 0 {
        let mut at = start.map_or(length - 1, counted).clamp(-1, length - 1);
        let end = end.map_or(-1, counted).clamp(-1, length - 1);
        while at > end {
            indices.push(at as usize);
            at = at.saturating_add(step);
        }
    }
    indices
}

/// Matches by RFC 9485, where `.` is any character except a line break. An invalid pattern matches nothing.
fn is_match(text: &str, pattern: &str, is_whole: bool) -> bool {
    pattern::check(pattern).is_ok()
        && pattern::compile_for_once(&pattern_source(pattern, is_whole))
            .is_ok_and(|pattern| pattern.is_match(text))
}

/// Returns the pattern as it is compiled; the caller has checked that it is valid by itself.
pub(super) fn pattern_source(pattern: &str, is_whole: bool) -> String {
    match is_whole {
        true => format!(r"\A(?R:{pattern})\z"),
        false => format!("(?R:{pattern})"),
    }
}
