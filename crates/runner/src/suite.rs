//! The graph of a suite: computes the steps that may start from the steps that ended.
//!
//! A pure function, so that each caller can store the ended steps in its own way. Deliberately absent: running steps.

use std::collections::BTreeSet;

use lang::Step;
use model::Verdict;

/// The next steps of a suite.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Next {
    /// Steps that may start, or that already run: all steps that they need have passed.
    pub ready: Vec<usize>,
    /// Steps that will never start: a step that they need did not pass, or will never start itself.
    pub skipped: Vec<usize>,
}

/// Returns the next steps, given the verdict of each step; none for a step that did not end.
///
/// A skipped step may be passed as inconclusive or as not ended: the steps that need it are skipped as well.
pub fn next(steps: &[Step], ended: &[Option<Verdict>]) -> Next {
    let verdict = |step: usize| ended.get(step).copied().flatten();
    let mut users: Vec<Vec<usize>> = vec![Vec::new(); steps.len()];
    for (index, step) in steps.iter().enumerate() {
        for need in &step.needs {
            if let Some(users) = users.get_mut(*need) {
                users.push(index);
            }
        }
    }
    let mut is_skipped = vec![false; steps.len()];
    let did_not_pass = |step: &usize| verdict(*step).is_some_and(|it| it != Verdict::Passed);
    let mut stopped: Vec<usize> = (0..steps.len()).filter(did_not_pass).collect();
    while let Some(step) = stopped.pop() {
        for user in &users[step] {
            if verdict(*user).is_none() && !std::mem::replace(&mut is_skipped[*user], true) {
                stopped.push(*user);
            }
        }
    }
    let mut next = Next::default();
    for (index, step) in steps.iter().enumerate().filter(|(index, _)| verdict(*index).is_none()) {
        if is_skipped[index] {
            next.skipped.push(index);
        } else if step.needs.iter().all(|need| verdict(*need) == Some(Verdict::Passed)) {
            next.ready.push(index);
        }
    }
    next
}

/// Returns all steps that have to end before this one, in the order of the document.
pub fn needed(steps: &[Step], step: usize) -> BTreeSet<usize> {
    let mut needed = BTreeSet::new();
    let mut open = steps[step].needs.clone();
    while let Some(next) = open.pop() {
        if needed.insert(next) {
            open.extend(&steps[next].needs);
        }
    }
    needed
}

#[cfg(test)]
mod tests {
    use lang::{Document, Step};
    use model::Verdict::{self, Failed, Inconclusive, Passed};
    use source::Text;

    use super::{Next, needed, next};

    /// a, b after a, c after a, d after b and c, e by itself.
    fn steps() -> Vec<Step> {
        let suite = "type: TestSuite
spec:
  name: shop
  steps:
    - {test: a, needs: []}
    - {test: b, needs: [a]}
    - {test: c, needs: [a]}
    - {test: d, needs: [b, c]}
    - {test: e, needs: []}
";
        let (documents, mistakes) = lang::read(&Text::new("suite.yaml", suite));
        assert!(mistakes.is_empty(), "{}", source::draw(&mistakes, source::Colour::Never));
        let suite = documents.into_iter().find_map(|document| match document {
            Document::TestSuite(suite) => Some(suite.steps.clone()),
            _ => None,
        });
        suite.expect("one suite")
    }

    #[test]
    fn a_step_starts_when_all_it_needs_has_passed() {
        const NOT: Option<Verdict> = None;
        let (passed, failed, open) = (Some(Passed), Some(Failed), Some(Inconclusive));
        type Case = ([Option<Verdict>; 5], &'static [usize], &'static [usize]);
        let cases: [Case; 9] = [
            ([NOT; 5], &[0, 4], &[]),
            ([passed, NOT, NOT, NOT, NOT], &[1, 2, 4], &[]),
            ([passed, passed, NOT, NOT, NOT], &[2, 4], &[]),
            ([passed, passed, passed, NOT, passed], &[3], &[]),
            ([passed, failed, NOT, NOT, passed], &[2], &[3]),
            ([passed, failed, passed, open, passed], &[], &[]),
            ([failed, NOT, NOT, NOT, NOT], &[4], &[1, 2, 3]),
            ([open, open, NOT, NOT, NOT], &[4], &[2, 3]),
            ([passed; 5], &[], &[]),
        ];
        for (ended, ready, skipped) in cases {
            let expected = Next { ready: ready.to_vec(), skipped: skipped.to_vec() };
            assert_eq!(next(&steps(), &ended), expected, "{ended:?}");
        }
    }

    #[test]
    fn what_a_step_needs_it_needs_through_others_too() {
        let needs = |step| needed(&steps(), step).into_iter().collect::<Vec<_>>();
        assert_eq!(
            [needs(0), needs(1), needs(3), needs(4)],
            [vec![], vec![0], vec![0, 1, 2], vec![]]
        );
    }
}
