//! An outcome with every text in it replaced.

use model::{Body, Outcome, TextMut};

/// The same outcome with these texts, in turn, wherever a stranger's text stands.
pub(crate) fn rewritten(mut outcome: Outcome, texts: &[String]) -> Outcome {
    let mut next = texts.iter().cycle();
    for said in outcome.said_mut() {
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
