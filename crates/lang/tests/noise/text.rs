//! Generates inputs: noise, random sequences of words, and valid inputs with changes.

use super::{super::chance::Dice, words::PIECES};

/// Generates a line of one of the languages.
pub(super) fn line(right: &[&str], dice: &mut Dice) -> String {
    match dice.below(8) {
        0 => noise(dice),
        1 => soup("", dice),
        2 => soup(" ", dice),
        3 => dice.pick(right).to_owned(),
        _ => {
            let mut text = dice.pick(right).to_owned();
            for _ in 0..=dice.below(4) {
                text = changed(&text, dice);
            }
            text
        }
    }
}

/// Generates a document with lines that are changed, swapped or dropped.
pub(super) fn lines(right: &str, dice: &mut Dice) -> String {
    if dice.once_in(16) {
        return noise(dice);
    }
    let mut lines: Vec<String> = right.lines().map(str::to_owned).collect();
    for _ in 0..=dice.below(2) {
        let at = dice.below(lines.len());
        let other = dice.below(lines.len());
        match dice.below(8) {
            0 if lines.len() > 1 => drop(lines.remove(at)),
            1 => lines.swap(at, other),
            2 => lines.insert(at, lines[other].clone()),
            3 => lines[at] = format!("  {}", lines[at]),
            4 => lines[at] = lines[at].trim_start().to_owned(),
            _ => lines[at] = changed(&lines[at], dice),
        }
    }
    lines.join("\n")
}

/// Returns the bytes with some of them changed, dropped or inserted.
pub(super) fn bytes(right: &[u8], dice: &mut Dice) -> Vec<u8> {
    if dice.once_in(16) {
        return (0..dice.below(64)).map(|_| dice.next() as u8).collect();
    }
    let mut bytes = right.to_vec();
    for _ in 0..dice.below(4) {
        let at = dice.below(bytes.len() + 1);
        let end = (at + 1 + dice.below(16)).min(bytes.len());
        match dice.below(6) {
            0 => bytes.insert(at, dice.next() as u8),
            1 => bytes.truncate(at),
            2 if at < end => drop(bytes.drain(at..end)),
            3 if at < end => {
                let again = bytes[at..end].to_vec();
                bytes.splice(at..at, again);
            }
            _ if at < bytes.len() => bytes[at] ^= 1 << dice.below(8),
            _ => {}
        }
    }
    bytes
}

fn noise(dice: &mut Dice) -> String {
    let bytes: Vec<u8> = (0..dice.below(48)).map(|_| dice.next() as u8).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

fn soup(between: &str, dice: &mut Dice) -> String {
    let pieces: Vec<&str> = (0..dice.below(24)).map(|_| dice.pick(PIECES)).collect();
    pieces.join(between)
}

/// Returns the text with one word or character dropped, doubled, swapped or inserted.
fn changed(text: &str, dice: &mut Dice) -> String {
    let chars: Vec<char> = text.chars().collect();
    let at = dice.below(chars.len() + 1);
    let end = (at + 1 + dice.below(8)).min(chars.len());
    let (before, after): (String, String) =
        (chars[..at].iter().collect(), chars[end.max(at)..].iter().collect());
    let within: String = chars[at..end.max(at)].iter().collect();
    let piece = dice.pick(PIECES);
    match dice.below(6) {
        0 => format!("{before}{after}"),
        1 => format!("{before}{within}{within}{after}"),
        2 => format!("{before}{piece}{after}"),
        3 => format!("{before} {piece} {within}{after}"),
        4 => format!("{before}{}{after}", within.chars().rev().collect::<String>()),
        _ => format!("({before}{within}{after})"),
    }
}
