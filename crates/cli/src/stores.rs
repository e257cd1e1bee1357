//! The trace stores that the tests of a command query.
//!
//! A test queries the stores that `--store` names, else those that it names itself, else the default store of the files. A store
//! whose spans come by OTLP is not queried: the receiver has its spans.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use lang::{Plan, StoreInputs, TraceStore, Vars};
use model::{ErrorCode, StoreConfig};

use crate::{beside::Beside, discovery::Item, exit::Exit, terminal::Terminal};

/// The variables of a command, and the folder of a document.
struct Inputs<'a> {
    vars: &'a Vars,
    folder: &'a Path,
}

impl StoreInputs for Inputs<'_> {
    fn variable(&self, name: &str) -> Option<&str> {
        self.vars.variable(name)
    }

    fn environment(&self, name: &str) -> Option<&str> {
        self.vars.environment(name)
    }

    fn file(&self, path: &str) -> Result<String, String> {
        let path = self.folder.join(path);
        fs::read_to_string(&path).map_err(|error| format!("`{}`: {error}", path.display()))
    }
}

/// Lets every test query its stores. `named` are those of `--store`.
pub(crate) fn apply(
    items: &mut [Item],
    (beside, named): (&Beside, &[String]),
    vars: &Vars,
    terminal: &Terminal,
) -> Result<(), Exit> {
    let mut mistakes: Vec<String> = Vec::new();
    for test in items.iter_mut().flat_map(Item::tests_mut) {
        if test.plan.skip_trace_collection() {
            continue;
        }
        match configs(&test.plan, (beside, named), vars) {
            Ok(stores) if stores.is_empty() => {}
            Ok(stores) => Arc::make_mut(&mut test.plan).query(stores),
            // Tests that name the same store have the same mistake.
            Err(mistake) if mistakes.contains(&mistake) => {}
            Err(mistake) => mistakes.push(mistake),
        }
    }
    for mistake in &mistakes {
        terminal.error(ErrorCode::StoreInvalid, mistake);
    }
    if mistakes.is_empty() { Ok(()) } else { Err(Exit::Refused) }
}

/// Returns how the stores are queried that a run of a test queries.
pub(crate) fn configs(
    plan: &Plan,
    stores: (&Beside, &[String]),
    vars: &Vars,
) -> Result<Vec<StoreConfig>, String> {
    let mut configs: Vec<StoreConfig> = Vec::new();
    for (file, store) in meant(plan, stores)? {
        let config = config(file, store, vars)?;
        // A store that is named twice is queried once.
        if !configs.contains(&config) {
            configs.push(config);
        }
    }
    Ok(configs)
}

/// Returns the stores that a run of a test queries, each with its file. `named` are those of `--store`.
pub(crate) fn meant<'a>(
    plan: &Plan,
    (beside, named): (&'a Beside, &[String]),
) -> Result<Vec<(&'a Path, &'a TraceStore)>, String> {
    let stores = beside.stores();
    let found: Vec<_> = if !named.is_empty() {
        named.iter().map(|name| by_name(beside, name)).collect::<Result<_, _>>()?
    } else if !plan.stores().is_empty() {
        let unknown = |name: &str| {
            format!(
                "the test `{}` names the trace store `{name}`, and none of the files holds it: name the file that does too",
                plan.name
            )
        };
        plan.stores().iter().map(|name| find(stores, name, unknown)).collect::<Result<_, _>>()?
    } else {
        // The default store of a type that is not queried has its own warning.
        default(stores)?.into_iter().filter(|(_, store)| store.can_be_queried()).collect()
    };
    Ok(found.into_iter().filter(|(_, store)| store.is_queried()).collect())
}

/// Returns the store that a command names, with its file.
pub(crate) fn by_name<'a>(
    beside: &'a Beside,
    name: &str,
) -> Result<(&'a Path, &'a TraceStore), String> {
    let unknown = |name: &str| {
        format!("no document among the files is a trace store `{name}`; name its file too")
    };
    find(beside.stores(), name, unknown)
}

/// Returns how a store is queried.
pub(crate) fn config(file: &Path, store: &TraceStore, vars: &Vars) -> Result<StoreConfig, String> {
    let folder = file.parent().unwrap_or(Path::new(""));
    store.config(&Inputs { vars, folder }).map_err(|reason| {
        format!("the trace store `{}` in `{}`: {reason}", store.key(), file.display())
    })
}

/// Returns the store of this id, else of this name.
fn find<'a>(
    stores: &'a [(PathBuf, TraceStore)],
    name: &str,
    unknown: impl Fn(&str) -> String,
) -> Result<(&'a Path, &'a TraceStore), String> {
    let of = |is_meant: fn(&TraceStore) -> Option<&str>| {
        let mut found = stores.iter().filter(move |(_, store)| is_meant(store) == Some(name));
        (found.next(), found.next())
    };
    let found = match of(|store| store.id.as_deref()) {
        (None, _) => of(|store| store.name.as_deref()),
        found => found,
    };
    match found {
        (Some((file, store)), None) => Ok((file, store)),
        (Some((first, _)), Some((second, _))) => Err(format!(
            "two documents are the trace store `{name}`, in `{}` and `{}`",
            first.display(),
            second.display()
        )),
        (None, _) => Err(unknown(name)),
    }
}

fn default(stores: &[(PathBuf, TraceStore)]) -> Result<Option<(&Path, &TraceStore)>, String> {
    let mut found = stores.iter().filter(|(_, store)| store.is_default);
    match (found.next(), found.next()) {
        (Some((first, _)), Some((second, _))) => Err(format!(
            "two trace stores are the default, in `{}` and `{}`: let one of them be it, or choose by `--store`",
            first.display(),
            second.display()
        )),
        (found, _) => Ok(found.map(|(file, store)| (file.as_path(), store))),
    }
}
