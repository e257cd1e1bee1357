//! Extracts the code of a Rust file, without comments and without the content of strings.

/// Removes every comment and the content of every string, and preserves line numbers.
pub(crate) fn code(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let after = &rest[first.len_utf8()..];
        let (kept, hidden) = if rest.starts_with("//") {
            ("", rest.find('\n').unwrap_or(rest.len()))
        } else if rest.starts_with("/*") {
            (" ", block_comment(rest))
        } else if let Some(length) = raw_string(rest, &code) {
            ("\"\"", length)
        } else if first == '"' {
            ("\"\"", 1 + string(after))
        } else if let Some(length) = character(rest) {
            ("' '", length)
        } else {
            code.push(first);
            rest = after;
            continue;
        };
        let (hidden, next) = rest.split_at(hidden);
        code.push_str(kept);
        code.extend(hidden.chars().filter(|c| *c == '\n'));
        rest = next;
    }
    code
}

/// Returns the length of a block comment, including nested ones.
fn block_comment(text: &str) -> usize {
    let (mut at, mut depth) = (2, 1_usize);
    while depth > 0 {
        let rest = &text[at..];
        match (rest.find("/*"), rest.find("*/")) {
            (Some(open), Some(close)) if open < close => (at, depth) = (at + open + 2, depth + 1),
            (_, Some(close)) => (at, depth) = (at + close + 2, depth - 1),
            (_, None) => return text.len(),
        }
    }
    at
}

/// Returns the length of a raw string, if one begins here: `r`, any number of `#`, and a quote.
fn raw_string(text: &str, before: &str) -> Option<usize> {
    let after = text.strip_prefix('r')?;
    let hashes = after.len() - after.trim_start_matches('#').len();
    let inside = after[hashes..].strip_prefix('"')?;
    // An `r` at the end of a longer word begins no raw string, but those of `br` and `cr` do.
    let word = before.rsplit(|c: char| !c.is_alphanumeric() && c != '_').next()?;
    if !matches!(word, "" | "b" | "c") {
        return None;
    }
    let end = format!("\"{}", "#".repeat(hashes));
    let inside = inside.find(&end).map_or(inside.len(), |at| at + end.len());
    Some((1 + hashes + 1 + inside).min(text.len()))
}

/// Returns the length of the rest of a string, its closing quote included.
fn string(inside: &str) -> usize {
    let mut escaped = false;
    for (at, c) in inside.char_indices() {
        match c {
            '"' if !escaped => return at + 1,
            '\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    inside.len()
}

/// Returns the length of a character literal, if this is one and not a lifetime.
fn character(text: &str) -> Option<usize> {
    let inside = text.strip_prefix('\'')?;
    let first = inside.chars().next()?;
    if first == '\\' {
        // The escaped character may be a quote itself.
        return inside.get(2..)?.find('\'').map(|at| 1 + 2 + at + 1);
    }
    inside[first.len_utf8()..].starts_with('\'').then_some(1 + first.len_utf8() + 1)
}

#[test]
fn only_code_is_left() {
    let cases = [
        ("a // b\nc", "a \nc"),
        ("/// \"d\n//! '\ne", "\n\ne"),
        (r#"let u = "https://x"; std::fs"#, r#"let u = ""; std::fs"#),
        (r#"x("a\"//", b) // c"#, r#"x("", b) "#),
        (r#"x("\\"); y // "z""#, r#"x(""); y "#),
        ("x(\"one\n// two\n\", y)", "x(\"\"\n\n, y)"),
        ("x(r\"\\\"); y", "x(\"\"); y"),
        ("x(br#\"a\" // \"#); y", "x(b\"\"); y"),
        ("for\"x\"", "for\"\""),
        ("('\"', '\\'', '\\\\', '/', b'\"'); y // z", "(' ', ' ', ' ', ' ', b' '); y "),
        ("fn f<'a>(x: &'a str, y: &'a str) // '", "fn f<'a>(x: &'a str, y: &'a str) "),
        ("a /* b /* c\n */ d */ e", "a  \n e"),
        ("'\\u{1f980}' /* open", "' '  "),
        ("\"open", "\"\""),
    ];
    for (text, expected) in cases {
        assert_eq!(code(text), expected, "{text}");
    }
}
