//! Sets of variables.

use std::{collections::BTreeMap, fmt};

use source::{Diagnostics, Fields, Item, Span};

use super::{read_name, take_read_only};

/// A set of variables with their values.
#[derive(Clone, Debug)]
pub struct VariableSet {
    /// The id under which it is stored.
    pub id: Option<String>,
    /// The display name.
    pub name: Option<String>,
    /// The variables in the order written, with unique keys.
    pub variables: Vec<Variable>,
}

/// A variable with its value.
#[derive(Clone)]
pub struct Variable {
    /// The name in `${var:…}`.
    pub key: String,
    /// The value as text; empty by default.
    pub value: String,
    /// Whether the variable has `type: secret`: its value is never shown.
    pub is_secret: bool,
}

impl fmt::Debug for Variable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = if self.is_secret { "***" } else { &self.value };
        f.debug_struct("Variable").field("key", &self.key).field("value", &value).finish()
    }
}

impl VariableSet {
    pub(super) fn read(item: &Item<'_>, found: &Diagnostics) -> Option<Self> {
        let mut fields = item.fields()?;
        let (id, name) = read_name(&mut fields);
        fields.take("description").and_then(|description| description.text());
        let values = fields.list("values").unwrap_or_default();
        take_read_only(&mut fields, &["createdAt", "version"]);
        fields.finish();
        let mut seen: BTreeMap<&str, Span> = BTreeMap::new();
        let mut variables = Vec::new();
        for item in &values {
            let Some(fields) = item.fields() else { continue };
            variables.extend(read_variable(fields, &mut seen, found));
        }
        let written = |scalar: &source::Scalar| scalar.text.clone();
        Some(Self { id: id.map(written), name: name.map(written), variables })
    }
}

fn read_variable<'a>(
    mut fields: Fields<'a>,
    seen: &mut BTreeMap<&'a str, Span>,
    found: &Diagnostics,
) -> Option<Variable> {
    let key = fields.require("key").and_then(|key| key.text());
    let value = fields.take("value").and_then(|value| value.text());
    let is_secret = fields.choice("type", &[("raw", false), ("secret", true)]).unwrap_or(false);
    fields.finish();
    let key = key?;
    match seen.get(key.text.as_str()) {
        Some(first) => found.push(
            found
                .error(key.span, format!("the variable `{}` is written twice", key.text))
                .label("again here")
                .also(*first, "first here"),
        ),
        None => drop(seen.insert(&key.text, key.span)),
    }
    let value = value.map_or(String::new(), |value| value.text.clone());
    Some(Variable { key: key.text.clone(), value, is_secret })
}
