//! Tests and their versions.
//!
//! A new document is a new version; the old one stays for the runs that started with it.

use model::{Project, TestId};
use sqlx::PgConnection;

use crate::{Db, DbError};

/// A test to be kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewTest {
    /// Whose it is.
    pub project: Project,
    /// Its id within the project.
    pub id: TestId,
    /// Its name.
    pub name: String,
    /// The file as the user named it, for messages.
    pub file: String,
    /// The document as written.
    pub document: String,
}

/// What became of a test that was applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Applied {
    /// The version that new runs use, from 1.
    pub version: i32,
    /// Whether this made it.
    pub changed: bool,
}

/// One version of a test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredTest {
    /// Its id within the project.
    pub id: TestId,
    /// Its name.
    pub name: String,
    /// Which version this is, from 1.
    pub version: i32,
    /// The file it was last applied from, as the user named it.
    pub file: String,
    /// The document as written.
    pub document: String,
}

impl Db {
    /// Keeps a test. Its version rises if and only if the document differs from the current version's.
    pub async fn apply_test(&self, test: &NewTest) -> Result<Applied, DbError> {
        let applying = async {
            let mut transaction = self.pool.begin().await?;
            let applied = apply(&mut transaction, test).await?;
            transaction.commit().await?;
            Ok(applied)
        };
        applying.await.map_err(|error| self.error(error))
    }

    /// The current version of a test.
    pub async fn test(
        &self,
        project: &Project,
        test: &TestId,
    ) -> Result<Option<StoredTest>, DbError> {
        let row = sqlx::query!(
            "select version, name, file, document
             from tests join test_versions using (project, version)
             where project = $1 and id = $2 and test_id = $2",
            project.as_str(),
            test.as_str(),
        )
        .fetch_optional(&self.pool)
        .await
        .map_err(|error| self.error(error))?;
        Ok(row.map(|row| StoredTest {
            id: test.clone(),
            name: row.name,
            version: row.version,
            file: row.file,
            document: row.document,
        }))
    }
}

async fn apply(connection: &mut PgConnection, test: &NewTest) -> Result<Applied, sqlx::Error> {
    let version = lock(connection, test).await?;
    // Name and file are no part of the content: a document that moved is still the same.
    let same = sqlx::query!(
        "update test_versions set name = $4, file = $5
         where project = $1 and test_id = $2 and version = $3 and document = $6",
        test.project.as_str(),
        test.id.as_str(),
        version,
        test.name,
        test.file,
        test.document,
    )
    .execute(&mut *connection)
    .await?;
    if same.rows_affected() == 1 {
        return Ok(Applied { version, changed: false });
    }
    let version = sqlx::query_scalar!(
        "with current as (
             update tests set version = version + 1 where project = $1 and id = $2
             returning project, id, version
         )
         insert into test_versions (project, test_id, version, name, file, document)
         select project, id, version, $3, $4, $5 from current
         returning version",
        test.project.as_str(),
        test.id.as_str(),
        test.name,
        test.file,
        test.document,
    )
    .fetch_one(connection)
    .await?;
    Ok(Applied { version, changed: true })
}

/// The current version, 0 for a new test, held against others who apply the same test until the transaction ends.
async fn lock(connection: &mut PgConnection, test: &NewTest) -> Result<i32, sqlx::Error> {
    sqlx::query_scalar!(
        "insert into tests as stored (project, id, version) values ($1, $2, 0)
         on conflict (project, id) do update set version = stored.version
         returning version",
        test.project.as_str(),
        test.id.as_str(),
    )
    .fetch_one(connection)
    .await
}
