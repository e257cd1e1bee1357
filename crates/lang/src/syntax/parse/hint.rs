//! Help texts of diagnostics: what the author probably meant.

use source::did_you_mean;

use super::{Parser, Root, Stop, validate::is_duration};
use crate::syntax::{
    ast::{Expr, ExprKind, Property, Quantifier, ResponsePart, Subject, Summary},
    lex::{Dialect, Gap, TokenKind, is_scoped_name},
    mistake::Mistake,
    name::{self, COMPARATORS, INTRINSICS, RELATIONS},
};

/// Comparators of other languages, and their equivalent here.
pub(super) const COMPARATOR_SPELLINGS: &[(&str, &str)] = &[
    ("==", "="),
    ("===", "="),
    ("<>", "!="),
    ("=>", ">="),
    ("=<", "<="),
    ("!==", "!="),
    ("~", "=~"),
    ("~=", "=~"),
    ("is", "="),
    ("equals", "="),
    ("eq", "="),
    ("startsWith", "starts-with"),
    ("startswith", "starts-with"),
    ("endsWith", "ends-with"),
    ("endswith", "ends-with"),
    ("like", "matches"),
    ("includes", "contains"),
    ("json-contains", "contains"),
    ("notcontains", "not-contains"),
    ("NOT-CONTAINS", "not-contains"),
];

/// The characters that CSS puts before `=`, and their equivalent here.
const CSS_SPELLINGS: &[(char, &str)] =
    &[('^', "starts-with"), ('$', "ends-with"), ('*', "contains")];

/// Common wrong names of properties, and the correct ones.
const PROPERTY_SPELLINGS: &[(&str, &str)] = &[
    ("status_code", "status"),
    ("span_id", "id"),
    ("span_name", "name"),
    ("span_kind", "kind"),
    ("operation", "name"),
    ("service_name", "service"),
    ("start_time", "start"),
    ("end_time", "end"),
    ("latency", "duration"),
    ("elapsed", "duration"),
    ("parent", "parent_id"),
];

/// Common wrong names of relations, and the correct ones.
const RELATION_SPELLINGS: &[(&str, &str)] = &[
    ("then", "before"),
    ("precedes", "before"),
    ("follows", "after"),
    ("within", "inside"),
    ("during", "inside"),
    ("in", "inside"),
    ("invokes", "calls"),
];

/// Common wrong quantifiers, and the correct ones.
const QUANTIFIER_SPELLINGS: &[(&str, &str)] = &[
    ("all", "every"),
    ("each", "every"),
    ("any", "some"),
    ("exists", "some"),
    ("one", "some"),
    ("none", "no"),
    ("not", "no"),
];

impl Parser<'_> {
    /// Returns the error for a token after the expected end of the string.
    pub(super) fn behind_end(&self, expected: &str) -> Mistake {
        let token = self.tokens.peek();
        let mistake = self.tokens.unexpected(expected);
        let is_selector = self.scene.root == Root::Selector;
        match (&token.kind, self.tokens.text(token)) {
            (TokenKind::Word, "and" | "or") if is_selector => {
                mistake.help("`and` and `or` stand inside the brackets; `,` joins what is selected")
            }
            (TokenKind::Word, word) if is_selector => mistake.suggest(did_you_mean(word, ["span"])),
            (TokenKind::Word, "by") => {
                mistake.help("`by` belongs inside the parentheses: `count(span[…] by service)`")
            }
            (TokenKind::Symbol(','), _) if self.tokens.word_ahead(1) == Some("span") => {
                mistake.help("several selections stand in parentheses: `some (span[…], span[…])`")
            }
            (TokenKind::Scoped { .. } | TokenKind::Word | TokenKind::Symbol(','), _)
                if !is_selector =>
            {
                mistake.help("join statements with `and` or `or`")
            }
            _ => mistake,
        }
    }

    /// Returns the error for a value in place of a statement.
    pub(super) fn not_a_statement(&self, value: &Expr) -> Mistake {
        let written = self.written(value);
        let mistake =
            Mistake::error(value.at.0.clone(), "this is a value, which neither holds nor fails");
        mistake.help(match &value.kind {
            ExprKind::Null
            | ExprKind::Bool(_)
            | ExprKind::Number { .. }
            | ExprKind::Duration(_)
            | ExprKind::Text(_)
            | ExprKind::Template(_)
            | ExprKind::List(_)
            | ExprKind::Call { .. } => format!("say what it is compared with: `… = {written}`"),
            _ if is_duration(value) => format!("compare it: `{written} < 100ms`"),
            ExprKind::Aggregate(summary) if summary.function == Summary::Count => {
                format!("compare it: `{written} = 1`")
            }
            ExprKind::Response(ResponsePart::Status) => format!("compare it: `{written} = 200`"),
            ExprKind::Property(Property::Intrinsic(..))
            | ExprKind::Minus(_)
            | ExprKind::Arithmetic { .. }
            | ExprKind::Aggregate(_) => format!("compare it: `{written} = …`"),
            _ => format!("compare it: `{written} = …`, or ask `{written} exists`"),
        })
    }

    /// Returns the error for a token that starts no value.
    pub(super) fn no_value(&self) -> Mistake {
        let token = self.tokens.peek();
        let is_name = self.scene.names_are_bare();
        let mistake = self.tokens.unexpected(if is_name { "a condition" } else { "a value" });
        match (&token.kind, self.tokens.text(token)) {
            (TokenKind::Symbol('{'), _) if self.scene.root == Root::Trigger => {
                mistake.help("one brace is enough: `${…}`")
            }
            (TokenKind::Symbol('{'), _) if self.is_double('{') => {
                mistake.help("names have no braces: `attr:x`, `var:x`")
            }
            (TokenKind::Symbol('{'), _) => mistake.help("spans are written `span[…]`"),
            (TokenKind::Symbol('$'), _) => mistake.help("a variable is written `var:NAME`"),
            (TokenKind::Symbol('“' | '”' | '`' | '‘' | '’' | '«' | '»'), _) => {
                mistake.help("a text is written in double quotes: `\"…\"`")
            }
            (TokenKind::Symbol('*'), _) if is_name => mistake.help("`span[]` is any span"),
            (TokenKind::Symbol('+'), _) => mistake.help("leave the sign out"),
            (TokenKind::Symbol(c), _) if is_name && !"])|,".contains(*c) => {
                mistake.help("an unusual name is written in double quotes")
            }
            (TokenKind::Symbol('.'), _) => mistake.help("digits stand on both sides of the point"),
            _ => mistake,
        }
    }

    /// Returns the error for a token that starts no step.
    pub(super) fn no_step(&self) -> Mistake {
        let token = self.tokens.peek();
        let mistake = self.tokens.unexpected("`span[…]`");
        match (&token.kind, self.tokens.text(token)) {
            (TokenKind::Word, "self") => mistake.help("`self` belongs at the beginning"),
            (TokenKind::Word | TokenKind::Scoped { .. } | TokenKind::Text { .. }, word) => {
                match self.step_around() {
                    Some(step) => mistake.help(format!("write `{step}`")),
                    None => mistake.suggest(did_you_mean(word, ["span"])),
                }
            }
            (TokenKind::Symbol('{' | '['), _) => mistake.help("write `span[name=\"…\"]`"),
            (TokenKind::Symbol('*'), _) => mistake.help("`span[]` is any span"),
            (TokenKind::Numeral, number) if self.scene.dialect == Dialect::Expression => {
                mistake.help(format!("compare their number: `count(span[…]) = {number}`"))
            }
            _ => mistake,
        }
    }

    /// Returns the step that the author meant by a selector that is only a condition.
    fn step_around(&self) -> Option<String> {
        let is_all = self.scene.root == Root::Selector && self.notes.end == 0;
        let step = format!("span[{}]", self.source.trim());
        // A text that starts with a step does not reach this function again.
        is_all.then(|| super::selector(&step)).and_then(|parsed| parsed.tree).map(|_| step)
    }

    /// Returns the error for a token in place of a comparator, and the intended comparator if it is obvious.
    pub(super) fn no_comparator(&self, left: &Expr) -> (Mistake, Option<&'static str>) {
        let token = self.tokens.peek();
        let written = self.tokens.text(token);
        let range = token.range.clone();
        if written == "not" {
            let expected =
                "`contains`, `starts-with`, `ends-with`, `matches`, `in`, `between` or `exists`";
            let mistake = Mistake::error(range, format!("expected {expected} behind `not`"));
            let help = match self.tokens.text(self.tokens.ahead(1)) {
                "=" => "write `!=`",
                _ => "`not` negates a whole statement too: `not attr:x = 5`",
            };
            return (mistake.help(help), None);
        }
        let mistake = Mistake::error(range.clone(), format!("unknown comparator `{written}`"));
        if let Some(meant) = name::found(COMPARATOR_SPELLINGS, written) {
            return (mistake.suggest(Some(meant)), Some(meant));
        }
        let is_selector = self.scene.dialect == Dialect::Selector;
        if is_selector && matches!(left.kind, ExprKind::Property(_)) && self.is_name_ahead(0) {
            let name = self.source.get(left.at.0.start..range.end).unwrap_or("…");
            let help = format!("a name with a space is written in double quotes: `\"{name}\"`");
            return (mistake.help(help), None);
        }
        let others = ["between", "exists", "not-contains"];
        let known = COMPARATORS.iter().map(|(known, _)| *known).chain(others);
        let words = known.clone().filter(|known| known.starts_with(char::is_alphabetic));
        match did_you_mean(written, words) {
            Some(meant) => (mistake.suggest(Some(meant)), None),
            None => (mistake.help(format!("known are {}", listed(known))), None),
        }
    }

    /// Returns the comparator for `^=` and other operators of CSS.
    pub(super) fn css_comparator(&self) -> Option<&'static str> {
        let behind = self.tokens.ahead(1);
        let is_equal = behind.gap == Gap::Nothing && self.tokens.text(behind) == "=";
        let TokenKind::Symbol(symbol) = self.tokens.peek().kind else { return None };
        let known = CSS_SPELLINGS.iter().find(|(known, _)| *known == symbol);
        known.filter(|_| is_equal).map(|(_, meant)| *meant)
    }

    /// Rejects a symbol directly inside a bare name of a selector: the name lacks its quotes.
    pub(super) fn refuse_unusual_name(&mut self, left: &Expr) -> Result<(), Stop> {
        let (token, behind) = (self.tokens.peek(), self.tokens.ahead(1));
        let is_inside = token.gap == Gap::Nothing
            && behind.gap == Gap::Nothing
            && matches!(token.kind, TokenKind::Symbol('/' | ':' | '@' | '$' | '#' | '*'))
            && matches!(behind.kind, TokenKind::Word | TokenKind::Numeral);
        if !is_inside || !self.scene.names_are_bare() || !matches!(left.kind, ExprKind::Property(_))
        {
            return Ok(());
        }
        let range = left.at.0.start..behind.range.end;
        let name = self.source.get(range.clone()).unwrap_or("…").to_owned();
        let mistake = Mistake::error(range, "an unusual name is written in double quotes");
        Err(self.stop(mistake.help(format!("write `\"{name}\"`"))))
    }

    /// Returns the error for a token after a selection where a predicate or a relation is required.
    pub(super) fn no_relation(&self, subject: &Subject) -> Mistake {
        let mistake = self.tokens.unexpected("`has` or a relation such as `before`");
        let token = self.tokens.peek();
        let known = RELATIONS.iter().map(|(known, _)| *known).chain(["has"]);
        match (&token.kind, self.tokens.text(token)) {
            (TokenKind::Word, "have" | "with" | "where" | "must") => mistake.suggest(Some("has")),
            (TokenKind::Word, "exists") => mistake.help("write `some span[…]`"),
            (TokenKind::Word, word) if did_you_mean(word, known.clone()).is_some() => {
                mistake.suggest(did_you_mean(word, known))
            }
            (TokenKind::Word, word) if name::found(RELATION_SPELLINGS, word).is_some() => {
                mistake.suggest(name::found(RELATION_SPELLINGS, word))
            }
            (TokenKind::Operator, _) if subject.quantifier == Quantifier::The => {
                mistake.help("compare their number: `count(span[…]) = 1`")
            }
            (TokenKind::Symbol('.'), _) => {
                let word = self.tokens.word_ahead(1).unwrap_or("duration");
                let scope = if name::intrinsic(word).is_some() { "" } else { "attr:" };
                mistake.help(format!("say what it has: `every span[…] has {scope}{word} …`"))
            }
            _ => mistake.help("say what it has: `every span[…] has …`"),
        }
    }

    /// Parses a word in place of a value, in an expression.
    pub(super) fn bare_word(&mut self) -> Result<Expr, Stop> {
        let token = self.tokens.peek().clone();
        let word = self.tokens.text(&token);
        if let ("span", TokenKind::Symbol('[')) =
            (self.tokens.word_ahead(1).unwrap_or_default(), &self.tokens.ahead(2).kind)
        {
            let mistake = self.tokens.unexpected("a statement");
            let known = ["every", "some", "no"];
            let meant = name::found(QUANTIFIER_SPELLINGS, word);
            return Err(self.stop(match meant.or_else(|| did_you_mean(word, known)) {
                Some(meant) => mistake.suggest(Some(meant)),
                None if super::summary::summary_words().any(|known| known == word) => {
                    mistake.help(format!("its spans stand in parentheses: `{word}(…)`"))
                }
                None => mistake.help("write `every`, `some` or `no` in front of `span[…]`"),
            }));
        }
        if name::is_keyword(word) {
            let mistake = self.tokens.unexpected("a value");
            return Err(self.stop(match word {
                "exists" => mistake.help("it follows its operand: `attr:x exists`"),
                _ => mistake,
            }));
        }
        self.bump();
        if self.tokens.peek().kind == TokenKind::Symbol(':') {
            return Err(self.foreign_scope(&token.range));
        }
        let mistake = Mistake::error(token.range.clone(), "a bare word is no value");
        let meant = did_you_mean(word, INTRINSICS.iter().map(|(known, _)| *known));
        let meant = name::found(PROPERTY_SPELLINGS, word).or(meant);
        self.note(match (self.scene.root, meant) {
            (Root::Trigger, _) => mistake.help(format!("write `var:{word}` for a variable")),
            (_, Some(meant)) => {
                mistake.help(format!("did you mean `{meant}`, or the attribute `attr:{word}`?"))
            }
            (_, None) if word == "response" => {
                mistake.help("write `response.status` or another part")
            }
            _ => mistake
                .help(format!("write `attr:{word}` for an attribute, `\"{word}\"` for a text")),
        });
        Ok(Expr::new(ExprKind::Null, token.range))
    }

    /// Rejects `attribute:NAME`, `attr: NAME` and similar; the `:` is the next token.
    fn foreign_scope(&mut self, word: &std::ops::Range<usize>) -> Stop {
        self.bump();
        let name = self.tokens.peek().clone();
        let mistake = Mistake::error(self.since(word.start), "a bare word is no value");
        let meant = match name.kind {
            TokenKind::Word => {
                let rest = self.source.get(name.range.start..).unwrap_or_default();
                let end = rest.find(|c: char| !c.is_alphanumeric() && !"_.-".contains(c));
                rest[..end.unwrap_or(rest.len())].to_owned()
            }
            _ => "NAME".to_owned(),
        };
        let blank = if name.gap == Gap::Nothing { "" } else { ", without a blank" };
        self.stop(mistake.help(format!("an attribute is written `attr:{meant}`{blank}")))
    }

    /// Parses a word in place of a value, in a selector: a text without its quotes.
    pub(super) fn text_without_quotes(&mut self) -> Result<Expr, Stop> {
        let first = self.tokens.peek().clone();
        if ["not", "and", "or"].contains(&self.tokens.text(&first)) {
            return Err(self.unexpected("a value"));
        }
        let mut last = self.bump();
        loop {
            let ends = match &self.tokens.peek().kind {
                TokenKind::Word => {
                    let word = self.tokens.peek_word().unwrap_or_default();
                    self.is_name_ahead(0) || ["and", "or", "not"].contains(&word)
                }
                TokenKind::Numeral | TokenKind::Symbol('/' | '.' | '-' | ':' | '*' | '+') => false,
                _ => true,
            };
            if ends {
                break;
            }
            last = self.bump();
        }
        let text = self.tokens.written(&first, &last).to_owned();
        let range = first.range.start..last.range.end;
        let mistake = Mistake::error(range.clone(), "a text is written in double quotes");
        self.note(mistake.help(match (is_scoped_name(&text), name::intrinsic(&text)) {
            (true, None) => format!("write `\"{text}\"`, or `attr:{text}` for the attribute"),
            (true, Some(_)) => {
                format!("write `\"{text}\"`, or `attr:{text}` for what the span has")
            }
            (false, _) => format!("write `\"{text}\"`"),
        }));
        Ok(Expr::new(ExprKind::Null, range))
    }

    /// Returns the source text of an expression, if it is short.
    pub(super) fn written(&self, expr: &Expr) -> &str {
        self.source.get(expr.at.0.clone()).filter(|text| text.len() <= 40).unwrap_or("…")
    }
}

/// Returns the words in backticks.
pub(super) fn listed<'a>(words: impl Iterator<Item = &'a str>) -> String {
    words.map(|word| format!("`{word}`")).collect::<Vec<_>>().join(" ")
}
