//! The syntax tree of selectors, expressions and claims: one tree, since each may be nested in the others.
//!
//! Ranges are byte ranges of the source string, for snippets and evidence. Trees that differ only in ranges are equal. The same
//! applies to node ids, which `number` assigns. Deliberately absent: locations in a file, which the owner of the scalar has.

use crate::value::{Literal, Number};

pub(crate) use crate::value::operator::{Arithmetic, Comparator, Filter, Function};

/// The range of a node in the source string, and its number among the nodes that are evaluated together. All values are equal, so
/// that trees compare by content.
#[derive(Clone, Debug, Default)]
pub(crate) struct At(pub(crate) std::ops::Range<usize>, pub(super) Option<NodeId>);

/// The number of a node, unique among the nodes that are evaluated together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct NodeId(pub(super) std::num::NonZeroU32);

impl At {
    pub(crate) fn new(range: std::ops::Range<usize>) -> Self {
        Self(range, None)
    }

    /// Returns the number of the node; `None` before `number` has assigned one.
    pub(crate) fn id(&self) -> Option<NodeId> {
        self.1
    }
}

impl PartialEq for At {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// The union of its parts; without parts it selects every span.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Selector {
    pub(crate) parts: Vec<Part>,
    pub(crate) at: At,
}

/// A path through the span tree, from the outside in.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Part {
    pub(crate) anchor: Anchor,
    /// Empty only after [`Anchor::This`], where it means the span itself.
    pub(crate) hops: Vec<Hop>,
}

/// The start of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Anchor {
    /// The complete trace: the first hop is a descendant of it.
    Trace,
    /// The current span: `self`, and every part of `:has(…)`.
    This,
}

/// One step of a part, and the combinator from the previous step.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Hop {
    pub(crate) combinator: Combinator,
    pub(crate) step: CompoundSelector,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Combinator {
    /// Whitespace, or `>>`: a descendant.
    Descendant,
    /// `>`: a child.
    Child,
    /// `+`: the next sibling in document order.
    Adjacent,
    /// `~`: a later sibling.
    Sibling,
    /// `<`: the parent.
    Parent,
    /// `<<`: an ancestor.
    Ancestor,
    /// `=>`: a span with a link to the previous one.
    Linked,
}

/// `span[…]` with its pseudo-classes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CompoundSelector {
    /// `None` for `span[]`.
    pub(crate) condition: Option<Expr>,
    /// All pseudo-classes except positions; all have to hold, in any order.
    pub(crate) pseudos: Vec<Pseudo>,
    /// Picks one of the matching spans; if several are written, the last one counts.
    pub(crate) position: Option<Position>,
    /// The range of `span[…]` and the pseudo-classes.
    pub(crate) at: At,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Pseudo {
    /// The span has no parent id.
    Root,
    /// The span has no children.
    Leaf,
    /// The span has a parent id that is not in the trace.
    Orphan,
    /// The selector matches from this span; all its parts have the anchor [`Anchor::This`].
    Has(Selector),
    /// The selector does not select this span.
    Not(Selector),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Position {
    First,
    Last,
    /// Counted from 1.
    Nth(u64),
}

/// An expression: a value, or a statement that holds or fails.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Expr {
    pub(crate) kind: ExprKind,
    pub(crate) at: At,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ExprKind {
    // Values.
    Null,
    Bool(bool),
    /// With its spelling: `007` equals the text `007` as well as the number 7.
    Number {
        value: Number,
        spelling: String,
    },
    /// In nanoseconds.
    Duration(i128),
    /// A quoted text without `${…}`.
    Text(Literal),
    /// A quoted text with `${…}`.
    Template(Template),
    List(Vec<Expr>),
    Property(Property),
    Variable {
        scope: VariableScope,
        name: String,
    },
    /// The value of a variable or of a random or time function; only `resolve` creates it.
    Known(ResolvedValue),
    Response(ResponsePart),
    Call {
        function: Function,
        arguments: Vec<Expr>,
    },
    /// `input | filter argument …`
    Filter {
        input: Box<Expr>,
        filter: Filter,
        arguments: Vec<Expr>,
    },
    Minus(Box<Expr>),
    Arithmetic {
        left: Box<Expr>,
        operator: Arithmetic,
        right: Box<Expr>,
    },
    Aggregate(Box<Aggregate>),
    /// `gap(from, to)`: the time from the end of `from` to the start of `to`.
    Gap {
        from: Box<Selector>,
        to: Box<Selector>,
    },

    // Statements.
    Compare {
        left: Box<Expr>,
        comparator: Comparator,
        /// `!=` is a negated `=`, `!~` is a negated `=~`, `not-contains` and `not in` likewise.
        is_negated: bool,
        right: Box<Expr>,
    },
    Between {
        value: Box<Expr>,
        is_negated: bool,
        low: Box<Expr>,
        high: Box<Expr>,
    },
    Exists {
        value: Box<Expr>,
        is_negated: bool,
    },
    Not(Box<Expr>),
    /// At least two; nested ones of the same kind are flattened.
    And(Vec<Expr>),
    Or(Vec<Expr>),
    /// `event[…]`, `link[…]`: at least one event or link meets the condition (any one without a condition).
    Within {
        inner: Inner,
        condition: Option<Box<Expr>>,
    },
    /// `every S has P`; without a predicate only `some S` and `no S`.
    Quantified {
        subject: Subject,
        predicate: Option<Box<Expr>>,
    },
    Relation {
        left: Subject,
        relation: Relation,
        right: Subject,
    },
}

/// A sequence of texts and values.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Template {
    pub(crate) pieces: Vec<Piece>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Piece {
    Text(String),
    Value(Expr),
}

/// A value that was generated or looked up before the run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ResolvedValue {
    pub(crate) text: Literal,
    /// Whether it comes from a secret, or was computed from one.
    pub(crate) is_secret: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VariableScope {
    Var,
    Env,
}

/// A property of a span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Property {
    /// An attribute of the span, else of its resource, else `otherwise`.
    Attribute {
        name: String,
        otherwise: Option<Box<Property>>,
    },
    Intrinsic(Intrinsic, Spelling),
    /// `resource.NAME`
    Resource(String),
    /// `scope.NAME`; `scope.name` and `scope.version` are fields of the scope itself.
    Scope(String),
    /// `event.NAME`: of each event; `event.name` is the name of the event itself.
    Event(String),
    /// `link.NAME`: of each link; `link.trace_id` and `link.span_id` are fields of the link itself.
    Link(String),
    /// `tracetest.response.*`: only on the trigger span.
    Response(ResponsePart),
    /// `tracetest.selected_spans.count`
    Count,
}

/// A property that every span has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Intrinsic {
    Name,
    /// `internal`, `server`, `client`, `producer`, `consumer`, `unspecified`.
    Kind,
    /// `unset`, `ok`, `error`.
    Status,
    /// In Tracetest's spelling: `STATUS_CODE_ERROR`.
    StatusCode,
    StatusMessage,
    Duration,
    Start,
    End,
    /// `service.name` of the resource.
    Service,
    /// `http`, `database`, `rpc`, `messaging`, `faas`, `exception`, `general`.
    Type,
    Id,
    ParentId,
    /// The number of its ancestors.
    Depth,
    /// The number of its children.
    Children,
    /// Its duration without the time in which a child was active.
    SelfTime,
    /// All attributes of the span itself, as one object.
    Attributes,
    /// The part of its duration that is on the critical path of the trace.
    CriticalTime,
    /// `span.events`: all events as JSON.
    Events,
}

/// The spelling of an intrinsic. It has no meaning: Tracetest accepts only one of them, so files keep theirs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spelling {
    /// As a keyword: `duration`.
    Word,
    /// As the name of an attribute: `tracetest.span.duration`.
    Name,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ResponsePart {
    Status,
    Body,
    /// All headers, as a JSON list of `{key, value}`.
    Headers,
    /// One header, by its name in lower case.
    Header(String),
    /// The duration measured at the client.
    Duration,
}

/// `sum(E of S by K, …)`
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Aggregate {
    pub(crate) function: Summary,
    /// `None` only for `count`.
    pub(crate) value: Option<Expr>,
    pub(crate) of: Selector,
    pub(crate) by: Vec<Expr>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Summary {
    Count,
    Sum,
    Min,
    Max,
    Average,
    /// From 0 to 100, nearest-rank method.
    Percentile(Number),
    /// The single value that all spans share.
    Value,
    /// The distinct values, in document order.
    Values,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Inner {
    Event,
    Link,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Subject {
    pub(crate) quantifier: Quantifier,
    pub(crate) selector: Selector,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quantifier {
    /// No keyword: exactly one span.
    The,
    Every,
    Some,
    No,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Relation {
    /// The left span ends before the right one starts, or at that moment.
    Before,
    /// The left span starts after the right one ended, or at that moment.
    After,
    /// The left span starts and ends within the right one.
    Inside,
    /// The spans share at least one moment.
    Overlaps,
    /// The right span is a child of the left one, or links to it.
    Calls,
}

impl Expr {
    pub(crate) fn new(kind: ExprKind, at: std::ops::Range<usize>) -> Self {
        Self { kind, at: At::new(at) }
    }

    /// Returns the text of a literal, written in the test or filled in before the run.
    pub(crate) fn literal(&self) -> Option<&Literal> {
        match &self.kind {
            ExprKind::Text(text) => Some(text),
            ExprKind::Known(known) => Some(&known.text),
            _ => None,
        }
    }

    /// Whether it is a statement, which holds or fails; anything else is a value.
    pub(crate) fn is_statement(&self) -> bool {
        matches!(
            self.kind,
            ExprKind::Compare { .. }
                | ExprKind::Between { .. }
                | ExprKind::Exists { .. }
                | ExprKind::Not(_)
                | ExprKind::And(_)
                | ExprKind::Or(_)
                | ExprKind::Within { .. }
                | ExprKind::Quantified { .. }
                | ExprKind::Relation { .. }
        )
    }
}
