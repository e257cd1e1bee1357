//! Secrets taken out of a judgement, wherever their text has got to.
//!
//! What is computed from a secret is shown as `***` where it is computed; but the same text may come from a span, as the
//! value that was found or as a name. Short texts are left: they would be found everywhere.

use model::{Judgement, SpanEvidence};

/// Texts with fewer characters are not looked for.
const CHARS_MIN: usize = 6;

const MASK: &str = "***";

/// Replaces the texts of secrets in everything that a judgement says.
pub(super) fn mask(judgement: &mut Judgement, secrets: &[String]) {
    let mut secrets: Vec<&str> =
        secrets.iter().map(String::as_str).filter(|it| it.chars().count() >= CHARS_MIN).collect();
    if secrets.is_empty() {
        return;
    }
    // One may be a part of another.
    secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    let hide = |text: &mut String| {
        for secret in &secrets {
            if text.contains(secret) {
                *text = text.replace(secret, MASK);
            }
        }
    };
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
