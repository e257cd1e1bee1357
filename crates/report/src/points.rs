//! An outcome as a list of things that hold or do not: what JUnit calls a test case and TAP a test point.
//!
//! Deliberately absent: the syntax of any form. The texts here can be seen and are cut, and that is all.

use model::{
    AssertionJudgement, ClaimJudgement, Outcome, Place, SpanEvidence, SpecJudgement, Verdict,
};

use crate::{
    text::{no_command, shown, unfolded},
    totals::counted,
    why::whys,
};

/// How much of a sentence is shown.
pub(crate) const PROSE_CHARS_MAX: usize = 600;
/// How much of a selector, an assertion, a value or a comparison is shown.
pub(crate) const VALUE_CHARS_MAX: usize = 240;
/// How much of a name is shown.
pub(crate) const NAME_CHARS_MAX: usize = 100;
/// How much of a path is shown: one that is cut leads nowhere.
pub(crate) const PATH_CHARS_MAX: usize = 1024;
/// How many spans of an assertion are listed.
pub(crate) const SPANS_MAX: usize = 10;

/// An assertion, a claim, or the run itself.
pub(crate) struct Point<'a> {
    /// The name or the selector of the spec, the name of the claim; empty where there is none.
    pub(crate) subject: String,
    /// What should hold.
    pub(crate) words: String,
    /// Where it stands; none for the run itself.
    pub(crate) place: Option<&'a Place>,
    pub(crate) verdict: Verdict,
    pub(crate) reason: Option<String>,
    pub(crate) spans: &'a [SpanEvidence],
    pub(crate) more_spans: u64,
}

/// The assertions and the claims, and the run itself where they do not explain its verdict.
///
/// A run without any, one that a gate of the analyzer stopped and one that never came to its specs must not look like
/// a success because nothing in the list failed.
pub(crate) fn points(outcome: &Outcome) -> Vec<Point<'_>> {
    let mut points = checks(outcome);
    let explained = Verdict::over(points.iter().map(|point| point.verdict));
    if points.is_empty() || explained != outcome.verdict {
        let whys = whys(outcome);
        points.push(Point {
            subject: String::new(),
            words: "the run as a whole".to_owned(),
            place: None,
            verdict: outcome.verdict,
            reason: (!whys.is_empty()).then(|| shown(&whys.join("; "), PROSE_CHARS_MAX)),
            spans: &[],
            more_spans: 0,
        });
    }
    points
}

/// The assertions, then the claims, each in the order of the document.
pub(crate) fn checks(outcome: &Outcome) -> Vec<Point<'_>> {
    let judgement = &outcome.judgement;
    let assertions = judgement.specs.iter().flat_map(|spec| {
        spec.assertions.iter().map(move |assertion| of_assertion(spec, assertion))
    });
    assertions.chain(judgement.claims.iter().map(of_claim)).collect()
}

/// An assertion of a spec.
pub(crate) fn of_assertion<'a>(
    spec: &SpecJudgement,
    assertion: &'a AssertionJudgement,
) -> Point<'a> {
    Point {
        subject: match &spec.name {
            Some(name) => shown(name, NAME_CHARS_MAX),
            None => selector(spec),
        },
        words: unfolded(&assertion.assertion, VALUE_CHARS_MAX),
        place: Some(&assertion.place),
        verdict: assertion.verdict,
        reason: assertion.reason.as_deref().map(|reason| shown(reason, PROSE_CHARS_MAX)),
        spans: &assertion.spans,
        more_spans: assertion.more_spans,
    }
}

/// A claim.
pub(crate) fn of_claim(claim: &ClaimJudgement) -> Point<'_> {
    Point {
        subject: claim.name.as_deref().map(|name| shown(name, NAME_CHARS_MAX)).unwrap_or_default(),
        words: unfolded(&claim.claim, VALUE_CHARS_MAX),
        place: Some(&claim.place),
        verdict: claim.verdict,
        reason: claim.reason.as_deref().map(|reason| shown(reason, PROSE_CHARS_MAX)),
        spans: &claim.spans,
        more_spans: claim.more_spans,
    }
}

/// The selector of a spec, in words where it is empty.
pub(crate) fn selector(spec: &SpecJudgement) -> String {
    match unfolded(&spec.selector, VALUE_CHARS_MAX) {
        none if none.is_empty() => "every span".to_owned(),
        selector => selector,
    }
}

/// In which order verdicts are told.
pub(crate) fn urgency(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Failed => 0,
        Verdict::Inconclusive => 1,
        Verdict::Passed => 2,
    }
}

/// A place as editors take it.
pub(crate) fn placed(place: &Place) -> String {
    format!("{}:{}:{}", shown(&place.file, PATH_CHARS_MAX), place.line, place.column)
}

impl Point<'_> {
    /// `spec: assertion`, `name: claim`, or the words alone.
    pub(crate) fn title(&self) -> String {
        match self.subject.as_str() {
            "" => self.words.clone(),
            subject => format!("{subject}: {}", self.words),
        }
    }

    /// Why, in one line.
    pub(crate) fn message(&self) -> String {
        let decisive = self.spans.iter().find(|span| span.verdict == self.verdict);
        match (&self.reason, decisive) {
            (Some(reason), _) => reason.clone(),
            (None, Some(span)) => found(span),
            (None, None) => self.verdict.as_str().to_owned(),
        }
    }

    /// The spans that are listed.
    pub(crate) fn listed(&self) -> &[SpanEvidence] {
        &self.spans[..self.spans.len().min(SPANS_MAX)]
    }

    /// `and 2 more spans`, where some are not listed.
    pub(crate) fn unlisted(&self) -> Option<String> {
        let left_out = (self.spans.len() - self.listed().len()) as u64;
        match self.more_spans.saturating_add(left_out) {
            0 => None,
            more => Some(format!("and {}", counted(more, "more span"))),
        }
    }

    /// What was found, a line for each span that is listed.
    pub(crate) fn found(&self) -> Vec<String> {
        let listed = self.listed().iter();
        let listed = listed.map(|span| format!("{}: {}", span.verdict.as_str(), found(span)));
        listed.chain(self.unlisted()).collect()
    }

    /// The evidence in lines of text: the place, the reason, what was found.
    pub(crate) fn evidence(&self) -> Vec<String> {
        let place = self.place.map(placed);
        let lines = place.into_iter().chain(self.reason.clone()).chain(self.found());
        lines.map(|line| no_command(&line)).collect()
    }
}

/// What was found, and at which span.
fn found(span: &SpanEvidence) -> String {
    let name = shown(&span.name, NAME_CHARS_MAX);
    let found = shown(&span.found, VALUE_CHARS_MAX);
    match span.span_id {
        Some(id) if name.is_empty() => format!("{id}: {found}"),
        Some(id) => format!("{name} ({id}): {found}"),
        None if name.is_empty() => found,
        None => format!("{name}: {found}"),
    }
}
