//! Evaluates statements about a trace.

use super::{
    document::{
        Comparison, Operand, Operator, Quantifier, Question, RefereeStatement, Relation, Scope,
        Selection, SelectorSubject,
    },
    operand::{Choice, compare},
    select::{Court, Focus, Item, Unsaid},
    truth::{Member, Truths, quantify},
    value::RefereeValue,
};

impl Court<'_> {
    pub(super) fn question(&self, question: &Question) -> Truths {
        match question {
            Question::Claim(claim) => self.statement(claim, Focus::default()),
            Question::Assertion(selection, asserted) => self.assertion(selection, asserted),
        }
    }

    fn assertion(&self, selection: &Selection, asserted: &RefereeStatement) -> Truths {
        let members = self.select(selection, Focus::default());
        let selected = Some(self.number(&members));
        if speaks_of_count_alone(asserted) {
            return self.statement(asserted, Focus { selected, ..Focus::default() });
        }
        let items = members.iter().enumerate().map(|(span, member)| {
            (*member, self.statement(asserted, Focus { span: Some(span), selected, item: None }))
        });
        quantify(Quantifier::Every, items.chain(self.to_come()), Truths::UNDEFINED)
    }

    /// Returns the spans that may still come; any statement may hold for them.
    fn to_come(&self) -> impl Iterator<Item = (Member, Truths)> {
        let number = if self.is_complete { 0 } else { 2 };
        std::iter::repeat_n((Member::Maybe, Truths::ANY), number)
    }

    /// Returns the number of selected spans, minimum and maximum.
    pub(super) fn number(&self, members: &[Member]) -> (usize, usize) {
        let least = members.iter().filter(|it| **it == Member::Yes).count();
        let most = members.iter().filter(|it| **it != Member::No).count();
        (least, if self.is_complete { most } else { usize::MAX })
    }

    pub(super) fn statement(&self, it: &RefereeStatement, focus: Focus<'_>) -> Truths {
        match it {
            RefereeStatement::And(left, right) => {
                self.statement(left, focus).and(self.statement(right, focus))
            }
            RefereeStatement::Or(left, right) => {
                self.statement(left, focus).or(self.statement(right, focus))
            }
            RefereeStatement::Not(negated) => {
                let truths = self.statement(negated, focus);
                let is_partly_undefined = truths == Truths::TRUE | Truths::UNDEFINED
                    || truths == Truths::FALSE | Truths::UNDEFINED;
                if is_partly_undefined && self.is_complete {
                    self.unsaid.set(Some(Unsaid::UndefinedBesideOpen));
                }
                truths.not()
            }
            RefereeStatement::Without(negated) => match &**negated {
                RefereeStatement::Compare(compared) => {
                    self.comparison(compared, focus, Truths::not)
                }
                RefereeStatement::Between(left, low, high) => {
                    self.between(left, [low, high], focus, Truths::not)
                }
                other => self.statement(other, focus).not(),
            },
            RefereeStatement::Compare(compared) => self.comparison(compared, focus, |it| it),
            RefereeStatement::Between(left, low, high) => {
                self.between(left, [low, high], focus, |it| it)
            }
            RefereeStatement::Exists(left) => self.exists(left, focus),
            RefereeStatement::Event(condition) => self.event(condition.as_deref(), focus),
            RefereeStatement::Link(condition) => self.link(condition.as_deref(), focus),
            RefereeStatement::Has(subject, predicate) => self.has(subject, predicate, focus),
            RefereeStatement::Relation(left, relation, right) => {
                self.relation(left, *relation, right, focus)
            }
            RefereeStatement::Any(selection) => self.any(selection, focus),
            RefereeStatement::None(selection) => self.any(selection, focus).not(),
        }
    }

    fn any(&self, selection: &Selection, focus: Focus<'_>) -> Truths {
        let (least, most) = self.number(&self.select(selection, focus));
        match (least, most) {
            (1.., _) => Truths::TRUE,
            (0, 0) => Truths::FALSE,
            _ => Truths::OPEN,
        }
    }

    fn has(
        &self,
        subject: &SelectorSubject,
        predicate: &RefereeStatement,
        focus: Focus<'_>,
    ) -> Truths {
        let members = self.select(&subject.selection, focus);
        let items = members.iter().enumerate().map(|(span, member)| {
            (*member, self.statement(predicate, Focus { span: Some(span), ..Focus::default() }))
        });
        quantify(subject.quantifier, items.chain(self.to_come()), Truths::UNDEFINED)
    }

    fn event(&self, condition: Option<&RefereeStatement>, focus: Focus<'_>) -> Truths {
        let Some(span) = focus.span.map(|span| &self.spans[span]) else { return Truths::FALSE };
        let mut truths = Truths::of(false);
        for event in &span.events {
            truths = truths.or(self.item(condition, Item::Event(event), focus));
        }
        if span.dropped_events > 0 { truths.or(Truths::OPEN) } else { truths }
    }

    fn link(&self, condition: Option<&RefereeStatement>, focus: Focus<'_>) -> Truths {
        let Some(span) = focus.span.map(|span| &self.spans[span]) else { return Truths::FALSE };
        let mut truths = Truths::of(false);
        for link in &span.links {
            truths = truths.or(self.item(condition, Item::Link(link), focus));
        }
        if span.dropped_links > 0 { truths.or(Truths::OPEN) } else { truths }
    }

    /// Evaluates a condition on one event or link.
    fn item(
        &self,
        condition: Option<&RefereeStatement>,
        item: Item<'_>,
        focus: Focus<'_>,
    ) -> Truths {
        let Some(condition) = condition else { return Truths::TRUE };
        self.statement(condition, Focus { item: Some(item), ..focus })
    }

    fn exists(&self, left: &Operand, focus: Focus<'_>) -> Truths {
        if let Operand::Filter(of, filter) = left
            && self.has_nothing_for(of, filter, focus)
        {
            self.unsaid.set(Some(Unsaid::FilterOfAbsent));
        }
        let exists = |choice: &Choice| match choice {
            Choice::Absent | Choice::Lacking => Truths::FALSE,
            Choice::Any => Truths::OPEN,
            _ => Truths::TRUE,
        };
        let choices = self.choices(left, focus);
        if let Operand::Scoped(Scope::Event | Scope::Link, _) = left {
            // One of them is sufficient.
            return choices.iter().map(exists).fold(Truths::FALSE, Truths::or);
        }
        choices.iter().map(exists).fold(Truths::EMPTY, |all, one| all | one)
    }

    fn between(
        &self,
        left: &Operand,
        bounds: [&RefereeValue; 2],
        focus: Focus<'_>,
        sign: impl Fn(Truths) -> Truths + Copy,
    ) -> Truths {
        let [low, high] = bounds.map(|bound| vec![Choice::Value(bound.clone())]);
        self.in_groups(left, focus, |choices| {
            let above = compare(choices, Operator::GreaterOrEqual, &low);
            sign(above.and(compare(choices, Operator::LessOrEqual, &high)))
        })
    }

    /// Evaluates a comparison: it has to hold in every group where a side of it has groups.
    fn comparison(
        &self,
        it: &Comparison,
        focus: Focus<'_>,
        sign: impl Fn(Truths) -> Truths + Copy,
    ) -> Truths {
        if let Operand::Scoped(Scope::Event | Scope::Link, _) = it.left {
            return sign(self.some_item(it, focus));
        }
        self.in_groups(&it.left, focus, |left| {
            self.in_groups(&it.right, focus, |right| sign(compare(left, it.operator, right)))
        })
    }

    /// Evaluates `event.NAME` and `link.NAME`: one of them has to match.
    fn some_item(&self, it: &Comparison, focus: Focus<'_>) -> Truths {
        let (Operand::Scoped(scope, name), Some(span)) = (&it.left, focus.span) else {
            return Truths::UNDEFINED;
        };
        let right = self.choices(&it.right, focus);
        let mut truths: Option<Truths> = None;
        for choice in self.scoped(*scope, name, span) {
            let one = compare(&[choice], it.operator, &right);
            truths = Some(truths.map_or(one, |all| all.or(one)));
        }
        truths.unwrap_or(Truths::UNDEFINED)
    }

    fn relation(
        &self,
        left: &SelectorSubject,
        relation: Relation,
        right: &SelectorSubject,
        focus: Focus<'_>,
    ) -> Truths {
        let first = self.select(&left.selection, focus);
        let second = self.select(&right.selection, focus);
        let relate = |from: Option<usize>| {
            let pairs = second.iter().enumerate().filter_map(|(to, member)| match from {
                None => Some((*member, Truths::ANY)),
                Some(from) if from != to => Some((*member, self.pair(from, relation, to))),
                // A pair consists of two spans; but *the* span has to be the only one, whichever it is.
                Some(_) => {
                    (right.quantifier == Quantifier::The).then_some((*member, Truths::UNDEFINED))
                }
            });
            let itself = from.map_or(Member::No, |from| second[from]);
            let alone = without_pair(right.quantifier, itself);
            quantify(right.quantifier, pairs.chain(self.to_come()), alone)
        };
        let items = first.iter().enumerate().map(|(from, member)| match member {
            Member::No => (*member, Truths::UNDEFINED),
            _ => (*member, relate(Some(from))),
        });
        let to_come = self.to_come().map(|(member, _)| (member, relate(None)));
        quantify(left.quantifier, items.chain(to_come), Truths::UNDEFINED)
    }

    /// Evaluates a relation of two different spans.
    fn pair(&self, first: usize, relation: Relation, second: usize) -> Truths {
        let (one, other) = (&self.spans[first], &self.spans[second]);
        if relation == Relation::Calls {
            let is_child = Truths::of(self.parent(second) == Some(first));
            return match self.links(second, first) {
                Member::Yes => Truths::TRUE,
                Member::Maybe => is_child.or(Truths::OPEN),
                Member::No => is_child,
            };
        }
        let time = |time: u64| i128::from(time);
        let (start, other_start) = (time(one.start), time(other.start));
        let (end, other_end) = (one.end.map(time), other.end.map(time));
        let relate = |moved: &[i128], fixed: &[i128], holds: &dyn Fn(i128) -> bool| {
            self.clocks.relation(first, second, [moved, fixed], holds)
        };
        match (relation, end, other_end) {
            (Relation::Before, Some(end), _) => {
                relate(&[end], &[other_start], &|shift| end + shift <= other_start)
            }
            (Relation::After, _, Some(other_end)) => {
                relate(&[start], &[other_end], &|shift| start + shift >= other_end)
            }
            (Relation::Inside, Some(end), Some(other_end)) => {
                relate(&[start, end], &[other_start, other_end], &|shift| {
                    start + shift >= other_start && end + shift <= other_end
                })
            }
            (Relation::Overlaps, Some(end), Some(other_end)) => {
                relate(&[start, end], &[other_start, other_end], &|shift| {
                    start + shift < other_end && other_start < end + shift
                })
            }
            _ => Truths::OPEN,
        }
    }
}

/// Evaluates a relation with a selection that has no other span: a pair consists of two spans.
fn without_pair(quantifier: Quantifier, is_itself: Member) -> Truths {
    let alone = match quantifier {
        Quantifier::Some => Truths::FALSE,
        Quantifier::No => Truths::TRUE,
        Quantifier::The | Quantifier::Every => Truths::UNDEFINED,
    };
    match is_itself {
        Member::No => Truths::UNDEFINED,
        Member::Maybe => Truths::UNDEFINED | alone,
        Member::Yes => alone,
    }
}

fn speaks_of_count_alone(it: &RefereeStatement) -> bool {
    match it {
        RefereeStatement::And(left, right) | RefereeStatement::Or(left, right) => {
            speaks_of_count_alone(left) && speaks_of_count_alone(right)
        }
        RefereeStatement::Not(negated) | RefereeStatement::Without(negated) => {
            speaks_of_count_alone(negated)
        }
        RefereeStatement::Compare(compared) => {
            compared.left == Operand::SelectedCount && matches!(compared.right, Operand::Literal(_))
        }
        RefereeStatement::Between(left, ..) => *left == Operand::SelectedCount,
        _ => false,
    }
}
