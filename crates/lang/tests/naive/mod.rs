//! A second evaluator of selectors, simple enough to verify by reading.
//!
//! It shares no code with the language: it has its own syntax tree (`selector.rs`), prints it for the parser of the language, and
//! loops over lists of all spans where the language uses indexes and bit sets. Both must agree on the specification. Deliberately
//! absent: speed, and everything except selectors.

mod condition;
mod grow;
mod select;
mod selector;
mod shrink;
mod value;

use model::{Trace, trace::SpanIx};
use source::{Colour, Diagnostic, draw};

use super::chance::{
    Dice,
    sample::{One, Sample},
};
use grow::Grower;
use select::World;
use selector::Selector;

/// The number of selectors to generate for one case, until one selects some spans but not all.
const THROWS: usize = 4;

/// A trace, a selector, and the results of both evaluators.
#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) spans: usize,
    /// The number of spans that the naive evaluator selects.
    pub(crate) selected: usize,
    /// A minimized description of the difference, if there is one.
    pub(crate) difference: Option<String>,
}

/// The function under test: returns the spans that a selector selects, or why the selector is rejected.
pub(crate) type Answer = fn(&str, &Trace) -> Result<Vec<SpanIx>, Vec<Diagnostic>>;

/// Generates the case with this number and compares the two results.
pub(crate) fn check(number: u64, answer: Answer) -> Case {
    let mut dice = Dice::new(number);
    let sample = Sample::throw(&mut dice);
    let (selector, selected) = telling(&sample, dice);
    let spans = sample.spans.len();
    let differs =
        |sample: &Sample, selector: &Selector| difference(sample, selector, number, answer);
    let difference = differs(&sample, &selector).map(|found| {
        let is_such = |it: Difference| it.is_refusal == found.is_refusal;
        let fails =
            |sample: &Sample, selector: &Selector| differs(sample, selector).is_some_and(is_such);
        let (sample, selector) = shrink::shrink(sample.clone(), selector.clone(), fails);
        differs(&sample, &selector).unwrap_or(found).words
    });
    Case { spans, selected, difference }
}

/// Generates a selector that selects some spans but not all, if a few attempts give one; also returns how many it selects.
fn telling(sample: &Sample, dice: Dice) -> (Selector, usize) {
    let world = World::new(sample);
    let mut grower = Grower { sample, dice };
    let mut throw = || {
        let selector = grower.selector(2);
        let selected = world.select(&selector).len();
        (selector, selected)
    };
    let mut last = throw();
    for _ in 1..THROWS {
        if (1..sample.spans.len()).contains(&last.1) {
            break;
        }
        last = throw();
    }
    last
}

/// The two results.
struct Difference {
    words: String,
    /// Whether the language rejects the selector.
    is_refusal: bool,
}

/// Returns the two results, if they differ.
fn difference(
    sample: &Sample,
    selector: &Selector,
    number: u64,
    answer: Answer,
) -> Option<Difference> {
    let text = selector.write(&mut Dice::new(number));
    let trace = sample.trace();
    let numbers: Vec<SpanIx> = trace.spans().map(|span| span.ix()).collect();
    let expected: Vec<SpanIx> =
        World::new(sample).select(selector).into_iter().map(|at| numbers[at]).collect();
    let ids = |found: &[SpanIx]| -> Vec<String> {
        found.iter().map(|ix| trace.span(*ix).id().to_string()).collect()
    };
    let (answered, is_refusal) = match answer(&text, &trace) {
        Ok(found) if found == expected => return None,
        Ok(found) => (format!("{:?}", ids(&found)), false),
        Err(refused) => (draw(&refused, Colour::Never), true),
    };
    let spans: Vec<String> = sample.spans.iter().map(|one| format!("  {}", shown(one))).collect();
    let words = format!(
        "case {number}: {text}\n{}\nexpected {:?}\nanswered {answered}",
        spans.join("\n"),
        ids(&expected)
    );
    Some(Difference { words, is_refusal })
}

fn shown(one: &One) -> String {
    let span = &one.span;
    format!(
        "{} under {:?}: {:?} {} {:?} {}..{} {:?} events {:?} links {:?} resource {:?} scope {:?}",
        span.id,
        span.parent,
        span.name,
        span.kind.as_str(),
        span.status,
        span.start.as_nanos(),
        span.end.as_nanos(),
        span.attributes,
        span.events.iter().map(|it| (&it.name, &it.attributes)).collect::<Vec<_>>(),
        span.links.iter().map(|it| (it.trace_id, it.span_id, &it.attributes)).collect::<Vec<_>>(),
        one.resource.attributes,
        (&one.scope.name, &one.scope.version, &one.scope.attributes),
    )
}
