//! Texts with variables in them: `${env:NAME}` and `${var:NAME}`.
//!
//! Everything else stands for itself, `%`, quotes and backslashes included. Deliberately absent so far: other
//! expressions between the braces, which are refused.

use std::{collections::BTreeMap, ops::Range};

use model::Place;
use source::Scalar;

use crate::{mistake::Mistake, resolve::ResolveError};

/// What `${…}` may name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Vars {
    /// The variables of the run: its variable set, and the outputs of earlier steps. `var:` and `env:` find them.
    pub variables: BTreeMap<String, String>,
    /// The environment that the run may see. Only `env:` finds it, and only what is not among the variables.
    pub environment: BTreeMap<String, String>,
}

/// A text with variables in it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Template {
    pieces: Vec<Piece>,
}

#[derive(Clone, Debug)]
enum Piece {
    Text(String),
    Variable { scope: Scope, name: String, place: Place },
}

#[derive(Clone, Copy, Debug)]
enum Scope {
    Var,
    Env,
}

impl Template {
    /// Reads a text; each `${…}` that cannot be filled later is a mistake.
    pub(crate) fn parse(
        scalar: &Scalar,
        place: impl Fn(Range<usize>) -> Place,
    ) -> Result<Self, Vec<Mistake>> {
        let source = scalar.text.as_str();
        let (mut pieces, mut mistakes) = (Vec::new(), Vec::new());
        let mut at = 0;
        while let Some(length) = source[at..].find("${") {
            let start = at + length;
            pieces.push(Piece::Text(source[at..start].to_owned()));
            let Some(length) = source[start..].find('}') else {
                let mistake = Mistake::error(start..start + 2, "this `${` has no end");
                mistakes.push(mistake.help("close it with `}`"));
                return Err(mistakes);
            };
            at = start + length + 1;
            match variable(&source[start + 2..at - 1]) {
                Ok((scope, name)) => {
                    pieces.push(Piece::Variable { scope, name, place: place(start..at) });
                }
                Err(help) => {
                    let message = "only `${env:…}` and `${var:…}` are supported so far";
                    mistakes.push(Mistake::error(start..at, message).help(help));
                }
            }
        }
        pieces.push(Piece::Text(source[at..].to_owned()));
        if mistakes.is_empty() { Ok(Self { pieces }) } else { Err(mistakes) }
    }

    /// The text with the variables filled in.
    pub(crate) fn fill(&self, vars: &Vars) -> Result<String, ResolveError> {
        let mut filled = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => filled.push_str(text),
                Piece::Variable { scope, name, place } => {
                    let value = vars.get(*scope, name).ok_or_else(|| ResolveError::Missing {
                        name: name.clone(),
                        place: place.clone(),
                    })?;
                    filled.push_str(value);
                }
            }
        }
        Ok(filled)
    }

    /// The text in front of the first variable, and whether it is all there is.
    pub(crate) fn head(&self) -> (&str, bool) {
        match self.pieces.as_slice() {
            [] => ("", true),
            [Piece::Text(text)] => (text, true),
            [Piece::Text(text), ..] => (text, false),
            [Piece::Variable { .. }, ..] => ("", false),
        }
    }
}

impl Vars {
    fn get(&self, scope: Scope, name: &str) -> Option<&str> {
        let variable = self.variables.get(name);
        let value = match scope {
            Scope::Env => variable.or_else(|| self.environment.get(name)),
            Scope::Var => variable,
        };
        value.map(String::as_str)
    }
}

/// The variable that stands between the braces, or what to write instead.
fn variable(inside: &str) -> Result<(Scope, String), String> {
    let is_name = |name: &str| {
        !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || "_.-".contains(c))
    };
    let trimmed = inside.trim();
    match trimmed.split_once(':') {
        Some(("env", name)) if is_name(name) => Ok((Scope::Env, name.to_owned())),
        Some(("var", name)) if is_name(name) => Ok((Scope::Var, name.to_owned())),
        None if is_name(trimmed) => Err(format!("did you mean `${{env:{trimmed}}}`?")),
        _ => Err("write the value itself, or a variable with this value".to_owned()),
    }
}
