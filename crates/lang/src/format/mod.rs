//! Formatter: prints selectors, assertions, claims and values of outputs in canonical form and keeps every other byte.
//!
//! A string keeps its scalar: style, indentation, line breaks and the comments around it. A string that its scalar cannot hold in
//! canonical form stays unchanged, with a note. Deliberately absent: formatting of YAML.

mod rewrite;

use std::collections::BTreeMap;

use source::{Diagnostic, Diagnostics, Node, Scalar, Span, Style, Text, Value, read_yaml};

use crate::{
    compile::compile,
    document::{Document, Test, read},
    syntax::{
        ast::{Expr, Selector},
        parse, print,
    },
};

/// A text in canonical form.
#[derive(Clone, Debug)]
pub struct FormattedText {
    /// The complete text.
    pub text: String,
    /// Notes about the strings that stay unchanged, and the reason.
    pub notes: Vec<Diagnostic>,
}

/// Formats a text. A text with errors stays unchanged; the function then returns its diagnostics.
pub fn format(text: &Text) -> Result<FormattedText, Vec<Diagnostic>> {
    let documents = right(text)?;
    let strings: Vec<_> = documents.iter().flat_map(strings).collect();
    let notes = Diagnostics::new(text);
    let mut formatter = Formatter { text, notes: &notes, uses: uses(text), edits: BTreeMap::new() };
    // With an alias, one scalar may be several strings.
    let mut scalars: BTreeMap<Span, Vec<&Language>> = BTreeMap::new();
    for string in &strings {
        scalars.entry(string.scalar.span).or_default().push(string);
    }
    scalars.values().for_each(|strings| formatter.format(strings));
    let formatted = applied(text.content(), &formatter.edits);
    if is_same(&strings, &Text::new(text.name(), formatted.as_str())) {
        return Ok(FormattedText { text: formatted, notes: notes.into_vec() });
    }
    // No input is known that leads here. A file with a changed meaning is worse than one that is not formatted.
    let note = notes.note(None, "this file cannot be formatted without changing what it means");
    Ok(FormattedText { text: text.content().to_owned(), notes: vec![note] })
}

/// A string of the language in a document.
struct Language {
    scalar: Scalar,
    tree: Tree,
    printed: String,
    has_comments: bool,
}

#[derive(PartialEq)]
enum Tree {
    Selector(Selector),
    Expr(Expr),
}

/// Returns the tests of a text, or its diagnostics.
fn right(text: &Text) -> Result<Vec<Test>, Vec<Diagnostic>> {
    let found = Diagnostics::new(text);
    let (documents, mistakes) = read(text);
    found.extend(mistakes);
    let mut tests = Vec::new();
    for document in documents {
        if let Document::Test(test) = document {
            found.extend(compile(&test).1);
            tests.push(*test);
        }
    }
    if found.has_errors() { Err(found.into_vec()) } else { Ok(tests) }
}

/// Returns the strings of the language in a test, in the order of their keys here.
fn strings(test: &Test) -> Vec<Language> {
    let selectors = |scalar: &Option<Scalar>| scalar.clone().and_then(selector);
    let mut strings = Vec::new();
    for spec in &test.specs {
        strings.extend(selectors(&spec.selector));
        strings.extend(spec.assertions.iter().filter_map(|one| expr(one, parse::assertion)));
    }
    strings.extend(test.claims.iter().filter_map(|claim| expr(&claim.claim, parse::claim)));
    for output in &test.outputs {
        strings.extend(selectors(&output.selector));
        strings.extend(expr(&output.value, parse::value));
    }
    let expected = test.expect.iter().filter(|expect| expect.text.contains('['));
    strings.extend(expected.cloned().filter_map(selector));
    strings
}

fn selector(scalar: Scalar) -> Option<Language> {
    let parsed = parse::selector(&scalar.text);
    let tree = parsed.tree?;
    let printed = print::selector(&tree);
    let has_comments = parsed.has_comments;
    Some(Language { scalar, tree: Tree::Selector(tree), printed, has_comments })
}

fn expr(scalar: &Scalar, parse: fn(&str) -> parse::ParseResult<Expr>) -> Option<Language> {
    let parsed = parse(&scalar.text);
    let tree = parsed.tree?;
    // The quote that needs no escape in the scalar.
    let quote = if scalar.style == Style::DoubleQuoted { '\'' } else { '"' };
    let printed = print::expression_in(&tree, quote);
    let (scalar, has_comments) = (scalar.clone(), parsed.has_comments);
    Some(Language { scalar, tree: Tree::Expr(tree), printed, has_comments })
}

/// Counts the uses of each scalar of a text: more than one if there is an alias for it.
fn uses(text: &Text) -> BTreeMap<Span, usize> {
    let mut uses = BTreeMap::new();
    let (nodes, _) = read_yaml(text);
    nodes.iter().for_each(|node| count(node, &mut uses));
    uses
}

/// Recurses as deep as the document, and that depth is bounded.
fn count(node: &Node, uses: &mut BTreeMap<Span, usize>) {
    match &node.value {
        Value::Scalar(scalar) => *uses.entry(scalar.span).or_default() += 1,
        Value::Sequence(items) => items.iter().for_each(|item| count(item, uses)),
        Value::Table(entries) => entries.iter().for_each(|entry| count(&entry.value, uses)),
    }
}

struct Formatter<'a> {
    text: &'a Text,
    notes: &'a Diagnostics,
    uses: BTreeMap<Span, usize>,
    /// The replacement of each span.
    edits: BTreeMap<Span, String>,
}

impl Formatter<'_> {
    /// Formats the scalar of these strings.
    fn format(&mut self, strings: &[&Language]) {
        let Some(string) = strings.first() else { return };
        let is_shared = self.uses.get(&string.scalar.span) != Some(&strings.len())
            || strings.iter().any(|other| other.printed != string.printed);
        let rewritten = if string.has_comments {
            Err("its comment would be lost")
        } else {
            rewrite::rewrite(&string.scalar, self.text, &string.printed)
        };
        match rewritten {
            Ok(None) => {}
            Ok(Some(_)) if is_shared => self.left(string, "an alias uses it for something else"),
            Ok(Some((span, raw))) => drop(self.edits.insert(span, raw)),
            Err(why) => self.left(string, why),
        }
    }

    fn left(&self, string: &Language, why: &str) {
        let span = self.text.first_line(string.scalar.span_of(0..string.scalar.text.len()));
        let note = self.notes.note(span, format!("left as it is: {why}"));
        self.notes.push(note.help(format!("its one form is `{}`", string.printed)));
    }
}

fn applied(content: &str, edits: &BTreeMap<Span, String>) -> String {
    let mut formatted = String::with_capacity(content.len());
    let mut at = 0;
    for (span, raw) in edits {
        // Scalars do not overlap; if two edits ever did, the second would be skipped.
        if let Some(between) = content.get(at..span.start) {
            formatted.push_str(between);
            formatted.push_str(raw);
            at = span.end;
        }
    }
    formatted.push_str(content.get(at..).unwrap_or_default());
    formatted
}

/// Whether a text has the same strings of the language.
fn is_same(strings: &[Language], formatted: &Text) -> bool {
    right(formatted).is_ok_and(|tests| {
        let again: Vec<_> = tests.iter().flat_map(self::strings).collect();
        strings.iter().map(|string| &string.tree).eq(again.iter().map(|string| &string.tree))
    })
}
