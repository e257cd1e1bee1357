//! From text to syntax tree, or to the first mistake.

use std::ops::Range;

use source::{did_you_mean, is_duration_unit};

use super::ast::{Assertion, Term};
use crate::{
    compare::{COMPARATORS, Comparator, has_order},
    lex::{Dialect, Scope, Token, TokenKind, Tokens},
    mistake::Mistake,
    numeral::{read_duration, read_loose},
    property::Property,
    value::Literal,
};

const FILTERS: &[&str] = &["json_path", "regex", "regex_group", "get_index", "length", "type"];

/// Comparators of the coming language.
const LATER_COMPARATORS: &[&str] = &["starts-with", "ends-with", "matches", "in", "between"];

/// What other languages write, and what is meant.
const SPELLINGS: &[(&str, &str)] = &[
    ("==", "="),
    ("===", "="),
    ("<>", "!="),
    ("=>", ">="),
    ("=<", "<="),
    ("!==", "!="),
    ("is", "="),
    ("equals", "="),
];

/// Reads an assertion: two terms and how they compare.
pub(crate) fn parse_assertion(source: &str) -> Result<Assertion, Mistake> {
    let mut parser = Parser { source, tokens: Tokens::of(source, Dialect::Expression)? };
    let left = parser.operand()?;
    let comparator = parser.comparator()?;
    let (right, range) = parser.spanned(Parser::operand)?;
    parser.end()?;
    let assertion = Assertion { left, comparator, right };
    check_order(&assertion, range)?;
    Ok(assertion)
}

/// Reads the value of an output: a term alone.
pub(crate) fn parse_value(source: &str) -> Result<Term, Mistake> {
    let mut parser = Parser { source, tokens: Tokens::of(source, Dialect::Expression)? };
    let term = parser.operand()?;
    parser.end()?;
    Ok(term)
}

struct Parser<'a> {
    source: &'a str,
    tokens: Tokens<'a>,
}

impl Parser<'_> {
    /// A term, and nothing behind it that would change it.
    fn operand(&mut self) -> Result<Term, Mistake> {
        let term = self.term()?;
        let token = self.tokens.peek().clone();
        match token.kind {
            TokenKind::Symbol('|') => Err(self.filter(token.range)),
            TokenKind::Symbol('+' | '-' | '*' | '/') => {
                Err(Mistake::unsupported(token.range, "arithmetic is"))
            }
            _ => Ok(term),
        }
    }

    fn term(&mut self) -> Result<Term, Mistake> {
        let token = self.tokens.peek().clone();
        let written = self.tokens.text(&token).to_owned();
        let literal = match token.kind {
            TokenKind::Scoped { scope: Scope::Attr, name } => {
                self.tokens.next();
                let at = token.range.start + "attr:".len()..token.range.end;
                let property = Property::named(&name, Dialect::Expression, at)?;
                return Ok(Term::Property { property, name });
            }
            TokenKind::Scoped { .. } => {
                return Err(Mistake::unsupported(token.range, "a variable in an assertion is"));
            }
            TokenKind::Text { text, .. } => {
                refuse_interpolation(&text, &written, token.range.start)?;
                Literal::Text(text)
            }
            TokenKind::Numeral => return self.number(token.range.start).map(Term::Literal),
            TokenKind::Symbol('-') if self.tokens.peek_second().kind == TokenKind::Numeral => {
                self.tokens.next();
                return self.number(token.range.start).map(Term::Literal);
            }
            TokenKind::Word if written == "true" => Literal::Bool(true),
            TokenKind::Word if written == "false" => Literal::Bool(false),
            _ => return Err(self.no_term(&token, &written)),
        };
        self.tokens.next();
        Ok(Term::Literal(literal))
    }

    /// The number or duration whose digits are the next token; `start` is where its sign stands, if it has one.
    fn number(&mut self, start: usize) -> Result<Literal, Mistake> {
        let token = self.tokens.next();
        let range = start..token.range.end;
        let written = self.source[range.clone()].replace([' ', '\t', '\n'], "");
        let (digits, unit) = written.split_at(
            written.find(|c: char| c.is_alphabetic() || c == '_').unwrap_or(written.len()),
        );
        if unit.is_empty() {
            if let Some(unit) = self.unit_ahead(&token)? {
                let range = range.start..self.tokens.next().range.end;
                return duration(digits, &unit, range);
            }
            return match read_loose(digits) {
                Some(value) => Ok(Literal::Number { value, spelling: written }),
                // A whole number that 128 bits cannot hold still equals a text of the same digits.
                None if !digits.contains('.') => Ok(Literal::Text(written)),
                None => {
                    let mistake = Mistake::error(range, format!("`{written}` is not a number"));
                    Err(mistake.help("digits stand on both sides of the point"))
                }
            };
        }
        duration(digits, unit, range)
    }

    /// The unit behind a number, if there is one; one blank may stand in between.
    fn unit_ahead(&self, number: &Token) -> Result<Option<String>, Mistake> {
        let Some(unit) = self.tokens.peek_word().filter(|word| is_duration_unit(word)) else {
            return Ok(None);
        };
        let range = self.tokens.peek().range.clone();
        if &self.source[number.range.end..range.start] == " " {
            return Ok(Some(unit.to_owned()));
        }
        let digits = self.tokens.text(number);
        let message = "a unit stands right behind its number";
        Err(Mistake::error(range, message).help(format!("write `{digits}{unit}`")))
    }

    fn comparator(&mut self) -> Result<Comparator, Mistake> {
        let token = self.tokens.peek().clone();
        let written = self.tokens.text(&token).to_owned();
        if let Some((_, comparator)) = COMPARATORS.iter().find(|(known, _)| *known == written) {
            self.tokens.next();
            return Ok(*comparator);
        }
        if !matches!(token.kind, TokenKind::Word | TokenKind::Operator) {
            let expected = "a comparator such as `=`, `<` or `contains`";
            return Err(self.tokens.unexpected(expected));
        }
        if LATER_COMPARATORS.contains(&written.as_str()) {
            return Err(Mistake::unsupported(token.range, &format!("`{written}` is")));
        }
        let spelling = SPELLINGS.iter().find(|(other, _)| *other == written).map(|(_, ours)| *ours);
        let known = COMPARATORS.iter().map(|(known, _)| *known).filter(|known| known.len() > 2);
        let mistake = Mistake::error(token.range, format!("unknown comparator `{written}`"));
        match spelling.or_else(|| did_you_mean(&written, known)) {
            Some(meant) => Err(mistake.suggest(Some(meant))),
            None => {
                let known: Vec<_> =
                    COMPARATORS.iter().map(|(known, _)| format!("`{known}`")).collect();
                Err(mistake.help(format!("known are {}", known.join(" "))))
            }
        }
    }

    fn end(&self) -> Result<(), Mistake> {
        let token = self.tokens.peek();
        if token.kind == TokenKind::End {
            return Ok(());
        }
        let mistake = self.tokens.unexpected("the end");
        match self.tokens.text(token) {
            word @ ("and" | "or" | "&&") => {
                let what = format!("`{word}` is");
                Err(Mistake::unsupported(token.range.clone(), &what)
                    .help("each assertion of a spec has to hold; write two for `and`"))
            }
            _ => Err(mistake),
        }
    }

    /// Why no term starts here.
    fn no_term(&self, token: &Token, written: &str) -> Mistake {
        let range = token.range.clone();
        let second = &self.tokens.peek_second().kind;
        match (&token.kind, second) {
            (TokenKind::Word, TokenKind::Symbol('(')) => {
                Mistake::unsupported(range, "a function in an assertion is")
            }
            (TokenKind::Word, _) if written == "not" => Mistake::unsupported(range, "`not` is"),
            (TokenKind::Word, TokenKind::Symbol('.')) => {
                let name: String = self.source[range.start..]
                    .chars()
                    .take_while(|c| c.is_alphanumeric() || "._-".contains(*c))
                    .collect();
                Mistake::error(range.start..range.start + name.len(), "a bare name is no value")
                    .help(format!("an attribute is written `attr:{name}`"))
            }
            (TokenKind::Word, _) if COMPARATORS.iter().any(|(known, _)| *known == written) => {
                self.tokens.unexpected("a value")
            }
            (TokenKind::Word, _) => Mistake::error(range, "a bare word is no value").help(format!(
                "write `attr:{written}` for an attribute, `\"{written}\"` for a text"
            )),
            (TokenKind::Symbol('['), _) => Mistake::unsupported(range, "a list is"),
            (TokenKind::Symbol('('), _) => {
                Mistake::error(range, "parentheses are not supported yet")
            }
            _ => self.tokens.unexpected("a value"),
        }
    }

    fn filter(&self, bar: Range<usize>) -> Mistake {
        let token = self.tokens.peek_second();
        let name = self.tokens.text(token);
        if token.kind != TokenKind::Word {
            return Mistake::error(bar, "expected a filter's name behind `|`");
        }
        let range = bar.start..token.range.end;
        if FILTERS.contains(&name) {
            return Mistake::unsupported(range, &format!("the filter `{name}` is"));
        }
        let mistake = Mistake::error(token.range.clone(), format!("unknown filter `{name}`"));
        mistake.suggest(did_you_mean(name, FILTERS.iter().copied()))
    }

    /// What `read` reads, and where it stands.
    fn spanned<T>(
        &mut self,
        read: impl Fn(&mut Self) -> Result<T, Mistake>,
    ) -> Result<(T, Range<usize>), Mistake> {
        let start = self.tokens.peek().range.start;
        let value = read(self)?;
        let end = self.source[..self.tokens.peek().range.start].trim_end().len();
        Ok((value, start..end.max(start)))
    }
}

fn duration(digits: &str, unit: &str, range: Range<usize>) -> Result<Literal, Mistake> {
    let written = format!("{digits}{unit}");
    if let Some(nanos) = read_duration(&written) {
        return Ok(Literal::Duration(nanos));
    }
    if is_duration_unit(unit) && read_loose(digits).is_some() {
        let message = format!("`{written}` is not a whole number of nanoseconds");
        return Err(Mistake::error(range, message));
    }
    let mistake = Mistake::error(range, format!("`{written}` is neither a number nor a duration"));
    Err(mistake.help("a duration is a number and one of `ns` `us` `ms` `s` `m` `h`"))
}

/// A `${…}` would be sent as it stands, which nobody means.
fn refuse_interpolation(text: &str, written: &str, start: usize) -> Result<(), Mistake> {
    if !text.contains("${") {
        return Ok(());
    }
    let at = written.find("${").unwrap_or(0);
    let end = written[at..].find('}').map_or(at + 2, |length| at + length + 1);
    Err(Mistake::unsupported(start + at..start + end, "`${…}` in an assertion is"))
}

/// A literal that no order knows makes the assertion fail whatever the trace is.
fn check_order(assertion: &Assertion, right: Range<usize>) -> Result<(), Mistake> {
    if !assertion.comparator.is_order() {
        return Ok(());
    }
    for (term, range) in [(&assertion.left, 0..right.start), (&assertion.right, right.clone())] {
        let mistake = match term {
            Term::Literal(Literal::Text(text)) if !has_order(text) => {
                match !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
                    true => Mistake::error(range, format!("`{text}` does not fit 128 bits")),
                    false => Mistake::error(range, "a text has no order")
                        .help("only numbers and durations have one"),
                }
            }
            Term::Literal(Literal::Bool(_)) => Mistake::error(range, "a boolean has no order"),
            _ => continue,
        };
        return Err(mistake);
    }
    Ok(())
}
