//! The kinds of documents, as the server stores them and people name them.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The kind of a document that a server stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum DocumentKind {
    /// `type: Test`
    Test,
    /// `type: TestSuite`
    TestSuite,
    /// `type: VariableSet`
    VariableSet,
    /// `type: TraceStore`
    TraceStore,
    /// `type: SettleProfile`
    SettleProfile,
    /// `type: Analyzer`
    Analyzer,
    /// `type: QualityGate`: which gates a run must pass.
    QualityGate,
}

/// The error of a word that is no kind of document.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("`{word}` is not a kind of document: expected {}", DocumentKind::words())]
pub struct UnknownKind {
    word: String,
}

impl DocumentKind {
    /// All kinds.
    pub const ALL: [Self; 7] = [
        Self::Test,
        Self::TestSuite,
        Self::VariableSet,
        Self::TraceStore,
        Self::SettleProfile,
        Self::Analyzer,
        Self::QualityGate,
    ];

    /// Returns the kind as one word, as in the database and the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Test => "test",
            Self::TestSuite => "testSuite",
            Self::VariableSet => "variableSet",
            Self::TraceStore => "traceStore",
            Self::SettleProfile => "settleProfile",
            Self::Analyzer => "analyzer",
            Self::QualityGate => "qualityGate",
        }
    }

    /// Returns the name of the collection, as a part of a path and on a command line.
    pub fn collection(self) -> &'static str {
        match self {
            Self::Test => "tests",
            Self::TestSuite => "test-suites",
            Self::VariableSet => "variable-sets",
            Self::TraceStore => "trace-stores",
            Self::SettleProfile => "settle-profiles",
            Self::Analyzer => "analyzers",
            Self::QualityGate => "quality-gates",
        }
    }

    /// Whether documents of the kind may contain secrets.
    pub fn holds_secrets(self) -> bool {
        matches!(self, Self::VariableSet | Self::TraceStore)
    }

    fn words() -> String {
        Self::ALL.map(|kind| format!("`{}`", kind.collection())).join(", ")
    }
}

impl fmt::Display for DocumentKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Test => "test",
            Self::TestSuite => "test suite",
            Self::VariableSet => "variable set",
            Self::TraceStore => "trace store",
            Self::SettleProfile => "settle profile",
            Self::Analyzer => "analyzer",
            Self::QualityGate => "quality gate",
        })
    }
}

impl FromStr for DocumentKind {
    type Err = UnknownKind;

    /// Parses the word of a command line: singular or plural, in any case, `variableset` for `variable-sets`.
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
