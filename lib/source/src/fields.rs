//! Reads a table into types: takes the fields by name, continues after errors, and rejects unknown keys.
//!
//! ```
//! use source::{Diagnostics, Fields, Text, read_yaml};
//!
//! let text = Text::new("config.yaml", "host: db\nport: 5432\n");
//! let (documents, _) = read_yaml(&text);
//! let found = Diagnostics::new(&text);
//! if let Some(mut fields) = Fields::of(&documents[0], "the configuration", &found) {
//!     let host = fields.string("host").unwrap_or("localhost");
//!     let port = fields.integer("port", 1..=u16::MAX).unwrap_or(5432);
//!     fields.finish();
//!     assert_eq!((host, port), ("db", 5432));
//! }
//! assert!(found.into_vec().is_empty());
//! ```

use std::{fmt::Display, ops::RangeInclusive, time::Duration};

use crate::{
    Diagnostic, Diagnostics, Entry, Node, Scalar, Span, Value, did_you_mean,
    duration::parse_duration,
    scalar::Style,
    size::{format_size, parse_size},
};

/// The maximum number of known keys that the diagnostic of an unknown key lists.
const KEYS_SHOWN_MAX: usize = 12;

/// The fields of a table. A field with a null value counts as absent.
///
/// Call [`finish`](Self::finish) at the end: it rejects the keys that were not requested. Missing keys are reported
/// last, so that a misspelt key is not reported as missing too.
#[derive(Debug)]
#[must_use]
pub struct Fields<'a> {
    entries: &'a [Entry],
    taken: Vec<bool>,
    asked: Vec<String>,
    missing: Vec<String>,
    /// The name of the table, for messages.
    what: String,
    /// The dotted path of the table; empty at the root.
    path: String,
    /// The span for diagnostics about missing keys: the key of the table, or its first line.
    head: Span,
    found: &'a Diagnostics,
}

/// A value with its path, to be read as a type. Each read method reports an error and then returns `None`.
#[derive(Clone, Debug)]
pub struct Item<'a> {
    pub node: &'a Node,
    /// The path in the document, such as `postgres.port` or `headers[1]`.
    pub path: String,
    head: Span,
    found: &'a Diagnostics,
}

impl<'a> Fields<'a> {
    /// Returns the fields of `node`, which is the root of the document; `what` names it in messages.
    pub fn of(node: &'a Node, what: &str, found: &'a Diagnostics) -> Option<Self> {
        let Value::Table(entries) = &node.value else {
            found.push(wrong(node, found, format!("{what} must be a table")));
            return None;
        };
        Some(Self {
            entries,
            taken: vec![false; entries.len()],
            asked: Vec::new(),
            missing: Vec::new(),
            what: what.to_owned(),
            path: String::new(),
            head: found.text().first_line(node.span),
            found,
        })
    }

    /// Returns the field, if it is present.
    pub fn take(&mut self, key: &str) -> Option<Item<'a>> {
        self.asked.push(key.to_owned());
        let at = self.entries.iter().position(|entry| entry.key.text == key)?;
        self.taken[at] = true;
        let entry = &self.entries[at];
        (!entry.value.is_null()).then(|| self.item(entry))
    }

    /// Returns the field; a missing field is an error.
    pub fn require(&mut self, key: &str) -> Option<Item<'a>> {
        let item = self.take(key);
        if item.is_none() {
            self.missing.push(key.to_owned());
        }
        item
    }

    /// Returns every field that was not taken, for tables with user-defined keys.
    pub fn rest(&mut self) -> Vec<(&'a Scalar, Item<'a>)> {
        let mut rest = Vec::new();
        for (taken, entry) in self.taken.iter_mut().zip(self.entries) {
            if !std::mem::replace(taken, true) {
                rest.push(entry);
            }
        }
        rest.into_iter().map(|entry| (&entry.key, self.item(entry))).collect()
    }

    pub fn string(&mut self, key: &str) -> Option<&'a str> {
        self.take(key)?.string()
    }

    pub fn boolean(&mut self, key: &str) -> Option<bool> {
        self.take(key)?.boolean()
    }

    pub fn integer<T>(&mut self, key: &str, range: RangeInclusive<T>) -> Option<T>
    where
        T: TryFrom<i64> + PartialOrd + Display,
    {
        self.take(key)?.integer(range)
    }

    pub fn number(&mut self, key: &str, range: RangeInclusive<f64>) -> Option<f64> {
        self.take(key)?.number(range)
    }

    pub fn duration(&mut self, key: &str) -> Option<Duration> {
        self.take(key)?.duration()
    }

    pub fn choice<T: Clone>(&mut self, key: &str, options: &[(&str, T)]) -> Option<T> {
        self.take(key)?.choice(options)
    }

    pub fn list(&mut self, key: &str) -> Option<Vec<Item<'a>>> {
        self.take(key)?.list()
    }

    pub fn table(&mut self, key: &str) -> Option<Fields<'a>> {
        self.take(key)?.fields()
    }

    /// Returns the table under a key. A missing table is read as an empty one, so that all its defaults apply.
    pub fn section(&mut self, key: &str) -> Fields<'a> {
        self.table(key).unwrap_or_else(|| {
            let path = joined(&self.path, key);
            Fields {
                entries: &[],
                taken: Vec::new(),
                asked: Vec::new(),
                missing: Vec::new(),
                what: format!("`{path}`"),
                path,
                head: self.head,
                found: self.found,
            }
        })
    }

    /// Rejects every key that was not taken, and reports the missing keys.
    pub fn finish(mut self) {
        let mut missing = std::mem::take(&mut self.missing);
        for (entry, _) in self.entries.iter().zip(&self.taken).filter(|(_, taken)| !**taken) {
            let key = &entry.key;
            let message = format!("unknown key `{}` in {}", key.text, self.what);
            let span = self.found.text().first_line(key.span);
            let mistake = self.found.error(span, message);
            let asked = || self.asked.iter().map(String::as_str);
            // A diagnostic that is only counted needs no suggestion.
            let suggestion =
                if self.found.is_full() { None } else { did_you_mean(&key.text, asked()) };
            missing.retain(|missing| suggestion != Some(missing));
            self.found.push(match suggestion {
                None if (1..=KEYS_SHOWN_MAX).contains(&self.asked.len()) => {
                    mistake.help(format!("known here: {}", quoted(asked(), ", ")))
                }
                suggestion => mistake.suggest(suggestion),
            });
        }
        self.missing = missing;
    }

    fn item(&self, entry: &'a Entry) -> Item<'a> {
        let key = &entry.key;
        let path = joined(&self.path, &key.text);
        let head = self.found.text().first_line(key.span);
        Item { node: &entry.value, path, head, found: self.found }
    }
}

impl Drop for Fields<'_> {
    fn drop(&mut self) {
        for key in &self.missing {
            let message = format!("missing key `{key}` in {}", self.what);
            self.found.push(self.found.error(self.head, message));
        }
    }
}

impl<'a> Item<'a> {
    /// The span of its key; for an element of a list, the span of its first line.
    pub fn head(&self) -> Span {
        self.head
    }

    /// Reads a string. A value that looks like a number or a boolean must be quoted to be a string.
    pub fn string(&self) -> Option<&'a str> {
        let string = self.node.as_scalar().and_then(Scalar::as_str);
        if string.is_none() {
            let mistake = self.wrong("a string");
            self.found.push(match self.node.as_scalar() {
                Some(scalar) if scalar.style != Style::Plain || scalar.is_null() => mistake,
                Some(scalar) if self.found.text().hides(scalar.span) => {
                    mistake.help("write it in quotes")
                }
                Some(scalar) => mistake.help(format!("write it as `\"{}\"`", scalar.text)),
                None => mistake,
            });
        }
        string
    }

    /// Reads any scalar, as written.
    pub fn text(&self) -> Option<&'a Scalar> {
        let scalar = self.node.as_scalar().filter(|scalar| !scalar.is_null());
        self.or_wrong(scalar, "a single value")
    }

    pub fn boolean(&self) -> Option<bool> {
        let boolean = self.node.as_scalar().and_then(Scalar::as_bool);
        self.or_wrong(boolean, "`true` or `false`")
    }

    pub fn integer<T>(&self, range: RangeInclusive<T>) -> Option<T>
    where
        T: TryFrom<i64> + PartialOrd + Display,
    {
        let integer = self.node.as_scalar().and_then(Scalar::as_i64);
        let fitting = integer.and_then(|i| T::try_from(i).ok()).filter(|i| range.contains(i));
        if fitting.is_none() {
            let expected = format!("an integer from {} to {}", range.start(), range.end());
            self.found.push(self.unfit(integer.is_some(), &expected));
        }
        fitting
    }

    pub fn number(&self, range: RangeInclusive<f64>) -> Option<f64> {
        let number = self.node.as_scalar().and_then(Scalar::as_f64);
        let fitting = number.filter(|number| range.contains(number));
        if fitting.is_none() {
            let expected = format!("a number from {} to {}", range.start(), range.end());
            self.found.push(self.unfit(number.is_some(), &expected));
        }
        fitting
    }

    /// Reads a duration such as `10s`, `1m30s` or `500ms`.
    pub fn duration(&self) -> Option<Duration> {
        let scalar = self.node.as_scalar();
        let duration = scalar.and_then(|scalar| parse_duration(&scalar.text));
        if duration.is_none() {
            let is_string = scalar.and_then(Scalar::as_str).is_some();
            let expected = "a duration such as `10s`, `1m` or `500ms`";
            self.found.push(self.unfit(is_string, expected));
        }
        duration
    }

    /// Reads a number of bytes such as `32MiB`, `1GB` or `4096`.
    pub fn size(&self, range: RangeInclusive<u64>) -> Option<u64> {
        let scalar = self.node.as_scalar();
        let size = scalar.and_then(|scalar| parse_size(&scalar.text));
        let fitting = size.filter(|size| range.contains(size));
        if fitting.is_none() {
            let (least, most) = (format_size(*range.start()), format_size(*range.end()));
            let expected = format!("a size from {least} to {most}, such as `32MiB`");
            let is_string = scalar.and_then(Scalar::as_str).is_some();
            self.found.push(self.unfit(size.is_some() || is_string, &expected));
        }
        fitting
    }

    /// Reads one of a few words, and returns the value that is paired with it.
    pub fn choice<T: Clone>(&self, options: &[(&str, T)]) -> Option<T> {
        let text = self.node.as_scalar().map(|scalar| scalar.text.as_str());
        let chosen = options.iter().find(|(word, _)| Some(*word) == text);
        if chosen.is_none() {
            let words = || options.iter().map(|(word, _)| *word);
            let near = text.and_then(|text| did_you_mean(text, words()));
            let mistake = self.unfit(text.is_some(), &quoted(words(), " or "));
            self.found.push(mistake.suggest(near));
        }
        chosen.map(|(_, meaning)| meaning.clone())
    }

    pub fn list(&self) -> Option<Vec<Item<'a>>> {
        let items = self.or_wrong(self.node.as_sequence(), "a list")?;
        let item = |(at, node): (usize, &'a Node)| Item {
            node,
            path: format!("{}[{at}]", self.path),
            head: self.found.text().first_line(node.span),
            found: self.found,
        };
        Some(items.iter().enumerate().map(item).collect())
    }

    pub fn fields(&self) -> Option<Fields<'a>> {
        let what = format!("`{}`", self.path);
        let mut fields = Fields::of(self.node, &what, self.found)?;
        fields.path.clone_from(&self.path);
        fields.head = self.head;
        Some(fields)
    }

    /// Returns an item with another value at the same path, for example one that was rearranged before it is read.
    pub fn with_node<'b>(&self, node: &'b Node) -> Item<'b>
    where
        'a: 'b,
    {
        Item { node, path: self.path.clone(), head: self.head, found: self.found }
    }

    /// Reports that this value is not the expected one, with a text that fits behind "must be". The type of the value
    /// is correct.
    pub fn misfit(&self, expected: &str) {
        self.found.push(self.unfit(true, expected));
    }

    /// Reports that this is not the expected value, with a text that fits behind "must be".
    pub fn refuse(&self, expected: &str) {
        self.found.push(self.wrong(expected));
    }

    fn or_wrong<T>(&self, read: Option<T>, expected: &str) -> Option<T> {
        if read.is_none() {
            self.refuse(expected);
        }
        read
    }

    /// If the type is correct and only the value is wrong, the diagnostic does not mention the type.
    fn unfit(&self, has_type: bool, expected: &str) -> Diagnostic {
        let mistake = self.wrong(expected);
        if has_type { mistake.label("") } else { mistake }
    }

    fn wrong(&self, expected: &str) -> Diagnostic {
        wrong(self.node, self.found, format!("`{}` must be {expected}", self.path))
    }
}

fn wrong(node: &Node, found: &Diagnostics, message: String) -> Diagnostic {
    let mistake = found
        .error(found.text().first_line(node.span), message)
        .label(format!("found {}", node.kind()));
    let sources = node.as_scalar().map(Scalar::sources).unwrap_or_default();
    sources.iter().fold(mistake, |mistake, source| mistake.also(*source, "from here"))
}

fn joined(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

fn quoted<'a>(words: impl Iterator<Item = &'a str>, between: &str) -> String {
    words.map(|word| format!("`{word}`")).collect::<Vec<_>>().join(between)
}
