//! The messages of a trace: the keys of their fields, and the validation of a message that is not decoded.
//!
//! A key precedes a field on the wire: its number and its wire type.

use crate::wire::{DecodeError, Fields, bytes, fixed32, fixed64, varint};

/// The fields of a message with their keys, indexed by field number; a zero key means that there is no field.
pub(crate) struct Schema([(u32, Content); NUMBER_MAX + 1]);

/// The highest field number.
const NUMBER_MAX: usize = 16;

/// The content of a field.
#[derive(Clone, Copy)]
enum Content {
    /// A number or bytes: any content is valid.
    Any,
    /// Bytes that must be UTF-8.
    Text,
    Message(&'static Schema),
}

use Content::{Any, Message, Text};

pub(crate) mod traces_data {
    use super::{Message, Schema, bytes, resource_spans};

    pub(crate) const RESOURCE_SPANS: u32 = bytes(1);

    pub(crate) static SCHEMA: Schema =
        Schema::new(&[(RESOURCE_SPANS, Message(&resource_spans::SCHEMA))]);
}

pub(crate) mod resource_spans {
    use super::{Message, Schema, Text, bytes, resource, scope_spans};

    pub(crate) const RESOURCE: u32 = bytes(1);
    pub(crate) const SCOPE_SPANS: u32 = bytes(2);
    pub(crate) const SCHEMA_URL: u32 = bytes(3);

    pub(crate) static SCHEMA: Schema = Schema::new(&[
        (RESOURCE, Message(&resource::SCHEMA)),
        (SCOPE_SPANS, Message(&scope_spans::SCHEMA)),
        (SCHEMA_URL, Text),
    ]);
}

pub(crate) mod resource {
    use super::{Any, Message, Schema, bytes, entity_ref, key_value, varint};

    pub(crate) const ATTRIBUTES: u32 = bytes(1);
    pub(crate) const DROPPED_ATTRIBUTES: u32 = varint(2);
    pub(crate) const ENTITY_REFS: u32 = bytes(3);

    pub(crate) static SCHEMA: Schema = Schema::new(&[
        (ATTRIBUTES, Message(&key_value::SCHEMA)),
        (DROPPED_ATTRIBUTES, Any),
        (ENTITY_REFS, Message(&entity_ref::SCHEMA)),
    ]);
}

pub(crate) mod entity_ref {
    use super::{Schema, Text, bytes};

    pub(crate) const SCHEMA_URL: u32 = bytes(1);
    pub(crate) const TYPE: u32 = bytes(2);
    pub(crate) const ID_KEYS: u32 = bytes(3);
    pub(crate) const DESCRIPTION_KEYS: u32 = bytes(4);

    pub(crate) static SCHEMA: Schema =
        Schema::new(&[(SCHEMA_URL, Text), (TYPE, Text), (ID_KEYS, Text), (DESCRIPTION_KEYS, Text)]);
}

pub(crate) mod scope_spans {
    use super::{Message, Schema, Text, bytes, scope, span};

    pub(crate) const SCOPE: u32 = bytes(1);
    pub(crate) const SPANS: u32 = bytes(2);
    pub(crate) const SCHEMA_URL: u32 = bytes(3);

    pub(crate) static SCHEMA: Schema = Schema::new(&[
        (SCOPE, Message(&scope::SCHEMA)),
        (SPANS, Message(&span::SCHEMA)),
        (SCHEMA_URL, Text),
    ]);
}

pub(crate) mod scope {
    use super::{Any, Message, Schema, Text, bytes, key_value, varint};

    pub(crate) const NAME: u32 = bytes(1);
    pub(crate) const VERSION: u32 = bytes(2);
    pub(crate) const ATTRIBUTES: u32 = bytes(3);
    pub(crate) const DROPPED_ATTRIBUTES: u32 = varint(4);

    pub(crate) static SCHEMA: Schema = Schema::new(&[
        (NAME, Text),
        (VERSION, Text),
        (ATTRIBUTES, Message(&key_value::SCHEMA)),
        (DROPPED_ATTRIBUTES, Any),
    ]);
}

pub(crate) mod span {
    use super::{
        Any, Message, Schema, Text, bytes, event, fixed32, fixed64, key_value, link, status, varint,
    };

    pub(crate) const TRACE_ID: u32 = bytes(1);
    pub(crate) const SPAN_ID: u32 = bytes(2);
    pub(crate) const TRACE_STATE: u32 = bytes(3);
    pub(crate) const PARENT_SPAN_ID: u32 = bytes(4);
    pub(crate) const NAME: u32 = bytes(5);
    pub(crate) const KIND: u32 = varint(6);
    pub(crate) const START: u32 = fixed64(7);
    pub(crate) const END: u32 = fixed64(8);
    pub(crate) const ATTRIBUTES: u32 = bytes(9);
    pub(crate) const DROPPED_ATTRIBUTES: u32 = varint(10);
    pub(crate) const EVENTS: u32 = bytes(11);
    pub(crate) const DROPPED_EVENTS: u32 = varint(12);
    pub(crate) const LINKS: u32 = bytes(13);
    pub(crate) const DROPPED_LINKS: u32 = varint(14);
    pub(crate) const STATUS: u32 = bytes(15);
    pub(crate) const FLAGS: u32 = fixed32(16);

    pub(crate) static SCHEMA: Schema = Schema::new(&[
        (TRACE_ID, Any),
        (SPAN_ID, Any),
        (TRACE_STATE, Text),
        (PARENT_SPAN_ID, Any),
        (NAME, Text),
        (KIND, Any),
        (START, Any),
        (END, Any),
        (ATTRIBUTES, Message(&key_value::SCHEMA)),
        (DROPPED_ATTRIBUTES, Any),
        (EVENTS, Message(&event::SCHEMA)),
        (DROPPED_EVENTS, Any),
        (LINKS, Message(&link::SCHEMA)),
        (DROPPED_LINKS, Any),
        (STATUS, Message(&status::SCHEMA)),
        (FLAGS, Any),
    ]);
}

pub(crate) mod event {
    use super::{Any, Message, Schema, Text, bytes, fixed64, key_value, varint};

    pub(crate) const TIME: u32 = fixed64(1);
    pub(crate) const NAME: u32 = bytes(2);
    pub(crate) const ATTRIBUTES: u32 = bytes(3);
    pub(crate) const DROPPED_ATTRIBUTES: u32 = varint(4);

    pub(crate) static SCHEMA: Schema = Schema::new(&[
        (TIME, Any),
        (NAME, Text),
        (ATTRIBUTES, Message(&key_value::SCHEMA)),
        (DROPPED_ATTRIBUTES, Any),
    ]);
}

pub(crate) mod link {
    use super::{Any, Message, Schema, Text, bytes, fixed32, key_value, varint};

    pub(crate) const TRACE_ID: u32 = bytes(1);
    pub(crate) const SPAN_ID: u32 = bytes(2);
    pub(crate) const TRACE_STATE: u32 = bytes(3);
    pub(crate) const ATTRIBUTES: u32 = bytes(4);
    pub(crate) const DROPPED_ATTRIBUTES: u32 = varint(5);
    pub(crate) const FLAGS: u32 = fixed32(6);

    pub(crate) static SCHEMA: Schema = Schema::new(&[
        (TRACE_ID, Any),
        (SPAN_ID, Any),
        (TRACE_STATE, Text),
        (ATTRIBUTES, Message(&key_value::SCHEMA)),
        (DROPPED_ATTRIBUTES, Any),
        (FLAGS, Any),
    ]);
}

pub(crate) mod status {
    use super::{Any, Schema, Text, bytes, varint};

    pub(crate) const MESSAGE: u32 = bytes(2);
    pub(crate) const CODE: u32 = varint(3);

    pub(crate) static SCHEMA: Schema = Schema::new(&[(MESSAGE, Text), (CODE, Any)]);
}

pub(crate) mod key_value {
    use super::{Any, Message, Schema, Text, any_value, bytes, varint};

    pub(crate) const KEY: u32 = bytes(1);
    pub(crate) const VALUE: u32 = bytes(2);
    pub(crate) const KEY_STRINDEX: u32 = varint(3);

    pub(crate) static SCHEMA: Schema =
        Schema::new(&[(KEY, Text), (VALUE, Message(&any_value::SCHEMA)), (KEY_STRINDEX, Any)]);
}

pub(crate) mod any_value {
    use super::{Any, Message, Schema, Text, bytes, fixed64, key_value, varint};

    pub(crate) const STRING: u32 = bytes(1);
    pub(crate) const BOOL: u32 = varint(2);
    pub(crate) const INT: u32 = varint(3);
    pub(crate) const DOUBLE: u32 = fixed64(4);
    pub(crate) const ARRAY: u32 = bytes(5);
    pub(crate) const KVLIST: u32 = bytes(6);
    pub(crate) const BYTES: u32 = bytes(7);
    pub(crate) const STRINDEX: u32 = varint(8);

    /// Of `ArrayValue` and of `KeyValueList`.
    pub(crate) const VALUES: u32 = bytes(1);

    pub(crate) static ARRAY_SCHEMA: Schema = Schema::new(&[(VALUES, Message(&SCHEMA))]);
    pub(crate) static KVLIST_SCHEMA: Schema = Schema::new(&[(VALUES, Message(&key_value::SCHEMA))]);
    pub(crate) static SCHEMA: Schema = Schema::new(&[
        (STRING, Text),
        (BOOL, Any),
        (INT, Any),
        (DOUBLE, Any),
        (ARRAY, Message(&ARRAY_SCHEMA)),
        (KVLIST, Message(&KVLIST_SCHEMA)),
        (BYTES, Any),
        (STRINDEX, Any),
    ]);
}

/// Validates that a message can be decoded. Recursion is as deep as messages may nest.
pub(crate) fn check(message: Fields<'_>, schema: &Schema) -> Result<(), DecodeError> {
    check_all_but(0, message, schema)
}

/// The same, without fields with this key.
pub(crate) fn check_all_but(
    unseen: u32,
    mut message: Fields<'_>,
    schema: &Schema,
) -> Result<(), DecodeError> {
    while let Some(key) = message.key()? {
        match schema.content(key) {
            _ if key == unseen => message.skip(key)?,
            Some(Any) => message.skip(key)?,
            Some(Text) => {
                let text = message.bytes()?;
                if !text.is_ascii() && str::from_utf8(text).is_err() {
                    return Err(message.not_text(key));
                }
            }
            Some(Message(schema)) => check(message.message()?, schema)?,
            None => message.pass(key, schema)?,
        }
    }
    Ok(())
}

impl Schema {
    const fn new(fields: &[(u32, Content)]) -> Self {
        let mut by_number = [(0, Any); NUMBER_MAX + 1];
        let mut ix = 0;
        while ix < fields.len() {
            by_number[(fields[ix].0 >> 3) as usize] = fields[ix];
            ix += 1;
        }
        Self(by_number)
    }

    /// Whether a field has this number, with any wire type.
    pub(crate) fn has_number(&self, number: u32) -> bool {
        self.0.get(number as usize).is_some_and(|(known, _)| *known != 0)
    }

    #[inline(always)]
    fn content(&self, key: u32) -> Option<Content> {
        let (known, content) = self.0.get((key >> 3) as usize)?;
        (*known == key).then_some(*content)
    }
}
