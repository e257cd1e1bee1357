//! The source location of each character of a scalar, for every style.

use source::{Node, Scalar, Style, Text, Value, read_toml, read_yaml};

/// Checks the decoded text, the style, and the source text of each decoded character.
#[track_caller]
fn check(text: &Text, scalar: &Scalar, expected: (&str, Style, &[&str])) {
    let (decoded, style, written) = expected;
    assert_eq!(scalar.text, decoded);
    assert_eq!(scalar.style, style);
    let found: Vec<&str> = scalar
        .text
        .char_indices()
        .map(|(at, c)| text.slice(scalar.span_of(at..at + c.len_utf8())))
        .collect();
    assert_eq!(found, written, "in {:?}", text.content());
    let starts: Vec<usize> =
        scalar.text.char_indices().map(|(at, _)| scalar.span_of(at..at).start).collect();
    assert!(starts.is_sorted(), "{starts:?} in {:?}", text.content());
}

#[track_caller]
fn yaml(content: &str, decoded: &str, style: Style, written: &[&str]) {
    let text = Text::new("t.yaml", content);
    let (documents, mistakes) = read_yaml(&text);
    assert!(mistakes.is_empty(), "{mistakes:?}");
    let node = documents[0].get("k").unwrap_or(&documents[0]);
    check(&text, first_scalar(node), (decoded, style, written));
}

#[track_caller]
fn toml(content: &str, decoded: &str, style: Style, written: &[&str]) {
    let text = Text::new("t.toml", content);
    let (document, mistakes) = read_toml(&text);
    assert!(mistakes.is_empty(), "{mistakes:?}");
    let document = document.expect("a text that is not too large is read");
    let node = document.get("k").unwrap_or(&document);
    check(&text, first_scalar(node), (decoded, style, written));
}

fn first_scalar(node: &Node) -> &Scalar {
    match &node.value {
        Value::Scalar(scalar) => scalar,
        Value::Sequence(items) => first_scalar(&items[0]),
        Value::Table(entries) => first_scalar(&entries[0].value),
    }
}

#[test]
fn plain() {
    let style = Style::Plain;
    yaml("k: ab", "ab", style, &["a", "b"]);
    yaml("k: a  b # no\n", "a  b", style, &["a", " ", " ", "b"]);
    yaml("é: 日本\n", "日本", style, &["日", "本"]);
    yaml("k: a \n  b\n", "a b", style, &["a", "\n", "b"]);
    yaml("k: a\r\n  b\r\n", "a b", style, &["a", "\r\n", "b"]);
    yaml("k: a\n\n  \n  b\n", "a\n\nb", style, &["a", "\n", "\n", "b"]);
    yaml("k: &x !!str\n  ab\n", "ab", style, &["a", "b"]);
    yaml("k: !<tag:yaml.org,2002:str> ab\n", "ab", style, &["a", "b"]);
    yaml("k: [&x a, b]\n", "a", style, &["a"]);
    yaml("\u{feff}k: a\n", "a", style, &["a"]);
    yaml("k:\n", "", style, &[]);
}

#[test]
fn single_quoted() {
    let style = Style::SingleQuoted;
    yaml("k: 'it''s' # no\n", "it's", style, &["i", "t", "''", "s"]);
    yaml("k: ''\n", "", style, &[]);
    yaml("k: ''''\n", "'", style, &["''"]);
    yaml("k: 'a \n  b'\n", "a b", style, &["a", "\n", "b"]);
    yaml("k: ' a\\n '\n", " a\\n ", style, &[" ", "a", "\\", "n", " "]);
    yaml("k: 'a\r\n\r\n  ü'\n", "a\nü", style, &["a", "\r\n", "ü"]);
    yaml("k: &x 'a'\n", "a", style, &["a"]);
    yaml("{'k':'a'}", "a", style, &["a"]);
}

#[test]
fn double_quoted() {
    let style = Style::DoubleQuoted;
    yaml(r#"k: "a\"b""#, "a\"b", style, &["a", "\\\"", "b"]);
    yaml(
        r#"k: "\u00e9\x41\U0001F600z""#,
        "éA😀z",
        style,
        &["\\u00e9", "\\x41", "\\U0001F600", "z"],
    );
    yaml(
        r#"k: "\0\a\b\t\n\v\f\r\e\ \/\\\N\_\L\P""#,
        "\0\x07\x08\t\n\x0b\x0c\r\x1b /\\\u{85}\u{a0}\u{2028}\u{2029}",
        style,
        &[
            "\\0", "\\a", "\\b", "\\t", "\\n", "\\v", "\\f", "\\r", "\\e", "\\ ", "\\/", "\\\\",
            "\\N", "\\_", "\\L", "\\P",
        ],
    );
    yaml("k: \"a  \n  b\"\n", "a b", style, &["a", "\n", "b"]);
    yaml("k: \"a \\\n  b\"\n", "a b", style, &["a", " ", "b"]);
    yaml("k: \"a\\\r\n\r\n  \\ b\"\n", "a\n b", style, &["a", "\r\n", "\\ ", "b"]);
    yaml("k: \"a\n\n\n b \"\n", "a\n\nb ", style, &["a", "\n", "\n", "b", " "]);
}

#[test]
fn literal() {
    let style = Style::Literal;
    yaml("k: |\n  ab\n   c\n", "ab\n c\n", style, &["a", "b", "\n", " ", "c", "\n"]);
    yaml("k: |-\n  a\n  b\n\n", "a\nb", style, &["a", "\n", "b"]);
    yaml("k: |+\n  a\n\n\nz: 1\n", "a\n\n\n", style, &["a", "\n", "\n", "\n"]);
    yaml("k: | # a | comment\n  a\n", "a\n", style, &["a", "\n"]);
    yaml("k: |2-\n   a\n", " a", style, &[" ", "a"]);
    yaml("k: |\n\n\n  a\n", "\n\na\n", style, &["\n", "\n", "a", "\n"]);
    yaml("k: |\r\n  é\r\n  b\r\n", "é\nb\n", style, &["é", "\r\n", "b", "\r\n"]);
    yaml("k: &x !!str |\n  a\n", "a\n", style, &["a", "\n"]);
    yaml("- - |\n   a\n", "a\n", style, &["a", "\n"]);
    yaml("? |\n  key\n: |\n  a\n", "a\n", style, &["a", "\n"]);
    yaml("--- |\n  a\n", "a\n", style, &["a", "\n"]);
    yaml("# note\n|\n  a\n", "a\n", style, &["a", "\n"]);
    yaml("k: |\n  a", "a\n", style, &["a", ""]);
    yaml("k: |-\n  a", "a", style, &["a"]);
    yaml("x: \"|\" # |\n# > |\nk: |-\n  a: |\n", "a: |", style, &["a", ":", " ", "|"]);
}

#[test]
fn folded() {
    let style = Style::Folded;
    yaml("k: >\n  a\n  b\n", "a b\n", style, &["a", "\n", "b", "\n"]);
    yaml("k: >-\n  a\r\n  b\r\n", "a b", style, &["a", "\r\n", "b"]);
    yaml("k: >-\n  a\n\n\n  b\n", "a\n\nb", style, &["a", "\n", "\n", "b"]);
    yaml("k: >-\n  a\n   b\n  c\n", "a\n b\nc", style, &["a", "\n", " ", "b", "\n", "c"]);
    yaml("k: >-\n\n  a\n", "\na", style, &["\n", "a"]);
    yaml("k: >+\n  a\n\n", "a\n\n", style, &["a", "\n", "\n"]);
    yaml("k: >-\n  日\n  b\n", "日 b", style, &["日", "\n", "b"]);
}

/// When lines are folded, the second break of `a`, empty line, `b` is the one that is kept.
#[test]
fn folding_keeps_the_later_breaks() {
    let text = Text::new("t.yaml", "k: >-\n  a\n\n  b\n");
    let (documents, _) = read_yaml(&text);
    let scalar = first_scalar(&documents[0]);
    assert_eq!(scalar.span_of(1..2).start, 10);
    assert_eq!(text.slice(scalar.span_of(0..3)), "a\n\n  b");
}

#[test]
fn toml_strings() {
    let basic = Style::DoubleQuoted;
    toml("k = \"a\\n\\u00e9é\"", "a\néé", basic, &["a", "\\n", "\\u00e9", "é"]);
    toml("k = 'a\\n'", "a\\n", Style::SingleQuoted, &["a", "\\", "n"]);
    toml("k = 12_0", "12_0", Style::Plain, &["1", "2", "_", "0"]);
    let multi = Style::MultilineBasic;
    toml("k = \"\"\"\na\n\"b\\\n   c\"\"\"", "a\n\"bc", multi, &["a", "\n", "\"", "b", "c"]);
    toml("k = \"\"\"a\"\"\"\"\n", "a\"", multi, &["a", "\""]);
    toml("k = \"\"\"\r\na\\  \r\n\r\n b\"\"\"", "ab", multi, &["a", "b"]);
    let literal = Style::MultilineLiteral;
    toml("k = '''\n'a\\\n'''", "'a\\\n", literal, &["'", "a", "\\", "\n"]);
    toml("[[k]]\nx = 'a'", "a", Style::SingleQuoted, &["a"]);
}

#[test]
fn a_span_covers_the_scalar_as_written() {
    for (content, written) in [
        ("k: ab # no\n", "ab"),
        ("k: 'a' # no\n", "'a'"),
        ("k: &x \"a\" \n", "\"a\""),
        ("k: |-\n  a\n  b\n\nz: 1\n", "|-\n  a\n  b"),
        ("k:\n  - a\n  - b\n\n# no\nz: 1\n", "- a\n  - b"),
        ("k: [a, b] # no\n", "[a, b]"),
        ("k: &x {a: b }\n", "{a: b }"),
        ("k: !!seq [a, b ]\n", "[a, b ]"),
        ("k:\n  a: 1\n  b: 2\n", "a: 1\n  b: 2"),
        ("k:\nz: 1\n", ""),
    ] {
        let text = Text::new("t.yaml", content);
        let (documents, mistakes) = read_yaml(&text);
        assert!(mistakes.is_empty(), "{mistakes:?}");
        assert_eq!(text.slice(documents[0].get("k").unwrap().span), written, "{content:?}");
    }
}

#[test]
fn ranges_may_be_empty_wide_or_careless() {
    let text = Text::new("t.yaml", "k: 'é''b'\n");
    let (documents, _) = read_yaml(&text);
    let scalar = first_scalar(&documents[0]);
    assert_eq!(scalar.text, "é'b");
    for (range, written) in [
        (0..0, (4, 4)),
        (0..1, (4, 6)),
        (1..2, (4, 6)),
        (2..3, (6, 8)),
        (0..4, (4, 9)),
        (4..4, (9, 9)),
        (0..99, (4, 9)),
        (50..99, (9, 9)),
        #[expect(clippy::reversed_empty_ranges, reason = "a caller may get it wrong")]
        (3..1, (8, 8)),
    ] {
        let span = scalar.span_of(range.clone());
        assert_eq!((span.start, span.end), written, "{range:?}");
    }
}
