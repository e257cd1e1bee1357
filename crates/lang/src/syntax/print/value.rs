//! Prints values: literals, names, filters, functions and aggregates.

use super::{Level, PrintContext, Printer, printed};
use crate::{
    syntax::{
        ast::{
            Aggregate, Arithmetic, Expr, ExprKind, Inner, Piece, Property, ResponsePart, Spelling,
            Summary, Template, VariableScope,
        },
        lex::{Dialect, is_plain_name, is_scoped_name},
        name::{self, COUNT, FILTERS, FUNCTIONS, RESPONSE, SUMMARIES},
    },
    value::{Number, show_duration},
};

impl Printer {
    pub(super) fn value(&mut self, expr: &Expr, scene: PrintContext) {
        match &expr.kind {
            // Without parentheses they would be names on the left side of a selector's comparison.
            ExprKind::Bool(_) | ExprKind::Null if scene.names_are_bare() => {
                self.put("(");
                self.value(expr, scene.right());
                self.put(")");
            }
            ExprKind::Bool(true) => self.put("true"),
            ExprKind::Bool(false) => self.put("false"),
            ExprKind::Number { spelling, .. } => self.put(spelling),
            ExprKind::Duration(nanos) => self.put(&duration(*nanos)),
            ExprKind::Text(text) => self.text(text, scene),
            ExprKind::Template(template) => self.template(template, scene),
            ExprKind::List(items) => {
                self.put("[");
                self.values(items, scene);
                self.put("]");
            }
            ExprKind::Property(property) => self.property(property, scene),
            ExprKind::Variable { scope, name } => match scope {
                VariableScope::Var => self.scoped("var:", name, scene),
                VariableScope::Env => self.scoped("env:", name, scene),
            },
            ExprKind::Known(known) if known.is_secret => self.put("***"),
            ExprKind::Known(known) => self.text(&known.text, scene),
            ExprKind::Response(part) => self.response(part, scene),
            ExprKind::Call { function, arguments } => {
                let known = FUNCTIONS.iter().find(|(_, known, ..)| known == function);
                self.put(known.map_or("", |(word, ..)| word));
                self.put("(");
                self.values(arguments, scene);
                self.put(")");
            }
            ExprKind::Filter { input, filter, arguments } => {
                self.expr(input, Level::Filter, scene);
                let known = FILTERS.iter().find(|(_, known, _)| known == filter);
                self.put(" | ");
                self.put(known.map_or("", |(word, ..)| word));
                for argument in arguments {
                    self.put(" ");
                    self.argument(argument, scene.right());
                }
            }
            ExprKind::Minus(value) => {
                self.put("-");
                match value.kind {
                    // Without the parentheses the sign would be part of the number.
                    ExprKind::Number { .. } | ExprKind::Duration(_) => {
                        self.put("(");
                        self.value(value, scene);
                        self.put(")");
                    }
                    _ => self.expr(value, Level::Primary, scene),
                }
            }
            ExprKind::Arithmetic { left, operator, right } => {
                self.arithmetic((left, right), *operator, scene);
            }
            ExprKind::Aggregate(aggregate) => self.aggregate(aggregate, scene),
            ExprKind::Gap { from, to } => {
                self.put("gap(");
                self.selector(from, scene);
                self.put(", ");
                self.selector(to, scene);
                self.put(")");
            }
            _ => self.put("null"),
        }
    }

    fn arithmetic(
        &mut self,
        (left, right): (&Expr, &Expr),
        operator: Arithmetic,
        scene: PrintContext,
    ) {
        let (sign, left_level, right_level) = match operator {
            // A product inside a sum keeps its parentheses: Tracetest computes from left to right.
            Arithmetic::Add => (" + ", Level::Sum, Level::Unary),
            Arithmetic::Subtract => (" - ", Level::Sum, Level::Unary),
            Arithmetic::Multiply => (" * ", Level::Product, Level::Unary),
            Arithmetic::Divide => (" / ", Level::Product, Level::Unary),
        };
        self.expr(left, left_level, scene);
        self.put(sign);
        self.expr(right, right_level, scene);
    }

    fn values(&mut self, values: &[Expr], scene: PrintContext) {
        self.separated(values, ", ", |out, value| out.expr(value, Level::Filter, scene.right()));
    }

    /// Prints an argument of a filter. The parser would not read a bare word as an argument.
    fn argument(&mut self, argument: &Expr, scene: PrintContext) {
        let text = printed(|out| out.expr(argument, Level::Primary, scene));
        let is_word = text.starts_with(|c: char| c.is_alphabetic() || c == '_');
        let is_plain = match argument.kind {
            ExprKind::Property(_) => text.starts_with("attr:"),
            ExprKind::Variable { .. } | ExprKind::Call { .. } => true,
            ExprKind::Bool(_) | ExprKind::Null => true,
            _ => !is_word,
        };
        self.put(&if is_plain { text } else { format!("({text})") });
    }

    fn aggregate(&mut self, aggregate: &Aggregate, scene: PrintContext) {
        let word = match aggregate.function {
            Summary::Percentile(Number::Int(percent)) => format!("p{percent}("),
            Summary::Percentile(Number::Double(percent)) => format!("percentile({percent}, "),
            function => format!("{}(", name::word_of(SUMMARIES, &function).unwrap_or_default()),
        };
        self.put(&word);
        if let Some(value) = &aggregate.value {
            self.expr(value, Level::Filter, scene.left());
            self.put(" of ");
        }
        self.selector(&aggregate.of, scene);
        if !aggregate.by.is_empty() {
            self.put(" by ");
            self.separated(&aggregate.by, ", ", |out, key| {
                out.expr(key, Level::Filter, scene.left());
            });
        }
        self.put(")");
    }

    fn property(&mut self, property: &Property, scene: PrintContext) {
        if scene.dialect == Dialect::Expression {
            return self.expression_property(property, scene);
        }
        let name = match (property, scene.inner) {
            (Property::Event(name), Some(Inner::Event)) => name.clone(),
            (Property::Link(name), Some(Inner::Link)) => name.clone(),
            _ => attribute_name(property),
        };
        match scene.is_left {
            false => self.scoped("attr:", &name, scene),
            true if is_plain_name(&name) && !name::is_reserved(&name) => self.put(&name),
            true => self.put(&selector_text(&name)),
        }
    }

    fn expression_property(&mut self, property: &Property, scene: PrintContext) {
        let (scope, name) = match property {
            Property::Intrinsic(_, Spelling::Word) => return self.put(&attribute_name(property)),
            Property::Resource(name) => ("resource", name),
            Property::Scope(name) => ("scope", name),
            Property::Event(name) => ("event", name),
            Property::Link(name) => ("link", name),
            _ => return self.scoped("attr:", &attribute_name(property), scene),
        };
        self.put(scope);
        self.put(".");
        self.name(name, scene);
    }

    fn response(&mut self, part: &ResponsePart, scene: PrintContext) {
        self.put("response.");
        match part {
            ResponsePart::Header(name) => {
                self.put("header.");
                self.name(name, scene);
            }
            _ => self.put(name::word_of(RESPONSE, part).unwrap_or_default()),
        }
    }

    /// Prints a name after a dot.
    fn name(&mut self, name: &str, scene: PrintContext) {
        if is_plain_name(name) { self.put(name) } else { self.text(name, scene) }
    }

    fn scoped(&mut self, scope: &str, name: &str, scene: PrintContext) {
        self.put(scope);
        if is_scoped_name(name) { self.put(name) } else { self.text(name, scene) }
    }

    fn text(&mut self, text: &str, scene: PrintContext) {
        match scene.dialect {
            Dialect::Selector => self.put(&selector_text(text)),
            Dialect::Expression => {
                let quote = quote_for(text, scene.quote);
                self.put(&expression_text(text, quote));
            }
        }
    }

    fn template(&mut self, template: &Template, scene: PrintContext) {
        let texts: String = template
            .pieces
            .iter()
            .map(|piece| match piece {
                Piece::Text(text) => text.as_str(),
                Piece::Value(_) => "",
            })
            .collect();
        let quote = quote_for(&texts, scene.quote);
        let inside = PrintContext {
            quote: if quote == '"' { '\'' } else { '"' },
            ..PrintContext::EXPRESSION
        };
        let text: String = template
            .pieces
            .iter()
            .map(|piece| match piece {
                Piece::Text(text) => text.clone(),
                Piece::Value(value) => {
                    format!("${{{}}}", printed(|out| out.expr(value, Level::Filter, inside)))
                }
            })
            .collect();
        self.put(&expression_text(&text, quote));
    }
}

/// Returns the name of a property after `attr:`.
fn attribute_name(property: &Property) -> String {
    match property {
        Property::Attribute { name, .. } => name.clone(),
        Property::Intrinsic(intrinsic, spelling) => {
            name::intrinsic_name(*intrinsic, *spelling).to_owned()
        }
        Property::Resource(name) => format!("resource.{name}"),
        Property::Scope(name) => format!("scope.{name}"),
        Property::Event(name) => format!("event.{name}"),
        Property::Link(name) => format!("link.{name}"),
        Property::Response(part) => name::response_name(part).unwrap_or_default().to_owned(),
        Property::Count => COUNT.to_owned(),
    }
}

/// Formats a duration in the largest unit of which it is a multiple, or as evidence shows it.
fn duration(nanos: i128) -> String {
    const MINUTE: i128 = 60_000_000_000;
    match nanos {
        0 => "0s".to_owned(),
        _ if nanos % (60 * MINUTE) == 0 => format!("{}h", nanos / (60 * MINUTE)),
        _ if nanos % MINUTE == 0 => format!("{}m", nanos / MINUTE),
        _ => show_duration(nanos),
    }
}

/// Quotes a text of a selector.
fn selector_text(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Returns the quote that needs no escapes in a text of an expression, if there is one.
fn quote_for(text: &str, preferred: char) -> char {
    let other = if preferred == '"' { '\'' } else { '"' };
    if text.contains(preferred) && !text.contains(other) { other } else { preferred }
}

/// Quotes a text of an expression.
fn expression_text(text: &str, quote: char) -> String {
    format!("{quote}{}{quote}", text.replace(quote, &format!("\\{quote}")))
}
