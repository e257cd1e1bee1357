//! Times, and the words of strangers, as they may stand on a line.
//!
//! Deliberately absent: the width of a character on the screen. Every one counts as one column, so that columns behind
//! wide characters (日本) are a little off; nothing is lost by it.

/// The units of time, with their nanoseconds, the largest first.
const UNITS: [(&str, u64); 4] = [("s", 1_000_000_000), ("ms", 1_000_000), ("µs", 1_000), ("ns", 1)];

/// A time with three digits that count, in the unit that suits it; from 1000 s on, in whole seconds.
pub fn duration(nanos: u64) -> String {
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
    let mut room = chars_max;
    let mut before = None;
    for c in text.chars() {
        let letters = (is_hidden(c) || begins_command(before, c)).then(|| escaped(c));
        // What is escaped is written in ASCII.
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

/// A text of one or more lines in which nothing steers the terminal, or the pipeline that reads it. Unlike a report it
/// keeps its length.
pub fn harmless(text: &str) -> String {
    let lines = text.trim_end().lines().map(|line| no_command(&shown(line, usize::MAX)));
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

/// A text that can be seen, as it may stand anywhere in XML or HTML. What XML forbids was escaped when the text was
/// made fit to be seen.
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

/// A line that a pipeline does not take for one of its commands: GitHub obeys whatever begins with `::`.
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

/// Whether this is the second of two `#`: with them begin the commands that pipelines look for anywhere in a line,
/// `##[…]` (GitHub), `##vso[…]` (Azure) and `##teamcity[…]`.
pub(crate) fn begins_command(before: Option<char>, c: char) -> bool {
    before == Some('#') && c == '#'
}

/// Whether a character would steer the terminal, turn the direction of the line, or not be seen at all.
///
/// The joiners U+200C and U+200D are not among them: languages and emoji need them. U+FFFE and U+FFFF are none at all,
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

/// A character in letters that can be seen.
fn escaped(c: char) -> String {
    match c {
        // These have no short form in Rust's words.
        '#' | ':' => c.escape_unicode().to_string(),
        c => c.escape_default().to_string(),
    }
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
