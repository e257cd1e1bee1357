//! The syntax tree of selectors, expressions and claims: one tree, since each may stand inside the others.
//!
//! Ranges are bytes of the string that was read; they are for pictures and evidence, and two trees that differ in
//! nothing else are the same tree. So are node ids, which `number` gives. Deliberately absent: places in a file, which
//! whoever holds the scalar knows.

use crate::value::{Literal, Number};

/// Where something stands in the string that was read, and its number among the nodes that are evaluated together. All
/// of these are equal, so that trees compare by content.
#[derive(Clone, Debug, Default)]
pub(crate) struct At(pub(crate) std::ops::Range<usize>, pub(super) Option<NodeId>);

/// The number of a node: no two nodes that are evaluated together have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct NodeId(pub(super) std::num::NonZeroU32);

impl At {
    pub(crate) fn new(range: std::ops::Range<usize>) -> Self {
        Self(range, None)
    }

    /// The node's number; none before `number` has given one.
    pub(crate) fn id(&self) -> Option<NodeId> {
        self.1
    }
}

impl PartialEq for At {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// The union of its parts; none at all selects every span.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Selector {
    pub(crate) parts: Vec<Part>,
    pub(crate) at: At,
}

/// A way through the tree, from the outside in.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Part {
    pub(crate) anchor: Anchor,
    /// Empty only behind [`Anchor::This`], where it means the span itself.
    pub(crate) hops: Vec<Hop>,
}

/// Where a part begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Anchor {
    /// At the whole trace: the first hop is a descendant of it.
    Trace,
    /// At the span that is spoken of: `self`, and every part of `:has(…)`.
    This,
}

/// One step of a part, and how it is reached from the one before.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Hop {
    pub(crate) combinator: Combinator,
    pub(crate) step: CompoundSelector,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Combinator {
    /// Nothing, or `>>`: anywhere below.
    Descendant,
    /// `>`: directly below.
    Child,
    /// `+`: the next sibling in document order.
    Adjacent,
    /// `~`: a later sibling.
    Sibling,
    /// `<`: the span directly above.
    Parent,
    /// `<<`: anywhere above.
    Ancestor,
    /// `=>`: a span with a link to it.
    Linked,
}

/// `span[…]` with what stands behind it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CompoundSelector {
    /// None for `span[]`.
    pub(crate) condition: Option<Expr>,
    /// All but positions have to hold, in any order.
    pub(crate) pseudos: Vec<Pseudo>,
    /// Picks from what matches; of several written ones the last.
    pub(crate) position: Option<Position>,
    /// `span[…]` and the pseudo-classes.
    pub(crate) at: At,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Pseudo {
    /// Names no parent.
    Root,
    /// Nothing stands below it.
    Leaf,
    /// Names a parent that is not in the trace.
    Orphan,
    /// Something is found from here; all parts are anchored at [`Anchor::This`].
    Has(Selector),
    /// Is not among these.
    Not(Selector),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Position {
    First,
    Last,
    /// From 1.
    Nth(u64),
}

/// An expression: a value, or a statement that holds or does not.
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
    /// A text in quotes, without `${…}`.
    Text(Literal),
    /// A text in quotes with `${…}` in it.
    Template(Template),
    List(Vec<Expr>),
    Property(Property),
    Variable {
        scope: VariableScope,
        name: String,
    },
    /// What a variable or a function of chance and time stood for; only `resolve` makes it.
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
    /// `gap(from, to)`: from the end of the one to the start of the other.
    Gap {
        from: Box<Selector>,
        to: Box<Selector>,
    },

    // Statements.
    Compare {
        left: Box<Expr>,
        comparator: Comparator,
        /// `!=` is `=` negated, `!~` is `=~` negated, `not-contains` and `not in` likewise.
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
    /// `event[…]`, `link[…]`: one of them for which the condition holds (any, where there is none).
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

/// Texts and values in turn.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Template {
    pub(crate) pieces: Vec<Piece>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Piece {
    Text(String),
    Value(Expr),
}

/// A value that was drawn or looked up before the run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ResolvedValue {
    pub(crate) text: Literal,
    /// It came from a secret, or from something that did.
    pub(crate) is_secret: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VariableScope {
    Var,
    Env,
}

/// What can be asked of a span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Property {
    /// An attribute of the span, else of its resource, else what else the name means.
    Attribute {
        name: String,
        otherwise: Option<Box<Property>>,
    },
    Intrinsic(Intrinsic, Spelling),
    /// `resource.NAME`
    Resource(String),
    /// `scope.NAME`; `scope.name` and `scope.version` are the scope's own.
    Scope(String),
    /// `event.NAME`: of each event; `event.name` is the event's own.
    Event(String),
    /// `link.NAME`: of each link; `link.trace_id` and `link.span_id` are the link's own.
    Link(String),
    /// `tracetest.response.*`: on the trigger span alone.
    Response(ResponsePart),
    /// `tracetest.selected_spans.count`
    Count,
}

/// What every span has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Intrinsic {
    Name,
    /// `internal`, `server`, `client`, `producer`, `consumer`, `unspecified`.
    Kind,
    /// `unset`, `ok`, `error`.
    Status,
    /// As the predecessor spells it: `STATUS_CODE_ERROR`.
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
    /// How many spans stand above it.
    Depth,
    /// How many spans stand directly below it.
    Children,
    /// Its duration without the time in which a child was at work.
    SelfTime,
    /// All attributes of the span itself, as one object.
    Attributes,
    /// The part of its time that the whole trace waited for.
    CriticalTime,
    /// `span.events`: all events as JSON.
    Events,
}

/// How an intrinsic was called. It means nothing: Tracetest knows the one and not the other, so files keep theirs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spelling {
    /// Its own word: `duration`.
    Word,
    /// The name of an attribute: `tracetest.span.duration`.
    Name,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ResponsePart {
    Status,
    Body,
    /// All of them, as a JSON list of `{key, value}`.
    Headers,
    /// One of them, by its name in small letters.
    Header(String),
    /// As measured at the client.
    Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Function {
    Uuid,
    FirstName,
    LastName,
    FullName,
    Email,
    Phone,
    CreditCard,
    CreditCardCvv,
    CreditCardExpDate,
    Date,
    DateTime,
    RandomInt,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Filter {
    JsonPath,
    Regex,
    RegexGroup,
    GetIndex,
    Length,
    Type,
    Keys,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comparator {
    Equal,
    Less,
    AtMost,
    Greater,
    AtLeast,
    Contains,
    StartsWith,
    EndsWith,
    /// `=~` in a selector, `matches` in an expression; each is read in both.
    Matches,
    In,
}

/// `sum(E of S by K, …)`
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Aggregate {
    pub(crate) function: Summary,
    /// None for `count` alone.
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
    /// From 0 to 100, by nearest rank.
    Percentile(Number),
    /// The one value that all have.
    Value,
    /// The different values, in document order.
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
    /// No word: exactly one span.
    The,
    Every,
    Some,
    No,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Relation {
    /// The one ends before, or as, the other starts.
    Before,
    /// The one starts after, or as, the other ended.
    After,
    /// The one starts and ends within the other.
    Inside,
    /// Some moment belongs to both.
    Overlaps,
    /// The other stands directly below the one, or links to it.
    Calls,
}

impl Expr {
    pub(crate) fn new(kind: ExprKind, at: std::ops::Range<usize>) -> Self {
        Self { kind, at: At::new(at) }
    }

    /// The text that it is, written in the test or filled in before the run.
    pub(crate) fn literal(&self) -> Option<&Literal> {
        match &self.kind {
            ExprKind::Text(text) => Some(text),
            ExprKind::Known(known) => Some(&known.text),
            _ => None,
        }
    }

    /// Whether it holds or does not hold; anything else is a value.
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
