//! Variables: from flags, from files, from the environment.

use std::collections::{BTreeMap, BTreeSet};

use lang::{Document, Secrets, Variable, Vars};
use model::ErrorCode;

use crate::{args, documents, exit::Exit, terminal::Terminal};

/// Reads all variables that a test may use. A flag overrides a file, and a later file an earlier one. The terminal hides the
/// secret ones from now on.
pub(crate) fn read(
    asked: &args::Variables,
    environment: Vec<(String, String)>,
    terminal: &Terminal,
) -> Result<Vars, Exit> {
    let mut variables = BTreeMap::new();
    let mut secrets = BTreeSet::new();
    for file in &asked.files {
        let mut has_set = false;
        for document in documents::documents(file, terminal)? {
            let Document::VariableSet(set) = document else { continue };
            has_set = true;
            for Variable { key, value, is_secret } in set.variables {
                if is_secret {
                    secrets.insert(key.clone());
                } else {
                    secrets.remove(&key);
                }
                variables.insert(key, value);
            }
        }
        if !has_set {
            let file = file.display();
            terminal.error(
                ErrorCode::DocumentMissing,
                format_args!("`{file}` has no document of type `VariableSet`"),
            );
            return Err(Exit::Refused);
        }
    }
    // Clap does not validate this, since its error message would repeat the value.
    if let Some((name, _)) = asked.secrets.iter().find_map(|secret| secret.split_once('=')) {
        terminal.error(ErrorCode::Usage, format_args!(
            "`--secret` takes a name alone; its value is given by `--set {name}=…`, or by a file of `--vars`"
        ));
        return Err(Exit::Refused);
    }
    variables.extend(asked.variables.iter().cloned());
    secrets.extend(asked.secrets.iter().cloned());
    let vars = Vars { variables, environment: environment.into_iter().collect(), secrets };
    terminal.keep_secret(&Secrets::of(&vars));
    Ok(vars)
}
