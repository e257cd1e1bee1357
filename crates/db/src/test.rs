//! Tests, the only documents that runs reference.

use model::{DocumentKind, Project, TestId};

use crate::{AppliedDocument, ApplyOptions, Db, DbError, NewDocument, Precondition};

/// A test to be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewTest {
    /// The project that owns it.
    pub project: Project,
    /// Its id within the project.
    pub id: TestId,
    /// Its name, which is part of the document.
    pub name: String,
    /// The file as the user named it, for messages.
    pub file: String,
    /// The document as written.
    pub document: String,
    /// The host that it calls, where the document states it without a variable.
    pub host: Option<String>,
}

/// One version of a test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredTest {
    /// Its id within the project.
    pub id: TestId,
    /// Its name.
    pub name: String,
    /// The version number, from 1.
    pub version: i32,
    /// The file from which any version of the test was last applied, as the user named it.
    pub file: String,
    /// The document as written.
    pub document: String,
}

impl Db {
    /// Stores tests, all of them or none, and returns the result of each, in their order.
    ///
    /// The version of a test rises if and only if the document differs from the current version's.
    pub async fn apply_tests(&self, tests: &[NewTest]) -> Result<Vec<AppliedDocument>, DbError> {
        let documents: Vec<_> = tests.iter().cloned().map(NewDocument::from).collect();
        self.apply(
            &documents,
            ApplyOptions { at: None, expected: Precondition::Anything, is_dry_run: false },
        )
        .await
    }

    /// Returns the current version of a test.
    pub async fn test(
        &self,
        project: &Project,
        test: &TestId,
    ) -> Result<Option<StoredTest>, DbError> {
        let row = sqlx::query!(
            "select version, name, document, file
             from tests join test_versions using (project, version)
             where project = $1 and id = $2 and test_id = $2 and not deleted",
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

impl From<NewTest> for NewDocument {
    fn from(test: NewTest) -> Self {
        let NewTest { project, id, name, file, document, host } = test;
        Self { project, kind: DocumentKind::Test, id, name, file, document, host }
    }
}
