//! Test suites: the tests to run, and the dependencies between them.
//!
//! A step waits for the previous step, as in Tracetest, unless it declares its dependencies with `needs`.

use std::collections::BTreeMap;

use model::{Place, TestId};
use source::{Diagnostics, Item, Scalar, Span, did_you_mean};

use super::{Reference, place_at, read_name, take_read_only};

/// A suite of tests.
#[derive(Clone, Debug)]
pub struct TestSuite {
    /// The id under which it is stored, with the syntax of a test id; by default derived from the name.
    pub id: TestId,
    /// The display name.
    pub name: String,
    /// The steps in the order written. Their dependencies have no cycle.
    pub steps: Vec<Step>,
}

/// A step of a suite.
#[derive(Clone, Debug)]
pub struct Step {
    /// The name by which other steps refer to it: its own name, else its test as written.
    pub name: String,
    /// The test to run.
    pub test: Reference,
    /// The indexes of the steps that have to end first.
    pub needs: Vec<usize>,
    /// The location of the step.
    pub place: Place,
}

/// The maximum number of steps of a suite.
const STEPS_MAX: usize = 10_000;

/// The maximum number of steps of a cycle that a message names.
const CIRCLE_SHOWN_MAX: usize = 8;

/// The keys that an export adds.
const READ_ONLY: &[&str] = &["version", "createdAt", "summary", "fullSteps"];

/// A step as written.
struct StepSource<'a> {
    name: &'a Scalar,
    test: &'a Scalar,
    reference: Reference,
    /// `None`: the previous step.
    needs: Option<Vec<&'a Scalar>>,
    span: Span,
}

impl TestSuite {
    pub(super) fn read(item: &Item<'_>, found: &Diagnostics) -> Option<Self> {
        let mut fields = item.fields()?;
        let (id, name) = read_name(&mut fields);
        fields.take("description").and_then(|description| description.text());
        let steps = fields.list("steps").unwrap_or_default();
        take_read_only(&mut fields, READ_ONLY);
        fields.finish();
        if name.is_none() && id.is_none() {
            found.push(found.error(item.head(), "missing key `name` in `spec`"));
        }
        if steps.len() > STEPS_MAX {
            let message = format!("a suite has at most {STEPS_MAX} steps");
            found.push(found.error(item.head(), message));
            return None;
        }
        let steps: Vec<_> = steps.iter().filter_map(|step| read_step(step, found)).collect();
        let steps = connect(&steps, found);
        let made = match (id, name) {
            (Some(id), _) => {
                id.text.parse().map_err(|error| found.error(id.span, format!("{error}")))
            }
            (None, Some(name)) => TestId::from_name(&name.text).map_err(|_| {
                let mistake = found.error(name.span, "no id can be made from the suite's name");
                mistake.help("give the suite an `id` of letters, digits, `.`, `_` or `-`")
            }),
            (None, None) => return None,
        };
        let made: TestId = made.map_err(|mistake| found.push(mistake)).ok()?;
        Some(Self { id: made, name: name.or(id)?.text.clone(), steps })
    }
}

fn read_step<'a>(item: &Item<'a>, found: &Diagnostics) -> Option<StepSource<'a>> {
    let span = found.text().first_line(item.node.span);
    if item.node.as_table().is_none() {
        let test = item.text()?;
        let reference = Reference::new(test, found.text());
        return Some(StepSource { name: test, test, reference, needs: None, span });
    }
    let mut fields = item.fields()?;
    let name = fields.take("name").and_then(|name| name.text());
    let [test, id, file] = ["test", "id", "file"].map(|key| fields.take(key));
    let needs = fields.list("needs");
    fields.finish();
    let given: Vec<_> = [&test, &id, &file].into_iter().flatten().collect();
    let [one] = given.as_slice() else {
        let mistake = found.error(span, format!("`{}` must name one test", item.path));
        found.push(mistake.help("write `test: ` and the id or the file of a test"));
        return None;
    };
    let written = one.text()?;
    let reference = if file.is_some() {
        Reference::File(super::FileRef::new(written, found.text()))
    } else if id.is_some() {
        Reference::Id(written.text.clone())
    } else {
        Reference::new(written, found.text())
    };
    let needs = needs.map(|needs| needs.iter().filter_map(Item::text).collect());
    Some(StepSource { name: name.unwrap_or(written), test: written, reference, needs, span })
}

/// Resolves the dependencies of the steps and reports their errors.
fn connect(written: &[StepSource<'_>], found: &Diagnostics) -> Vec<Step> {
    let mut named: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (index, step) in written.iter().enumerate() {
        named.entry(&step.name.text).or_default().push(index);
    }
    let mut steps = Vec::with_capacity(written.len());
    for (index, step) in written.iter().enumerate() {
        let needs = match &step.needs {
            None => index.checked_sub(1).into_iter().collect(),
            Some(needs) => {
                needs.iter().filter_map(|need| find(need, index, &named, found)).collect()
            }
        };
        steps.push(Step {
            name: step.name.text.clone(),
            test: step.reference.clone(),
            needs,
            place: place_at(step.test.span, found.text()),
        });
    }
    if let Some(circle) = circle(&steps) {
        let shown = circle.iter().take(CIRCLE_SHOWN_MAX);
        let names: Vec<_> = shown.map(|step| format!("`{}`", steps[*step].name)).collect();
        let more = if circle.len() > CIRCLE_SHOWN_MAX { " needs …" } else { "" };
        let span = circle.first().map(|step| written[*step].span);
        let message = format!("these steps wait for each other: {}{more}", names.join(" needs "));
        let mistake = found.error(span, message);
        found.push(mistake.help("a step without `needs` waits for the one before it"));
    }
    steps
}

fn find(
    need: &Scalar,
    step: usize,
    named: &BTreeMap<&str, Vec<usize>>,
    found: &Diagnostics,
) -> Option<usize> {
    match named.get(need.text.as_str()).map(Vec::as_slice) {
        Some([one]) if *one == step => {
            found.push(found.error(need.span, format!("`{}` needs itself", need.text)));
            None
        }
        Some([one]) => Some(*one),
        Some(_) => {
            let message = format!("several steps are called `{}`", need.text);
            found.push(found.error(need.span, message).help("give each a `name` of its own"));
            None
        }
        None => {
            let mistake = found.error(need.span, format!("there is no step `{}`", need.text));
            let near = did_you_mean(&need.text, named.keys().copied());
            found.push(mistake.suggest(near));
            None
        }
    }
}

/// Returns a cycle along `needs`, if there is one; its first step is repeated at the end.
fn circle(steps: &[Step]) -> Option<Vec<usize>> {
    // The number of dependencies of each step that were visited; a step that the search has left is in no cycle.
    let mut looked = vec![0; steps.len()];
    let mut seen = vec![VisitState::Never; steps.len()];
    for start in 0..steps.len() {
        let mut way = if seen[start] == VisitState::Never { vec![start] } else { Vec::new() };
        while let Some(step) = way.last().copied() {
            seen[step] = VisitState::OnTheWay;
            let Some(need) = steps[step].needs.get(looked[step]).copied() else {
                seen[step] = VisitState::Left;
                way.pop();
                continue;
            };
            looked[step] += 1;
            match seen[need] {
                VisitState::Never => way.push(need),
                VisitState::Left => {}
                VisitState::OnTheWay => {
                    let begin = way.iter().position(|passed| *passed == need).unwrap_or(0);
                    way.drain(..begin);
                    way.push(need);
                    return Some(way);
                }
            }
        }
    }
    None
}

/// The state of a step in the search for a cycle.
#[derive(Clone, Copy, PartialEq, Eq)]
enum VisitState {
    Never,
    OnTheWay,
    Left,
}
