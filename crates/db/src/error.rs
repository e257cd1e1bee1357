//! Errors of the database, and how to fix them.
//!
//! Messages state the location and the remedy. They never contain the password, and neither does a message of the driver.

use std::fmt;

use model::{DocumentKind, ErrorCode, Fault, Faulty, Project, RunId, TestId};
use sqlx::{Error, migrate::MigrateError};
use thiserror::Error;

/// The states of <https://www.postgresql.org/docs/current/errcodes-appendix.html> that a caller can act on.
pub(crate) mod sqlstate {
    pub(super) const CHARACTER_NOT_IN_REPERTOIRE: &str = "22021";
    pub(super) const INVALID_AUTHORIZATION: &str = "28000";
    pub(super) const INVALID_PASSWORD: &str = "28P01";
    pub(super) const INVALID_CATALOG_NAME: &str = "3D000";
    pub(super) const SERIALIZATION_FAILURE: &str = "40001";
    pub(super) const DEADLOCK_DETECTED: &str = "40P01";
    pub(super) const INSUFFICIENT_PRIVILEGE: &str = "42501";
    pub(super) const READ_ONLY_TRANSACTION: &str = "25006";
    pub(crate) const LOCK_NOT_AVAILABLE: &str = "55P03";
    /// Lost connections; full disks, memory and connection slots; shutdowns; failures below Postgres.
    pub(super) const UPSTREAM_CLASSES: [&str; 4] = ["08", "53", "57", "58"];
}

/// An error of the database.
#[derive(Debug, Error)]
pub enum DbError {
    /// Postgres does not accept connections, or the connection broke.
    #[error(
        "cannot speak to postgres at `{at}`: {reason}; check that it runs and that `postgres` in the configuration names it"
    )]
    Unreachable {
        /// Host, port and database.
        at: String,
        /// The message of the driver.
        reason: String,
    },
    /// No connection within the timeout.
    #[error(
        "no connection to postgres at `{at}` in time: nothing listens there, or all connections of the pool are in use; check that it runs and that `postgres` in the configuration names it"
    )]
    TimedOut {
        /// Host, port and database.
        at: String,
    },
    /// Postgres responds, and cannot do this now.
    #[error("postgres at `{at}` cannot do this now: {reason}; try again later")]
    Unable {
        /// Host, port and database.
        at: String,
        /// The message of Postgres.
        reason: String,
    },
    /// Postgres denies access.
    #[error(
        "postgres at `{at}` denies this: {reason}; check user and password in `postgres` in the configuration, and the role's rights"
    )]
    Denied {
        /// Host, port and database.
        at: String,
        /// The message of Postgres.
        reason: String,
    },
    /// The database does not exist.
    #[error(
        "postgres has no database `{at}`: create it with `create database`, or name another in `postgres.dbname`"
    )]
    NoDatabase {
        /// Host, port and database.
        at: String,
    },
    /// The tables are not of the version that this program knows.
    #[error(
        "the tables at `{at}` are of another version of this program: {reason}; run that version, or name another database"
    )]
    OtherVersion {
        /// Host, port and database.
        at: String,
        /// The difference.
        reason: String,
    },
    /// The servers on this database require a later version than this one.
    #[error(
        "this version is too old for the database `{at}`: {reason}; start the version that the other servers have, or name another database"
    )]
    TooOld {
        /// Host, port and database.
        at: String,
        /// What this version does not know.
        reason: String,
    },
    /// An unknown parameter.
    #[error("`{name}` is not a parameter of a connection to postgres: expected one of {known}")]
    UnknownParam {
        /// Its name.
        name: String,
        /// The known parameters.
        known: &'static str,
    },
    /// A parameter with an invalid value.
    #[error(
        "the parameter `{name}` of the connection to postgres has no such value: expected {expected}"
    )]
    Param {
        /// Its name.
        name: String,
        /// The valid values.
        expected: &'static str,
    },
    /// A pool that cannot hold a connection.
    #[error("a pool of no connections to postgres can do nothing: allow at least 1")]
    NoConnections,
    /// A text that Postgres cannot store.
    #[error("postgres cannot keep a text with the character NUL: remove it")]
    Nul,
    /// No such test.
    #[error("project `{project}` has no test `{test}`: apply it first")]
    NoSuchTest {
        /// The project.
        project: Project,
        /// The id of the test.
        test: TestId,
    },
    /// The document is not in the version that the caller knows.
    #[error("the {kind} `{id}` {}: read it again, and decide anew", found.map_or_else(|| "is not there".to_owned(), |version| format!("is at version {version}")))]
    Changed {
        /// Its kind.
        kind: DocumentKind,
        /// Its id.
        id: TestId,
        /// The stored version.
        found: Option<i32>,
    },
    /// There is no key to seal with.
    #[error(
        "a {kind} may hold secrets, and there is no key to keep them under: set `secrets.keys` in the configuration"
    )]
    NoSecretKey {
        /// The kind of the document.
        kind: DocumentKind,
    },
    /// The key that sealed a document is not configured any more.
    #[error(
        "the {kind} `{id}` was sealed with a key that is not among `secrets.keys` in the configuration: add that key again, behind the first"
    )]
    LostSecretKey {
        /// Its kind.
        kind: DocumentKind,
        /// Its id.
        id: TestId,
    },
    /// The id is in use.
    #[error("run `{run}` exists already: draw another id")]
    RunExists {
        /// The run.
        run: RunId,
    },
    /// The key belongs to another request.
    #[error(
        "the idempotency key `{key}` has been used by another request: give this one a key of its own"
    )]
    OtherRequest {
        /// The key.
        key: String,
    },
    /// The writer does not own the run, or repeats a step with other values. Nothing was written.
    #[error(
        "run `{run}` takes nothing more from epoch {epoch}: it was taken again, has its verdict, or has this step already; stop and write nothing more"
    )]
    Fenced {
        /// The run.
        run: RunId,
        /// The epoch that the writer named.
        epoch: i64,
    },
    /// The trace exceeds the upper bound.
    #[error("the trace of run `{run}` is larger than {bytes_max} bytes: it is not kept")]
    TraceTooLarge {
        /// The run.
        run: RunId,
        /// The upper bound.
        bytes_max: usize,
    },
    /// The columns of a trace exceed the upper bound.
    #[error(
        "the trace of run `{run}` has columns of more than {bytes_max} bytes, because its names are very many and long: read it as OTLP"
    )]
    ColumnsTooLarge {
        /// The run.
        run: RunId,
        /// The upper bound.
        bytes_max: usize,
    },
    /// A part of a run cannot be encoded for storage.
    #[error("the {what} of run `{run}` cannot be kept: {reason}; this is a bug, please report it")]
    Unwritable {
        /// The run.
        run: RunId,
        /// The part of the run.
        what: &'static str,
        /// The reason.
        reason: String,
    },
    /// The database holds data that this program did not write, or cannot read.
    #[error("the record is damaged: {what} cannot be read: {reason}")]
    Corrupt {
        /// The object that was read.
        what: String,
        /// The reason.
        reason: String,
    },
    /// A bug.
    #[error("postgres at `{at}` refused a statement: {reason}; this is a bug, please report it")]
    Refused {
        /// Host, port and database.
        at: String,
        /// The message of Postgres.
        reason: String,
    },
}

impl Faulty for DbError {
    fn fault(&self) -> Fault {
        match self {
            Self::Unreachable { .. } | Self::TimedOut { .. } | Self::Unable { .. } => {
                Fault::Upstream
            }
            Self::Denied { .. } => Fault::Denied,
            Self::NoDatabase { .. } | Self::NoSuchTest { .. } => Fault::Missing,
            Self::OtherVersion { .. }
            | Self::TooOld { .. }
            | Self::RunExists { .. }
            | Self::OtherRequest { .. }
            | Self::Fenced { .. }
            | Self::Changed { .. }
            | Self::NoSecretKey { .. } => Fault::Conflict,
            Self::UnknownParam { .. }
            | Self::Param { .. }
            | Self::NoConnections
            | Self::Nul
            | Self::TraceTooLarge { .. }
            | Self::ColumnsTooLarge { .. } => Fault::Invalid,
            Self::Unwritable { .. }
            | Self::Corrupt { .. }
            | Self::Refused { .. }
            | Self::LostSecretKey { .. } => Fault::Internal,
        }
    }

    fn code(&self) -> ErrorCode {
        match self {
            Self::Unreachable { .. } | Self::TimedOut { .. } => ErrorCode::DatabaseUnreachable,
            Self::Denied { .. } => ErrorCode::DatabaseDenied,
            Self::NoDatabase { .. } => ErrorCode::DatabaseMissing,
            Self::OtherVersion { .. } | Self::TooOld { .. } => ErrorCode::DatabaseVersion,
            Self::UnknownParam { .. } | Self::Param { .. } | Self::NoConnections => {
                ErrorCode::ConfigurationInvalid
            }
            Self::NoSecretKey { .. } => ErrorCode::SecretKeyMissing,
            Self::LostSecretKey { .. } => ErrorCode::SecretKeyLost,
            Self::Changed { .. } => ErrorCode::VersionChanged,
            Self::OtherRequest { .. } => ErrorCode::KeyUsed,
            Self::TraceTooLarge { .. } | Self::ColumnsTooLarge { .. } => ErrorCode::TooLarge,
            _ => ErrorCode::of(self.fault()),
        }
    }
}

impl DbError {
    pub(crate) fn corrupt(what: impl Into<String>, reason: impl fmt::Display) -> Self {
        Self::Corrupt { what: what.into(), reason: format!("{reason}") }
    }

    #[expect(
        clippy::needless_pass_by_value,
        reason = "an error becomes another one: the first is used up"
    )]
    pub(crate) fn of(at: &str, error: Error) -> Self {
        let (at, reason) = (at.to_owned(), error.to_string());
        match &error {
            Error::PoolTimedOut => Self::TimedOut { at },
            Error::Io(_)
            | Error::Tls(_)
            | Error::Protocol(_)
            | Error::PoolClosed
            | Error::WorkerCrashed
            | Error::BeginFailed => Self::Unreachable { at, reason },
            Error::ColumnDecode { index, source } => {
                Self::corrupt(format!("column {index}"), source)
            }
            Error::Database(answer) => {
                let state = answer.code().unwrap_or_default();
                Self::of_state(at, &state, answer.message().to_owned())
            }
            _ => Self::Refused { at, reason },
        }
    }

    pub(crate) fn of_migration(at: &str, error: MigrateError) -> Self {
        match error {
            MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _) => {
                Self::of(at, error)
            }
            other => Self::OtherVersion { at: at.to_owned(), reason: other.to_string() },
        }
    }

    fn of_state(at: String, state: &str, reason: String) -> Self {
        match state {
            sqlstate::CHARACTER_NOT_IN_REPERTOIRE => Self::Nul,
            sqlstate::INVALID_AUTHORIZATION
            | sqlstate::INVALID_PASSWORD
            | sqlstate::INSUFFICIENT_PRIVILEGE => Self::Denied { at, reason },
            sqlstate::INVALID_CATALOG_NAME => Self::NoDatabase { at },
            sqlstate::SERIALIZATION_FAILURE
            | sqlstate::DEADLOCK_DETECTED
            | sqlstate::LOCK_NOT_AVAILABLE
            | sqlstate::READ_ONLY_TRANSACTION => Self::Unable { at, reason },
            _ if sqlstate::UPSTREAM_CLASSES.iter().any(|class| state.starts_with(class)) => {
                Self::Unable { at, reason }
            }
            _ => Self::Refused { at, reason },
        }
    }
}

#[cfg(test)]
mod tests {
    use model::{Fault, Faulty};

    use super::DbError;

    #[test]
    fn the_state_tells_the_fault() {
        let cases = [
            ("28P01", Fault::Denied),
            ("42501", Fault::Denied),
            ("3D000", Fault::Missing),
            ("22021", Fault::Invalid),
            ("40P01", Fault::Upstream),
            ("25006", Fault::Upstream),
            ("55P03", Fault::Upstream),
            ("57P01", Fault::Upstream),
            ("53300", Fault::Upstream),
            ("08006", Fault::Upstream),
            ("42P01", Fault::Internal),
            ("", Fault::Internal),
        ];
        for (state, expected) in cases {
            let error = DbError::of_state("here:1/x".to_owned(), state, "why".to_owned());
            assert_eq!(error.fault(), expected, "{state}: {error}");
        }
    }
}
