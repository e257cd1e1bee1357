//! The verdicts of the statements of a run, and how they differ from those of another run.

use std::iter;

use model::{Outcome, UnsettledReason, Verdict};

/// What the reason of a statement contains that needs what the store does not keep.
const LACKS: [&str; 2] = ["` keeps no ", "its trace store does not keep every attribute"];

/// The statements of a run, in the order of its test.
pub(super) struct Statements {
    statements: Vec<(Verdict, IsLacking)>,
    /// Whether the store did not answer, or not completely.
    is_unread: bool,
}

/// Whether a statement needs what the store does not keep.
type IsLacking = bool;

/// How runs differ from those by OTLP.
#[derive(Default)]
pub(super) struct VerdictDifference {
    /// All statements.
    pub(super) statements: usize,
    /// Statements that are inconclusive because they need what the store does not keep.
    pub(super) lacking: usize,
    /// Statements with another verdict.
    pub(super) wrong: usize,
    /// Runs that are inconclusive because the store did not answer.
    pub(super) unread: usize,
}

/// Returns the statements of a run.
pub(super) fn statements(outcome: &Outcome) -> Statements {
    let judgement = &outcome.judgement;
    let assertions = judgement.specs.iter().flat_map(|spec| &spec.assertions);
    let assertions = assertions.map(|it| (it.verdict, &it.reason));
    let claims = judgement.claims.iter().map(|it| (it.verdict, &it.reason));
    let statements = assertions.chain(claims).map(|(verdict, reason)| {
        let is_lack = |it: &String| LACKS.iter().any(|words| it.contains(words));
        let is_lacking = reason.as_ref().is_some_and(is_lack);
        (verdict, verdict == Verdict::Inconclusive && is_lacking)
    });
    use UnsettledReason::{StorePartial, StoreUnread};
    let unsettled = outcome.settlement.iter().flat_map(|it| &it.unsettled);
    let is_unread = unsettled.into_iter().any(|it| matches!(it, StoreUnread(_) | StorePartial(_)));
    Statements { statements: statements.collect(), is_unread }
}

impl Statements {
    pub(super) fn verdicts(&self) -> Vec<Verdict> {
        self.statements.iter().map(|(verdict, _)| *verdict).collect()
    }
}

impl VerdictDifference {
    /// Adds a run.
    pub(super) fn add(&mut self, expected: &Statements, run: &Statements) {
        self.unread += usize::from(run.is_unread);
        if run.is_unread {
            return;
        }
        self.statements += expected.statements.len();
        self.wrong += expected.statements.len().abs_diff(run.statements.len());
        for ((expected, _), (verdict, is_lacking)) in
            iter::zip(&expected.statements, &run.statements)
        {
            self.lacking += usize::from(*is_lacking);
            self.wrong += usize::from(expected != verdict && !is_lacking);
        }
    }
}
