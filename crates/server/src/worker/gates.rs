//! The gates of a project, from its stored analyzer and quality gate.
//!
//! A document that cannot be parsed is no reason to pass a run without it: the caller gets an error and does not judge.

use lang::{CURRENT, Document, Gates};
use model::DocumentKind;
use source::{Colour, Diagnostic, Text};

/// Returns the gates that the stored documents require of a run.
pub(crate) fn gates(analyzer: Option<&str>, runner: Option<&str>) -> Result<Gates, String> {
    let analyzer = analyzer.map(|document| read(DocumentKind::Analyzer, document)).transpose()?;
    let runner = runner.map(|document| read(DocumentKind::QualityGate, document)).transpose()?;
    let analyzer = analyzer.as_ref().and_then(|document| match document {
        Document::Analyzer(analyzer) => Some(analyzer),
        _ => None,
    });
    let runner = runner.as_ref().and_then(|document| match document {
        Document::QualityGate(runner) => Some(runner),
        _ => None,
    });
    Ok(Gates::new(analyzer, runner))
}

fn read(kind: DocumentKind, document: &str) -> Result<Document, String> {
    // The location is the path in the API, since the name of the document's file is not known here.
    let text = Text::new(format!("{}/{CURRENT}", kind.collection()), document);
    let (documents, diagnostics) = lang::read(&text);
    let is_right = !diagnostics.iter().any(Diagnostic::is_error);
    documents.into_iter().next().filter(|_| is_right).ok_or_else(|| {
        let picture = source::draw(&diagnostics, Colour::Never);
        format!("the {kind} `{CURRENT}` as it is stored cannot be read any more; apply it again\n{picture}")
    })
}
