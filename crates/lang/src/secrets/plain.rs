//! Decodes a text to a plain form: undoes the escapes of JSON, Rust and URLs, applied once or several times.
//!
//! All encodings of a character decode to the same bytes. A backslash is dropped, and a line break becomes the letter of its
//! escape (`n`), so that the number of escapings and the text before it do not matter. Two different texts may get the same plain
//! form; for masking secrets that is the safe side.

use std::ops::Range;

/// A byte of the plain text, and its range in the original text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unit {
    pub(super) byte: u8,
    pub(super) at: Range<usize>,
}

/// The set of escapes to decode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Escapes {
    /// Drops backslashes only: `\u…` may also be a backslash followed by a text that looks like the digits of an escape.
    Letters,
    /// Decodes the escapes after a backslash.
    Backslash,
    /// Decodes the escapes of URLs as well.
    All,
}

impl Escapes {
    /// Returns the sets of escapes that can occur in a text.
    pub(super) fn in_text(bytes: &[u8]) -> impl Iterator<Item = Self> {
        let has = |sought: &[u8]| bytes.iter().any(|byte| sought.contains(byte));
        let letters = bytes.windows(2).any(|pair| pair == b"\\u").then_some(Self::Letters);
        let backslash = has(b"\\").then_some(Self::Backslash);
        letters.into_iter().chain(backslash).chain(has(b"%+").then_some(Self::All))
    }
}

/// Calls `tell` with each byte of the plain text.
pub(super) fn each(bytes: &[u8], escapes: Escapes, mut tell: impl FnMut(Unit)) {
    let mut at = 0;
    while at < bytes.len() {
        let began = at;
        at += bytes[at..].iter().take_while(|byte| **byte == b'\\').count();
        let is_escaped = at > began;
        let Some(&byte) = bytes.get(at) else { break };
        let (char, after) = match byte {
            b'u' if is_escaped && escapes != Escapes::Letters => unicode(bytes, at),
            b'%' if escapes == Escapes::All => percent(bytes, at),
            _ => None,
        }
        .unwrap_or((Char::Byte(byte), at + 1));
        at = after;
        let mut utf8 = [0; 4];
        let written = match char {
            Char::Byte(byte) => {
                utf8[0] = byte;
                &utf8[..1]
            }
            Char::Unicode(char) => char.encode_utf8(&mut utf8).as_bytes(),
        };
        for byte in written.iter().filter_map(|byte| folded(*byte, escapes)) {
            tell(Unit { byte, at: began..after });
        }
    }
}

/// Returns the complete plain text.
pub(super) fn plain(text: &str, escapes: Escapes) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    each(text.as_bytes(), escapes, |unit| bytes.push(unit.byte));
    bytes
}

enum Char {
    Byte(u8),
    Unicode(char),
}

/// Returns the byte that represents all encodings of this byte.
fn folded(byte: u8, escapes: Escapes) -> Option<u8> {
    match byte {
        b'\\' => None,
        b'\n' => Some(b'n'),
        b'\r' => Some(b'r'),
        b'\t' => Some(b't'),
        0x08 => Some(b'b'),
        0x0c => Some(b'f'),
        0 => Some(b'0'),
        // `+` is a space in form encoding.
        b'+' if escapes == Escapes::All => Some(b' '),
        byte => Some(byte),
    }
}

/// Decodes `u00e9`, a UTF-16 surrogate pair of them, or `u{e9}`. Also returns the end.
fn unicode(bytes: &[u8], at: usize) -> Option<(Char, usize)> {
    if bytes.get(at + 1) == Some(&b'{') {
        let digits = bytes[at + 2..].iter().take(7).position(|byte| *byte == b'}')?;
        let code = hex(&bytes[at + 2..at + 2 + digits])?;
        return Some((Char::Unicode(char::from_u32(code)?), at + 3 + digits));
    }
    let first = hex(bytes.get(at + 1..at + 5)?)?;
    if let Some(char) = char::from_u32(first) {
        return Some((Char::Unicode(char), at + 5));
    }
    let run = bytes[at + 5..].iter().take_while(|byte| **byte == b'\\').count();
    let second = at + 5 + run;
    if run == 0 || bytes.get(second) != Some(&b'u') {
        return None;
    }
    let second_unit = hex(bytes.get(second + 1..second + 5)?)?;
    let units = [u16::try_from(first).ok()?, u16::try_from(second_unit).ok()?];
    let char = char::decode_utf16(units).next()?.ok()?;
    Some((Char::Unicode(char), second + 5))
}

/// Decodes `%e9`, `%25e9` and so on. Also returns the end.
fn percent(bytes: &[u8], at: usize) -> Option<(Char, usize)> {
    let pair = |at: usize| hex(bytes.get(at..at + 2)?);
    let mut digits = at + 1;
    while pair(digits) == Some(0x25) && pair(digits + 2).is_some() {
        digits += 2;
    }
    Some((Char::Byte(u8::try_from(pair(digits)?).ok()?), digits + 2))
}

fn hex(digits: &[u8]) -> Option<u32> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}
