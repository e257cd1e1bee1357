//! The W3C `traceparent` header: the trace that a request continues.

use std::{fmt, str::FromStr};

use model::{SpanId, TraceId};
use telemetry::plan::Level;

/// A trace context that work continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TraceParent {
    pub(crate) trace_id: TraceId,
    pub(crate) span_id: SpanId,
    pub(crate) sampled: bool,
    /// Whether a caller made the sampling decision: then no exporter samples the trace any more.
    pub(crate) followed: bool,
    /// The level of this span. Its children have the same or a finer level, so that no exporter gets a span without its parent.
    pub(crate) level: Level,
}

/// The suffix by which the database stores that the flag came from a caller; the header has no field for it.
const FOLLOWED: &str = " followed";

impl TraceParent {
    /// Returns the context of another span of the same trace.
    pub(crate) fn at(self, span_id: SpanId) -> Self {
        Self { span_id, ..self }
    }

    /// Encodes the context for the database.
    pub(crate) fn stored(&self) -> String {
        format!("{self}{}", if self.followed { FOLLOWED } else { "" })
    }

    /// Decodes a context from the database.
    pub(crate) fn from_stored(text: &str) -> Option<Self> {
        let header = text.strip_suffix(FOLLOWED);
        let parent: Self = header.unwrap_or(text).parse().ok()?;
        Some(Self { followed: header.is_some(), ..parent })
    }
}

/// An invalid header; the specification requires to ignore it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct InvalidTraceParent;

impl FromStr for TraceParent {
    type Err = InvalidTraceParent;

    fn from_str(text: &str) -> Result<Self, InvalidTraceParent> {
        let mut parts = text.trim().split('-');
        let mut part = || parts.next().ok_or(InvalidTraceParent);
        let (version, trace, span, flags) = (part()?, part()?, part()?, part()?);
        let later_version = version != "00";
        let is_hex = |text: &str| text.len() == 2 && text.bytes().all(|b| b.is_ascii_hexdigit());
        if !is_hex(version) || version == "ff" || !is_hex(flags) {
            return Err(InvalidTraceParent);
        }
        if parts.next().is_some() && !later_version {
            return Err(InvalidTraceParent);
        }
        Ok(Self {
            trace_id: trace.parse().map_err(|_| InvalidTraceParent)?,
            span_id: span.parse().map_err(|_| InvalidTraceParent)?,
            sampled: u8::from_str_radix(flags, 16).is_ok_and(|flags| flags & 1 == 1),
            followed: true,
            level: Level::Info,
        })
    }
}

impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{}-{}-{:02x}", self.trace_id, self.span_id, u8::from(self.sampled))
    }
}

#[cfg(test)]
mod tests {
    use super::TraceParent;

    #[test]
    fn only_what_the_specification_allows_is_read() {
        let (trace, span) = ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331");
        let cases = [
            (format!("00-{trace}-{span}-01"), Some(true)),
            (format!("00-{trace}-{span}-00"), Some(false)),
            (format!("cc-{trace}-{span}-01-later"), Some(true)),
            (format!("00-{trace}-{span}-01-more"), None),
            (format!("ff-{trace}-{span}-01"), None),
            (format!("00-{}-{span}-01", "0".repeat(32)), None),
            (format!("00-{trace}-{span}-1"), None),
            (format!("00-{trace}-{span}"), None),
            (String::new(), None),
        ];
        for (text, sampled) in cases {
            let read = text.parse::<TraceParent>();
            assert_eq!(read.as_ref().ok().map(|parent| parent.sampled), sampled, "{text}");
        }
    }

    #[test]
    fn it_is_written_as_it_is_read() {
        let text = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        assert_eq!(text.parse::<TraceParent>().expect("valid").to_string(), text);
    }

    #[test]
    fn the_record_keeps_whose_decision_it_was() {
        let text = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let remote = text.parse::<TraceParent>().expect("valid");
        for parent in [remote, TraceParent { followed: false, ..remote }] {
            assert_eq!(TraceParent::from_stored(&parent.stored()), Some(parent));
        }
    }
}
