//! Parses text into syntax trees and collects all diagnostics.
//!
//! After an error with an obvious intention (`==`, an unknown filter, a text without quotes) the parser records it and continues;
//! any other error ends the string. Inside `span[…]` the parser recovers at the next comma or at the closing bracket.
//! Deliberately absent: meaning, and locations in a file.

mod hint;
mod literal;
mod selector;
mod sentence;
mod statement;
mod summary;
mod validate;
mod value;
mod word;

use std::ops::Range;

use super::{
    ast::{Expr, Inner, Selector, Template},
    lex::{Dialect, Origin, Token, TokenKind, Tokens},
    mistake::Mistake,
};

/// The maximum nesting depth of brackets, parentheses and `not`.
const DEPTH_MAX: usize = 64;

/// The maximum number of steps, comparisons, filters and operators in one string. Each is evaluated on every span, and each adds
/// at most one level to the tree.
const PIECES_MAX: usize = 256;

/// The parsed tree and all diagnostics, including warnings.
#[derive(Debug)]
pub(crate) struct ParseResult<T> {
    /// `None` if there is an error and not only warnings.
    pub(crate) tree: Option<T>,
    /// Ordered by their range.
    pub(crate) mistakes: Vec<Mistake>,
    /// Whether the source has comments, which the tree does not contain.
    pub(crate) has_comments: bool,
}

/// Parses a selector.
pub(crate) fn selector(source: &str) -> ParseResult<Selector> {
    parse(source, Root::Selector, |parser| {
        let selector = parser.whole_selector()?;
        parser.end("`:`, `,`, `span[…]` or the end")?;
        Ok(selector)
    })
}

/// Parses an assertion of a spec: a statement.
pub(crate) fn assertion(source: &str) -> ParseResult<Expr> {
    parse(source, Root::Assertion, Parser::whole_statement)
}

/// Parses a claim of `trace`: a statement without a current span, unless it names one.
pub(crate) fn claim(source: &str) -> ParseResult<Expr> {
    parse(source, Root::Claim, Parser::whole_statement)
}

/// Parses the value of an output. A statement is valid too: it is true or false.
pub(crate) fn value(source: &str) -> ParseResult<Expr> {
    parse(source, Root::Value, |parser| {
        let value = parser.statement()?;
        parser.end("the end")?;
        Ok(value)
    })
}

/// Parses a text of a trigger: any text, with `${…}` in it.
pub(crate) fn template(source: &str) -> ParseResult<Template> {
    let (tokens, scene) = (Tokens::none(), ParseContext::of(Root::Trigger));
    let mut parser = Parser { source, tokens, scene, notes: Notes::default() };
    let pieces = parser.pieces_of(source, &Origin::Shift(0));
    parsed(Ok(Template { pieces }), parser.notes)
}

/// The kind of string to parse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Root {
    Selector,
    Assertion,
    Claim,
    Value,
    Trigger,
}

/// The parser context, as far as it changes the grammar.
#[derive(Clone, Copy, Debug)]
struct ParseContext {
    root: Root,
    dialect: Dialect,
    /// Set inside `event[…]` or `link[…]`.
    inner: Option<Inner>,
    /// Whether this is the left side of a comparison. In a selector a bare word or a text is a name there, and a value elsewhere.
    is_left: bool,
    /// Whether there is a current span for properties and `self`.
    has_span: bool,
}

impl ParseContext {
    fn of(root: Root) -> Self {
        let dialect = match root {
            Root::Selector => Dialect::Selector,
            _ => Dialect::Expression,
        };
        let has_span = matches!(root, Root::Assertion | Root::Value);
        Self { root, dialect, inner: None, is_left: false, has_span }
    }

    /// The context after `has`, before `of` and after `by`.
    fn with_span(self) -> Self {
        Self { has_span: true, inner: None, ..self }
    }

    /// The context inside the brackets of `span`, `event` or `link`.
    fn condition(self, inner: Option<Inner>) -> Self {
        Self { dialect: Dialect::Selector, inner, is_left: true, has_span: true, ..self }
    }

    fn names_are_bare(self) -> bool {
        self.dialect == Dialect::Selector && self.is_left
    }
}

/// Parsing cannot continue; the diagnostics have the reason.
#[derive(Debug)]
struct Stop;

/// The state that a parser shares with the parsers of strings nested in its string.
#[derive(Debug, Default)]
struct Notes {
    mistakes: Vec<Mistake>,
    depth: usize,
    pieces: usize,
    /// The end of the last consumed token.
    end: usize,
}

struct Parser<'a> {
    /// The outermost string, to which all ranges refer.
    source: &'a str,
    tokens: Tokens<'a>,
    scene: ParseContext,
    notes: Notes,
}

fn parse<'a, T>(
    source: &'a str,
    root: Root,
    read: impl FnOnce(&mut Parser<'a>) -> Result<T, Stop>,
) -> ParseResult<T> {
    let scene = ParseContext::of(root);
    match Tokens::of(source, scene.dialect, Origin::Shift(0)) {
        Err(mistake) => ParseResult { tree: None, mistakes: vec![mistake], has_comments: false },
        Ok(tokens) => {
            let mut parser = Parser { source, tokens, scene, notes: Notes::default() };
            let tree = read(&mut parser);
            let has_comments = parser.tokens.has_comments;
            ParseResult { has_comments, ..parsed(tree, parser.notes) }
        }
    }
}

fn parsed<T>(tree: Result<T, Stop>, notes: Notes) -> ParseResult<T> {
    let mut mistakes = notes.mistakes;
    mistakes.sort_by_key(|mistake| mistake.range.start);
    mistakes.dedup();
    let tree = tree.ok().filter(|_| !mistakes.iter().any(Mistake::is_error));
    ParseResult { tree, mistakes, has_comments: false }
}

impl Parser<'_> {
    /// Parses a complete assertion or claim.
    fn whole_statement(&mut self) -> Result<Expr, Stop> {
        let statement = self.statement()?;
        self.end("the end")?;
        Ok(self.require_statement(statement))
    }

    fn end(&mut self, expected: &str) -> Result<(), Stop> {
        match self.tokens.peek().kind {
            TokenKind::End => Ok(()),
            _ => {
                let mistake = self.behind_end(expected);
                Err(self.stop(mistake))
            }
        }
    }

    /// Consumes the closing bracket or parenthesis for `open`.
    fn close(&mut self, open: Range<usize>, symbol: char, expected: &str) -> Result<(), Stop> {
        match self.take(symbol) {
            Some(_) => Ok(()),
            None if self.tokens.peek().kind == TokenKind::End => {
                Err(self.no_end(open, if symbol == ']' { '[' } else { '(' }, symbol))
            }
            None => Err(self.unexpected(expected)),
        }
    }

    fn no_end(&mut self, open: Range<usize>, symbol: char, close: char) -> Stop {
        let mistake = Mistake::error(open, format!("this `{symbol}` has no end"));
        self.stop(mistake.help(format!("close it with `{close}`")).cut())
    }

    /// Consumes the next token.
    fn bump(&mut self) -> Token {
        let token = self.tokens.next();
        self.notes.end = token.range.end;
        token
    }

    fn take(&mut self, symbol: char) -> Option<Range<usize>> {
        (self.tokens.peek().kind == TokenKind::Symbol(symbol)).then(|| self.bump().range)
    }

    fn take_word(&mut self, word: &str) -> Option<Range<usize>> {
        (self.tokens.peek_word() == Some(word)).then(|| self.bump().range)
    }

    fn expect(&mut self, symbol: char, expected: &str) -> Result<Range<usize>, Stop> {
        self.take(symbol).ok_or_else(|| self.unexpected(expected))
    }

    /// Returns the start of the next token.
    fn start(&self) -> usize {
        self.tokens.peek().range.start
    }

    /// Returns the range from `start` to the end of the last consumed token.
    fn since(&self, start: usize) -> Range<usize> {
        start..self.notes.end.max(start)
    }

    /// Records a diagnostic. An error that encloses a recorded error is a consequence of it, and is dropped.
    fn note(&mut self, mistake: Mistake) {
        let Range { start, end } = mistake.range;
        let errors = self.notes.mistakes.iter().rev().filter(|noted| noted.is_error());
        let mut behind = errors.take_while(|noted| noted.range.start >= start);
        if !behind.any(|noted| noted.range.end <= end) {
            self.notes.mistakes.push(mistake);
        }
    }

    fn stop(&mut self, mistake: Mistake) -> Stop {
        self.note(mistake);
        Stop
    }

    fn unexpected(&mut self, expected: &str) -> Stop {
        let mistake = self.tokens.unexpected(expected);
        self.stop(mistake)
    }

    /// Parses something in another context.
    fn with<T>(
        &mut self,
        scene: ParseContext,
        read: impl FnOnce(&mut Self) -> Result<T, Stop>,
    ) -> Result<T, Stop> {
        let before = std::mem::replace(&mut self.scene, scene);
        let result = read(self);
        self.scene = before;
        result
    }

    /// Parses something that is nested in its own kind.
    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, Stop>) -> Result<T, Stop> {
        if self.notes.depth == DEPTH_MAX {
            let range = self.tokens.peek().range.clone();
            let message = format!("nested more than {DEPTH_MAX} deep");
            return Err(self.stop(Mistake::error(range, message).help("split it")));
        }
        self.notes.depth += 1;
        let result = read(self);
        self.notes.depth -= 1;
        result
    }

    fn piece(&mut self) -> Result<(), Stop> {
        self.notes.pieces += 1;
        if self.notes.pieces <= PIECES_MAX {
            return Ok(());
        }
        let message = format!("more than {PIECES_MAX} steps, comparisons and operators");
        let range = self.tokens.peek().range.clone();
        Err(self.stop(Mistake::error(range, message).help("split it")))
    }

    /// Reports an error if the expression is a value and not a statement.
    fn require_statement(&mut self, expr: Expr) -> Expr {
        if !expr.is_statement() {
            let mistake = self.not_a_statement(&expr);
            self.note(mistake);
        }
        expr
    }

    /// Reports an error if the expression is a statement and not a value.
    fn require_value(&mut self, expr: Expr) -> Expr {
        if expr.is_statement() {
            let mistake = Mistake::error(expr.at.0.clone(), "a statement is no value");
            self.note(mistake.help("join statements with `and`, `or` and `not`"));
        }
        expr
    }
}
