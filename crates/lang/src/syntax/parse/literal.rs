//! Parses numbers, durations and texts, including the `${…}` in a text.

use source::is_duration_unit;

use super::{Parser, Stop};
use crate::{
    syntax::{
        ast::{Expr, ExprKind, Piece, Template},
        lex::{Dialect, Gap, Origin, SOURCE_BYTES_MAX, Token, TokenKind, Tokens},
        mistake::Mistake,
        name,
    },
    value::{Number, read_duration, read_loose},
};

/// The maximum number of `${…}` in one text.
const INSERTS_MAX: usize = 1024;

const UNITS: [&str; 8] = ["ns", "us", "\u{b5}s", "\u{3bc}s", "ms", "s", "m", "h"];

const UNITS_HELP: &str = "a duration is a number and one of `ns` `us` `ms` `s` `m` `h`";

/// Long names of units, and their symbols.
const LONG_UNITS: &[(&str, &str)] = &[
    ("nanosecond", "ns"),
    ("microsecond", "us"),
    ("millisecond", "ms"),
    ("msec", "ms"),
    ("second", "s"),
    ("sec", "s"),
    ("minute", "m"),
    ("min", "m"),
    ("hour", "h"),
];

impl Parser<'_> {
    /// Parses the number or duration that starts with the next token, after its sign if it has one.
    pub(super) fn number(&mut self, sign: Option<&Token>) -> Expr {
        let token = self.bump();
        let start = sign.map_or(token.range.start, |sign| sign.range.start);
        let minus = if sign.is_some() { "-" } else { "" };
        let written = format!("{minus}{}", self.tokens.text(&token));
        let kind = match self.scene.dialect {
            Dialect::Selector => match self.unit_ahead(&written) {
                Some(unit) => duration(&written, unit),
                None => selector_number(&written, self.scene.names_are_bare()),
            },
            Dialect::Expression => {
                let unit = self.unit_ahead(&written);
                expression_number(&written, unit)
            }
        };
        let range = self.since(start);
        if matches!(kind, Ok(ExprKind::Text(_))) && self.scene.names_are_bare() {
            let mistake =
                Mistake::error(range.clone(), format!("`{written}` does not fit 128 bits"));
            self.note(mistake);
        }
        let kind = kind.unwrap_or_else(|(message, help)| {
            let mistake = Mistake::error(range.clone(), message);
            self.note(if help.is_empty() { mistake } else { mistake.help(help) });
            ExprKind::Null
        });
        Expr::new(kind, range)
    }

    /// Consumes the unit after a number, if there is one. In an expression one space is allowed before it; in a selector the next
    /// condition may start there.
    fn unit_ahead(&mut self, number: &str) -> Option<&'static str> {
        let word = self.tokens.peek_word()?;
        let is_selector = self.scene.dialect == Dialect::Selector;
        if number.contains(char::is_alphabetic) || is_selector && self.is_name_ahead(0) {
            return None;
        }
        let singular = word.strip_suffix('s').unwrap_or(word);
        let long = name::found(LONG_UNITS, singular).filter(|_| !is_selector);
        let unit = UNITS.into_iter().find(|unit| *unit == word).or(long)?;
        let token = self.bump();
        let message = match long {
            Some(_) => "a unit of time is written short",
            None if token.gap == Gap::Space && !is_selector => return Some(unit),
            None => "a unit follows its number without a space",
        };
        self.note(Mistake::error(token.range, message).help(format!("write `{number}{unit}`")));
        Some(unit)
    }

    /// Parses the next token, a text, as a value.
    pub(super) fn text(&mut self) -> Result<Expr, Stop> {
        let token = self.bump();
        let TokenKind::Text { text, quote } = &token.kind else {
            return Err(self.unexpected("a text"));
        };
        if self.scene.dialect == Dialect::Selector {
            if *quote != '"' {
                let mistake =
                    Mistake::error(token.range.clone(), "a text is written in double quotes here");
                self.note(mistake.help(format!("write `{text:?}`")));
            } else if insert_end(text, 0).is_some_and(|(start, end)| start < end) {
                let message = "`${…}` stands for itself in a selector";
                let mistake = Mistake::warning(token.range.clone(), message);
                self.note(mistake.help("compare with the variable itself, as in `name = var:X`"));
            }
            return Ok(Expr::new(ExprKind::Text(text.clone().into()), token.range));
        }
        if !text.contains("${") {
            return Ok(Expr::new(ExprKind::Text(text.clone().into()), token.range));
        }
        let places = self.places(&token, *quote);
        let mut pieces =
            self.nested(|parser| Ok(parser.pieces_of(text, &Origin::Table(places))))?;
        let kind = match pieces.as_mut_slice() {
            [Piece::Text(text)] => ExprKind::Text(std::mem::take(text).into()),
            _ => ExprKind::Template(Template { pieces }),
        };
        Ok(Expr::new(kind, token.range))
    }

    /// Returns the position of each byte of an expression's decoded text, and of its end.
    fn places(&self, token: &Token, quote: char) -> Vec<usize> {
        let written = self.tokens.text(token);
        let mut places = Vec::new();
        let mut chars = written.char_indices().skip(1).peekable();
        while let Some((mut at, mut c)) = chars.next() {
            if c == '\\' && chars.peek().is_some_and(|(_, next)| *next == quote) {
                (at, c) = chars.next().unwrap_or((at, c));
            } else if c == quote {
                break;
            }
            places.extend((0..c.len_utf8()).map(|byte| self.tokens.place_in(token, at + byte)));
        }
        places.push(self.tokens.place_in(token, written.len() - quote.len_utf8()));
        places
    }

    /// Splits a text into literal texts and the values of its `${…}`.
    pub(super) fn pieces_of(&mut self, text: &str, origin: &Origin) -> Vec<Piece> {
        let mut pieces: Vec<Piece> = Vec::new();
        let mut literal = String::new();
        let (mut at, mut inserts) = (0, 0);
        while let Some(length) = text[at..].find("${") {
            let start = at + length;
            literal.push_str(&text[at..start]);
            let place = origin.place(start)..origin.place(start + 2);
            inserts += 1;
            if inserts > INSERTS_MAX {
                let message = format!("more than {INSERTS_MAX} `${{…}}` in one text");
                self.note(Mistake::error(place, message));
                return pieces;
            }
            let Some((from, to)) = insert_end(text, start) else {
                let mistake = Mistake::warning(place, "this `${` has no end and stands for itself");
                self.note(mistake.help("close it with `}`"));
                at = start;
                break;
            };
            at = to + 1;
            if from == to {
                literal.push_str("${}");
                let message = "nothing stands between the braces, so they stand for themselves";
                self.note(Mistake::warning(place.start..origin.place(at), message));
                continue;
            }
            if !literal.is_empty() {
                pieces.push(Piece::Text(std::mem::take(&mut literal)));
            }
            pieces.push(Piece::Value(self.insert(&text[from..to], origin, from)));
        }
        literal.push_str(&text[at..]);
        if !literal.is_empty() || pieces.is_empty() {
            pieces.push(Piece::Text(literal));
        }
        pieces
    }

    /// Parses the value between `${` and `}`, which starts at `from` of its text, and records its errors.
    fn insert(&mut self, inside: &str, origin: &Origin, from: usize) -> Expr {
        let range = origin.place(from)..origin.place(from + inside.len());
        let origin = match origin {
            Origin::Shift(by) => Origin::Shift(by + from),
            Origin::Table(places) => Origin::Table(places[from..=from + inside.len()].to_vec()),
        };
        let nothing = Expr::new(ExprKind::Null, range);
        let tokens = match Tokens::of(inside, Dialect::Expression, origin) {
            Ok(tokens) => tokens,
            Err(mistake) => {
                self.note(mistake);
                return nothing;
            }
        };
        let notes = std::mem::take(&mut self.notes);
        let end = notes.end;
        let mut parser = Parser { source: self.source, tokens, scene: self.scene, notes };
        let value = parser.nested(|parser| {
            let value = parser.statement()?;
            let value = parser.require_value(value);
            parser.end("`}`")?;
            Ok(value)
        });
        self.tokens.has_comments |= parser.tokens.has_comments;
        self.notes = parser.notes;
        self.notes.end = end;
        value.unwrap_or(nothing)
    }
}

/// Returns the range inside the `${` at or after `at`. A `}` in quotes does not end it, unless there is no other `}`: so a
/// pattern may contain one.
fn insert_end(text: &str, at: usize) -> Option<(usize, usize)> {
    let from = at + text[at..].find("${")? + 2;
    let inside = &text[from..];
    let mut quote = None;
    let mut before = ' ';
    for (offset, c) in inside.char_indices().take(SOURCE_BYTES_MAX) {
        match (c, quote) {
            ('}', None) => return Some((from, from + offset)),
            ('"' | '\'', None) => quote = Some(c),
            (c, Some(open)) if c == open && before != '\\' => quote = None,
            _ => {}
        }
        before = c;
    }
    Some((from, from + inside.find('}')?))
}

/// Parses a non-negative integer of a selector.
pub(super) fn whole_number(written: &str) -> Option<u64> {
    match selector_number(written, false) {
        Ok(ExprKind::Number { value: Number::Int(int @ 0..), .. }) => {
            Some(u64::try_from(int).unwrap_or(u64::MAX))
        }
        Ok(ExprKind::Text(_)) => Some(u64::MAX),
        _ => None,
    }
}

/// The message and the help text for an invalid number.
type Refusal = (String, String);

/// Parses a number of an expression with the unit after it, if there is one.
fn expression_number(written: &str, unit: Option<&str>) -> Result<ExprKind, Refusal> {
    let letters = written.find(|c: char| c.is_alphabetic() || c == '_').unwrap_or(written.len());
    let (digits, own_unit) = written.split_at(letters);
    match unit {
        Some(unit) => duration(digits, unit),
        None if !own_unit.is_empty() => duration(digits, own_unit),
        None => match read_loose(digits) {
            Some(value) => Ok(ExprKind::Number { value, spelling: written.to_owned() }),
            // An integer that does not fit 128 bits still equals a text of the same digits.
            None if !digits.contains('.') => Ok(ExprKind::Text(written.to_owned().into())),
            None => Err((
                format!("`{written}` is not a number"),
                "digits stand on both sides of the point".to_owned(),
            )),
        },
    }
}

fn duration(digits: &str, unit: &str) -> Result<ExprKind, Refusal> {
    let written = format!("{digits}{unit}");
    if let Some(nanos) = read_duration(&written) {
        return Ok(ExprKind::Duration(nanos));
    }
    if is_duration_unit(unit) && read_loose(digits).is_some() {
        let message = format!("`{written}` is not a whole number of nanoseconds");
        return Err((message, String::new()));
    }
    let small = written.to_lowercase();
    let help = match read_duration(&small) {
        Some(_) => format!("did you mean `{small}`?"),
        None => UNITS_HELP.to_owned(),
    };
    Err((format!("`{written}` is neither a number nor a duration"), help))
}

/// Parses a number of a selector: decimal, or with a radix prefix, with `_` between digits; or a duration.
fn selector_number(written: &str, is_name: bool) -> Result<ExprKind, Refusal> {
    let bare = written.replace('_', "");
    let unsigned = bare.strip_prefix('-').unwrap_or(&bare);
    let radix = [("0x", 16), ("0X", 16), ("0b", 2), ("0B", 2), ("0o", 8), ("0O", 8)]
        .iter()
        .find_map(|(prefix, radix)| Some((unsigned.strip_prefix(prefix)?, *radix)));
    let value = match radix {
        Some((digits, radix)) if digits.starts_with(|c: char| c.is_digit(radix)) => {
            let sign = if unsigned.len() < bare.len() { "-" } else { "" };
            i128::from_str_radix(&format!("{sign}{digits}"), radix).ok().map(Number::Int)
        }
        Some(_) => None,
        None => read_loose(bare.strip_suffix('.').unwrap_or(&bare)),
    };
    if let Some(value) = value {
        return Ok(ExprKind::Number { value, spelling: written.to_owned() });
    }
    if let Some(nanos) = read_duration(&bare) {
        return Ok(ExprKind::Duration(nanos));
    }
    // An integer that does not fit 128 bits still equals a text of the same digits.
    if unsigned.bytes().all(|b| b.is_ascii_digit()) {
        return Ok(ExprKind::Text(written.to_owned().into()));
    }
    let what = if is_name { "an unusual name" } else { "a text" };
    Err((
        format!("`{written}` is not a number"),
        format!("{what} is written in double quotes: `\"{written}\"`"),
    ))
}
