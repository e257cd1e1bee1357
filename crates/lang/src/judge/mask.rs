//! Secrets taken out of a judgement and of an answer, wherever their text has got to.
//!
//! What is computed from a secret is shown as `***` where it is computed; but the same text may come from a span, as the
//! value that was found or as a name. Short texts are left: they would be found everywhere.

use model::{Answer, Judgement, SpanEvidence};

use crate::{plan::Resolved, request::Asked};

use super::Taken;

/// Texts with fewer characters are not looked for.
const CHARS_MIN: usize = 6;

pub(super) const MASK: &str = "***";

/// A value, marked as secret where it holds the text of one.
pub(super) fn marked(taken: Taken, secrets: &[String]) -> Taken {
    let secrets = Secrets::of(secrets);
    let is_secret = taken.is_secret || secrets.0.iter().any(|it| taken.value.contains(it));
    Taken { is_secret, ..taken }
}

impl Resolved {
    /// Keeps secret what was computed from secrets for the request.
    pub fn hide(&mut self, asked: &Asked) {
        self.secrets.extend(asked.secrets.iter().map(|secret| secret.expose().to_owned()));
    }

    /// The answer as it may be told, with the texts of secrets replaced.
    pub fn masked(&self, answer: &Answer) -> Answer {
        let mut answer = answer.clone();
        let secrets = Secrets::of(&self.secrets);
        answer.texts_mut().into_iter().for_each(|text| secrets.hide(text));
        answer
    }
}

/// The texts that are looked for, the longest first: one may be a part of another.
struct Secrets<'a>(Vec<&'a str>);

impl<'a> Secrets<'a> {
    fn of(secrets: &'a [String]) -> Self {
        let is_long = |secret: &&str| secret.chars().count() >= CHARS_MIN;
        let mut secrets: Vec<_> = secrets.iter().map(String::as_str).filter(is_long).collect();
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        Self(secrets)
    }

    fn hide(&self, text: &mut String) {
        for secret in &self.0 {
            if text.contains(secret) {
                *text = text.replace(secret, MASK);
            }
        }
    }
}

/// Replaces the texts of secrets in everything that a judgement says.
pub(super) fn mask(judgement: &mut Judgement, secrets: &[String]) {
    let secrets = Secrets::of(secrets);
    if secrets.0.is_empty() {
        return;
    }
    let hide = |text: &mut String| secrets.hide(text);
    let hide_in = |spans: &mut [SpanEvidence]| {
        for span in spans {
            hide(&mut span.name);
            hide(&mut span.found);
        }
    };
    for spec in &mut judgement.specs {
        spec.name.iter_mut().for_each(hide);
        hide(&mut spec.selector);
        for assertion in &mut spec.assertions {
            hide(&mut assertion.assertion);
            assertion.reason.iter_mut().for_each(hide);
            hide_in(&mut assertion.spans);
        }
    }
    for claim in &mut judgement.claims {
        claim.name.iter_mut().for_each(hide);
        hide(&mut claim.claim);
        claim.reason.iter_mut().for_each(hide);
        hide_in(&mut claim.spans);
    }
    for output in &mut judgement.outputs {
        output.value.iter_mut().chain(&mut output.reason).for_each(hide);
    }
    for span in &mut judgement.tree {
        hide(&mut span.name);
        span.service.iter_mut().for_each(hide);
    }
}
