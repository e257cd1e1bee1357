//! Documents of every kind and their versions.
//!
//! A new document is a new version; the old one stays as it is. Numbers go on where they ended when a document is
//! deleted and comes back, so that a version is never two things. Kinds that may hold secrets are sealed, and when one of
//! them is deleted, its versions are gone. The file is no part of a version: a document that moved is still the same.
//!
//! Tests are written to tables of their own, since runs point at them; reading goes by the views that show both.

mod change;

use std::str::FromStr;

use model::{DocumentKind, InvalidId, Project, TestId, Timestamp};

use crate::{Db, DbError, run::moment, secret::SealedDocumentId};

/// A document to be kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewDocument {
    /// Whose it is.
    pub project: Project,
    /// What it is.
    pub kind: DocumentKind,
    /// Its id among those of its kind.
    pub id: TestId,
    /// Its name, which is part of the document.
    pub name: String,
    /// The file as the user named it, for messages.
    pub file: String,
    /// The document as written.
    pub document: String,
    /// The host that a test calls, where the document says so without a variable.
    pub host: Option<String>,
}

/// How documents are applied.
#[derive(Clone, Copy, Debug)]
pub struct ApplyOptions {
    /// When; none where nobody knows.
    pub at: Option<Timestamp>,
    /// What has to be there before.
    pub expected: Precondition,
}

/// What has to be there before something is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precondition {
    /// Whatever there is.
    Anything,
    /// Some version.
    Something,
    /// Nothing.
    Nothing,
    /// This version.
    Version(i32),
}

/// What became of a document that was applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AppliedDocument {
    /// The version that holds from now on, from 1.
    pub version: i32,
    /// Whether this made it.
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
    /// Whether the server's own files brought it.
    pub is_provisioned: bool,
    /// When the version was made, where that is known.
    pub created_at: Option<Timestamp>,
}

/// One version of a document in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredVersion {
    /// Which one, from 1.
    pub version: i32,
    /// The name in it.
    pub name: String,
    /// When it was made, where that is known.
    pub created_at: Option<Timestamp>,
}

/// One version of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredDocument {
    /// Which version this is, from 1.
    pub version: i32,
    /// Its name.
    pub name: String,
    /// The file that the document, in whatever version, was last applied from, as the user named it.
    pub file: String,
    /// The document as written.
    pub document: String,
}

impl Db {
    /// A document, in its current version or in this one.
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

    /// Documents of a kind by id, those after this one, at most `limit`.
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

    /// The versions of a document that is there, the newest first, those before this one, at most `limit`.
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

    /// What a row holds, opened where it is sealed.
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

/// A word from the record.
fn word<T: FromStr<Err = InvalidId>>(text: &str) -> Result<T, DbError> {
    text.parse().map_err(|error| DbError::corrupt("a document", error))
}
