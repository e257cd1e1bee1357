//! The names of errors: an error keeps its name when the words of its message change.
//!
//! `docs/reference/errors.md` explains each, from [`ErrorCode::page`].

mod api;
mod commands;
mod server;

use std::fmt;

use serde::{Serialize, Serializer};

use crate::Fault;

/// What a person needs to know about an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorPage {
    /// What happened, as a sentence.
    pub message: &'static str,
    /// Why it happens.
    pub cause: &'static str,
    /// What to do about it.
    pub advice: &'static str,
}

/// Returns a page.
const fn page(message: &'static str, cause: &'static str, advice: &'static str) -> ErrorPage {
    ErrorPage { message, cause, advice }
}

/// Defines the codes, in the order of the pages.
macro_rules! codes {
    ($($name:ident $slug:literal $area:ident)*) => {
        /// The name of an error that a user can meet.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[expect(missing_docs, reason = "each has a page")]
        pub enum ErrorCode { $($name,)* }

        impl ErrorCode {
            /// All codes.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// Returns the code as messages and the API have it.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => $slug,)* }
            }

            /// Whether the API responds with it.
            pub fn is_of_api(self) -> bool {
                match self { $(Self::$name => stringify!($area) == "api",)* }
            }

            /// Returns what a person needs to know about it.
            pub fn page(self) -> ErrorPage {
                match self { $(Self::$name => $area::$name,)* }
            }
        }
    };
}

codes! {
    // Requests to a server.
    InvalidRequest "invalid-request" api
    InvalidDocument "invalid-document" api
    TooLarge "too-large" api
    RequestTimeout "request-timeout" api
    MethodNotAllowed "method-not-allowed" api
    NotAcceptable "not-acceptable" api
    NotFound "not-found" api
    Conflict "conflict" api
    VersionChanged "version-changed" api
    KeyUsed "key-used" api
    RunActive "run-active" api
    Unauthenticated "unauthenticated" api
    Forbidden "forbidden" api
    CrossOrigin "cross-origin" api
    RateLimited "rate-limited" api
    Overloaded "overloaded" api
    TelemetryBlocked "telemetry-blocked" api
    NotReady "not-ready" api
    Unavailable "unavailable" api
    SecretKeyMissing "secret-key-missing" api
    SecretKeyLost "secret-key-lost" api
    Internal "internal" api
    // Commands.
    Usage "usage" commands
    FileUnreadable "file-unreadable" commands
    FileUnwritable "file-unwritable" commands
    FileExists "file-exists" commands
    NoTests "no-tests" commands
    NoTestSelected "no-test-selected" commands
    DocumentMissing "document-missing" commands
    DocumentsCollide "documents-collide" commands
    VariableMissing "variable-missing" commands
    TriggerInvalid "trigger-invalid" commands
    TraceInvalid "trace-invalid" commands
    StoreInvalid "store-invalid" commands
    OtlpPortInUse "otlp-port-in-use" commands
    CommandNotStarted "command-not-started" commands
    CommandPortInUse "command-port-in-use" commands
    CommandNotReady "command-not-ready" commands
    CommandEnded "command-ended" commands
    NothingLearned "nothing-learned" commands
    TraceIncomplete "trace-incomplete" commands
    CurlUnsupported "curl-unsupported" commands
    BaselineNotPassed "baseline-not-passed" commands
    MutantsSurvived "mutants-survived" commands
    AcceptInCi "accept-in-ci" commands
    ReportsCollide "reports-collide" commands
    BinaryOutput "binary-output" commands
    ProjectFileInvalid "project-file-invalid" commands
    ProfileUnknown "profile-unknown" commands
    TrustRequired "trust-required" commands
    PruneUnsafe "prune-unsafe" commands
    ContextUnknown "context-unknown" commands
    ContextMissing "context-missing" commands
    TokenMissing "token-missing" commands
    PlainToken "plain-token" commands
    ServerUnreachable "server-unreachable" commands
    AuthorityInvalid "authority-invalid" commands
    ResponseUnknown "response-unknown" commands
    // Servers.
    ConfigurationInvalid "configuration-invalid" server
    AccessOff "access-off" server
    NatsRequired "nats-required" server
    PortInUse "port-in-use" server
    CertificateInvalid "certificate-invalid" server
    DataDirectoryUnusable "data-directory-unusable" server
    ProvisioningInvalid "provisioning-invalid" server
    ExporterInvalid "exporter-invalid" server
    DatabaseUnreachable "database-unreachable" server
    DatabaseDenied "database-denied" server
    DatabaseMissing "database-missing" server
    DatabaseVersion "database-version" server
}

impl ErrorCode {
    /// Returns the code with this name; none for that of another version.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|code| code.as_str() == name)
    }

    /// Returns the code of an error with this fault that no more specific code names.
    pub fn of(fault: Fault) -> Self {
        match fault {
            Fault::Invalid => Self::InvalidRequest,
            Fault::Missing => Self::NotFound,
            Fault::Conflict => Self::Conflict,
            Fault::Denied => Self::Forbidden,
            Fault::Upstream => Self::Unavailable,
            Fault::Overloaded => Self::Overloaded,
            Fault::Internal => Self::Internal,
        }
    }

    /// Returns the code of an HTTP status that no more specific code explains.
    pub fn of_status(status: u16) -> Self {
        match status {
            401 => Self::Unauthenticated,
            403 => Self::Forbidden,
            404 => Self::NotFound,
            405 => Self::MethodNotAllowed,
            406 => Self::NotAcceptable,
            408 => Self::RequestTimeout,
            409 => Self::Conflict,
            412 => Self::VersionChanged,
            413 => Self::TooLarge,
            429 => Self::Overloaded,
            500 => Self::Internal,
            501.. => Self::Unavailable,
            _ => Self::InvalidRequest,
        }
    }
}

impl Serialize for ErrorCode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::ErrorCode;

    #[test]
    fn every_code_has_a_name_and_a_page_with_advice() {
        let names: BTreeSet<_> = ErrorCode::ALL.iter().map(|code| code.as_str()).collect();
        assert_eq!(names.len(), ErrorCode::ALL.len(), "each name once");
        let is_plain = |name: &str| name.chars().all(|c| c.is_ascii_lowercase() || c == '-');
        for code in ErrorCode::ALL {
            let page = code.page();
            assert!(is_plain(code.as_str()), "{code}");
            assert_eq!(ErrorCode::parse(code.as_str()), Some(*code));
            for text in [page.message, page.cause, page.advice] {
                assert!(text.len() > 10 && text.ends_with('.'), "{code}: {text}");
            }
        }
        assert_eq!(ErrorCode::parse("of-another-version"), None);
    }
}
