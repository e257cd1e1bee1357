//! Tests of the lexer: strings and their tokens.

use super::{Dialect, Origin, TokenKind, Tokens, is_plain_name, is_scoped_name};

fn kinds(source: &str, dialect: Dialect) -> Vec<String> {
    let mut tokens = Tokens::of(source, dialect, Origin::Shift(0)).expect("short enough");
    let mut found = Vec::new();
    loop {
        let token = tokens.next();
        found.push(match &token.kind {
            TokenKind::End => return found,
            TokenKind::Text { text, .. } => format!("text {text}"),
            TokenKind::Scoped { scope, name } => format!("{scope:?} {name}"),
            TokenKind::Bad(_) => "bad".to_owned(),
            TokenKind::Word => format!("word {}", tokens.text(&token)),
            TokenKind::Numeral => format!("numeral {}", tokens.text(&token)),
            TokenKind::Operator => format!("operator {}", tokens.text(&token)),
            TokenKind::Symbol(c) => format!("symbol {c}"),
        });
    }
}

#[test]
fn selectors_and_expressions_become_tokens() {
    let (selector, expression) = (Dialect::Selector, Dialect::Expression);
    let cases: &[(Dialect, &str, &[&str])] = &[
        (selector, "", &[]),
        (selector, " // all of it", &[]),
        (
            selector,
            "span/* */[a-b=\"x\\n\"]:first",
            &[
                "word span",
                "symbol [",
                "word a-b",
                "operator =",
                "text x\n",
                "symbol ]",
                "symbol :",
                "word first",
            ],
        ),
        (selector, "\"\\u00e9\\x41\\U0001F680\"", &["text éA🚀"]),
        (selector, "\"a\\qb\"", &["bad"]),
        (selector, "\"a\nb\"", &["bad"]),
        (selector, "/* never", &["bad"]),
        (selector, "0xA 1_500 200.", &["numeral 0xA", "numeral 1_500", "numeral 200."]),
        (expression, "attr:http.x-y != 'it\\'s'", &["Attr http.x-y", "operator !=", "text it's"]),
        (expression, "attr:\"with space\"", &["Attr with space"]),
        (expression, "\"a\\b\\\"c\nd\"", &["text a\\b\"c\nd"]),
        (expression, "attr: x", &["word attr", "symbol :", "word x"]),
        (expression, "a not-contains b-", &["word a", "word not-contains", "word b", "symbol -"]),
        (expression, "1 == 2", &["numeral 1", "operator ==", "numeral 2"]),
        (expression, "a // b", &["word a", "symbol /", "symbol /", "word b"]),
        (expression, "'a", &["bad"]),
        // The dialect changes inside the brackets of `span`, and back after them.
        (
            expression,
            "span[\"\\t\" [\"\\t\"] \"\\t\"] \"\\t\"",
            &[
                "word span",
                "symbol [",
                "text \t",
                "symbol [",
                "text \t",
                "symbol ]",
                "text \t",
                "symbol ]",
                "text \\t",
            ],
        ),
        (expression, "[\"\\t\"]", &["symbol [", "text \\t", "symbol ]"]),
    ];
    for (dialect, source, expected) in cases {
        assert_eq!(kinds(source, *dialect), *expected, "{source}");
    }
}

#[test]
fn what_is_too_long_is_refused() {
    let source = " ".repeat(super::SOURCE_BYTES_MAX + 1);
    assert!(Tokens::of(&source, Dialect::Selector, Origin::Shift(0)).is_err());
}

#[test]
fn names_that_need_no_quotes() {
    for (name, plain, scoped) in [
        ("http.x-y", true, true),
        ("größe", true, true),
        ("a", true, true),
        ("1a", false, true),
        ("a.1", false, true),
        ("a..b", false, true),
        ("a-", false, true),
        ("-a", false, false),
        ("", false, false),
        ("a b", false, false),
    ] {
        assert_eq!((is_plain_name(name), is_scoped_name(name)), (plain, scoped), "{name}");
    }
}
