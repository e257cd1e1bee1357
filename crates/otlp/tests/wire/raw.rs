//! Random messages that no encoder writes: fields in any order, repeated, with unknown numbers.

use proptest::{
    collection::vec,
    prelude::{BoxedStrategy, Just, Strategy, any, prop_oneof},
};

use crate::strategy::TRACE;

/// The type of a field of a message.
#[derive(Clone, Copy)]
enum Shape {
    Varint,
    Fixed64,
    Fixed32,
    Text,
    Bytes,
    TraceId,
    SpanId,
    Message(&'static Form),
}

use Shape::{Bytes, Fixed32, Fixed64, Message, Text, Varint};

/// The fields of a message, by number.
pub(crate) struct Form(&'static [(u32, Shape)]);

pub(crate) static TRACES_DATA: Form = Form(&[(1, Message(&RESOURCE_SPANS))]);
// Fields that lead to spans with ids are listed several times, so that most messages have some.
static RESOURCE_SPANS: Form = Form(&[
    (1, Message(&RESOURCE)),
    (2, Message(&SCOPE_SPANS)),
    (2, Message(&SCOPE_SPANS)),
    (2, Message(&SCOPE_SPANS)),
    (3, Text),
]);
static RESOURCE: Form = Form(&[(1, Message(&KEY_VALUE)), (2, Varint), (3, Message(&ENTITY))]);
static ENTITY: Form = Form(&[(1, Text), (2, Text), (3, Text), (4, Text)]);
static SCOPE_SPANS: Form = Form(&[
    (1, Message(&SCOPE)),
    (2, Message(&SPAN)),
    (2, Message(&SPAN)),
    (2, Message(&SPAN)),
    (3, Text),
]);
static SCOPE: Form = Form(&[(1, Text), (2, Text), (3, Message(&KEY_VALUE)), (4, Varint)]);
static SPAN: Form = Form(&[
    (1, Shape::TraceId),
    (1, Shape::TraceId),
    (1, Shape::TraceId),
    (1, Shape::TraceId),
    (2, Shape::SpanId),
    (2, Shape::SpanId),
    (2, Shape::SpanId),
    (2, Shape::SpanId),
    (3, Text),
    (4, Shape::SpanId),
    (5, Text),
    (6, Varint),
    (7, Fixed64),
    (8, Fixed64),
    (9, Message(&KEY_VALUE)),
    (10, Varint),
    (11, Message(&EVENT)),
    (12, Varint),
    (13, Message(&LINK)),
    (14, Varint),
    (15, Message(&STATUS)),
    (16, Fixed32),
]);
static EVENT: Form = Form(&[(1, Fixed64), (2, Text), (3, Message(&KEY_VALUE)), (4, Varint)]);
static LINK: Form = Form(&[
    (1, Shape::TraceId),
    (2, Shape::SpanId),
    (3, Text),
    (4, Message(&KEY_VALUE)),
    (5, Varint),
    (6, Fixed32),
]);
static STATUS: Form = Form(&[(2, Text), (3, Varint)]);
static KEY_VALUE: Form = Form(&[(1, Text), (2, Message(&ANY_VALUE)), (3, Varint)]);
static ANY_VALUE: Form = Form(&[
    (1, Text),
    (2, Varint),
    (3, Varint),
    (4, Fixed64),
    (5, Message(&ANY_VALUES)),
    (6, Message(&KEY_VALUES)),
    (7, Bytes),
    (8, Varint),
]);
static ANY_VALUES: Form = Form(&[(1, Message(&ANY_VALUE))]);
static KEY_VALUES: Form = Form(&[(1, Message(&KEY_VALUE))]);

/// Generates a message with any of its fields, in any order, several times or not at all.
pub(crate) fn message(form: &'static Form, depth: u32) -> BoxedStrategy<Vec<u8>> {
    let Form(fields) = form;
    let known = (0..fields.len()).prop_flat_map(move |ix| known(fields[ix], depth));
    // An unknown field, or one with a wrong wire type.
    let other = (prop_oneof![20..400u32, 1..18u32], any_content());
    let other = other.prop_map(|(tag, (way, content))| [key(tag, way), content].concat());
    let group = (20..30u32, 0..3usize).prop_map(|(tag, fields)| {
        let fields = [0x08, 7].repeat(fields);
        [key(tag, 3), fields, key(tag, 4)].concat()
    });
    let field = prop_oneof![150 => known, 1 => other, 1 => group];
    vec(field, 0..=fields.len().max(3)).prop_map(|fields| fields.concat()).boxed()
}

fn known((tag, shape): (u32, Shape), depth: u32) -> BoxedStrategy<Vec<u8>> {
    let bytes = |content: BoxedStrategy<Vec<u8>>| {
        content.prop_map(move |content| field(tag, &content)).boxed()
    };
    match shape {
        Varint => prop_oneof![0..9u64, any::<u64>()]
            .prop_map(move |number| [key(tag, 0), varint(number)].concat())
            .boxed(),
        Fixed64 => any::<[u8; 8]>().prop_map(move |it| [key(tag, 1), it.to_vec()].concat()).boxed(),
        Fixed32 => any::<[u8; 4]>().prop_map(move |it| [key(tag, 5), it.to_vec()].concat()).boxed(),
        Text => {
            let text = prop_oneof![30 => "[ab]{0,2}".prop_map(String::into_bytes),
                1 => vec(any::<u8>(), 0..4)];
            bytes(text.boxed())
        }
        Bytes => bytes(vec(any::<u8>(), 0..4).boxed()),
        Shape::TraceId => bytes(
            prop_oneof![20 => Just(TRACE.to_vec()), 1 => Just(vec![8; 16]), 1 => Just(vec![7; 4])]
                .boxed(),
        ),
        Shape::SpanId => bytes(
            prop_oneof![20 => (1u8..4).prop_map(|byte| vec![byte; 8]), 1 => Just(vec![0; 8]),
                1 => Just(vec![1; 7])]
            .boxed(),
        ),
        Message(_) if depth == 0 => bytes(Just(vec![]).boxed()),
        Message(form) => bytes(message(form, depth - 1)),
    }
}

fn any_content() -> impl Strategy<Value = (u32, Vec<u8>)> {
    prop_oneof![
        any::<u64>().prop_map(|number| (0, varint(number))),
        any::<[u8; 8]>().prop_map(|bytes| (1, bytes.to_vec())),
        vec(any::<u8>(), 0..4).prop_map(|bytes| (2, [vec![bytes.len() as u8], bytes].concat())),
        any::<[u8; 4]>().prop_map(|bytes| (5, bytes.to_vec())),
        (3..8u32, any::<[u8; 2]>()).prop_map(|(way, bytes)| (way, bytes.to_vec())),
    ]
}

pub(crate) fn field(tag: u32, content: &[u8]) -> Vec<u8> {
    [key(tag, 2), varint(content.len() as u64), content.to_vec()].concat()
}

fn key(tag: u32, way: u32) -> Vec<u8> {
    varint(u64::from(tag << 3 | way))
}

fn varint(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}
