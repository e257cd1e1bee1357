//! Reads a JSON object of a trace file without its spans, and then its spans one by one.
//!
//! As a tree of values a span needs twenty times its bytes in the file, so that at most one span is in memory in this form.
//! Resource and scope may follow their spans, so an object is parsed twice: once for its outline, in which each list named
//! `spans` is replaced by a *lane* with a number, and once for the spans of the lanes.

use std::fmt;

use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde_json::{Map, Number, Value};

use super::{Problem, ReadError};

/// The key of a list of spans, in every format.
const SPANS: &str = "spans";

/// An object without its spans.
pub(super) struct Outline(pub(super) Value);

/// A callback for each span: the number of its lane, its index in the lane, and its value.
pub(super) type SpanVisitor<'t> = &'t mut dyn FnMut(usize, usize, &Value) -> Result<(), Problem>;

/// Returns the number of the lane that replaces a list of spans.
pub(super) fn lane(value: &Value) -> Option<usize> {
    let Value::Array(items) = value else { return None };
    items.first()?.as_u64()?.try_into().ok()
}

impl<'de> Deserialize<'de> for Outline {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut walk = Walk { lanes: 0, told: None, problem: None };
        Seed { walk: &mut walk, is_lane: false }.deserialize(deserializer).map(Self)
    }
}

/// Calls the visitor with all spans of an object, in the order of the text.
pub(super) fn spans(object: &[u8], told: SpanVisitor<'_>) -> Result<(), SpanError> {
    let mut walk = Walk { lanes: 0, told: Some(told), problem: None };
    let seed = Seed { walk: &mut walk, is_lane: false };
    let read = seed.deserialize(&mut serde_json::Deserializer::from_slice(object));
    match (walk.problem, read) {
        (Some(problem), _) => Err(SpanError::Problem(problem)),
        (None, Err(error)) => Err(SpanError::Json(error)),
        (None, Ok(_)) => Ok(()),
    }
}

/// Why reading the spans stopped.
pub(super) enum SpanError {
    Json(serde_json::Error),
    Problem(Problem),
}

/// Converts the error of an object that starts at this line and column of its file, both from 0.
pub(super) fn in_file(error: &serde_json::Error, line: usize, column: usize) -> ReadError {
    let reason = error.to_string();
    let what = reason.rsplit_once(" at line ").map_or(&*reason, |(what, _)| what);
    let column = if error.line() == 1 { column + error.column() } else { error.column() };
    ReadError::Json { reason: format!("{what} at line {} column {column}", line + error.line()) }
}

/// One pass through an object.
struct Walk<'t> {
    /// The number of lanes so far.
    lanes: usize,
    /// The visitor; none if spans are skipped.
    told: Option<SpanVisitor<'t>>,
    /// Why the pass ended early.
    problem: Option<Problem>,
}

/// Deserializes a value; a list that is a lane becomes its number.
struct Seed<'w, 't> {
    walk: &'w mut Walk<'t>,
    is_lane: bool,
}

impl<'de> DeserializeSeed<'de> for Seed<'_, '_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_, '_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any valid JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        if self.is_lane {
            return self.walk.lane(items);
        }
        let mut all = Vec::new();
        while let Some(item) =
            items.next_element_seed(Seed { walk: &mut *self.walk, is_lane: false })?
        {
            all.push(item);
        }
        Ok(Value::Array(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            let is_lane = key == SPANS;
            let value = entries.next_value_seed(Seed { walk: &mut *self.walk, is_lane })?;
            object.insert(key, value);
        }
        Ok(Value::Object(object))
    }
}

impl Walk<'_> {
    fn lane<'de, A: SeqAccess<'de>>(&mut self, mut items: A) -> Result<Value, A::Error> {
        let number = self.lanes;
        self.lanes += 1;
        match &mut self.told {
            None => while items.next_element::<IgnoredAny>()?.is_some() {},
            Some(told) => {
                for ix in 0.. {
                    let Some(item) = items.next_element::<Value>()? else { break };
                    if let Err(problem) = told(number, ix, &item) {
                        self.problem = Some(problem);
                        return Err(serde::de::Error::custom("a span cannot be read"));
                    }
                }
            }
        }
        Ok(Value::Array(vec![Value::Number(number.into())]))
    }
}
