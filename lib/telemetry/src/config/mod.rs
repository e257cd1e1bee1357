//! Reads a configuration file into a [`Plan`]: the subtrees `telemetry`, `metrics` and `tracer`, with overrides by
//! environment variables and OpenTelemetry's own variables.
//!
//! ```
//! use source::{Diagnostics, Fields, Text};
//! use telemetry::config::{self, Defaults, Environment, KEYS, Overlay};
//!
//! let text = Text::new("app.yaml", "tracer: {otel: {type: open-telemetry, endpoint: \"collector:4317\"}}");
//! let environment = Environment::from_iter([("APP_TRACER_OTEL_THROTTLE", "2s")]);
//! let (documents, mistakes) = source::read_yaml(&text);
//!
//! let overlay = Overlay { prefix: "APP", keys: &[KEYS], environment: &environment, taken: &[] };
//! let overlaid = overlay.apply(&text, documents.into_iter().next());
//! let found = overlaid.found(mistakes);
//! let defaults = Defaults { service_name: "app".to_owned(), directory: None, own_directory: None, environment };
//! if let Some(mut root) = Fields::of(&overlaid.root, "the configuration", &found) {
//!     let plan = config::read(&mut root, &defaults, &found);
//!     root.finish();
//!     assert_eq!(plan.exporters[0].throttle.as_secs(), 2);
//! }
//! assert!(!found.has_errors());
//! ```
//!
//! Deliberately absent: which file is read, the meaning of the caller's own keys, and which exporter has which role.
//! Those belong to the caller, as do the clock and the environment, which are passed in.

mod buffer;
mod describe;
mod duration;
mod endpoint;
mod exporters;
mod headers;
mod keys;
mod nest;
mod notes;
mod otel;
mod otlp;
mod overlay;
mod schema;
mod secrets;
mod variables;

use std::{cell::RefCell, collections::BTreeMap, path::PathBuf};

use source::{Diagnostic, Diagnostics, Fields, Item, Text};

use crate::plan::Plan;
use keys::KeyIndex;
use otel::Otel;

pub use describe::describe;
pub use endpoint::address;
pub use keys::{KEYS, Key, Kind, environment_name, shared_names};
pub use overlay::{MergedConfig, Overlay};
pub use schema::schema;

/// The name of the text part in which diagnostics show variables.
pub const ENVIRONMENT: &str = "environment";

/// Defaults of the caller for settings that are not in the file.
#[derive(Clone, Debug)]
pub struct Defaults {
    /// `service.name` if neither the file nor `OTEL_SERVICE_NAME` sets one.
    pub service_name: String,
    /// The directory in which exporters buffer on disk; without it, they buffer in memory only.
    pub directory: Option<PathBuf>,
    /// The directory for the program's own files. Exporters may buffer in its folder `telemetry`, and nowhere else in
    /// it.
    pub own_directory: Option<PathBuf>,
    /// The environment for OpenTelemetry's own variables.
    pub environment: Environment,
}

/// The environment variables of the process, read once by its `main`, and the files that a configuration names as values.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Environment {
    variables: BTreeMap<String, String>,
    /// The content of each file by its path as written, or why it cannot be read.
    files: BTreeMap<String, Result<String, String>>,
}

impl Environment {
    /// Returns the value of a variable. An empty variable counts as not set, as OpenTelemetry specifies.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// The variables that are set, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let variables = self.variables.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        variables.filter(|(_, value)| !value.is_empty())
    }

    /// Reads the files that the values of a configuration refer to by `${file:PATH}`. Of each content, one line break at its end is
    /// left out.
    pub fn with_files(
        mut self,
        text: &Text,
        read: impl Fn(&str) -> Result<String, String>,
    ) -> Self {
        for piece in variables::pieces(text.content()) {
            if let variables::Piece::File { path, .. } = piece {
                let content = read(path).map(|content| {
                    let line = content.strip_suffix('\n').unwrap_or(&content);
                    line.strip_suffix('\r').unwrap_or(line).to_owned()
                });
                self.files.insert(path.to_owned(), content);
            }
        }
        self
    }

    fn file(&self, path: &str) -> Result<&str, &str> {
        let read = self.files.get(path).map(|it| it.as_deref().map_err(String::as_str));
        read.unwrap_or(Err("values of files are not supported here"))
    }
}

impl<K: Into<String>, V: Into<String>> FromIterator<(K, V)> for Environment {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(variables: I) -> Self {
        let variables = variables.into_iter().map(|(name, value)| (name.into(), value.into()));
        Self { variables: variables.collect(), files: BTreeMap::new() }
    }
}

impl std::fmt::Debug for Environment {
    /// Shows only names: any value may be a secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.variables.keys()).finish()
    }
}

/// The state that the front ends share while they read.
struct Context<'a> {
    defaults: &'a Defaults,
    otel: Otel<'a>,
    found: &'a Diagnostics,
    notes: RefCell<Vec<String>>,
    /// Exporters without an `endpoint`.
    by_default: RefCell<Vec<String>>,
    /// `service.name` of exporters that do not set their own.
    service_name: String,
}

impl Context<'_> {
    fn note(&self, note: String) {
        self.notes.borrow_mut().push(note);
    }
}

/// Reads the plan of a document without other keys and without overrides: YAML, or TOML by the extension of the name.
/// Returns all diagnostics at once; [`source::draw`] renders them.
pub fn plan(text: &Text, defaults: &Defaults) -> Result<Plan, Vec<Diagnostic>> {
    let (root, mistakes) = source::read_one(text);
    let found = Diagnostics::new(text);
    found.extend(mistakes);
    let mut plan = Plan { prometheus: true, ..Plan::default() };
    if let Some(mut root) = root.as_ref().and_then(|it| Fields::of(it, "the configuration", &found))
    {
        plan = read(&mut root, defaults, &found);
        root.finish();
    }
    if found.has_errors() { Err(found.into_vec()) } else { Ok(plan) }
}

/// Reads `telemetry`, `metrics` and `tracer` from the root table.
///
/// Pushes a diagnostic with a location for every error. After an error the plan contains only the valid part, and must
/// not be used.
pub fn read(root: &mut Fields<'_>, defaults: &Defaults, found: &Diagnostics) -> Plan {
    let otel = Otel::new(&defaults.environment, found);
    let (attributes, resource) = otel.resource();
    let service_name = otel.get("OTEL_SERVICE_NAME").map(str::to_owned).or(attributes);
    let context = Context {
        defaults,
        found,
        notes: RefCell::default(),
        by_default: RefCell::default(),
        service_name: service_name.unwrap_or_else(|| defaults.service_name.clone()),
        otel,
    };
    let mut plan = Plan {
        prometheus: true,
        disabled: context.otel.is_disabled(),
        resource,
        ..Plan::default()
    };
    let known = KeyIndex::new(&[KEYS]);
    let mut section = |key: &str, read: &mut dyn FnMut(&Item<'_>)| {
        if let Some(item) = root.take(key) {
            let nested = nest::nested(item.node, &[key], &known, found);
            read(&item.with_node(&nested));
        }
    };
    section("telemetry", &mut |item| exporters::telemetry(item, &context, &mut plan));
    section("metrics", &mut |item| exporters::metrics(item, &context, &mut plan));
    section("tracer", &mut |item| exporters::tracers(item, &context, &mut plan));
    plan.notes = context.notes.into_inner();
    let is_planned = |name: &String| plan.exporters.iter().any(|exporter| exporter.name == *name);
    plan.by_default = context.by_default.into_inner().into_iter().filter(is_planned).collect();
    notes::same_destination(&mut plan);
    plan
}
