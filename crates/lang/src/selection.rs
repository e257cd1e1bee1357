//! Evaluates a single selector on a trace, to try it out.

use model::{Trace, trace::SpanIx};
use source::{Diagnostic, Text};

use crate::{
    budget::{self, Over},
    eval::{
        select,
        world::{EvalContext, EvalScope},
    },
    syntax::{ast::Selector, mistake::Mistake, number::Numbers, parse},
};

/// Why a selector selects nothing.
#[derive(Clone, Debug)]
pub enum SelectionError {
    /// It is no selector.
    Invalid(Vec<Diagnostic>),
    /// It takes more work than a statement may, or was cancelled; with the reason.
    TooMuchWork(String),
}

/// Returns the spans that a selector selects: part by part, each part in document order, no span twice.
pub fn select(source: &str, trace: &Trace) -> Result<Vec<SpanIx>, Vec<Diagnostic>> {
    let selector = numbered(source)?;
    Ok(spans(&selector, trace).0)
}

/// Selects like [`select`], as one statement within the budget of a judgement.
pub fn select_within_budget(source: &str, trace: &Trace) -> Result<Vec<SpanIx>, SelectionError> {
    let selector = numbered(source).map_err(SelectionError::Invalid)?;
    let ((selected, over), _) = budget::judgement(|| spans(&selector, trace));
    match over {
        Some(over) => Err(SelectionError::TooMuchWork(over.reason())),
        None => Ok(selected),
    }
}

/// Parses a selector, with the numbers that its evaluation needs.
fn numbered(source: &str) -> Result<Selector, Vec<Diagnostic>> {
    let (selector, diagnostics) = read(&Text::new("selector", source));
    let mut selector = selector.ok_or(diagnostics)?;
    Numbers::default().selector(&mut selector);
    Ok(selector)
}

/// Evaluates a selector as one statement. Also returns whether it exceeds the budget, which counts in a judgement only.
fn spans(selector: &Selector, trace: &Trace) -> (Vec<SpanIx>, Option<Over>) {
    let mut world = EvalContext::new(trace, None, None);
    world.prepare(&[], &[selector]);
    let scene =
        EvalScope { world: &world, span: None, count: None, inner: None, is_selecting: false };
    let (places, over) = budget::statement(|| select::select(selector, &scene));
    (places.iter().map(|place| world.tree.order()[*place as usize]).collect(), over)
}

/// Parses a selector and returns its diagnostics.
pub(crate) fn read(text: &Text) -> (Option<Selector>, Vec<Diagnostic>) {
    let parsed = parse::selector(text.content());
    let diagnose = |mistake: Mistake| mistake.in_text(text);
    (parsed.tree, parsed.mistakes.into_iter().map(diagnose).collect())
}

#[cfg(test)]
mod tests {
    use model::{
        SpanId, Trace, TraceId,
        trace::{SpanData, SpanIx},
    };

    use super::{SelectionError, select, select_within_budget};
    use crate::Cancel;

    fn trace(spans: u32) -> Trace {
        let mut trace = Trace::new(TraceId::from_bytes([7; 16]).expect("an id"));
        let resource = trace.resource(Default::default()).expect("room");
        let scope = trace.scope(Default::default()).expect("room");
        let id = |number: u32| SpanId::from_bytes(u64::from(number).to_be_bytes());
        for number in 1..=spans {
            let id = id(number).expect("not zero");
            let name = format!("span {}", number % 2);
            trace.push(resource, scope, SpanData::new(id, None, name)).expect("room");
        }
        trace
    }

    #[test]
    fn within_the_budget_the_same_spans_are_selected() {
        let trace = trace(9);
        let selector = "span[name=\"span 1\"]";
        let numbers = |spans: Vec<SpanIx>| spans.iter().map(|it| it.number()).collect::<Vec<_>>();
        let selected = select_within_budget(selector, &trace).expect("a selector");
        assert_eq!(numbers(selected), [0, 2, 4, 6, 8]);
        assert_eq!(numbers(select(selector, &trace).expect("a selector")), [0, 2, 4, 6, 8]);
        let error = select_within_budget("span[name=", &trace).expect_err("no selector");
        assert!(matches!(error, SelectionError::Invalid(ref all) if all.len() == 1), "{error:?}");
    }

    #[test]
    fn a_selection_can_be_cancelled() {
        let trace = trace(100_000);
        let cancel = Cancel::default();
        cancel.cancel();
        // Each part reads the name of each span.
        let parts = (0..50).map(|part| format!("span[name contains \"{part}\"]"));
        let selector = parts.collect::<Vec<_>>().join(", ");
        let selected = cancel.run(|| select_within_budget(&selector, &trace));
        match selected {
            Err(SelectionError::TooMuchWork(reason)) => assert!(reason.contains("cancelled")),
            other => panic!("{:?}", other.map(|spans| spans.len())),
        }
    }
}
