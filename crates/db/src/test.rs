//! Tests and their versions.
//!
//! A new document is a new version; the old one stays as it is for the runs that started with it. The file is no
//! part of a version: a test that moved is still the same.

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
    /// Its name, which is part of the document.
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
    /// The file that the test, in whatever version, was last applied from, as the user named it.
    pub file: String,
    /// The document as written.
    pub document: String,
}

impl Db {
    /// Keeps tests, all of them or none, and tells what became of each, in their order.
    ///
    /// The version of a test rises if and only if the document differs from the current version's.
    pub async fn apply_tests(&self, tests: &[NewTest]) -> Result<Vec<Applied>, DbError> {
        let applying = async {
            let mut transaction = self.pool.begin().await?;
            let mut applied = Vec::with_capacity(tests.len());
            for (place, test) in in_lock_order(tests) {
                applied.push((place, apply(&mut transaction, test).await?));
            }
            transaction.commit().await?;
            applied.sort_unstable_by_key(|(place, _)| *place);
            Ok(applied.into_iter().map(|(_, applied)| applied).collect())
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
            "select version, name, document, file
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

/// The tests with their places, in an order that all who apply follow: of two who apply the same tests, one waits
/// for the other, and never both for each other. A test that stands twice keeps its order.
fn in_lock_order(tests: &[NewTest]) -> Vec<(usize, &NewTest)> {
    let mut ordered: Vec<(usize, &NewTest)> = tests.iter().enumerate().collect();
    ordered.sort_by_key(|(_, test)| (test.project.as_str(), test.id.as_str()));
    ordered
}

async fn apply(connection: &mut PgConnection, test: &NewTest) -> Result<Applied, sqlx::Error> {
    let version = lock(connection, test).await?;
    let same = sqlx::query!(
        "select version from test_versions
         where project = $1 and test_id = $2 and version = $3 and document = $4",
        test.project.as_str(),
        test.id.as_str(),
        version,
        test.document,
    )
    .fetch_optional(&mut *connection)
    .await?;
    if same.is_some() {
        return Ok(Applied { version, changed: false });
    }
    let version = sqlx::query_scalar!(
        "with current as (
             update tests set version = version + 1 where project = $1 and id = $2
             returning project, id, version
         )
         insert into test_versions (project, test_id, version, name, document)
         select project, id, version, $3, $4 from current
         returning version",
        test.project.as_str(),
        test.id.as_str(),
        test.name,
        test.document,
    )
    .fetch_one(connection)
    .await?;
    Ok(Applied { version, changed: true })
}

/// The current version, 0 for a new test, held against others who apply the same test until the transaction ends.
async fn lock(connection: &mut PgConnection, test: &NewTest) -> Result<i32, sqlx::Error> {
    sqlx::query_scalar!(
        "insert into tests (project, id, version, file) values ($1, $2, 0, $3)
         on conflict (project, id) do update set file = excluded.file
         returning version",
        test.project.as_str(),
        test.id.as_str(),
        test.file,
    )
    .fetch_one(connection)
    .await
}
