//! Parses responses of a newer server in an older client: ignores unknown fields.
//!
//! The types of outcomes reject unknown fields when the database is read; between versions that would make every addition
//! a breaking change. An unknown variant of an enum is still rejected: a guess at its meaning would be worse.

use serde::{
    Deserializer,
    de::{
        DeserializeOwned, IntoDeserializer, Visitor,
        value::{MapAccessDeserializer, MapDeserializer, SeqDeserializer},
    },
    forward_to_deserialize_any,
};
use serde_json::{Error, Value};

/// Parses a response.
pub(super) fn read<T: DeserializeOwned>(answer: &[u8]) -> Result<T, Error> {
    T::deserialize(KnownFields(serde_json::from_slice(answer)?))
}

/// A value that exposes only the known fields.
struct KnownFields(Value);

impl<'de> Deserializer<'de> for KnownFields {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::Array(items) => {
                visitor.visit_seq(SeqDeserializer::new(items.into_iter().map(KnownFields)))
            }
            Value::Object(map) => {
                let entries = map.into_iter().map(|(key, value)| (key, KnownFields(value)));
                visitor.visit_map(MapDeserializer::new(entries))
            }
            plain => plain.deserialize_any(visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.0.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        mut self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        if let Value::Object(map) = &mut self.0 {
            map.retain(|key, _| fields.contains(&key.as_str()));
        }
        self.deserialize_any(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.0 {
            Value::Object(map) => {
                let entries = map.into_iter().map(|(key, value)| (key, KnownFields(value)));
                visitor.visit_enum(MapAccessDeserializer::new(MapDeserializer::new(entries)))
            }
            word => word.deserialize_enum(name, variants, visitor),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map identifier ignored_any
    }
}

impl<'de> IntoDeserializer<'de, Error> for KnownFields {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

#[cfg(test)]
mod tests {
    use model::{Outcome, Verdict};

    use super::read;

    /// An outcome in its first schema, and an example of a later one.
    const OLDER: &str = r#"{
        "runId": null, "test": "shop", "verdict": "failed", "reasons": [], "traceId": null,
        "answer": {"response": {"status": 200, "headers": [], "body": {"text": ""}, "durationNs": 1}},
        "settlement": null, "judgement": {"verdict": "failed", "specs": [], "outputs": []}, "steps": []
    }"#;
    const NEWER: &str = r#"{
        "runId": null, "test": "shop", "verdict": "failed", "reasons": [], "traceId": null, "mood": {"a": [1]},
        "answer": {"response": {"status": 200, "headers": [], "body": {"text": ""}, "durationNs": 1, "proxy": "x"}},
        "settlement": null, "steps": [{"step": "judge", "began": "2026-11-15T14:00:00Z", "ended": "2026-11-15T14:00:01Z", "by": 1}],
        "judgement": {"verdict": "failed", "specs": [], "outputs": [{"name": "a", "value": "b", "reason": null, "type": 1}]}
    }"#;

    #[test]
    fn older_and_newer_answers_are_understood() {
        for (text, steps, outputs) in [(OLDER, 0, 0), (NEWER, 1, 1)] {
            let outcome: Outcome = read(text.as_bytes()).expect("understood");
            assert_eq!(outcome.verdict, Verdict::Failed);
            assert_eq!(outcome.steps.len(), steps);
            assert_eq!(outcome.judgement.outputs.len(), outputs);
            assert!(outcome.answer.is_some());
        }
        assert!(serde_json::from_str::<Outcome>(NEWER).is_err(), "the record is strict");
        let unknown = NEWER.replace("\"failed\"", "\"postponed\"");
        let error = read::<Outcome>(unknown.as_bytes()).expect_err("nobody knows what it means");
        assert!(error.to_string().contains("postponed"), "{error}");
    }
}
