//! A timestamp in nanoseconds since the Unix epoch, as in OTLP.
//!
//! Deliberately absent: `now`. The clock is passed down from `main`.

use std::{fmt, time::Duration};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

/// A timestamp in nanoseconds since the Unix epoch. Serialized as RFC 3339 in UTC, with all nine digits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(u64);

impl Timestamp {
    /// Creates the timestamp this many nanoseconds after the epoch.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Returns the time of an HTTP header such as `Date`; none for another form.
    pub fn of_http_date(text: &str) -> Option<Self> {
        let moment = jiff::fmt::rfc2822::parse(text).ok()?.timestamp();
        u64::try_from(moment.as_nanosecond()).ok().map(Self)
    }

    /// Returns the nanoseconds since the epoch.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Returns the full seconds since the epoch.
    pub const fn as_secs(self) -> u64 {
        self.0 / 1_000_000_000
    }

    /// Returns the time from `earlier` to this timestamp; zero if clocks disagree about the order.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// Returns the timestamp `earlier` before this one, saturating at the epoch.
    pub fn minus(self, earlier: Duration) -> Self {
        let nanos = u64::try_from(earlier.as_nanos()).unwrap_or(u64::MAX);
        Self(self.0.saturating_sub(nanos))
    }

    /// Returns the timestamp `later` after this one, saturating at the maximum.
    pub fn plus(self, later: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(later.as_nanos()).unwrap_or(u64::MAX)))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_nanosecond(i128::from(self.0)) {
            Ok(moment) => write!(f, "{moment:.9}"),
            // A 64-bit count of nanoseconds ends in 2554, long before jiff's year 9999.
            Err(_) => write!(f, "{} ns", self.0),
        }
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let moment: jiff::Timestamp =
            text.parse().map_err(|error| D::Error::custom(format!("`{text}`: {error}")))?;
        u64::try_from(moment.as_nanosecond())
            .map(Self)
            .map_err(|_| D::Error::custom(format!("`{text}` is before 1970 or after 2554")))
    }
}

#[cfg(test)]
mod tests {
    use super::Timestamp;

    #[test]
    fn every_nanosecond_survives_the_text() {
        for nanos in [0, 1, 1_794_708_000_123_456_789, u64::MAX] {
            let written =
                serde_json::to_string(&Timestamp(nanos)).expect("a moment can be written");
            let read: Timestamp = serde_json::from_str(&written).expect("and read back");
            assert_eq!(read.as_nanos(), nanos, "{written}");
        }
        assert_eq!(Timestamp(1).to_string(), "1970-01-01T00:00:00.000000001Z");
    }

    #[test]
    fn the_date_of_a_response_is_read() {
        let read = Timestamp::of_http_date("Sun, 06 Nov 1994 08:49:37 GMT").map(Timestamp::as_secs);
        assert_eq!(read, Some(784_111_777));
        assert_eq!(Timestamp::of_http_date("yesterday"), None);
    }
}
