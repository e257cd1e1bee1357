//! Triggers: the action that starts a run, each type with its own section.
//!
//! A trigger is parsed with its texts as written, and compiled into the same structure with their `${…}` parsed. Deliberately
//! absent: sending. `request` decides which triggers this version supports.

mod call;
mod grpc;
mod kafka;
mod playwright_engine;
mod read;

use std::time::Duration;

use model::{Place, Propagator};

use super::FileRef;
use call::Protocol;
pub(crate) use call::{Call, FieldForm, FieldValue};
pub(crate) use read::{METHODS, REDIRECTS, REDIRECTS_MAX, trigger_types};

/// The types of triggers, in the order of the reference.
pub(crate) const TYPES: &[TriggerType] = &[
    TriggerType::Http,
    TriggerType::Graphql,
    TriggerType::Call(&grpc::GRPC),
    TriggerType::Call(&kafka::KAFKA),
    TriggerType::TraceId,
    TriggerType::Call(&playwright_engine::PLAYWRIGHT_ENGINE),
    TriggerType::Exec,
];

/// A type of trigger.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TriggerType {
    Http,
    Graphql,
    TraceId,
    Exec,
    /// A further protocol, described by a table.
    Call(&'static Protocol),
}

/// The action that starts a run. `T` is the type of its texts: as written, or with their `${…}` parsed.
#[derive(Clone, Debug)]
pub(crate) struct Trigger<T> {
    pub(crate) kind: TriggerKind<T>,
    /// The type as written, and its location.
    pub(crate) name: String,
    pub(crate) place: Place,
    pub(crate) timeout: Duration,
    pub(crate) tls: Option<TriggerTls<T>>,
    /// The propagation formats of the trace context; at least one.
    pub(crate) propagation: Vec<Propagator>,
}

#[derive(Clone, Debug)]
pub(crate) enum TriggerKind<T> {
    Http(HttpTrigger<T>),
    Graphql(Graphql<T>),
    /// Another program has started the trace; this is its trace id. Also `cypress`, `playwright`, `artillery`, `k6`.
    TraceId(T),
    Exec(Exec<T>),
    Call(Call<T>),
}

#[derive(Clone, Debug)]
pub(crate) struct HttpTrigger<T> {
    pub(crate) url: T,
    /// In upper case; `GET` by default.
    pub(crate) method: String,
    pub(crate) headers: Vec<Header<T>>,
    pub(crate) body: Option<Content<T>>,
    pub(crate) auth: Option<Auth<T>>,
    /// `None` if the document does not set it: certificates are verified.
    pub(crate) ssl_verification: Option<bool>,
    /// `None` if the document does not set it.
    pub(crate) redirects: Option<u32>,
}

#[derive(Clone, Debug)]
pub(crate) struct Graphql<T> {
    pub(crate) url: T,
    pub(crate) headers: Vec<Header<T>>,
    pub(crate) auth: Option<Auth<T>>,
    pub(crate) query: Content<T>,
    pub(crate) variables: Option<JsonTemplate<T>>,
    pub(crate) operation_name: Option<T>,
    pub(crate) ssl_verification: Option<bool>,
    pub(crate) schema: Option<Content<T>>,
}

/// A program to run; it reads the trace context from its environment.
#[derive(Clone, Debug)]
pub(crate) struct Exec<T> {
    pub(crate) command: Command<T>,
    pub(crate) env: Vec<(String, T)>,
    pub(crate) workdir: Option<T>,
}

#[derive(Clone, Debug)]
pub(crate) enum Command<T> {
    /// A command line for the shell.
    Line(T),
    /// A program and its arguments, passed without a shell.
    Words(Vec<T>),
}

#[derive(Clone, Debug)]
pub(crate) struct Header<T> {
    pub(crate) key: T,
    pub(crate) value: Option<T>,
}

#[derive(Clone, Debug)]
pub(crate) enum Auth<T> {
    ApiKey { key: T, value: T, place: KeyPlace },
    Basic { username: T, password: T },
    Bearer { token: T },
}

/// Whether an API key goes into a header or into the query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyPlace {
    Header,
    Query,
}

/// A text, or the file with the text.
#[derive(Clone, Debug)]
pub(crate) enum Content<T> {
    Text(T),
    File(FileRef),
}

/// A JSON value with texts that may contain `${…}`.
#[derive(Clone, Debug)]
pub(crate) enum JsonTemplate<T> {
    /// A number, a boolean or null as written.
    Bare(String),
    Text(T),
    List(Vec<JsonTemplate<T>>),
    Table(Vec<(String, JsonTemplate<T>)>),
}

/// The TLS configuration of a trigger.
#[derive(Clone, Debug)]
pub(crate) struct TriggerTls<T> {
    pub(crate) ca_file: Option<FileRef>,
    pub(crate) cert_file: Option<FileRef>,
    /// If absent, the key is in the certificate file.
    pub(crate) key_file: Option<FileRef>,
    pub(crate) server_name: Option<T>,
}

impl TriggerType {
    /// Returns the name by which a document selects it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Graphql => "graphql",
            Self::TraceId => "traceid",
            Self::Exec => "exec",
            Self::Call(protocol) => protocol.name,
        }
    }

    /// Returns the key of its section.
    pub(crate) fn section(self) -> &'static str {
        match self {
            Self::Http => "httpRequest",
            Self::Call(protocol) => protocol.section,
            other => other.name(),
        }
    }
}

impl<T> Trigger<T> {
    /// Returns the same trigger with each text replaced.
    pub(crate) fn map<U>(&self, f: &mut dyn FnMut(&T) -> U) -> Trigger<U> {
        let kind = match &self.kind {
            TriggerKind::Http(http) => TriggerKind::Http(http.map(f)),
            TriggerKind::Graphql(graphql) => TriggerKind::Graphql(graphql.map(f)),
            TriggerKind::TraceId(id) => TriggerKind::TraceId(f(id)),
            TriggerKind::Exec(exec) => TriggerKind::Exec(exec.map(f)),
            TriggerKind::Call(call) => TriggerKind::Call(call.map(f)),
        };
        Trigger {
            kind,
            name: self.name.clone(),
            place: self.place.clone(),
            timeout: self.timeout,
            tls: self.tls.as_ref().map(|tls| tls.map(f)),
            propagation: self.propagation.clone(),
        }
    }

    /// Returns the files that it needs, in the order of their keys.
    pub(crate) fn files(&self) -> Vec<&FileRef> {
        let tls = self.tls.iter().flat_map(|tls| [&tls.ca_file, &tls.cert_file, &tls.key_file]);
        self.contents().into_iter().chain(tls.flatten()).collect()
    }

    /// Returns the files with texts that it sends. The schema of a GraphQL query is only for editors.
    pub(crate) fn contents(&self) -> Vec<&FileRef> {
        match &self.kind {
            TriggerKind::Http(http) => {
                http.body.as_ref().and_then(Content::file).into_iter().collect()
            }
            TriggerKind::Graphql(graphql) => graphql.query.file().into_iter().collect(),
            TriggerKind::Call(call) => call.files().collect(),
            TriggerKind::TraceId(_) | TriggerKind::Exec(_) => Vec::new(),
        }
    }
}

impl<T> HttpTrigger<T> {
    fn map<U>(&self, f: &mut dyn FnMut(&T) -> U) -> HttpTrigger<U> {
        HttpTrigger {
            url: f(&self.url),
            method: self.method.clone(),
            headers: headers(&self.headers, f),
            body: self.body.as_ref().map(|body| body.map(f)),
            auth: self.auth.as_ref().map(|auth| auth.map(f)),
            ssl_verification: self.ssl_verification,
            redirects: self.redirects,
        }
    }
}

impl<T> Graphql<T> {
    fn map<U>(&self, f: &mut dyn FnMut(&T) -> U) -> Graphql<U> {
        Graphql {
            url: f(&self.url),
            headers: headers(&self.headers, f),
            auth: self.auth.as_ref().map(|auth| auth.map(f)),
            query: self.query.map(f),
            variables: self.variables.as_ref().map(|variables| variables.map(f)),
            operation_name: self.operation_name.as_ref().map(&mut *f),
            ssl_verification: self.ssl_verification,
            schema: self.schema.as_ref().map(|schema| schema.map(f)),
        }
    }
}

impl<T> Exec<T> {
    fn map<U>(&self, f: &mut dyn FnMut(&T) -> U) -> Exec<U> {
        Exec {
            command: match &self.command {
                Command::Line(line) => Command::Line(f(line)),
                Command::Words(words) => Command::Words(words.iter().map(&mut *f).collect()),
            },
            env: self.env.iter().map(|(name, value)| (name.clone(), f(value))).collect(),
            workdir: self.workdir.as_ref().map(&mut *f),
        }
    }
}

impl<T> Auth<T> {
    fn map<U>(&self, f: &mut dyn FnMut(&T) -> U) -> Auth<U> {
        match self {
            Self::ApiKey { key, value, place } => {
                Auth::ApiKey { key: f(key), value: f(value), place: *place }
            }
            Self::Basic { username, password } => {
                Auth::Basic { username: f(username), password: f(password) }
            }
            Self::Bearer { token } => Auth::Bearer { token: f(token) },
        }
    }
}

impl<T> TriggerTls<T> {
    fn map<U>(&self, f: &mut dyn FnMut(&T) -> U) -> TriggerTls<U> {
        TriggerTls {
            ca_file: self.ca_file.clone(),
            cert_file: self.cert_file.clone(),
            key_file: self.key_file.clone(),
            server_name: self.server_name.as_ref().map(&mut *f),
        }
    }
}

impl<T> Content<T> {
    fn file(&self) -> Option<&FileRef> {
        match self {
            Self::File(file) => Some(file),
            Self::Text(_) => None,
        }
    }

    fn map<U>(&self, f: &mut dyn FnMut(&T) -> U) -> Content<U> {
        match self {
            Self::Text(text) => Content::Text(f(text)),
            Self::File(file) => Content::File(file.clone()),
        }
    }
}

impl<T> JsonTemplate<T> {
    /// Recurses as deep as the document, and that depth is bounded.
    fn map<U>(&self, f: &mut dyn FnMut(&T) -> U) -> JsonTemplate<U> {
        match self {
            Self::Bare(bare) => JsonTemplate::Bare(bare.clone()),
            Self::Text(text) => JsonTemplate::Text(f(text)),
            Self::List(items) => JsonTemplate::List(items.iter().map(|item| item.map(f)).collect()),
            Self::Table(entries) => {
                let entry = |(key, value): &(String, Self)| (key.clone(), value.map(f));
                JsonTemplate::Table(entries.iter().map(entry).collect())
            }
        }
    }
}

fn headers<T, U>(headers: &[Header<T>], f: &mut dyn FnMut(&T) -> U) -> Vec<Header<U>> {
    let header = |header: &Header<T>| Header {
        key: f(&header.key),
        value: header.value.as_ref().map(&mut *f),
    };
    headers.iter().map(header).collect()
}
