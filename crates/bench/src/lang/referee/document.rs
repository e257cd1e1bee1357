//! The trees of the referee's own documents, as the grammar describes them.

use super::value::RefereeValue;

/// A statement that evaluates to true, false or undefined.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum RefereeStatement {
    And(Box<RefereeStatement>, Box<RefereeStatement>),
    Or(Box<RefereeStatement>, Box<RefereeStatement>),
    Not(Box<RefereeStatement>),
    Compare(Comparison),
    Between(Operand, RefereeValue, RefereeValue),
    Exists(Operand),
    /// The negation that is part of an operator: `not exists`, `not in`, `not between`.
    Without(Box<RefereeStatement>),
    Event(Option<Box<RefereeStatement>>),
    Link(Option<Box<RefereeStatement>>),
    Has(SelectorSubject, Box<RefereeStatement>),
    Relation(SelectorSubject, Relation, SelectorSubject),
    Any(Selection),
    None(Selection),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Comparison {
    pub(super) left: Operand,
    pub(super) operator: Operator,
    pub(super) right: Operand,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Contains,
    StartsWith,
    EndsWith,
    Matches,
    In,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Relation {
    Before,
    After,
    Inside,
    Overlaps,
    Calls,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quantifier {
    The,
    Every,
    Some,
    No,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct SelectorSubject {
    pub(super) quantifier: Quantifier,
    pub(super) selection: Selection,
}

/// A selection: a union of paths through the tree.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Selection(pub(super) Vec<Part>);

/// A path through the tree; the combinator of a first step counts only behind `self` or in `:has(…)`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Part {
    pub(super) from_self: bool,
    pub(super) steps: Vec<(Combinator, SelectorStep)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Combinator {
    Below,
    Child,
    Next,
    Later,
    Parent,
    Above,
    Linked,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct SelectorStep {
    pub(super) conditions: Vec<RefereeStatement>,
    pub(super) pseudos: Vec<Pseudo>,
    pub(super) position: Option<Position>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Pseudo {
    Root,
    Leaf,
    Orphan,
    Has(Part),
    Not(Part),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Position {
    First,
    Last,
    Nth(usize),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Operand {
    Literal(RefereeValue),
    Attribute(String),
    Property(Property),
    /// `resource.NAME`, `scope.NAME`, `event.NAME`, `link.NAME`.
    Scoped(Scope, String),
    Filter(Box<Operand>, ValueFilter),
    Arithmetic(Box<Operand>, Arithmetic, Box<Operand>),
    Aggregate(Box<Aggregate>),
    Gap(Part, Part),
    /// `attr:tracetest.selected_spans.count`.
    SelectedCount,
    ResponseStatus,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Property {
    Name,
    Kind,
    Status,
    Duration,
    Service,
    Depth,
    Children,
    SelfTime,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    Resource,
    Library,
    Event,
    Link,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arithmetic {
    Plus,
    Minus,
    Times,
    Divided,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum ValueFilter {
    JsonPath(String),
    Regex(String),
    GetIndex(usize),
    Length,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Aggregate {
    pub(super) summary: Summary,
    /// The operand that is evaluated for each span; a count has none.
    pub(super) operand: Option<Operand>,
    pub(super) selection: Selection,
    pub(super) keys: Vec<Operand>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Summary {
    Count,
    Sum,
    Min,
    Max,
    Avg,
    Value,
    Values,
    Percentile(u8),
}

/// The question of one case: a claim, or an assertion about each span of a selection.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Question {
    Claim(RefereeStatement),
    Assertion(Selection, RefereeStatement),
}
