//! Durations as people write them: `10s`, `1m30s`, `1.5h`, `500ms`.

use std::time::Duration;

const UNITS: &[(&str, u64)] = &[
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Reads numbers with units, one after the other without space; a bare `0` needs none.
///
/// Exact to the nanosecond: what is finer, negative, or longer than about 584 years is refused.
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
        let (_, nanos) = UNITS.iter().find(|(name, _)| *name == &rest[number..unit_end])?;
        total = total.checked_add(scaled(&rest[..number], *nanos)?)?;
        rest = &rest[unit_end..];
    }
    Some(Duration::from_nanos(total))
}

/// A decimal number times a unit, if that is a whole number of nanoseconds.
fn scaled(number: &str, unit_nanos: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let mut total = whole.parse::<u64>().ok()?.checked_mul(unit_nanos)?;
    let mut place_nanos = unit_nanos;
    for digit in fraction.trim_end_matches('0').chars() {
        let tenth = place_nanos.is_multiple_of(10).then_some(place_nanos / 10)?;
        total = total.checked_add(u64::from(digit.to_digit(10)?).checked_mul(tenth)?)?;
        place_nanos = tenth;
    }
    Some(total)
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
            ("2µs", Some(2_000)),
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
            ("1.2.3s", None),
            ("99999999999999999999s", None),
            ("999999h999999999999h", None),
        ] {
            assert_eq!(parse_duration(text), nanos.map(Duration::from_nanos), "{text}");
        }
    }
}
