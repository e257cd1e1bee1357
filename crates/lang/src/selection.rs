//! Evaluates a single selector on a trace, to try it out.

use model::{Trace, trace::SpanIx};
use source::{Diagnostic, Text};

use crate::{
    eval::{
        select,
        world::{EvalContext, EvalScope},
    },
    syntax::{ast::Selector, mistake::Mistake, number::Numbers, parse},
};

/// Returns the spans that a selector selects: part by part, each part in document order, no span twice.
pub fn select(source: &str, trace: &Trace) -> Result<Vec<SpanIx>, Vec<Diagnostic>> {
    let (selector, diagnostics) = read(&Text::new("selector", source));
    let Some(mut selector) = selector else { return Err(diagnostics) };
    Numbers::default().selector(&mut selector);
    let mut world = EvalContext::new(trace, None, None);
    world.prepare(&[], &[&selector]);
    let scene =
        EvalScope { world: &world, span: None, count: None, inner: None, is_selecting: false };
    let places = select::select(&selector, &scene);
    Ok(places.iter().map(|place| world.tree.order()[*place as usize]).collect())
}

/// Parses a selector and returns its diagnostics.
pub(crate) fn read(text: &Text) -> (Option<Selector>, Vec<Diagnostic>) {
    let parsed = parse::selector(text.content());
    let diagnose = |mistake: Mistake| mistake.in_text(text);
    (parsed.tree, parsed.mistakes.into_iter().map(diagnose).collect())
}
