//! The environment as an overlay of a file: variables that override keys, and variables that values reference.
//!
//! The value of a variable has a location like any other value: the lines `NAME=value` are a further part of the text,
//! and diagnostics show them. Secrets, in the file or from a variable, are hidden in all snippets.
//!
//! Deliberately absent: the meaning of the keys. The caller's keys and those of this library are treated alike.

use std::{collections::BTreeMap, fmt};

use source::{Diagnostic, Diagnostics, Entry, Node, Scalar, Span, Text, Value, did_you_mean};

use super::{
    ENVIRONMENT, Environment, Key, Kind, environment_name,
    headers::lines,
    keys::{KeyIndex, MAKERS, leads},
    nest::nested,
    secrets::{self, File},
    variables::{Substitution, typed},
};

/// An overlay of a configuration.
#[derive(Clone, Copy, Debug)]
pub struct Overlay<'a> {
    /// The prefix of the variables that override keys, without the `_` behind it.
    pub prefix: &'a str,
    /// All keys of the file: the caller's, and [`KEYS`](super::KEYS).
    pub keys: &'a [&'a [Key]],
    /// The environment variables.
    pub environment: &'a Environment,
    /// Variables with the prefix that the caller uses for another purpose, such as those of its flags.
    pub taken: &'a [&'a str],
}

/// A configuration with the environment applied.
pub struct MergedConfig {
    /// The text of the file, with the used variables behind it.
    pub text: Text,
    /// The values of the file, with overrides applied.
    pub root: Node,
    /// Messages about variables with the prefix that override no key. They are not errors: orchestrators inject such
    /// variables.
    pub notices: Vec<String>,
    mistakes: Vec<Diagnostic>,
    /// The last path segments of the keys of secrets.
    secrets: Vec<&'static str>,
}

impl MergedConfig {
    /// Returns the collector for later diagnostics. It contains the diagnostics of the overlay and the syntax errors of
    /// the file, which the caller passes in so that their snippets hide secrets too.
    pub fn found(&self, mistakes: Vec<Diagnostic>) -> Diagnostics {
        let mut text = self.text.clone();
        if !mistakes.is_empty() {
            // Unparsed text is in no tree, so its secrets are guessed from its lines.
            text = text.hiding(secrets::guessed(&text, &self.secrets));
        }
        let found = Diagnostics::new(&text);
        for mut mistake in mistakes.into_iter().chain(self.mistakes.iter().cloned()) {
            mistake.text = text.clone();
            found.push(mistake);
        }
        found
    }
}

impl fmt::Debug for MergedConfig {
    /// Omits the values: some are secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Overlaid");
        debug.field("text", &self.text).field("notices", &self.notices).finish_non_exhaustive()
    }
}

/// A variable that overrides a key of this file.
struct Override<'a> {
    name: &'a str,
    value: &'a str,
    /// More than one if several names in the file map to the same variable.
    keys: Vec<(Vec<String>, &'a Key)>,
}

impl Overlay<'_> {
    /// Applies the environment to the document that was read from `text`. A missing document counts as an empty one.
    pub fn apply(&self, text: &Text, root: Option<Node>) -> MergedConfig {
        let known = KeyIndex::new(self.keys);
        let nothing = Node { span: Span::at(0), value: Value::Table(Vec::new()) };
        let early = Diagnostics::new(text);
        let mut root = nested(&root.unwrap_or(nothing), &[], &known, &early);
        let (overrides, notices) = self.overrides(&root, &known);

        let mut file = File::default();
        file.look(&root, &mut Vec::new(), &known);
        for this in &overrides {
            file.named.insert(this.name.to_owned());
            if this.keys.iter().any(|(_, key)| key.is_secret()) {
                file.secret.insert(this.name.to_owned());
            }
        }
        let (text, places) = self.with_environment(text, &file);

        let found = Diagnostics::new(&text);
        for this in &overrides {
            let place = places.get(this.name).copied().unwrap_or_default();
            override_one(&mut root, this, place, &found);
        }
        let environment = self.environment;
        let substitution =
            Substitution { places: &places, environment, known: &known, found: &found };
        substitution.walk(&mut root, &mut Vec::new());
        let mistakes = early.into_vec().into_iter().chain(found.into_vec()).collect();
        MergedConfig { text, root, notices, mistakes, secrets: known.secrets().collect() }
    }

    /// Returns the variables that override a key, and a notice for each variable with the prefix that does not.
    fn overrides<'a>(
        &'a self,
        root: &Node,
        known: &KeyIndex<'a>,
    ) -> (Vec<Override<'a>>, Vec<String>) {
        let mut paths: BTreeMap<String, Vec<(Vec<String>, &'a Key)>> = BTreeMap::new();
        for (pattern, key) in known.iter() {
            for path in expanded(root, pattern) {
                let name = environment_name(self.prefix, &path.join("."));
                paths.entry(name).or_default().push((path, key));
            }
        }
        let start = format!("{}_", self.prefix);
        let (mut overrides, mut notices) = (Vec::new(), Vec::new());
        let variables = self.environment.iter().filter(|(name, _)| name.starts_with(&start));
        for (name, value) in variables.filter(|(name, _)| !self.taken.contains(name)) {
            if let Some(keys) = paths.get(name) {
                overrides.push(Override { name, value, keys: keys.clone() });
                continue;
            }
            let near = did_you_mean(name, paths.keys().map(String::as_str));
            let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            notices
                .push(format!("`{name}` is ignored: it names no key of this configuration{near}"));
        }
        (overrides, notices)
    }

    /// Returns the text with a line for each used variable, and the location of each value.
    fn with_environment(&self, text: &Text, file: &File) -> (Text, BTreeMap<String, Span>) {
        let mut lines = String::new();
        let mut places = BTreeMap::new();
        let mut hidden = file.hidden.clone();
        for (name, value) in self.environment.iter() {
            if !file.named.contains(name) && !name.starts_with("OTEL_") {
                continue;
            }
            let is_secret = file.secret.contains(name)
                || name.ends_with("HEADERS")
                || secrets::user(value).is_some();
            let shown =
                if is_secret { "***".to_owned() } else { value.replace(['\n', '\r'], "␊") };
            let start = lines.len() + name.len() + 1;
            places.insert(name.to_owned(), (Span { start, end: start + shown.len() }, is_secret));
            lines.push_str(&format!("{name}={shown}\n"));
        }
        let (text, start) = match lines.as_str() {
            "" => (text.clone(), 0),
            lines => text.with_part(ENVIRONMENT, lines.trim_end_matches('\n')),
        };
        let moved = |span: Span| Span { start: start + span.start, end: start + span.end };
        // The stars of a secret count as hidden too, so that no diagnostic quotes the value behind them.
        hidden.extend(
            places.values().filter(|(_, is_secret)| *is_secret).map(|(span, _)| moved(*span)),
        );
        let places = places.into_iter().map(|(name, (span, _))| (name, moved(span))).collect();
        (text.hiding(hidden), places)
    }
}

/// Returns the paths of a pattern in this file: `*` matches every name that is present.
fn expanded(root: &Node, pattern: &[&str]) -> Vec<Vec<String>> {
    let makes = |path: &[String]| {
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        MAKERS.iter().any(|maker| {
            let maker: Vec<&str> = maker.split('.').collect();
            maker.len() == path.len() && leads(&path, &maker)
        })
    };
    let at = |path: &[String]| path.iter().try_fold(root, |node, name| node.get(name));
    let mut paths = vec![Vec::new()];
    for segment in pattern {
        let mut longer = Vec::new();
        for path in paths {
            let names: Vec<String> = match *segment {
                "*" => {
                    let entries = at(&path).and_then(Node::as_table).unwrap_or_default();
                    entries.iter().map(|entry| entry.key.text.clone()).collect()
                }
                name => vec![name.to_owned()],
            };
            longer
                .extend(names.into_iter().map(|name| path.iter().cloned().chain([name]).collect()));
        }
        longer.retain(|path: &Vec<String>| {
            !makes(path) || at(path).is_some_and(|node| !node.is_null())
        });
        paths = longer;
    }
    paths
}

fn scalar_node(scalar: Scalar) -> Node {
    Node { span: scalar.span, value: Value::Scalar(scalar) }
}

/// Replaces the value of a key by the value of a variable.
fn override_one(root: &mut Node, this: &Override<'_>, place: Span, found: &Diagnostics) {
    let [(path, key)] = this.keys.as_slice() else {
        let paths: Vec<_> =
            this.keys.iter().map(|(path, _)| format!("`{}`", path.join("."))).collect();
        let message = format!("`{}` stands for each of {}", this.name, paths.join(" and "));
        found.push(found.error(place, message).help("rename one of them"));
        return;
    };
    let list = |items: Vec<String>| {
        let items = items.into_iter().map(|item| scalar_node(Scalar::instead(item, place)));
        Node { span: place, value: Value::Sequence(items.collect()) }
    };
    let value = match key.kind {
        Kind::Headers => list(lines(this.value)),
        Kind::List | Kind::Secrets => {
            let items = this.value.split(',').map(|item| item.trim().to_owned());
            list(items.filter(|item| !item.is_empty()).collect())
        }
        kind => scalar_node(typed(this.value.trim().to_owned(), place, Some(kind))),
    };
    if let Value::Table(entries) = &mut root.value {
        set(entries, path, value, place);
    }
}

/// Sets the value at a path, and creates missing tables. If a parent in the path has a value, or the path itself has a
/// table, dotted keys preserve both.
fn set(entries: &mut Vec<Entry>, path: &[String], value: Node, place: Span) {
    let Some((first, rest)) = path.split_first() else { return };
    let put = |entries: &mut Vec<Entry>, key: &str, value: Node| match entries
        .iter_mut()
        .find(|entry| entry.key.text == key)
    {
        Some(entry) => entry.value = value,
        None => entries.push(Entry { key: Scalar::instead(key, place), value }),
    };
    let existing = entries.iter_mut().find(|entry| entry.key.text == *first);
    if rest.is_empty() {
        let inner = match existing.map(|entry| &mut entry.value.value) {
            // A list replaces headers, which are a table without known keys.
            Some(Value::Table(inner)) if value.as_scalar().is_some() => std::mem::take(inner),
            _ => Vec::new(),
        };
        put(entries, first, value);
        for entry in inner {
            let key = Scalar::instead(format!("{first}.{}", entry.key.text), entry.key.span);
            entries.push(Entry { key, value: entry.value });
        }
        return;
    }
    match existing {
        Some(entry) if !entry.value.is_null() => match &mut entry.value.value {
            Value::Table(inner) => set(inner, rest, value, place),
            Value::Scalar(_) | Value::Sequence(_) => put(entries, &path.join("."), value),
        },
        _ => {
            let mut inner = Vec::new();
            set(&mut inner, rest, value, place);
            put(entries, first, Node { span: place, value: Value::Table(inner) });
        }
    }
}
