//! Parses selectors: parts, steps and pseudo-classes.

use std::ops::Range;

use source::did_you_mean;

use super::{Parser, Root, Stop, statement::Join};
use crate::syntax::{
    ast::{
        Anchor, At, Combinator, CompoundSelector, Expr, ExprKind, Hop, Inner, Part, Position,
        Pseudo, Selector,
    },
    lex::TokenKind,
    mistake::Mistake,
};

const PSEUDOS: [&str; 8] = ["first", "last", "nth_child", "root", "leaf", "orphan", "has", "not"];

impl Parser<'_> {
    /// Parses a selector that is the complete string; an empty string selects every span.
    pub(super) fn whole_selector(&mut self) -> Result<Selector, Stop> {
        if self.tokens.peek().kind == TokenKind::End {
            if self.tokens.has_comments {
                let message = "only a comment is here, so every span is selected";
                self.note(Mistake::warning(0..self.source.len(), message).help("write `span[]`"));
            }
            return Ok(Selector::default());
        }
        // Tracetest accepts a leading comma, so files may have one.
        self.take(',');
        self.selector_of_spans()
    }

    /// Parses parts separated by commas.
    pub(super) fn selector_of_spans(&mut self) -> Result<Selector, Stop> {
        self.parts(Self::part)
    }

    fn parts(&mut self, read: impl Fn(&mut Self) -> Result<Part, Stop>) -> Result<Selector, Stop> {
        let start = self.start();
        let mut parts = vec![read(self)?];
        while self.take(',').is_some() {
            parts.push(read(self)?);
        }
        Ok(Selector { parts, at: At::new(self.since(start)) })
    }

    /// Parses a path through the span tree.
    pub(super) fn part(&mut self) -> Result<Part, Stop> {
        if self.tokens.peek_word() != Some("self") {
            return self.hops(Anchor::Trace, Some(Combinator::Descendant));
        }
        let range = self.bump().range;
        if !self.scene.has_span {
            let mistake = Mistake::error(range, "`self` has no span to speak of here");
            self.note(mistake.help(match self.scene.root {
                Root::Selector => "it may stand in the brackets of `span[…]`",
                _ => "it may stand behind `has`, as in `every span[…] has count(self span[…]) < 3`",
            }));
        }
        let combinator = self.combinator();
        self.hops(Anchor::This, combinator)
    }

    /// Parses a path that starts at the span before `:has`.
    fn relative(&mut self) -> Result<Part, Stop> {
        let is_self = self.take_word("self").is_some();
        let combinator = self.combinator();
        self.hops(Anchor::This, combinator.or((!is_self).then_some(Combinator::Descendant)))
    }

    /// Parses steps; `combinator` leads to the first step, if there is one.
    fn hops(&mut self, anchor: Anchor, combinator: Option<Combinator>) -> Result<Part, Stop> {
        let mut hops = Vec::new();
        let mut positions: Vec<Option<Range<usize>>> = Vec::new();
        let mut next = combinator;
        while let Some(combinator) = next {
            let (step, position) = self.step()?;
            hops.push(Hop { combinator, step });
            positions.push(position);
            next = self.combinator();
        }
        if hops.iter().all(|hop| hop.combinator == Combinator::Descendant) {
            positions.pop();
            for range in positions.into_iter().flatten() {
                let message = "this position picks from what its own step matches";
                let mistake = Mistake::warning(range, message);
                self.note(mistake.help("Tracetest picked from the spans of the last step instead"));
            }
        }
        Ok(Part { anchor, hops })
    }

    /// Parses the combinator before the next step; `None` if no step follows.
    fn combinator(&mut self) -> Option<Combinator> {
        let token = self.tokens.peek();
        let combinator = match (&token.kind, self.tokens.text(token)) {
            (TokenKind::Word, "span") => return Some(Combinator::Descendant),
            (TokenKind::Operator, ">>") => Combinator::Descendant,
            (TokenKind::Operator, ">") => Combinator::Child,
            (TokenKind::Operator, "~") => Combinator::Sibling,
            (TokenKind::Operator, "<") => Combinator::Parent,
            (TokenKind::Operator, "<<") => Combinator::Ancestor,
            (TokenKind::Operator, "=>") => Combinator::Linked,
            (TokenKind::Symbol('+'), _) => Combinator::Adjacent,
            _ => return None,
        };
        self.bump();
        Some(combinator)
    }

    /// Parses `span[…]` with its pseudo-classes. Also returns the range of its position.
    fn step(&mut self) -> Result<(CompoundSelector, Option<Range<usize>>), Stop> {
        let start = self.start();
        if self.tokens.peek_word() != Some("span") {
            let mistake = self.no_step();
            return Err(self.stop(mistake));
        }
        self.piece()?;
        self.bump();
        if self.take('[').is_none() {
            let mistake = self.tokens.unexpected("`[` behind `span`");
            let help = match self.tokens.peek().kind {
                TokenKind::Symbol('(' | '{' | '.') | TokenKind::Word | TokenKind::Text { .. } => {
                    "conditions stand in brackets: `span[…]`"
                }
                _ => "`span[]` is any span",
            };
            return Err(self.stop(mistake.help(help)));
        }
        let condition = self.nested(|parser| parser.condition(None))?;
        let (mut pseudos, mut position) = (Vec::new(), None::<(Position, Range<usize>)>);
        while self.tokens.peek().kind == TokenKind::Symbol(':') {
            let colon = self.bump().range.start;
            match self.pseudo()? {
                Behind::Pseudo(pseudo) => pseudos.push(pseudo),
                Behind::Position(at) => {
                    if let Some((_, ignored)) = position.replace((at, self.since(colon))) {
                        let message = "only the last position of a step counts";
                        let mistake = Mistake::warning(ignored, message);
                        self.note(mistake.label("this one has no effect"));
                    }
                }
            }
        }
        let at = At::new(self.since(start));
        let (position, range) = position.unzip();
        Ok((CompoundSelector { condition, pseudos, position, at }, range))
    }

    /// Parses the content of the brackets of `span`, `event` or `link`, up to the closing one.
    pub(super) fn condition(&mut self, inner: Option<Inner>) -> Result<Option<Expr>, Stop> {
        let scene = self.scene.condition(inner);
        let bracket = self.notes.end - 1..self.notes.end;
        let mut items: Vec<Expr> = Vec::new();
        let start = self.start();
        let mut comma = self.take(',').is_some();
        loop {
            if let Some(bracket) = self.take(']') {
                if comma {
                    let message = "expected a condition behind `,`, found `]`";
                    self.note(Mistake::error(bracket, message));
                }
                break;
            }
            if self.tokens.peek().kind == TokenKind::End {
                return Err(self.no_end(bracket, '[', ']'));
            }
            let item_start = self.start();
            match self.with(scene, Self::statement) {
                Ok(item) => {
                    self.warn_of_or(&item, item_start, !items.is_empty());
                    let item = self.with(scene, |parser| Ok(parser.require_statement(item)))?;
                    items.push(item);
                }
                Err(Stop) => self.skip_condition()?,
            }
            comma = self.take(',').is_some();
        }
        let end = self.notes.end - 1;
        match items.len() {
            0 | 1 => Ok(items.pop()),
            _ => Ok(Some(Expr::new(Join::And.of(items), start..end))),
        }
    }

    /// Recovers after an error: skips to the next comma or to the closing bracket.
    fn skip_condition(&mut self) -> Result<(), Stop> {
        let mut depth = 0_usize;
        loop {
            match self.tokens.peek().kind {
                TokenKind::Symbol(',' | ']') if depth == 0 => return Ok(()),
                TokenKind::Symbol('[' | '(') => depth += 1,
                TokenKind::Symbol(']' | ')') => depth = depth.saturating_sub(1),
                TokenKind::End | TokenKind::Bad(_) => return Err(Stop),
                _ => {}
            }
            self.bump();
        }
    }

    /// Warns of an `or` next to other conditions: it covers less than it seems.
    fn warn_of_or(&mut self, item: &Expr, start: usize, has_company: bool) {
        let is_bare = matches!(item.kind, ExprKind::Or(_)) && item.at.0.start == start;
        let is_last = self.tokens.peek().kind == TokenKind::Symbol(']');
        if is_bare && (has_company || !is_last) {
            let message = "`or` joins only its direct neighbours, up to the comma or blank";
            let mistake = Mistake::warning(item.at.0.clone(), message);
            self.note(mistake.help("put parentheses around what belongs together"));
        }
    }

    /// Parses the pseudo-class after the `:` of a step.
    fn pseudo(&mut self) -> Result<Behind, Stop> {
        let word = self.tokens.peek_word().unwrap_or_default();
        let pseudo = match word {
            "first" | "last" | "nth_child" => return self.position().map(Behind::Position),
            "root" => Pseudo::Root,
            "leaf" => Pseudo::Leaf,
            "orphan" => Pseudo::Orphan,
            "has" | "not" => {
                self.bump();
                let open = self.expect('(', &format!("`(` behind `:{word}`"))?;
                let selector = self.nested(|parser| match word {
                    "has" => parser.parts(Self::relative),
                    _ => parser.selector_of_spans(),
                })?;
                self.close(open, ')', "`,` or `)`")?;
                return Ok(Behind::Pseudo(match word {
                    "has" => Pseudo::Has(selector),
                    _ => Pseudo::Not(selector),
                }));
            }
            _ => {
                let known = "`first`, `last`, `nth_child(…)`, `root`, `leaf`, `orphan`, `has(…)` or `not(…)`";
                let mistake = self.tokens.unexpected(known);
                return Err(self.stop(mistake.suggest(did_you_mean(word, PSEUDOS))));
            }
        };
        self.bump();
        Ok(Behind::Pseudo(pseudo))
    }

    /// Parses a position. As in Tracetest, `first` and `last` may have a number, and the last of several numbers counts.
    fn position(&mut self) -> Result<Position, Stop> {
        let token = self.bump();
        let word = self.tokens.text(&token);
        let mut count: Option<(u64, Range<usize>)> = None;
        while self.take('(').is_some() {
            let argument = self.tokens.peek().clone();
            let int = super::literal::whole_number(self.tokens.text(&argument));
            let Some(int) = int.filter(|_| argument.kind == TokenKind::Numeral) else {
                return Err(self.unexpected("a whole number"));
            };
            self.bump();
            if int == 0 && word == "nth_child" {
                let mistake = Mistake::error(argument.range.clone(), "positions count from 1");
                self.note(mistake);
            }
            self.expect(')', "`)`")?;
            let ignored = match word {
                "nth_child" => count.replace((int, argument.range)),
                _ => Some((int, argument.range)),
            };
            if let Some((_, range)) = ignored {
                self.note(Mistake::warning(range, "this number has no effect"));
            }
        }
        match (word, count) {
            ("first", _) => Ok(Position::First),
            ("last", _) => Ok(Position::Last),
            (_, Some((count, _))) => Ok(Position::Nth(count)),
            (_, None) => Err(self.unexpected("`(` and which one")),
        }
    }
}

/// A pseudo-class or a position after a step.
enum Behind {
    Pseudo(Pseudo),
    Position(Position),
}
