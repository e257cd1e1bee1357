//! Parses values that start with a word: names of properties, parts of the response, and incomplete words.

use std::ops::Range;

use source::did_you_mean;

use super::{Parser, Root, Stop, hint::listed};
use crate::syntax::{
    ast::{Expr, ExprKind, Intrinsic, Property, ResponsePart, Spelling, VariableScope},
    lex::{Dialect, Scope, TokenKind},
    mistake::Mistake,
    name::{self, RESPONSE, SCOPES},
};

/// Prefixes that other languages put before the name of an attribute.
const FOREIGN_SCOPES: [&str; 5] =
    ["span.attributes.", "attributes.", "attribute.", "attr.", "span."];

impl Parser<'_> {
    /// Resolves the name after `attr:`, `var:` or `env:`.
    pub(super) fn scoped(&mut self, scope: Scope, name: String, range: Range<usize>) -> Expr {
        let scope = match scope {
            Scope::Attr => {
                let name_range = range.start + "attr:".len()..range.end;
                return match self.scene.dialect {
                    Dialect::Selector => self.named(&name, name_range),
                    Dialect::Expression => {
                        let property = name::in_expression(&name, name_range);
                        self.property(property, range)
                    }
                };
            }
            Scope::Var => VariableScope::Var,
            Scope::Env => VariableScope::Env,
        };
        Expr::new(ExprKind::Variable { scope, name }, range)
    }

    /// Resolves a name in a condition.
    pub(super) fn named(&mut self, name: &str, range: Range<usize>) -> Expr {
        let property = match self.scene.inner {
            Some(inner) => Ok(name::of_inner(inner, name)),
            None => name::in_selector(name, range.clone()),
        };
        if let Ok(Property::Attribute { otherwise: None, .. }) = &property
            && let Some(bare) = FOREIGN_SCOPES.iter().find_map(|scope| name.strip_prefix(scope))
        {
            let mistake =
                Mistake::warning(range.clone(), format!("this is the attribute `{name}`"));
            self.note(mistake.help(format!("write `{bare}` for the attribute `{bare}`")));
        }
        self.property(property, range)
    }

    fn property(&mut self, property: Result<Property, Mistake>, range: Range<usize>) -> Expr {
        match property {
            Ok(property) => {
                self.require_span(&property, range.clone());
                Expr::new(ExprKind::Property(property), range)
            }
            Err(mistake) => {
                self.note(mistake);
                Expr::new(ExprKind::Null, range)
            }
        }
    }

    /// Reports a property without a current span.
    fn require_span(&mut self, property: &Property, range: Range<usize>) {
        if self.scene.root == Root::Claim && *property == Property::Count {
            let mistake = Mistake::error(range, "a claim has no selector whose spans are counted");
            return self.note(mistake.help("count them: `count(span[…])`"));
        }
        if self.scene.has_span {
            return;
        }
        let mistake = match self.scene.root {
            Root::Trigger => Mistake::error(range, "there is no span yet when the trigger is sent")
                .help("only variables and functions have a value by then"),
            _ => Mistake::error(range.clone(), "a claim is about the whole trace").help(
                match property {
                    Property::Response(part) => {
                        format!(
                            "write `response.{}`",
                            name::word_of(RESPONSE, part).unwrap_or_default()
                        )
                    }
                    Property::Intrinsic(
                        Intrinsic::Status | Intrinsic::Duration,
                        Spelling::Word,
                    ) => {
                        let word = self.source.get(range.clone()).unwrap_or_default();
                        format!(
                            "say of which span: `every span[…] has …`, or write `response.{word}`"
                        )
                    }
                    _ => "say of which span: `every span[…] has …`".to_owned(),
                },
            ),
        };
        self.note(mistake);
    }

    /// Reports a value that is only known after the trigger, or that events and links do not have.
    pub(super) fn require_trace(&mut self, range: Range<usize>) {
        if self.scene.inner.is_some() {
            let message = "an event or a link speaks of itself alone";
            let mistake = Mistake::error(range.clone(), message);
            self.note(mistake.help("write it beside the brackets, in `span[…]`"));
        }
        if self.scene.root == Root::Trigger {
            let message = "nothing has happened yet when the trigger is sent";
            let mistake = Mistake::error(range, message);
            self.note(mistake.help("only variables and functions have a value by then"));
        }
    }

    /// Parses a value that starts with a word.
    pub(super) fn word(&mut self) -> Result<Expr, Stop> {
        let token = self.tokens.peek().clone();
        let word = self.tokens.text(&token);
        let is_name = self.scene.names_are_bare() && self.is_name_ahead(0);
        let literal = match word {
            _ if is_name => None,
            "true" => Some(ExprKind::Bool(true)),
            "false" => Some(ExprKind::Bool(false)),
            "null" => Some(ExprKind::Null),
            _ => None,
        };
        if let Some(kind) = literal {
            self.bump();
            return Ok(Expr::new(kind, token.range));
        }
        let second = &self.tokens.ahead(1).kind;
        if *second == TokenKind::Symbol('(') && !name::is_keyword(word) {
            return self.call();
        }
        if self.scene.names_are_bare() && (is_name || !name::is_keyword(word)) {
            let (name, range) = self.dotted()?;
            return Ok(self.named(&name, range));
        }
        match self.scene.dialect {
            Dialect::Selector => self.text_without_quotes(),
            Dialect::Expression if *second == TokenKind::Symbol('.') => self.dotted_value(),
            Dialect::Expression => match name::intrinsic(word) {
                Some(property) => {
                    self.bump();
                    Ok(self.property(Ok(property), token.range))
                }
                None => self.bare_word(),
            },
        }
    }

    /// Parses words separated by dots.
    fn dotted(&mut self) -> Result<(String, Range<usize>), Stop> {
        let first = self.bump();
        let mut name = self.tokens.text(&first).to_owned();
        while self.take('.').is_some() {
            let Some(word) = self.tokens.peek_word() else {
                let mistake = self.tokens.unexpected("a word behind `.`");
                let help = match self.scene.dialect {
                    Dialect::Selector => "an unusual name is written in double quotes",
                    Dialect::Expression => "an unusual name is written in quotes: `attr:\"…\"`",
                };
                return Err(self.stop(mistake.help(help)));
            };
            self.bump();
            name.push('.');
            name.push_str(word);
        }
        Ok((name, self.since(first.range.start)))
    }

    /// Parses a name after a dot: words separated by dots, or a text.
    fn name_behind(&mut self, expected: &str) -> Result<String, Stop> {
        match self.tokens.peek().kind.clone() {
            TokenKind::Word => Ok(self.dotted()?.0),
            TokenKind::Text { text, .. } => {
                self.bump();
                Ok(text)
            }
            _ => Err(self.unexpected(expected)),
        }
    }

    /// Parses `resource.NAME` and similar, `response.PART`, or an attribute without its `attr:`.
    fn dotted_value(&mut self) -> Result<Expr, Stop> {
        let start = self.start();
        let first = self.tokens.peek_word().unwrap_or_default();
        if first == "response" {
            return self.response();
        }
        if let Some(scope) = name::found(SCOPES, first) {
            self.bump();
            self.bump();
            let name = self.name_behind("a name behind `.`")?;
            let range = self.since(start);
            return Ok(self.property(Ok(scope(name)), range));
        }
        if first.strip_prefix('p').is_some_and(super::summary::is_digits) {
            let range = self.tokens.peek().range.clone();
            let mistake = Mistake::error(range, "a percentile with a point is written in full");
            return Err(self.stop(mistake.help("write `percentile(99.9, … of span[…])`")));
        }
        let (name, range) = self.dotted()?;
        let bare = FOREIGN_SCOPES.iter().find_map(|scope| name.strip_prefix(scope));
        let meant = match bare {
            Some(bare) if first == "span" && name::intrinsic(bare).is_some() => bare.to_owned(),
            Some(bare) => format!("attr:{bare}"),
            None => format!("attr:{name}"),
        };
        let mistake = Mistake::error(range.clone(), "a bare name is no value");
        self.note(mistake.help(format!("write `{meant}`")));
        Ok(Expr::new(ExprKind::Null, range))
    }

    /// Parses `response.status` and similar.
    fn response(&mut self) -> Result<Expr, Stop> {
        let start = self.bump().range.start;
        self.bump();
        let Some(word) = self.tokens.peek_word() else {
            let expected = "`status`, `body`, `headers`, `header.NAME` or `duration`";
            return Err(self.unexpected(expected));
        };
        let token = self.bump();
        let part = match word {
            "header" => {
                self.expect('.', "`.` and the header's name")?;
                let name = self.name_behind("a header's name")?;
                Some(ResponsePart::Header(name.to_lowercase()))
            }
            _ => name::found(RESPONSE, word),
        };
        let range = self.since(start);
        self.require_trace(range.clone());
        let kind = part.map(ExprKind::Response).unwrap_or_else(|| {
            let known = RESPONSE.iter().map(|(known, _)| *known).chain(["header"]);
            let message = format!("unknown part `{word}` of the response");
            let mistake = Mistake::error(token.range, message);
            self.note(match did_you_mean(word, known.clone()) {
                Some(meant) => mistake.suggest(Some(meant)),
                None => mistake.help(format!("known are {}", listed(known))),
            });
            ExprKind::Null
        });
        Ok(Expr::new(kind, range))
    }
}
