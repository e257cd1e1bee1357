//! Encodes attributes, and the values of both APIs: those of spans and those of logs.

use opentelemetry::{Array, Key, KeyValue, StringValue, Value, logs::AnyValue};

use super::wire::{self, tag};

// Fields of `AnyValue`.
const STRING: u8 = tag::bytes(1);
const BOOL: u8 = tag::varint(2);
const INT: u8 = tag::varint(3);
const DOUBLE: u8 = tag::fixed64(4);
const ARRAY: u8 = tag::bytes(5);
const MAP: u8 = tag::bytes(6);
const BYTES: u8 = tag::bytes(7);

/// Appends a `KeyValue` in the field with this tag.
#[inline]
pub(super) fn attribute(out: &mut Vec<u8>, tag: u8, attribute: &KeyValue) {
    pair(out, tag, &attribute.key, &attribute.value);
}

/// Appends a `KeyValue` of this key and value.
#[inline]
pub(super) fn pair(out: &mut Vec<u8>, tag: u8, key: &Key, value: &Value) {
    match value {
        Value::Bool(value) => leaf(out, tag, key, 2, |out| bool(out, *value)),
        Value::I64(value) => leaf(out, tag, key, int_len(*value), |out| int(out, *value)),
        Value::F64(value) => leaf(out, tag, key, 9, |out| double(out, *value)),
        Value::String(value) => leaf(out, tag, key, text_len(value), |out| text(out, value)),
        Value::Array(value) => keyed(out, tag, key, 64, |out| array(out, value)),
        // This version of the API has no other kind; a later one is encoded as its text.
        other => keyed(out, tag, key, 64, |out| {
            wire::bytes(out, STRING, other.as_str().as_bytes());
        }),
    }
}

/// Appends a `KeyValue` with a value of a log.
pub(super) fn any_pair(out: &mut Vec<u8>, tag: u8, key: &Key, value: &AnyValue) {
    match value {
        AnyValue::Int(value) => leaf(out, tag, key, int_len(*value), |out| int(out, *value)),
        AnyValue::String(value) => leaf(out, tag, key, text_len(value), |out| text(out, value)),
        value => keyed(out, tag, key, expected(value), |out| put_any(out, value)),
    }
}

/// Appends an `AnyValue` in the field with this tag.
pub(super) fn any(out: &mut Vec<u8>, tag: u8, value: &AnyValue) {
    wire::message(out, tag, expected(value), |out| put_any(out, value));
}

/// Appends a `KeyValue` with a value of `length` bytes, if it is short. Nearly every attribute is so short that each of
/// its length prefixes is one byte, so none has to be filled in later.
#[inline]
fn leaf(out: &mut Vec<u8>, tag: u8, key: &Key, length: usize, value: impl FnOnce(&mut Vec<u8>)) {
    let name = key.as_str().as_bytes();
    let all = 2 + name.len() + 2 + length;
    if all >= 0x80 {
        return keyed(out, tag, key, length, value);
    }
    out.extend_from_slice(&[tag, all as u8, tag::bytes(1), name.len() as u8]);
    out.extend_from_slice(name);
    out.extend_from_slice(&[tag::bytes(2), length as u8]);
    value(out);
}

/// Appends a `KeyValue` with a value of about `expected` bytes.
fn keyed(out: &mut Vec<u8>, tag: u8, key: &Key, expected: usize, value: impl FnOnce(&mut Vec<u8>)) {
    let key = key.as_str();
    wire::message(out, tag, key.len() + expected + 4, |out| {
        wire::text(out, tag::bytes(1), key);
        wire::message(out, tag::bytes(2), expected, value);
    });
}

fn array(out: &mut Vec<u8>, array: &Array) {
    match array {
        Array::Bool(values) => elements(out, values, |out, value| bool(out, *value)),
        Array::I64(values) => elements(out, values, |out, value| int(out, *value)),
        Array::F64(values) => elements(out, values, |out, value| double(out, *value)),
        Array::String(values) => elements(out, values, text),
        other => wire::bytes(out, STRING, other.to_string().as_bytes()),
    }
}

fn elements<T>(out: &mut Vec<u8>, values: &[T], put: impl Fn(&mut Vec<u8>, &T)) {
    wire::message(out, ARRAY, 8 * values.len(), |out| {
        for value in values {
            wire::message(out, tag::bytes(1), 0, |out| put(out, value));
        }
    });
}

fn put_any(out: &mut Vec<u8>, value: &AnyValue) {
    match value {
        AnyValue::Int(value) => int(out, *value),
        AnyValue::Double(value) => double(out, *value),
        AnyValue::String(value) => text(out, value),
        AnyValue::Boolean(value) => bool(out, *value),
        AnyValue::Bytes(value) => wire::bytes(out, BYTES, value),
        AnyValue::ListAny(values) => wire::message(out, ARRAY, expected(value), |out| {
            for value in values.iter() {
                any(out, tag::bytes(1), value);
            }
        }),
        AnyValue::Map(values) => wire::message(out, MAP, expected(value), |out| {
            for (key, value) in values.iter() {
                any_pair(out, tag::bytes(1), key, value);
            }
        }),
        // This version of the API has no other kind; a later one is encoded as its text.
        other => wire::bytes(out, STRING, format!("{other:?}").as_bytes()),
    }
}

/// The approximate encoded size of the value.
fn expected(value: &AnyValue) -> usize {
    match value {
        AnyValue::String(value) => value.as_str().len() + 4,
        AnyValue::Bytes(value) => value.len() + 4,
        AnyValue::ListAny(values) => 8 * values.len(),
        AnyValue::Map(values) => 24 * values.len(),
        _ => 11,
    }
}

// A value is the single field of an `AnyValue`. It is encoded even if it is zero, because its tag states its type.

fn bool(out: &mut Vec<u8>, value: bool) {
    out.extend_from_slice(&[BOOL, u8::from(value)]);
}

#[inline]
fn int(out: &mut Vec<u8>, value: i64) {
    out.push(INT);
    wire::varint(out, value as u64);
}

fn int_len(value: i64) -> usize {
    1 + wire::varint_len(value as u64)
}

fn double(out: &mut Vec<u8>, value: f64) {
    let mut field = [DOUBLE; 9];
    field[1..].copy_from_slice(&value.to_le_bytes());
    out.extend_from_slice(&field);
}

#[inline]
fn text(out: &mut Vec<u8>, value: &StringValue) {
    wire::bytes(out, STRING, value.as_str().as_bytes());
}

fn text_len(value: &StringValue) -> usize {
    let length = value.as_str().len();
    1 + wire::varint_len(length as u64) + length
}
