//! Handles filters that may find no value, one value or several.
//!
//! Documents written for Tracetest compare the result of `$.lines[*].sku` as one value if there is one. Where a list is
//! expected, it is a list of one: otherwise `length` would count the letters of the only name.

use super::{
    expression::{ExprValue, Lack, Values, value_of},
    world::EvalScope,
};
use crate::{
    syntax::ast::{Comparator, Expr, ExprKind, Filter},
    value::{Json, Literal, Value},
};

/// Returns the value of an expression for a comparison: nothing, if a pattern has no match.
pub(super) fn found_of<'a>(
    expr: &'a Expr,
    scene: &EvalScope<'_, 'a>,
) -> Result<ExprValue<'a>, Lack> {
    let valued = value_of(expr, scene)?;
    match found_nothing(expr, &valued) {
        true => Ok(ExprValue { values: Values::One(Value::Nothing), ..valued }),
        false => Ok(valued),
    }
}

/// Whether a path or a pattern has no match.
pub(super) fn found_nothing(expr: &Expr, valued: &ExprValue<'_>) -> bool {
    let is_pattern =
        matches!(&expr.kind, ExprKind::Filter { filter: Filter::Regex | Filter::RegexGroup, .. });
    match &valued.values {
        Values::One(Value::Nothing) => true,
        Values::One(Value::List(items)) => is_pattern && items.is_empty(),
        _ => false,
    }
}

/// Whether a filter may find several values in one document: a path with `[*]`, `..`, a slice, a condition or several names.
pub(super) fn finds_several(filter: Filter, path: Option<&Literal>) -> bool {
    filter == Filter::JsonPath
        && path.and_then(|path| path.path().ok()).is_some_and(|path| !path.is_singular())
}

/// Whether a filter operates on the items of a list.
pub(super) fn counts_items(filter: Filter) -> bool {
    matches!(filter, Filter::Length | Filter::GetIndex)
}

impl ExprValue<'_> {
    /// Converts a value to a list of one, if one value was found and several could have been.
    pub(super) fn into_list(self) -> Self {
        match self.values {
            Values::One(value) if self.is_several && !is_items(&value) => {
                Self { values: Values::One(Value::List(vec![value])), ..self }
            }
            values => Self { values, ..self },
        }
    }

    /// Returns the same, if the value is compared with a list by `=` or `contains`.
    pub(super) fn beside(&self, comparator: Comparator, other: &Values<'_>) -> Option<Self> {
        let is_list = match other {
            Values::One(Value::List(_) | Value::Json(Json::List(_))) => true,
            Values::One(value @ (Value::Text(_) | Value::Quoted(_))) => {
                value.text().trim_start().starts_with('[')
            }
            _ => false,
        };
        let is_meant = matches!(comparator, Comparator::Equal | Comparator::Contains);
        (self.is_several && is_list && is_meant).then(|| self.clone().into_list())
    }
}

/// Whether a value is a list already, or nothing. A single list that was found stays that list, as in Tracetest.
fn is_items(value: &Value<'_>) -> bool {
    matches!(value, Value::List(_) | Value::Json(Json::List(_)) | Value::Nothing)
}
