//! The learned profile of a project: its services and its tests, as earlier runs showed them.
//!
//! Each lease of a run reads it; it is updated after verdicts, for several runs at once. Concurrent updates by several servers
//! are all stored: an advisory lock for each project serializes them.

use std::collections::BTreeMap;

use model::{LearnedProfile, LearnedService, LearnedTest, Project};
use serde::{Serialize, de::DeserializeOwned};
use sqlx::{PgConnection, types::Json};

use crate::{Db, DbError};

impl Db {
    /// Returns the learned profile of a project's services and tests.
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
            stores: self.learned_stores(project).await?,
        })
    }

    /// Returns the learned profiles of runs that query trace stores.
    pub async fn learned_stores(
        &self,
        project: &Project,
    ) -> Result<BTreeMap<String, LearnedProfile>, DbError> {
        let connection = self.pool.acquire().await;
        let mut connection = connection.map_err(|error| self.error(error))?;
        stores(&mut connection, project).await.map_err(|error| self.error(error))
    }

    /// Merges observations of runs, in the order in which the runs ended; at most as many services as [`LearnedProfile`] holds.
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
            let (stores, learned) = changed(&before.stores, &after.stores);
            sqlx::query!(
                "insert into learned_stores (project, store, learned)
                 select $1, store, learned::json from unnest($2::text[], $3::text[]) as new (store, learned)
                 on conflict (project, store) do update set learned = excluded.learned",
                project.as_str(),
                &stores,
                &learned,
            )
            .execute(&mut *transaction)
            .await?;
            transaction.commit().await
        };
        learning.await.map_err(|error| self.error(error))
    }
}

/// Returns the learned profile of a project's services, and of the observed tests.
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
    .fetch_all(&mut *connection)
    .await?;
    let stores = match seen.iter().all(|seen| seen.stores.is_empty()) {
        true => BTreeMap::new(),
        false => stores(connection, project).await?,
    };
    Ok(LearnedProfile {
        services: services.into_iter().map(|row| (row.service, parsed(&row.learned))).collect(),
        tests: tests.into_iter().map(|row| (row.test_id, parsed(&row.learned))).collect(),
        stores,
    })
}

/// Returns the learned profiles of runs that query trace stores.
async fn stores(
    connection: &mut PgConnection,
    project: &Project,
) -> Result<BTreeMap<String, LearnedProfile>, sqlx::Error> {
    let rows = sqlx::query!(
        "select store, learned::text as \"learned!\" from learned_stores where project = $1",
        project.as_str(),
    )
    .fetch_all(connection)
    .await?;
    Ok(rows.into_iter().map(|row| (row.store, parsed(&row.learned))).collect())
}

/// Parses a stored value. An unreadable one counts as empty, and is learned again.
fn parsed<T: DeserializeOwned + Default>(text: &str) -> T {
    serde_json::from_str(text).unwrap_or_default()
}

/// Returns the names of new or changed entries, and the JSON of each.
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
