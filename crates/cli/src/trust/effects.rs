//! What documents do outside of this process, in words: which of it needs trust, and by which repository.
//!
//! A request to this machine needs none, and neither does one that has nothing but the text of its document. Values of the environment,
//! files and what other systems responded leave this machine once a person agreed to it.

use std::{
    borrow::Cow,
    cell::{OnceCell, RefCell},
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    path::Path,
};

use http::Uri;
use lang::{Destination, ExternalEffects, Files, StoreInputs, TraceStore, Vars};

use super::{Consent, repository::Repository};
use crate::{
    beside::Beside,
    discovery::{Item, Test},
    exit::Exit,
    files, stores,
    terminal::Terminal,
};

/// The variable that tools pass a trace id by: it is no secret.
const TRACE_ID: &str = "TRACE_ID";

/// What needs trust, by the repository that it came with.
type Needs = BTreeMap<Repository, BTreeSet<String>>;

/// Refuses tests that do what no person agreed to; asks on a terminal. `named` are the stores of `--store`.
pub(crate) fn check(
    items: &[Item],
    (beside, named): (&Beside, &[String]),
    vars: &Vars,
    (consent, terminal): (&Consent, &Terminal),
) -> Result<(), Exit> {
    let mut needs = Needs::new();
    for item in items {
        of_item(item, vars, &mut needs);
        for test in item.tests().iter().filter(|it| !it.plan.skip_trace_collection()) {
            // A store that is missing or named twice is reported when it is needed.
            let ids = trace_id_variables(test, vars);
            for (file, store) in stores::meant(&test.plan, (beside, named)).unwrap_or_default() {
                of_store((file, store), &ids, vars, &mut needs);
            }
        }
    }
    for (repository, lines) in needs {
        let folder = repository.folder();
        let heading = format!("the documents in `{}` do what needs trust:", folder.display());
        consent.require((folder, &heading), lines.into_iter().collect(), terminal)?;
    }
    Ok(())
}

/// Refuses a store that does what no person agreed to.
pub(crate) fn check_store(
    (file, store): (&Path, &TraceStore),
    vars: &Vars,
    (consent, terminal): (&Consent, &Terminal),
) -> Result<(), Exit> {
    let mut needs = Needs::new();
    of_store((file, store), &BTreeSet::new(), vars, &mut needs);
    for (repository, lines) in needs {
        let heading = format!("the trace store in `{}` does what needs trust:", file.display());
        consent.require((repository.folder(), &heading), lines.into_iter().collect(), terminal)?;
    }
    Ok(())
}

/// Adds what the tests of an item need.
fn of_item(item: &Item, vars: &Vars, needs: &mut Needs) {
    let tests = item.tests();
    // The output of a step becomes a variable of the steps after it.
    let outputs: BTreeSet<_> = match item {
        Item::Test(_) => BTreeSet::new(),
        Item::Suite(_) => tests.iter().flat_map(|test| test.plan.output_names()).collect(),
    };
    let mut known = Cow::Borrowed(vars);
    if !outputs.is_empty() {
        known.to_mut().variables.retain(|name, _| !outputs.contains(name.as_str()));
    }
    for test in tests {
        if test.file != item.file() {
            let repository = Repository::of(item.file());
            if let Some(path) = repository.outside(&test.file) {
                add(needs, &repository, format!("reads `{}`", path.display()));
            }
        }
        of_test(test, &known, &outputs, needs);
    }
}

fn of_test(test: &Test, vars: &Vars, outputs: &BTreeSet<&str>, needs: &mut Needs) {
    let mut within = Files::default();
    // Most tests name no file and carry nothing: for them no folder is looked at.
    let repository = OnceCell::new();
    let repository = || repository.get_or_init(|| Repository::of(&test.file));
    for file in test.plan.files() {
        match repository().outside(&files::path(file)) {
            Some(path) => add(needs, repository(), format!("reads `{}`", path.display())),
            // One that cannot be read is reported when the test is about to run.
            None => drop(files::content(file).map(|content| within.insert(file, content))),
        }
    }
    let effects = test.plan.external_effects(vars, &within);
    if let Some(command) = &effects.command {
        add(needs, repository(), format!("executes {command}"));
    }
    let carried = carried(&effects, outputs);
    if carried.is_empty() {
        return;
    }
    for destination in effects.destinations.iter().filter(|it| !is_here(it.origin.as_deref())) {
        let to = address(destination);
        add(needs, repository(), format!("sends {} to {to}", carried.join(", ")));
    }
}

/// Returns what a request has that is not in its document and not given by flags.
fn carried(effects: &ExternalEffects, outputs: &BTreeSet<&str>) -> Vec<String> {
    let environment = effects.environment.iter().map(|name| format!("${{env:{name}}}"));
    let of_steps = effects.variables.iter().filter(|name| outputs.contains(name.as_str()));
    let of_steps = of_steps.map(|name| format!("the output `{name}`"));
    let files = effects.sent.iter().map(|path| format!("`{path}`"));
    environment.chain(of_steps).chain(files).collect()
}

/// Returns scheme, host and port, unless these have parts that are not filled in.
fn address(destination: &Destination) -> String {
    match &destination.origin {
        Some(origin) if destination.shown.contains(origin.as_str()) => origin.clone(),
        _ => destination.shown.clone(),
    }
}

/// Returns the variables of the environment that the trace id of a test is made of: its stores get that id.
fn trace_id_variables(test: &Test, vars: &Vars) -> BTreeSet<String> {
    let effects = test.plan.external_effects(vars, &Files::default());
    let is_fired = effects.command.is_some() || !effects.destinations.is_empty();
    let names = effects.environment.into_iter().filter(|name| !is_fired && name != TRACE_ID);
    names.collect()
}

fn of_store(
    (file, store): (&Path, &TraceStore),
    ids: &BTreeSet<String>,
    vars: &Vars,
    needs: &mut Needs,
) {
    let repository = Repository::of(file);
    let inputs = StoreScan { vars, environment: RefCell::default(), files: RefCell::default() };
    // What is wrong with it is reported when it is queried; what was found before that counts.
    let origin = store.config(&inputs).ok().map(|config| config.url);
    let folder = file.parent().unwrap_or(Path::new(""));
    for path in inputs.files.take() {
        if let Some(path) = repository.outside(&folder.join(path)) {
            add(needs, &repository, format!("reads `{}`", path.display()));
        }
    }
    let mut environment = inputs.environment.take();
    environment.extend(ids.iter().cloned());
    if environment.is_empty() || is_here(origin.as_deref()) {
        return;
    }
    let names: Vec<_> = environment.iter().map(|name| format!("${{env:{name}}}")).collect();
    let (names, key) = (names.join(", "), store.key());
    let to = store.address().unwrap_or_default();
    add(needs, &repository, format!("sends {names} to {to} (the trace store `{key}`)"));
}

/// Notes which variables and files the configuration of a store uses.
struct StoreScan<'a> {
    vars: &'a Vars,
    environment: RefCell<BTreeSet<String>>,
    files: RefCell<BTreeSet<String>>,
}

impl StoreInputs for StoreScan<'_> {
    fn variable(&self, name: &str) -> Option<&str> {
        self.vars.variable(name)
    }

    fn environment(&self, name: &str) -> Option<&str> {
        if !self.vars.variables.contains_key(name) {
            self.environment.borrow_mut().insert(name.to_owned());
        }
        // What is used behind a variable without a value has to be found too.
        Some(self.vars.environment(name).unwrap_or_default())
    }

    fn file(&self, path: &str) -> Result<String, String> {
        self.files.borrow_mut().insert(path.to_owned());
        Ok(String::new())
    }
}

fn add(needs: &mut Needs, repository: &Repository, line: String) {
    needs.entry(repository.clone()).or_default().insert(line);
}

/// Whether an address is on this machine. One that is only known during the run may be elsewhere.
fn is_here(url: Option<&str>) -> bool {
    let url = url.and_then(|url| url.parse::<Uri>().ok());
    let Some(host) = url.as_ref().and_then(Uri::host) else { return false };
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::is_here;

    #[test]
    fn only_loopback_is_here() {
        for url in
            ["http://localhost:80", "HTTP://LOCALHOST", "http://127.0.0.1:1/a", "http://[::1]:1"]
        {
            assert!(is_here(Some(url)), "{url}");
        }
        for url in [
            "http://localhost.example.com",
            "http://localhost@example.com/",
            "http://127.0.0.1@example.com/",
            "http://example.com/127.0.0.1",
            "http://10.0.0.1",
            "http://0.0.0.0",
            "http://[::ffff:10.0.0.1]",
            "http://localhost\\@example.com",
            "",
        ] {
            assert!(!is_here(Some(url)), "{url}");
        }
        assert!(!is_here(None), "it is not known");
    }
}
