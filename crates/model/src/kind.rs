//! What documents there are, as the server keeps them and people name them.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The kind of a document that a server keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum DocumentKind {
    /// `type: Test`
    Test,
    /// `type: TestSuite`
    Suite,
    /// `type: VariableSet`
    VariableSet,
    /// `type: DataStore`
    Store,
    /// `type: PollingProfile`
    SettleProfile,
    /// `type: Analyzer`
    Analyzer,
    /// `type: TestRunner`: which gates a run has to pass.
    Gate,
}

/// A word that is no kind of document.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("`{word}` is not a kind of document: expected {}", DocumentKind::words())]
pub struct UnknownKind {
    word: String,
}

impl DocumentKind {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Test,
        Self::Suite,
        Self::VariableSet,
        Self::Store,
        Self::SettleProfile,
        Self::Analyzer,
        Self::Gate,
    ];

    /// The kind as one word, as the record and the API have it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Test => "test",
            Self::Suite => "suite",
            Self::VariableSet => "variableSet",
            Self::Store => "store",
            Self::SettleProfile => "settleProfile",
            Self::Analyzer => "analyzer",
            Self::Gate => "gate",
        }
    }

    /// All documents of the kind, as a part of a path and on a command line.
    pub fn collection(self) -> &'static str {
        match self {
            Self::Test => "tests",
            Self::Suite => "suites",
            Self::VariableSet => "variable-sets",
            Self::Store => "stores",
            Self::SettleProfile => "settle-profiles",
            Self::Analyzer => "analyzers",
            Self::Gate => "gates",
        }
    }

    /// Whether documents of the kind may hold what nobody may read.
    pub fn holds_secrets(self) -> bool {
        matches!(self, Self::VariableSet | Self::Store)
    }

    fn words() -> String {
        Self::ALL.map(|kind| format!("`{}`", kind.collection())).join(", ")
    }
}

impl fmt::Display for DocumentKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::VariableSet => "variable set",
            Self::SettleProfile => "settle profile",
            other => other.as_str(),
        })
    }
}

impl FromStr for DocumentKind {
    type Err = UnknownKind;

    /// Reads what a command line says: one or many, in any case, `variableset` for `variable-sets`.
    fn from_str(word: &str) -> Result<Self, UnknownKind> {
        let plain = |word: &str| word.to_ascii_lowercase().replace(['-', '_'], "");
        let given = plain(word);
        let is_meant =
            |kind: &Self| given == plain(kind.collection()) || given == plain(kind.as_str());
        Self::ALL.into_iter().find(is_meant).ok_or_else(|| UnknownKind { word: word.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::DocumentKind;

    #[test]
    fn a_kind_is_known_by_all_its_words() {
        for kind in DocumentKind::ALL {
            for word in [kind.as_str(), kind.collection(), &kind.as_str().to_uppercase()] {
                assert_eq!(word.parse(), Ok(kind), "{word}");
            }
        }
        let error = "teste".parse::<DocumentKind>().expect_err("no kind");
        assert!(
            error.to_string().starts_with("`teste` is not a kind of document: expected `tests`"),
            "{error}"
        );
    }
}
