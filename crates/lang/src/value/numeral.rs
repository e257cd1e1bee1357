//! Numbers and durations as text: the grammar of literals, and of texts that contain one.
//!
//! ```text
//! number   = [ "-" ] whole [ "." digits ]             whole = "0" | a digit from 1 to 9 and digits
//! loose    = [ "-" | "+" ] digits [ "." digits ]
//! duration = [ "-" ] part { part }                     part = digits [ "." digits ] unit
//! unit     = "ns" | "us" | "µs" | "ms" | "s" | "m" | "h"
//! ```
//!
//! A text attribute is parsed as a number if it is compared with one. For `=` and `!=` it must match `number`: `"200"` is 200 and
//! `"12.50"` is 12.5, but `"007"` and `"+5"` are codes that consist of digits. For `<` and the other order comparisons, `loose`
//! is sufficient. Whitespace, exponents, hexadecimal digits, thousands separators and words such as `Infinity` are never part of
//! a number. An integer must fit 128 bits; a number with a fraction becomes the nearest double. A text that matches `duration`,
//! without whitespace, is a duration if it is a whole number of nanoseconds.

use std::{cmp::Ordering, fmt};

use source::duration_nanos;

/// Up to this value, 2^53, every integer is exact as a double.
pub(super) const WHOLE_DOUBLE_MAX: f64 = 9_007_199_254_740_992.0;

/// 2^127, the first power of two that `i128` cannot hold.
const INT_LIMIT: f64 = 170_141_183_460_469_231_731_687_303_715_884_105_728.0;

/// An exact number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Number {
    /// Wider than any number of a span: texts and JSON contain numbers that do not fit 64 bits.
    Int(i128),
    Double(f64),
}

impl Number {
    /// Compares two numbers; `None` if one of them is NaN.
    pub(crate) fn compare(self, other: Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Int(a), Self::Int(b)) => Some(a.cmp(&b)),
            (Self::Double(a), Self::Double(b)) => a.partial_cmp(&b),
            (Self::Int(a), Self::Double(b)) => compare_whole(a, b),
            (Self::Double(a), Self::Int(b)) => compare_whole(b, a).map(Ordering::reverse),
        }
    }

    /// Whether both are the same number, without rounding.
    pub(crate) fn equals(self, other: Self) -> bool {
        self.compare(other).is_some_and(Ordering::is_eq)
    }

    /// Returns the value as an integer, if it is one that fits 128 bits.
    pub(crate) fn whole(self) -> Option<i128> {
        match self {
            Self::Int(int) => Some(int),
            Self::Double(double) if double.fract() == 0.0 && double.abs() < INT_LIMIT => {
                Some(double as i128)
            }
            Self::Double(_) => None,
        }
    }

    pub(crate) fn is_nan(self) -> bool {
        matches!(self, Self::Double(double) if double.is_nan())
    }
}

/// Prints all digits, so that parsing returns the same number; with an exponent only beyond 128 bits.
impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Int(int) => write!(f, "{int}"),
            Self::Double(double) if !double.is_finite() => write!(f, "{double}"),
            Self::Double(double) if double.abs() >= INT_LIMIT => write!(f, "{double:e}"),
            // The shortest digits for this double would be another integer.
            Self::Double(double) if double.abs() > WHOLE_DOUBLE_MAX => {
                write!(f, "{}", double as i128)
            }
            Self::Double(double) => write!(f, "{double}"),
        }
    }
}

/// Parses a text as a number, for equality.
pub(crate) fn read_number(text: &str) -> Option<Number> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let padded = digits.len() > 1 && digits.starts_with('0') && !digits.starts_with("0.");
    if padded { None } else { read_loose(text).filter(|_| !text.starts_with('+')) }
}

/// Parses a text as a number, for order.
pub(crate) fn read_loose(text: &str) -> Option<Number> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (whole, fraction) = match unsigned.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (unsigned, None),
    };
    if !is_digits(whole) || !fraction.is_none_or(is_digits) {
        return None;
    }
    if fraction.is_none_or(|fraction| fraction.bytes().all(|b| b == b'0'))
        && let Ok(int) = text[..text.len() - unsigned.len() + whole.len()].parse()
    {
        return Some(Number::Int(int));
    }
    fraction?;
    text.parse().ok().filter(|double: &f64| double.is_finite()).map(Number::Double)
}

/// Parses a text as a duration, in nanoseconds.
pub(crate) fn read_duration(text: &str) -> Option<i128> {
    let (sign, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text),
    };
    let mut total = 0_i128;
    loop {
        let unit = rest.find(char::is_alphabetic).filter(|_| !rest.starts_with('-'))?;
        let end = rest[unit..].find(|c: char| !c.is_alphabetic());
        let end = end.map_or(rest.len(), |length| unit + length);
        total = total.checked_add(duration_nanos(&rest[..unit], &rest[unit..end])?)?;
        rest = &rest[end..];
        if rest.is_empty() {
            return Some(sign * total);
        }
    }
}

/// Formats a duration exactly, in the largest unit in which it is at least one.
pub(crate) fn show_duration(nanos: i128) -> String {
    let (unit, size) = match nanos.unsigned_abs() {
        0..1_000 => ("ns", 1),
        1_000..1_000_000 => ("us", 1_000),
        1_000_000..1_000_000_000 => ("ms", 1_000_000),
        _ => ("s", 1_000_000_000),
    };
    let sign = if nanos < 0 { "-" } else { "" };
    let (whole, rest) = (nanos.unsigned_abs() / size, nanos.unsigned_abs() % size);
    if rest == 0 {
        return format!("{sign}{whole}{unit}");
    }
    let places = size.ilog10() as usize;
    let fraction = format!("{rest:0places$}");
    format!("{sign}{whole}.{}{unit}", fraction.trim_end_matches('0'))
}

/// Compares an integer with a double, without rounding.
fn compare_whole(whole: i128, double: f64) -> Option<Ordering> {
    if double.is_nan() {
        return None;
    }
    if double >= INT_LIMIT {
        return Some(Ordering::Less);
    }
    if double < -INT_LIMIT {
        return Some(Ordering::Greater);
    }
    let floor = double.floor();
    let order = whole.cmp(&(floor as i128));
    Some(if order.is_eq() && double > floor { Ordering::Less } else { order })
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering::{Equal, Greater, Less};

    use super::{Number, read_duration, read_loose, read_number, show_duration};

    fn shown(number: Option<Number>) -> String {
        match number {
            None => "no".to_owned(),
            Some(Number::Int(int)) => int.to_string(),
            Some(Number::Double(double)) => format!("{double:?}"),
        }
    }

    #[test]
    fn texts_that_hold_a_number() {
        for (text, for_equality, for_order) in [
            ("42", "42", "42"),
            ("-3", "-3", "-3"),
            ("0", "0", "0"),
            ("-0", "0", "0"),
            ("12.50", "12.5", "12.5"),
            ("10.0", "10", "10"),
            ("0.5", "0.5", "0.5"),
            ("-0.5", "-0.5", "-0.5"),
            ("007", "no", "7"),
            ("00", "no", "0"),
            ("+5", "no", "5"),
            ("9223372036854775807", "9223372036854775807", "9223372036854775807"),
            ("18446744073709551616", "18446744073709551616", "18446744073709551616"),
            ("0999999999999999999999", "no", "999999999999999999999"),
            ("1000000000000000000000000000000000000000", "no", "no"),
            ("-9223372036854775808", "-9223372036854775808", "-9223372036854775808"),
            ("99999999999999999999.5", "1e20", "1e20"),
            ("", "no", "no"),
            ("-", "no", "no"),
            ("--1", "no", "no"),
            (".5", "no", "no"),
            ("5.", "no", "no"),
            ("1e3", "no", "no"),
            (" 42 ", "no", "no"),
            ("1,000", "no", "no"),
            ("0x1F", "no", "no"),
            ("Infinity", "no", "no"),
            ("NaN", "no", "no"),
        ] {
            assert_eq!(shown(read_number(text)), for_equality, "{text} for equality");
            assert_eq!(shown(read_loose(text)), for_order, "{text} for order");
        }
    }

    #[test]
    fn what_is_written_is_read_as_the_same_number() {
        for (number, written) in [
            (Number::Int(-7), "-7"),
            (Number::Double(5.0), "5"),
            (Number::Double(0.1), "0.1"),
            (Number::Double(1e-7), "0.0000001"),
            (Number::Double(1e21), "1000000000000000000000"),
            (Number::Double(1e23), "99999999999999991611392"),
        ] {
            assert_eq!(number.to_string(), written);
            assert!(read_number(written).is_some_and(|read| read.equals(number)), "{written}");
        }
        assert_eq!(Number::Double(1e300).to_string(), "1e300");
        assert_eq!(Number::Double(f64::NAN).to_string(), "NaN");
    }

    #[test]
    fn texts_that_hold_a_duration() {
        for (text, nanos) in [
            ("25ms", Some(25_000_000)),
            ("1.5s", Some(1_500_000_000)),
            ("0.9us", Some(900)),
            ("0.9µs", Some(900)),
            ("2m", Some(120_000_000_000)),
            ("1.1m", Some(66_000_000_000)),
            ("1h", Some(3_600_000_000_000)),
            ("-1ms", Some(-1_000_000)),
            ("1.000000001s", Some(1_000_000_001)),
            ("1.0000000001s", None),
            ("0.5ns", None),
            ("10 ms", None),
            ("5d", None),
            ("5\u{b5}s", Some(5_000)),
            ("5\u{3bc}s", Some(5_000)),
            ("1s500ms", Some(1_500_000_000)),
            ("1m30s", Some(90_000_000_000)),
            ("-1m30.5s", Some(-90_500_000_000)),
            ("1m-30s", None),
            ("--1s", None),
            ("1m30", None),
            ("1m 30s", None),
            ("5 seconds", None),
            ("ms", None),
            ("", None),
            ("1.2.3s", None),
            ("9999999999999999999999999999999999999h", None),
        ] {
            assert_eq!(read_duration(text), nanos, "{text}");
        }
    }

    #[test]
    fn durations_are_shown_exactly() {
        for (nanos, text) in [
            (0, "0ns"),
            (999, "999ns"),
            (1_499, "1.499us"),
            (99_600_000, "99.6ms"),
            (61_000_000_000, "61s"),
            (-5_000_001, "-5.000001ms"),
        ] {
            assert_eq!(show_duration(nanos), text);
        }
    }

    #[test]
    fn integers_and_doubles_compare_without_rounding() {
        let (int, double) = (Number::Int, Number::Double);
        for (a, b, order) in [
            (int(1), double(1.0), Some(Equal)),
            (int(2), double(1.5), Some(Greater)),
            (int(-2), double(-1.5), Some(Less)),
            (int(9_007_199_254_740_993), double(9_007_199_254_740_992.0), Some(Greater)),
            (int(i64::MAX.into()), double(9_223_372_036_854_775_808.0), Some(Less)),
            (int(i64::MIN.into()), double(-9_223_372_036_854_775_808.0), Some(Equal)),
            (int(0), double(f64::INFINITY), Some(Less)),
            (int(0), double(f64::NEG_INFINITY), Some(Greater)),
            (int(0), double(f64::NAN), None),
            (int(0), double(-0.0), Some(Equal)),
            (double(0.1), double(0.1), Some(Equal)),
        ] {
            assert_eq!(a.compare(b), order, "{a:?} {b:?}");
            assert_eq!(b.compare(a), order.map(std::cmp::Ordering::reverse), "{b:?} {a:?}");
        }
        assert_eq!(double(1e300).compare(int(i128::MAX)), Some(Greater));
    }
}
