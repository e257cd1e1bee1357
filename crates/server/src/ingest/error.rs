//! Why ingest cannot start.

use std::{io, path::PathBuf};

use drivers::receiver::TlsError;
use model::{ErrorCode, Fault, Faulty};
use thiserror::Error;

/// Why ingest cannot start.
#[derive(Debug, Error)]
pub enum IngestError {
    /// Spans cannot be stored.
    #[error("spans cannot be kept in `server.dataDirectory`: {0}")]
    Bus(#[from] bus::OpenError),
    /// The key file beside the spans cannot be read or created.
    #[error("`{}`, the key of spans on disk, cannot be read or written: {reason}", path.display())]
    JournalKey {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        reason: io::Error,
    },
    /// A file of the certificate cannot be read.
    #[error("`{}` of `server.otlpTls` cannot be read: {reason}", path.display())]
    TlsFile {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        reason: io::Error,
    },
    /// The content of these files is invalid.
    #[error("`server.otlpTls`: {0}")]
    Tls(#[from] TlsError),
    /// The thread that opens the journal ended early.
    #[error("the journal of spans could not be opened: {0}")]
    Thread(#[from] tokio::task::JoinError),
}

impl Faulty for IngestError {
    fn fault(&self) -> Fault {
        match self {
            Self::Bus(error) => error.fault(),
            Self::JournalKey { .. } | Self::TlsFile { .. } | Self::Tls(_) => Fault::Invalid,
            Self::Thread(_) => Fault::Internal,
        }
    }

    fn code(&self) -> ErrorCode {
        match self {
            Self::Bus(_) | Self::JournalKey { .. } => ErrorCode::DataDirectoryUnusable,
            Self::TlsFile { .. } | Self::Tls(_) => ErrorCode::CertificateInvalid,
            Self::Thread(_) => ErrorCode::Internal,
        }
    }
}
