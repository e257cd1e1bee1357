//! Spans and strings of a trace by their numbers: code that visits many spans compares numbers, not texts.

use super::{
    Resource, ResourceIx, Span, SpanIx, Trace, ValueRef,
    store::{AttributeRow, Cell},
    strings::Text,
};

/// An attribute of a span with strings as numbers.
#[derive(Clone, Copy, Debug)]
pub struct NumberedAttribute<'a> {
    trace: &'a Trace,
    row: &'a AttributeRow,
}

impl SpanIx {
    /// Returns the index of the span in order of arrival, from 0.
    pub fn number(self) -> usize {
        self.0 as usize
    }
}

impl Trace {
    /// Returns the span with this index in order of arrival.
    pub fn numbered_span(&self, number: usize) -> Span<'_> {
        self.span(SpanIx(number as u32))
    }

    /// Returns all resources, in order of arrival.
    pub fn resources(&self) -> impl Iterator<Item = Resource<'_>> {
        (0..self.resources.len()).map(|number| Resource::new(self, ResourceIx(number as u32)))
    }

    /// Returns the number of a string, if the trace contains it.
    pub fn text_number(&self, text: &str) -> Option<u32> {
        self.strings.find(text).map(|text| text.0)
    }

    /// Returns the string with this number, which MUST come from this trace.
    pub fn text(&self, number: u32) -> &str {
        self.strings.get(Text(number))
    }

    /// Returns the number of a span's name.
    pub fn name_number(&self, span: SpanIx) -> u32 {
        self.spans[span.0 as usize].head.name.0
    }

    /// Returns the attributes of a span, in the order sent.
    pub fn numbered_attributes(
        &self,
        span: SpanIx,
    ) -> impl DoubleEndedIterator<Item = NumberedAttribute<'_>> {
        let run = self.spans[span.0 as usize].attributes;
        self.attributes[run.range()].iter().map(|row| NumberedAttribute { trace: self, row })
    }
}

impl<'a> NumberedAttribute<'a> {
    /// Returns the number of its key.
    pub fn key(self) -> u32 {
        self.row.key.0
    }

    /// Returns the number of its value, if that is a text.
    pub fn text(self) -> Option<u32> {
        match self.row.value {
            Cell::Str(text) => Some(text.0),
            _ => None,
        }
    }

    /// Returns its value.
    pub fn value(self) -> ValueRef<'a> {
        ValueRef::new(self.trace, self.row.value)
    }
}
