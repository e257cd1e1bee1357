//! Parses statements: comparisons and the connectives between them.

use super::{ParseContext, Parser, Root, Stop};
use crate::syntax::{
    ast::{Comparator, Expr, ExprKind, Inner},
    lex::{Dialect, TokenKind},
    mistake::Mistake,
    name::{self, COMPARATORS},
};

/// A connective of statements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Join {
    And,
    Or,
}

impl Join {
    /// Joins statements; flattens nested ones of the same connective.
    pub(super) fn of(self, items: Vec<Expr>) -> ExprKind {
        let mut all = Vec::new();
        for item in items {
            match (self, item.kind) {
                (Self::And, ExprKind::And(inner)) | (Self::Or, ExprKind::Or(inner)) => {
                    all.extend(inner);
                }
                (_, kind) => all.push(Expr { kind, at: item.at }),
            }
        }
        match self {
            Self::And => ExprKind::And(all),
            Self::Or => ExprKind::Or(all),
        }
    }
}

/// A form of comparison, with whether it is negated.
#[derive(Clone, Copy, Debug)]
enum ComparisonForm {
    Compare(Comparator, bool),
    Between(bool),
    Exists(bool),
}

impl Parser<'_> {
    /// Parses statements joined by `or`; or a single value.
    pub(super) fn statement(&mut self) -> Result<Expr, Stop> {
        self.joined(Join::Or)
    }

    fn joined(&mut self, join: Join) -> Result<Expr, Stop> {
        let start = self.start();
        let mut items: Vec<Expr> = Vec::new();
        loop {
            let item = match join {
                Join::Or => self.joined(Join::And)?,
                Join::And => self.negation()?,
            };
            let goes_on = self.take_connective(join);
            if items.is_empty() && !goes_on {
                return Ok(item);
            }
            items.push(self.require_statement(item));
            if !goes_on {
                return Ok(Expr::new(join.of(items), self.since(start)));
            }
        }
    }

    /// Consumes `and` or `or`, or the equivalent of another language.
    fn take_connective(&mut self, join: Join) -> bool {
        let start = self.start();
        let (word, other, tokens) = match join {
            Join::And => ("and", "&&", 1),
            Join::Or => ("or", "||", 2),
        };
        let is_other = match join {
            Join::And => self.tokens.text(self.tokens.peek()) == other,
            Join::Or => self.is_double('|'),
        };
        if is_other {
            for _ in 0..tokens {
                self.bump();
            }
            let mistake = Mistake::error(self.since(start), format!("unknown `{other}`"));
            self.note(mistake.help(format!("write `{word}`")));
            return true;
        }
        let is_name = self.scene.dialect == Dialect::Selector && self.is_name_ahead(0);
        !is_name && self.take_word(word).is_some()
    }

    fn negation(&mut self) -> Result<Expr, Stop> {
        let token = self.tokens.peek().clone();
        let is_mark = token.kind == TokenKind::Operator && self.tokens.text(&token) == "!";
        let is_name = self.scene.dialect == Dialect::Selector && self.is_name_ahead(0);
        if !is_mark && (self.tokens.peek_word() != Some("not") || is_name) {
            return self.comparison();
        }
        self.bump();
        if is_mark {
            let mistake = Mistake::error(token.range.clone(), "unknown `!`");
            self.note(mistake.help("write `not`"));
        }
        let negated = self.nested(Self::negation)?;
        let negated = Box::new(self.require_statement(negated));
        Ok(Expr::new(ExprKind::Not(negated), self.since(token.range.start)))
    }

    fn comparison(&mut self) -> Result<Expr, Stop> {
        let start = self.start();
        let is_over = self.tokens.peek().kind == TokenKind::End && self.scene.root != Root::Value;
        if is_over && self.scene.dialect == Dialect::Expression {
            return Err(self.unexpected("a statement"));
        }
        if self.starts_sentence() {
            return self.sentence();
        }
        let inner = match self.tokens.peek_word() {
            Some("event") => Some(Inner::Event),
            Some("link") => Some(Inner::Link),
            _ => None,
        };
        if let Some(inner) = inner
            && self.tokens.ahead(1).kind == TokenKind::Symbol('[')
        {
            return self.within(inner);
        }
        let scene = ParseContext { is_left: true, ..self.scene };
        let left = self.with(scene, |parser| {
            let left = parser.operand()?;
            parser.refuse_unusual_name(&left)?;
            Ok(left)
        })?;
        let Some(question) = self.question(&left)? else { return Ok(left) };
        self.piece()?;
        let left = self.require_value(left);
        let kind = self.answer(left, question)?;
        let range = self.since(start);
        self.refuse_chain()?;
        Ok(Expr::new(kind, range))
    }

    /// Parses `event[…]` or `link[…]`.
    fn within(&mut self, inner: Inner) -> Result<Expr, Stop> {
        let token = self.bump();
        self.piece()?;
        if self.scene.inner.is_some() {
            let mistake = Mistake::error(token.range.clone(), "events and links hold no others");
            self.note(mistake.help("write both beside each other in `span[…]`"));
        } else if !self.scene.has_span {
            let mistake = Mistake::error(token.range.clone(), "a claim is about the whole trace");
            let word = self.tokens.text(&token);
            self.note(mistake.help(format!("say of which span: `some span[{word}[…]]`")));
        }
        self.bump();
        let condition = self.nested(|parser| parser.condition(Some(inner)))?.map(Box::new);
        Ok(Expr::new(ExprKind::Within { inner, condition }, self.since(token.range.start)))
    }

    /// Parses the comparator after a value; `None` if there is none.
    fn question(&mut self, left: &Expr) -> Result<Option<ComparisonForm>, Stop> {
        let token = self.tokens.peek().clone();
        let written = self.tokens.text(&token);
        match token.kind {
            TokenKind::Operator if ["&&", "!"].contains(&written) => return Ok(None),
            TokenKind::Word if left.is_statement() => return Ok(None),
            TokenKind::Operator | TokenKind::Word => {}
            TokenKind::End | TokenKind::Symbol(')' | ']' | ',' | '}') => return Ok(None),
            TokenKind::Symbol('|') if self.is_double('|') => return Ok(None),
            _ if left.is_statement() => return Ok(None),
            _ => return self.foreign_question().map(Some),
        }
        if ["and", "or", "of", "by"].contains(&written) {
            return Ok(None);
        }
        if let Some((question, tokens)) = self.question_ahead() {
            for _ in 0..tokens {
                self.bump();
            }
            return Ok(Some(question));
        }
        let (mistake, meant) = self.no_comparator(left);
        match meant.and_then(plain_question) {
            // The intention is obvious, so parsing continues.
            Some(question) => {
                self.note(mistake);
                self.bump();
                Ok(Some(question))
            }
            None => Err(self.stop(mistake)),
        }
    }

    /// Parses a comparator in the notation of another language.
    fn foreign_question(&mut self) -> Result<ComparisonForm, Stop> {
        let Some((meant, question)) =
            self.css_comparator().and_then(|meant| Some((meant, plain_question(meant)?)))
        else {
            return Err(self.unexpected("a comparator such as `=`, `<` or `contains`"));
        };
        let (first, last) = (self.bump(), self.bump());
        let message = format!("unknown comparator `{}`", self.tokens.written(&first, &last));
        let mistake = Mistake::error(first.range.start..last.range.end, message);
        self.note(mistake.suggest(Some(meant)));
        Ok(question)
    }

    /// Returns the next comparator and its number of tokens.
    fn question_ahead(&self) -> Option<(ComparisonForm, usize)> {
        let token = self.tokens.peek();
        let written = self.tokens.text(token);
        if let Some(question) = plain_question(written) {
            return Some((question, 1));
        }
        let (word, tokens) = match written {
            "not" => (self.tokens.word_ahead(1)?, 2),
            _ => (written.strip_prefix("not-")?, 1),
        };
        // Symbols have their own negated forms.
        let question = plain_question(word).filter(|_| word.starts_with(char::is_alphabetic))?;
        let negated = match question {
            ComparisonForm::Compare(comparator, is_negated) => {
                ComparisonForm::Compare(comparator, !is_negated)
            }
            ComparisonForm::Between(is_negated) => ComparisonForm::Between(!is_negated),
            ComparisonForm::Exists(is_negated) => ComparisonForm::Exists(!is_negated),
        };
        Some((negated, tokens))
    }

    /// Parses the rest of a comparison.
    fn answer(&mut self, left: Expr, question: ComparisonForm) -> Result<ExprKind, Stop> {
        let value = Box::new(left);
        match question {
            ComparisonForm::Exists(is_negated) => Ok(ExprKind::Exists { value, is_negated }),
            ComparisonForm::Compare(comparator, is_negated) => {
                let right = Box::new(self.right()?);
                self.check_comparison(&value, comparator, &right);
                Ok(ExprKind::Compare { left: value, comparator, is_negated, right })
            }
            ComparisonForm::Between(is_negated) => {
                let low = Box::new(self.right()?);
                if self.take_word("and").is_none() {
                    let mistake = self.tokens.unexpected("`and` and the upper bound");
                    return Err(self.stop(mistake.help("write `between 1 and 5`")));
                }
                let high = Box::new(self.right()?);
                self.check_comparison(&value, Comparator::AtLeast, &low);
                self.check_comparison(&value, Comparator::AtMost, &high);
                Ok(ExprKind::Between { value, is_negated, low, high })
            }
        }
    }

    fn right(&mut self) -> Result<Expr, Stop> {
        let scene = ParseContext { is_left: false, ..self.scene };
        let right = self.with(scene, Self::operand)?;
        Ok(self.require_value(right))
    }

    fn refuse_chain(&mut self) -> Result<(), Stop> {
        let is_name = self.scene.dialect == Dialect::Selector && self.is_name_ahead(0);
        if is_name || self.question_ahead().is_none() {
            return Ok(());
        }
        let message = "comparisons do not chain";
        let mistake = Mistake::error(self.tokens.peek().range.clone(), message);
        Err(self.stop(mistake.help("join two with `and`, or ask for `between 1 and 5`")))
    }

    /// Whether the word there can only be a name: a comparator or a dot follows it.
    pub(super) fn is_name_ahead(&self, count: usize) -> bool {
        let (token, behind) = (self.tokens.ahead(count), self.tokens.ahead(count + 1));
        let is_comparator = |token: &crate::syntax::lex::Token| {
            token.kind == TokenKind::Operator
                && !["&&", "!", ">>", "<<"].contains(&self.tokens.text(token))
        };
        token.kind == TokenKind::Word
            && match behind.kind {
                TokenKind::Symbol('.') => true,
                TokenKind::Operator => is_comparator(behind),
                TokenKind::Word => {
                    let third = self.tokens.ahead(count + 2);
                    self.tokens.text(behind) == "contains"
                        && !is_comparator(third)
                        && third.kind != TokenKind::Symbol('.')
                }
                _ => false,
            }
    }
}

/// Returns the form for a comparator of one word or symbol.
fn plain_question(written: &str) -> Option<ComparisonForm> {
    match written {
        "between" => Some(ComparisonForm::Between(false)),
        "exists" => Some(ComparisonForm::Exists(false)),
        "not-contains" => Some(ComparisonForm::Compare(Comparator::Contains, true)),
        _ => name::found(COMPARATORS, written)
            .map(|(comparator, is_negated)| ComparisonForm::Compare(comparator, is_negated)),
    }
}
