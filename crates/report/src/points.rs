//! An outcome as a list of checks: JUnit calls one a test case, TAP a test point.
//!
//! Deliberately absent: the syntax of any format. The texts here are only made visible and truncated.

use model::{
    AssertionJudgement, ClaimJudgement, Outcome, Place, SpanEvidence, SpecJudgement, Verdict,
};

use crate::{
    text::{no_command, shown, unfolded},
    totals::counted,
    why::whys,
};

/// The upper bound for a sentence, in characters.
pub(crate) const PROSE_CHARS_MAX: usize = 600;
/// The upper bound for a selector, an assertion, a value or a comparison, in characters.
pub(crate) const VALUE_CHARS_MAX: usize = 240;
/// The upper bound for a name, in characters.
pub(crate) const NAME_CHARS_MAX: usize = 100;
/// The upper bound for a path, in characters; it is high since a truncated path is useless.
pub(crate) const PATH_CHARS_MAX: usize = 1024;
/// The upper bound for spans of an assertion that are listed.
pub(crate) const SPANS_MAX: usize = 10;

/// An assertion, a claim, or the run itself.
pub(crate) struct Point<'a> {
    /// The name or the selector of the spec, or the name of the claim; empty if there is none.
    pub(crate) subject: String,
    /// The condition that should hold.
    pub(crate) words: String,
    /// The location in the document; none for the run itself.
    pub(crate) place: Option<&'a Place>,
    pub(crate) verdict: Verdict,
    pub(crate) reason: Option<String>,
    pub(crate) spans: &'a [SpanEvidence],
    pub(crate) more_spans: u64,
}

/// Returns the assertions, the claims, and the run itself if they do not explain its verdict.
///
/// A run without any, a run that a gate of the analyzer stopped, and a run that never reached its specs must not look
/// like a success because nothing in the list failed.
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

/// Returns the assertions, then the claims, each in the order of the document.
pub(crate) fn checks(outcome: &Outcome) -> Vec<Point<'_>> {
    let judgement = &outcome.judgement;
    let assertions = judgement.specs.iter().flat_map(|spec| {
        spec.assertions.iter().map(move |assertion| of_assertion(spec, assertion))
    });
    assertions.chain(judgement.claims.iter().map(of_claim)).collect()
}

/// Returns the point of an assertion.
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

/// Returns the point of a claim.
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

/// Returns the selector of a spec, or `every span` if it is empty.
pub(crate) fn selector(spec: &SpecJudgement) -> String {
    match unfolded(&spec.selector, VALUE_CHARS_MAX) {
        none if none.is_empty() => "every span".to_owned(),
        selector => selector,
    }
}

/// Returns the sort order of a verdict in reports.
pub(crate) fn urgency(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Failed => 0,
        Verdict::Inconclusive => 1,
        Verdict::Passed => 2,
    }
}

/// Formats a location as `file:line:column`, which editors can open.
pub(crate) fn placed(place: &Place) -> String {
    format!("{}:{}:{}", shown(&place.file, PATH_CHARS_MAX), place.line, place.column)
}

impl Point<'_> {
    /// Returns `spec: assertion`, `name: claim`, or the words alone.
    pub(crate) fn title(&self) -> String {
        match self.subject.as_str() {
            "" => self.words.clone(),
            subject => format!("{subject}: {}", self.words),
        }
    }

    /// Returns the reason in one line.
    pub(crate) fn message(&self) -> String {
        let decisive = self.spans.iter().find(|span| span.verdict == self.verdict);
        match (&self.reason, decisive) {
            (Some(reason), _) => reason.clone(),
            (None, Some(span)) => found(span),
            (None, None) => self.verdict.as_str().to_owned(),
        }
    }

    /// Returns the spans that are listed.
    pub(crate) fn listed(&self) -> &[SpanEvidence] {
        &self.spans[..self.spans.len().min(SPANS_MAX)]
    }

    /// Returns `and 2 more spans`, if some are not listed.
    pub(crate) fn unlisted(&self) -> Option<String> {
        let left_out = (self.spans.len() - self.listed().len()) as u64;
        match self.more_spans.saturating_add(left_out) {
            0 => None,
            more => Some(format!("and {}", counted(more, "more span"))),
        }
    }

    /// Returns the found values, a line for each listed span.
    pub(crate) fn found(&self) -> Vec<String> {
        let listed = self.listed().iter();
        let listed = listed.map(|span| format!("{}: {}", span.verdict.as_str(), found(span)));
        listed.chain(self.unlisted()).collect()
    }

    /// Returns the evidence as lines of text: the location, the reason, the found values.
    pub(crate) fn evidence(&self) -> Vec<String> {
        let place = self.place.map(placed);
        let lines = place.into_iter().chain(self.reason.clone()).chain(self.found());
        lines.map(|line| no_command(&line)).collect()
    }
}

/// Returns the found value with its span.
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
