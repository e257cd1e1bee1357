//! Times, and the words of strangers, as they may stand on a line.
//!
//! Deliberately absent: the width of a character on the screen. Every one counts as one column, so that columns behind
//! wide characters (日本) are a little off; nothing is lost by it.

/// The units of time, with their nanoseconds, the largest first.
const UNITS: [(&str, u64); 4] = [("s", 1_000_000_000), ("ms", 1_000_000), ("µs", 1_000), ("ns", 1)];

/// A time with three digits that count, in the unit that suits it; from 1000 s on, in whole seconds.
pub(crate) fn duration(nanos: u64) -> String {
    let mut step = 1;
    while nanos / step >= 1000 && step < UNITS[0].1 {
        step *= 10;
    }
    // Rounding comes before the choice of the unit: 999.9 µs are 1 ms.
    let rounded = nanos.saturating_add(step / 2) / step * step;
    let (unit, size) = UNITS.into_iter().find(|(_, size)| *size <= rounded).unwrap_or(("ns", 1));
    let (whole, rest) = (rounded / size, rounded % size);
    let number = format!("{whole}.{:02}", rest.saturating_mul(100) / size);
    format!("{} {unit}", number.trim_end_matches('0').trim_end_matches('.'))
}

/// A text on one line: what cannot be seen is escaped, and behind `chars_max` characters stands a `…`.
///
/// Backslashes stay as they are: this is to be read by people, who would rather see their regular expressions unharmed
/// than be able to tell `\n` from an escaped line break.
pub(crate) fn shown(text: &str, chars_max: usize) -> String {
    let mut line = String::new();
    let mut used = 0;
    for c in text.chars() {
        let piece = if is_hidden(c) { c.escape_default().to_string() } else { c.to_string() };
        used += piece.chars().count();
        if used > chars_max {
            line.truncate(line.trim_end().len());
            line.push('…');
            break;
        }
        line.push_str(&piece);
    }
    line.truncate(line.trim_end().len());
    line
}

/// A text of one or more lines in which nothing steers the terminal. Unlike a report it keeps its length.
pub fn harmless(text: &str) -> String {
    let lines = text.trim_end().lines().map(|line| shown(line, usize::MAX));
    lines.collect::<Vec<_>>().join("\n")
}

/// A piece of a document on one line: there a line break and the indentation behind it are only layout.
pub(crate) fn unfolded(text: &str, chars_max: usize) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    shown(&lines.join(" "), chars_max)
}

/// Breaks a line at its spaces, so that no part is longer than `columns` unless one word is.
pub(crate) fn wrapped(line: &str, columns: usize) -> Vec<String> {
    let mut parts = Vec::new();
    let mut part = String::new();
    let mut used = 0;
    for word in line.split(' ') {
        let length = word.chars().count();
        if used > 0 && used + 1 + length > columns {
            parts.push(std::mem::take(&mut part));
            used = 0;
        }
        if used > 0 {
            part.push(' ');
            used += 1;
        }
        part.push_str(word);
        used += length;
    }
    parts.push(part);
    parts
}

/// Whether a character would steer the terminal, turn the direction of the line, or not be seen at all.
///
/// The joiners U+200C and U+200D are not among them: languages and emoji need them.
pub(crate) fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::{duration, harmless, shown, unfolded, wrapped};

    #[test]
    fn times_have_three_digits_and_a_fitting_unit() {
        for (nanos, expected) in [
            (0, "0 ns"),
            (1, "1 ns"),
            (999, "999 ns"),
            (1_000, "1 µs"),
            (1_500, "1.5 µs"),
            (1_054, "1.05 µs"),
            (1_055, "1.06 µs"),
            (12_340, "12.3 µs"),
            (999_499, "999 µs"),
            (999_500, "1 ms"),
            (200_000_000, "200 ms"),
            (1_237_000_000, "1.24 s"),
            (90_000_000_000, "90 s"),
            (1_234_600_000_000, "1235 s"),
            (u64::MAX, "18446744073 s"),
        ] {
            assert_eq!(duration(nanos), expected, "{nanos}");
        }
    }

    #[test]
    fn strangers_cannot_leave_their_line() {
        for (text, expected) in [
            ("GET /cart", "GET /cart"),
            ("a\nb\r\tc", r"a\nb\r\tc"),
            ("\u{1b}[2J", r"\u{1b}[2J"),
            ("\u{9b}2J", r"\u{9b}2J"),
            ("\u{7f}\0", r"\u{7f}\u{0}"),
            ("x\u{202e}y\u{2066}", r"x\u{202e}y\u{2066}"),
            ("\u{feff}\u{200b}", r"\u{feff}\u{200b}"),
            ("ends in spaces  \u{a0}", "ends in spaces"),
            (r"\d+", r"\d+"),
            ("日本 é 👩\u{200d}💻", "日本 é 👩\u{200d}💻"),
        ] {
            assert_eq!(shown(text, 80), expected, "{text:?}");
        }
    }

    #[test]
    fn shortening_counts_characters_and_cuts_none() {
        for (text, expected) in [
            ("日本語", "日本語"),
            ("日本語で", "日本語…"),
            ("a\u{1b}", "a…"),
            ("ab cd", "ab…"),
            ("", ""),
        ] {
            assert_eq!(shown(text, 3), expected, "{text:?}");
        }
    }

    #[test]
    fn lines_stay_lines_and_steer_nothing() {
        assert_eq!(harmless("a\u{1b}[31m\n  b\u{7}\n"), "a\\u{1b}[31m\n  b\\u{7}");
    }

    #[test]
    fn layout_of_a_document_is_not_shown() {
        let selector = "span[name=\"a\"]\n    span[name=\"b\"]\r\n\n";
        assert_eq!(unfolded(selector, 80), r#"span[name="a"] span[name="b"]"#);
    }

    #[test]
    fn lines_break_at_spaces() {
        assert_eq!(wrapped("aa bb cc dddddddd e", 5), ["aa bb", "cc", "dddddddd", "e"]);
        assert_eq!(wrapped("", 5), [""]);
    }
}
