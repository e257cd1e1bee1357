//! From text to syntax tree, with everything that is wrong.
//!
//! A mistake that leaves no doubt about what was meant (`==`, an unknown filter, a text without quotes) is noted, and
//! reading goes on; one that does ends the string. Inside `span[…]` reading begins anew at the next comma or at the
//! bracket. Deliberately absent: meaning, and places in a file.

mod check;
mod hint;
mod literal;
mod selector;
mod sentence;
mod statement;
mod summary;
mod value;
mod word;

use std::ops::Range;

use super::{
    ast::{Expr, Inner, Selector, Template},
    lex::{Dialect, Origin, Token, TokenKind, Tokens},
    mistake::Mistake,
};

/// How deep brackets, parentheses and `not` may be nested.
const DEPTH_MAX: usize = 64;

/// How many steps, comparisons, filters and operators one string may have. Each is tried on every span, and each makes
/// the tree deeper by one at most.
const PIECES_MAX: usize = 256;

/// What was read, and everything that is wrong with it; warnings too.
#[derive(Debug)]
pub(crate) struct ParseResult<T> {
    /// None where something is wrong beyond a warning.
    pub(crate) tree: Option<T>,
    /// In the order of their places.
    pub(crate) mistakes: Vec<Mistake>,
    /// Comments stand in it, which the tree does not hold.
    pub(crate) has_comments: bool,
}

/// Reads a selector.
pub(crate) fn selector(source: &str) -> ParseResult<Selector> {
    parse(source, Root::Selector, |parser| {
        let selector = parser.whole_selector()?;
        parser.end("`:`, `,`, `span[…]` or the end")?;
        Ok(selector)
    })
}

/// Reads an assertion of a spec: a statement.
pub(crate) fn assertion(source: &str) -> ParseResult<Expr> {
    parse(source, Root::Assertion, Parser::whole_statement)
}

/// Reads a claim of `trace`: a statement that speaks of no span unless it names one.
pub(crate) fn claim(source: &str) -> ParseResult<Expr> {
    parse(source, Root::Claim, Parser::whole_statement)
}

/// Reads the value of an output. A statement is one too: it is true or false.
pub(crate) fn value(source: &str) -> ParseResult<Expr> {
    parse(source, Root::Value, |parser| {
        let value = parser.statement()?;
        parser.end("the end")?;
        Ok(value)
    })
}

/// Reads a text of a trigger: anything, with `${…}` in it.
pub(crate) fn template(source: &str) -> ParseResult<Template> {
    let (tokens, scene) = (Tokens::none(), ParseContext::of(Root::Trigger));
    let mut parser = Parser { source, tokens, scene, notes: Notes::default() };
    let pieces = parser.pieces_of(source, &Origin::Shift(0));
    parsed(Ok(Template { pieces }), parser.notes)
}

/// What kind of string is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Root {
    Selector,
    Assertion,
    Claim,
    Value,
    Trigger,
}

/// Where in a string the parser is, as far as it changes what may stand there.
#[derive(Clone, Copy, Debug)]
struct ParseContext {
    root: Root,
    dialect: Dialect,
    /// Inside `event[…]` or `link[…]`.
    inner: Option<Inner>,
    /// On the left of a comparison. In a selector a bare word or a text is a name there, and a value elsewhere.
    is_left: bool,
    /// There is a span that properties and `self` speak of.
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

    /// Behind `has`, in front of `of` and behind `by`.
    fn with_span(self) -> Self {
        Self { has_span: true, inner: None, ..self }
    }

    /// Inside the brackets of `span`, `event` or `link`.
    fn condition(self, inner: Option<Inner>) -> Self {
        Self { dialect: Dialect::Selector, inner, is_left: true, has_span: true, ..self }
    }

    fn names_are_bare(self) -> bool {
        self.dialect == Dialect::Selector && self.is_left
    }
}

/// Reading cannot go on; why is among the mistakes.
#[derive(Debug)]
struct Stop;

/// What a parser and those for the strings inside its string have in common.
#[derive(Debug, Default)]
struct Notes {
    mistakes: Vec<Mistake>,
    depth: usize,
    pieces: usize,
    /// Where the last token that was taken ends.
    end: usize,
}

struct Parser<'a> {
    /// The string that was read first, which all ranges are ranges of.
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
    /// The whole of an assertion or a claim.
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

    /// Takes what closes the bracket or parenthesis at `open`.
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

    /// Takes the next token.
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

    /// Where the next token starts.
    fn start(&self) -> usize {
        self.tokens.peek().range.start
    }

    /// From `start` to the end of the last token that was taken.
    fn since(&self, start: usize) -> Range<usize> {
        start..self.notes.end.max(start)
    }

    /// Notes what is wrong. What surrounds a mistake is wrong because of it, and not told.
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

    /// Reads something in another scene.
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

    /// Reads something that stands inside something of its own kind.
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

    /// A statement is asked for; a value is a mistake.
    fn require_statement(&mut self, expr: Expr) -> Expr {
        if !expr.is_statement() {
            let mistake = self.not_a_statement(&expr);
            self.note(mistake);
        }
        expr
    }

    /// A value is asked for; a statement is a mistake.
    fn require_value(&mut self, expr: Expr) -> Expr {
        if expr.is_statement() {
            let mistake = Mistake::error(expr.at.0.clone(), "a statement is no value");
            self.note(mistake.help("join statements with `and`, `or` and `not`"));
        }
        expr
    }
}
