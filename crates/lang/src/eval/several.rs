//! What filters find that may find nothing, one value or several.
//!
//! Documents written for Tracetest compare what `$.lines[*].sku` finds as one value where it is one. Where a list is spoken of,
//! it is a list of one: otherwise `length` would count the letters of the only name.

use super::{
    expression::{ExprValue, Lack, Values, value_of},
    world::EvalScope,
};
use crate::{
    syntax::ast::{Comparator, Expr, ExprKind, Filter},
    value::{Json, Literal, Value},
};

pub(super) fn found_of<'a>(
    expr: &'a Expr,
    scene: &EvalScope<'_, 'a>,
/// The value of an expression for a comparison, which has nothing to compare where a pattern found nothing.
) -> Result<ExprValue<'a>, Lack> {
    let valued = value_of(expr, scene)?;
    match found_nothing(expr, &valued) {
        true => Ok(ExprValue { values: Values::One(Value::Nothing), ..valued }),
        false => Ok(valued),
    }
}

/// Whether a path or a pattern found nothing.
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

/// Whether a filter speaks of the items of a list.
pub(super) fn counts_items(filter: Filter) -> bool {
    matches!(filter, Filter::Length | Filter::GetIndex)
}

impl ExprValue<'_> {
    /// A list of one, where one value was found and several could have been.
    pub(super) fn into_list(self) -> Self {
        match self.values {
            Values::One(value) if self.is_several && !is_items(&value) => {
                Self { values: Values::One(Value::List(vec![value])), ..self }
            }
            values => Self { values, ..self },
        }
    }

    /// The same where it is compared with a list, or asked what it contains.
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

/// What is a list already, or nothing. One list that was found stays that list, as Tracetest has it.
fn is_items(value: &Value<'_>) -> bool {
    matches!(value, Value::List(_) | Value::Json(Json::List(_)) | Value::Nothing)
}
