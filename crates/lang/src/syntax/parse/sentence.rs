//! Parses quantified statements (every, some, no span) and relations between spans.

use super::{Parser, Stop};
use crate::syntax::{
    ast::{Expr, ExprKind, Quantifier, Selector, Subject},
    lex::{Dialect, TokenKind},
    mistake::Mistake,
    name::{self, RELATIONS},
};

impl Parser<'_> {
    /// Whether a quantified statement starts here: with a quantifier, with a selection, or with a `has` without its subject.
    pub(super) fn starts_sentence(&self) -> bool {
        match self.tokens.peek_word() {
            Some("every" | "some" | "no" | "has") => match self.scene.dialect {
                Dialect::Expression => true,
                Dialect::Selector => !self.is_name_ahead(0),
            },
            _ => self.starts_selection() || self.is_selection_in_parentheses(),
        }
    }

    /// Whether `span[…]` or `self` is next.
    pub(super) fn starts_selection(&self) -> bool {
        match self.tokens.peek_word() {
            Some("span") => self.tokens.ahead(1).kind == TokenKind::Symbol('['),
            Some("self") => match self.scene.dialect {
                Dialect::Expression => self.tokens.ahead(1).kind != TokenKind::Symbol('.'),
                Dialect::Selector => {
                    !self.is_name_ahead(0) || self.tokens.word_ahead(2) == Some("span")
                }
            },
            _ => false,
        }
    }

    /// Whether the parenthesis here contains a selection and not a statement: the token after it decides.
    fn is_selection_in_parentheses(&self) -> bool {
        let begins = self.tokens.peek().kind == TokenKind::Symbol('(')
            && matches!(self.tokens.word_ahead(1), Some("span" | "self"));
        if !begins {
            return false;
        }
        let (mut depth, mut at) = (0_usize, 0);
        loop {
            match self.tokens.ahead(at).kind {
                TokenKind::Symbol('(') => depth += 1,
                TokenKind::Symbol(')') if depth == 1 => break,
                TokenKind::Symbol(')') => depth -= 1,
                TokenKind::End | TokenKind::Bad(_) => return false,
                _ => {}
            }
            at += 1;
        }
        let behind = self.tokens.word_ahead(at + 1);
        behind == Some("has") || behind.is_some_and(|word| name::found(RELATIONS, word).is_some())
    }

    pub(super) fn sentence(&mut self) -> Result<Expr, Stop> {
        let start = self.start();
        self.piece()?;
        if self.tokens.peek_word() == Some("has") {
            let range = self.tokens.peek().range.clone();
            let mistake = Mistake::error(range, "`has` follows a selection");
            return Err(self.stop(mistake.help("write `every span[…] has …`")));
        }
        let subject = self.subject()?;
        let word = self.tokens.peek_word();
        let kind = if self.take_word("has").is_some() {
            let scene = self.scene.with_span();
            let predicate = self.with(scene, |parser| parser.nested(Self::statement))?;
            let predicate = Some(Box::new(self.require_statement(predicate)));
            ExprKind::Quantified { subject, predicate }
        } else if let Some(relation) = word.and_then(|word| name::found(RELATIONS, word)) {
            self.bump();
            ExprKind::Relation { left: subject, relation, right: self.subject()? }
        } else {
            self.alone(subject)?
        };
        let range = self.since(start);
        self.require_trace(range.clone());
        Ok(Expr::new(kind, range))
    }

    /// Parses a subject without a predicate and without a relation.
    fn alone(&mut self, subject: Subject) -> Result<ExprKind, Stop> {
        if self.scene.dialect == Dialect::Expression && !self.ends_sentence() {
            let mistake = self.no_relation(&subject);
            return Err(self.stop(mistake));
        }
        match subject.quantifier {
            Quantifier::Some | Quantifier::No => {}
            Quantifier::Every | Quantifier::The => {
                let message = "no condition follows this selection";
                let mistake = Mistake::error(subject.selector.at.0.clone(), message);
                self.note(mistake.help(match subject.quantifier {
                    Quantifier::Every => "say what every span has: `every span[…] has …`",
                    _ => "write `some span[…]` if there has to be one, `no span[…]` if there may be none",
                }));
            }
        }
        Ok(ExprKind::Quantified { subject, predicate: None })
    }

    /// Whether the next token is outside the statement.
    fn ends_sentence(&self) -> bool {
        let token = self.tokens.peek();
        match token.kind {
            TokenKind::End | TokenKind::Symbol(')' | ']' | '}' | ',') => true,
            TokenKind::Word => ["and", "or", "of", "by"].contains(&self.tokens.text(token)),
            TokenKind::Operator => self.tokens.text(token) == "&&",
            _ => self.is_double('|'),
        }
    }

    fn subject(&mut self) -> Result<Subject, Stop> {
        let quantifier = match self.tokens.peek_word() {
            Some("every") => Quantifier::Every,
            Some("some") => Quantifier::Some,
            Some("no") => Quantifier::No,
            _ => Quantifier::The,
        };
        if quantifier != Quantifier::The {
            self.bump();
        }
        Ok(Subject { quantifier, selector: self.selection()? })
    }

    fn selection(&mut self) -> Result<Selector, Stop> {
        let Some(open) = self.take('(') else { return self.lone_part() };
        let selector = self.nested(Self::selector_of_spans)?;
        self.close(open, ')', "`,` or `)`")?;
        Ok(selector)
    }
}
