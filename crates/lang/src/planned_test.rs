//! Parses and compiles a file into plans in one call: the first step of every caller that runs or stores tests.

use std::collections::BTreeMap;

use model::TestId;
use source::{Diagnostic, Diagnostics, Span, Text};

use crate::{
    compile::compile,
    document::{Document, Test, read},
    plan::Plan,
};

/// A compiled test.
#[derive(Clone, Debug)]
pub struct PlannedTest {
    /// The plan to run.
    pub plan: Plan,
    /// The document without the other documents of its file, padded so that it keeps its line and column.
    pub document: String,
}

/// Returns the plans of all tests in a file that must have at least one, and all diagnostics of the file. With any error there
/// are no plans.
pub fn plans(text: &Text) -> (Vec<PlannedTest>, Vec<Diagnostic>) {
    let (planned, mut diagnostics) = plans_if_any(text);
    if planned.is_empty() && !diagnostics.iter().any(Diagnostic::is_error) {
        let found = Diagnostics::new(text);
        found.push(found.error(None, format!("`{}` holds no test", text.name())));
        diagnostics.extend(found.into_vec());
    }
    (planned, diagnostics)
}

/// Does the same for one of many files; the file may have other documents and no test.
pub fn plans_if_any(text: &Text) -> (Vec<PlannedTest>, Vec<Diagnostic>) {
    let found = Diagnostics::new(text);
    let (documents, mistakes) = read(text);
    found.extend(mistakes);
    let mut tests = Vec::new();
    for document in &documents {
        let Document::Test(test) = document else { continue };
        let (plan, mistakes) = compile(test);
        found.extend(mistakes);
        match plan {
            Some(plan) => tests.push((plan, test.as_ref())),
            None if found.has_errors() => {}
            None => found.push(found.error(test.span, "this test cannot be run")),
        }
    }
    refuse_same_ids(&tests, &found);
    if found.has_errors() {
        tests.clear();
    }
    let planned = |(plan, test): (Plan, &Test)| PlannedTest { plan, document: test.document() };
    (tests.into_iter().map(planned).collect(), found.into_vec())
}

/// Rejects two tests with the same id: the second would replace the first.
fn refuse_same_ids(tests: &[(Plan, &Test)], found: &Diagnostics) {
    let mut places: BTreeMap<&TestId, Span> = BTreeMap::new();
    for (plan, test) in tests {
        let place = found.text().first_line(test.id_span());
        match places.get(&plan.id) {
            Some(first) => found.push(
                found
                    .error(place, format!("two tests have the id `{}`", plan.id))
                    .label("the second")
                    .also(*first, "the first")
                    .help("give one of them an `id` of its own"),
            ),
            None => drop(places.insert(&plan.id, place)),
        }
    }
}
