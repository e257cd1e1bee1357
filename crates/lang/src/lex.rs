//! The one lexer, for selectors and expressions.
//!
//! Both languages share words, numerals and symbols. They differ, as they did in Tracetest, in two things:
//! a selector has comments (`//`, `/* */`) and texts with escapes, and its texts end on their line; in an
//! expression a backslash stands for itself unless the text's own quote follows.
//!
//! Deliberately absent: meaning. A numeral is any run of letters and digits that starts with a digit, an operator
//! any run of `= ! < > ~ &`, so that a parser can name the whole of what it refuses.

use std::ops::Range;

use crate::mistake::Mistake;

/// The longest selector, assertion or value that is read, in bytes.
pub(crate) const SOURCE_BYTES_MAX: usize = 64 * 1024;

/// Which of the two languages a string is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    Selector,
    Expression,
}

#[derive(Clone, Debug)]
pub(crate) struct Token {
    pub(crate) kind: TokenKind,
    pub(crate) range: Range<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TokenKind {
    /// Letters, digits, `_` and inner `-`, starting with a letter or `_`.
    Word,
    /// `attr:`, `var:` or `env:` with the name behind it, quoted or bare.
    Scoped {
        scope: Scope,
        name: String,
    },
    /// Starts with a digit; letters, digits, `_` and `.` follow.
    Numeral,
    /// A text, decoded.
    Text {
        text: String,
        quote: char,
    },
    /// A run of `= ! < > ~ &`.
    Operator,
    /// Any other character.
    Symbol(char),
    /// A text or comment that cannot be read.
    Bad(Mistake),
    End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    Attr,
    Var,
    Env,
}

/// The tokens of a string, and how far a parser has come. Never empty: the last token is `End`.
#[derive(Debug)]
pub(crate) struct Tokens<'a> {
    source: &'a str,
    tokens: Vec<Token>,
    at: usize,
}

impl<'a> Tokens<'a> {
    pub(crate) fn of(source: &'a str, dialect: Dialect) -> Result<Self, Mistake> {
        if source.len() > SOURCE_BYTES_MAX {
            let limit = SOURCE_BYTES_MAX / 1024;
            let message = format!("longer than the {limit} KiB that are read");
            return Err(Mistake::error(0..source.len(), message));
        }
        let mut lexer = Lexer { source, at: 0, dialect };
        let mut tokens = Vec::new();
        loop {
            let token = lexer.token();
            let ended = token.kind == TokenKind::End;
            tokens.push(token);
            if ended {
                return Ok(Self { source, tokens, at: 0 });
            }
        }
    }

    pub(crate) fn peek(&self) -> &Token {
        self.ahead(0)
    }

    /// The token behind the next one.
    pub(crate) fn peek_second(&self) -> &Token {
        self.ahead(1)
    }

    pub(crate) fn next(&mut self) -> Token {
        let token = self.peek().clone();
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        token
    }

    /// Takes the next token if it is this symbol.
    pub(crate) fn take_symbol(&mut self, symbol: char) -> Option<Range<usize>> {
        (self.peek().kind == TokenKind::Symbol(symbol)).then(|| self.next().range)
    }

    /// The written text of a token.
    pub(crate) fn text(&self, token: &Token) -> &'a str {
        &self.source[token.range.clone()]
    }

    /// The next token, if it is a word.
    pub(crate) fn peek_word(&self) -> Option<&'a str> {
        let token = self.peek();
        (token.kind == TokenKind::Word).then(|| self.text(token))
    }

    /// The mistake of finding the next token where something else should stand.
    pub(crate) fn unexpected(&self, expected: &str) -> Mistake {
        let token = self.peek();
        match &token.kind {
            TokenKind::Bad(mistake) => mistake.clone(),
            TokenKind::End => {
                Mistake::error(token.range.clone(), format!("expected {expected}, found the end"))
            }
            _ => {
                let found = self.text(token);
                Mistake::error(token.range.clone(), format!("expected {expected}, found `{found}`"))
            }
        }
    }

    fn ahead(&self, count: usize) -> &Token {
        &self.tokens[(self.at + count).min(self.tokens.len() - 1)]
    }
}

struct Lexer<'a> {
    source: &'a str,
    at: usize,
    dialect: Dialect,
}

impl Lexer<'_> {
    fn token(&mut self) -> Token {
        if let Err(mistake) = self.skip_blank() {
            let range = mistake.range.clone();
            self.at = self.source.len();
            return Token { kind: TokenKind::Bad(mistake), range };
        }
        let start = self.at;
        let kind = match self.peek() {
            None => TokenKind::End,
            Some(c) if is_word_start(c) => self.word(),
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
                TokenKind::Symbol(c)
            }
        };
        Token { kind, range: start..self.at }
    }

    fn skip_blank(&mut self) -> Result<(), Mistake> {
        loop {
            self.skip_while(char::is_whitespace);
            if self.dialect == Dialect::Expression {
                return Ok(());
            }
            let rest = &self.source[self.at..];
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

    /// A `-` belongs to a word where a letter or digit follows it.
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
        self.at += 1;
        let mut text = String::new();
        while let Some(c) = self.peek() {
            let at = self.at;
            self.at += c.len_utf8();
            match c {
                _ if c == quote => return Ok(TokenKind::Text { text, quote }),
                '\\' if self.dialect == Dialect::Selector => text.push(self.escape(at)?),
                '\\' if self.peek() == Some(quote) => {
                    self.at += 1;
                    text.push(quote);
                }
                '\n' if self.dialect == Dialect::Selector => break,
                _ => text.push(c),
            }
        }
        let end = self.at;
        self.at = self.source.len();
        let mistake = Mistake::error(start..end, "this text has no end");
        Err(mistake.label("begins here").help(format!("close it with `{quote}`")))
    }

    /// What an escape of a selector's text stands for; `start` is where its backslash stands.
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
mod tests {
    use super::{Dialect, TokenKind, Tokens};

    fn kinds(source: &str, dialect: Dialect) -> Vec<String> {
        let mut tokens = Tokens::of(source, dialect).expect("short enough");
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
        let cases: &[(Dialect, &str, &[&str])] = &[
            (Dialect::Selector, "", &[]),
            (Dialect::Selector, " // all of it", &[]),
            (
                Dialect::Selector,
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
            (Dialect::Selector, "\"\\u00e9\\x41\\U0001F680\"", &["text éA🚀"]),
            (Dialect::Selector, "\"a\\qb\"", &["bad"]),
            (Dialect::Selector, "\"a\nb\"", &["bad"]),
            (Dialect::Selector, "/* never", &["bad"]),
            (
                Dialect::Selector,
                "0xA 1_500 200.",
                &["numeral 0xA", "numeral 1_500", "numeral 200."],
            ),
            (
                Dialect::Expression,
                "attr:http.x-y != 'it\\'s'",
                &["Attr http.x-y", "operator !=", "text it's"],
            ),
            (Dialect::Expression, "attr:\"with space\"", &["Attr with space"]),
            (Dialect::Expression, "\"a\\b\\\"c\nd\"", &["text a\\b\"c\nd"]),
            (Dialect::Expression, "attr: x", &["word attr", "symbol :", "word x"]),
            (
                Dialect::Expression,
                "a not-contains b-",
                &["word a", "word not-contains", "word b", "symbol -"],
            ),
            (Dialect::Expression, "1 == 2", &["numeral 1", "operator ==", "numeral 2"]),
            (Dialect::Expression, "a // b", &["word a", "symbol /", "symbol /", "word b"]),
            (Dialect::Expression, "'a", &["bad"]),
        ];
        for (dialect, source, expected) in cases {
            assert_eq!(kinds(source, *dialect), *expected, "{source}");
        }
    }

    #[test]
    fn what_is_too_long_is_refused() {
        assert!(Tokens::of(&" ".repeat(super::SOURCE_BYTES_MAX + 1), Dialect::Selector).is_err());
    }
}
