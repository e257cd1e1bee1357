//! Durations within bounds: parsing and formatting.

use std::{ops::RangeInclusive, time::Duration};

use source::{Fields, Item};

/// The longest duration that is accepted. A longer one would be a user error, and the longest could not be added to a
/// clock.
pub(super) const DURATION_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// The bounds of an optional pause.
pub(super) const PAUSE: RangeInclusive<Duration> = Duration::ZERO..=DURATION_MAX;

/// The bounds of a duration that must not be zero.
pub(super) const SPAN: RangeInclusive<Duration> = Duration::from_millis(1)..=DURATION_MAX;

/// Reads the duration under a key, within bounds.
pub(super) fn take(
    fields: &mut Fields<'_>,
    key: &str,
    range: &RangeInclusive<Duration>,
) -> Option<Duration> {
    within(&fields.take(key)?, range)
}

fn within(item: &Item<'_>, range: &RangeInclusive<Duration>) -> Option<Duration> {
    let duration = item.duration()?;
    let fits = range.contains(&duration);
    if !fits {
        item.misfit(&format!(
            "a duration from {} to {}",
            written(*range.start()),
            written(*range.end())
        ));
    }
    fits.then_some(duration)
}

/// Formats a duration as users write it: `1m30s`, `500ms`.
pub(super) fn written(duration: Duration) -> String {
    const UNITS: [(&str, u128); 6] = [
        ("h", 3_600_000_000_000),
        ("m", 60_000_000_000),
        ("s", 1_000_000_000),
        ("ms", 1_000_000),
        ("us", 1_000),
        ("ns", 1),
    ];
    let mut rest = duration.as_nanos();
    let mut out = String::new();
    for (unit, nanos) in UNITS {
        if rest >= nanos {
            out.push_str(&format!("{}{unit}", rest / nanos));
            rest %= nanos;
        }
    }
    if out.is_empty() { "0s".to_owned() } else { out }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        for (nanos, text) in [
            (0, "0s"),
            (1, "1ns"),
            (500_000_000, "500ms"),
            (90_000_000_000, "1m30s"),
            (86_400_000_000_000, "24h"),
        ] {
            let duration = Duration::from_nanos(nanos);
            assert_eq!(written(duration), text);
            assert_eq!(source::parse_duration(text), Some(duration));
        }
    }
}
