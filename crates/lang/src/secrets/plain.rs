//! A text without the ways to write it: what JSON, Rust and URLs escape, once or more often.
//!
//! Every way to write a character comes to the same bytes. A backslash is left out, and a line break is the letter that stands
//! for it behind one (`n`), so that it does not matter how often a text was escaped, nor what stands before it. Two texts that
//! differ may become the same; for what hides secrets that is the safe side.

use std::ops::Range;

/// A byte of the plain text, and where it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unit {
    pub(super) byte: u8,
    pub(super) at: Range<usize>,
}

/// Which ways to write a text are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Escapes {
    /// Backslashes alone: what looks like the code of a character may be a backslash, and then a text that begins so.
    Letters,
    /// Those behind a backslash.
    Backslash,
    /// Those of URLs as well.
    All,
}

impl Escapes {
    /// The ways that are worth a walk over a text.
    pub(super) fn in_text(bytes: &[u8]) -> impl Iterator<Item = Self> {
        let has = |sought: &[u8]| bytes.iter().any(|byte| sought.contains(byte));
        let letters = bytes.windows(2).any(|pair| pair == b"\\u").then_some(Self::Letters);
        let backslash = has(b"\\").then_some(Self::Backslash);
        letters.into_iter().chain(backslash).chain(has(b"%+").then_some(Self::All))
    }
}

/// Tells each byte of the plain text.
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

/// All of the plain text.
pub(super) fn plain(text: &str, escapes: Escapes) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    each(text.as_bytes(), escapes, |unit| bytes.push(unit.byte));
    bytes
}

enum Char {
    Byte(u8),
    Unicode(char),
}

/// The byte that stands for all ways to write it.
fn folded(byte: u8, escapes: Escapes) -> Option<u8> {
    match byte {
        b'\\' => None,
        b'\n' => Some(b'n'),
        b'\r' => Some(b'r'),
        b'\t' => Some(b't'),
        0x08 => Some(b'b'),
        0x0c => Some(b'f'),
        0 => Some(b'0'),
        // As a form sends it.
        b'+' if escapes == Escapes::All => Some(b' '),
        byte => Some(byte),
    }
}

/// `u00e9`, two of them for what UTF-16 has in two, or `u{e9}`; and where it ends.
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

/// `%e9`, `%25e9` and so on; and where it ends.
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
