//! Random documents about a trace, with names and values that the trace may have.

mod span;

use super::{
    super::chance::Dice,
    RefereeRule, RuleChoice,
    document::{
        Aggregate, Combinator, Comparison, Operand, Operator, Part, Position, Property, Pseudo,
        Quantifier, Question, RefereeStatement, Relation, Selection, SelectorStep, SelectorSubject,
        Summary,
    },
    trace::{self, RefereeSpan},
    value::RefereeValue,
};

const ORDERS: [Operator; 6] = [
    Operator::Equal,
    Operator::Unequal,
    Operator::Less,
    Operator::LessOrEqual,
    Operator::Greater,
    Operator::GreaterOrEqual,
];
const EQUALITIES: [Operator; 2] = [Operator::Equal, Operator::Unequal];

/// Generates documents about one trace.
pub(super) struct Author<'a> {
    pub(super) dice: &'a mut Dice,
    pub(super) drawn: RuleChoice,
    pub(super) spans: &'a [RefereeSpan],
    /// Whether documents may query the order of spans in a trace of several hosts.
    pub(super) may_order: bool,
}

/// Generates a question about a trace.
pub(super) fn question(dice: &mut Dice, drawn: RuleChoice, spans: &[RefereeSpan]) -> Question {
    let is_one_host = spans.iter().all(|span| span.host == spans[0].host);
    let may_order = is_one_host || drawn.has(RefereeRule::OrderAcrossHosts);
    let mut author = Author { dice, drawn, spans, may_order };
    if author.dice.once_in(3) {
        let selection = author.selection(2);
        return Question::Assertion(selection, author.assertion());
    }
    Question::Claim(author.claim(2))
}

impl Author<'_> {
    fn choose<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.dice.below(of.len())].clone()
    }

    fn assertion(&mut self) -> RefereeStatement {
        match self.dice.below(8) {
            0 => {
                let number = RefereeValue::Int(self.dice.below(4) as i64);
                self.compared(Operand::SelectedCount, &ORDERS, number)
            }
            1 => self.of_self(1),
            _ => self.of_span(2),
        }
    }

    /// Generates a statement about the complete trace.
    fn claim(&mut self, depth: usize) -> RefereeStatement {
        if depth > 0 && self.dice.once_in(4) {
            let left = Box::new(self.claim(depth - 1));
            return match self.dice.below(3) {
                0 => RefereeStatement::Not(left),
                1 => RefereeStatement::And(left, Box::new(self.claim(depth - 1))),
                _ => RefereeStatement::Or(left, Box::new(self.claim(depth - 1))),
            };
        }
        match self.dice.below(20) {
            0..3 => self.count(false),
            3..5 => self.count_by(),
            5..8 => self.summary(),
            8 => self.gap(),
            9..11 => RefereeStatement::Any(self.selection(2)),
            11..13 => RefereeStatement::None(self.selection(2)),
            13..16 => self.has(),
            16 if self.dice.once_in(4) => {
                self.compared(Operand::ResponseStatus, &EQUALITIES, RefereeValue::Int(200))
            }
            _ => self.relation(),
        }
    }

    fn compared(
        &mut self,
        left: Operand,
        operators: &[Operator],
        right: RefereeValue,
    ) -> RefereeStatement {
        let operator = self.choose(operators);
        RefereeStatement::Compare(Comparison { left, operator, right: Operand::Literal(right) })
    }

    fn count(&mut self, from_self: bool) -> RefereeStatement {
        let mut selection = self.selection(1);
        if from_self {
            selection.0.truncate(1);
            selection.0[0].from_self = true;
        }
        let count = aggregate(Summary::Count, None, selection, Vec::new());
        if self.dice.once_in(8) {
            let number = self.dice.below(3) as i64;
            let between = RefereeStatement::Between(
                count,
                RefereeValue::Int(number),
                RefereeValue::Int(number + 1),
            );
            return self.maybe_without(between);
        }
        let number = RefereeValue::Int(self.dice.below(5) as i64);
        self.compared(count, &ORDERS, number)
    }

    fn count_by(&mut self) -> RefereeStatement {
        let selection = self.selection(1);
        let mut keys = vec![self.key()];
        if self.dice.once_in(4) {
            keys.push(self.key());
        }
        if self.drawn.has(RefereeRule::GroupValues) && self.dice.once_in(2) {
            return self.values_by(selection, keys);
        }
        let count = aggregate(Summary::Count, None, selection, keys);
        let number = RefereeValue::Int(1 + self.dice.below(3) as i64);
        self.compared(count, &ORDERS, number)
    }

    fn values_by(&mut self, selection: Selection, keys: Vec<Operand>) -> RefereeStatement {
        let (of, values) = self.of_texts();
        let values_by = aggregate(Summary::Values, Some(of), selection, keys);
        let value = RefereeValue::text(self.dice.pick(&values));
        match self.dice.below(4) {
            0 => RefereeStatement::Compare(Comparison {
                left: Operand::Literal(value),
                operator: Operator::In,
                right: values_by,
            }),
            1 => self.compared(values_by, &EQUALITIES, RefereeValue::List(vec![value])),
            2 => self.compared(values_by, &[Operator::Contains], value),
            _ => self.compared(values_by, &[Operator::Contains], RefereeValue::List(vec![value])),
        }
    }

    fn key(&mut self) -> Operand {
        match self.dice.below(5) {
            0 => Operand::Property(Property::Service),
            1 => Operand::Property(Property::Name),
            2 => Operand::Attribute("region".to_owned()),
            3 => Operand::Property(Property::Kind),
            _ => Operand::Property(Property::Status),
        }
    }

    /// Generates a text operand, and texts that it may equal.
    fn of_texts(&mut self) -> (Operand, Vec<&'static str>) {
        match self.dice.below(3) {
            0 => (Operand::Property(Property::Service), vec!["s0", "s1", "s2"]),
            1 => (Operand::Property(Property::Name), vec!["a", "b", "c"]),
            _ => (Operand::Attribute("txt".to_owned()), vec!["cat", "dog", ""]),
        }
    }

    fn summary(&mut self) -> RefereeStatement {
        let selection = self.selection(1);
        if self.dice.once_in(3) {
            let (of, values) = self.of_texts();
            let value = RefereeValue::text(self.dice.pick(&values));
            if self.dice.once_in(2) {
                let shared = aggregate(Summary::Value, Some(of), selection, Vec::new());
                return self.compared(shared, &EQUALITIES, value);
            }
            let values = aggregate(Summary::Values, Some(of), selection, Vec::new());
            let wanted = if self.dice.once_in(2) { RefereeValue::List(vec![value]) } else { value };
            let operators = match wanted {
                RefereeValue::List(_) => {
                    [Operator::Equal, Operator::Unequal, Operator::Contains].as_slice()
                }
                _ => &[Operator::Contains],
            };
            return self.compared(values, operators, wanted);
        }
        let summaries = [
            Summary::Sum,
            Summary::Min,
            Summary::Max,
            Summary::Avg,
            Summary::Value,
            Summary::Percentile(50),
            Summary::Percentile(95),
        ];
        let summary = self.choose(&summaries);
        let (of, value) = match self.dice.below(4) {
            0 => (Operand::Attribute("num".to_owned()), trace::attribute(self.dice, "num")),
            1 => (Operand::Attribute("dbl".to_owned()), trace::attribute(self.dice, "dbl")),
            2 if self.may_order => (Operand::Property(Property::SelfTime), self.duration()),
            _ => (Operand::Property(Property::Duration), self.duration()),
        };
        let keys = if self.dice.once_in(5) { vec![self.key()] } else { Vec::new() };
        // The reference does not define how an average is rounded.
        let operators = if summary == Summary::Avg { &ORDERS[2..] } else { &ORDERS };
        self.compared(aggregate(summary, Some(of), selection, keys), operators, value)
    }

    /// Generates a duration, often the duration of a span.
    fn duration(&mut self) -> RefereeValue {
        let span = &self.spans[self.dice.below(self.spans.len())];
        let length = span.end.map(|end| i128::from(end) - i128::from(span.start));
        match length {
            Some(length) if self.dice.once_in(2) => RefereeValue::Duration(length),
            _ => RefereeValue::Duration(1_000_000 * [0, 1, 5, 20, 50, 100][self.dice.below(6)]),
        }
    }

    fn gap(&mut self) -> RefereeStatement {
        let (from, to) = (self.one_name(), self.one_name());
        let duration = self.duration();
        self.compared(Operand::Gap(from, to), &ORDERS, duration)
    }

    /// Generates a part that often selects one span.
    fn one_name(&mut self) -> Part {
        let mut conditions = vec![self.equals(Property::Name)];
        if self.dice.once_in(2) {
            conditions.push(self.equals(Property::Service));
        }
        if self.dice.once_in(3) {
            conditions.push(self.equals(Property::Kind));
        }
        only(SelectorStep { conditions, ..SelectorStep::default() })
    }

    fn equals(&mut self, property: Property) -> RefereeStatement {
        let value = self.word(property);
        self.compared(Operand::Property(property), &[Operator::Equal], value)
    }

    fn word(&mut self, property: Property) -> RefereeValue {
        let words: &[&str] = match property {
            Property::Kind => &["internal", "server", "client", "producer", "consumer"],
            Property::Status => &["unset", "ok", "error"],
            Property::Service => &["s0", "s1", "s2"],
            _ => &["a", "b", "c", "d"],
        };
        RefereeValue::text(self.dice.pick(words))
    }

    fn has(&mut self) -> RefereeStatement {
        let subject = self.subject();
        let predicate = if self.dice.once_in(4) { self.of_self(1) } else { self.of_span(1) };
        RefereeStatement::Has(subject, Box::new(predicate))
    }

    fn subject(&mut self) -> SelectorSubject {
        let quantifiers = [
            Quantifier::Every,
            Quantifier::Every,
            Quantifier::Some,
            Quantifier::Some,
            Quantifier::No,
            Quantifier::The,
        ];
        let quantifier = self.choose(&quantifiers);
        let selection = match quantifier {
            Quantifier::The => Selection(vec![self.one_name()]),
            _ => self.selection(1),
        };
        SelectorSubject { quantifier, selection }
    }

    fn relation(&mut self) -> RefereeStatement {
        let relations = [
            Relation::Before,
            Relation::After,
            Relation::Inside,
            Relation::Overlaps,
            Relation::Calls,
        ];
        let relation = self.choose(&relations);
        let (mut left, mut right) = (self.subject(), self.subject());
        if !self.drawn.has(RefereeRule::Pair) {
            // No span has two names.
            let names = [["a", "b"], ["b", "c"], ["d", "a"]][self.dice.below(3)];
            for (subject, name) in [(&mut left, names[0]), (&mut right, names[1])] {
                let named = RefereeStatement::Compare(Comparison {
                    left: Operand::Property(Property::Name),
                    operator: Operator::Equal,
                    right: Operand::Literal(RefereeValue::text(name)),
                });
                for part in &mut subject.selection.0 {
                    if let Some((_, last)) = part.steps.last_mut() {
                        last.conditions.push(named.clone());
                    }
                }
            }
        }
        RefereeStatement::Relation(left, relation, right)
    }

    pub(super) fn selection(&mut self, depth: usize) -> Selection {
        let mut parts = vec![self.part(depth)];
        if self.dice.once_in(6) {
            parts.push(self.part(depth));
        }
        Selection(parts)
    }

    fn part(&mut self, depth: usize) -> Part {
        let mut steps = vec![(Combinator::Below, self.step(depth))];
        while depth > 0 && steps.len() < 3 && self.dice.once_in(4) {
            let combinator = self.combinator();
            steps.push((combinator, self.step(depth - 1)));
        }
        Part { from_self: false, steps }
    }

    fn combinator(&mut self) -> Combinator {
        let all = [
            Combinator::Below,
            Combinator::Below,
            Combinator::Child,
            Combinator::Parent,
            Combinator::Above,
            Combinator::Linked,
            Combinator::Next,
            Combinator::Later,
        ];
        let number = if self.may_order { all.len() } else { all.len() - 2 };
        self.choose(&all[..number])
    }

    fn step(&mut self, depth: usize) -> SelectorStep {
        let mut step = SelectorStep::default();
        while step.conditions.len() < 2 && self.dice.once_in(2) {
            let condition = if depth > 0 && self.dice.once_in(12) {
                self.of_self(0)
            } else {
                let depth = usize::from(self.dice.once_in(3));
                self.of_span(depth)
            };
            step.conditions.push(condition);
        }
        if self.dice.once_in(5) {
            let pseudo = match self.dice.below(6) {
                0 => Pseudo::Root,
                1 => Pseudo::Leaf,
                2 => Pseudo::Orphan,
                3 => Pseudo::Not(self.part(0)),
                _ => {
                    let combinator = self.combinator();
                    let step = self.step(0);
                    Pseudo::Has(Part { from_self: false, steps: vec![(combinator, step)] })
                }
            };
            step.pseudos.push(pseudo);
        }
        if self.may_order && self.dice.once_in(8) {
            let nth = 1 + self.dice.below(3);
            step.position =
                Some(self.choose(&[Position::First, Position::Last, Position::Nth(nth)]));
        }
        step
    }

    /// Generates a statement about the surroundings of the current span.
    fn of_self(&mut self, depth: usize) -> RefereeStatement {
        let mut around = self.part(0);
        around.from_self = true;
        around.steps[0].0 = self.combinator();
        match self.dice.below(3) {
            0 => RefereeStatement::Any(Selection(vec![around])),
            1 => RefereeStatement::None(Selection(vec![around])),
            _ if depth > 0 && self.dice.once_in(2) => {
                let value = RefereeValue::text(self.dice.pick(&["cat", "dog", "s0"]));
                let of = self.of_texts().0;
                let values = aggregate(Summary::Values, Some(of), Selection(vec![around]), vec![]);
                self.compared(values, &[Operator::Contains], value)
            }
            _ => {
                let selection = Selection(vec![around]);
                let count = aggregate(Summary::Count, None, selection, Vec::new());
                let number = RefereeValue::Int(self.dice.below(4) as i64);
                self.compared(count, &ORDERS, number)
            }
        }
    }
}

fn aggregate(
    summary: Summary,
    operand: Option<Operand>,
    selection: Selection,
    keys: Vec<Operand>,
) -> Operand {
    Operand::Aggregate(Box::new(Aggregate { summary, operand, selection, keys }))
}

fn only(step: SelectorStep) -> Part {
    Part { from_self: false, steps: vec![(Combinator::Below, step)] }
}
