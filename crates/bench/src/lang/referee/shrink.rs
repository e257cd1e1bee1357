//! Finds the smallest case that still differs in the same way.

use anyhow::Result;

use super::{
    Difference, RefereeCase, Rest,
    document::{
        Operand, Part, Pseudo, Question, RefereeStatement, Selection, SelectorStep, SelectorSubject,
    },
    trace::RefereeSpan,
};

/// Tries smaller cases until none of them differs in the same way.
pub(super) fn shrink(mut case: RefereeCase, difference: Difference) -> Result<RefereeCase> {
    loop {
        let mut smaller = None;
        for candidate in candidates(&case) {
            if candidate.difference()? == Some(difference) {
                smaller = Some(candidate);
                break;
            }
        }
        match smaller {
            Some(smaller) => case = smaller,
            None => return Ok(case),
        }
    }
}

fn candidates(case: &RefereeCase) -> Vec<RefereeCase> {
    let mut all = Vec::new();
    for question in questions(&case.question) {
        all.push(RefereeCase { question, ..case.clone() });
    }
    if let Rest::Known(rest) = &case.rest {
        for index in 0..rest.len() {
            let mut less = rest.clone();
            less.remove(index);
            all.push(RefereeCase { rest: Rest::Known(less), ..case.clone() });
        }
    }
    for index in 0..case.spans.len() {
        if case.spans.len() > 1 {
            let mut spans = case.spans.clone();
            spans.remove(index);
            all.push(RefereeCase { spans, ..case.clone() });
        }
        for span in spans(&case.spans[index]) {
            let mut spans = case.spans.clone();
            spans[index] = span;
            all.push(RefereeCase { spans, ..case.clone() });
        }
    }
    all
}

/// Returns the variants of a span with one element less.
fn spans(span: &RefereeSpan) -> Vec<RefereeSpan> {
    let mut all = Vec::new();
    let mut with = |change: &dyn Fn(&mut RefereeSpan)| {
        let mut less = span.clone();
        change(&mut less);
        all.push(less);
    };
    for index in 0..span.attributes.len() {
        with(&|it| drop(it.attributes.remove(index)));
    }
    for index in 0..span.resource.len() {
        with(&|it| drop(it.resource.remove(index)));
    }
    for index in 0..span.events.len() {
        with(&|it| drop(it.events.remove(index)));
        for attribute in 0..span.events[index].attributes.len() {
            with(&|it| drop(it.events[index].attributes.remove(attribute)));
        }
        if span.events[index].dropped_attributes > 0 {
            with(&|it| it.events[index].dropped_attributes = 0);
        }
    }
    for index in 0..span.links.len() {
        with(&|it| it.links.truncate(index));
    }
    if span.dropped_attributes > 0 {
        with(&|it| it.dropped_attributes = 0);
    }
    if span.dropped_resource > 0 {
        with(&|it| it.dropped_resource = 0);
    }
    if span.dropped_events > 0 {
        with(&|it| it.dropped_events = 0);
    }
    if span.dropped_links > 0 {
        with(&|it| it.dropped_links = 0);
    }
    if span.parent.is_some() {
        with(&|it| it.parent = None);
    }
    all
}

fn questions(question: &Question) -> Vec<Question> {
    match question {
        Question::Claim(claim) => statements(claim).into_iter().map(Question::Claim).collect(),
        Question::Assertion(selection, asserted) => {
            let selections = selections(selection).into_iter();
            let selected = selections.map(|it| Question::Assertion(it, asserted.clone()));
            let statements = statements(asserted).into_iter();
            selected
                .chain(statements.map(|it| Question::Assertion(selection.clone(), it)))
                .collect()
        }
    }
}

fn statements(it: &RefereeStatement) -> Vec<RefereeStatement> {
    let boxed = |it: RefereeStatement| Box::new(it);
    match it {
        RefereeStatement::And(left, right) | RefereeStatement::Or(left, right) => {
            let rebuild = |left: Box<RefereeStatement>, right: Box<RefereeStatement>| match it {
                RefereeStatement::And(..) => RefereeStatement::And(left, right),
                _ => RefereeStatement::Or(left, right),
            };
            let mut all = vec![(**left).clone(), (**right).clone()];
            all.extend(statements(left).into_iter().map(|it| rebuild(boxed(it), right.clone())));
            all.extend(statements(right).into_iter().map(|it| rebuild(left.clone(), boxed(it))));
            all
        }
        RefereeStatement::Not(negated) => {
            let mut all = vec![(**negated).clone()];
            all.extend(statements(negated).into_iter().map(|it| RefereeStatement::Not(boxed(it))));
            all
        }
        RefereeStatement::Without(negated) => {
            let mut all = vec![(**negated).clone()];
            all.extend(
                statements(negated).into_iter().map(|it| RefereeStatement::Without(boxed(it))),
            );
            all
        }
        RefereeStatement::Compare(compared) => operands(&compared.left)
            .into_iter()
            .map(|left| {
                let mut compared = compared.clone();
                compared.left = left;
                RefereeStatement::Compare(compared)
            })
            .chain(operands(&compared.right).into_iter().map(|right| {
                let mut compared = compared.clone();
                compared.right = right;
                RefereeStatement::Compare(compared)
            }))
            .collect(),
        RefereeStatement::Between(left, low, high) => operands(left)
            .into_iter()
            .map(|left| RefereeStatement::Between(left, low.clone(), high.clone()))
            .collect(),
        RefereeStatement::Exists(_) => Vec::new(),
        RefereeStatement::Event(condition) => {
            let conditions = condition.iter().flat_map(|it| statements(it));
            conditions.map(|it| RefereeStatement::Event(Some(boxed(it)))).collect()
        }
        RefereeStatement::Link(_) => Vec::new(),
        RefereeStatement::Has(subject, predicate) => {
            let less = subjects(subject).into_iter();
            let less = less.map(|it| RefereeStatement::Has(it, predicate.clone()));
            let more = statements(predicate).into_iter();
            less.chain(more.map(|it| RefereeStatement::Has(subject.clone(), boxed(it)))).collect()
        }
        RefereeStatement::Relation(left, relation, right) => {
            let less = subjects(left).into_iter();
            let less = less.map(|it| RefereeStatement::Relation(it, *relation, right.clone()));
            let more = subjects(right).into_iter();
            less.chain(more.map(|it| RefereeStatement::Relation(left.clone(), *relation, it)))
                .collect()
        }
        RefereeStatement::Any(selection) => {
            selections(selection).into_iter().map(RefereeStatement::Any).collect()
        }
        RefereeStatement::None(selection) => {
            selections(selection).into_iter().map(RefereeStatement::None).collect()
        }
    }
}

fn operands(it: &Operand) -> Vec<Operand> {
    match it {
        Operand::Aggregate(aggregate) => {
            let mut all: Vec<_> = selections(&aggregate.selection)
                .into_iter()
                .map(|selection| {
                    let mut aggregate = aggregate.clone();
                    aggregate.selection = selection;
                    Operand::Aggregate(aggregate)
                })
                .collect();
            for index in 0..aggregate.keys.len() {
                let mut aggregate = aggregate.clone();
                aggregate.keys.remove(index);
                all.push(Operand::Aggregate(aggregate));
            }
            all
        }
        Operand::Gap(from, to) => {
            let less = parts(from).into_iter().map(|it| Operand::Gap(it, to.clone()));
            less.chain(parts(to).into_iter().map(|it| Operand::Gap(from.clone(), it))).collect()
        }
        _ => Vec::new(),
    }
}

fn subjects(it: &SelectorSubject) -> Vec<SelectorSubject> {
    let less = selections(&it.selection).into_iter();
    less.map(|selection| SelectorSubject { selection, ..it.clone() }).collect()
}

fn selections(it: &Selection) -> Vec<Selection> {
    let mut all = Vec::new();
    for (index, part) in it.0.iter().enumerate() {
        if it.0.len() > 1 {
            let mut less = it.clone();
            less.0.remove(index);
            all.push(less);
        }
        for part in parts(part) {
            let mut less = it.clone();
            less.0[index] = part;
            all.push(less);
        }
    }
    all
}

fn parts(it: &Part) -> Vec<Part> {
    let mut all = Vec::new();
    for (index, (combinator, step)) in it.steps.iter().enumerate() {
        if it.steps.len() > 1 {
            let mut less = it.clone();
            less.steps.remove(index);
            all.push(less);
        }
        for step in steps(step) {
            let mut less = it.clone();
            less.steps[index] = (*combinator, step);
            all.push(less);
        }
    }
    all
}

fn steps(it: &SelectorStep) -> Vec<SelectorStep> {
    let mut all = Vec::new();
    for (index, condition) in it.conditions.iter().enumerate() {
        let mut less = it.clone();
        less.conditions.remove(index);
        all.push(less);
        for condition in statements(condition) {
            let mut less = it.clone();
            less.conditions[index] = condition;
            all.push(less);
        }
    }
    for (index, pseudo) in it.pseudos.iter().enumerate() {
        let mut less = it.clone();
        less.pseudos.remove(index);
        all.push(less);
        let inner = match pseudo {
            Pseudo::Has(part) => parts(part).into_iter().map(Pseudo::Has).collect(),
            Pseudo::Not(part) => parts(part).into_iter().map(Pseudo::Not).collect(),
            Pseudo::Root | Pseudo::Leaf | Pseudo::Orphan => Vec::new(),
        };
        for pseudo in inner {
            let mut less = it.clone();
            less.pseudos[index] = pseudo;
            all.push(less);
        }
    }
    if it.position.is_some() {
        all.push(SelectorStep { position: None, ..it.clone() });
    }
    all
}
