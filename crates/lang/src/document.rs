//! Documents as they were written: each string with its place, nothing of it understood yet.

use std::time::Duration;

use source::{Scalar, Span, Text};

use crate::plan::Settle;

/// A document of a file.
#[derive(Clone, Debug)]
pub enum Document {
    /// `type: Test`
    Test(Test),
}

/// A test as written; [`compile`](crate::compile) makes a plan of it.
#[derive(Clone, Debug)]
pub struct Test {
    pub(crate) text: Text,
    /// The document's first line, for what is missing.
    pub(crate) span: Span,
    /// All of the document.
    pub(crate) whole: Span,
    /// Whether reading found a mistake, so that no plan can be made.
    pub(crate) is_broken: bool,
    pub(crate) id: Option<Scalar>,
    pub(crate) name: Option<Scalar>,
    pub(crate) trigger: Option<Trigger>,
    pub(crate) specs: Vec<Spec>,
    pub(crate) outputs: Vec<Output>,
    pub(crate) skip_trace_collection: bool,
    pub(crate) settle: Settle,
}

/// An HTTP trigger.
#[derive(Clone, Debug)]
pub(crate) struct Trigger {
    pub(crate) url: Scalar,
    pub(crate) method: Option<Scalar>,
    pub(crate) headers: Vec<(Scalar, Option<Scalar>)>,
    pub(crate) body: Option<Scalar>,
    pub(crate) timeout: Duration,
}

#[derive(Clone, Debug)]
pub(crate) struct Spec {
    /// Where it stands, for a spec without a selector.
    pub(crate) span: Span,
    pub(crate) name: Option<Scalar>,
    pub(crate) selector: Option<Scalar>,
    pub(crate) assertions: Vec<Scalar>,
}

#[derive(Clone, Debug)]
pub(crate) struct Output {
    pub(crate) name: Scalar,
    pub(crate) selector: Option<Scalar>,
    pub(crate) value: Scalar,
}

impl Test {
    /// The test's name as written, for messages about a test that may not compile.
    pub fn name(&self) -> Option<&str> {
        self.name.as_ref().map(|name| name.text.as_str())
    }

    /// Where its id stands, or the name that the id is made from.
    pub(crate) fn id_span(&self) -> Span {
        self.id.as_ref().or(self.name.as_ref()).map_or(self.span, |scalar| scalar.span)
    }

    /// The document without the others of its file, as a text in which it stands where it stood.
    pub fn document(&self) -> String {
        let at = self.text.place(self.whole.start);
        let (lines, columns) = ("\n".repeat(at.line - 1), " ".repeat(at.column - 1));
        format!("{lines}{columns}{}\n", self.text.slice(self.whole).trim_end())
    }
}
