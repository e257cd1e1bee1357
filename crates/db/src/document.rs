//! Documents of every kind and their versions.
//!
//! A changed document is a new version; the old version stays unchanged. When a document is deleted and applied again, version
//! numbers continue, so that a version number never names two contents. Kinds that may hold secrets are sealed, and deleting such
//! a document deletes its versions. The file is not part of a version: a moved document is still the same.
//!
//! Tests are written to their own tables, since runs reference them; reads use the views that show both.

mod change;

use std::str::FromStr;

use model::{DocumentKind, InvalidId, Project, TestId, Timestamp};

use crate::{Db, DbError, run::moment, secret::SealedDocumentId};

/// A document to be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewDocument {
    /// The project that owns it.
    pub project: Project,
    /// Its kind.
    pub kind: DocumentKind,
    /// Its id among those of its kind.
    pub id: TestId,
    /// Its name, which is part of the document.
    pub name: String,
    /// The file as the user named it, for messages.
    pub file: String,
    /// The document as written.
    pub document: String,
    /// The host that a test calls, where the document states it without a variable.
    pub host: Option<String>,
}

/// Options for applying documents.
#[derive(Clone, Copy, Debug)]
pub struct ApplyOptions {
    /// The time; none where it is unknown.
    pub at: Option<Timestamp>,
    /// The precondition on the stored document.
    pub expected: Precondition,
    /// Whether to store nothing, and only return what would be.
    pub is_dry_run: bool,
}

/// The required state of a document before a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precondition {
    /// Any state.
    Anything,
    /// Any version exists.
    Something,
    /// The document does not exist.
    Nothing,
    /// Exactly this version.
    Version(i32),
}

/// The result of applying a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AppliedDocument {
    /// The current version from now on, counted from 1.
    pub version: i32,
    /// Whether this call created the version.
    pub changed: bool,
}

/// A document in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentSummary {
    /// Its id among those of its kind.
    pub id: TestId,
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: i32,
    /// The file it was last applied from, as the user named it.
    pub file: String,
    /// Whether it was provisioned from the server's own files.
    pub is_provisioned: bool,
    /// When the version was created, where that is known.
    pub created_at: Option<Timestamp>,
}

/// One version of a document in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredVersion {
    /// The version number, from 1.
    pub version: i32,
    /// The name in it.
    pub name: String,
    /// When it was created, where that is known.
    pub created_at: Option<Timestamp>,
}

/// One version of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredDocument {
    /// The version number, from 1.
    pub version: i32,
    /// Its name.
    pub name: String,
    /// The file from which any version of the document was last applied, as the user named it.
    pub file: String,
    /// The document as written.
    pub document: String,
}

impl Db {
    /// Returns a document in the given version, by default the current one.
    pub async fn document(
        &self,
        project: &Project,
        kind: DocumentKind,
        id: &TestId,
        version: Option<i32>,
    ) -> Result<Option<StoredDocument>, DbError> {
        let row = sqlx::query!(
            "select versions.version as \"version!\", versions.name as \"name!\", kept.file as \"file!\",
                 versions.document, versions.sealed
             from kept join kept_versions versions
                 on versions.project = kept.project and versions.kind = kept.kind and versions.id = kept.id
                 and versions.version = coalesce($4, kept.version)
             where kept.project = $1 and kept.kind = $2 and kept.id = $3",
            project.as_str(),
            kind.as_str(),
            id.as_str(),
            version,
        )
        .fetch_optional(&self.pool)
        .await
        .map_err(|error| self.error(error))?;
        let Some(row) = row else { return Ok(None) };
        let place = SealedDocumentId { project, kind, id, version: row.version };
        let document = self.opened(row.document, row.sealed, &place)?;
        Ok(Some(StoredDocument { version: row.version, name: row.name, file: row.file, document }))
    }

    /// Returns documents of a kind, ordered by id, after the given one, at most `limit`.
    pub async fn documents(
        &self,
        project: &Project,
        kind: DocumentKind,
        after: Option<&TestId>,
        limit: u32,
    ) -> Result<Vec<DocumentSummary>, DbError> {
        let rows = sqlx::query!(
            "select kept.id as \"id!\", kept.version as \"version!\", kept.file as \"file!\",
                 kept.provisioned as \"provisioned!\", versions.name as \"name!\", versions.created_at_ns
             from kept join kept_versions versions using (project, kind, id, version)
             where kept.project = $1 and kept.kind = $2 and kept.id > $3
             order by kept.id limit $4",
            project.as_str(),
            kind.as_str(),
            after.map_or("", TestId::as_str),
            i64::from(limit),
        )
        .fetch_all(&self.pool)
        .await
        .map_err(|error| self.error(error))?;
        rows.into_iter()
            .map(|row| {
                Ok(DocumentSummary {
                    id: word(&row.id)?,
                    name: row.name,
                    version: row.version,
                    file: row.file,
                    is_provisioned: row.provisioned,
                    created_at: row.created_at_ns.map(moment),
                })
            })
            .collect()
    }

    /// Returns the versions of an existing document before the given one, the newest first, at most `limit`.
    pub async fn versions(
        &self,
        (project, kind, id): (&Project, DocumentKind, &TestId),
        before: Option<i32>,
        limit: u32,
    ) -> Result<Vec<StoredVersion>, DbError> {
        let rows = sqlx::query!(
            "select versions.version as \"version!\", versions.name as \"name!\", versions.created_at_ns
             from kept join kept_versions versions
                 on versions.project = kept.project and versions.kind = kept.kind and versions.id = kept.id
             where kept.project = $1 and kept.kind = $2 and kept.id = $3 and versions.version < $4
             order by versions.version desc limit $5",
            project.as_str(),
            kind.as_str(),
            id.as_str(),
            before.unwrap_or(i32::MAX),
            i64::from(limit),
        )
        .fetch_all(&self.pool)
        .await
        .map_err(|error| self.error(error))?;
        Ok(rows
            .into_iter()
            .map(|row| StoredVersion {
                version: row.version,
                name: row.name,
                created_at: row.created_at_ns.map(moment),
            })
            .collect())
    }

    /// Returns the content of a row, and opens it where it is sealed.
    fn opened(
        &self,
        document: Option<String>,
        sealed: Option<Vec<u8>>,
        place: &SealedDocumentId<'_>,
    ) -> Result<String, DbError> {
        match (document, sealed) {
            (Some(document), None) => Ok(document),
            (None, Some(sealed)) => self.secrets.open(&sealed, place),
            _ => Err(DbError::corrupt(
                format!("the {} `{}`", place.kind, place.id),
                "it has no one content",
            )),
        }
    }
}

/// Parses an id from the database.
pub(crate) fn word<T: FromStr<Err = InvalidId>>(text: &str) -> Result<T, DbError> {
    text.parse().map_err(|error| DbError::corrupt("a document", error))
}
