//! The roles of a server's callers.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// The role of a caller; from the viewer on, each includes the permissions of the roles before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Sends spans and nothing else: the token of a Collector or a service need not read.
    Ingest,
    /// Reads.
    Viewer,
    /// Applies documents, starts and stops runs, sends spans.
    Editor,
    /// Creates tokens and reads the audit log.
    Admin,
}

impl Role {
    /// All roles, the least powerful first.
    pub const ALL: [Self; 4] = [Self::Ingest, Self::Viewer, Self::Editor, Self::Admin];

    /// Returns its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ingest => "ingest",
            Self::Viewer => "viewer",
            Self::Editor => "editor",
            Self::Admin => "admin",
        }
    }

    /// Returns the role of this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.as_str() == name)
    }
}

impl FromStr for Role {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        Self::parse(text).ok_or("expected `ingest`, `viewer`, `editor` or `admin`")
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
