//! Random documents: the readers return the written values with exact locations, and nothing panics.

use proptest::{collection::vec, prelude::*};
use source::{
    Colour, Diagnostic, Node, Scalar, Span, Style, Text, Value, draw, read_toml, read_yaml,
};

/// The start of a terminal control sequence.
const ESCAPE: char = '\u{1b}';

/// A scalar as written, and the source text of each of its characters.
#[derive(Default)]
struct Written {
    source: String,
    chars: Vec<String>,
}

impl Written {
    /// Appends source text that represents no character.
    fn skip(&mut self, source: &str) {
        self.source.push_str(source);
    }

    fn char(&mut self, source: &str) {
        self.source.push_str(source);
        self.chars.push(source.to_owned());
    }
}

fn letter() -> impl Strategy<Value = char> {
    prop_oneof![
        8 => prop::char::range('a', 'z'),
        4 => Just(' '),
        4 => Just('\n'),
        4 => prop::sample::select(vec!['\'', '"', '\\', ':', '#', '-', '|', '>', '&', '*', '[', '}', '%', '\t']),
        2 => prop::sample::select(vec!['é', 'ß', '日', '本', '😀', '\u{301}', '\u{a0}']),
    ]
}

fn text() -> impl Strategy<Value = String> {
    vec(letter(), 1..40).prop_map(String::from_iter)
}

/// Whether the character at `at` and its neighbours allow folding there.
fn foldable(chars: &[char], at: usize) -> bool {
    let solid = |at: Option<&char>| at.is_some_and(|c| !c.is_whitespace());
    at > 0 && solid(chars.get(at - 1)) && solid(chars.get(at + 1))
}

/// Writes a scalar in double quotes. Every character has several forms; `choices` picks one for each.
fn double_quoted(text: &str, choices: &[u8], line_break: &str) -> Written {
    let mut out = Written::default();
    out.skip("\"");
    let chars: Vec<char> = text.chars().collect();
    for (at, (c, choice)) in chars.iter().zip(choices.iter().cycle()).enumerate() {
        match (c, choice % 4) {
            (' ', 0) if foldable(&chars, at) => {
                out.skip(" ");
                out.char(line_break);
                out.skip("   ");
            }
            ('\n', 0) if foldable(&chars, at) => {
                out.skip(line_break);
                out.char(line_break);
                out.skip("  ");
            }
            (_, 1) => out.char(&format!("\\U{:08x}", u32::from(*c))),
            (_, 2) if u32::from(*c) < 0x10000 => out.char(&format!("\\u{:04X}", u32::from(*c))),
            ('\n', _) => out.char("\\n"),
            ('\t', _) => out.char("\\t"),
            ('"' | '\\', _) => out.char(&format!("\\{c}")),
            (_, 3) if at > 0 && !chars[at - 1].is_whitespace() && *c != ' ' => {
                out.skip(&format!("\\{line_break}  "));
                out.char(&c.to_string());
            }
            _ => out.char(&c.to_string()),
        }
    }
    out.skip("\"");
    out
}

fn single_quoted(text: &str, choices: &[u8], line_break: &str) -> Option<Written> {
    let mut out = Written::default();
    out.skip("'");
    let chars: Vec<char> = text.chars().collect();
    for (at, (c, choice)) in chars.iter().zip(choices.iter().cycle()).enumerate() {
        match c {
            '\n' => {
                if !foldable(&chars, at) {
                    return None;
                }
                out.skip(line_break);
                out.char(line_break);
                out.skip("  ");
            }
            ' ' if choice % 2 == 0 && foldable(&chars, at) => {
                out.char(line_break);
                out.skip("  ");
            }
            '\'' => out.char("''"),
            _ => out.char(&c.to_string()),
        }
    }
    out.skip("'");
    Some(out)
}

/// Writes a scalar without quotes, from letters and spaces only.
fn plain(text: &str, choices: &[u8], line_break: &str) -> Written {
    let mut out = Written::default();
    let chars: Vec<char> = text.chars().collect();
    for (at, (c, choice)) in chars.iter().zip(choices.iter().cycle()).enumerate() {
        if *c == ' ' && choice % 2 == 0 && foldable(&chars, at) {
            out.skip("  ");
            out.char(line_break);
            out.skip("  ");
        } else {
            out.char(&c.to_string());
        }
    }
    out
}

fn chomping(text: &str) -> &'static str {
    match text.len() - text.trim_end_matches('\n').len() {
        0 => "-",
        1 => "",
        _ => "+",
    }
}

fn literal(text: &str, line_break: &str) -> Written {
    let mut out = Written::default();
    out.skip(&format!("|2{}{line_break}", chomping(text)));
    let mut is_line_start = true;
    for c in text.chars() {
        if c == '\n' {
            out.char(line_break);
        } else {
            if is_line_start {
                out.skip("  ");
            }
            out.char(&c.to_string());
        }
        is_line_start = c == '\n';
    }
    out
}

/// Writes a folded scalar. No line of the text may start with a blank; folds at single spaces.
fn folded(text: &str, choices: &[u8], line_break: &str) -> Written {
    let mut out = Written::default();
    out.skip(&format!(">2{}{line_break}", chomping(text)));
    let body = text.trim_end_matches('\n').chars().count();
    let chars: Vec<char> = text.chars().collect();
    for (at, (c, choice)) in chars.iter().zip(choices.iter().cycle()).enumerate() {
        let is_line_start = at == 0 || chars[at - 1] == '\n';
        let starts_gap = at > 0 && !is_line_start && at < body;
        match c {
            // Between lines the first break of a gap does not count.
            '\n' if starts_gap => {
                out.skip(line_break);
                out.char(line_break);
            }
            '\n' => out.char(line_break),
            ' ' if choice % 2 == 0 && foldable(&chars, at) => {
                out.char(line_break);
                out.skip("  ");
            }
            _ => {
                out.skip(if is_line_start { "  " } else { "" });
                out.char(&c.to_string());
            }
        }
    }
    out
}

fn check(
    written: &Written,
    text: &str,
    style: Style,
    line_break: &str,
) -> Result<(), TestCaseError> {
    let end = if written.source.ends_with('\n') { "" } else { line_break };
    let content = format!("é: 1{line_break}k: {}{end}z: 2{line_break}", written.source);
    let source = Text::new("t.yaml", content.as_str());
    let (documents, mistakes) = read_yaml(&source);
    prop_assert!(mistakes.is_empty(), "{:?} in {:?}", mistakes, content);
    let Some(scalar) = documents[0].get("k").and_then(Node::as_scalar) else {
        return Err(TestCaseError::fail("no scalar"));
    };
    check_scalar(&source, scalar, written, (text, style))
}

fn check_scalar(
    source: &Text,
    scalar: &Scalar,
    written: &Written,
    (text, style): (&str, Style),
) -> Result<(), TestCaseError> {
    prop_assert_eq!(&scalar.text, text, "{:?}", source.content());
    prop_assert_eq!(scalar.style, style);
    let found: Vec<&str> = scalar
        .text
        .char_indices()
        .map(|(at, c)| source.slice(scalar.span_of(at..at + c.len_utf8())))
        .collect();
    prop_assert_eq!(&found, &written.chars, "{:?}", source.content());
    Ok(())
}

/// Checks that all returned spans lie within the text, at character boundaries.
fn check_places(text: &Text, node: &Node) {
    assert!(text.content().get(node.span.start..node.span.end).is_some());
    match &node.value {
        Value::Scalar(scalar) => check_scalar_places(text, scalar),
        Value::Sequence(items) => items.iter().for_each(|item| check_places(text, item)),
        Value::Table(entries) => entries.iter().for_each(|entry| {
            check_scalar_places(text, &entry.key);
            check_places(text, &entry.value);
        }),
    }
}

fn check_scalar_places(text: &Text, scalar: &Scalar) {
    for (at, c) in scalar.text.char_indices() {
        let span = scalar.span_of(at..at + c.len_utf8());
        assert!(text.content().get(span.start..span.end).is_some(), "{span:?}");
        assert!(scalar.span.start <= span.start, "{span:?} {scalar:?}");
    }
}

fn check_diagnostics(diagnostics: &[Diagnostic]) {
    let drawn = draw(diagnostics, Colour::Never);
    assert!(drawn.is_empty() == diagnostics.is_empty());
    assert!(diagnostics.is_empty() || draw(diagnostics, Colour::Always).contains(ESCAPE));
}

fn read_both(content: &str) {
    let text = Text::new("t", content);
    let (documents, mistakes) = read_yaml(&text);
    documents.iter().for_each(|document| check_places(&text, document));
    check_diagnostics(&mistakes);
    let (document, mistakes) = read_toml(&text);
    document.iter().for_each(|document| check_places(&text, document));
    check_diagnostics(&mistakes);
}

fn yaml_soup() -> impl Strategy<Value = String> {
    let words = vec![
        "- ",
        "? ",
        ": ",
        ":",
        "|",
        ">",
        "|2-",
        ">+",
        "&a ",
        "*a",
        "!t ",
        "!!str ",
        "!<x>",
        "[",
        "]",
        "{",
        "}",
        "'",
        "\"",
        "\\",
        "\\u00e9",
        "\\x",
        "\n",
        "\n  ",
        "\n    ",
        "\t",
        "#",
        " # c",
        "\n---\n",
        "\n...\n",
        "%YAML 1.2\n",
        "\r\n",
        "\r",
        "é",
        "日",
        "\u{feff}",
        "\0",
        "<<",
        ", ",
        "@",
        "a",
        "k: ",
        "  ",
        "''",
    ];
    vec(prop::sample::select(words), 0..40).prop_map(|words| words.concat())
}

fn toml_soup() -> impl Strategy<Value = String> {
    let words = vec![
        "[",
        "]",
        "[[",
        "]]",
        "a",
        "b",
        ".",
        " = ",
        "1",
        "0x1",
        "1.5",
        "true",
        "inf",
        "2026-01-02",
        "{",
        "}",
        ", ",
        "\"",
        "'",
        "\"\"\"",
        "'''",
        "\\",
        "\\u00e9",
        "\\n",
        "\n",
        "\r\n",
        "\r",
        "#",
        "é",
        "\t",
        "\0",
        "\u{feff}",
        "_",
        "a = ",
        "[a.b]\n",
        "[[a]]\n",
    ];
    vec(prop::sample::select(words), 0..40).prop_map(|words| words.concat())
}

fn line_break() -> impl Strategy<Value = &'static str> {
    prop_oneof![Just("\n"), Just("\r\n")]
}

proptest! {
    // A failure is reported with its input; a case worth keeping becomes a line in a table.
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn double_quotes_are_exact(text in text(), choices in vec(any::<u8>(), 1..20), line_break in line_break()) {
        check(&double_quoted(&text, &choices, line_break), &text, Style::DoubleQuoted, line_break)?;
    }

    #[test]
    fn single_quotes_are_exact(text in text(), choices in vec(any::<u8>(), 1..20), line_break in line_break()) {
        if let Some(written) = single_quoted(&text, &choices, line_break) {
            check(&written, &text, Style::SingleQuoted, line_break)?;
        }
    }

    #[test]
    fn plain_scalars_are_exact(text in "[a-zé日]([a-zé日 ]{0,30}[a-zé日])?", choices in vec(any::<u8>(), 1..20), line_break in line_break()) {
        check(&plain(&text, &choices, line_break), &text, Style::Plain, line_break)?;
    }

    #[test]
    fn literals_are_exact(text in text(), line_break in line_break()) {
        if text.contains(|c| c != ' ' && c != '\n') {
            check(&literal(&text, line_break), &text, Style::Literal, line_break)?;
        }
    }

    #[test]
    fn folded_scalars_are_exact(text in "([a-zé日]([a-zé日 '\"]{0,10}[a-z日])?\n{0,3}){1,4}", choices in vec(any::<u8>(), 1..20), line_break in line_break()) {
        check(&folded(&text, &choices, line_break), &text, Style::Folded, line_break)?;
    }

    #[test]
    fn toml_strings_are_exact(text in text(), choices in vec(any::<u8>(), 1..20)) {
        let mut written = Written::default();
        for (c, choice) in text.chars().zip(choices.iter().cycle()) {
            match (c, choice % 3) {
                (_, 0) => written.char(&format!("\\U{:08x}", u32::from(c))),
                ('\n', _) => written.char("\\n"),
                ('"' | '\\', _) => written.char(&format!("\\{c}")),
                _ => written.char(&c.to_string()),
            }
        }
        let source = Text::new("t.toml", format!("k = \"{}\"\n", written.source));
        let (document, mistakes) = read_toml(&source);
        prop_assert!(mistakes.is_empty(), "{:?}", mistakes);
        let document = document.unwrap();
        let scalar = document.get("k").and_then(Node::as_scalar).unwrap();
        check_scalar(&source, scalar, &written, (&text, Style::DoubleQuoted))?;
    }

    #[test]
    fn no_string_panics(content in any::<String>()) {
        read_both(&content);
    }

    #[test]
    fn no_bytes_panic(bytes in any::<Vec<u8>>()) {
        read_both(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn no_yaml_panics(content in yaml_soup()) {
        read_both(&content);
    }

    #[test]
    fn no_toml_panics(content in toml_soup()) {
        read_both(&content);
    }

    #[test]
    fn no_part_and_nothing_hidden_breaks_a_picture(
        content in yaml_soup(), more in yaml_soup(), hidden in vec((0_usize..300, 0_usize..30), 0..5), start in 0_usize..300, length in 0_usize..99, also in 0_usize..300,
    ) {
        let text = Text::new("first", content);
        let (both, _) = text.with_part("second", &more);
        let both = both.hiding(hidden.into_iter().map(|(start, length)| Span::from(start..start + length)));
        let span = Span::from(start..start + length);
        let drawn = draw(&[Diagnostic::error(&both, span, "m").also((also..also + 1).into(), "x")], Colour::Never);
        let (name, place) = (both.name_at(start), both.place(start));
        let shown = format!("{name}:{}:{}\n", place.line, place.column);
        prop_assert!(drawn.contains(&shown), "{shown} {drawn}");
        if start < text.content().len() {
            prop_assert_eq!((name, place), ("first", text.place(start)));
        }
    }

    #[test]
    fn no_secret_is_drawn(before in "[a-zé ]{0,9}", secret in "[XYZ]{4,9}(\n[XYZ]{4,9})?", behind in "[a-zé\n ]{0,9}", start in 0_usize..40, length in 0_usize..40) {
        let text = Text::new("t", format!("{before}{secret}{behind}"));
        let text = text.hiding([Span::from(before.len()..before.len() + secret.len())]);
        let drawn = draw(&[Diagnostic::error(&text, Span::from(start..start + length), "m")], Colour::Never);
        prop_assert!(!drawn.contains(['X', 'Y', 'Z']), "{drawn}");
    }

    #[test]
    fn no_place_breaks_a_picture(content in yaml_soup(), start in 0_usize..200, length in 0_usize..200, also in 0_usize..200) {
        let text = Text::new("a\u{1b}b", content);
        let span = Span::from(start..start + length);
        let diagnostic = Diagnostic::error(&text, span, "m\n\u{1b}").label("l\n").also((also..start).into(), "x").help("h\u{1b}");
        let drawn = draw(&[diagnostic], Colour::Never);
        prop_assert!(!drawn.contains(ESCAPE));
        let place = text.place(start);
        let shown = format!(":{}:{}\n", place.line, place.column);
        prop_assert!(drawn.contains(&shown), "{shown} {drawn}");
    }
}
