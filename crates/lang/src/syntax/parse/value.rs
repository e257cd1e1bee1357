//! Parses values: arithmetic, filters, functions, names.

use std::ops::Range;

use source::did_you_mean;

use super::{ParseContext, Parser, Stop, hint::listed, summary::summary_words};
use crate::syntax::{
    ast::{Arithmetic, Expr, ExprKind, Filter},
    lex::{Dialect, Gap, TokenKind},
    mistake::Mistake,
    name::{FILTERS, FUNCTIONS},
};

impl Parser<'_> {
    /// Parses a value with its filters.
    pub(super) fn operand(&mut self) -> Result<Expr, Stop> {
        let start = self.start();
        let mut value = self.sum()?;
        while self.tokens.peek().kind == TokenKind::Symbol('|') && !self.is_double('|') {
            self.piece()?;
            self.bump();
            value = self.require_value(value);
            value = self.filter(value, start)?;
        }
        Ok(value)
    }

    /// Whether the next two tokens are this symbol, without whitespace between.
    pub(super) fn is_double(&self, symbol: char) -> bool {
        let second = self.tokens.ahead(1);
        self.tokens.peek().kind == TokenKind::Symbol(symbol)
            && second.kind == TokenKind::Symbol(symbol)
            && second.gap == Gap::Nothing
    }

    fn filter(&mut self, input: Expr, start: usize) -> Result<Expr, Stop> {
        let Some(word) = self.tokens.peek_word() else {
            return Err(self.unexpected("a filter's name behind `|`"));
        };
        let token = self.bump();
        let known = FILTERS.iter().find(|(known, _, _)| *known == word);
        if known.is_none() {
            let mistake = Mistake::error(token.range.clone(), format!("unknown filter `{word}`"));
            let meant = did_you_mean(word, FILTERS.iter().map(|(known, _, _)| *known));
            self.note(match meant {
                Some(meant) => mistake.suggest(Some(meant)),
                None => mistake.help(format!("known are {}", listed(FILTERS.iter().map(|f| f.0)))),
            });
        }
        // In a selector the next condition may start with a text, so only the arguments of this filter are consumed.
        let arguments_max = match self.scene.dialect {
            Dialect::Selector => known.map_or(1, |(_, _, count)| *count),
            Dialect::Expression => usize::MAX,
        };
        let scene = ParseContext { is_left: false, ..self.scene };
        let mut arguments = Vec::new();
        while arguments.len() < arguments_max && self.starts_argument() {
            arguments.push(self.with(scene, |parser| parser.nested(Self::unary))?);
        }
        let range = self.since(start);
        let Some((_, filter, count)) = known else {
            return Ok(Expr::new(ExprKind::Null, range));
        };
        if arguments.len() != *count {
            let found = arguments.len();
            let mistake = Mistake::error(
                self.since(token.range.start),
                format!("`{word}` takes {}, found {found}", arguments_named(*count, *count)),
            );
            self.note(match filter {
                Filter::JsonPath => mistake.help("write `| json_path \"$.id\"`"),
                Filter::Regex | Filter::RegexGroup => {
                    mistake.help(format!("write `| {word} \"[0-9]+\"`"))
                }
                Filter::GetIndex => mistake.help("write `| get_index 0` or `| get_index \"last\"`"),
                Filter::Length | Filter::Type | Filter::Keys => mistake,
            });
        }
        self.check_filter(*filter, &arguments);
        let input = Box::new(input);
        Ok(Expr::new(ExprKind::Filter { input, filter: *filter, arguments }, range))
    }

    fn starts_argument(&self) -> bool {
        let (token, second) = (self.tokens.peek(), self.tokens.ahead(1));
        match &token.kind {
            TokenKind::Text { .. } | TokenKind::Numeral | TokenKind::Scoped { .. } => true,
            TokenKind::Symbol('[' | '(') => true,
            TokenKind::Symbol('-') => {
                second.kind == TokenKind::Numeral && second.gap == Gap::Nothing
            }
            TokenKind::Word => {
                let word = self.tokens.text(token);
                ["true", "false", "null"].contains(&word)
                    || second.kind == TokenKind::Symbol('(')
                        && FUNCTIONS.iter().any(|(known, ..)| *known == word)
            }
            _ => false,
        }
    }

    fn sum(&mut self) -> Result<Expr, Stop> {
        let start = self.start();
        let mut left = self.product()?;
        loop {
            let operator = match self.tokens.peek().kind {
                TokenKind::Symbol('+') => Arithmetic::Add,
                TokenKind::Symbol('-') => Arithmetic::Subtract,
                _ => return Ok(left),
            };
            self.bump();
            let right_start = self.start();
            let right = self.product()?;
            self.warn_of_precedence(&right, right_start, start);
            left = self.arithmetic(left, operator, right, start)?;
        }
    }

    fn product(&mut self) -> Result<Expr, Stop> {
        let start = self.start();
        let mut left = self.unary()?;
        loop {
            self.refuse_unusual_name(&left)?;
            let operator = match self.tokens.peek().kind {
                TokenKind::Symbol('*') if self.css_comparator().is_none() => Arithmetic::Multiply,
                TokenKind::Symbol('/') => Arithmetic::Divide,
                _ => return Ok(left),
            };
            self.bump();
            let right = self.unary()?;
            left = self.arithmetic(left, operator, right, start)?;
        }
    }

    fn arithmetic(
        &mut self,
        left: Expr,
        operator: Arithmetic,
        right: Expr,
        start: usize,
    ) -> Result<Expr, Stop> {
        self.piece()?;
        self.check_arithmetic(&left);
        self.check_arithmetic(&right);
        let left = Box::new(self.require_value(left));
        let right = Box::new(self.require_value(right));
        Ok(Expr::new(ExprKind::Arithmetic { left, operator, right }, self.since(start)))
    }

    fn unary(&mut self) -> Result<Expr, Stop> {
        if self.tokens.peek().kind != TokenKind::Symbol('-') {
            return self.primary();
        }
        let sign = self.bump();
        if self.tokens.peek().kind == TokenKind::Numeral {
            return Ok(self.number(Some(&sign)));
        }
        let value = self.primary()?;
        let value = self.require_value(value);
        Ok(Expr::new(ExprKind::Minus(Box::new(value)), self.since(sign.range.start)))
    }

    fn primary(&mut self) -> Result<Expr, Stop> {
        let token = self.tokens.peek().clone();
        match token.kind {
            TokenKind::Numeral => Ok(self.number(None)),
            TokenKind::Text { text, quote } if self.scene.names_are_bare() => {
                self.bump();
                if quote != '"' {
                    let mistake =
                        Mistake::error(token.range.clone(), "a name stands in double quotes here");
                    self.note(mistake.help(format!("write `{text:?}`")));
                }
                Ok(self.named(&text, token.range))
            }
            TokenKind::Text { .. } => self.text(),
            TokenKind::Scoped { scope, name } => {
                self.bump();
                Ok(self.scoped(scope, name, token.range))
            }
            TokenKind::Symbol('[') => self.list(),
            TokenKind::Symbol('(') => self.parenthesized(),
            TokenKind::Word => self.word(),
            _ => {
                let mistake = self.no_value();
                Err(self.stop(mistake))
            }
        }
    }

    fn list(&mut self) -> Result<Expr, Stop> {
        let open = self.bump().range;
        let start = open.start;
        let items = self.nested(|parser| parser.items(open, ']'))?;
        Ok(Expr::new(ExprKind::List(items), self.since(start)))
    }

    /// Parses values separated by commas, after the opening token and up to the closing one.
    fn items(&mut self, open: Range<usize>, close: char) -> Result<Vec<Expr>, Stop> {
        let scene = ParseContext { is_left: false, ..self.scene };
        let mut items = Vec::new();
        if self.take(close).is_some() {
            return Ok(items);
        }
        loop {
            if self.tokens.peek().kind == TokenKind::End {
                return self.close(open, close, "").map(|()| items);
            }
            let item = self.with(scene, Self::operand)?;
            items.push(self.require_value(item));
            if self.take(',').is_none() {
                self.close(open, close, &format!("`,` or `{close}`"))?;
                return Ok(items);
            }
        }
    }

    fn parenthesized(&mut self) -> Result<Expr, Stop> {
        let open = self.bump().range;
        let inside = self.nested(|parser| match parser.scene.dialect {
            Dialect::Selector if !parser.scene.is_left => parser.operand(),
            _ => parser.statement(),
        })?;
        self.close(open, ')', "`)`")?;
        Ok(inside)
    }

    /// Parses a function call.
    pub(super) fn call(&mut self) -> Result<Expr, Stop> {
        if let Some(value) = self.summary()? {
            return Ok(value);
        }
        let token = self.bump();
        let word = self.tokens.text(&token);
        let open = self.bump().range;
        let Some((_, function, least, most)) = FUNCTIONS.iter().find(|(known, ..)| *known == word)
        else {
            let known = FUNCTIONS.iter().map(|(known, ..)| *known).chain(summary_words());
            let mistake = Mistake::error(token.range.clone(), format!("unknown function `{word}`"));
            self.note(match did_you_mean(word, known.clone()) {
                Some(meant) => mistake.suggest(Some(meant)),
                None => mistake.help(format!("known are {}", listed(known))),
            });
            self.skip_to(')', open)?;
            return Ok(Expr::new(ExprKind::Null, self.since(token.range.start)));
        };
        let arguments = self.nested(|parser| parser.items(open, ')'))?;
        let range = self.since(token.range.start);
        if !(*least..=*most).contains(&arguments.len()) {
            let found = arguments.len();
            let takes = arguments_named(*least, *most);
            let message = format!("`{word}` takes {takes}, found {found}");
            self.note(Mistake::error(range.clone(), message));
        }
        self.check_call(*function, &arguments);
        Ok(Expr::new(ExprKind::Call { function: *function, arguments }, range))
    }

    /// Recovers after an error: skips past the parenthesis that closes `open`.
    fn skip_to(&mut self, close: char, open: Range<usize>) -> Result<(), Stop> {
        let mut depth = 0_usize;
        loop {
            match self.tokens.peek().kind {
                TokenKind::Symbol(c) if c == close && depth == 0 => break,
                TokenKind::Symbol('(' | '[') => depth += 1,
                TokenKind::Symbol(')' | ']') => depth = depth.saturating_sub(1),
                TokenKind::End | TokenKind::Bad(_) => break,
                _ => {}
            }
            self.bump();
        }
        self.close(open, close, "`)`")
    }
}

/// Returns `no argument`, `1 argument`, `0 or 1 arguments`.
fn arguments_named(least: usize, most: usize) -> String {
    match (least, most) {
        (0, 0) => "no argument".to_owned(),
        (1, 1) => "1 argument".to_owned(),
        (least, most) if least == most => format!("{least} arguments"),
        (least, most) => format!("{least} or {most} arguments"),
    }
}
