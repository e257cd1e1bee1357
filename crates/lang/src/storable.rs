//! Parses a file into documents that a server stores, in one call.

use std::collections::BTreeSet;

use model::{DocumentKind, TestId};
use source::{Diagnostic, Diagnostics, Span, Text};

use crate::{
    document::{CURRENT, Document, NoticeContext, alone, read_placed},
    planned_test::plans_if_any,
};

/// A document that a server can store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StorableDocument {
    /// The kind of the document.
    pub kind: DocumentKind,
    /// The id under which it is stored: as written, else derived from its name, else `current`.
    pub id: TestId,
    /// The display name: as written, else the id.
    pub name: String,
    /// The document without the other documents of its file; a test is padded so that it keeps its line and column.
    pub document: String,
    /// The host that a test calls, if its URL names it without a variable.
    pub host: Option<String>,
}

/// Returns all documents of a file that a server stores, and all diagnostics of the file. With any error there are no documents.
/// `receiver` is the address at which the server receives OTLP, as a Collector is configured with it.
pub fn storable_documents(text: &Text, receiver: &str) -> (Vec<StorableDocument>, Vec<Diagnostic>) {
    let (planned, diagnostics) = plans_if_any(text);
    let found = Diagnostics::new(text);
    found.extend(diagnostics);
    if found.has_errors() {
        return (Vec::new(), found.into_vec());
    }
    let mut tests = planned.into_iter();
    let (mut kept, mut ids) = (Vec::new(), BTreeSet::new());
    for (document, span) in read_placed(text).0 {
        found.extend(document.notice(text, NoticeContext { receiver, is_server: true }));
        let one = match document {
            Document::Test(_) => tests.next().map(|test| {
                let host = test.plan.host();
                let (id, name) = (test.plan.id, test.plan.name);
                StorableDocument {
                    kind: DocumentKind::Test,
                    id,
                    name,
                    document: test.document,
                    host,
                }
            }),
            other => keep(&other, span, &found),
        };
        let Some(one) = one else { continue };
        if !ids.insert((one.kind, one.id.clone())) {
            let message = format!("two documents are the {} `{}`", one.kind, one.id);
            let mistake = found.error(text.first_line(span), message);
            found.push(mistake.help("give one of them an `id` of its own"));
        }
        kept.push(one);
    }
    if kept.is_empty() && !found.has_errors() {
        let message = format!("`{}` holds no document that a server keeps", text.name());
        found.push(found.error(None, message));
    }
    if found.has_errors() {
        kept.clear();
    }
    (kept, found.into_vec())
}

fn keep(document: &Document, span: Span, found: &Diagnostics) -> Option<StorableDocument> {
    let (kind, id, name) = match document {
        Document::Test(_) | Document::Ignored(_) => return None,
        Document::TestSuite(suite) => {
            (DocumentKind::TestSuite, Some(suite.id.as_str()), Some(suite.name.as_str()))
        }
        Document::VariableSet(it) => {
            (DocumentKind::VariableSet, it.id.as_deref(), it.name.as_deref())
        }
        Document::TraceStore(it) => {
            (DocumentKind::TraceStore, it.id.as_deref(), it.name.as_deref())
        }
        Document::SettleProfile(it) => {
            (DocumentKind::SettleProfile, it.id.as_deref(), it.name.as_deref())
        }
        // One analyzer and one quality gate apply to runs, whatever their name is.
        Document::Analyzer(it) => {
            let id = it.id.as_deref().unwrap_or(CURRENT);
            (DocumentKind::Analyzer, Some(id), it.name.as_deref())
        }
        Document::QualityGate(it) => {
            let id = it.id.as_deref().unwrap_or(CURRENT);
            (DocumentKind::QualityGate, Some(id), it.name.as_deref())
        }
    };
    let made = match (id, name) {
        (Some(id), _) => id.parse(),
        (None, Some(name)) => TestId::from_name(name),
        (None, None) => CURRENT.parse(),
    };
    match made {
        Ok(id) => {
            let name = name.map_or_else(|| id.as_str().to_owned(), str::to_owned);
            // No later diagnostic refers to a location in it, so its text does not depend on its position in the file.
            let document = alone(found.text(), span).trim_start_matches('\n').to_owned();
            Some(StorableDocument { kind, id, name, document, host: None })
        }
        Err(error) => {
            let mistake = found
                .error(found.text().first_line(span), format!("the {kind} has no id: {error}"));
            found.push(mistake.help("give it an `id` of letters, digits, `.`, `_` or `-`"));
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use source::{Colour, Text, draw};

    use super::storable_documents;

    fn read(content: &str) -> (Vec<(String, String, String)>, String) {
        let (kept, diagnostics) =
            storable_documents(&Text::new("all.yaml", content), "127.0.0.1:4317");
        let brief =
            kept.into_iter().map(|it| (it.kind.to_string(), it.id.to_string(), it.document));
        (brief.collect(), draw(&diagnostics, Colour::Never))
    }

    #[test]
    fn every_kind_is_kept_with_an_id_and_where_it_stood() {
        let (kept, told) = read(
            "type: VariableSet\nspec: {name: My Set, values: []}\n---\ntype: QualityGate\nspec: {}\n---\ntype: Config\nspec: {}\n",
        );
        let expected = [
            ("variable set", "my-set", "type: VariableSet\nspec: {name: My Set, values: []}\n"),
            ("quality gate", "current", "type: QualityGate\nspec: {}\n"),
        ];
        assert_eq!(kept, expected.map(|(a, b, c)| (a.to_owned(), b.to_owned(), c.to_owned())));
        assert!(told.contains("`Config` are ignored"), "{told}");
    }

    #[test]
    fn what_holds_for_no_run_is_told() {
        let cases = [
            ("type: QualityGate\nspec: {name: default}\n", "current", ""),
            ("type: Analyzer\nspec: {name: ours}\n", "current", ""),
            ("type: Analyzer\nspec: {id: strict}\n", "strict", "`strict` holds for no run"),
            ("type: QualityGate\nspec: {id: release}\n", "release", "`release` holds for no run"),
            (
                "type: TraceStore\nspec: {name: prod, type: jaeger, jaeger: {endpoint: a}}\n",
                "prod",
                "",
            ),
            (
                "type: TraceStore\nspec: {name: prod, type: zipkin, zipkin: {url: a, tls: {settings: {cAFile: b}}}}\n",
                "prod",
                "a server reads no file that a document names",
            ),
            (
                "type: TraceStore\nspec: {name: prod, type: awsxray, awsxray: {region: a}}\n",
                "prod",
                "a trace store of type `awsxray` is not queried",
            ),
            ("type: TraceStore\nspec: {name: prod, type: otlp}\n", "prod", ""),
        ];
        for (content, id, words) in cases {
            let (kept, told) = read(content);
            assert_eq!(kept[0].1, id, "{content}");
            assert!(told.contains(words) && told.is_empty() == words.is_empty(), "{told}");
        }
    }

    #[test]
    fn what_cannot_be_kept_is_refused() {
        let cases = [
            ("type: Config\nspec: {}\n", "holds no document that a server keeps"),
            ("type: VariableSet\nspec: {id: a b, values: []}\n", "the variable set has no id"),
            (
                "type: QualityGate\nspec: {}\n---\ntype: QualityGate\nspec: {}\n",
                "two documents are the quality gate `current`",
            ),
            ("type: Kest\nspec: {}\n", "did you mean `Test`?"),
        ];
        for (content, words) in cases {
            let (kept, told) = read(content);
            assert_eq!(kept.len(), 0, "{content}");
            assert!(told.contains(words), "{told}");
        }
    }
}
