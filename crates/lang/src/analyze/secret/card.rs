//! Recognizes payment card numbers: digits that a card network issues, of the right length, with a valid check digit.

use super::Secret;

/// The range of the first four digits of a number (first and last value), and the allowed numbers of digits.
const NETWORKS: &[(u32, u32, &[usize])] = &[
    (4000, 4999, &[13, 16, 19]),
    (5100, 5599, &[16]),
    (2221, 2720, &[16]),
    (3400, 3499, &[15]),
    (3700, 3799, &[15]),
    (6011, 6011, &[16]),
    (6500, 6599, &[16]),
    (3528, 3589, &[16]),
    (3000, 3059, &[14]),
    (3600, 3699, &[14]),
    (3800, 3899, &[14]),
];

/// The allowed groupings of the digits of a number.
const GROUPINGS: &[&[usize]] = &[&[4, 4, 4, 4], &[4, 6, 5], &[4, 6, 4]];
const DIGITS_MIN: usize = 13;
const DIGITS_MAX: usize = 19;

pub(super) fn find(text: &str) -> Option<Secret> {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if !bytes[at].is_ascii_digit() {
            at += 1;
            continue;
        }
        // All of `12 34-56`: the longest piece that can be one card number.
        let is_part = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b' ' | b'-');
        let len = bytes[at..].iter().take_while(|byte| is_part(byte)).count();
        let end = at + text[at..at + len].trim_end_matches([' ', '-']).len();
        let stands_alone = || !text[..at].ends_with(joins) && !text[end..].starts_with(joins);
        if end - at >= DIGITS_MIN && stands_alone() && is_number(&text[at..end]) {
            return Some(Secret { what: "a card number", chars: end - at });
        }
        at += len;
    }
    None
}

/// Whether a character next to digits makes them part of something else, such as an id.
fn joins(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '-' | '_' | '+' | '$')
}

fn is_number(text: &str) -> bool {
    let groups: Vec<&str> = text.split([' ', '-']).take(DIGITS_MAX).collect();
    let lens: Vec<usize> = groups.iter().map(|group| group.len()).collect();
    let is_grouped = groups.len() == 1 || GROUPINGS.contains(&lens.as_slice());
    let digits: Vec<u32> = text
        .bytes()
        .filter(u8::is_ascii_digit)
        .map(|byte| u32::from(byte - b'0'))
        .take(DIGITS_MAX + 1)
        .collect();
    is_grouped
        && (DIGITS_MIN..=DIGITS_MAX).contains(&digits.len())
        && is_of_a_network(&digits)
        && has_check_digit(&digits)
}

fn is_of_a_network(digits: &[u32]) -> bool {
    let first = digits.iter().take(4).fold(0, |number, digit| number * 10 + digit);
    let fits = |(from, to, lens): &(u32, u32, &[usize])| {
        (*from..=*to).contains(&first) && lens.contains(&digits.len())
    };
    NETWORKS.iter().any(fits)
}

/// Checks the Luhn sum: every second digit from the right is doubled, its digits are added, and the sum ends in zero.
fn has_check_digit(digits: &[u32]) -> bool {
    let add = |(place, digit): (usize, &u32)| match place % 2 {
        0 => *digit,
        _ => digit * 2 / 10 + digit * 2 % 10,
    };
    digits.iter().rev().enumerate().map(add).sum::<u32>() % 10 == 0
}
