//! Parses durations as users write them: `10s`, `1m30s`, `1.5h`, `500ms`.
//!
//! Only this module defines the units and their values. An embedded language with its own durations uses both through
//! [`is_duration_unit`] and [`duration_nanos`].

use std::time::Duration;

/// The micro sign and the Greek letter look the same, and keyboards produce either.
const UNITS: &[(&str, i128)] = &[
    ("ns", 1),
    ("us", 1_000),
    ("\u{b5}s", 1_000),
    ("\u{3bc}s", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// The maximum number of fraction digits. No integral number of nanoseconds needs more: an hour is 2^13 × 3^2 × 5^11 of
/// them.
const FRACTION_DIGITS_MAX: usize = 13;

/// Parses numbers with units, one after the other without spaces. A bare `0` needs no unit.
///
/// Exact to the nanosecond: returns `None` for a value that is finer, negative, or longer than about 584 years.
pub fn parse_duration(text: &str) -> Option<Duration> {
    match text {
        "" => return None,
        "0" => return Some(Duration::ZERO),
        _ => {}
    }
    let mut rest = text;
    let mut total = 0_u64;
    while !rest.is_empty() {
        let number = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let unit_end = rest[number..]
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .map_or(rest.len(), |length| number + length);
        let nanos = duration_nanos(&rest[..number], &rest[number..unit_end])?;
        total = total.checked_add(u64::try_from(nanos).ok()?)?;
        rest = &rest[unit_end..];
    }
    Some(Duration::from_nanos(total))
}

/// Returns whether a word is a unit of time: `ns`, `us` (also with a `µ`), `ms`, `s`, `m` or `h`.
pub fn is_duration_unit(word: &str) -> bool {
    unit_nanos(word).is_some()
}

/// Converts a decimal number of a unit to nanoseconds, if the unit exists and the result is an integer.
///
/// The number is digits, optionally with a leading `-`, and optionally with a point and more digits.
pub fn duration_nanos(number: &str, unit: &str) -> Option<i128> {
    let unit = unit_nanos(unit)?;
    let (sign, digits) = match number.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, number),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
    if !is_digits(whole) || !is_digits(fraction) {
        return None;
    }
    let fraction = fraction.trim_end_matches('0');
    if fraction.len() > FRACTION_DIGITS_MAX {
        return None;
    }
    let parts = 10_i128.pow(u32::try_from(fraction.len()).ok()?);
    let part = format!("0{fraction}").parse::<i128>().ok()?.checked_mul(unit)?;
    if part % parts != 0 {
        return None;
    }
    let total = whole.parse::<i128>().ok()?.checked_mul(unit)?.checked_add(part / parts)?;
    Some(sign * total)
}

fn unit_nanos(word: &str) -> Option<i128> {
    UNITS.iter().find(|(name, _)| *name == word).map(|(_, nanos)| *nanos)
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_exact_or_refused() {
        for (text, nanos) in [
            ("0", Some(0)),
            ("0s", Some(0)),
            ("10s", Some(10_000_000_000)),
            ("500ms", Some(500_000_000)),
            ("1m", Some(60_000_000_000)),
            ("1m30s", Some(90_000_000_000)),
            ("1.5h", Some(5_400_000_000_000)),
            ("1.50s", Some(1_500_000_000)),
            ("2us", Some(2_000)),
            ("2\u{b5}s", Some(2_000)),
            ("2\u{3bc}s", Some(2_000)),
            ("0.0000000000005h1s", None),
            ("0.000000000005h1s", Some(1_000_000_018)),
            ("7ns", Some(7)),
            ("1.000000001s", Some(1_000_000_001)),
            ("1.0000000001s", None),
            ("0.5ns", None),
            ("", None),
            ("s", None),
            ("5", None),
            ("5 s", None),
            ("-5s", None),
            ("5d", None),
            ("5sm", None),
            ("5s3", None),
            (".5s", None),
            ("5.s", None),
            ("1s-1s", None),
            ("1.2.3s", None),
            ("99999999999999999999s", None),
            ("999999h999999999999h", None),
        ] {
            assert_eq!(parse_duration(text), nanos.map(Duration::from_nanos), "{text}");
        }
    }

    #[test]
    fn a_number_of_a_unit_is_exact_or_refused() {
        for (number, unit, nanos) in [
            ("25", "ms", Some(25_000_000)),
            ("-1.5", "s", Some(-1_500_000_000)),
            ("1.1", "m", Some(66_000_000_000)),
            ("0.9", "\u{b5}s", Some(900)),
            ("0.9", "\u{3bc}s", Some(900)),
            ("0.0000000000005", "h", None),
            ("0.0000000000025", "h", Some(9)),
            ("1.00000000000000000000", "ns", Some(1)),
            ("300000000000000", "h", Some(1_080_000_000_000_000_000_000_000_000)),
            ("9999999999999999999999999999999999999", "h", None),
            ("0.5", "ns", None),
            ("+1", "s", None),
            ("--1", "s", None),
            ("1", "d", None),
            ("", "s", None),
            ("1.", "s", None),
            (".1", "s", None),
            ("1.2.3", "s", None),
        ] {
            assert_eq!(duration_nanos(number, unit), nanos, "{number}{unit}");
        }
        assert!(is_duration_unit("h") && !is_duration_unit("d") && !is_duration_unit(""));
    }
}
