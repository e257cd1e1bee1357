//! Writes the owned form of a span, its resource and its scope into a trace.

use super::{
    EntityData, EventData, LinkData, ResourceData, ScopeData, Span, SpanData, Value,
    store::{Cell, PushResult, ResourceIx, ScopeIx, Trace, TraceFull},
    strings::Text,
    writer::{EventHead, LinkHead, ResourceHead, ScopeHead, SpanHead, Writer},
};
use crate::{SpanId, TextMut};

impl Trace {
    /// Returns the index of this resource, and stores it if it is new.
    pub fn resource(&mut self, data: ResourceData) -> Result<ResourceIx, TraceFull> {
        let mut writer = Writer::new(self);
        attributes(&mut writer, data.attributes)?;
        for one in data.entities {
            entity(&mut writer, one)?;
        }
        let head = ResourceHead {
            dropped_attributes: data.dropped_attributes,
            schema_url: text(&mut writer, &data.schema_url)?,
        };
        writer.resource(head)
    }

    /// Returns the index of this scope, and stores it if it is new.
    pub fn scope(&mut self, data: ScopeData) -> Result<ScopeIx, TraceFull> {
        let mut writer = Writer::new(self);
        attributes(&mut writer, data.attributes)?;
        let head = ScopeHead {
            name: text(&mut writer, &data.name)?,
            version: text(&mut writer, &data.version)?,
            dropped_attributes: data.dropped_attributes,
            schema_url: text(&mut writer, &data.schema_url)?,
        };
        writer.scope(head)
    }

    /// Adds a span, unless it is already there.
    pub fn push(
        &mut self,
        resource: ResourceIx,
        scope: ScopeIx,
        data: SpanData,
    ) -> Result<PushResult, TraceFull> {
        let mut writer = Writer::new(self);
        let head = SpanHead {
            id: data.id,
            parent: data.parent,
            resource,
            scope,
            start: data.start,
            end: data.end,
            name: text(&mut writer, &data.name)?,
            trace_state: text(&mut writer, &data.trace_state)?,
            flags: data.flags,
            kind: data.kind,
            status: data.status.code,
            status_message: text(&mut writer, &data.status.message)?,
            dropped_attributes: data.dropped_attributes,
            dropped_events: data.dropped_events,
            dropped_links: data.dropped_links,
        };
        attributes(&mut writer, data.attributes)?;
        for one in data.events {
            event(&mut writer, one)?;
        }
        for one in data.links {
            link(&mut writer, one)?;
        }
        writer.span(head)
    }

    /// Returns the trace without the spans of this id.
    pub fn without(&self, id: SpanId) -> Result<Self, TraceFull> {
        self.only(|span| span.id() != id)
    }

    /// Whether a text in it may match `is_it`. Adjacent texts are searched as one, so a false positive is possible.
    pub fn may_say(&self, is_it: impl Fn(&[u8]) -> bool) -> bool {
        is_it(self.strings.joined()) || is_it(&self.bytes)
    }

    /// Returns a copy of the trace with its texts edited by `tell`.
    pub fn with_edited_texts(&self, tell: impl Fn(Vec<TextMut<'_>>)) -> Result<Self, TraceFull> {
        let mut with_edited_texts = Self::new(self.id());
        for span in self.spans() {
            let mut resource = span.resource().to_data();
            let mut scope = span.scope().to_data();
            let mut data = span.to_data();
            tell(resource.texts_mut());
            tell(scope.texts_mut());
            tell(data.texts_mut());
            let (resource, scope) =
                (with_edited_texts.resource(resource)?, with_edited_texts.scope(scope)?);
            with_edited_texts.push(resource, scope, data)?;
        }
        Ok(with_edited_texts)
    }

    /// Returns the trace with only these spans.
    pub fn only(&self, is_kept: impl Fn(Span<'_>) -> bool) -> Result<Self, TraceFull> {
        let mut rest = Self::new(self.id());
        for span in self.spans().filter(|span| is_kept(*span)) {
            let resource = rest.resource(span.resource().to_data())?;
            let scope = rest.scope(span.scope().to_data())?;
            rest.push(resource, scope, span.to_data())?;
        }
        Ok(rest)
    }
}

fn entity(writer: &mut Writer<'_>, data: EntityData) -> Result<(), TraceFull> {
    let mut texts = |texts: Vec<String>| -> Result<Vec<Text>, TraceFull> {
        texts.into_iter().map(|one| text(writer, &one)).collect()
    };
    let (id_keys, description_keys) = (texts(data.id_keys)?, texts(data.description_keys)?);
    let (schema_url, kind) = (text(writer, &data.schema_url)?, text(writer, &data.kind)?);
    writer.entity(schema_url, kind, &id_keys, &description_keys)
}

fn event(writer: &mut Writer<'_>, data: EventData) -> Result<(), TraceFull> {
    let since = writer.mark();
    attributes(writer, data.attributes)?;
    let head = EventHead {
        at: data.at,
        name: text(writer, &data.name)?,
        dropped_attributes: data.dropped_attributes,
    };
    writer.event(head, since)
}

fn link(writer: &mut Writer<'_>, data: LinkData) -> Result<(), TraceFull> {
    let since = writer.mark();
    attributes(writer, data.attributes)?;
    let head = LinkHead {
        trace_id: data.trace_id,
        span_id: data.span_id,
        trace_state: text(writer, &data.trace_state)?,
        flags: data.flags,
        dropped_attributes: data.dropped_attributes,
    };
    writer.link(head, since)
}

fn attributes(writer: &mut Writer<'_>, attributes: Vec<(String, Value)>) -> Result<(), TraceFull> {
    for (key, value) in attributes {
        let key = text(writer, &key)?;
        let value = cell(writer, value)?;
        writer.attribute(key, value);
    }
    Ok(())
}

fn cell(writer: &mut Writer<'_>, value: Value) -> Result<Cell, TraceFull> {
    Ok(match value {
        Value::Empty => Cell::Empty,
        Value::Bool(value) => Cell::Bool(value),
        Value::Int(value) => Cell::Int(value.into()),
        Value::Double(value) => Cell::Double(value.into()),
        Value::Str(value) => Cell::Str(text(writer, &value)?),
        Value::Bytes(bytes) => writer.bytes(&bytes)?,
        Value::Array(values) => {
            let since = writer.mark();
            for value in values {
                let value = cell(writer, value)?;
                writer.element(value);
            }
            writer.array(since)?
        }
        Value::Map(entries) => {
            let since = writer.mark();
            attributes(writer, entries)?;
            writer.map(since)?
        }
    })
}

fn text(writer: &mut Writer<'_>, text: &str) -> Result<Text, TraceFull> {
    // A `str` is UTF-8, so there is always a number.
    writer.text(text.as_bytes()).map(Option::unwrap_or_default)
}
