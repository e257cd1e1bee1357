//! Checks for statements that the grammar allows but that no trace can decide, and for probable typing errors.

use std::ops::Range;

use super::{Parser, hint::listed};
use crate::{
    syntax::{
        ast::{
            Aggregate, Arithmetic, Comparator, Expr, ExprKind, Filter, Function, Intrinsic,
            Property, ResponsePart, Summary,
        },
        mistake::Mistake,
    },
    value::{Number, json_path, pattern, read_duration, read_loose},
};

/// A number without a unit below this many nanoseconds is probably not meant as nanoseconds.
const NANOS_PLAUSIBLE: i128 = 1_000_000;

const KINDS: &[&str] = &["internal", "server", "client", "producer", "consumer", "unspecified"];

const STATUSES: &[&str] = &["unset", "ok", "error"];

const STATUS_CODES: &[&str] = &["STATUS_CODE_UNSET", "STATUS_CODE_OK", "STATUS_CODE_ERROR"];

const TYPES: &[&str] = &["http", "database", "rpc", "messaging", "faas", "exception", "general"];

/// A property with a fixed set of values (words).
struct Words {
    /// The words, and the name of the property.
    known: &'static [&'static str],
    what: &'static str,
    /// The prefix of the word in other notations.
    prefix: &'static str,
    /// Whether a word represents an enum number that a later OTLP version may add.
    is_later: fn(&str) -> bool,
}

impl Parser<'_> {
    pub(super) fn check_comparison(&mut self, left: &Expr, comparator: Comparator, right: &Expr) {
        let is_order = matches!(
            comparator,
            Comparator::Less | Comparator::AtMost | Comparator::Greater | Comparator::AtLeast
        );
        if is_order {
            self.check_order(left);
            self.check_order(right);
        }
        match comparator {
            Comparator::Matches => self.check_pattern(right),
            Comparator::In => self.check_list(right),
            _ => {}
        }
        if is_order || comparator == Comparator::Equal {
            self.check_unit(left, right);
            self.check_unit(right, left);
        }
        match (comparator, &right.kind) {
            (Comparator::Equal | Comparator::In | Comparator::Contains, ExprKind::List(items))
                if comparator == Comparator::In || matches!(left.kind, ExprKind::Aggregate(_)) =>
            {
                items.iter().for_each(|item| self.check_word(left, item));
            }
            (Comparator::Equal, _) => {
                self.check_word(left, right);
                self.check_word(right, left);
            }
            _ => {}
        }
    }

    /// Reports a literal without an order: the comparison would fail on every trace.
    fn check_order(&mut self, side: &Expr) {
        let range = side.at.0.clone();
        let mistake = match &side.kind {
            ExprKind::Text(text) if read_loose(text).is_none() && read_duration(text).is_none() => {
                match !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
                    true => Mistake::error(range, format!("`{text}` does not fit 128 bits")),
                    false => Mistake::error(range, "a text has no order")
                        .help("only numbers and durations have one"),
                }
            }
            ExprKind::Bool(_) => Mistake::error(range, "a boolean has no order"),
            ExprKind::List(_) => Mistake::error(range, "a list has no order")
                .help("compare its length: `… | length`"),
            _ => return,
        };
        self.note(mistake);
    }

    fn check_list(&mut self, right: &Expr) {
        let is_list = match &right.kind {
            ExprKind::Bool(_) | ExprKind::Number { .. } | ExprKind::Duration(_) => false,
            ExprKind::Text(text) => text.trim_start().starts_with('['),
            _ => true,
        };
        if !is_list {
            let mistake = Mistake::error(right.at.0.clone(), "`in` needs a list");
            let written = self.written(right);
            self.note(mistake.help(format!("write `in [{written}]`")));
        }
    }

    /// Warns of `duration < 100`: that is a hundred nanoseconds, probably not the intention.
    fn check_unit(&mut self, value: &Expr, number: &Expr) {
        let ExprKind::Number { value: count, spelling } = &number.kind else { return };
        let is_small = count.compare(Number::Int(NANOS_PLAUSIBLE)).is_some_and(|o| o.is_lt())
            && count.compare(Number::Int(0)).is_some_and(|o| o.is_gt());
        if is_small && is_duration(value) {
            let message = "the number counts as nanoseconds";
            let mistake = Mistake::warning(number.at.0.clone(), message);
            self.note(mistake.help(format!("write `{spelling}ms` for milliseconds")));
        }
    }

    /// Checks a value against the words of a property. `kind = "SERVER"` never holds, and so its negation always does: a kind and
    /// a status have a fixed set of words. A bare word in a selector may also be the name of an attribute; its value may be any
    /// text that is not another spelling of one of the words.
    fn check_word(&mut self, value: &Expr, word: &Expr) {
        let value = match &value.kind {
            ExprKind::Aggregate(aggregate) => match (&aggregate.value, aggregate.function) {
                (Some(value), Summary::Value | Summary::Values) => value,
                _ => return,
            },
            _ => value,
        };
        let (ExprKind::Property(property), ExprKind::Text(text)) = (&value.kind, &word.kind) else {
            return;
        };
        let (property, is_sure) = match property {
            Property::Attribute { otherwise: Some(otherwise), .. } => (otherwise.as_ref(), false),
            property => (property, true),
        };
        let Property::Intrinsic(intrinsic, _) = property else { return };
        let Some(Words { known, what, prefix, is_later }) = words(*intrinsic) else { return };
        let small = text.to_lowercase();
        let bare = small.strip_prefix(&prefix.to_lowercase()).unwrap_or(&small);
        let is_meant = |known: &str| {
            let known = known.to_lowercase();
            known == small || known.strip_prefix(&prefix.to_lowercase()).unwrap_or(&known) == bare
        };
        let meant = known.iter().copied().find(|known| is_meant(known));
        if meant == Some(text) || is_later(text) {
            return;
        }
        let message = format!("a {what} is one of {}", listed(known.iter().copied()));
        let mistake = match is_sure || meant.is_some() {
            true => Mistake::error(word.at.0.clone(), message).suggest(meant),
            false => Mistake::warning(word.at.0.clone(), message)
                .help(format!("this finds only spans with an attribute `{what}` of this value")),
        };
        self.note(mistake);
    }

    /// Warns of a precedence that differs from Tracetest, which computes from left to right.
    pub(super) fn warn_of_precedence(&mut self, right: &Expr, right_start: usize, start: usize) {
        let is_product = matches!(
            right.kind,
            ExprKind::Arithmetic { operator: Arithmetic::Multiply | Arithmetic::Divide, .. }
        );
        if is_product && right.at.0.start == right_start {
            let message = "`*` and `/` come before `+` and `-`";
            let mistake = Mistake::warning(self.since(start), message);
            let help = "Tracetest computes from left to right; parentheses make it plain";
            self.note(mistake.help(help));
        }
    }

    pub(super) fn check_filter(&mut self, filter: Filter, arguments: &[Expr]) {
        let [argument] = arguments else { return };
        match (filter, &argument.kind) {
            (Filter::Regex | Filter::RegexGroup, _) => self.check_pattern(argument),
            (Filter::JsonPath, ExprKind::Text(path)) => {
                if let Err(message) = json_path::parse(path) {
                    self.note(Mistake::error(argument.at.0.clone(), message));
                }
            }
            (Filter::GetIndex, ExprKind::Number { value: Number::Int(_), .. }) => {}
            (Filter::GetIndex, ExprKind::Text(text))
                if text == "last" || matches!(read_loose(text), Some(Number::Int(_))) => {}
            (
                Filter::GetIndex,
                ExprKind::Number { .. }
                | ExprKind::Text(_)
                | ExprKind::Bool(_)
                | ExprKind::Duration(_)
                | ExprKind::List(_),
            ) => {
                let mistake =
                    Mistake::error(argument.at.0.clone(), "expected a whole number or `\"last\"`");
                self.note(mistake.help("positions count from 0"));
            }
            _ => {}
        }
    }

    pub(super) fn check_call(&mut self, function: Function, arguments: &[Expr]) {
        for argument in arguments {
            let expected = match (function, &argument.kind) {
                (Function::RandomInt, ExprKind::Text(text)) if read_loose(text).is_none() => {
                    "expected a whole number"
                }
                (
                    Function::RandomInt,
                    ExprKind::Bool(_) | ExprKind::List(_) | ExprKind::Duration(_),
                ) => "expected a whole number",
                (
                    Function::Date | Function::DateTime,
                    ExprKind::Number { .. }
                    | ExprKind::Bool(_)
                    | ExprKind::List(_)
                    | ExprKind::Duration(_),
                ) => "expected a format such as `\"YYYY-MM-DD\"`",
                _ => continue,
            };
            self.note(Mistake::error(argument.at.0.clone(), expected));
        }
    }

    /// Reports an invalid pattern.
    fn check_pattern(&mut self, pattern: &Expr) {
        match &pattern.kind {
            ExprKind::Text(text) => {
                let Err(message) = pattern::check(text) else { return };
                let place = regex_syntax::parse(text).err().and_then(|error| match error {
                    regex_syntax::Error::Parse(error) => Some(*error.span()),
                    regex_syntax::Error::Translate(error) => Some(*error.span()),
                    _ => None,
                });
                let range = place.map_or(0..text.len(), |at| at.start.offset..at.end.offset);
                let range = self.inside(pattern, text, range);
                self.note(Mistake::error(range, message));
            }
            ExprKind::Number { spelling, .. } => {
                let mistake = Mistake::error(pattern.at.0.clone(), "a pattern is a text");
                self.note(mistake.help(format!("write `\"{spelling}\"`")));
            }
            ExprKind::Bool(_) | ExprKind::Null | ExprKind::Duration(_) | ExprKind::List(_) => {
                self.note(Mistake::error(pattern.at.0.clone(), "a pattern is a text"));
            }
            _ => {}
        }
    }

    /// Returns a range inside a text, if the source contains the text without escapes; else the range of the complete text.
    fn inside(&self, expr: &Expr, text: &str, range: Range<usize>) -> Range<usize> {
        let start = expr.at.0.start + 1;
        let is_plain = self.source.get(start..start + text.len()) == Some(text)
            && start + text.len() + 1 == expr.at.0.end;
        match is_plain {
            true => start + range.start..start + range.end,
            false => expr.at.0.clone(),
        }
    }

    /// Reports a literal that is not a number: arithmetic with it fails on every trace.
    pub(super) fn check_arithmetic(&mut self, side: &Expr) {
        let message = match &side.kind {
            ExprKind::Text(text) if read_loose(text).is_none() && read_duration(text).is_none() => {
                "a text is no number"
            }
            ExprKind::Bool(_) => "a boolean is no number",
            _ => return,
        };
        self.note(Mistake::error(side.at.0.clone(), message));
    }
}

/// Returns the fixed words of a property.
fn words(intrinsic: Intrinsic) -> Option<Words> {
    let is_other: fn(&str) -> bool = |word| word == "other";
    Some(match intrinsic {
        Intrinsic::Kind => {
            Words { known: KINDS, what: "kind", prefix: "span_kind_", is_later: is_other }
        }
        Intrinsic::Status => {
            Words { known: STATUSES, what: "status", prefix: "status_code_", is_later: is_other }
        }
        Intrinsic::StatusCode => Words {
            known: STATUS_CODES,
            what: "status code",
            prefix: "status_code_",
            is_later: |word| {
                word.strip_prefix("STATUS_CODE_").is_some_and(|code| code.parse::<i32>().is_ok())
            },
        },
        Intrinsic::Type => Words { known: TYPES, what: "type", prefix: "", is_later: |_| false },
        _ => return None,
    })
}

/// Whether a value is certainly a duration.
pub(super) fn is_duration(value: &Expr) -> bool {
    match &value.kind {
        ExprKind::Property(Property::Intrinsic(intrinsic, _)) => is_time(*intrinsic),
        ExprKind::Property(Property::Attribute { otherwise: Some(otherwise), .. }) => {
            matches!(**otherwise, Property::Intrinsic(intrinsic, _) if is_time(intrinsic))
        }
        ExprKind::Response(ResponsePart::Duration) | ExprKind::Gap { .. } => true,
        ExprKind::Aggregate(aggregate) => match aggregate.as_ref() {
            Aggregate { function: Summary::Count | Summary::Values, .. } => false,
            Aggregate { value: Some(value), .. } => is_duration(value),
            Aggregate { value: None, .. } => false,
        },
        _ => false,
    }
}

fn is_time(intrinsic: Intrinsic) -> bool {
    matches!(intrinsic, Intrinsic::Duration | Intrinsic::SelfTime | Intrinsic::CriticalTime)
}
