//! An outcome with every text in it replaced.

use model::{Answer, Outcome, Place, SpanEvidence};

/// The same outcome with these texts, in turn, wherever a stranger's text stands.
pub(crate) fn rewritten(mut outcome: Outcome, texts: &[String]) -> Outcome {
    let mut next = texts.iter().cycle();
    let mut put = |text: &mut String| *text = next.next().cloned().unwrap_or_default();
    put(&mut outcome.test);
    outcome.reasons.iter_mut().for_each(&mut put);
    for diagnosis in &mut outcome.diagnoses {
        put(&mut diagnosis.says);
        put(&mut diagnosis.advice);
    }
    outcome.overtaken.iter_mut().flat_map(|late| &mut late.service).for_each(&mut put);
    let answer = outcome.answer.iter_mut();
    answer.flat_map(Answer::texts_mut).for_each(&mut put);
    let judgement = &mut outcome.judgement;
    for spec in &mut judgement.specs {
        spec.name.iter_mut().for_each(&mut put);
        put(&mut spec.selector);
        place(&mut spec.place, &mut put);
        for assertion in &mut spec.assertions {
            put(&mut assertion.assertion);
            place(&mut assertion.place, &mut put);
            assertion.reason.iter_mut().for_each(&mut put);
            evidence(&mut assertion.spans, &mut put);
        }
    }
    for claim in &mut judgement.claims {
        claim.name.iter_mut().for_each(&mut put);
        put(&mut claim.claim);
        place(&mut claim.place, &mut put);
        claim.reason.iter_mut().for_each(&mut put);
        evidence(&mut claim.spans, &mut put);
    }
    for output in &mut judgement.outputs {
        put(&mut output.name);
        output.value.iter_mut().for_each(&mut put);
        output.reason.iter_mut().for_each(&mut put);
    }
    for span in &mut judgement.tree {
        put(&mut span.name);
        span.service.iter_mut().for_each(&mut put);
    }
    for plugin in outcome.analysis.iter_mut().flat_map(|analysis| &mut analysis.plugins) {
        put(&mut plugin.id);
        for rule in &mut plugin.rules {
            put(&mut rule.id);
            for finding in &mut rule.findings {
                put(&mut finding.name);
                put(&mut finding.message);
            }
        }
    }
    outcome
}

fn place(place: &mut Place, put: &mut impl FnMut(&mut String)) {
    put(&mut place.file);
}

fn evidence(spans: &mut [SpanEvidence], put: &mut impl FnMut(&mut String)) {
    for span in spans {
        put(&mut span.name);
        put(&mut span.found);
    }
}
