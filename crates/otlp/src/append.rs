//! Decodes OTLP into the model: writes the fields of a message into the rows of a trace in the order of the message.
//!
//! In protobuf, duplicates of a singular message field are merged, and of a number or a text the last one counts. Decoding
//! therefore starts from the defaults, and each field changes them.

use model::{
    Fault, Faulty, SpanId, Timestamp, Trace, TraceId,
    trace::{
        Cell, EventHead, Kind, LinkHead, Mark, PushResult, ResourceHead, ResourceIx, ScopeHead,
        ScopeIx, SpanHead, StatusCode, Text, TraceFull, Writer,
    },
};
use thiserror::Error;

use crate::{
    schema::{
        any_value, check, check_all_but, entity_ref, event, key_value, link, resource,
        resource_spans, scope, scope_spans, span, status, traces_data,
    },
    split::{Ids, ids},
    wire::{DecodeError, Fields},
};

/// Why spans could not be appended.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum AppendError {
    /// The bytes are not spans; those before the error may have been appended.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// There is no room for them; some may have been appended.
    #[error(transparent)]
    Full(#[from] TraceFull),
}

impl Faulty for AppendError {
    fn fault(&self) -> Fault {
        match self {
            Self::Decode(error) => error.fault(),
            Self::Full(error) => error.fault(),
        }
    }
}

/// Adds the spans of an OTLP `TracesData` message that belong to this trace, and returns how many were new.
///
/// Spans of other traces are skipped, and so are spans with a malformed span id or parent id: without its parent such a span
/// would become a root, which it is not. A span that is already there is not added again, so that a sender may retry.
pub fn append(trace: &mut Trace, bytes: &[u8]) -> Result<u64, AppendError> {
    let mut decoder = Decoder { trace_id: trace.id(), writer: Writer::new(trace), new: 0 };
    let mut fields = Fields::new(bytes);
    while let Some(key) = fields.key()? {
        match key {
            traces_data::RESOURCE_SPANS => decoder.resource_spans(&fields.message()?)?,
            _ => fields.pass(key, &traces_data::SCHEMA)?,
        }
    }
    Ok(decoder.new)
}

struct Decoder<'t> {
    trace_id: TraceId,
    writer: Writer<'t>,
    /// The number of spans that were not there.
    new: u64,
}

/// A value that more fields may extend: the elements of an array and the entries of a map are merged.
#[derive(Clone, Copy)]
enum OpenValue {
    Leaf(Cell),
    Array(Mark),
    Map(Mark),
}

impl Decoder<'_> {
    fn resource_spans(&mut self, message: &Fields<'_>) -> Result<(), AppendError> {
        // Written for the first span that needs it: a resource without spans of this trace does not belong to it.
        let mut resource = None;
        for scope_spans in message.children(resource_spans::SCOPE_SPANS) {
            self.scope_spans(&scope_spans?, message, &mut resource)?;
        }
        if resource.is_none() {
            check_all_but(resource_spans::SCOPE_SPANS, message.clone(), &resource_spans::SCHEMA)?;
        }
        Ok(())
    }

    fn scope_spans(
        &mut self,
        message: &Fields<'_>,
        around: &Fields<'_>,
        resource: &mut Option<ResourceIx>,
    ) -> Result<(), AppendError> {
        let mut scope = None;
        for span in message.children(scope_spans::SPANS) {
            let span = span?;
            let Some(id) = self.own_id(&span)? else {
                check(span, &span::SCHEMA)?;
                continue;
            };
            let resource = match *resource {
                Some(known) => known,
                None => *resource.insert(self.resource(around.clone())?),
            };
            let scope = match scope {
                Some(known) => known,
                None => *scope.insert(self.scope(message.clone())?),
            };
            self.span(SpanHead::new(id, None, resource, scope), span)?;
        }
        if scope.is_none() {
            check_all_but(scope_spans::SPANS, message.clone(), &scope_spans::SCHEMA)?;
        }
        Ok(())
    }

    /// Returns the id of a span of this trace. Nearly all spans start with their ids, and are not scanned further: a later
    /// field that overrides an id is detected when the span is written.
    fn own_id(&self, span: &Fields<'_>) -> Result<Option<SpanId>, DecodeError> {
        let mut start = span.clone();
        let mut seen = Ids::default();
        if start.key()? == Some(span::TRACE_ID) {
            seen.set_trace(start.bytes()?);
            if start.key()? == Some(span::SPAN_ID) {
                seen.set_span(start.bytes()?);
            }
        }
        if seen.within(self.trace_id).is_none() {
            seen = ids(span.clone())?;
        }
        Ok(seen.within(self.trace_id).map(|(id, _)| id))
    }

    /// Decodes a `ResourceSpans` message, except its spans.
    fn resource(&mut self, mut around: Fields<'_>) -> Result<ResourceIx, AppendError> {
        let mut head = ResourceHead::default();
        while let Some(key) = around.key()? {
            match key {
                resource_spans::RESOURCE => {
                    let mut fields = around.message()?;
                    while let Some(key) = fields.key()? {
                        match key {
                            resource::ATTRIBUTES => self.attribute(fields.message()?)?,
                            resource::DROPPED_ATTRIBUTES => {
                                head.dropped_attributes = fields.varint()? as u32;
                            }
                            resource::ENTITY_REFS => self.entity(fields.message()?)?,
                            _ => fields.pass(key, &resource::SCHEMA)?,
                        }
                    }
                }
                resource_spans::SCOPE_SPANS => around.skip(key)?,
                resource_spans::SCHEMA_URL => head.schema_url = self.text(key, &mut around)?,
                _ => around.pass(key, &resource_spans::SCHEMA)?,
            }
        }
        Ok(self.writer.resource(head)?)
    }

    fn entity(&mut self, mut fields: Fields<'_>) -> Result<(), AppendError> {
        let (mut schema_url, mut kind) = (Text::default(), Text::default());
        let (mut id_keys, mut description_keys) = (Vec::new(), Vec::new());
        while let Some(key) = fields.key()? {
            match key {
                entity_ref::SCHEMA_URL => schema_url = self.text(key, &mut fields)?,
                entity_ref::TYPE => kind = self.text(key, &mut fields)?,
                entity_ref::ID_KEYS => id_keys.push(self.text(key, &mut fields)?),
                entity_ref::DESCRIPTION_KEYS => {
                    description_keys.push(self.text(key, &mut fields)?);
                }
                _ => fields.pass(key, &entity_ref::SCHEMA)?,
            }
        }
        Ok(self.writer.entity(schema_url, kind, &id_keys, &description_keys)?)
    }

    /// Decodes a `ScopeSpans` message, except its spans.
    fn scope(&mut self, mut around: Fields<'_>) -> Result<ScopeIx, AppendError> {
        let mut head = ScopeHead::default();
        while let Some(key) = around.key()? {
            match key {
                scope_spans::SCOPE => {
                    let mut fields = around.message()?;
                    while let Some(key) = fields.key()? {
                        match key {
                            scope::NAME => head.name = self.text(key, &mut fields)?,
                            scope::VERSION => head.version = self.text(key, &mut fields)?,
                            scope::ATTRIBUTES => self.attribute(fields.message()?)?,
                            scope::DROPPED_ATTRIBUTES => {
                                head.dropped_attributes = fields.varint()? as u32;
                            }
                            _ => fields.pass(key, &scope::SCHEMA)?,
                        }
                    }
                }
                scope_spans::SPANS => around.skip(key)?,
                scope_spans::SCHEMA_URL => head.schema_url = self.text(key, &mut around)?,
                _ => around.pass(key, &scope_spans::SCHEMA)?,
            }
        }
        Ok(self.writer.scope(head)?)
    }

    fn span(&mut self, mut head: SpanHead, mut fields: Fields<'_>) -> Result<(), AppendError> {
        let mut ids = Ids::default();
        while let Some(key) = fields.key()? {
            match key {
                span::TRACE_ID => ids.set_trace(fields.bytes()?),
                span::SPAN_ID => ids.set_span(fields.bytes()?),
                span::PARENT_SPAN_ID => ids.set_parent(fields.bytes()?),
                span::TRACE_STATE => head.trace_state = self.text(key, &mut fields)?,
                span::NAME => head.name = self.text(key, &mut fields)?,
                span::KIND => head.kind = Kind::from_number(fields.varint()? as i32),
                span::START => head.start = Timestamp::from_nanos(fields.fixed64()?),
                span::END => head.end = Timestamp::from_nanos(fields.fixed64()?),
                span::ATTRIBUTES => self.attribute(fields.message()?)?,
                span::DROPPED_ATTRIBUTES => head.dropped_attributes = fields.varint()? as u32,
                span::EVENTS => self.event(fields.message()?)?,
                span::DROPPED_EVENTS => head.dropped_events = fields.varint()? as u32,
                span::LINKS => self.link(fields.message()?)?,
                span::DROPPED_LINKS => head.dropped_links = fields.varint()? as u32,
                span::STATUS => self.status(&mut head, fields.message()?)?,
                span::FLAGS => head.flags = fields.fixed32()?,
                _ => fields.pass(key, &span::SCHEMA)?,
            }
        }
        let Some((id, parent)) = ids.within(self.trace_id) else {
            self.writer.discard();
            return Ok(());
        };
        match self.writer.span(SpanHead { id, parent, ..head })? {
            PushResult::New(_) | PushResult::Conflicting(_) => self.new += 1,
            PushResult::Repeated(_) => {}
        }
        Ok(())
    }

    fn status(&mut self, head: &mut SpanHead, mut fields: Fields<'_>) -> Result<(), AppendError> {
        while let Some(key) = fields.key()? {
            match key {
                status::MESSAGE => head.status_message = self.text(key, &mut fields)?,
                status::CODE => head.status = StatusCode::from_number(fields.varint()? as i32),
                _ => fields.pass(key, &status::SCHEMA)?,
            }
        }
        Ok(())
    }

    fn event(&mut self, mut fields: Fields<'_>) -> Result<(), AppendError> {
        let mut head = EventHead::default();
        let since = self.writer.mark();
        while let Some(key) = fields.key()? {
            match key {
                event::TIME => head.at = Timestamp::from_nanos(fields.fixed64()?),
                event::NAME => head.name = self.text(key, &mut fields)?,
                event::ATTRIBUTES => self.attribute(fields.message()?)?,
                event::DROPPED_ATTRIBUTES => head.dropped_attributes = fields.varint()? as u32,
                _ => fields.pass(key, &event::SCHEMA)?,
            }
        }
        Ok(self.writer.event(head, since)?)
    }

    /// A malformed id of a link is stored as none: the rest of the link is still useful, and no verdict depends on it.
    fn link(&mut self, mut fields: Fields<'_>) -> Result<(), AppendError> {
        let mut head = LinkHead::default();
        let since = self.writer.mark();
        while let Some(key) = fields.key()? {
            match key {
                link::TRACE_ID => {
                    head.trace_id = fields.bytes()?.try_into().ok().and_then(TraceId::from_bytes);
                }
                link::SPAN_ID => {
                    head.span_id = fields.bytes()?.try_into().ok().and_then(SpanId::from_bytes);
                }
                link::TRACE_STATE => head.trace_state = self.text(key, &mut fields)?,
                link::ATTRIBUTES => self.attribute(fields.message()?)?,
                link::DROPPED_ATTRIBUTES => head.dropped_attributes = fields.varint()? as u32,
                link::FLAGS => head.flags = fields.fixed32()?,
                _ => fields.pass(key, &link::SCHEMA)?,
            }
        }
        Ok(self.writer.link(head, since)?)
    }

    fn attribute(&mut self, mut fields: Fields<'_>) -> Result<(), AppendError> {
        let mut name = Text::default();
        let mut value = OpenValue::Leaf(Cell::Empty);
        while let Some(key) = fields.key()? {
            match key {
                key_value::KEY => {
                    let text = self.writer.key(fields.bytes()?)?;
                    name = text.ok_or_else(|| fields.not_text(key))?;
                }
                key_value::VALUE => self.add_to(&mut value, fields.message()?)?,
                key_value::KEY_STRINDEX => drop(fields.varint()?),
                _ => fields.pass(key, &key_value::SCHEMA)?,
            }
        }
        let value = self.finish(value)?;
        self.writer.attribute(name, value);
        Ok(())
    }

    /// Recursion, through the two functions below, is as deep as messages may nest.
    #[inline(always)]
    fn add_to(&mut self, value: &mut OpenValue, mut fields: Fields<'_>) -> Result<(), AppendError> {
        while let Some(key) = fields.key()? {
            let leaf = match key {
                any_value::STRING => Cell::Str(self.text(key, &mut fields)?),
                any_value::BOOL => Cell::Bool(fields.varint()? != 0),
                any_value::INT => Cell::Int((fields.varint()? as i64).into()),
                any_value::DOUBLE => Cell::Double(f64::from_bits(fields.fixed64()?).into()),
                any_value::ARRAY => {
                    self.add_elements(value, fields.message()?)?;
                    continue;
                }
                any_value::KVLIST => {
                    self.add_entries(value, fields.message()?)?;
                    continue;
                }
                any_value::BYTES => self.writer.bytes(fields.bytes()?)?,
                // An index into the string table of profiles has no meaning here; OTLP requires to treat it as absent.
                any_value::STRINDEX => fields.varint().map(|_| Cell::Empty)?,
                _ => {
                    fields.pass(key, &any_value::SCHEMA)?;
                    continue;
                }
            };
            self.forget(value);
            *value = OpenValue::Leaf(leaf);
        }
        Ok(())
    }

    #[inline(never)]
    fn add_elements(
        &mut self,
        value: &mut OpenValue,
        mut fields: Fields<'_>,
    ) -> Result<(), AppendError> {
        if !matches!(value, OpenValue::Array(_)) {
            *value = OpenValue::Array(self.forget(value));
        }
        while let Some(key) = fields.key()? {
            match key {
                any_value::VALUES => {
                    let mut element = OpenValue::Leaf(Cell::Empty);
                    self.add_to(&mut element, fields.message()?)?;
                    let element = self.finish(element)?;
                    self.writer.element(element);
                }
                _ => fields.pass(key, &any_value::ARRAY_SCHEMA)?,
            }
        }
        Ok(())
    }

    #[inline(never)]
    fn add_entries(
        &mut self,
        value: &mut OpenValue,
        mut fields: Fields<'_>,
    ) -> Result<(), AppendError> {
        if !matches!(value, OpenValue::Map(_)) {
            *value = OpenValue::Map(self.forget(value));
        }
        while let Some(key) = fields.key()? {
            match key {
                any_value::VALUES => self.attribute(fields.message()?)?,
                _ => fields.pass(key, &any_value::KVLIST_SCHEMA)?,
            }
        }
        Ok(())
    }

    /// Removes a value, for another one in its place.
    fn forget(&mut self, value: &OpenValue) -> Mark {
        if let OpenValue::Array(since) | OpenValue::Map(since) = value {
            self.writer.forget(*since);
        }
        self.writer.mark()
    }

    fn finish(&mut self, value: OpenValue) -> Result<Cell, TraceFull> {
        match value {
            OpenValue::Leaf(cell) => Ok(cell),
            OpenValue::Array(since) => self.writer.array(since),
            OpenValue::Map(since) => self.writer.map(since),
        }
    }

    #[inline(always)]
    fn text(&mut self, key: u32, fields: &mut Fields<'_>) -> Result<Text, AppendError> {
        let text = self.writer.text(fields.bytes()?)?;
        text.ok_or_else(|| fields.not_text(key).into())
    }
}
