//! From text to syntax tree, or to the first mistake.

use std::ops::Range;

use source::did_you_mean;

use super::ast::{Filter, Operator, Part, Position, Selector, Step};
use crate::{
    lex::{Dialect, Token, TokenKind, Tokens},
    mistake::Mistake,
    numeral::{Number, read_loose},
    property::Property,
    value::Literal,
};

/// How many steps and filters a selector may have: each is tried on every span.
const PIECES_MAX: usize = 256;

const POSITIONS: [&str; 3] = ["first", "last", "nth_child"];

/// Words of the coming language; seen in the place of an operator they deserve a better answer than "unexpected".
const LATER_OPERATORS: &[&str] = &[
    "!=",
    "<",
    "<=",
    ">",
    ">=",
    "=~",
    "!~",
    "not-contains",
    "starts-with",
    "ends-with",
    "exists",
    "in",
    "not",
];

/// Reads a selector. Warnings come with it; an error comes alone.
pub(crate) fn parse(source: &str) -> Result<(Selector, Vec<Mistake>), Mistake> {
    let tokens = Tokens::of(source, Dialect::Selector)?;
    let mut parser = Parser { source, tokens, pieces: 0, warnings: Vec::new() };
    let selector = parser.selector()?;
    Ok((selector, parser.warnings))
}

struct Parser<'a> {
    source: &'a str,
    tokens: Tokens<'a>,
    pieces: usize,
    warnings: Vec<Mistake>,
}

impl Parser<'_> {
    fn selector(&mut self) -> Result<Selector, Mistake> {
        let mut selector = Selector::default();
        if self.tokens.peek().kind == TokenKind::End {
            return Ok(selector);
        }
        // Tracetest takes a comma in front, so files may have one.
        self.tokens.take_symbol(',');
        loop {
            selector.parts.push(self.part()?);
            if self.tokens.peek().kind == TokenKind::End {
                return Ok(selector);
            }
            if self.tokens.take_symbol(',').is_none() {
                return Err(self.after_step());
            }
        }
    }

    fn part(&mut self) -> Result<Part, Mistake> {
        let mut steps = vec![self.step()?];
        while self.tokens.peek_word() == Some("span") {
            steps.push(self.step()?);
        }
        Ok(Part { steps })
    }

    fn step(&mut self) -> Result<Step, Mistake> {
        let start = self.tokens.peek().range.start;
        if self.tokens.peek_word() != Some("span") {
            let word = self.tokens.peek_word().unwrap_or_default();
            let mistake = self.tokens.unexpected("`span[…]`");
            return Err(mistake.suggest(did_you_mean(word, ["span"])));
        }
        self.piece()?;
        self.tokens.next();
        self.expect('[', "`[` behind `span`")?;
        let mut filters = Vec::new();
        let mut comma = self.tokens.take_symbol(',').is_some();
        let end = loop {
            match self.tokens.take_symbol(']') {
                Some(range) if !comma => break range.end,
                Some(range) => {
                    return Err(Mistake::error(range, "expected a filter behind `,`, found `]`"));
                }
                None => filters.push(self.filter()?),
            }
            comma = self.tokens.take_symbol(',').is_some();
        };
        let source = self.source[start..end].to_owned();
        Ok(Step { filters, position: self.positions()?, source })
    }

    fn filter(&mut self) -> Result<Filter, Mistake> {
        self.piece()?;
        let (name, range) = self.name()?;
        let is_operator = |token: &Token| ["=", "contains"].contains(&self.tokens.text(token));
        if ["and", "or", "not"].contains(&name.as_str()) && !is_operator(self.tokens.peek()) {
            let mistake = Mistake::unsupported(range, &format!("`{name}` in a selector is"));
            return Err(mistake.help("filters beside each other have to hold all"));
        }
        let property = Property::named(&name, Dialect::Selector, range)?;
        let operator = self.operator()?;
        let value = self.value()?;
        Ok(Filter { property, name, operator, value })
    }

    fn name(&mut self) -> Result<(String, Range<usize>), Mistake> {
        let token = self.tokens.peek().clone();
        let mut name = match token.kind {
            TokenKind::Text { text, quote: '"' } => {
                self.tokens.next();
                return Ok((text, token.range));
            }
            TokenKind::Scoped { name, .. } => {
                let message = "a filter names the attribute alone";
                return Err(Mistake::error(token.range, message).help(format!("write `{name}`")));
            }
            TokenKind::Word => {
                self.tokens.next();
                self.source[token.range.clone()].to_owned()
            }
            _ => return Err(self.tokens.unexpected("an attribute's name or `]`")),
        };
        let mut end = token.range.end;
        while self.tokens.take_symbol('.').is_some() {
            if self.tokens.peek_word().is_none() {
                let mistake = self.tokens.unexpected("a word behind `.`");
                return Err(mistake.help("an unusual name stands in double quotes"));
            }
            let word = self.tokens.next();
            name.push('.');
            name.push_str(self.tokens.text(&word));
            end = word.range.end;
        }
        Ok((name, token.range.start..end))
    }

    fn operator(&mut self) -> Result<Operator, Mistake> {
        let token = self.tokens.peek().clone();
        let operator = match self.tokens.text(&token) {
            "=" => Operator::Equals,
            "contains" => Operator::Contains,
            written => {
                let mistake = self.tokens.unexpected("`=` or `contains`");
                return Err(match written {
                    "==" => mistake.help("did you mean `=`?"),
                    _ if LATER_OPERATORS.contains(&written) => {
                        Mistake::unsupported(token.range, &format!("`{written}` in a selector is"))
                            .help("`=` and `contains` are")
                    }
                    _ => mistake.suggest(did_you_mean(written, ["contains"])),
                });
            }
        };
        self.tokens.next();
        Ok(operator)
    }

    fn value(&mut self) -> Result<Literal, Mistake> {
        let token = self.tokens.peek().clone();
        let written = self.tokens.text(&token);
        let literal = match token.kind {
            TokenKind::Text { text, quote: '"' } => Literal::Text(text),
            TokenKind::Text { text, .. } => {
                let mistake = Mistake::error(token.range, "a text stands in double quotes here");
                return Err(mistake.help(format!("write {text:?}")));
            }
            TokenKind::Numeral => number(written, token.range)?,
            TokenKind::Symbol('-') if self.is_negative() => {
                self.tokens.next();
                let digits = self.tokens.peek().clone();
                let range = token.range.start..digits.range.end;
                number(&self.source[range.clone()], range)?
            }
            TokenKind::Word if written == "true" => Literal::Bool(true),
            TokenKind::Word if written == "false" => Literal::Bool(false),
            TokenKind::Word => {
                let mistake = self.tokens.unexpected("a value");
                return Err(
                    mistake.help(format!("a text stands in double quotes: `\"{written}\"`"))
                );
            }
            _ => {
                return Err(self
                    .tokens
                    .unexpected("a text in double quotes, a number, `true` or `false`"));
            }
        };
        self.tokens.next();
        Ok(literal)
    }

    fn is_negative(&self) -> bool {
        let (sign, digits) = (self.tokens.peek(), self.tokens.peek_second());
        digits.kind == TokenKind::Numeral && sign.range.end == digits.range.start
    }

    /// What stands behind a step. As in Tracetest the last of several positions counts, which is worth a word.
    fn positions(&mut self) -> Result<Option<Position>, Mistake> {
        let mut position: Option<(Position, Range<usize>)> = None;
        while let Some(colon) = self.tokens.take_symbol(':') {
            let at = self.position()?;
            if let Some((_, ignored)) = position.take() {
                let message = "only the last position of a step counts";
                self.warnings
                    .push(Mistake::warning(ignored, message).label("this one has no effect"));
            }
            position = Some((at.0, colon.start..at.1));
        }
        Ok(position.map(|(position, _)| position))
    }

    /// A position and where it ends.
    fn position(&mut self) -> Result<(Position, usize), Mistake> {
        let token = self.tokens.peek().clone();
        let mut end = token.range.end;
        let position = match self.tokens.peek_word() {
            Some("first") => Position::First,
            Some("last") => Position::Last,
            Some("nth_child") => Position::Nth(0),
            word => {
                let mistake = self.tokens.unexpected("`first`, `last` or `nth_child(…)`");
                return Err(mistake.suggest(did_you_mean(word.unwrap_or_default(), POSITIONS)));
            }
        };
        self.tokens.next();
        let mut count: Option<(i128, Range<usize>)> = None;
        while self.tokens.take_symbol('(').is_some() {
            let argument = self.tokens.peek().clone();
            let number = number(self.tokens.text(&argument), argument.range.clone());
            let Ok(Literal::Number { value: Number::Int(int @ 0..), .. }) = number else {
                return Err(self.tokens.unexpected("a whole number"));
            };
            if int == 0 && matches!(position, Position::Nth(_)) {
                return Err(Mistake::error(argument.range, "positions count from 1"));
            }
            self.tokens.next();
            end = self.expect(')', "`)`")?.end;
            let ignored = match position {
                Position::Nth(_) => count.replace((int, argument.range)),
                Position::First | Position::Last => Some((0, argument.range)),
            };
            self.warnings.extend(
                ignored.map(|(_, range)| Mistake::warning(range, "this number has no effect")),
            );
        }
        match (position, count) {
            (Position::Nth(_), Some((count, _))) => {
                Ok((Position::Nth(u64::try_from(count).unwrap_or(u64::MAX)), end))
            }
            (Position::Nth(_), None) => Err(self.tokens.unexpected("`(` and which one")),
            (position, _) => Ok((position, end)),
        }
    }

    fn after_step(&self) -> Mistake {
        let token = self.tokens.peek();
        let written = self.tokens.text(token);
        let range = token.range.clone();
        match written {
            ">" | "+" | "~" => {
                Mistake::unsupported(range, &format!("`{written}` between steps is"))
                    .help("a step behind another selects what is below it, at any depth")
            }
            _ => self
                .tokens
                .unexpected("`:`, `,`, `span[…]` or the end")
                .suggest(did_you_mean(written, ["span"])),
        }
    }

    fn expect(&mut self, symbol: char, expected: &str) -> Result<Range<usize>, Mistake> {
        self.tokens.take_symbol(symbol).ok_or_else(|| self.tokens.unexpected(expected))
    }

    fn piece(&mut self) -> Result<(), Mistake> {
        self.pieces += 1;
        if self.pieces <= PIECES_MAX {
            return Ok(());
        }
        let message = format!("more than {PIECES_MAX} steps and filters");
        Err(Mistake::error(self.tokens.peek().range.clone(), message).help("split the spec"))
    }
}

/// A number of a selector: decimal, or with a prefix for its radix, and with `_` between digits.
fn number(written: &str, range: Range<usize>) -> Result<Literal, Mistake> {
    let digits = written.replace('_', "");
    let radix = [("0x", 16), ("0X", 16), ("0b", 2), ("0B", 2), ("0o", 8), ("0O", 8)]
        .iter()
        .find_map(|(prefix, radix)| Some((digits.strip_prefix(prefix)?, *radix)));
    let value = match radix {
        Some((digits, radix)) if digits.starts_with(|c: char| c.is_digit(radix)) => {
            i128::from_str_radix(digits, radix).ok().map(Number::Int)
        }
        Some(_) => None,
        None => read_loose(digits.strip_suffix('.').unwrap_or(&digits)),
    };
    match value {
        Some(value) => Ok(Literal::Number { value, spelling: written.to_owned() }),
        // A whole number that 128 bits cannot hold still equals a text of the same digits.
        None if written.bytes().all(|b| b.is_ascii_digit()) && !written.is_empty() => {
            Ok(Literal::Text(written.to_owned()))
        }
        None => {
            let mistake = Mistake::error(range, format!("`{written}` is not a number"));
            Err(mistake.help(format!("a text stands in double quotes: `\"{written}\"`")))
        }
    }
}
