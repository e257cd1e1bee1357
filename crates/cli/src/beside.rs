//! Documents beside tests that apply to all of them: the analyzer, the quality gate, settle profiles, trace
//! stores.
//!
//! They are read from the files and folders of the command, and from files that the steps of a suite name. A command has one
//! analyzer and one quality gate; two of a kind are an error. Deliberately absent: their meaning (`lang`).

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use lang::{
    Analyzer, CURRENT, Document, Gate, Gates, Plan, QualityGate, Reference, SettleProfile,
    TraceStore,
};
use model::ErrorCode;

use crate::{discovery::Test, documents, exit::Exit, terminal::Terminal};

/// The documents that apply to all tests of a command, each with its file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Beside {
    analyzers: Vec<(PathBuf, Analyzer)>,
    runners: Vec<(PathBuf, QualityGate)>,
    profiles: Vec<(PathBuf, SettleProfile)>,
    stores: Vec<(PathBuf, TraceStore)>,
}

impl Beside {
    /// Adds a document, if it is one of these.
    pub(crate) fn add(&mut self, file: &Path, document: Document) {
        let file = file.to_owned();
        match document {
            Document::Analyzer(analyzer) => self.analyzers.push((file, analyzer)),
            Document::QualityGate(runner) => self.runners.push((file, runner)),
            Document::SettleProfile(profile) => self.profiles.push((file, profile)),
            Document::TraceStore(store) => self.stores.push((file, *store)),
            Document::Test(_)
            | Document::TestSuite(_)
            | Document::VariableSet(_)
            | Document::Ignored(_) => {}
        }
    }

    /// Adds the documents of another file.
    pub(crate) fn join(&mut self, other: Self) {
        self.analyzers.extend(other.analyzers);
        self.runners.extend(other.runners);
        self.profiles.extend(other.profiles);
        self.stores.extend(other.stores);
    }

    /// Returns the trace stores, each with its file.
    pub(crate) fn stores(&self) -> &[(PathBuf, TraceStore)] {
        &self.stores
    }

    /// Returns the files of these documents.
    pub(crate) fn files(&self) -> impl Iterator<Item = &Path> {
        let analyzers = self.analyzers.iter().map(|(file, _)| file);
        let runners = self.runners.iter().map(|(file, _)| file);
        let profiles = self.profiles.iter().map(|(file, _)| file);
        let stores = self.stores.iter().map(|(file, _)| file);
        analyzers.chain(runners).chain(profiles).chain(stores).map(PathBuf::as_path)
    }

    /// Returns the gates that every run has to pass beside the specs of its test.
    pub(crate) fn gates(&self, terminal: &Terminal) -> Result<Gates, Exit> {
        let of_runs = |id: &Option<String>| id.as_deref().is_none_or(|id| id == CURRENT);
        if let Some((file, runner)) = self.runners.iter().find(|(_, it)| !of_runs(&it.id)) {
            // If this gate were ignored, a run would pass that the author of the gate wanted to fail.
            terminal.error(ErrorCode::DocumentsCollide, format_args!(
                "the quality gate `{}` in `{}` would hold for no run: write `id: {CURRENT}`, or take it out of \
                 what is run",
                runner.id.as_deref().unwrap_or_default(),
                file.display()
            ));
            return Err(Exit::Refused);
        }
        let analyzers: Vec<_> = self.analyzers.iter().filter(|(_, it)| of_runs(&it.id)).collect();
        let analyzer = only(&analyzers, "analyzer", terminal)?;
        let runners: Vec<_> = self.runners.iter().collect();
        let runner = only(&runners, "quality gate", terminal)?;
        if let Some((file, analyzer)) = analyzer {
            report_undeclared((file, analyzer), runner.map(|(_, runner)| runner), terminal);
        }
        Ok(Gates::new(analyzer.map(|(_, it)| it), runner.map(|(_, it)| it)))
    }

    /// Applies the settle profile to a test's plan: the one that the test names, else the default profile. The error is a
    /// message about a profile that is missing or ambiguous.
    pub(crate) fn settle(&self, test: &mut Test, terminal: &Terminal) -> Result<(), String> {
        let profile = self.profile(&test.plan, &test.file, terminal)?;
        if let Some(profile) = profile {
            Arc::make_mut(&mut test.plan).wait_as(&profile);
        }
        Ok(())
    }

    fn profile(
        &self,
        plan: &Plan,
        file: &Path,
        terminal: &Terminal,
    ) -> Result<Option<SettleProfile>, String> {
        let name = &plan.name;
        match plan.settle_profile() {
            None => self.default_profile().map(Option::<&SettleProfile>::cloned),
            Some(Reference::Id(id)) => {
                let is_named = |it: &&(PathBuf, SettleProfile)| it.1.key().as_deref() == Some(id);
                let mut named = self.profiles.iter().filter(is_named);
                match (named.next(), named.next()) {
                    (Some((_, profile)), None) => Ok(Some(profile.clone())),
                    (Some((first, _)), Some((second, _))) => Err(format!(
                        "two documents are the settle profile `{id}`, which the test `{name}` names, in `{}` and `{}`",
                        first.display(),
                        second.display()
                    )),
                    (None, _) => Err(format!(
                        "the test `{name}` names the settle profile `{id}`, and none of the files holds it: name the \
                         file that does too, or write `settle.timeout` into the test"
                    )),
                }
            }
            Some(Reference::File(named)) => {
                let path = file.parent().unwrap_or(Path::new("")).join(&named.path);
                let read = documents::documents(&path, terminal);
                let read = read.map_err(|_| {
                    format!(
                        "the settle profile `{}` of the test `{name}` cannot be read",
                        path.display()
                    )
                })?;
                let found = read.into_iter().find_map(|document| match document {
                    Document::SettleProfile(profile) => Some(profile),
                    _ => None,
                });
                let nothing = || {
                    format!(
                        "`{}`, which the test `{name}` names, holds no document of type `SettleProfile`",
                        path.display()
                    )
                };
                found.map(Some).ok_or_else(nothing)
            }
        }
    }

    fn default_profile(&self) -> Result<Option<&SettleProfile>, String> {
        let defaults: Vec<_> =
            self.profiles.iter().filter(|(_, profile)| profile.is_default).collect();
        match defaults.as_slice() {
            [] => Ok(None),
            [(_, one)] => Ok(Some(one)),
            [(first, _), (second, _), ..] => Err(format!(
                "two settle profiles hold for tests that name none, in `{}` and `{}`: take `default` out of one",
                first.display(),
                second.display()
            )),
        }
    }
}

/// Returns the only document of its kind, if there is one.
fn only<'a, T>(
    all: &[&'a (PathBuf, T)],
    what: &str,
    terminal: &Terminal,
) -> Result<Option<&'a (PathBuf, T)>, Exit> {
    match all {
        [] => Ok(None),
        [one] => Ok(Some(one)),
        [first, second, ..] => {
            terminal.error(ErrorCode::DocumentsCollide, format_args!(
                "two documents are the {what} `{CURRENT}`, in `{}` and `{}`: a command has one for all its tests; \
                 run their folders one by one, or leave one out",
                first.0.display(),
                second.0.display()
            ));
            Err(Exit::Refused)
        }
    }
}

/// Prints a note about a minimum score that no gate requires, and about gates that require a disabled analyzer.
fn report_undeclared(
    (file, analyzer): (&Path, &Analyzer),
    runner: Option<&QualityGate>,
    terminal: &Terminal,
) {
    let required = || runner.iter().flat_map(|runner| &runner.required_gates);
    let minimum = analyzer.rules.minimum_score;
    if !analyzer.is_enabled && required().any(|it| it.gate != Gate::TestSpecs) {
        terminal.line(&format!(
            "note: the analyzer in `{}` is disabled: gates that ask it are met by every run",
            file.display()
        ));
    }
    let is_asked = required().any(|it| it.gate == Gate::AnalyzerScore);
    if analyzer.is_enabled && minimum > 0 && !is_asked {
        terminal.line(&format!(
            "note: `minimumScore: {minimum}` in `{}` fails no run: no quality gate requires the gate `analyzer-score`",
            file.display()
        ));
    }
}
