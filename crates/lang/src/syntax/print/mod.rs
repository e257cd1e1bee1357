//! Prints syntax trees as text in canonical form: parsing the text gives the same tree.
//!
//! In `span[…]` symbols have no spaces around them (`name="GET"`) and joined conditions are separated by a space; in an
//! expression every operator has spaces around it. Parentheses are printed only if the tree would be another one without them.
//!
//! Deliberately absent: line breaks, and comments, which the tree does not contain. A string of a document is one line here; the
//! scalar preserves its line breaks.

mod value;

use super::{
    ast::{
        Anchor, Arithmetic, Combinator, Comparator, CompoundSelector, Expr, ExprKind, Inner, Part,
        Position, Pseudo, Quantifier, Selector, Subject,
    },
    lex::Dialect,
    name::{self, COMPARATORS, RELATIONS},
};

/// Prints a selector in canonical form.
pub(crate) fn selector(selector: &Selector) -> String {
    let scene = PrintContext { dialect: Dialect::Selector, ..PrintContext::EXPRESSION };
    printed(|out| out.selector(selector, scene))
}

/// Prints an assertion, a claim or a value in canonical form.
pub(crate) fn expression(expression: &Expr) -> String {
    expression_in(expression, '"')
}

/// Does the same, with this quote for texts that do not contain it. Texts inside `span[…]` always use `"`.
pub(crate) fn expression_in(expression: &Expr, quote: char) -> String {
    printed(|out| {
        out.expr(expression, Level::Or, PrintContext { quote, ..PrintContext::EXPRESSION });
    })
}

fn printed(write: impl FnOnce(&mut Printer)) -> String {
    let mut printer = Printer { out: String::new() };
    write(&mut printer);
    printer.out
}

/// The precedence level of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Or,
    And,
    Not,
    Comparison,
    Filter,
    Sum,
    Product,
    Unary,
    Primary,
}

impl Level {
    fn of(expr: &Expr) -> Self {
        match &expr.kind {
            ExprKind::Or(_) => Self::Or,
            ExprKind::And(_) => Self::And,
            ExprKind::Not(_) => Self::Not,
            _ if expr.is_statement() => Self::Comparison,
            ExprKind::Filter { .. } => Self::Filter,
            ExprKind::Arithmetic { operator: Arithmetic::Add | Arithmetic::Subtract, .. } => {
                Self::Sum
            }
            ExprKind::Arithmetic { .. } => Self::Product,
            ExprKind::Minus(_) => Self::Unary,
            _ => Self::Primary,
        }
    }
}

/// The context of an expression, as far as it changes its spelling.
#[derive(Clone, Copy, Debug)]
struct PrintContext {
    dialect: Dialect,
    inner: Option<Inner>,
    /// Whether the names of a selector are bare here.
    is_left: bool,
    /// Whether a token follows that the parser would read as part of a predicate.
    is_followed: bool,
    /// The quote for texts of an expression that do not contain it.
    quote: char,
}

impl PrintContext {
    const EXPRESSION: Self = Self {
        dialect: Dialect::Expression,
        inner: None,
        is_left: false,
        is_followed: false,
        quote: '"',
    };

    fn condition(self, inner: Option<Inner>) -> Self {
        let dialect = Dialect::Selector;
        Self { dialect, inner, is_left: true, is_followed: false, ..self }
    }

    fn left(self) -> Self {
        Self { is_left: true, ..self }
    }

    fn right(self) -> Self {
        Self { is_left: false, ..self }
    }

    fn names_are_bare(self) -> bool {
        self.dialect == Dialect::Selector && self.is_left
    }
}

struct Printer {
    out: String,
}

impl Printer {
    fn put(&mut self, text: &str) {
        self.out.push_str(text);
    }

    fn separated<T>(&mut self, items: &[T], separator: &str, mut write: impl FnMut(&mut Self, &T)) {
        for (at, item) in items.iter().enumerate() {
            if at > 0 {
                self.put(separator);
            }
            write(self, item);
        }
    }

    fn selector(&mut self, selector: &Selector, scene: PrintContext) {
        self.separated(&selector.parts, ", ", |out, part| out.part(part, scene));
    }

    fn part(&mut self, part: &Part, scene: PrintContext) {
        if part.anchor == Anchor::This {
            self.put("self");
        }
        for (at, hop) in part.hops.iter().enumerate() {
            if at > 0 || part.anchor == Anchor::This {
                self.put(combinator(hop.combinator));
            }
            self.step(&hop.step, scene);
        }
    }

    /// Prints a part of `:has(…)`, without a leading `self`.
    fn relative(&mut self, part: &Part, scene: PrintContext) {
        let start = self.out.len();
        self.part(part, scene);
        if !part.hops.is_empty() && self.out[start..].starts_with("self ") {
            self.out.replace_range(start..start + "self ".len(), "");
        }
    }

    fn step(&mut self, step: &CompoundSelector, scene: PrintContext) {
        self.put("span[");
        if let Some(condition) = &step.condition {
            self.condition(condition, scene.condition(None));
        }
        self.put("]");
        for pseudo in &step.pseudos {
            match pseudo {
                Pseudo::Root => self.put(":root"),
                Pseudo::Leaf => self.put(":leaf"),
                Pseudo::Orphan => self.put(":orphan"),
                Pseudo::Has(selector) => {
                    self.put(":has(");
                    self.separated(&selector.parts, ", ", |out, part| out.relative(part, scene));
                    self.put(")");
                }
                Pseudo::Not(selector) => {
                    self.put(":not(");
                    self.selector(selector, scene);
                    self.put(")");
                }
            }
        }
        match step.position {
            None => {}
            Some(Position::First) => self.put(":first"),
            Some(Position::Last) => self.put(":last"),
            Some(Position::Nth(count)) => self.put(&format!(":nth_child({count})")),
        }
    }

    /// Prints the content of brackets. Joined conditions are separated by a space if that is unambiguous.
    fn condition(&mut self, condition: &Expr, scene: PrintContext) {
        let ExprKind::And(items) = &condition.kind else {
            return self.expr(condition, Level::Or, scene);
        };
        let beside: Vec<String> =
            items.iter().map(|item| printed(|out| out.expr(item, Level::Not, scene))).collect();
        let runs_together = items.iter().any(|item| !stands_alone(item))
            || beside.iter().any(|item| item.starts_with('-'));
        match runs_together {
            true => self.expr(condition, Level::Or, scene),
            false => self.put(&beside.join(" ")),
        }
    }

    /// Prints an expression in a position that requires at least `level`.
    fn expr(&mut self, expr: &Expr, level: Level, scene: PrintContext) {
        let is_open = matches!(expr.kind, ExprKind::Quantified { predicate: Some(_), .. });
        if Level::of(expr) >= level && !(is_open && scene.is_followed) {
            return self.bare(expr, scene);
        }
        self.put("(");
        self.bare(expr, PrintContext { is_followed: false, ..scene });
        self.put(")");
    }

    fn bare(&mut self, expr: &Expr, scene: PrintContext) {
        match &expr.kind {
            ExprKind::Or(items) => self.joined(items, " or ", Level::And, scene),
            ExprKind::And(items) => self.joined(items, " and ", Level::Not, scene),
            ExprKind::Not(negated) => {
                self.put("not ");
                self.expr(negated, Level::Not, scene);
            }
            ExprKind::Compare { left, comparator, is_negated, right } => {
                self.compare((left, right), *comparator, *is_negated, scene);
            }
            ExprKind::Between { value, is_negated, low, high } => {
                self.expr(value, Level::Filter, scene.left());
                self.put(if *is_negated { " not between " } else { " between " });
                self.expr(low, Level::Filter, scene.right());
                self.put(" and ");
                self.expr(high, Level::Filter, scene.right());
            }
            ExprKind::Exists { value, is_negated } => {
                self.expr(value, Level::Filter, scene.left());
                self.put(if *is_negated { " not exists" } else { " exists" });
            }
            ExprKind::Within { inner, condition } => {
                self.put(if *inner == Inner::Event { "event[" } else { "link[" });
                if let Some(condition) = condition {
                    self.condition(condition, scene.condition(Some(*inner)));
                }
                self.put("]");
            }
            ExprKind::Quantified { subject, predicate } => {
                self.subject(subject, scene);
                if let Some(predicate) = predicate {
                    self.put(" has ");
                    self.expr(predicate, Level::Or, scene);
                }
            }
            ExprKind::Relation { left, relation, right } => {
                self.subject(left, scene);
                let word = name::word_of(RELATIONS, relation).unwrap_or_default();
                self.put(&format!(" {word} "));
                self.subject(right, scene);
            }
            _ => self.value(expr, scene),
        }
    }

    /// Prints statements with a word between.
    fn joined(&mut self, items: &[Expr], word: &str, level: Level, scene: PrintContext) {
        for (at, item) in items.iter().enumerate() {
            if at > 0 {
                self.put(word);
            }
            let is_followed = scene.is_followed || at + 1 < items.len();
            self.expr(item, level, PrintContext { is_followed, ..scene });
        }
    }

    fn compare(
        &mut self,
        (left, right): (&Expr, &Expr),
        comparator: Comparator,
        is_negated: bool,
        scene: PrintContext,
    ) {
        let is_selector = scene.dialect == Dialect::Selector;
        let word = match (comparator, is_negated) {
            (Comparator::Matches, false) if !is_selector => "matches".to_owned(),
            (Comparator::Matches, true) if !is_selector => "not matches".to_owned(),
            (Comparator::Contains, true) => "not-contains".to_owned(),
            _ => match name::word_of(COMPARATORS, &(comparator, is_negated)) {
                Some(word) => word.to_owned(),
                None => format!(
                    "not {}",
                    name::word_of(COMPARATORS, &(comparator, false)).unwrap_or_default()
                ),
            },
        };
        let is_tight = is_selector
            && !word.starts_with(char::is_alphabetic)
            && is_simple(left)
            && is_simple(right);
        self.expr(left, Level::Filter, scene.left());
        self.put(&if is_tight { word } else { format!(" {word} ") });
        self.expr(right, Level::Filter, scene.right());
    }

    fn subject(&mut self, subject: &Subject, scene: PrintContext) {
        self.put(match subject.quantifier {
            Quantifier::The => "",
            Quantifier::Every => "every ",
            Quantifier::Some => "some ",
            Quantifier::No => "no ",
        });
        match subject.selector.parts.as_slice() {
            [part] => self.part(part, scene),
            _ => {
                self.put("(");
                self.selector(&subject.selector, scene);
                self.put(")");
            }
        }
    }
}

/// Whether a statement can be separated from others by a space only.
fn stands_alone(statement: &Expr) -> bool {
    !matches!(
        statement.kind,
        ExprKind::Not(_) | ExprKind::Quantified { .. } | ExprKind::Relation { .. }
    )
}

/// Whether a value is one token, so that a symbol needs no space next to it.
fn is_simple(value: &Expr) -> bool {
    matches!(
        value.kind,
        ExprKind::Null
            | ExprKind::Bool(_)
            | ExprKind::Number { .. }
            | ExprKind::Duration(_)
            | ExprKind::Text(_)
            | ExprKind::List(_)
            | ExprKind::Property(_)
            | ExprKind::Variable { .. }
    )
}

fn combinator(combinator: Combinator) -> &'static str {
    match combinator {
        Combinator::Descendant => " ",
        Combinator::Child => " > ",
        Combinator::Adjacent => " + ",
        Combinator::Sibling => " ~ ",
        Combinator::Parent => " < ",
        Combinator::Ancestor => " << ",
        Combinator::Linked => " => ",
    }
}
