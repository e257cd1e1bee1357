//! Parses aggregates: one value computed from many spans.

use source::did_you_mean;

use super::{ParseContext, Parser, Stop};
use crate::{
    syntax::{
        ast::{Aggregate, Expr, ExprKind, Selector, Summary},
        lex::{Token, TokenKind},
        mistake::Mistake,
        name::{self, SUMMARIES},
    },
    value::{Number, read_loose},
};

impl Parser<'_> {
    /// Parses an aggregate, if the next word is the name of one. A `(` follows it.
    pub(super) fn summary(&mut self) -> Result<Option<Expr>, Stop> {
        let word = self.tokens.peek_word().unwrap_or_default();
        let percent = word.strip_prefix('p').filter(|digits| is_digits(digits));
        let function = match (word, percent) {
            ("gap", _) => return self.nested(Self::gap).map(Some),
            ("percentile", _) => None,
            (_, Some(percent)) => {
                let range = self.tokens.peek().range.clone();
                Some(Summary::Percentile(self.percentile(percent, range)))
            }
            _ => match name::found(SUMMARIES, word) {
                Some(function) => Some(function),
                None => return Ok(None),
            },
        };
        let token = self.bump();
        let open = self.bump().range;
        let function = match function {
            Some(function) => function,
            None => self.percent_argument()?,
        };
        let aggregate = self.nested(|parser| parser.aggregate(function, word))?;
        self.close(open, ')', "`)`")?;
        let range = self.since(token.range.start);
        self.require_trace(range.clone());
        Ok(Some(Expr::new(ExprKind::Aggregate(Box::new(aggregate)), range)))
    }

    fn percent_argument(&mut self) -> Result<Summary, Stop> {
        let token = self.tokens.peek().clone();
        if token.kind != TokenKind::Numeral {
            return Err(self.unexpected("a number from 0 to 100"));
        }
        self.bump();
        let number = self.percentile(self.tokens.text(&token), token.range);
        self.expect(',', "`,` and the value")?;
        Ok(Summary::Percentile(number))
    }

    fn percentile(&mut self, written: &str, range: std::ops::Range<usize>) -> Number {
        let number = read_loose(written).filter(|number| {
            number.compare(Number::Int(100)).is_some_and(|order| order.is_le())
                && number.compare(Number::Int(0)).is_some_and(|order| order.is_ge())
        });
        number.unwrap_or_else(|| {
            let message = format!("`{written}` is not a number from 0 to 100");
            self.note(Mistake::error(range, message));
            Number::Int(0)
        })
    }

    /// Parses the content of the parentheses.
    fn aggregate(&mut self, function: Summary, word: &str) -> Result<Aggregate, Stop> {
        let names_spans = self.starts_selection();
        let value = match function {
            Summary::Count if names_spans => None,
            Summary::Count => {
                let mistake = self.tokens.unexpected("`span[…]`");
                return Err(self.stop(mistake.help("`count` takes spans: `count(span[…])`")));
            }
            _ if names_spans => {
                let message = format!("`{word}` needs a value of each span");
                let mistake = Mistake::error(self.tokens.peek().range.clone(), message);
                self.note(mistake.help(format!("write `{word}(duration of span[…])`")));
                None
            }
            _ => {
                let scene = ParseContext { is_left: true, ..self.scene.with_span() };
                let value = self.with(scene, Self::operand)?;
                let value = self.require_value(value);
                if self.take_word("of").is_none() {
                    let mistake = self.tokens.unexpected("`of` and the spans");
                    let meant = did_you_mean(self.tokens.peek_word().unwrap_or_default(), ["of"]);
                    return Err(self.stop(match meant {
                        Some(meant) => mistake.suggest(Some(meant)),
                        None => mistake.help(format!("write `{word}(… of span[…])`")),
                    }));
                }
                Some(value)
            }
        };
        let of = self.selector_of_spans()?;
        let mut by = Vec::new();
        if self.take_word("by").is_some() {
            loop {
                let scene = ParseContext { is_left: true, ..self.scene.with_span() };
                let key = self.with(scene, Self::operand)?;
                by.push(self.require_value(key));
                if self.take(',').is_none() {
                    break;
                }
            }
        }
        Ok(Aggregate { function, value, of, by })
    }

    /// Parses `gap(part, part)`.
    fn gap(&mut self) -> Result<Expr, Stop> {
        let token: Token = self.bump();
        let open = self.bump().range;
        let from = self.lone_part()?;
        self.expect(',', "`,` and the other span")?;
        let to = self.lone_part()?;
        self.close(open, ')', "`)`")?;
        let range = self.since(token.range.start);
        self.require_trace(range.clone());
        Ok(Expr::new(ExprKind::Gap { from: Box::new(from), to: Box::new(to) }, range))
    }

    /// Parses one part, as a selector.
    pub(super) fn lone_part(&mut self) -> Result<Selector, Stop> {
        let start = self.start();
        let part = self.part()?;
        Ok(Selector { parts: vec![part], at: crate::syntax::ast::At::new(self.since(start)) })
    }
}

/// Returns the names of all aggregates.
pub(super) fn summary_words() -> impl Iterator<Item = &'static str> + Clone {
    SUMMARIES.iter().map(|(word, _)| *word).chain(["percentile", "gap"])
}

/// Whether the text consists only of digits.
pub(super) fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}
