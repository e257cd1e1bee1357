//! Provisioning: applies documents from a file or a folder at every start.
//!
//! The files are the source of truth: a document of an earlier start that is in no file any more is deleted. Documents that
//! people applied are left alone. Deliberately absent: watching the files; they are read only at a start.

use std::{
    fs,
    path::{Path, PathBuf},
};

use db::{Db, DbError, NewDocument};
use lang::StorableDocument;
use model::{ErrorCode, Fault, Faulty, Project, Timestamp};
use source::{Colour, Diagnostic, Severity, Text};
use thiserror::Error;

/// The maximum number of files.
const FILES_MAX: usize = 10_000;
/// The maximum depth of nested folders.
const DEPTH_MAX: usize = 32;
/// The extensions of the files that are read in a folder.
const EXTENSIONS: &[&str] = &["yaml", "yml", "json"];

/// A document, and the file that holds it.
#[derive(Clone, Debug)]
pub(crate) struct ProvisionedDocument {
    kept: StorableDocument,
    file: String,
}

/// Why documents cannot be provisioned.
#[derive(Debug, Error)]
pub enum ProvisionError {
    /// A file or folder cannot be read.
    #[error("`server.provisioning` cannot be read: `{}`: {reason}", path.display())]
    Unreadable {
        /// The file or folder.
        path: PathBuf,
        /// The error of the system.
        reason: String,
    },
    /// Documents have errors.
    #[error("documents of `server.provisioning` have mistakes:\n{picture}")]
    Mistakes {
        /// All diagnostics, rendered.
        picture: String,
    },
    /// Two files with the same document.
    #[error("`{first}` and `{second}` of `server.provisioning` both hold the {what}: leave one")]
    Twice {
        /// The kind and id of the document.
        what: String,
        /// The first file.
        first: String,
        /// The second file.
        second: String,
    },
}

impl Faulty for ProvisionError {
    fn fault(&self) -> Fault {
        Fault::Invalid
    }

    fn code(&self) -> ErrorCode {
        ErrorCode::ProvisioningInvalid
    }
}

/// Reads the documents of a file, or of all files below a folder, with their warnings. One error in any of them fails
/// the call. `receiver` is the OTLP endpoint of this server for a Collector.
pub(crate) fn read(
    path: &Path,
    receiver: &str,
) -> Result<(Vec<ProvisionedDocument>, Vec<Diagnostic>), ProvisionError> {
    let mut files = Vec::new();
    collect(path, 0, &mut files)?;
    files.sort();
    let mut provided: Vec<ProvisionedDocument> = Vec::new();
    let (mut mistakes, mut warnings) = (Vec::new(), Vec::new());
    for file in files {
        let content = fs::read_to_string(&file).map_err(|error| unreadable(&file, &error))?;
        let text = Text::new(file.display().to_string(), content);
        let (kept, diagnostics) = lang::storable_documents(&text, receiver);
        let (wrong, notices): (Vec<_>, Vec<_>) =
            diagnostics.into_iter().partition(Diagnostic::is_error);
        mistakes.extend(wrong);
        warnings.extend(notices.into_iter().filter(|it| it.severity == Severity::Warning));
        for kept in kept {
            let same = |other: &&ProvisionedDocument| {
                (other.kept.kind, &other.kept.id) == (kept.kind, &kept.id)
            };
            if let Some(other) = provided.iter().find(same) {
                return Err(ProvisionError::Twice {
                    what: format!("{} `{}`", kept.kind, kept.id),
                    first: other.file.clone(),
                    second: text.name().to_owned(),
                });
            }
            provided.push(ProvisionedDocument { kept, file: text.name().to_owned() });
        }
    }
    if !mistakes.is_empty() {
        return Err(ProvisionError::Mistakes { picture: source::draw(&mistakes, Colour::Never) });
    }
    Ok((provided, warnings))
}

/// Reads the documents for a start, and logs warnings, such as for stored documents that have no effect in a run.
pub(crate) fn logged(
    path: Option<&Path>,
    receiver: &str,
) -> Result<Option<Vec<ProvisionedDocument>>, ProvisionError> {
    let Some(path) = path else { return Ok(None) };
    let (provided, warnings) = read(path, receiver)?;
    for warning in warnings {
        tracing::warn!("a document of `server.provisioning`: {}", in_words(&warning));
    }
    Ok(Some(provided))
}

/// Renders a warning without its source line, since secrets may be beside it: they must not reach a log or a response.
pub(crate) fn in_words(warning: &Diagnostic) -> String {
    let Diagnostic { message, text, span, help, lines, .. } = warning;
    let place = text.place(span.map_or(0, |span| span.start));
    let help = help.iter().chain(lines).map(String::as_str).collect::<Vec<_>>().join("\n");
    format!("{}:{}:{}: {message}; {help}", text.name(), place.line, place.column)
}

/// Makes the database hold exactly these of all provisioned documents.
pub(crate) async fn apply(
    db: &Db,
    provided: Vec<ProvisionedDocument>,
    now: Timestamp,
) -> Result<(), DbError> {
    let new: Vec<_> = provided
        .into_iter()
        .map(|ProvisionedDocument { kept, file }| NewDocument {
            project: Project::default(),
            kind: kept.kind,
            id: kept.id,
            name: kept.name,
            file,
            document: kept.document,
            host: kept.host,
        })
        .collect();
    let (applied, deleted) = db.provision(&new, now).await?;
    let changed = applied.iter().filter(|applied| applied.changed).count();
    tracing::info!(documents = applied.len(), changed, deleted, "documents were provisioned");
    Ok(())
}

fn collect(path: &Path, depth: usize, files: &mut Vec<PathBuf>) -> Result<(), ProvisionError> {
    if !path.is_dir() {
        files.push(path.to_owned());
        return Ok(());
    }
    let entries = fs::read_dir(path).map_err(|error| unreadable(path, &error))?;
    for entry in entries {
        let entry = entry.map_err(|error| unreadable(path, &error))?;
        let below = entry.path();
        // Hidden entries are skipped: a mounted volume has such folders.
        let is_hidden = entry.file_name().to_string_lossy().starts_with('.');
        let is_known =
            below.extension().is_some_and(|end| EXTENSIONS.iter().any(|known| end == *known));
        if is_hidden || !(below.is_dir() || is_known) {
            continue;
        }
        if files.len() == FILES_MAX || depth == DEPTH_MAX {
            let reason =
                format!("there are more than {FILES_MAX} files, or folders {DEPTH_MAX} deep");
            return Err(ProvisionError::Unreadable { path: below, reason });
        }
        collect(&below, depth + 1, files)?;
    }
    Ok(())
}

fn unreadable(path: &Path, error: &std::io::Error) -> ProvisionError {
    ProvisionError::Unreadable { path: path.to_owned(), reason: error.to_string() }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{in_words, read};

    #[test]
    fn what_is_kept_and_does_nothing_is_named_at_its_place() -> std::io::Result<()> {
        let folder = tempfile::TempDir::new()?;
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text);
        write(
            "store.yaml",
            "type: TraceStore\nspec: {name: prod, type: signalfx, signalfx: {realm: a, token: s3cret}}\n",
        )?;
        write("gate.yaml", "type: QualityGate\nspec: {id: release}\n")?;
        write(
            "test.yaml",
            "type: Test\nspec: {name: a, trigger: {type: kafka, kafka: {topic: b}}}\n",
        )?;
        let (documents, warnings) =
            read(folder.path(), "qualitytrace:4317").map_err(std::io::Error::other)?;
        assert_eq!(documents.len(), 3);
        let told: String = warnings.iter().map(in_words).collect();
        for words in [
            "store.yaml:2:26",
            "a trace store of type `signalfx` is not queried",
            "the Collector that feeds `prod`",
            "otlp/qualitytrace: {endpoint: qualitytrace:4317, tls: {insecure: true}}",
            "the quality gate `release` holds for no run",
            "a trigger of type `kafka` cannot be fired by this version yet",
        ] {
            assert!(told.contains(words), "{words}: {told}");
        }
        assert!(!told.contains("s3cret"), "a log holds no secret: {told}");
        Ok(())
    }
}
