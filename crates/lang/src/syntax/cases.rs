//! Golden tests: strings of every kind, their canonical form and their rendered diagnostics.

use std::path::Path;

use golden::Golden;
use source::{Colour, Diagnostic, Scalar, Text, draw, read_one};

use super::{
    ast::Piece,
    parse::{self, ParseResult},
    print,
};

/// Each file is a mapping from kinds of strings to lists of them.
const FILES: &[(&str, &str)] = &[
    ("forms", include_str!("../../tests/golden/syntax/forms.yaml")),
    ("selectors", include_str!("../../tests/golden/syntax/selectors.yaml")),
    ("assertions", include_str!("../../tests/golden/syntax/assertions.yaml")),
    ("claims", include_str!("../../tests/golden/syntax/claims.yaml")),
    ("triggers", include_str!("../../tests/golden/syntax/triggers.yaml")),
];

/// Renders one string: its canonical form, if the parser accepts it, and its diagnostics.
fn case(kind: &str, text: &Text, scalar: &Scalar) -> String {
    let source = scalar.text.as_str();
    let (printed, mistakes) = match kind {
        "selector" => shown(parse::selector(source), print::selector),
        "assertion" => shown(parse::assertion(source), print::expression),
        "claim" => shown(parse::claim(source), print::expression),
        "value" => shown(parse::value(source), print::expression),
        "template" => shown(parse::template(source), |template| {
            let pieces = template.pieces.iter().map(|piece| match piece {
                Piece::Text(text) => format!("{text:?}"),
                Piece::Value(value) => format!("`{}`", print::expression(value)),
            });
            pieces.collect::<Vec<_>>().join(" then ")
        }),
        _ => panic!("unknown kind {kind}"),
    };
    let found: Vec<Diagnostic> =
        mistakes.into_iter().map(|mistake| mistake.in_scalar(text, scalar)).collect();
    let printed = match printed {
        Some(printed) if printed == source => format!("= {printed}\n"),
        Some(printed) => format!("< {source}\n> {printed}\n"),
        None => String::new(),
    };
    format!("{printed}{}\n", draw(&found, Colour::Never))
}

fn shown<T>(
    parsed: ParseResult<T>,
    print: impl Fn(&T) -> String,
) -> (Option<String>, Vec<super::mistake::Mistake>) {
    (parsed.tree.as_ref().map(print), parsed.mistakes)
}

#[test]
fn strings_are_taken_or_refused_with_pictures() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/syntax");
    let mut golden = Golden::default();
    for (name, yaml) in FILES {
        let text = Text::new(format!("{name}.yaml"), *yaml);
        let (node, mistakes) = read_one(&text);
        assert!(mistakes.is_empty(), "{}", draw(&mistakes, Colour::Never));
        let node = node.expect("the file holds a mapping");
        let mut found = String::new();
        for entry in node.as_table().expect("kinds of strings") {
            for item in entry.value.as_sequence().expect("a list of strings") {
                let scalar = item.as_scalar().expect("a string");
                found.push_str(&case(&entry.key.text, &text, scalar));
            }
        }
        golden.compare(&folder.join(format!("{name}.txt")), &found);
    }
    golden.finish(FILES.len());
}

/// Checks that the parser accepts or rejects every example in the grammar document as the document states.
#[test]
fn the_examples_of_the_grammar_hold() {
    let page = include_str!("../../../../docs/language/grammar.md");
    let (mut kind, mut is_refused, mut examples) = (None, false, 0);
    for (number, line) in page.lines().enumerate() {
        if let Some(info) = line.strip_prefix("```") {
            let (name, rest) = info.split_once(' ').unwrap_or((info, ""));
            kind = Some(name).filter(|name| !name.is_empty() && *name != "text");
            is_refused = rest == "refused";
            continue;
        }
        let Some(kind) = kind else { continue };
        let is_taken = match kind {
            "selector" => parse::selector(line).tree.is_some(),
            "assertion" => parse::assertion(line).tree.is_some(),
            "claim" => parse::claim(line).tree.is_some(),
            "value" => parse::value(line).tree.is_some(),
            "template" => parse::template(line).tree.is_some(),
            _ => panic!("unknown kind {kind}"),
        };
        assert_eq!(is_taken, !is_refused, "line {}: {line}", number + 1);
        examples += 1;
    }
    assert!(examples > 150, "only {examples} examples");
}
