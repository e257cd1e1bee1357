//! An outcome with every text in it replaced.

use model::{Body, Outcome, TextMut};

/// Returns the same outcome with these texts, in turn, in place of every untrusted text.
pub(crate) fn rewritten(mut outcome: Outcome, texts: &[String]) -> Outcome {
    let mut next = texts.iter().cycle();
    for said in outcome.texts_mut() {
        match said {
            TextMut::Text(text) => *text = next.next().cloned().unwrap_or_default(),
            TextMut::Body(body) => {
                *body = Body::Text(next.next().cloned().unwrap_or_default().into());
            }
            TextMut::Bytes(_) => {}
        }
    }
    outcome
}
