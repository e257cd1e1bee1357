//! Contexts: the servers of a user, each with the token for it and a project.
//!
//! One file in the user's configuration folder, readable by the user only. A stored token is sent to the server that it was
//! stored for and to no other, whatever the value of `--server`.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use model::{ErrorCode, Fault, Faulty, Secret};
use serde::{Deserialize, Serialize};
use server::config::Environment;
use thiserror::Error;

use crate::args::Connection;

/// The default URL of a server.
const SERVER: &str = "http://127.0.0.1:11633";
/// The default project.
const PROJECT: &str = "default";
/// The name of the context that `login` makes by default.
pub(crate) const CONTEXT: &str = "default";
/// The name of the file, in the user's configuration folder.
const FILE: &str = "contexts.json";

/// A server, the credentials for it, and a project.
#[derive(Clone, Debug)]
pub(crate) struct ServerAccess {
    pub(crate) url: String,
    pub(crate) token: Option<Secret>,
    /// A file with the trusted certificate authorities; without it those that this machine trusts.
    pub(crate) ca: Option<PathBuf>,
    pub(crate) project: String,
    /// Whether a token may be sent to another machine without TLS.
    pub(crate) is_plain: bool,
}

/// An error of contexts.
#[derive(Debug, Error)]
pub(crate) enum ContextError {
    #[error(
        "there is no context `{name}` in `{path}`: `qualitytrace login --context {name}` makes it, `qualitytrace context list` \
         shows those that are there"
    )]
    Unknown { name: String, path: String },
    #[error(
        "there is no current context: `qualitytrace login` makes one, `qualitytrace context use NAME` selects one"
    )]
    NoneCurrent,
    #[error("cannot {what} `{path}`: {reason}")]
    File { what: &'static str, path: String, reason: String },
    #[error("there is no folder for contexts: neither `XDG_CONFIG_HOME` nor `HOME` is set")]
    NoFolder,
}

impl Faulty for ContextError {
    fn fault(&self) -> Fault {
        Fault::Invalid
    }

    fn code(&self) -> ErrorCode {
        match self {
            Self::Unknown { .. } => ErrorCode::ContextUnknown,
            Self::NoneCurrent | Self::NoFolder => ErrorCode::ContextMissing,
            Self::File { .. } => ErrorCode::FileUnreadable,
        }
    }
}

#[derive(Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct ContextFile {
    /// The context that is used by default.
    current: Option<String>,
    contexts: BTreeMap<String, StoredContext>,
}

#[derive(Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct StoredContext {
    server: String,
    token: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    project: Option<String>,
}

/// A stored context, without its token.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ListedContext {
    pub(crate) name: String,
    pub(crate) server: String,
    pub(crate) project: String,
    pub(crate) is_current: bool,
}

/// Resolves the server, its token and the project from arguments and contexts.
pub(crate) fn resolve(
    given: &Connection,
    environment: &Environment,
) -> Result<ServerAccess, ContextError> {
    let stored = match path(environment) {
        Some(path) => read(&path)?,
        None => ContextFile::default(),
    };
    let named = |name: &String| stored.contexts.get(name).ok_or_else(|| unknown(name, environment));
    let context = match (&given.address.context, &given.address.server) {
        (Some(name), _) => Some(named(name)?),
        (None, Some(url)) => stored.of_server(url),
        (None, None) => stored.current.as_ref().map(named).transpose()?,
    };
    let url = given.address.server.as_ref().or(context.map(|context| &context.server));
    let url = url.map_or(SERVER, String::as_str).to_owned();
    let context = context.filter(|context| is_same(&context.server, &url));
    let kept = || context.map(|context| Secret::new(context.token.clone()));
    let project = given.project.clone().or_else(|| context?.project.clone());
    Ok(ServerAccess {
        url,
        token: given.address.token.clone().or_else(kept),
        ca: given.address.ca.clone(),
        project: project.unwrap_or_else(|| PROJECT.to_owned()),
        is_plain: given.address.plain_http,
    })
}

/// Stores the token and the project for a server, and makes its context the current one. Returns the path of the file.
pub(crate) fn keep(
    name: &str,
    (server, project): (&str, Option<&str>),
    token: &Secret,
    environment: &Environment,
) -> Result<PathBuf, ContextError> {
    change(environment, |stored, _| {
        let context = StoredContext {
            server: server.to_owned(),
            token: token.expose().to_owned(),
            project: project.map(str::to_owned),
        };
        stored.contexts.insert(name.to_owned(), context);
        stored.current = Some(name.to_owned());
        Ok(())
    })
}

/// Returns all contexts, by name.
pub(crate) fn list(environment: &Environment) -> Result<Vec<ListedContext>, ContextError> {
    let Some(path) = path(environment) else { return Ok(Vec::new()) };
    let ContextFile { current, contexts } = read(&path)?;
    let listed = |(name, context): (String, StoredContext)| ListedContext {
        is_current: current.as_ref() == Some(&name),
        server: context.server,
        project: context.project.unwrap_or_else(|| PROJECT.to_owned()),
        name,
    };
    Ok(contexts.into_iter().map(listed).collect())
}

/// Makes a context the current one.
pub(crate) fn select(name: &str, environment: &Environment) -> Result<PathBuf, ContextError> {
    change(environment, |stored, environment| {
        if !stored.contexts.contains_key(name) {
            return Err(unknown(name, environment));
        }
        stored.current = Some(name.to_owned());
        Ok(())
    })
}

/// Removes a context and its token, the current one by default. Returns its name.
pub(crate) fn remove(
    name: Option<&str>,
    environment: &Environment,
) -> Result<String, ContextError> {
    let mut removed = String::new();
    change(environment, |stored, environment| {
        let name = match name {
            Some(name) => name.to_owned(),
            None => stored.current.clone().ok_or(ContextError::NoneCurrent)?,
        };
        stored.contexts.remove(&name).ok_or_else(|| unknown(&name, environment))?;
        stored.current = stored.current.take().filter(|current| *current != name);
        removed = name;
        Ok(())
    })?;
    Ok(removed)
}

impl ContextFile {
    /// Returns the context with this server, the current one among several.
    fn of_server(&self, url: &str) -> Option<&StoredContext> {
        let current = self.current.as_ref().and_then(|name| self.contexts.get(name));
        let all = current.into_iter().chain(self.contexts.values());
        all.into_iter().find(|context| is_same(&context.server, url))
    }
}

fn unknown(name: &str, environment: &Environment) -> ContextError {
    let path = path(environment).unwrap_or_else(|| FILE.into());
    ContextError::Unknown { name: name.to_owned(), path: path.display().to_string() }
}

/// Changes the file. Returns its path.
fn change(
    environment: &Environment,
    change: impl FnOnce(&mut ContextFile, &Environment) -> Result<(), ContextError>,
) -> Result<PathBuf, ContextError> {
    let path = path(environment).ok_or(ContextError::NoFolder)?;
    let mut stored = read(&path)?;
    change(&mut stored, environment)?;
    let text = serde_json::to_vec_pretty(&stored).unwrap_or_default();
    write(&path, &text).map_err(|error| file("write", &path, error))?;
    Ok(path)
}

fn read(path: &Path) -> Result<ContextFile, ContextError> {
    match fs::read(path) {
        Ok(text) => serde_json::from_slice(&text).map_err(|error| file("read", path, error)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(ContextFile::default()),
        Err(error) => Err(file("read", path, error)),
    }
}

/// Writes a temporary file and renames it, so that the file is complete and never readable by others.
pub(crate) fn write(path: &Path, text: &[u8]) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let beside = path.with_extension("json.new");
    fs::remove_file(&beside).or_else(|error| match error.kind() {
        io::ErrorKind::NotFound => Ok(()),
        _ => Err(error),
    })?;
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&beside)?;
    file.write_all(text)?;
    file.sync_all()?;
    fs::rename(&beside, path)
}

fn path(environment: &Environment) -> Option<PathBuf> {
    configuration_file(environment, FILE)
}

/// Returns the path of a file in the user's configuration folder.
pub(crate) fn configuration_file(environment: &Environment, name: &str) -> Option<PathBuf> {
    let set = |name: &str| environment.get(name).filter(|value| !value.is_empty());
    let user = set("XDG_CONFIG_HOME").map(PathBuf::from);
    let user = user.or_else(|| set("HOME").map(|home| Path::new(home).join(".config")))?;
    Some(user.join("qualitytrace").join(name))
}

/// Whether two URLs address the same server.
fn is_same(one: &str, other: &str) -> bool {
    one.trim_end_matches('/').eq_ignore_ascii_case(other.trim_end_matches('/'))
}

fn file(what: &'static str, path: &Path, error: impl std::fmt::Display) -> ContextError {
    ContextError::File { what, path: path.display().to_string(), reason: error.to_string() }
}

#[cfg(test)]
mod tests {
    use model::Secret;
    use server::config::Environment;

    use super::{Connection, keep, list, remove, resolve, select};

    fn environment(folder: &std::path::Path) -> Environment {
        [("XDG_CONFIG_HOME".to_owned(), folder.display().to_string())].into_iter().collect()
    }

    fn given(server: Option<&str>, context: Option<&str>, token: Option<&str>) -> Connection {
        let mut given = Connection::default();
        given.address.server = server.map(str::to_owned);
        given.address.context = context.map(str::to_owned);
        given.address.token = token.map(Secret::new);
        given
    }

    #[test]
    fn a_token_goes_to_its_server_only() {
        let folder = tempfile::tempdir().expect("a folder");
        let environment = environment(folder.path());
        let (a, b) = (("http://a:1", None), ("http://b:1/", Some("shop")));
        keep("a", a, &Secret::new("qtt_a"), &environment).expect("kept");
        let path = keep("b", b, &Secret::new("qtt_b"), &environment).expect("kept");
        #[cfg(unix)]
        {
            let mode = std::fs::metadata(&path).expect("there").permissions();
            assert_eq!(std::os::unix::fs::PermissionsExt::mode(&mode) & 0o777, 0o600);
        }
        let cases = [
            (None, None, None, "http://b:1/", Some("qtt_b"), "shop"),
            (None, Some("a"), None, "http://a:1", Some("qtt_a"), "default"),
            (Some("http://a:1/"), None, None, "http://a:1/", Some("qtt_a"), "default"),
            (Some("http://evil"), None, None, "http://evil", None, "default"),
            (Some("http://evil"), Some("b"), None, "http://evil", None, "default"),
            (Some("http://a:1.evil"), None, None, "http://a:1.evil", None, "default"),
            (Some("http://evil"), None, Some("given"), "http://evil", Some("given"), "default"),
            (None, Some("b"), Some("given"), "http://b:1/", Some("given"), "shop"),
        ];
        for (server, context, token, url, sent, project) in cases {
            let found = resolve(&given(server, context, token), &environment).expect("known");
            let case = format!("{server:?} {context:?} {token:?}");
            assert_eq!((found.url.as_str(), found.project.as_str()), (url, project), "{case}");
            assert_eq!(found.token, sent.map(Secret::new), "{case}");
        }
        let other = Connection { project: Some("other".to_owned()), ..given(None, None, None) };
        assert_eq!(resolve(&other, &environment).expect("known").project, "other");
        let error = resolve(&given(None, Some("c"), None), &environment).expect_err("none");
        assert!(error.to_string().contains("no context `c`"), "{error}");
    }

    #[test]
    fn a_context_is_selected_and_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let environment = environment(folder.path());
        for name in ["a", "b"] {
            let server = format!("http://{name}:1");
            keep(name, (&server, None), &Secret::new("t"), &environment).expect("kept");
        }
        let current = || {
            let all = list(&environment).expect("a list");
            all.into_iter().find(|it| it.is_current).map(|it| it.name)
        };
        assert_eq!(current().as_deref(), Some("b"));
        select("a", &environment).expect("selected");
        assert_eq!(current().as_deref(), Some("a"));
        assert!(select("c", &environment).is_err());
        assert_eq!(remove(None, &environment).expect("removed"), "a");
        assert_eq!(current(), None);
        assert!(remove(None, &environment).is_err(), "none is the current one");
        assert_eq!(remove(Some("b"), &environment).expect("removed"), "b");
        assert!(list(&environment).expect("a list").is_empty());
        assert!(resolve(&given(None, None, None), &environment).expect("known").token.is_none());
    }
}
