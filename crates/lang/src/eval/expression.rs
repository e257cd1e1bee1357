//! Evaluates expressions. Deliberately absent: truth of statements (`truth`), and lookup of the values of spans (`world`).

use super::{
    aggregate::aggregate,
    future::Truth,
    gap::gap,
    lookup::Lookup,
    several::{counts_items, finds_several, found_nothing},
    times::TimeBounds,
    truth::truth,
    world::EvalScope,
};
use crate::{
    budget,
    syntax::{
        ast::{
            Arithmetic, Expr, ExprKind, Function, Intrinsic, Piece, Property, ResolvedValue,
            Template,
        },
        print,
    },
    value::{Literal, Value, arithmetic, filter, function, shorten},
};

pub(crate) use crate::value::Lack;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ExprValue<'a> {
    pub(crate) values: Values<'a>,
    pub(crate) trend: Trend,
    /// Whether it comes from a secret, so that reports must mask it.
    pub(crate) is_secret: bool,
    /// The doubt, if unknown data may be missing in it.
    pub(crate) doubt: Option<Doubt>,
    /// The text of the test, with the pattern or the path that is parsed from it.
    pub(crate) literal: Option<&'a Literal>,
    /// Whether a path that may match several values found it: one value then counts as a list of one.
    pub(crate) is_several: bool,
}

/// A doubt about an aggregate: further spans may match, or values exist that are unknown. `trend` is their effect on the value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Doubt {
    pub(crate) reason: String,
    pub(crate) trend: Trend,
}

/// A value between two bounds, both included, with the reason why it is not known exactly.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Interval<'a> {
    pub(crate) low: Value<'a>,
    pub(crate) high: Value<'a>,
    pub(crate) reason: String,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Values<'a> {
    One(Value<'a>),
    /// Values of events, links or headers: a statement has to hold for one of them.
    Many(Vec<Value<'a>>),
    /// Values of an aggregate with `by`, each with its key: a statement has to hold for every one.
    Groups(Vec<(String, Value<'a>)>),
    /// A value that is known between bounds: a statement has to hold for all values between them.
    Between(Box<Interval<'a>>),
}

/// How further spans can change a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trend {
    Fixed,
    Rising,
    Falling,
    Any,
}

/// The maximum size of a text with `${…}` after substitution, in bytes.
const TEXT_BYTES_MAX: usize = 16 * 1024 * 1024;

pub(crate) fn value_of<'a>(
    expr: &'a Expr,
    scene: &EvalScope<'_, 'a>,
) -> Result<ExprValue<'a>, Lack> {
    value(expr, Some(scene))
}

/// Returns the value of an expression that refers to no span and no response.
pub(crate) fn constant(expr: &Expr) -> Result<ExprValue<'_>, Lack> {
    value(expr, None)
}

fn value<'a>(expr: &'a Expr, scene: Option<&EvalScope<'_, 'a>>) -> Result<ExprValue<'a>, Lack> {
    match &expr.kind {
        ExprKind::Null => Ok(fixed(Value::Null)),
        ExprKind::Bool(bool) => Ok(fixed(Value::Bool(*bool))),
        ExprKind::Number { value: number, spelling } => {
            Ok(fixed(Value::Numeral { number: *number, spelling }))
        }
        ExprKind::Duration(nanos) => Ok(fixed(Value::Duration(*nanos))),
        ExprKind::Text(text) => Ok(ExprValue { literal: Some(text), ..fixed(Value::Quoted(text)) }),
        ExprKind::Known(ResolvedValue { text, is_secret }) => {
            let (is_secret, literal) = (*is_secret, Some(text));
            Ok(ExprValue { is_secret, literal, ..fixed(Value::borrowed(text)) })
        }
        ExprKind::Template(template) => text(template, scene),
        ExprKind::List(items) => list(items, scene),
        ExprKind::Call { function, arguments } => call(*function, arguments, scene),
        ExprKind::Filter { input, filter, arguments } => {
            let literal = match arguments.as_slice() {
                [argument] => argument.literal(),
                _ => None,
            };
            let (arguments, seen) = values_of(arguments, scene)?;
            let input = value(input, scene)?;
            let trend = seen.trend.together(input.trend);
            let is_secret = input.is_secret || seen.is_secret;
            let input = if counts_items(*filter) { input.into_list() } else { input };
            let apply = |input: &Value<'a>| filter::apply(*filter, input, &arguments, literal);
            let values = input.values.each(apply)?;
            let is_several = finds_several(*filter, literal);
            Ok(ExprValue { values, trend, is_secret, doubt: None, literal: None, is_several })
        }
        ExprKind::Minus(of) => {
            let of = value(of, scene)?;
            let negate = |value: &Value<'a>| arithmetic::negate(value).map_err(undefined);
            let trend = of.trend.reversed();
            Ok(ExprValue {
                values: of.values.each(negate)?,
                trend,
                literal: None,
                is_several: false,
                ..of
            })
        }
        ExprKind::Arithmetic { left, operator, right } => {
            calculate(value(left, scene)?, *operator, value(right, scene)?)
        }
        _ => spoken_of(expr, scene),
    }
}

/// Evaluates an expression that needs a trace or a response.
fn spoken_of<'a>(expr: &'a Expr, scene: Option<&EvalScope<'_, 'a>>) -> Result<ExprValue<'a>, Lack> {
    let named = || print::expression(expr);
    let Some(scene) = scene else {
        return Err(undefined(&format!("`{}` is known only once there is a trace", named())));
    };
    let (lookup, trend) = match &expr.kind {
        ExprKind::Property(property) => (scene.world.look_up(property, scene), trend(property)),
        ExprKind::Response(part) => (scene.world.response(part), Trend::Fixed),
        ExprKind::Aggregate(of) => return aggregate(of, scene),
        ExprKind::Gap { from, to } => return gap(from, to, scene),
        ExprKind::Variable { name, .. } => {
            return Err(undefined(&format!("the variable `{name}` has no value")));
        }
        _ => return held(expr, scene),
    };
    let values = match lookup {
        Lookup::One(value) => Values::One(value),
        Lookup::Many(values) => Values::Many(values),
        Lookup::Between(TimeBounds { low, high }, reason) => {
            let [low, high] = [low, high].map(Value::Duration);
            Values::Between(Box::new(Interval { low, high, reason }))
        }
        Lookup::Untimed(lack) => {
            let span = scene.span.map_or_else(String::new, |span| {
                format!("`{}` ({})", shorten(span.name()), span.id())
            });
            let why = lack.words();
            return Err(Lack::Open(format!("`{}` is not known: {span} {why}", named())));
        }
        Lookup::Dropped(dropped) => {
            let why = scene.span.map_or_else(String::new, |span| dropped.by(span));
            return Err(Lack::Open(format!("`{}` is not known: {why}", named())));
        }
        Lookup::Encoded(encoding) => {
            let why = format!("the body is encoded as `{encoding}`, which is not read here");
            return Err(Lack::Open(format!("`{}` is not known: {why}", named())));
        }
        Lookup::Absent if scene.inner.is_some() => {
            return Err(undefined(&format!("`{}` is not on it", named())));
        }
        Lookup::Absent if matches!(expr.kind, ExprKind::Response(_)) => {
            return Err(undefined(&format!("`{}` is not in the answer", named())));
        }
        Lookup::Absent => return Err(undefined(&format!("`{}` is not on this span", named()))),
        Lookup::Unknown => {
            let why = scene.world.why_unknown();
            return Err(Lack::Open(format!("`{}` is not known: {why}", named())));
        }
    };
    Ok(ExprValue { values, trend, is_secret: false, doubt: None, literal: None, is_several: false })
}

/// Evaluates a statement as a value, since an output may query it.
fn held<'a>(statement: &'a Expr, scene: &EvalScope<'_, 'a>) -> Result<ExprValue<'a>, Lack> {
    let found = truth(statement, scene);
    let reason = found.reason.unwrap_or_default();
    let holds = match found.truth {
        Truth::True => true,
        Truth::False => false,
        Truth::Undefined => return Err(Lack::Undefined(reason)),
        Truth::Unmet | Truth::Open => return Err(Lack::Open(reason)),
    };
    Ok(ExprValue { trend: Trend::Any, ..fixed(Value::Bool(holds)) })
}

/// Further spans change values that depend on other spans: the position in the tree, and the times of concurrent spans.
fn trend(property: &Property) -> Trend {
    match property {
        Property::Count => Trend::Rising,
        Property::Attribute { otherwise: Some(otherwise), .. } => trend(otherwise),
        Property::Intrinsic(
            Intrinsic::Depth | Intrinsic::Children | Intrinsic::SelfTime | Intrinsic::CriticalTime,
            _,
        ) => Trend::Any,
        _ => Trend::Fixed,
    }
}

fn text<'a>(
    template: &'a Template,
    scene: Option<&EvalScope<'_, 'a>>,
) -> Result<ExprValue<'a>, Lack> {
    let (mut filled, mut seen) = (String::new(), fixed(Value::Nothing));
    for piece in &template.pieces {
        match piece {
            Piece::Text(text) => filled.push_str(text),
            Piece::Value(expr) => {
                let valued = part(expr, scene)?;
                seen.see(&valued);
                filled.push_str(&one(valued.values)?.text());
            }
        }
        if !budget::spend(filled.len() as u64 / 8) || filled.len() > TEXT_BYTES_MAX {
            return Err(Lack::Open("the text is too large".to_owned()));
        }
    }
    Ok(ExprValue { values: Values::One(Value::owned(filled)), ..seen })
}

fn list<'a>(items: &'a [Expr], scene: Option<&EvalScope<'_, 'a>>) -> Result<ExprValue<'a>, Lack> {
    let (items, seen) = values_of(items, scene)?;
    Ok(ExprValue { values: Values::One(Value::List(items)), ..seen })
}

/// The last argument is the value that was generated for this occurrence; `resolve` added it.
fn call<'a>(
    function: Function,
    arguments: &'a [Expr],
    scene: Option<&EvalScope<'_, 'a>>,
) -> Result<ExprValue<'a>, Lack> {
    let Some((Expr { kind: ExprKind::Known(drawn), .. }, arguments)) = arguments.split_last()
    else {
        return Err(undefined("the function has drawn nothing"));
    };
    let (arguments, seen) = values_of(arguments, scene)?;
    let text = function::finish(function, &arguments, &drawn.text).map_err(undefined)?;
    Ok(ExprValue { values: Values::One(Value::owned(text)), ..seen })
}

/// Returns one value of each expression, and the combined trend and secrecy of all of them.
fn values_of<'a>(
    exprs: &'a [Expr],
    scene: Option<&EvalScope<'_, 'a>>,
) -> Result<(Vec<Value<'a>>, ExprValue<'a>), Lack> {
    let (mut values, mut seen) = (Vec::with_capacity(exprs.len()), fixed(Value::Nothing));
    for expr in exprs {
        let valued = part(expr, scene)?;
        seen.see(&valued);
        values.push(one(valued.values)?);
    }
    Ok((values, seen))
}

/// Returns the value of a part of a text or a list. A part without a match makes it undefined, as an absent attribute does.
fn part<'a>(expr: &'a Expr, scene: Option<&EvalScope<'_, 'a>>) -> Result<ExprValue<'a>, Lack> {
    let valued = value(expr, scene)?;
    if scene.is_some() && found_nothing(expr, &valued) {
        return Err(undefined(&format!("`{}` finds nothing", print::expression(expr))));
    }
    Ok(valued)
}

fn calculate<'a>(
    left: ExprValue<'a>,
    operator: Arithmetic,
    right: ExprValue<'a>,
) -> Result<ExprValue<'a>, Lack> {
    let is_secret = left.is_secret || right.is_secret;
    let trend = match operator {
        Arithmetic::Add => left.trend.with(right.trend),
        Arithmetic::Subtract => left.trend.with(right.trend.reversed()),
        Arithmetic::Multiply | Arithmetic::Divide => left.trend.together(right.trend),
    };
    let calculate =
        |a: &Value<'a>, b: &Value<'a>| arithmetic::calculate(a, operator, b).map_err(undefined);
    let values = match (left.values, right.values) {
        (left, Values::One(right)) => left.each(|left| calculate(left, &right))?,
        (Values::One(left), right) => right.each(|right| calculate(&left, right))?,
        _ => return Err(undefined("both sides have several values")),
    };
    Ok(ExprValue { values, trend, is_secret, doubt: None, literal: None, is_several: false })
}

fn one(values: Values<'_>) -> Result<Value<'_>, Lack> {
    match values {
        Values::One(value) => Ok(value),
        Values::Many(mut several) if several.len() == 1 => Ok(several.remove(0)),
        Values::Many(_) | Values::Groups(_) => {
            Err(undefined("there are several values where one is needed"))
        }
        Values::Between(interval) => Err(Lack::Open(interval.reason)),
    }
}

fn fixed(value: Value<'_>) -> ExprValue<'_> {
    let values = Values::One(value);
    ExprValue {
        values,
        trend: Trend::Fixed,
        is_secret: false,
        doubt: None,
        literal: None,
        is_several: false,
    }
}

fn undefined(reason: &str) -> Lack {
    Lack::Undefined(reason.to_owned())
}

impl ExprValue<'_> {
    /// Adopts the trend and the secrecy of a value that becomes part of this one.
    fn see(&mut self, other: &Self) {
        self.trend = self.trend.together(other.trend);
        self.is_secret |= other.is_secret;
    }
}

impl<'a> Values<'a> {
    pub(super) fn bytes(&self) -> u64 {
        let bytes = |value: &Value<'_>| (size_of::<Value<'_>>() + value.len()) as u64;
        match self {
            Self::One(Value::List(items)) => items.iter().map(bytes).sum(),
            Self::One(value) => bytes(value),
            Self::Many(values) => values.iter().map(bytes).sum(),
            Self::Groups(groups) => groups.iter().map(|(_, value)| bytes(value)).sum(),
            Self::Between(interval) => bytes(&interval.low) + bytes(&interval.high),
        }
    }

    /// Maps each value. Of several values, those that cannot be mapped are dropped, unless none is left.
    fn each(self, change: impl Fn(&Value<'a>) -> Result<Value<'a>, Lack>) -> Result<Self, Lack> {
        match self {
            Self::One(value) => change(&value).map(Self::One),
            Self::Many(values) => {
                let (mut changed, mut lack) = (Vec::with_capacity(values.len()), None);
                for value in &values {
                    match change(value) {
                        Ok(value) => changed.push(value),
                        Err(why) => lack = Some(why),
                    }
                }
                match lack {
                    Some(lack) if changed.is_empty() => Err(lack),
                    _ => Ok(Self::Many(changed)),
                }
            }
            Self::Groups(groups) => groups
                .into_iter()
                .map(|(key, value)| Ok((key, change(&value)?)))
                .collect::<Result<_, _>>()
                .map(Self::Groups),
            Self::Between(interval) => Err(Lack::Open(interval.reason)),
        }
    }
}

impl Trend {
    /// Returns the trend of a sum.
    fn with(self, other: Self) -> Self {
        match (self, other) {
            (Self::Fixed, trend) | (trend, Self::Fixed) => trend,
            (a, b) if a == b => a,
            _ => Self::Any,
        }
    }

    /// Returns the trend of a value that depends on both in an unspecified way.
    fn together(self, other: Self) -> Self {
        match (self, other) {
            (Self::Fixed, Self::Fixed) => Self::Fixed,
            _ => Self::Any,
        }
    }

    fn reversed(self) -> Self {
        match self {
            Self::Rising => Self::Falling,
            Self::Falling => Self::Rising,
            Self::Fixed | Self::Any => self,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Lack, Trend, Values, constant};
    use crate::syntax::parse;

    fn rendered(source: &str) -> String {
        let parsed = parse::value(source);
        let Some(expr) = parsed.tree else { return format!("refused: {:?}", parsed.mistakes) };
        match constant(&expr) {
            Ok(valued) => {
                assert_eq!(valued.trend, Trend::Fixed, "{source}");
                match valued.values {
                    Values::One(value) => value.text().into_owned(),
                    _ => "several".to_owned(),
                }
            }
            Err(Lack::Undefined(reason)) => format!("! {reason}"),
            Err(Lack::Open(reason)) => format!("? {reason}"),
        }
    }

    #[test]
    fn expressions_have_values() {
        for (source, expected) in [
            ("1.50", "1.50"),
            ("007", "007"),
            ("10ms", "10000000"),
            ("null", "null"),
            ("[1, \"a\", 10ms, [true]]", "[1, \"a\", 10000000, [true]]"),
            ("2 + 3 * 4", "14"),
            ("(2 + 3) * 4", "20"),
            ("10 / 4", "2.5"),
            ("1s + 1ms", "1001000000"),
            ("10 - 20", "-10"),
            ("\"it's ${1 + 1} of 100%\"", "it's 2 of 100%"),
            ("'a${\"b\"}c'", "abc"),
            ("\"${[1, 2]}\"", "[1, 2]"),
            ("'{\"a\":{\"b\":1}}' | json_path '$.a'", "{\"b\":1}"),
            ("'{\"a\":[1,2]}' | json_path '$.a'", "[1,2]"),
            ("'{\"a\":[1,2]}' | json_path '$.a[*]'", "[1, 2]"),
            ("'{\"a\":[{\"b\":1}]}' | json_path '$.a' | json_path '$[0].b'", "1"),
            ("'{\"a\":null}' | json_path '$.a'", "null"),
            ("'{\"a\":1}' | json_path '$.z'", ""),
            ("'{\"a\":1}' | json_path '$.z' | type", "nil"),
            ("'{\"a\":1}' | json_path '$.z' | length", "0"),
            (
                "'{\"a\":123456789012345678901234567890}' | json_path '$.a'",
                "123456789012345678901234567890",
            ),
            ("5 | json_path '$'", "5"),
            (
                "'[1' | json_path '$'",
                "! the text is no JSON: a list goes on with `,` or ends with `]`",
            ),
            ("[1, 2] | json_path '$'", "! `json_path` takes one document, not several values"),
            ("'abc' | regex '[ab]'", "[\"a\", \"b\"]"),
            ("'abc' | regex 'b'", "b"),
            ("'abc' | regex 'z'", "[]"),
            ("'abc' | regex 'z' | length", "0"),
            ("'abc' | regex_group '(z)' | type", "array"),
            (
                "'abc' | regex '[ab]' | regex 'a'",
                "! a pattern is searched in one text, not in several values",
            ),
            ("'a=1 b=2' | regex_group '([a-z])=([0-9])'", "[\"a\", \"1\", \"b\", \"2\"]"),
            ("'a' | regex_group '(a)|(z)'", "[\"a\", \"\"]"),
            ("[10ms, 20ms] | get_index 'last'", "20000000"),
            ("\"abc\" | get_index 0", "abc"),
            ("[1, 2] | get_index 2", "! there is no such item: there are 2, counted from 0"),
            ("[] | get_index 'last'", "! there is no such item: there are 0, counted from 0"),
            ("[1, 2] | get_index \"${0.5}\"", "! an index is a whole number, or `last`"),
            ("\"é\" | length", "2"),
            ("[1, 2] | length", "2"),
            ("5 | length", "! only a text and a list have a length"),
            ("-5 | type", "number"),
            ("\"[1]\" | type", "array"),
            ("\"[]\" | type", "json"),
            ("\"abc[1]def\" | type", "string"),
            ("\"10ms\" | type", "duration"),
            ("\"null\" | type", "json"),
            ("1 / 0", "! division by zero"),
            ("\"${1 / 0}\"", "! division by zero"),
            ("\"${'a'}\" + 1", "! only numbers and durations can be calculated with"),
        ] {
            assert_eq!(rendered(source), expected, "{source}");
        }
    }

    #[test]
    fn trends_of_sums() {
        use Trend::{Any, Falling, Fixed, Rising};
        for (a, b, sum, difference) in [
            (Fixed, Fixed, Fixed, Fixed),
            (Rising, Fixed, Rising, Rising),
            (Fixed, Rising, Rising, Falling),
            (Rising, Rising, Rising, Any),
            (Rising, Falling, Any, Rising),
            (Any, Fixed, Any, Any),
        ] {
            assert_eq!(a.with(b), sum, "{a:?} + {b:?}");
            assert_eq!(a.with(b.reversed()), difference, "{a:?} - {b:?}");
        }
    }
}
