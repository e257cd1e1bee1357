//! Converts dates of HTTP and RFC 3339 to and from seconds since 1970.
//!
//! Deliberately absent: time zones, leap seconds, and the two obsolete forms of HTTP dates.

const DAY_SECONDS: u64 = 86_400;
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Parses a date like `Sun, 06 Nov 1994 08:49:37 GMT` to seconds since 1970.
pub(crate) fn read_http_date(text: &str) -> Option<u64> {
    let mut words = text.split_ascii_whitespace().skip(1);
    let day: u64 = words.next()?.parse().ok()?;
    let month = words.next()?;
    let month = MONTHS.iter().position(|it| *it == month)? as u64 + 1;
    let year: u64 = words.next()?.parse().ok()?;
    let mut clock = words.next()?.split(':').map(|part| part.parse::<u64>().ok());
    let (hour, minute, second) = (clock.next()??, clock.next()??, clock.next()??);
    if words.next()? != "GMT" || !(1970..10_000).contains(&year) || !(1..32).contains(&day) {
        return None;
    }
    Some(days(year, month, day) * DAY_SECONDS + hour * 3600 + minute * 60 + second)
}

/// Formats a time like `1994-11-06T08:49:37.000000000Z`.
pub(crate) fn write_rfc3339(unix_nanos: u64) -> String {
    let (seconds, nanos) = (unix_nanos / 1_000_000_000, unix_nanos % 1_000_000_000);
    let (year, month, day) = date(seconds / DAY_SECONDS);
    let second = seconds % DAY_SECONDS;
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{nanos:09}Z")
}

/// Returns the days from 1970 to a date. Years begin in March here, so that the leap day is the last of a year.
fn days(year: u64, month: u64, day: u64) -> u64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year / 400, year % 400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let of_era = of_era * 365 + of_era / 4 - of_era / 100 + of_year;
    era * 146_097 + of_era - 719_468
}

/// The inverse of [`days`].
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year + u64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::{date, days, read_http_date, write_rfc3339};

    #[test]
    fn a_date_is_read_and_written() {
        let cases = [
            ("Thu, 01 Jan 1970 00:00:00 GMT", Some(0), "1970-01-01T00:00:00.000000000Z"),
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(784_111_777), "1994-11-06T08:49:37.000000000Z"),
            (
                "Thu, 29 Feb 2024 23:59:59 GMT",
                Some(1_709_251_199),
                "2024-02-29T23:59:59.000000000Z",
            ),
            ("Sun, 06 Nov 1994 08:49:37 CET", None, ""),
            ("Sunday, 06-Nov-94 08:49:37 GMT", None, ""),
            ("soon", None, ""),
        ];
        for (text, seconds, written) in cases {
            assert_eq!(read_http_date(text), seconds, "{text}");
            if let Some(seconds) = seconds {
                assert_eq!(write_rfc3339(seconds * 1_000_000_000), written);
            }
        }
    }

    #[test]
    fn every_day_of_two_centuries_is_its_own() {
        for day in 0..73_000 {
            let (year, month, of_month) = date(day);
            assert_eq!(days(year, month, of_month), day);
        }
    }
}
