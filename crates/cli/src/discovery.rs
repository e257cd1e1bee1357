//! Discovers the tests and suites to run: from paths and flags to plans.
//!
//! An error in any file aborts the discovery: a document that cannot be parsed cannot be deselected. Deliberately absent:
//! running anything.

use std::{
    collections::{BTreeSet, HashMap},
    path::{Path, PathBuf},
    sync::Arc,
};

use lang::{Document, NoticeContext, Plan, Reference, Step};
use model::{ErrorCode, TestId};
use source::{Diagnostic, Text};

use crate::{args, beside::Beside, documents, exit::Exit, terminal::Terminal};

/// The default OTLP address of a run.
pub(crate) const RECEIVER: &str = "127.0.0.1:4317";

/// The upper bound for tags, or ids and names, that an error message about an unknown one lists.
const SHOWN_MAX: usize = 10;

/// A test or a suite: a unit that can be run by itself.
#[derive(Clone, Debug)]
pub(crate) enum Item {
    Test(Test),
    Suite(Suite),
}

/// A test, and its file.
#[derive(Clone, Debug)]
pub(crate) struct Test {
    pub(crate) file: PathBuf,
    pub(crate) plan: Arc<Plan>,
}

/// A suite with the resolved tests of its steps.
#[derive(Clone, Debug)]
pub(crate) struct Suite {
    pub(crate) file: PathBuf,
    pub(crate) id: TestId,
    pub(crate) name: String,
    /// The steps, in the order of the document.
    pub(crate) steps: Vec<Step>,
    /// The test of each step.
    pub(crate) tests: Vec<Test>,
}

impl Item {
    pub(crate) fn file(&self) -> &Path {
        match self {
            Self::Test(test) => &test.file,
            Self::Suite(suite) => &suite.file,
        }
    }

    pub(crate) fn id(&self) -> &TestId {
        match self {
            Self::Test(test) => &test.plan.id,
            Self::Suite(suite) => &suite.id,
        }
    }

    fn name(&self) -> &str {
        match self {
            Self::Test(test) => &test.plan.name,
            Self::Suite(suite) => &suite.name,
        }
    }

    /// Returns the test, or the tests of the suite.
    pub(crate) fn tests(&self) -> &[Test] {
        match self {
            Self::Test(test) => std::slice::from_ref(test),
            Self::Suite(suite) => &suite.tests,
        }
    }

    /// Returns the test, or the tests of the suite.
    pub(crate) fn tests_mut(&mut self) -> &mut [Test] {
        match self {
            Self::Test(test) => std::slice::from_mut(test),
            Self::Suite(suite) => &mut suite.tests,
        }
    }
}

/// Returns the plans of the selected tests, with the gates of the documents beside them.
pub(crate) fn plans(asked: &args::Tests, terminal: &Terminal) -> Result<Vec<Arc<Plan>>, Exit> {
    let checked = checked(asked, terminal)?;
    checked.with_gates(&asked.filter, terminal)
}

impl CheckedDocuments {
    /// Returns the plans of the selected tests, with the gates of the documents beside them; at least one.
    pub(crate) fn with_gates(
        &self,
        filter: &args::Filter,
        terminal: &Terminal,
    ) -> Result<Vec<Arc<Plan>>, Exit> {
        if self.tests.is_empty() {
            return Err(none_selected(&self.read, filter, terminal));
        }
        let gates = self.read.beside.gates(terminal)?;
        let mut plans: Vec<_> = self.tests.iter().map(|test| Arc::clone(&test.plan)).collect();
        plans.iter_mut().for_each(|plan| Arc::make_mut(plan).require(gates.clone()));
        Ok(plans)
    }
}

/// Reads the documents of files and folders, and returns those that apply to all tests.
pub(crate) fn beside(paths: &[PathBuf], terminal: &Terminal) -> Result<Beside, Exit> {
    Ok(read(paths, RECEIVER, terminal)?.beside)
}

/// Valid documents, and the selected tests among them.
pub(crate) struct CheckedDocuments {
    pub(crate) read: DocumentSet,
    pub(crate) tests: Vec<Test>,
}

/// Reads the documents of the files; an error if one of them is invalid.
pub(crate) fn checked(asked: &args::Tests, terminal: &Terminal) -> Result<CheckedDocuments, Exit> {
    let read = read(&asked.paths, RECEIVER, terminal)?;
    let is_meant = |it: &&Test| is_meant(&it.plan.id, &it.plan.name, &it.plan.tags, &asked.filter);
    let mut tests: Vec<_> = read.tests.iter().filter(is_meant).cloned().collect();
    for test in &mut tests {
        // This command waits for no trace, so the settle profile only matters for later runs.
        if let Err(why) = read.beside.settle(test, terminal) {
            terminal.line(&format!("warning: {why}"));
        }
    }
    Ok(CheckedDocuments { read, tests })
}

/// Returns the selected tests and suites, in the order of the documents, and the documents beside them.
///
/// A test that one of the suites runs is not run by itself too, unless its id or name is selected. A suite has no tags:
/// a selection by tags excludes it.
pub(crate) fn items(
    paths: &[PathBuf],
    filter: &args::Filter,
    receiver: &str,
    terminal: &Terminal,
) -> Result<(Vec<Item>, Beside), Exit> {
    let mut read = read(paths, receiver, terminal)?;
    let (mut items, mut in_suites) = (Vec::new(), BTreeSet::new());
    let mut is_refused = false;
    for written in &read.items {
        let item = match written {
            UnresolvedItem::Test(at) => Ok(Item::Test(read.tests[*at].clone())),
            UnresolvedItem::Suite(suite, file) => {
                connect((suite, file), &read.tests, &mut read.beside, terminal).map(Item::Suite)
            }
        };
        let Ok(item) = item else {
            is_refused = true;
            continue;
        };
        let tags = if let Item::Test(test) = &item { &test.plan.tags[..] } else { &[] };
        if !is_meant(item.id(), item.name(), tags, filter) {
            continue;
        }
        if let Item::Suite(suite) = &item {
            in_suites.extend(suite.tests.iter().map(|test| Arc::as_ptr(&test.plan)));
        }
        items.push(item);
    }
    if is_refused {
        return Err(Exit::Refused);
    }
    if filter.tests.is_empty() {
        items.retain(|item| match item {
            Item::Test(test) => !in_suites.contains(&Arc::as_ptr(&test.plan)),
            Item::Suite(_) => true,
        });
    }
    if items.is_empty() {
        return Err(none_selected(&read, filter, terminal));
    }
    Ok((items, read.beside))
}

/// Applies the gates and the settle profiles to every test.
pub(crate) fn hold(items: &mut [Item], beside: &Beside, terminal: &Terminal) -> Result<(), Exit> {
    let gates = beside.gates(terminal)?;
    let mut is_refused = false;
    for item in items {
        for test in item.tests_mut() {
            if let Err(why) = beside.settle(test, terminal) {
                terminal.error(ErrorCode::DocumentMissing, why);
                is_refused = true;
            }
            Arc::make_mut(&mut test.plan).require(gates.clone());
        }
    }
    if is_refused { Err(Exit::Refused) } else { Ok(()) }
}

/// The content of the files.
pub(crate) struct DocumentSet {
    tests: Vec<Test>,
    items: Vec<UnresolvedItem>,
    /// The documents that apply to all tests.
    pub(crate) beside: Beside,
    /// The number of all documents.
    pub(crate) documents: usize,
    /// The OTLP address, as a Collector's configuration would contain it.
    receiver: String,
}

/// An item before the tests of suite steps are resolved.
enum UnresolvedItem {
    Test(usize),
    Suite(lang::TestSuite, PathBuf),
}

fn read(paths: &[PathBuf], receiver: &str, terminal: &Terminal) -> Result<DocumentSet, Exit> {
    let mut read = DocumentSet::new(receiver);
    let mut is_refused = false;
    for file in documents::files(paths, terminal)? {
        let Ok(text) = documents::read(&file, terminal) else {
            is_refused = true;
            continue;
        };
        is_refused |= read.take(&file, &text, terminal).is_err();
    }
    if is_refused { Err(Exit::Refused) } else { Ok(read) }
}

impl DocumentSet {
    fn new(receiver: &str) -> Self {
        Self {
            tests: Vec::new(),
            items: Vec::new(),
            beside: Beside::default(),
            documents: 0,
            receiver: receiver.to_owned(),
        }
    }

    fn take(&mut self, file: &Path, text: &Text, terminal: &Terminal) -> Result<(), Exit> {
        let (planned, diagnostics) = lang::plans_if_any(text);
        terminal.diagnostics(&diagnostics);
        if diagnostics.iter().any(Diagnostic::is_error) {
            return Err(Exit::Refused);
        }
        let first = self.tests.len();
        let test = |plan| Test { file: file.to_owned(), plan: Arc::new(plan) };
        self.tests.extend(planned.into_iter().map(|planned| test(planned.plan)));
        let mut tests = first..self.tests.len();
        // Every other document has its kind in the text. Most files contain only tests, and are parsed once.
        let has_kind = |kind| text.content().contains(kind);
        let is_needed = tests.is_empty() || lang::kinds_beside_test().any(has_kind);
        let documents = if is_needed { lang::read(text).0 } else { Vec::new() };
        self.documents += if is_needed { documents.len() } else { tests.len() };
        for document in documents {
            let context = NoticeContext { receiver: &self.receiver, is_server: false };
            let notice = document.notice(text, context);
            terminal.diagnostics(notice.as_slice());
            match document {
                Document::Test(_) => self.items.extend(tests.next().map(UnresolvedItem::Test)),
                Document::TestSuite(suite) => {
                    self.items.push(UnresolvedItem::Suite(suite, file.to_owned()));
                }
                other => self.beside.add(file, other),
            }
        }
        self.items.extend(tests.map(UnresolvedItem::Test));
        Ok(())
    }
}

/// Resolves the test of each step: among the tests read so far, or in the file that the step names. The other documents of
/// that file are added to `beside`.
fn connect(
    (suite, file): (&lang::TestSuite, &Path),
    known: &[Test],
    beside: &mut Beside,
    terminal: &Terminal,
) -> Result<Suite, Exit> {
    let mut others: HashMap<PathBuf, Test> = HashMap::new();
    let mut tests = Vec::with_capacity(suite.steps.len());
    for step in &suite.steps {
        let found = match &step.test {
            Reference::Id(id) => by_id(id, known),
            Reference::File(named) => {
                let path = file.parent().unwrap_or(Path::new("")).join(&named.path);
                match others.get(&path) {
                    Some(test) => Ok(test.clone()),
                    None => by_file(&path, known, beside, terminal)
                        .inspect(|test| drop(others.insert(path, test.clone()))),
                }
            }
        };
        match found {
            Ok(test) => tests.push(test),
            Err(why) => {
                let place = &step.place;
                terminal.error(
                    ErrorCode::InvalidDocument,
                    format_args!(
                        "the step `{}` at {}:{}:{} cannot be run: {why}",
                        step.name, place.file, place.line, place.column
                    ),
                );
                return Err(Exit::Refused);
            }
        }
    }
    let (file, id, name) = (file.to_owned(), suite.id.clone(), suite.name.clone());
    Ok(Suite { file, id, name, steps: suite.steps.clone(), tests })
}

fn by_id(id: &str, known: &[Test]) -> Result<Test, String> {
    let mut with_id = known.iter().filter(|test| test.plan.id.as_str() == id);
    match (with_id.next(), with_id.next()) {
        (Some(test), None) => Ok(test.clone()),
        (Some(first), Some(second)) => Err(format!(
            "two tests have the id `{id}`, in `{}` and `{}`",
            first.file.display(),
            second.file.display()
        )),
        (None, _) => {
            let ids = known.iter().map(|test| test.plan.id.as_str());
            let meant = source::did_you_mean(id, ids);
            let meant = meant.map_or(String::new(), |id| format!("; did you mean `{id}`?"));
            Err(format!("none of the files that were named holds a test with the id `{id}`{meant}"))
        }
    }
}

fn by_file(
    path: &Path,
    known: &[Test],
    beside: &mut Beside,
    terminal: &Terminal,
) -> Result<Test, String> {
    let is_same = |other: &Path| match (path.canonicalize(), other.canonicalize()) {
        (Ok(path), Ok(other)) => path == other,
        _ => path == other,
    };
    let mut of_file: Vec<_> = known.iter().filter(|test| is_same(&test.file)).cloned().collect();
    if of_file.is_empty() {
        let mut read = DocumentSet::new(RECEIVER);
        let text = documents::read(path, terminal).map_err(|_| "its file cannot be read")?;
        read.take(path, &text, terminal).map_err(|_| "its file has mistakes")?;
        beside.join(read.beside);
        of_file = read.tests;
    }
    match (of_file.len(), of_file.pop()) {
        (1, Some(test)) => Ok(test),
        (count, _) => Err(format!("`{}` holds {count} tests, and a step runs one", path.display())),
    }
}

fn is_meant(id: &TestId, name: &str, tags: &[String], filter: &args::Filter) -> bool {
    let is_named = |asked: &String| asked == name || asked == id.as_str();
    (filter.tests.is_empty() || filter.tests.iter().any(is_named))
        && (filter.tags.is_empty() || filter.tags.iter().any(|tag| tags.contains(tag)))
}

/// Prints that no test is selected, and the reason.
pub(crate) fn none_selected(
    read: &DocumentSet,
    filter: &args::Filter,
    terminal: &Terminal,
) -> Exit {
    let why = match read.items.len() {
        0 => "there is no document of type `Test` in what was named".to_owned(),
        all => unknown(read, filter).unwrap_or_else(|| {
            format!("none of {} is all that `--test` and `--tag` ask for", tests(all))
        }),
    };
    terminal.error(ErrorCode::NoTestSelected, format_args!("no test selected: {why}"));
    Exit::Refused
}

/// Returns a message about the first requested tag, id or name that no test has.
fn unknown(read: &DocumentSet, filter: &args::Filter) -> Option<String> {
    let mut tags = BTreeSet::new();
    let mut names = BTreeSet::new();
    for test in &read.tests {
        tags.extend(test.plan.tags.iter().map(String::as_str));
        names.extend([test.plan.id.as_str(), &test.plan.name]);
    }
    for written in &read.items {
        if let UnresolvedItem::Suite(suite, _) = written {
            names.extend([suite.id.as_str(), &suite.name]);
        }
    }
    let kinds = [("tag", &filter.tags, tags), ("id or name", &filter.tests, names)];
    kinds.into_iter().find_map(|(kind, asked, known)| {
        let asked = asked.iter().find(|asked| !known.contains(asked.as_str()))?;
        let meant = match source::did_you_mean(asked, known.iter().copied()) {
            Some(meant) => format!("; did you mean `{meant}`?"),
            None if known.is_empty() => format!(", and none has any {kind}"),
            None => {
                let shown: Vec<_> = known.into_iter().take(SHOWN_MAX).collect();
                format!("; there are `{}`", shown.join("`, `"))
            }
        };
        Some(format!("none has the {kind} `{asked}`{meant}"))
    })
}

/// Returns a number of tests in words.
pub(crate) fn tests(count: usize) -> String {
    match count {
        1 => "1 test".to_owned(),
        count => format!("{count} tests"),
    }
}
