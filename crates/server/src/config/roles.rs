//! The parts of a server that one process runs.

use std::str::FromStr;

use source::Fields;
use thiserror::Error;

/// The parts of a server that this process runs. By default these are all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerRoles {
    /// The API.
    pub api: bool,
    /// The receiver of spans.
    pub ingest: bool,
    /// The execution of runs.
    pub worker: bool,
}

/// A word that names no role.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{0}` is no role: write `api`, `ingest`, `worker`, or several of them with commas")]
pub struct UnknownRole(String);

impl Default for ServerRoles {
    fn default() -> Self {
        Self { api: true, ingest: true, worker: true }
    }
}

impl ServerRoles {
    const NONE: Self = Self { api: false, ingest: false, worker: false };

    /// Returns their names.
    pub(crate) fn names(self) -> Vec<String> {
        let all = [(self.api, "api"), (self.ingest, "ingest"), (self.worker, "worker")];
        all.into_iter().filter(|(is_there, _)| *is_there).map(|(_, name)| name.to_owned()).collect()
    }

    /// Whether spans have to travel from one process to another, because one receives them and another one judges them.
    pub(crate) fn are_split(self) -> bool {
        self.ingest != self.worker
    }

    fn with(self, name: &str) -> Result<Self, UnknownRole> {
        match name {
            "api" => Ok(Self { api: true, ..self }),
            "ingest" => Ok(Self { ingest: true, ..self }),
            "worker" => Ok(Self { worker: true, ..self }),
            _ => Err(UnknownRole(name.to_owned())),
        }
    }
}

impl FromStr for ServerRoles {
    type Err = UnknownRole;

    fn from_str(text: &str) -> Result<Self, UnknownRole> {
        text.split(',').try_fold(Self::NONE, |roles, name| roles.with(name.trim()))
    }
}

pub(super) fn read(server: &mut Fields<'_>) -> ServerRoles {
    let Some(item) = server.take("roles") else { return ServerRoles::default() };
    let names = item.list().unwrap_or_default();
    if names.is_empty() {
        item.misfit("a list of `api`, `ingest` and `worker`");
    }
    let mut roles = ServerRoles::NONE;
    for name in names {
        let Some(text) = name.string() else { continue };
        match roles.with(text) {
            Ok(more) => roles = more,
            Err(_) => name.misfit("`api`, `ingest` or `worker`"),
        }
    }
    roles
}

#[cfg(test)]
mod tests {
    use super::ServerRoles;

    #[test]
    fn roles_are_named_with_commas() {
        let roles: ServerRoles = "worker, api".parse().expect("roles");
        assert_eq!(roles, ServerRoles { api: true, ingest: false, worker: true });
        assert!(roles.are_split());
        assert_eq!(roles.names(), ["api", "worker"]);
        assert!(!"api".parse::<ServerRoles>().expect("a role").are_split());
        assert_eq!(ServerRoles::default().names(), ["api", "ingest", "worker"]);
        for wrong in ["", "api,", "workers"] {
            assert!(wrong.parse::<ServerRoles>().is_err(), "{wrong}");
        }
    }
}
