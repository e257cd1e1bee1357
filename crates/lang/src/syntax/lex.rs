//! The lexer for selectors and expressions.
//!
//! Both dialects share words, numerals and symbols. They differ in two points, as in Tracetest: a selector has comments (`//`,
//! `/* */`) and texts with escapes, and its texts end on their line; in an expression a backslash is literal unless the quote of
//! the text follows. In an expression `span`, `event` or `link` before a `[` starts a selector fragment, which ends at the
//! matching bracket.
//!
//! Deliberately absent: meaning. A numeral is any run of letters and digits that starts with a digit, an operator any run of `= !
//! < > ~ &`, so that a parser can name the complete token that it rejects. The parser parses the content of `${…}` in a text as a
//! separate string with tokens that keep their original range.

use std::ops::Range;

use super::mistake::Mistake;

/// The maximum length of a selector, assertion or value, in bytes.
pub(crate) const SOURCE_BYTES_MAX: usize = 64 * 1024;

/// The dialect of the string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    Selector,
    Expression,
}

#[derive(Clone, Debug)]
pub(crate) struct Token {
    pub(crate) kind: TokenKind,
    /// The range in the outermost string.
    pub(crate) range: Range<usize>,
    /// The range in the string of this lexer.
    local: Range<usize>,
    pub(crate) gap: Gap,
}

/// The whitespace before a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gap {
    Nothing,
    /// One space.
    Space,
    More,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TokenKind {
    /// Letters, digits, `_` and inner `-`, starting with a letter or `_`.
    Word,
    /// `attr:`, `var:` or `env:` followed by a name, quoted or bare.
    Scoped {
        scope: Scope,
        name: String,
    },
    /// Starts with a digit; letters, digits, `_` and `.` follow.
    Numeral,
    /// A decoded text.
    Text {
        text: String,
        quote: char,
    },
    /// A run of `= ! < > ~ &`.
    Operator,
    /// Any other character.
    Symbol(char),
    /// An invalid text or comment.
    Bad(Mistake),
    End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    Attr,
    Var,
    Env,
}

/// The mapping from bytes of the lexer's string to bytes of the outermost string.
#[derive(Debug)]
pub(crate) enum Origin {
    /// A constant offset.
    Shift(usize),
    /// One position for each byte; one more for the end.
    Table(Vec<usize>),
}

impl Origin {
    pub(crate) fn place(&self, at: usize) -> usize {
        match self {
            Self::Shift(by) => at + by,
            Self::Table(places) => places.get(at).or(places.last()).copied().unwrap_or_default(),
        }
    }
}

/// The tokens of a string, and the position of the parser. Never empty: the last token is `End`.
#[derive(Debug)]
pub(crate) struct Tokens<'a> {
    source: &'a str,
    pub(crate) origin: Origin,
    tokens: Vec<Token>,
    at: usize,
    /// Whether there are comments between the tokens.
    pub(crate) has_comments: bool,
}

impl<'a> Tokens<'a> {
    pub(crate) fn of(source: &'a str, dialect: Dialect, origin: Origin) -> Result<Self, Mistake> {
        if source.len() > SOURCE_BYTES_MAX {
            let limit = SOURCE_BYTES_MAX / 1024;
            let message = format!("longer than the {limit} KiB that are read");
            return Err(Mistake::error(origin.place(0)..origin.place(source.len()), message));
        }
        let mut lexer =
            Lexer { source, at: 0, dialect, opens: false, brackets: 0, has_comments: false };
        let mut tokens = Vec::new();
        loop {
            let mut token = lexer.token();
            token.range = origin.place(token.local.start)..origin.place(token.local.end);
            if let TokenKind::Bad(mistake) = &mut token.kind {
                let range = mistake.range.clone();
                mistake.range = origin.place(range.start)..origin.place(range.end);
            }
            let ended = token.kind == TokenKind::End;
            tokens.push(token);
            if ended {
                let has_comments = lexer.has_comments;
                return Ok(Self { source, origin, tokens, at: 0, has_comments });
            }
        }
    }

    /// Returns the tokens of the empty string.
    pub(crate) fn none() -> Self {
        let end = Token { kind: TokenKind::End, range: 0..0, local: 0..0, gap: Gap::Nothing };
        let (source, origin) = ("", Origin::Shift(0));
        Self { source, origin, tokens: vec![end], at: 0, has_comments: false }
    }

    pub(crate) fn peek(&self) -> &Token {
        self.ahead(0)
    }

    pub(crate) fn ahead(&self, count: usize) -> &Token {
        &self.tokens[(self.at + count).min(self.tokens.len() - 1)]
    }

    pub(crate) fn next(&mut self) -> Token {
        let token = self.peek().clone();
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        token
    }

    /// Returns the source text of a token.
    pub(crate) fn text(&self, token: &Token) -> &'a str {
        &self.source[token.local.clone()]
    }

    /// Returns the source text of the token `count` tokens ahead, if it is a word.
    pub(crate) fn word_ahead(&self, count: usize) -> Option<&'a str> {
        let token = self.ahead(count);
        (token.kind == TokenKind::Word).then(|| self.text(token))
    }

    /// Returns the next token, if it is a word.
    pub(crate) fn peek_word(&self) -> Option<&'a str> {
        self.word_ahead(0)
    }

    /// Returns the position of a byte of a token in the outermost string.
    pub(crate) fn place_in(&self, token: &Token, offset: usize) -> usize {
        self.origin.place(token.local.start + offset)
    }

    /// Returns the source text from one token to another, including the whitespace between them.
    pub(crate) fn written(&self, from: &Token, to: &Token) -> &'a str {
        &self.source[from.local.start..to.local.end.max(from.local.start)]
    }

    /// Returns the error for an unexpected next token.
    pub(crate) fn unexpected(&self, expected: &str) -> Mistake {
        let token = self.peek();
        match &token.kind {
            TokenKind::Bad(mistake) => mistake.clone(),
            TokenKind::End => {
                let message = format!("expected {expected}, found the end");
                Mistake::error(token.range.clone(), message).cut()
            }
            _ => {
                let found = self.text(token);
                Mistake::error(token.range.clone(), format!("expected {expected}, found `{found}`"))
            }
        }
    }
}

struct Lexer<'a> {
    source: &'a str,
    at: usize,
    dialect: Dialect,
    /// Whether the previous token is `span`, `event` or `link`.
    opens: bool,
    /// The number of open brackets inside a selector fragment in an expression.
    brackets: usize,
    has_comments: bool,
}

impl Lexer<'_> {
    fn token(&mut self) -> Token {
        let before = self.at;
        if let Err(mistake) = self.skip_blank() {
            let local = mistake.range.clone();
            self.at = self.source.len();
            return Token {
                kind: TokenKind::Bad(mistake),
                range: local.clone(),
                local,
                gap: Gap::More,
            };
        }
        let start = self.at;
        let gap = match &self.source[before..start] {
            "" => Gap::Nothing,
            " " => Gap::Space,
            _ => Gap::More,
        };
        let opens = std::mem::take(&mut self.opens);
        let kind = match self.peek() {
            None => TokenKind::End,
            Some(c) if is_word_start(c) => {
                let kind = self.word();
                self.opens = ["span", "event", "link"].contains(&&self.source[start..self.at]);
                kind
            }
            Some(c) if c.is_ascii_digit() => {
                self.skip_while(|c| is_word_char(c) || c == '.');
                TokenKind::Numeral
            }
            Some(quote @ ('"' | '\'')) => self.quoted(quote).unwrap_or_else(TokenKind::Bad),
            Some(c) if is_operator_char(c) => {
                self.skip_while(is_operator_char);
                TokenKind::Operator
            }
            Some(c) => {
                self.at += c.len_utf8();
                match c {
                    '[' if opens || self.brackets > 0 => self.brackets += 1,
                    ']' => self.brackets = self.brackets.saturating_sub(1),
                    _ => {}
                }
                TokenKind::Symbol(c)
            }
        };
        Token { kind, range: start..self.at, local: start..self.at, gap }
    }

    /// Returns the dialect at the current position.
    fn dialect(&self) -> Dialect {
        if self.brackets > 0 { Dialect::Selector } else { self.dialect }
    }

    fn skip_blank(&mut self) -> Result<(), Mistake> {
        loop {
            self.skip_while(char::is_whitespace);
            if self.dialect() == Dialect::Expression {
                return Ok(());
            }
            let rest = &self.source[self.at..];
            self.has_comments |= rest.starts_with("//") || rest.starts_with("/*");
            if rest.starts_with("//") {
                self.skip_while(|c| c != '\n');
            } else if rest.starts_with("/*") {
                let Some(length) = rest.find("*/") else {
                    let mistake = Mistake::error(self.at..self.at + 2, "this comment has no end");
                    return Err(mistake.help("close it with `*/`"));
                };
                self.at += length + 2;
            } else {
                return Ok(());
            }
        }
    }

    fn word(&mut self) -> TokenKind {
        let start = self.at;
        self.skip_word();
        let scope = match &self.source[start..self.at] {
            "attr" => Scope::Attr,
            "var" => Scope::Var,
            "env" => Scope::Env,
            _ => return TokenKind::Word,
        };
        let Some(rest) = self.source[self.at..].strip_prefix(':') else { return TokenKind::Word };
        match rest.chars().next() {
            Some(quote @ ('"' | '\'')) => {
                self.at += 1;
                match self.quoted(quote) {
                    Ok(TokenKind::Text { text, .. }) => TokenKind::Scoped { scope, name: text },
                    Ok(other) => other,
                    Err(mistake) => TokenKind::Bad(mistake),
                }
            }
            Some(c) if is_word_char(c) => {
                self.at += 1;
                let name = self.at;
                self.skip_while(|c| is_word_char(c) || c == '.' || c == '-');
                TokenKind::Scoped { scope, name: self.source[name..self.at].to_owned() }
            }
            _ => TokenKind::Word,
        }
    }

    /// Skips a word. A `-` belongs to the word if a letter or digit follows.
    fn skip_word(&mut self) {
        loop {
            self.skip_while(is_word_char);
            let mut rest = self.source[self.at..].chars();
            if rest.next() != Some('-') || !rest.next().is_some_and(is_word_char) {
                return;
            }
            self.at += 1;
        }
    }

    fn quoted(&mut self, quote: char) -> Result<TokenKind, Mistake> {
        let start = self.at;
        let dialect = self.dialect();
        self.at += 1;
        let mut text = String::new();
        while let Some(c) = self.peek() {
            let at = self.at;
            self.at += c.len_utf8();
            match c {
                _ if c == quote => return Ok(TokenKind::Text { text, quote }),
                '\\' if dialect == Dialect::Selector => text.push(self.escape(at)?),
                '\\' if self.peek() == Some(quote) => {
                    self.at += 1;
                    text.push(quote);
                }
                '\n' if dialect == Dialect::Selector => break,
                _ => text.push(c),
            }
        }
        let end = self.at;
        self.at = self.source.len();
        let mistake = Mistake::error(start..end, "this text has no end");
        Err(mistake.label("begins here").help(format!("close it with `{quote}`")).cut())
    }

    /// Decodes an escape of a selector text; `start` is the position of its backslash.
    fn escape(&mut self, start: usize) -> Result<char, Mistake> {
        let letter = self.peek();
        self.at += letter.map_or(0, char::len_utf8);
        let digits = match letter {
            Some('a') => return Ok('\u{7}'),
            Some('b') => return Ok('\u{8}'),
            Some('f') => return Ok('\u{c}'),
            Some('n') => return Ok('\n'),
            Some('r') => return Ok('\r'),
            Some('t') => return Ok('\t'),
            Some('v') => return Ok('\u{b}'),
            Some(c @ ('\\' | '"' | '\'')) => return Ok(c),
            Some('x') => 2,
            Some('u') => 4,
            Some('U') => 8,
            _ => 0,
        };
        let code = self.source.get(self.at..self.at + digits).filter(|code| !code.is_empty());
        let number = code
            .filter(|code| code.bytes().all(|b| b.is_ascii_hexdigit()))
            .and_then(|code| u32::from_str_radix(code, 16).ok());
        if let Some(c) = number.and_then(char::from_u32) {
            self.at += digits;
            return Ok(c);
        }
        let end = self.at;
        self.at = self.source.len();
        let message = format!("unknown escape `{}`", &self.source[start..end]);
        Err(Mistake::error(start..end, message).help("write `\\\\` for a backslash"))
    }

    fn peek(&self) -> Option<char> {
        self.source[self.at..].chars().next()
    }

    fn skip_while(&mut self, belongs: impl Fn(char) -> bool) {
        let rest = &self.source[self.at..];
        self.at += rest.find(|c| !belongs(c)).unwrap_or(rest.len());
    }
}

/// Whether a name needs no quotes in a selector: words separated by dots.
pub(crate) fn is_plain_name(name: &str) -> bool {
    name.split('.').all(is_word)
}

/// Whether a name needs no quotes after `attr:`, `var:` or `env:`.
pub(crate) fn is_scoped_name(name: &str) -> bool {
    name.starts_with(is_word_char) && name.chars().all(|c| is_word_char(c) || ".-".contains(c))
}

fn is_word(text: &str) -> bool {
    text.starts_with(is_word_start)
        && text.split('-').all(|piece| !piece.is_empty() && piece.chars().all(is_word_char))
}

fn is_word_start(c: char) -> bool {
    c.is_alphabetic() || c == '_'
}

fn is_word_char(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn is_operator_char(c: char) -> bool {
    "=!<>~&".contains(c)
}

#[cfg(test)]
mod tests;
