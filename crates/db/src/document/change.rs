//! Applying, provisioning and deleting documents.

use model::{DocumentKind, Project, TestId, Timestamp};
use sqlx::PgConnection;

use super::{AppliedDocument, ApplyOptions, NewDocument, Precondition, word};
use crate::{Db, DbError, run::nanos, secret::SealedDocumentId};

/// The key of the advisory lock that provisioning holds.
const PROVISION_LOCK: i64 = 0x7175_616c_0001;

/// The source of a document: the last one to apply it owns it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    /// A request.
    Request,
    /// The server's own files.
    Provision,
}

impl Precondition {
    fn fits(self, found: Option<i32>) -> bool {
        match self {
            Self::Anything => true,
            Self::Something => found.is_some(),
            Self::Nothing => found.is_none(),
            Self::Version(version) => found == Some(version),
        }
    }
}

impl Db {
    /// Stores documents, all of them or none, and returns the result of each, in their order.
    ///
    /// The version of a document increases if and only if its content differs from the current one.
    pub async fn apply(
        &self,
        documents: &[NewDocument],
        applying: ApplyOptions,
    ) -> Result<Vec<AppliedDocument>, DbError> {
        let mut transaction = self.begin().await.map_err(|error| self.error(error))?;
        let applied = self.apply_all(&mut transaction, documents, (applying, By::Request)).await?;
        let ended = match applying.is_dry_run {
            true => transaction.rollback().await,
            false => transaction.commit().await,
        };
        ended.map_err(|error| self.error(error))?;
        Ok(applied)
    }

    /// Stores exactly these documents of all that this call has ever stored, and deletes the others; returns the result of each,
    /// and how many were deleted. Documents that a request applied, or applied over, are left unchanged.
    pub async fn provision(
        &self,
        documents: &[NewDocument],
        at: Timestamp,
    ) -> Result<(Vec<AppliedDocument>, u64), DbError> {
        let mut transaction = self.begin().await.map_err(|error| self.error(error))?;
        sqlx::query!("select pg_advisory_xact_lock($1)", PROVISION_LOCK)
            .fetch_one(&mut *transaction)
            .await
            .map_err(|error| self.error(error))?;
        let applying =
            ApplyOptions { at: Some(at), expected: Precondition::Anything, is_dry_run: false };
        let applied =
            self.apply_all(&mut transaction, documents, (applying, By::Provision)).await?;
        let stays = |kind: &str, project: &str, id: &str| {
            documents.iter().any(|one| {
                (one.kind.as_str(), one.project.as_str(), one.id.as_str()) == (kind, project, id)
            })
        };
        let rows = sqlx::query!(
            "select project as \"project!\", kind as \"kind!\", id as \"id!\" from kept
             where provisioned order by project, kind, id"
        )
        .fetch_all(&mut *transaction)
        .await
        .map_err(|error| self.error(error))?;
        let mut deleted = 0;
        for row in rows.into_iter().filter(|row| !stays(&row.kind, &row.project, &row.id)) {
            let (project, id) = (word(&row.project)?, word(&row.id)?);
            let kind = row.kind.parse().map_err(|error| DbError::corrupt("a document", error))?;
            self.remove(&mut transaction, (&project, kind, &id)).await?;
            deleted += 1;
        }
        transaction.commit().await.map_err(|error| self.error(error))?;
        Ok((applied, deleted))
    }

    /// Deletes a document. Runs keep the test version that they started with.
    pub async fn delete(
        &self,
        project: &Project,
        kind: DocumentKind,
        id: &TestId,
        expected: Precondition,
    ) -> Result<(), DbError> {
        let mut transaction = self.begin().await.map_err(|error| self.error(error))?;
        let found = self.held_version(&mut transaction, (project, kind, id)).await?;
        if !expected.fits(found) || found.is_none() {
            return Err(DbError::Changed { kind, id: id.clone(), found });
        }
        self.remove(&mut transaction, (project, kind, id)).await?;
        transaction.commit().await.map_err(|error| self.error(error))
    }

    async fn apply_all(
        &self,
        connection: &mut PgConnection,
        documents: &[NewDocument],
        (applying, by): (ApplyOptions, By),
    ) -> Result<Vec<AppliedDocument>, DbError> {
        let mut applied = Vec::with_capacity(documents.len());
        for (place, document) in in_lock_order(documents) {
            applied.push((place, self.apply_one(connection, document, (applying, by)).await?));
        }
        applied.sort_unstable_by_key(|(place, _)| *place);
        Ok(applied.into_iter().map(|(_, applied)| applied).collect())
    }

    async fn apply_one(
        &self,
        connection: &mut PgConnection,
        new: &NewDocument,
        (applying, by): (ApplyOptions, By),
    ) -> Result<AppliedDocument, DbError> {
        let last = lock(connection, new, by).await.map_err(|error| self.error(error))?;
        let found = (last.version > 0 && !last.is_deleted).then_some(last.version);
        if !applying.expected.fits(found) {
            return Err(DbError::Changed { kind: new.kind, id: new.id.clone(), found });
        }
        if let Some(version) = found
            && self.is_same(connection, new, version).await?
        {
            return Ok(AppliedDocument { version, changed: false });
        }
        let version = last.version + 1;
        let place =
            SealedDocumentId { project: &new.project, kind: new.kind, id: &new.id, version };
        let sealed = match new.kind.holds_secrets() {
            true => Some(self.secrets.seal(&new.document, &place)?),
            false => None,
        };
        add(connection, new, (version, sealed, applying.at.map(nanos)))
            .await
            .map_err(|error| self.error(error))?;
        Ok(AppliedDocument { version, changed: true })
    }

    /// Whether a version has the same content. A version that cannot be opened differs: the document is written again.
    async fn is_same(
        &self,
        connection: &mut PgConnection,
        new: &NewDocument,
        version: i32,
    ) -> Result<bool, DbError> {
        let row = sqlx::query!(
            "select document, sealed from kept_versions
             where project = $1 and kind = $2 and id = $3 and version = $4",
            new.project.as_str(),
            new.kind.as_str(),
            new.id.as_str(),
            version,
        )
        .fetch_one(connection)
        .await
        .map_err(|error| self.error(error))?;
        let place =
            SealedDocumentId { project: &new.project, kind: new.kind, id: &new.id, version };
        let stored = self.opened(row.document, row.sealed, &place);
        Ok(stored.is_ok_and(|stored| stored == new.document))
    }

    /// Returns the version of an existing document, and locks its row until the transaction ends.
    async fn held_version(
        &self,
        connection: &mut PgConnection,
        (project, kind, id): (&Project, DocumentKind, &TestId),
    ) -> Result<Option<i32>, DbError> {
        let held = match kind {
            DocumentKind::Test => {
                sqlx::query_scalar!(
                    "select version from tests where project = $1 and id = $2 and not deleted and version > 0 for update",
                    project.as_str(),
                    id.as_str(),
                )
                .fetch_optional(connection)
                .await
            }
            _ => {
                sqlx::query_scalar!(
                    "select version from documents
                     where project = $1 and kind = $2 and id = $3 and not deleted and version > 0 for update",
                    project.as_str(),
                    kind.as_str(),
                    id.as_str(),
                )
                .fetch_optional(connection)
                .await
            }
        };
        held.map_err(|error| self.error(error))
    }

    async fn remove(
        &self,
        connection: &mut PgConnection,
        (project, kind, id): (&Project, DocumentKind, &TestId),
    ) -> Result<(), DbError> {
        let removing = async {
            if kind == DocumentKind::Test {
                sqlx::query!(
                    "update tests set deleted = true, provisioned = false where project = $1 and id = $2",
                    project.as_str(),
                    id.as_str(),
                )
                .execute(connection)
                .await?;
                return Ok(());
            }
            sqlx::query!(
                "update documents set deleted = true, provisioned = false
                 where project = $1 and kind = $2 and id = $3",
                project.as_str(),
                kind.as_str(),
                id.as_str(),
            )
            .execute(&mut *connection)
            .await?;
            // A deleted secret is not kept in any version.
            sqlx::query!(
                "delete from document_versions
                 where project = $1 and kind = $2 and document_id = $3 and sealed is not null",
                project.as_str(),
                kind.as_str(),
                id.as_str(),
            )
            .execute(connection)
            .await?;
            Ok(())
        };
        removing.await.map_err(|error| self.error(error))
    }
}

/// The last stored state of an id.
struct Last {
    version: i32,
    is_deleted: bool,
}

/// Returns the documents with their indexes, in an order that all callers follow: of two callers that apply the same documents,
/// one waits for the other, and they never deadlock. A document that occurs twice keeps its order.
fn in_lock_order(documents: &[NewDocument]) -> Vec<(usize, &NewDocument)> {
    let mut ordered: Vec<(usize, &NewDocument)> = documents.iter().enumerate().collect();
    ordered.sort_by_key(|(_, one)| (one.project.as_str(), one.kind.as_str(), one.id.as_str()));
    ordered
}

/// Returns the last stored state, version 0 for none, and locks it against other writers until the transaction ends.
async fn lock(
    connection: &mut PgConnection,
    new: &NewDocument,
    by: By,
) -> Result<Last, sqlx::Error> {
    let is_provisioned = by == By::Provision;
    if new.kind == DocumentKind::Test {
        return sqlx::query_as!(
            Last,
            "insert into tests (project, id, version, file, provisioned) values ($1, $2, 0, $3, $4)
             on conflict (project, id) do update set file = excluded.file, provisioned = excluded.provisioned
             returning version, deleted as is_deleted",
            new.project.as_str(),
            new.id.as_str(),
            new.file,
            is_provisioned,
        )
        .fetch_one(connection)
        .await;
    }
    sqlx::query_as!(
        Last,
        "insert into documents (project, kind, id, version, file, provisioned) values ($1, $2, $3, 0, $4, $5)
         on conflict (project, kind, id) do update set file = excluded.file, provisioned = excluded.provisioned
         returning version, deleted as is_deleted",
        new.project.as_str(),
        new.kind.as_str(),
        new.id.as_str(),
        new.file,
        is_provisioned,
    )
    .fetch_one(connection)
    .await
}

/// Writes a version and makes it the current one.
async fn add(
    connection: &mut PgConnection,
    new: &NewDocument,
    (version, sealed, at): (i32, Option<Vec<u8>>, Option<i64>),
) -> Result<(), sqlx::Error> {
    if new.kind == DocumentKind::Test {
        sqlx::query!(
            "with current as (
                 update tests set version = $3, deleted = false where project = $1 and id = $2
                 returning project, id, version
             )
             insert into test_versions (project, test_id, version, name, document, created_at_ns, host)
             select project, id, version, $4, $5, $6, $7 from current",
            new.project.as_str(),
            new.id.as_str(),
            version,
            new.name,
            new.document,
            at,
            new.host.as_deref().unwrap_or_default(),
        )
        .execute(connection)
        .await?;
        return Ok(());
    }
    let document = sealed.is_none().then_some(new.document.as_str());
    sqlx::query!(
        "with current as (
             update documents set version = $4, deleted = false where project = $1 and kind = $2 and id = $3
             returning project, kind, id, version
         )
         insert into document_versions (project, kind, document_id, version, name, document, sealed, created_at_ns)
         select project, kind, id, version, $5, $6, $7, $8 from current",
        new.project.as_str(),
        new.kind.as_str(),
        new.id.as_str(),
        version,
        new.name,
        document,
        sealed,
        at,
    )
    .execute(connection)
    .await?;
    Ok(())
}
