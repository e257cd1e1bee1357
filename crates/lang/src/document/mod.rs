//! Documents as written: their structure is parsed, the strings of tests are not parsed yet.
//!
//! [`read`] returns every document of a file and all diagnostics of their structure at once. A feature of Tracetest, the
//! predecessor, that this language does not have is rejected or reported, never silently ignored; only the fields that Tracetest
//! itself adds to exports are ignored. Deliberately absent: the meaning of the strings of a test (`compile`), and reading the
//! files that a document names ([`FileRef`]).

mod notice;
mod settings;
mod settle;
mod store_config;
mod suite;
mod test;
pub mod trace_store;
mod trigger;
mod variable_set;

use std::time::Duration;

use model::Place;
use source::{
    Diagnostic, Diagnostics, Fields, Item, Node, Scalar, Span, Text, did_you_mean, read_yaml,
};

pub use notice::NoticeContext;
pub use settings::{Analyzer, CURRENT, Gate, QualityGate, RequiredGate, SettleProfile};
pub use settle::Settle;
pub use store_config::StoreInputs;
pub use suite::{Step, TestSuite};
pub use test::Test;
pub(crate) use test::{ClaimSource, OutputSource, SpecSource};
pub use trace_store::TraceStore;
pub(crate) use trigger::{
    Auth, Call, Command, Content, Exec, FieldForm, FieldValue, Graphql, Header, HttpTrigger,
    JsonTemplate, KeyPlace, METHODS, REDIRECTS, REDIRECTS_MAX, TYPES, Trigger, TriggerKind,
    TriggerTls, TriggerType, trigger_types,
};
pub use variable_set::{Variable, VariableSet};

/// A document of a file.
#[derive(Clone, Debug)]
pub enum Document {
    /// `type: Test`
    Test(Box<Test>),
    /// `type: TestSuite`, and `Transaction`.
    TestSuite(TestSuite),
    /// `type: VariableSet`, and `Environment`.
    VariableSet(VariableSet),
    /// `type: TraceStore`, and `DataStore`.
    TraceStore(Box<TraceStore>),
    /// `type: SettleProfile`, and `PollingProfile`.
    SettleProfile(SettleProfile),
    /// `type: Analyzer`
    Analyzer(Analyzer),
    /// `type: QualityGate`, and `TestRunner`.
    QualityGate(QualityGate),
    /// A kind that configures Tracetest's server: its name.
    Ignored(String),
}

/// A file that a document names. The caller that compiles the document reads it, or does not need it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileRef {
    /// The path as written; relative to the file of the document.
    pub path: String,
    /// The location of the path.
    pub place: Place,
}

/// Another document, named by its id or by its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reference {
    /// The id as written.
    Id(String),
    /// The file with the document.
    File(FileRef),
}

/// The longest time that a document may declare for a run to wait.
const WAIT_MAX: Duration = Duration::from_secs(60 * 60);

/// The kinds of documents: each accepted name, and its canonical name.
pub(crate) const KINDS: &[(&str, &str)] = &[
    ("Test", "Test"),
    ("TestSuite", "TestSuite"),
    ("Transaction", "TestSuite"),
    ("VariableSet", "VariableSet"),
    ("Environment", "VariableSet"),
    ("TraceStore", "TraceStore"),
    ("DataStore", "TraceStore"),
    ("SettleProfile", "SettleProfile"),
    ("PollingProfile", "SettleProfile"),
    ("Analyzer", "Analyzer"),
    ("QualityGate", "QualityGate"),
    ("TestRunner", "QualityGate"),
    ("Config", "Config"),
    ("Demo", "Demo"),
];

/// Keys that a wrong indentation may put next to `spec`.
const KEYS_OF_SPEC: &[&str] = &["name", "trigger", "specs", "trace", "outputs", "steps"];

/// Kinds of Tracetest that configure its server and have no meaning here.
const IGNORED_KINDS: &[&str] = &["Config", "Demo"];

/// Kinds that only the paid product had.
const PAID_KINDS: &[&str] = &["RunGroup", "Monitor", "Organization", "EnvironmentToken", "Invite"];

/// The keys by which a paid `Environment` differs from the older name of a `VariableSet`.
const PAID_ENVIRONMENT: &[&str] = &["resources", "agentConfiguration", "organizationID"];

/// Returns the names of all kinds of documents except a test.
pub fn kinds_beside_test() -> impl Iterator<Item = &'static str> {
    KINDS.iter().map(|(name, _)| *name).filter(|name| *name != "Test")
}

/// Parses all documents of a file, as far as they are valid, and returns all diagnostics.
pub fn read(text: &Text) -> (Vec<Document>, Vec<Diagnostic>) {
    let (documents, mistakes) = read_placed(text);
    (documents.into_iter().map(|(document, _)| document).collect(), mistakes)
}

/// Does the same, and returns each document with its span.
pub(crate) fn read_placed(text: &Text) -> (Vec<(Document, Span)>, Vec<Diagnostic>) {
    let (nodes, mistakes) = read_yaml(text);
    let all = Diagnostics::new(text);
    all.extend(mistakes);
    let is_valid = !all.has_errors();
    let mut documents = Vec::new();
    for node in &nodes {
        let found = Diagnostics::new(text);
        let document = read_document(node, &found);
        let is_broken = found.has_errors() || !is_valid;
        let document = document.and_then(|document| match document {
            Document::Test(test) => {
                Some(Document::Test(Box::new(Test { is_broken, whole: node.span, ..*test })))
            }
            // The strings of a broken test are still checked; no other document has strings.
            document => (!found.has_errors()).then_some(document),
        });
        documents.extend(document.map(|document| (document, node.span)));
        all.extend(found.into_vec());
    }
    (documents, all.into_vec())
}

/// Returns a document without the other documents of its file, padded so that it keeps its line and column.
pub(crate) fn alone(text: &Text, whole: Span) -> String {
    let at = text.place(whole.start);
    let (lines, columns) = ("\n".repeat(at.line - 1), " ".repeat(at.column - 1));
    // A comment after its last value may explain a diagnostic, so it is included.
    let rest = text.content().get(whole.end..).unwrap_or_default();
    let is_comment = |line: &&str| line.trim_start().starts_with('#');
    let comment = rest.lines().next().filter(is_comment).unwrap_or_default();
    let document = format!("{}{comment}", text.slice(whole));
    format!("{lines}{columns}{}\n", document.trim_end())
}

fn read_document(node: &Node, found: &Diagnostics) -> Option<Document> {
    let mut root = Fields::of(node, "the document", found)?;
    let kind = root.require("type").and_then(|kind| kind.text());
    let spec = root.require("spec");
    let beside: Vec<_> = KEYS_OF_SPEC.iter().filter(|key| node.get(key).is_some()).collect();
    for (key, item) in beside.into_iter().filter_map(|key| Some((key, root.take(key)?))) {
        let mistake = found.error(item.head(), format!("`{key}` is beside `spec`"));
        found.push(mistake.help("indent it, so that it is under `spec`"));
    }
    root.finish();
    let (kind, spec) = (kind?, spec?);
    match kind.text.as_str() {
        "Test" => Test::read(&spec, found).map(|test| Document::Test(Box::new(test))),
        "TestSuite" | "Transaction" => TestSuite::read(&spec, found).map(Document::TestSuite),
        "Environment" if is_paid_environment(spec.node) => {
            found.push(paid(kind, found));
            None
        }
        "VariableSet" | "Environment" => VariableSet::read(&spec, found).map(Document::VariableSet),
        "TraceStore" | "DataStore" => {
            TraceStore::read(&spec, found).map(|store| Document::TraceStore(Box::new(store)))
        }
        "SettleProfile" | "PollingProfile" => {
            SettleProfile::read(&spec, found).map(Document::SettleProfile)
        }
        "Analyzer" => Analyzer::read(&spec, found).map(Document::Analyzer),
        "QualityGate" | "TestRunner" => QualityGate::read(&spec, found).map(Document::QualityGate),
        name if IGNORED_KINDS.contains(&name) => {
            let note = found.note(kind.span, format!("documents of type `{name}` are ignored"));
            found.push(note.help("they set up Tracetest's own server"));
            Some(Document::Ignored(name.to_owned()))
        }
        name if PAID_KINDS.contains(&name) => {
            found.push(paid(kind, found));
            None
        }
        name => {
            let mistake = found.error(kind.span, format!("unknown type of document `{name}`"));
            found.push(mistake.suggest(did_you_mean(name, KINDS.iter().map(|(name, _)| *name))));
            None
        }
    }
}

fn is_paid_environment(spec: &Node) -> bool {
    spec.get("values").is_none() && PAID_ENVIRONMENT.iter().any(|key| spec.get(key).is_some())
}

fn paid(kind: &Scalar, found: &Diagnostics) -> Diagnostic {
    let message =
        format!("documents of type `{}` are of Tracetest's paid product alone", kind.text);
    found.error(kind.span, message).help("they have no meaning here: take it out of the file")
}

/// Returns the id and the name of a document, if written; does not validate them.
fn read_name<'a>(fields: &mut Fields<'a>) -> (Option<&'a Scalar>, Option<&'a Scalar>) {
    let id = fields.take("id").and_then(|id| id.text());
    let name = fields.take("name").and_then(|name| name.text());
    (id, name)
}

/// Takes the read-only keys of an export and ignores them.
fn take_read_only(fields: &mut Fields<'_>, keys: &[&str]) {
    for key in keys {
        fields.take(key);
    }
}

/// Takes the text of a key.
fn text(fields: &mut Fields<'_>, key: &str) -> Option<String> {
    fields.take(key)?.text().map(|scalar| scalar.text.clone())
}

/// Takes the texts of a list.
fn texts(fields: &mut Fields<'_>, key: &str) -> Vec<Scalar> {
    let list = fields.list(key).unwrap_or_default();
    list.iter().filter_map(|item| item.text().cloned()).collect()
}

/// Parses a duration to wait, with an upper bound.
fn read_wait(item: &Item<'_>, found: &Diagnostics) -> Option<Duration> {
    let wait = item.duration()?;
    if wait > WAIT_MAX {
        let span = found.text().first_line(item.node.span);
        let mistake = found.error(span, format!("`{}` is too long", item.path));
        found.push(mistake.help("write `1h` or less"));
        return None;
    }
    Some(wait)
}

/// Takes the keys that belong to other variants than the selected one.
fn take_others(fields: &mut Fields<'_>, keys: &[&str], of: &str, found: &Diagnostics) {
    for key in keys {
        tell_other(fields.take(key).as_ref(), of, found);
    }
}

/// Warns of a key that belongs to another variant, unless it is blank.
fn tell_other(item: Option<&Item<'_>>, of: &str, found: &Diagnostics) {
    if let Some(item) = item.filter(|item| !is_blank(item.node)) {
        let message = format!("`{}` belongs to another type of {of} and is ignored", item.path);
        found.push(found.warning(item.head(), message));
    }
}

/// Whether the node is completely empty, as an export writes the variants that were not selected.
fn is_blank(node: &Node) -> bool {
    match &node.value {
        source::Value::Scalar(scalar) => scalar.is_null() || scalar.text.is_empty(),
        source::Value::Sequence(items) => items.iter().all(is_blank),
        source::Value::Table(entries) => entries.iter().all(|entry| is_blank(&entry.value)),
    }
}

impl FileRef {
    pub(crate) fn new(scalar: &Scalar, text: &Text) -> Self {
        Self { path: scalar.text.trim().to_owned(), place: place_of(scalar, text) }
    }
}

impl Reference {
    /// Returns a file reference if the text looks like a path, else an id.
    fn new(scalar: &Scalar, text: &Text) -> Self {
        let is_yaml = [".yaml", ".yml"].iter().any(|end| scalar.text.ends_with(end));
        if is_yaml || scalar.text.starts_with('/') || is_relative_path(&scalar.text) {
            Self::File(FileRef::new(scalar, text))
        } else {
            Self::Id(scalar.text.clone())
        }
    }
}

/// Whether a text is a path: it starts with `./` or `../` and has no whitespace.
fn is_relative_path(text: &str) -> bool {
    let text = text.trim();
    (text.starts_with("./") || text.starts_with("../")) && !text.contains(char::is_whitespace)
}

/// Returns the location where the content of a scalar starts, after the opening quote if it has one.
pub(crate) fn place_of(scalar: &Scalar, text: &Text) -> Place {
    place_at(scalar.span_of(0..1.min(scalar.text.len())), text)
}

pub(crate) fn place_at(span: Span, text: &Text) -> Place {
    let place = text.place(span.start);
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let file = text.name_at(span.start).to_owned();
    Place { file, line: number(place.line), column: number(place.column) }
}
