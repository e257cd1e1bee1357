//! What runs have shown of the services of a project, and of its tests.
//!
//! It is read with each run that is taken, and taken in after verdicts, of several runs together. What several servers
//! take in at once is all kept: they have turns, one for each project.

use std::collections::BTreeMap;

use model::{LearnedProfile, LearnedService, LearnedTest, Project};
use serde::{Serialize, de::DeserializeOwned};
use sqlx::{PgConnection, types::Json};

use crate::{Db, DbError};

impl Db {
    /// What is known of a project's services and tests.
    pub async fn learned(&self, project: &Project) -> Result<LearnedProfile, DbError> {
        let services = sqlx::query!(
            "select service, learned as \"learned: Json<LearnedService>\" from learned where project = $1",
            project.as_str(),
        )
        .fetch_all(&self.pool)
        .await
        .map_err(|error| self.error(error))?;
        let tests = sqlx::query!(
            "select test_id, learned as \"learned: Json<LearnedTest>\" from learned_tests where project = $1",
            project.as_str(),
        )
        .fetch_all(&self.pool)
        .await
        .map_err(|error| self.error(error))?;
        Ok(LearnedProfile {
            services: services.into_iter().map(|row| (row.service, row.learned.0)).collect(),
            tests: tests.into_iter().map(|row| (row.test_id, row.learned.0)).collect(),
        })
    }

    /// Takes in what runs have seen, in the order in which they ended; as many services as [`LearnedProfile`] holds.
    pub async fn learn(&self, project: &Project, seen: &[LearnedProfile]) -> Result<(), DbError> {
        let learning = async {
            let mut transaction = self.begin().await?;
            sqlx::query!(
                "select pg_advisory_xact_lock(hashtextextended('learned/' || $1::text, 0))",
                project.as_str()
            )
            .execute(&mut *transaction)
            .await?;
            let before = known(&mut transaction, project, seen).await?;
            let mut after = before.clone();
            for seen in seen {
                after.observe(seen);
            }
            let (services, learned) = changed(&before.services, &after.services);
            sqlx::query!(
                "insert into learned (project, service, learned)
                 select $1, service, learned::json from unnest($2::text[], $3::text[]) as new (service, learned)
                 on conflict (project, service) do update set learned = excluded.learned",
                project.as_str(),
                &services,
                &learned,
            )
            .execute(&mut *transaction)
            .await?;
            let (tests, learned) = changed(&before.tests, &after.tests);
            sqlx::query!(
                "insert into learned_tests (project, test_id, learned)
                 select $1, test_id, learned::json from unnest($2::text[], $3::text[]) as new (test_id, learned)
                 on conflict (project, test_id) do update set learned = excluded.learned",
                project.as_str(),
                &tests,
                &learned,
            )
            .execute(&mut *transaction)
            .await?;
            transaction.commit().await
        };
        learning.await.map_err(|error| self.error(error))
    }
}

/// What is known of a project's services, and of the tests that were seen.
async fn known(
    connection: &mut PgConnection,
    project: &Project,
    seen: &[LearnedProfile],
) -> Result<LearnedProfile, sqlx::Error> {
    let services = sqlx::query!(
        "select service, learned::text as \"learned!\" from learned where project = $1",
        project.as_str(),
    )
    .fetch_all(&mut *connection)
    .await?;
    let names: Vec<String> = seen.iter().flat_map(|seen| seen.tests.keys().cloned()).collect();
    let tests = sqlx::query!(
        "select test_id, learned::text as \"learned!\" from learned_tests
         where project = $1 and test_id = any ($2)",
        project.as_str(),
        &names,
    )
    .fetch_all(connection)
    .await?;
    Ok(LearnedProfile {
        services: services.into_iter().map(|row| (row.service, parsed(&row.learned))).collect(),
        tests: tests.into_iter().map(|row| (row.test_id, parsed(&row.learned))).collect(),
    })
}

/// What cannot be read is learned again.
fn parsed<T: DeserializeOwned + Default>(text: &str) -> T {
    serde_json::from_str(text).unwrap_or_default()
}

/// The names of what is new or other than before, and what is known of each.
fn changed<T: PartialEq + Serialize>(
    before: &BTreeMap<String, T>,
    after: &BTreeMap<String, T>,
) -> (Vec<String>, Vec<String>) {
    after
        .iter()
        .filter(|(name, known)| before.get(*name) != Some(*known))
        .filter_map(|(name, known)| Some((name.clone(), serde_json::to_string(known).ok()?)))
        .unzip()
}
