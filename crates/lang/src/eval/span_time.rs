//! The start, the end and the duration of a span, as far as it reports them.

use model::trace::Span;

/// The time that a span lacks. OTLP encodes an unknown time as 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeLack {
    NoStart,
    NoEnd,
    /// The reported end is before the start, so one of the two is wrong.
    EndsEarly,
}

impl TimeLack {
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::NoStart => "has no start",
            Self::NoEnd => "has no end",
            Self::EndsEarly => "ends before it starts",
        }
    }
}

/// Returns the start of a span, in nanoseconds.
pub(crate) fn start_of(span: Span<'_>) -> Option<u64> {
    Some(span.start().as_nanos()).filter(|start| *start > 0)
}

/// Returns the end of a span, in nanoseconds.
pub(crate) fn end_of(span: Span<'_>) -> Option<u64> {
    Some(span.end().as_nanos()).filter(|end| *end > 0 && *end >= span.start().as_nanos())
}

/// Returns the time that a span lacks, if any.
pub(crate) fn time_lack(span: Span<'_>) -> Option<TimeLack> {
    match (start_of(span), end_of(span)) {
        (_, None) if span.end().as_nanos() == 0 => Some(TimeLack::NoEnd),
        (_, None) => Some(TimeLack::EndsEarly),
        (None, _) => Some(TimeLack::NoStart),
        (Some(_), Some(_)) => None,
    }
}

/// Returns the duration of a span, in nanoseconds.
pub(crate) fn duration(span: Span<'_>) -> Result<i128, TimeLack> {
    match time_lack(span) {
        None => Ok(i128::from(span.end().as_nanos()) - i128::from(span.start().as_nanos())),
        Some(lack) => Err(lack),
    }
}
