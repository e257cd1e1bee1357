//! The variables of a run.

use std::collections::{BTreeMap, BTreeSet};

use crate::syntax::ast::VariableScope;

/// The values that `${…}`, `var:` and `env:` may name.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Vars {
    /// The variables of the run: its variable set, and the outputs of earlier steps. `var:` and `env:` read them.
    pub variables: BTreeMap<String, String>,
    /// The environment that the run may read. Only `env:` reads it, and only names that are not among the variables.
    pub environment: BTreeMap<String, String>,
    /// The names of the variables with secret values.
    pub secrets: BTreeSet<String>,
}

impl Vars {
    /// Returns the value of `${var:NAME}`.
    pub fn variable(&self, name: &str) -> Option<&str> {
        self.get(VariableScope::Var, name)
    }

    /// Returns the value of `${env:NAME}`.
    pub fn environment(&self, name: &str) -> Option<&str> {
        self.get(VariableScope::Env, name)
    }

    /// Returns the value of a name.
    pub(crate) fn get(&self, scope: VariableScope, name: &str) -> Option<&str> {
        let variable = self.variables.get(name);
        let value = match scope {
            VariableScope::Env => variable.or_else(|| self.environment.get(name)),
            VariableScope::Var => variable,
        };
        value.map(String::as_str)
    }
}

/// Shows only names: any of the values may be a secret.
impl std::fmt::Debug for Vars {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Vars")
            .field("variables", &self.variables.keys())
            .field("environment", &self.environment.keys())
            .field("secrets", &self.secrets)
            .finish()
    }
}
