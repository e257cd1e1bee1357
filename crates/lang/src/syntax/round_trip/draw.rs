//! Generates random trees that have a string form.

use crate::syntax::{
    ast::{
        Aggregate, Anchor, Arithmetic, At, Combinator, Comparator, CompoundSelector, Expr,
        ExprKind, Filter, Hop, Inner, Intrinsic, Part, Piece, Position, Property, Pseudo,
        Quantifier, ResponsePart, Selector, Subject, Summary, Template, VariableScope,
    },
    name::{self, FILTERS, FUNCTIONS, INTRINSICS, RELATIONS, SUMMARIES},
};
use crate::value::{Number, read_loose};

/// Names of attributes, common and uncommon.
const NAMES: &str = "a http.method x-y.z name kind status duration not and in true self span event not-in count 1st \
    a.1 größe quo\"te it's back\\slash resource.k event.x span.events tracetest.span.name \
    tracetest.span.duration tracetest.span.kind tracetest.response.body a..b";

/// Texts; some look like a `${…}` but are not.
const TEXTS: &[&str] = &[
    "GET",
    "",
    "it's",
    "say \"x\"",
    "'\"",
    "a\\b",
    "\\'x",
    "\\\"x",
    "a\nb",
    "${",
    "}",
    "é",
    "[1]",
];

const PATTERNS: &[&str] = &["a+", "[0-9]{3}", "^(x|y)'$"];

fn names() -> Vec<&'static str> {
    NAMES.split_whitespace().chain(["with space", "tab\t", ""]).collect()
}

/// A sequence of random decisions. When it is empty, every choice is the smallest one.
pub(super) struct Tape(pub(super) Vec<u16>);

impl Tape {
    fn pick(&mut self, count: usize) -> usize {
        usize::from(self.0.pop().unwrap_or(0)) % count
    }

    fn one<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.pick(from.len())]
    }

    fn several<T>(&mut self, least: usize, mut draw: impl FnMut(&mut Self) -> T) -> Vec<T> {
        (0..least + self.pick(3)).map(|_| draw(self)).collect()
    }
}

/// The context for which a tree is generated.
#[derive(Clone, Copy)]
pub(super) struct DrawContext {
    is_selector: bool,
    inner: Option<Inner>,
    is_left: bool,
    has_span: bool,
    depth: usize,
}

impl DrawContext {
    pub(super) const ASSERTION: Self =
        Self { is_selector: false, inner: None, is_left: false, has_span: true, depth: 4 };
    pub(super) const CLAIM: Self = Self { has_span: false, ..Self::ASSERTION };
    pub(super) const SELECTOR: Self = Self { is_selector: true, ..Self::CLAIM };

    fn deeper(self) -> Self {
        Self { depth: self.depth.saturating_sub(1), ..self }
    }

    fn left(self) -> Self {
        Self { is_left: true, ..self }
    }

    fn right(self) -> Self {
        Self { is_left: false, ..self }
    }

    fn of_span(self) -> Self {
        Self { has_span: true, is_left: true, ..self.deeper() }
    }

    fn condition(self, inner: Option<Inner>) -> Self {
        Self { is_selector: true, inner, is_left: true, has_span: true, ..self.deeper() }
    }
}

fn expr(kind: ExprKind) -> Expr {
    Expr::new(kind, 0..0)
}

fn literal(spelling: &str) -> Expr {
    let value = read_loose(spelling).expect("is a number");
    expr(ExprKind::Number { value, spelling: spelling.to_owned() })
}

fn boxed(kind: Expr) -> Box<Expr> {
    Box::new(kind)
}

pub(super) fn selector(tape: &mut Tape, scene: DrawContext) -> Selector {
    let parts = tape.several(1, |tape| part(tape, scene, Anchor::Trace));
    Selector { parts, at: At::default() }
}

fn part(tape: &mut Tape, scene: DrawContext, anchor: Anchor) -> Part {
    let is_self = anchor == Anchor::This || scene.has_span && tape.pick(3) == 2;
    let anchor = if is_self { Anchor::This } else { Anchor::Trace };
    let mut hops = tape.several(usize::from(!is_self), |tape| hop(tape, scene));
    if let (Anchor::Trace, Some(first)) = (anchor, hops.first_mut()) {
        first.combinator = Combinator::Descendant;
    }
    Part { anchor, hops }
}

fn hop(tape: &mut Tape, scene: DrawContext) -> Hop {
    let combinator = *tape.one(&[
        Combinator::Descendant,
        Combinator::Child,
        Combinator::Adjacent,
        Combinator::Sibling,
        Combinator::Parent,
        Combinator::Ancestor,
        Combinator::Linked,
    ]);
    let condition = (tape.pick(4) > 0).then(|| statement(tape, scene.condition(None)));
    let mut pseudos = Vec::new();
    if scene.depth > 0 && tape.pick(3) == 2 {
        pseudos.push(match tape.pick(5) {
            0 => Pseudo::Root,
            1 => Pseudo::Leaf,
            2 => Pseudo::Orphan,
            3 => Pseudo::Not(selector(tape, scene.deeper())),
            _ => Pseudo::Has(Selector {
                parts: tape.several(1, |tape| part(tape, scene.deeper(), Anchor::This)),
                at: At::default(),
            }),
        });
    }
    let positions = [None, Some(Position::First), Some(Position::Last), Some(Position::Nth(2))];
    let position = *tape.one(&positions);
    Hop { combinator, step: CompoundSelector { condition, pseudos, position, at: At::default() } }
}

pub(super) fn statement(tape: &mut Tape, scene: DrawContext) -> Expr {
    let scene = DrawContext { is_left: true, ..scene };
    if scene.depth == 0 {
        return comparison(tape, scene);
    }
    let deeper = scene.deeper();
    expr(match tape.pick(9) {
        0..4 => return comparison(tape, scene),
        4 => ExprKind::Not(boxed(statement(tape, deeper))),
        5 => {
            let items = tape.several(2, |tape| statement(tape, deeper));
            let flat = items.into_iter().flat_map(|item| match item.kind {
                ExprKind::And(inner) => inner,
                kind => vec![expr(kind)],
            });
            ExprKind::And(flat.collect())
        }
        6 => {
            let items = tape.several(2, |tape| statement(tape, deeper));
            let flat = items.into_iter().flat_map(|item| match item.kind {
                ExprKind::Or(inner) => inner,
                kind => vec![expr(kind)],
            });
            ExprKind::Or(flat.collect())
        }
        7 if scene.inner.is_none() => return sentence(tape, scene),
        8 if scene.inner.is_none() && scene.has_span => {
            let inner = *tape.one(&[Inner::Event, Inner::Link]);
            let condition =
                (tape.pick(3) > 0).then(|| statement(tape, scene.condition(Some(inner))));
            ExprKind::Within { inner, condition: condition.map(Box::new) }
        }
        _ => return comparison(tape, scene),
    })
}

fn sentence(tape: &mut Tape, scene: DrawContext) -> Expr {
    let quantifiers = [Quantifier::The, Quantifier::Every, Quantifier::Some, Quantifier::No];
    let deeper = scene.deeper();
    let subject = |tape: &mut Tape, quantifiers: &[Quantifier]| Subject {
        quantifier: *tape.one(quantifiers),
        selector: selector(tape, deeper),
    };
    expr(match tape.pick(3) {
        0 => ExprKind::Quantified { subject: subject(tape, &quantifiers[2..]), predicate: None },
        1 => {
            let subject = subject(tape, &quantifiers);
            let predicate = Some(boxed(statement(tape, scene.of_span())));
            ExprKind::Quantified { subject, predicate }
        }
        _ => ExprKind::Relation {
            left: subject(tape, &quantifiers),
            relation: tape.one(RELATIONS).1,
            right: subject(tape, &quantifiers),
        },
    })
}

fn comparison(tape: &mut Tape, scene: DrawContext) -> Expr {
    let (left, right) = (scene.left(), scene.right());
    let is_negated = tape.pick(2) == 1;
    expr(match tape.pick(7) {
        0 => ExprKind::Exists { value: boxed(value(tape, left)), is_negated },
        1 => ExprKind::Between {
            value: boxed(number(tape, left)),
            is_negated,
            low: boxed(number(tape, right)),
            high: boxed(number(tape, right)),
        },
        2 => ExprKind::Compare {
            left: boxed(number(tape, left)),
            comparator: *tape.one(&[
                Comparator::Less,
                Comparator::AtMost,
                Comparator::Greater,
                Comparator::AtLeast,
            ]),
            is_negated: false,
            right: boxed(number(tape, right)),
        },
        3 => ExprKind::Compare {
            left: boxed(value(tape, left)),
            comparator: Comparator::Matches,
            is_negated,
            right: boxed(expr(ExprKind::Text((*tape.one(PATTERNS)).to_owned().into()))),
        },
        4 => compared(value(tape, left), Comparator::In, is_negated, list(tape, scene)),
        _ => {
            let left = value(tape, left);
            let comparator = *tape.one(&[
                Comparator::Equal,
                Comparator::Contains,
                Comparator::StartsWith,
                Comparator::EndsWith,
            ]);
            compared(left, comparator, is_negated, value(tape, right))
        }
    })
}

/// Builds a comparison. A property with a fixed set of words must not be compared with other words, so it uses `starts-with`.
fn compared(left: Expr, comparator: Comparator, is_negated: bool, right: Expr) -> ExprKind {
    let is_word = |side: &Expr| {
        let side = match &side.kind {
            ExprKind::Aggregate(aggregate) => aggregate.value.as_ref().unwrap_or(side),
            _ => side,
        };
        let ExprKind::Property(property) = &side.kind else { return false };
        let property = match property {
            Property::Attribute { otherwise: Some(otherwise), .. } => otherwise,
            property => property,
        };
        let words = [Intrinsic::Kind, Intrinsic::Status, Intrinsic::StatusCode, Intrinsic::Type];
        matches!(property, Property::Intrinsic(intrinsic, _) if words.contains(intrinsic))
    };
    let is_searched = is_word(&left) || is_word(&right);
    let comparator = if is_searched { Comparator::StartsWith } else { comparator };
    ExprKind::Compare { left: boxed(left), comparator, is_negated, right: boxed(right) }
}

pub(super) fn value(tape: &mut Tape, scene: DrawContext) -> Expr {
    let deeper = scene.deeper();
    expr(match tape.pick(if scene.depth == 0 { 5 } else { 8 }) {
        0 => return number(tape, scene),
        1 if !(scene.is_selector && scene.is_left) => text(tape, scene),
        2 => ExprKind::Bool(tape.pick(2) == 1),
        3 => ExprKind::Null,
        4 => ExprKind::Variable {
            scope: *tape.one(&[VariableScope::Var, VariableScope::Env]),
            name: (*tape.one(&names())).to_owned(),
        },
        5 => return list(tape, deeper),
        6 => {
            let (_, filter, count) = *tape.one(FILTERS);
            let argument = match filter {
                Filter::GetIndex => expr(ExprKind::Text("last".to_owned().into())),
                Filter::JsonPath => expr(ExprKind::Text("$['a}'].b".to_owned().into())),
                _ => expr(ExprKind::Text((*tape.one(PATTERNS)).to_owned().into())),
            };
            ExprKind::Filter {
                input: boxed(value(tape, deeper)),
                filter,
                arguments: vec![argument; count],
            }
        }
        7 => {
            let (_, function, count, _) = *tape.one(FUNCTIONS);
            let arguments = vec![literal("5"); count];
            ExprKind::Call { function, arguments }
        }
        _ => return number(tape, scene),
    })
}

fn list(tape: &mut Tape, scene: DrawContext) -> Expr {
    expr(ExprKind::List(tape.several(0, |tape| value(tape, scene.right().deeper()))))
}

fn text(tape: &mut Tape, scene: DrawContext) -> ExprKind {
    let plain = |tape: &mut Tape| (*tape.one(TEXTS)).to_owned();
    if scene.is_selector || scene.depth == 0 || tape.pick(2) == 0 {
        return ExprKind::Text(plain(tape).into());
    }
    let mut pieces = vec![Piece::Value(value(tape, scene.deeper()))];
    for _ in 0..tape.pick(3) {
        if let (Some(Piece::Value(_)), text @ ("é" | "it's" | "a\\b" | "say \"x\"")) =
            (pieces.last(), plain(tape).as_str())
        {
            pieces.push(Piece::Text(text.to_owned()));
        }
        pieces.push(Piece::Value(value(tape, scene.deeper())));
    }
    ExprKind::Template(Template { pieces })
}

/// Generates a value that is valid in arithmetic.
fn number(tape: &mut Tape, scene: DrawContext) -> Expr {
    let deeper = scene.deeper();
    expr(match tape.pick(if scene.depth == 0 { 4 } else { 8 }) {
        0 => {
            let spelling = *tape.one(&["5", "-3", "007", "1.50", "0"]);
            return literal(spelling);
        }
        1 => ExprKind::Duration(*tape.one(&[0, -1, 1_500_000, 61_000_000_000])),
        2 | 3 => return property(tape, scene),
        4 => ExprKind::Minus(boxed(number(tape, deeper))),
        5 => ExprKind::Arithmetic {
            left: boxed(number(tape, deeper)),
            operator: *tape.one(&[
                Arithmetic::Add,
                Arithmetic::Subtract,
                Arithmetic::Multiply,
                Arithmetic::Divide,
            ]),
            right: boxed(number(tape, deeper)),
        },
        _ if scene.inner.is_some() => return property(tape, scene),
        6 => ExprKind::Gap {
            from: Box::new(Selector {
                parts: vec![part(tape, deeper, Anchor::Trace)],
                at: At::default(),
            }),
            to: Box::new(Selector {
                parts: vec![part(tape, deeper, Anchor::Trace)],
                at: At::default(),
            }),
        },
        _ => {
            let percentiles = [Number::Int(95), Number::Double(99.9)].map(Summary::Percentile);
            let known = SUMMARIES.iter().map(|(_, summary)| *summary).chain(percentiles);
            let function = *tape.one(&known.collect::<Vec<_>>());
            let value = (function != Summary::Count).then(|| number(tape, scene.of_span()));
            let of = selector(tape, deeper);
            let by = tape.several(0, |tape| number(tape, scene.of_span()));
            ExprKind::Aggregate(Box::new(Aggregate { function, value, of, by }))
        }
    })
}

fn property(tape: &mut Tape, scene: DrawContext) -> Expr {
    if !scene.has_span {
        let header = ResponsePart::Header((*tape.one(&["etag", "x y"])).to_owned());
        return expr(ExprKind::Response(tape.one(&[ResponsePart::Status, header]).clone()));
    }
    let name = *tape.one(&names());
    let property = match scene.inner {
        Some(inner) => name::of_inner(inner, name),
        None if scene.is_selector => name::in_selector(name, 0..0).expect("is known"),
        None => match tape.pick(3) {
            0 => name::in_expression(name, 0..0).expect("is known"),
            1 => name::intrinsic(tape.one(INTRINSICS).0).expect("is known"),
            _ => name::scoped(&format!("{}.{name}", tape.one(name::SCOPES).0)).expect("is known"),
        },
    };
    expr(ExprKind::Property(property))
}
