//! Tests of the formatter: what it changes, and what it keeps.

use std::{
    fs,
    path::{Path, PathBuf},
};

use golden::Golden;
use proptest::{prelude::*, sample::select};
use source::{Colour, Text, draw};

/// `fmt/*.txt` has the changes to each `ok/*.yaml`, and the notes about strings that stay unchanged.
#[test]
fn documents_in_their_one_form() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut golden = Golden::default();
    for file in files() {
        let content = fs::read_to_string(&file).expect("a document");
        let name = file.file_name().and_then(|name| name.to_str()).expect("a name in letters");
        let formatted = lang::format(&Text::new(name, content.as_str())).expect("no mistakes");
        let again = lang::format(&Text::new(name, formatted.text.as_str())).expect("no mistakes");
        assert_eq!(again.text, formatted.text, "{name} is formatted once and for all");
        let mut shown = changes(&content, &formatted.text);
        shown.push_str(&draw(&formatted.notes, Colour::Never));
        if !shown.is_empty() {
            golden.compare(&folder.join("fmt").join(name).with_extension("txt"), &shown);
        }
    }
    golden.finish(10);
}

#[test]
fn a_document_with_a_mistake_is_left_alone() {
    for (content, expected) in [
        ("type: Test\nspec: {name: x}\n", "missing key `trigger` in `spec`"),
        ("a: [\n", "not valid YAML"),
    ] {
        let mistakes = lang::format(&Text::new("t", content)).expect_err("a mistake");
        assert!(mistakes[0].message.contains(expected), "{}", mistakes[0].message);
    }
    let unchanged = "# nothing of ours\r\ntype: VariableSet\r\nspec: {  name : x}";
    let formatted = lang::format(&Text::new("t", unchanged)).expect("no mistakes");
    assert_eq!((formatted.text.as_str(), formatted.notes.len()), (unchanged, 0));
}

/// Tokens of a string, with optional whitespace between them.
const STRINGS: &[(&str, &[&str])] = &[
    ("selector", &["span[", "name", "=", "\"a  b\"", ",", "kind", "=", "\"it's #1\"", "]"]),
    ("selector", &["span[", "x", "=", "1", "or", "y", "exists", "]", ">", "span[", "]", ":first"]),
    ("selector", &["span[", "(", "not", "a", "=", "\"\\\"\\\\\"", ")", "]", ",", "span[", "]"]),
    ("assertions", &["attr:a", "=", "\"x: y\""]),
    ("assertions", &["(", "\"a\"", "=", "attr:b", ")", "and", "attr:c", "not-in", "[", "1", "]"]),
    ("assertions", &["attr:a", "|", "json_path", "'$.id'", "=", "(", "1", "+", "2", ")", "*", "3"]),
    ("assertions", &["attr:a", "=", "'it\\'s \u{20ac}'"]),
    ("assertions", &["attr:a", "!=", "\"#\"", "or", "attr:b", "=", "\"C:\\dir\""]),
];

const STYLES: &[&str] = &["plain", "single", "double", "literal", "folded", "lines"];

/// Joins the tokens with this whitespace in a scalar of a style. Some results are not valid YAML or not valid in the language.
fn scalar(pieces: &[&str], blanks: &[&str], style: &str) -> String {
    let has_lines = matches!(style, "literal" | "folded" | "lines");
    let mut text = String::new();
    for (at, piece) in pieces.iter().enumerate() {
        let blank = blanks.get(at).copied().unwrap_or(" ");
        let is_word = |c: char| c.is_alphanumeric();
        match blank {
            _ if at == 0 => {}
            "" if text.ends_with(is_word) && piece.starts_with(is_word) => text.push(' '),
            "\n" if has_lines => text.push_str("\n          "),
            "\n" => text.push_str("  "),
            blank => text.push_str(blank),
        }
        text.push_str(piece);
    }
    match style {
        "single" => format!("'{}'", text.replace('\'', "''")),
        "double" => format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")),
        "literal" => format!("|\n          {text}"),
        "folded" => format!(">-\n          {text}"),
        _ => text,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn only_the_string_changes_and_only_once(
        (key, pieces) in select(STRINGS),
        blanks in prop::collection::vec(select(&["", " ", "   ", "\n"][..]), 12),
        style in select(STYLES),
        has_comment in any::<bool>(),
    ) {
        let comment = if has_comment && style != "literal" && style != "folded" { "  # kept" } else { "" };
        let (selector, assertions) = match key {
            "selector" => (scalar(pieces, &blanks, style), "attr:x   exists".to_owned()),
            _ => ("span[ ]".to_owned(), scalar(pieces, &blanks, style)),
        };
        let head = "# first\ntype: Test\nspec:\n  name:   x\n  trigger: {type: http,   httpRequest: \
                    {url: \"http://${var:A}\"}}\n  specs:\n    -   selector: ";
        let middle = "\n        assertions:\n        -   ";
        let (head_comment, tail) = if key == "selector" { (comment, "") } else { ("", comment) };
        let tail = format!("{tail}\n  outputs: [  ] # last\n");
        let content = format!("{head}{selector}{head_comment}{middle}{assertions}{tail}");
        // An invalid document stays unchanged; enough of them are valid.
        if let Ok(formatted) = lang::format(&Text::new("t", content.as_str())) {
            prop_assert!(formatted.text.starts_with(head), "{}", formatted.text);
            prop_assert!(formatted.text.ends_with(&tail), "{}", formatted.text);
            prop_assert!(formatted.text.contains(&format!("{head_comment}{middle}")), "{}", formatted.text);
            prop_assert_eq!(formatted.text.lines().count(), content.lines().count());
            let again = lang::format(&Text::new("t", formatted.text.as_str()));
            let again = again.expect("what is formatted is right");
            prop_assert_eq!(&again.text, &formatted.text);
            prop_assert!(formatted.notes.iter().all(|note| note.span.is_some()), "never gives up");
        }
    }
}

/// Returns the lines that differ, before and after.
fn changes(before: &str, behind: &str) -> String {
    assert_eq!(before.lines().count(), behind.lines().count(), "line breaks are kept");
    before
        .lines()
        .zip(behind.lines())
        .filter(|(before, behind)| before != behind)
        .map(|(before, behind)| format!("- {before}\n+ {behind}\n"))
        .collect()
}

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/ok");
    golden::files(&folder, &["yaml"])
}
