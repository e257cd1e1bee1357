//! Profiles: the servers of a user, and the token for each of them.
//!
//! One file in the user's configuration folder, readable by the user only. A stored token is sent to the server that it was
//! stored for and to no other, whatever the value of `--server`.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use model::{Fault, Faulty, Secret};
use serde::{Deserialize, Serialize};
use server::config::Environment;
use thiserror::Error;

use crate::args;

/// The default URL of a server.
const SERVER: &str = "http://127.0.0.1:11633";
/// The default profile.
pub(crate) const PROFILE: &str = "default";
/// The name of the file, in the user's configuration folder.
const FILE: &str = "profiles.json";

/// A server, and the credentials for it.
#[derive(Clone, Debug)]
pub(crate) struct ServerProfile {
    pub(crate) url: String,
    pub(crate) token: Option<Secret>,
    /// A file with the trusted certificate authorities; without it those that this machine trusts.
    pub(crate) ca: Option<PathBuf>,
}

/// An error of profiles.
#[derive(Debug, Error)]
pub(crate) enum ProfileError {
    #[error(
        "there is no profile `{name}` in `{path}`: `qualitytrace login --profile {name}` makes it"
    )]
    Unknown { name: String, path: String },
    #[error("cannot {what} `{path}`: {reason}")]
    File { what: &'static str, path: String, reason: String },
    #[error("there is no folder for profiles: neither `XDG_CONFIG_HOME` nor `HOME` is set")]
    NoFolder,
}

impl Faulty for ProfileError {
    fn fault(&self) -> Fault {
        Fault::Invalid
    }
}

#[derive(Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct ProfileFile {
    /// The profile that is used by default.
    current: Option<String>,
    profiles: BTreeMap<String, Profile>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Profile {
    server: String,
    token: String,
}

/// Resolves the server and its token from arguments and profiles.
pub(crate) fn known(
    server: Option<&str>,
    identity: &args::Identity,
    environment: &Environment,
) -> Result<ServerProfile, ProfileError> {
    let Some(path) = path(environment) else {
        let url = server.unwrap_or(SERVER).to_owned();
        return Ok(ServerProfile { url, token: identity.token.clone(), ca: identity.ca.clone() });
    };
    let stored = read(&path)?;
    let named = |name: &String| {
        let unknown =
            || ProfileError::Unknown { name: name.clone(), path: path.display().to_string() };
        stored.profiles.get(name).ok_or_else(unknown)
    };
    let profile = match (&identity.profile, server) {
        (Some(name), _) => Some(named(name)?),
        (None, Some(url)) => stored.profiles.values().find(|profile| is_same(&profile.server, url)),
        (None, None) => stored.current.as_ref().map(named).transpose()?,
    };
    let url = server.or(profile.map(|profile| profile.server.as_str())).unwrap_or(SERVER);
    let kept = profile.filter(|profile| is_same(&profile.server, url));
    let kept = || kept.map(|profile| Secret::new(profile.token.clone()));
    let token = identity.token.clone().or_else(kept);
    Ok(ServerProfile { url: url.to_owned(), token, ca: identity.ca.clone() })
}

/// Stores a token for a server, and makes its profile the default. Returns the path of the file.
pub(crate) fn keep(
    name: &str,
    server: &str,
    token: &Secret,
    environment: &Environment,
) -> Result<PathBuf, ProfileError> {
    let path = path(environment).ok_or(ProfileError::NoFolder)?;
    let mut stored = read(&path)?;
    let profile = Profile { server: server.to_owned(), token: token.expose().to_owned() };
    stored.profiles.insert(name.to_owned(), profile);
    stored.current = Some(name.to_owned());
    let text = serde_json::to_vec_pretty(&stored).unwrap_or_default();
    write(&path, &text).map_err(|error| file("write", &path, error))?;
    Ok(path)
}

fn read(path: &Path) -> Result<ProfileFile, ProfileError> {
    match fs::read(path) {
        Ok(text) => serde_json::from_slice(&text).map_err(|error| file("read", path, error)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(ProfileFile::default()),
        Err(error) => Err(file("read", path, error)),
    }
}

/// Writes a temporary file and renames it, so that the file is complete and never readable by others.
fn write(path: &Path, text: &[u8]) -> io::Result<()> {
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
    let set = |name: &str| environment.get(name).filter(|value| !value.is_empty());
    let user = set("XDG_CONFIG_HOME").map(PathBuf::from);
    let user = user.or_else(|| set("HOME").map(|home| Path::new(home).join(".config")))?;
    Some(user.join("qualitytrace").join(FILE))
}

/// Whether two URLs address the same server.
fn is_same(one: &str, other: &str) -> bool {
    one.trim_end_matches('/').eq_ignore_ascii_case(other.trim_end_matches('/'))
}

fn file(what: &'static str, path: &Path, error: impl std::fmt::Display) -> ProfileError {
    ProfileError::File { what, path: path.display().to_string(), reason: error.to_string() }
}

#[cfg(test)]
mod tests {
    use model::Secret;
    use server::config::Environment;

    use super::{keep, known};
    use crate::args::Identity;

    fn environment(folder: &std::path::Path) -> Environment {
        [("XDG_CONFIG_HOME".to_owned(), folder.display().to_string())].into_iter().collect()
    }

    #[test]
    fn a_token_goes_to_its_server_only() {
        let folder = tempfile::tempdir().expect("a folder");
        let environment = environment(folder.path());
        let token = |text: &str| Some(Secret::new(text));
        keep("a", "http://a:1", &Secret::new("qtt_a"), &environment).expect("kept");
        let path = keep("b", "http://b:1/", &Secret::new("qtt_b"), &environment).expect("kept");
        #[cfg(unix)]
        {
            let mode = std::fs::metadata(&path).expect("there").permissions();
            assert_eq!(std::os::unix::fs::PermissionsExt::mode(&mode) & 0o777, 0o600);
        }
        let cases = [
            (None, None, None, "http://b:1/", Some("qtt_b")),
            (None, Some("a"), None, "http://a:1", Some("qtt_a")),
            (Some("http://a:1/"), None, None, "http://a:1/", Some("qtt_a")),
            (Some("http://evil"), None, None, "http://evil", None),
            (Some("http://evil"), Some("a"), None, "http://evil", None),
            (Some("http://a:1.evil"), None, None, "http://a:1.evil", None),
            (Some("http://evil"), None, Some("given"), "http://evil", Some("given")),
            (None, Some("a"), Some("given"), "http://a:1", Some("given")),
        ];
        for (server, profile, given, url, shown) in cases {
            let identity = Identity {
                token: given.and_then(token),
                profile: profile.map(str::to_owned),
                ca: None,
            };
            let found = known(server, &identity, &environment).expect("known");
            assert_eq!(found.url, url);
            assert_eq!(found.token, shown.and_then(token), "{server:?} {profile:?} {given:?}");
        }
        let identity = Identity { token: None, profile: Some("c".to_owned()), ca: None };
        let error = known(None, &identity, &environment).expect_err("there is none");
        assert!(error.to_string().contains("no profile `c`"), "{error}");
    }
}
