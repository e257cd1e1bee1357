//! Tests in a list: those that contain a text, by id or the worst first.

use model::{Project, TestId, Timestamp};

use crate::{Db, DbError, document::word, partitions::least};

/// A page of the tests of a project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestFilter {
    /// The project that owns them.
    pub project: Project,
    /// What their id or name contains, without regard to case. It contains no NUL.
    pub text: String,
    /// The order, and where the page begins.
    pub order: TestOrder,
    /// The upper bound of tests.
    pub limit: u32,
}

/// The order of tests, and the test before the page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TestOrder {
    /// By id.
    Id(Option<TestId>),
    /// By the rank of the last verdict, then by id.
    WorstFirst {
        after: Option<(VerdictRank, TestId)>,
        /// Verdicts of runs that were accepted before do not count.
        since: Timestamp,
    },
}

/// The rank of a test by its last verdict: 0 is failed, 1 is inconclusive, 2 is passed or without one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VerdictRank(pub u8);

/// A test in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedTest {
    /// Its id.
    pub id: TestId,
    /// Its current version.
    pub version: i32,
    /// Its name.
    pub name: String,
    /// Its rank, where the order is by rank.
    pub rank: Option<VerdictRank>,
}

/// A test as a row of a list statement.
struct TestRow {
    id: String,
    version: i32,
    name: String,
    rank: Option<i32>,
}

impl Db {
    /// Returns a page of tests. Worst first reads the last verdict of every test of the project, and for it the runs of the test that
    /// are newer and have none: those that wait.
    pub async fn tests(&self, wanted: &TestFilter) -> Result<Vec<ListedTest>, DbError> {
        let project = wanted.project.as_str();
        let limit = i64::from(wanted.limit);
        let rows = match &wanted.order {
            TestOrder::Id(after) => {
                let after = after.as_ref().map_or("", TestId::as_str);
                sqlx::query_file_as!(
                    TestRow,
                    "queries/tests/by_id.sql",
                    project,
                    after,
                    wanted.text,
                    limit
                )
                .fetch_all(&self.pool)
                .await
            }
            TestOrder::WorstFirst { after, since } => {
                let (rank, id) = match after {
                    Some((rank, id)) => (i32::from(rank.0), id.as_str()),
                    None => (-1, ""),
                };
                sqlx::query_file_as!(
                    TestRow,
                    "queries/tests/worst_first.sql",
                    project,
                    wanted.text,
                    rank,
                    id,
                    limit,
                    least(*since)
                )
                .fetch_all(&self.pool)
                .await
            }
        };
        rows.map_err(|error| self.error(error))?.into_iter().map(listed).collect()
    }
}

fn listed(row: TestRow) -> Result<ListedTest, DbError> {
    let rank = row.rank.map(u8::try_from).transpose();
    let rank = rank.map_err(|error| DbError::corrupt("the rank of a test", error))?;
    let id = word(&row.id)?;
    Ok(ListedTest { id, version: row.version, name: row.name, rank: rank.map(VerdictRank) })
}
