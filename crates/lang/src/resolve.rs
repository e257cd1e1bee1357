//! Substitutes all values that are known before a run: variables, functions of random and time, and texts made of them.
//!
//! Afterwards the tree contains none of them: each is replaced by a [`ResolvedValue`], which records whether it comes from a
//! secret. Deliberately absent: the parts of triggers. Their texts contain expressions, which [`value`] resolves.

use std::ops::Range;

use model::Place;

use crate::{
    eval::expression::{Values, constant},
    plan::{Claim, Expect, Output, Plan, ResolvedPlan, SourceNode, Spec},
    resolve_error::ResolveError,
    secrets::Secrets,
    syntax::{
        ast::{
            Aggregate, CompoundSelector, Expr, ExprKind, Hop, Part, Piece, Pseudo, ResolvedValue,
            Selector, Subject, Template,
        },
        number::Numbers,
    },
    value::{
        Lack,
        function::{Draw, Purpose, Seed},
    },
    vars::Vars,
};

/// A value that could not be substituted, with its range in the string.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FillError {
    /// A variable without a value.
    Missing { name: String, at: Range<usize> },
    /// An expression that has no value before there is a trace, or none at all.
    Valueless { reason: String, at: Range<usize> },
}

/// Resolves the parts of a plan that are judged: specs, claims and outputs.
pub fn resolve(plan: &Plan, vars: &Vars, seed: &Seed) -> Result<ResolvedPlan, ResolveError> {
    let mut draw = Draw::new(seed, Purpose::Judgement);
    let mut resolver = Resolver { vars, draw: &mut draw };
    let mut specs = Vec::with_capacity(plan.specs.len());
    for Spec { name, selector, assertions } in &plan.specs {
        let selector = resolver.written(selector, Resolver::selector)?;
        let assertions = assertions
            .iter()
            .map(|assertion| resolver.written(assertion, Resolver::expr))
            .collect::<Result<_, _>>()?;
        specs.push(Spec { name: name.clone(), selector, assertions });
    }
    let mut claims = Vec::with_capacity(plan.claims.len());
    for Claim { name, claim } in &plan.claims {
        let claim = resolver.written(claim, Resolver::expr)?;
        claims.push(Claim { name: name.clone(), claim });
    }
    let mut outputs = Vec::with_capacity(plan.outputs.len());
    for output in &plan.outputs {
        let at = |unfilled: FillError| unfilled.at(&output.place);
        let selector = resolver.selector(&output.selector).map_err(at)?;
        let value = resolver.expr(&output.value).map_err(at)?;
        outputs.push(Output { selector, value, ..output.clone() });
    }
    let mut expect = Vec::with_capacity(plan.expect.len());
    for expected in &plan.expect {
        expect.push(match expected {
            Expect::Service(service) => Expect::Service(service.clone()),
            Expect::Span(span) => Expect::Span(resolver.written(span, Resolver::selector)?),
        });
    }
    let mut resolved = ResolvedPlan {
        specs,
        claims,
        outputs,
        expect,
        skip_trace_collection: plan.skip_trace_collection,
        gates: plan.gates.clone(),
        secrets: Secrets::of(vars),
    };
    number(&mut resolved);
    Ok(resolved)
}

/// Numbers all nodes that are judged.
fn number(resolved: &mut ResolvedPlan) {
    let mut numbers = Numbers::default();
    for spec in &mut resolved.specs {
        numbers.selector(&mut spec.selector.meaning);
        spec.assertions.iter_mut().for_each(|it| numbers.expression(&mut it.meaning));
    }
    resolved.claims.iter_mut().for_each(|it| numbers.expression(&mut it.claim.meaning));
    for output in &mut resolved.outputs {
        numbers.selector(&mut output.selector);
        numbers.expression(&mut output.value);
    }
    for expect in &mut resolved.expect {
        if let Expect::Span(span) = expect {
            numbers.selector(&mut span.meaning);
        }
    }
}

/// Resolves an expression, so that it depends only on the trace and the response.
fn resolve_expr(expr: &Expr, vars: &Vars, draw: &mut Draw) -> Result<Expr, FillError> {
    Resolver { vars, draw }.expr(expr)
}

/// Returns the value of an expression in a text of a trigger, with its variables substituted.
pub(crate) fn value(expr: &Expr, vars: &Vars, draw: &mut Draw) -> Result<ResolvedValue, FillError> {
    let expr = resolve_expr(expr, vars, draw)?;
    known(&expr).map_err(|lack| {
        let (Lack::Undefined(reason) | Lack::Open(reason)) = lack;
        FillError::Valueless { reason, at: expr.at.0.clone() }
    })
}

impl FillError {
    /// Converts the error to one with the location in the document.
    pub(crate) fn at(self, place: &Place) -> ResolveError {
        let place = place.clone();
        match self {
            Self::Missing { name, .. } => ResolveError::Missing { name, place },
            Self::Valueless { reason, .. } => ResolveError::Valueless { reason, place },
        }
    }
}

struct Resolver<'r> {
    vars: &'r Vars,
    draw: &'r mut Draw,
}

impl Resolver<'_> {
    fn written<T>(
        &mut self,
        written: &SourceNode<T>,
        resolve: impl Fn(&mut Self, &T) -> Result<T, FillError>,
    ) -> Result<SourceNode<T>, ResolveError> {
        let meaning = resolve(self, &written.meaning);
        Ok(SourceNode {
            source: written.source.clone(),
            place: written.place.clone(),
            meaning: meaning.map_err(|unfilled| unfilled.at(&written.place))?,
        })
    }

    fn expr(&mut self, expr: &Expr) -> Result<Expr, FillError> {
        let kind = match &expr.kind {
            ExprKind::Variable { scope, name } => match self.vars.get(*scope, name) {
                Some(text) => {
                    let is_secret = self.vars.secrets.contains(name);
                    ExprKind::Known(ResolvedValue { text: text.to_owned().into(), is_secret })
                }
                None => {
                    let (name, at) = (name.clone(), expr.at.0.clone());
                    return Err(FillError::Missing { name, at });
                }
            },
            ExprKind::Template(template) => {
                folded(ExprKind::Template(self.template(template)?), expr)
            }
            ExprKind::Call { function, arguments } => {
                let mut arguments = self.exprs(arguments)?;
                let drawn =
                    ResolvedValue { text: self.draw.draw(*function).into(), is_secret: false };
                arguments.push(Expr { kind: ExprKind::Known(drawn), at: expr.at.clone() });
                folded(ExprKind::Call { function: *function, arguments }, expr)
            }
            kind => self.within(kind)?,
        };
        Ok(Expr { kind, at: expr.at.clone() })
    }

    /// Returns the same kind of expression, with its parts resolved.
    fn within(&mut self, kind: &ExprKind) -> Result<ExprKind, FillError> {
        let mut kind = kind.clone();
        match &mut kind {
            ExprKind::List(items) | ExprKind::And(items) | ExprKind::Or(items) => {
                *items = self.exprs(items)?;
            }
            ExprKind::Filter { input, arguments, .. } => {
                **input = self.expr(input)?;
                *arguments = self.exprs(arguments)?;
            }
            ExprKind::Minus(of) | ExprKind::Not(of) | ExprKind::Exists { value: of, .. } => {
                **of = self.expr(of)?;
            }
            ExprKind::Arithmetic { left, right, .. } | ExprKind::Compare { left, right, .. } => {
                **left = self.expr(left)?;
                **right = self.expr(right)?;
            }
            ExprKind::Between { value, low, high, .. } => {
                for part in [value, low, high] {
                    **part = self.expr(part)?;
                }
            }
            ExprKind::Within { condition, .. } => self.optional(condition)?,
            ExprKind::Quantified { subject, predicate } => {
                self.subject(subject)?;
                self.optional(predicate)?;
            }
            ExprKind::Relation { left, right, .. } => {
                self.subject(left)?;
                self.subject(right)?;
            }
            ExprKind::Aggregate(aggregate) => self.aggregate(aggregate)?,
            ExprKind::Gap { from, to } => {
                **from = self.selector(from)?;
                **to = self.selector(to)?;
            }
            ExprKind::Null
            | ExprKind::Bool(_)
            | ExprKind::Number { .. }
            | ExprKind::Duration(_)
            | ExprKind::Text(_)
            | ExprKind::Template(_)
            | ExprKind::Property(_)
            | ExprKind::Variable { .. }
            | ExprKind::Known(_)
            | ExprKind::Response(_)
            | ExprKind::Call { .. } => {}
        }
        Ok(kind)
    }

    fn exprs(&mut self, exprs: &[Expr]) -> Result<Vec<Expr>, FillError> {
        exprs.iter().map(|expr| self.expr(expr)).collect()
    }

    fn optional(&mut self, expr: &mut Option<Box<Expr>>) -> Result<(), FillError> {
        if let Some(expr) = expr {
            **expr = self.expr(expr)?;
        }
        Ok(())
    }

    fn aggregate(&mut self, aggregate: &mut Aggregate) -> Result<(), FillError> {
        if let Some(value) = &mut aggregate.value {
            *value = self.expr(value)?;
        }
        aggregate.of = self.selector(&aggregate.of)?;
        aggregate.by = self.exprs(&aggregate.by)?;
        Ok(())
    }

    fn subject(&mut self, subject: &mut Subject) -> Result<(), FillError> {
        subject.selector = self.selector(&subject.selector)?;
        Ok(())
    }

    fn template(&mut self, template: &Template) -> Result<Template, FillError> {
        let pieces = template.pieces.iter().map(|piece| match piece {
            Piece::Text(text) => Ok(Piece::Text(text.clone())),
            Piece::Value(expr) => self.expr(expr).map(Piece::Value),
        });
        Ok(Template { pieces: pieces.collect::<Result<_, _>>()? })
    }

    fn selector(&mut self, selector: &Selector) -> Result<Selector, FillError> {
        let mut parts = Vec::with_capacity(selector.parts.len());
        for part in &selector.parts {
            let mut hops = Vec::with_capacity(part.hops.len());
            for hop in &part.hops {
                hops.push(Hop { combinator: hop.combinator, step: self.step(&hop.step)? });
            }
            parts.push(Part { anchor: part.anchor, hops });
        }
        Ok(Selector { parts, at: selector.at.clone() })
    }

    fn step(&mut self, step: &CompoundSelector) -> Result<CompoundSelector, FillError> {
        let condition =
            step.condition.as_ref().map(|condition| self.expr(condition)).transpose()?;
        let mut pseudos = Vec::with_capacity(step.pseudos.len());
        for pseudo in &step.pseudos {
            pseudos.push(match pseudo {
                Pseudo::Has(selector) => Pseudo::Has(self.selector(selector)?),
                Pseudo::Not(selector) => Pseudo::Not(self.selector(selector)?),
                Pseudo::Root | Pseudo::Leaf | Pseudo::Orphan => pseudo.clone(),
            });
        }
        Ok(CompoundSelector { condition, pseudos, position: step.position, at: step.at.clone() })
    }
}

/// Returns the expression as a constant; the expression itself if it depends on the trace or has no value.
fn folded(kind: ExprKind, at: &Expr) -> ExprKind {
    let expr = Expr { kind, at: at.at.clone() };
    known(&expr).map(ExprKind::Known).unwrap_or(expr.kind)
}

fn known(expr: &Expr) -> Result<ResolvedValue, Lack> {
    let valued = constant(expr)?;
    match valued.values {
        Values::One(value) => {
            let text = value.text().into_owned().into();
            Ok(ResolvedValue { text, is_secret: valued.is_secret })
        }
        Values::Many(_) | Values::Groups(_) | Values::Between(_) => {
            Err(Lack::Undefined("there are several values where one is needed".to_owned()))
        }
    }
}

#[cfg(test)]
mod tests {
    use model::Timestamp;

    use super::{FillError, Vars, resolve_expr, value};
    use crate::{
        syntax::{
            ast::{ExprKind, Piece, ResolvedValue},
            parse,
        },
        value::function::{Draw, Purpose, Seed},
    };

    fn draw() -> Draw {
        let now = Timestamp::from_nanos(1_794_729_909_500_000_000);
        Draw::new(&Seed { now, random: [7; 32] }, Purpose::Request)
    }

    fn vars() -> Vars {
        let pairs = |pairs: &[(&str, &str)]| {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        Vars {
            variables: pairs(&[("HOST", "shop"), ("TOKEN", "s3cret"), ("BODY", r#"{"id":7}"#)]),
            environment: pairs(&[("HOST", "hidden"), ("HOME", "/root")]),
            secrets: ["TOKEN".to_owned()].into(),
        }
    }

    /// Substitutes the expressions in a text of a trigger.
    fn filled(source: &str) -> Result<ResolvedValue, FillError> {
        let template = parse::template(source).tree.expect(source);
        let (mut whole, mut is_secret) = (String::new(), false);
        let mut draw = draw();
        for piece in &template.pieces {
            match piece {
                Piece::Text(text) => whole.push_str(text),
                Piece::Value(expr) => {
                    let known = value(expr, &vars(), &mut draw)?;
                    whole.push_str(&known.text);
                    is_secret |= known.is_secret;
                }
            }
        }
        Ok(ResolvedValue { text: whole.into(), is_secret })
    }

    #[test]
    fn texts_are_filled_in() {
        for (source, expected, is_secret) in [
            ("http://${var:HOST}/100%", "http://shop/100%", false),
            ("${env:HOST} ${env:HOME}", "shop /root", false),
            ("Bearer ${var:TOKEN}", "Bearer s3cret", true),
            ("${var:TOKEN | length}", "6", true),
            ("${var:BODY | json_path '$.id'}", "7", false),
            ("${1 + 1}", "2", false),
            ("${date('YYYY')}", "2026", false),
            ("${dateTime()}", "2026-11-15T08:05:09Z", false),
            ("${randomInt(7, 7)}", "7", false),
            ("a}b ${ c", "a}b ${ c", false),
        ] {
            let known = ResolvedValue { text: expected.to_owned().into(), is_secret };
            assert_eq!(filled(source), Ok(known), "{source}");
        }
        let twice = filled("${uuid()}${uuid()}").expect("two ids").text;
        assert_ne!(twice[..36], twice[36..], "each occurrence draws its own");
        assert_eq!(twice, filled("${uuid()}${uuid()}").expect("two ids").text);
    }

    #[test]
    fn what_is_not_there_is_named_with_its_place() {
        let missing = |name: &str, at| FillError::Missing { name: name.to_owned(), at };
        for (source, expected) in [
            ("x ${var:NOPE}", missing("NOPE", 4..12)),
            ("${var:HOME}", missing("HOME", 2..10)),
            ("${env:nope | length}", missing("nope", 2..10)),
            ("${1 / 0}", FillError::Valueless { reason: "division by zero".to_owned(), at: 2..7 }),
        ] {
            assert_eq!(filled(source), Err(expected), "{source}");
        }
    }

    #[test]
    fn a_statement_keeps_what_only_the_trace_tells() {
        let resolved = |source: &str| {
            let assertion = parse::assertion(source).tree.expect(source);
            let resolved = resolve_expr(&assertion, &vars(), &mut draw()).expect(source);
            let ExprKind::Compare { right, .. } = resolved.kind else { return ExprKind::Null };
            right.kind
        };
        let known = |text: &str, is_secret| {
            ExprKind::Known(ResolvedValue { text: text.to_owned().into(), is_secret })
        };
        assert_eq!(resolved("attr:x = var:HOST"), known("shop", false));
        assert_eq!(resolved("attr:x = \"${var:TOKEN}!\""), known("s3cret!", true));
        assert!(matches!(resolved("attr:x = \"${attr:y}${var:HOST}\""), ExprKind::Template(_)));
        assert!(
            matches!(resolved("attr:x = randomInt(1, attr:y)"), ExprKind::Call { arguments, .. } if arguments.len() == 3)
        );
        assert!(matches!(resolved("attr:x = \"${1 / 0}\""), ExprKind::Template(_)));
        let nested = "count(span[x = var:HOST]:has(span[y = \"1\"])) = 1";
        let claim = parse::claim(nested).tree.expect(nested);
        let resolved = resolve_expr(&claim, &vars(), &mut draw()).expect(nested);
        assert!(format!("{resolved:?}").contains("Known"), "selectors inside are resolved too");
    }

    #[test]
    fn values_are_not_shown() {
        let shown = format!("{:?}", vars());
        assert!(shown.contains("TOKEN") && !shown.contains("s3cret") && !shown.contains("shop"));
    }
}
