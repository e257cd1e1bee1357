//! The variables of a run: of the sets that it names, and its own.

use db::{Db, DbError, RunVars, SecretValues};
use lang::{Document, Secrets, Variable, Vars};
use model::{DocumentKind, Fault, Faulty, InvalidId, Project};
use thiserror::Error;

use crate::telemetry::{call::Call, calls::Watch, traceparent::TraceParent};

/// The text that is recorded for a secret.
const MASK: &str = "***";

/// Why the variables of a run cannot be read.
#[derive(Debug, Error)]
pub(crate) enum VariablesError {
    #[error("there is no variable set `{set}`: apply it first")]
    NoSet { set: String },
    #[error(transparent)]
    Id(#[from] InvalidId),
    #[error(transparent)]
    Db(#[from] DbError),
}

impl Faulty for VariablesError {
    fn fault(&self) -> Fault {
        match self {
            Self::NoSet { .. } | Self::Id(_) => Fault::Conflict,
            Self::Db(error) => error.fault(),
        }
    }
}

/// Returns the variables of a run: the current values of its sets, overridden by those it was started with. The database
/// queries are children of `within`.
pub(crate) async fn variables(
    (watch, within): (&Watch, TraceParent),
    db: &Db,
    project: &Project,
    (given, secrets): (&RunVars, &SecretValues),
) -> Result<Vars, VariablesError> {
    let mut vars = Vars::default();
    for set in &given.sets {
        let id = set.parse()?;
        let kept = db.document(project, DocumentKind::VariableSet, &id, None);
        let kept = watch.db(within, Call("SELECT", "documents"), kept).await?;
        let kept = kept.ok_or_else(|| VariablesError::NoSet { set: set.clone() })?;
        let (documents, _) = lang::read(&source::Text::new(&kept.file, &kept.document));
        let sets = documents.into_iter().filter_map(|document| match document {
            Document::VariableSet(set) => Some(set),
            _ => None,
        });
        for Variable { key, value, is_secret } in sets.flat_map(|set| set.variables) {
            match is_secret {
                true => vars.secrets.insert(key.clone()),
                false => vars.secrets.remove(&key),
            };
            vars.variables.insert(key, value);
        }
    }
    for (name, value) in &given.values {
        vars.secrets.remove(name);
        vars.variables.insert(name.clone(), value.clone());
    }
    for (name, value) in secrets.iter().filter_map(|(name, value)| Some((name, value.as_ref()?))) {
        vars.secrets.insert(name.clone());
        vars.variables.insert(name.clone(), value.clone());
    }
    Ok(vars)
}

/// Returns the variables as they are recorded, with `***` for every secret. The stored data of a run has `***` too, so that
/// both still compare, and a caller cannot guess a secret character by character.
pub(crate) fn as_recorded(mut vars: Vars) -> Vars {
    let secrets = Secrets::of(&vars);
    for (name, value) in &mut vars.variables {
        *value = match vars.secrets.contains(name) {
            // However short it is: a verdict would reveal it character by character.
            true => MASK.to_owned(),
            false => secrets.hide(value).into_owned(),
        };
    }
    vars
}
