//! Formats durations, the status of a trigger, and untrusted text for one line.
//!
//! Deliberately absent: the width of a character on the screen. Every character counts as one column, so that columns
//! behind wide characters (日本) are slightly misaligned; no text is lost by it.

use model::TriggerStatus;

/// The units of time, with their nanoseconds, the largest first.
const UNITS: [(&str, u64); 4] = [("s", 1_000_000_000), ("ms", 1_000_000), ("µs", 1_000), ("ns", 1)];

/// The upper bound for the name of a status, in characters.
const STATUS_CHARS_MAX: usize = 100;

/// Formats the status of a trigger, with its name if it has one.
pub(crate) fn status_words(status: &TriggerStatus<'_>) -> String {
    match status.name {
        "" => status.code.to_string(),
        name => format!("{} {}", status.code, shown(name, STATUS_CHARS_MAX)),
    }
}

/// Formats a duration with three significant digits, in the unit that fits; from 1000 s on, in whole seconds.
pub fn duration(nanos: u64) -> String {
    let mut step = 1;
    while nanos / step >= 1000 && step < UNITS[0].1 {
        step *= 10;
    }
    // Rounding precedes the choice of the unit: 999.9 µs are 1 ms.
    let rounded = nanos.saturating_add(step / 2) / step * step;
    let (unit, size) = UNITS.into_iter().find(|(_, size)| *size <= rounded).unwrap_or(("ns", 1));
    let (whole, rest) = (rounded / size, rounded % size);
    let number = format!("{whole}.{:02}", rest.saturating_mul(100) / size);
    format!("{} {unit}", number.trim_end_matches('0').trim_end_matches('.'))
}

/// Returns a text on one line: escapes invisible characters, and truncates with a `…` after `chars_max` characters.
///
/// Backslashes stay as they are: people read this, and unchanged regular expressions matter more to them than a
/// distinction between `\n` and an escaped line break.
pub(crate) fn shown(text: &str, chars_max: usize) -> String {
    let mut line = String::new();
    let mut room = chars_max;
    let mut before = None;
    for c in text.chars() {
        let letters = (is_hidden(c) || begins_command(before, c)).then(|| escaped(c));
        // An escaped character is ASCII.
        let width = letters.as_ref().map_or(1, String::len);
        if width > room {
            line.truncate(line.trim_end().len());
            line.push('…');
            break;
        }
        room -= width;
        match letters {
            Some(letters) => line.push_str(&letters),
            None => line.push(c),
        }
        before = Some(c);
    }
    line.truncate(line.trim_end().len());
    line
}

/// Escapes everything in a text of one or more lines that a terminal or a CI pipeline would interpret. Unlike a report,
/// the text is not truncated.
pub fn harmless(text: &str) -> String {
    let lines = text.trim_end().lines().map(|line| no_command(&shown(line, usize::MAX)));
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns a text of one or more lines with up to `chars_max` characters, escaped like [`harmless`], and whether it is longer.
pub(crate) fn block(text: &str, chars_max: usize) -> (String, bool) {
    let mut lines: Vec<String> = Vec::new();
    let mut room = chars_max;
    for line in text.trim_end().lines() {
        if room == 0 {
            return (lines.join("\n"), true);
        }
        // A tab is layout here.
        let line: String = line.chars().take(room + 1).collect::<String>().replace('\t', "    ");
        let whole = shown(&line, usize::MAX);
        let width = whole.chars().count();
        if width > room {
            lines.push(no_command(&shown(&line, room)));
            return (lines.join("\n"), true);
        }
        lines.push(no_command(&whole));
        // The line break counts too.
        room = room.saturating_sub(width + 1);
    }
    (lines.join("\n"), false)
}

/// Returns a piece of a document on one line: in a document a line break and the indentation behind it are only layout.
pub(crate) fn unfolded(text: &str, chars_max: usize) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    shown(&lines.join(" "), chars_max)
}

/// Wraps a line at its spaces, so that no part is longer than `columns` unless a single word is.
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

/// Escapes a visible text for any position in XML or HTML. [`shown`] has escaped the characters that XML forbids
/// before.
pub(crate) fn markup(text: &str) -> String {
    let mut markup = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => markup.push_str("&amp;"),
            '<' => markup.push_str("&lt;"),
            '>' => markup.push_str("&gt;"),
            '"' => markup.push_str("&quot;"),
            '\'' => markup.push_str("&#39;"),
            c => markup.push(c),
        }
    }
    markup
}

/// Escapes a line that a CI pipeline would parse as a command: GitHub executes every line that begins with `::`.
pub(crate) fn no_command(line: &str) -> String {
    let words = line.trim_start();
    match words.strip_prefix("::") {
        Some(rest) => {
            let indent = &line[..line.len() - words.len()];
            format!("{indent}{}:{rest}", escaped(':'))
        }
        None => line.to_owned(),
    }
}

/// Whether this is the second of two `#`: the commands that pipelines search for anywhere in a line begin with them,
/// `##[…]` (GitHub), `##vso[…]` (Azure) and `##teamcity[…]`.
pub(crate) fn begins_command(before: Option<char>, c: char) -> bool {
    before == Some('#') && c == '#'
}

/// Whether a character would control the terminal, change the direction of the line, or be invisible.
///
/// The joiners U+200C and U+200D are not included: languages and emoji need them. U+FFFE and U+FFFF are noncharacters,
/// and XML forbids them.
pub(crate) fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{fffe}' | '\u{ffff}'
            | '\u{e0000}'..='\u{e007f}')
}

/// Escapes a character as visible ASCII.
fn escaped(c: char) -> String {
    match c {
        // Rust has no short escape for these.
        '#' | ':' => c.escape_unicode().to_string(),
        c => c.escape_default().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::{block, duration, harmless, shown, unfolded, wrapped};

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
            ("a # b #c", "a # b #c"),
            ("##vso[x]", r"#\u{23}vso[x]"),
            ("###[x]", r"#\u{23}\u{23}[x]"),
            ("\u{ffff}", r"\u{ffff}"),
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
        assert_eq!(harmless("a ::b::\n  ::error::c"), "a ::b::\n  \\u{3a}:error::c");
    }

    #[test]
    fn a_block_keeps_its_lines_and_is_cut_at_a_character() {
        for (text, chars_max, expected, is_cut) in [
            ("a\n\tb\n", 80, "a\n    b", false),
            ("a\r\n::b", 80, "a\n\\u{3a}:b", false),
            ("abc\ndef", 7, "abc\ndef", false),
            ("abc\ndef", 6, "abc\nde…", true),
            ("abc\ndef", 4, "abc", true),
            ("\u{202e}x", 8, "\\u{202e}…", true),
            ("日本語", 2, "日本…", true),
            ("", 0, "", false),
        ] {
            assert_eq!(block(text, chars_max), (expected.to_owned(), is_cut), "{text:?}");
        }
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
