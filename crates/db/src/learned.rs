//! What runs have shown of the services of a project.
//!
//! It is read with each run that is taken, and taken in after verdicts, of several runs together. What several servers
//! take in at once is all kept: they have turns, one for each project.

use std::collections::BTreeMap;

use model::{Learned, LearnedService, Project};
use sqlx::types::Json;

use crate::{Db, DbError};

impl Db {
    /// What is known of a project's services.
    pub async fn learned(&self, project: &Project) -> Result<Learned, DbError> {
        let rows = sqlx::query!(
            "select service, learned as \"learned: Json<LearnedService>\" from learned where project = $1",
            project.as_str(),
        )
        .fetch_all(&self.pool)
        .await
        .map_err(|error| self.error(error))?;
        let services = rows.into_iter().map(|row| (row.service, row.learned.0));
        Ok(Learned { services: services.collect() })
    }

    /// Takes in what runs have seen, in the order in which they ended; as many services as [`Learned`] holds.
    pub async fn learn(&self, project: &Project, seen: &[Learned]) -> Result<(), DbError> {
        let learning = async {
            let mut transaction = self.pool.begin().await?;
            sqlx::query!(
                "select pg_advisory_xact_lock(hashtextextended('learned/' || $1::text, 0))",
                project.as_str()
            )
            .execute(&mut *transaction)
            .await?;
            let rows = sqlx::query!(
                "select service, learned::text as \"learned!\" from learned where project = $1",
                project.as_str(),
            )
            .fetch_all(&mut *transaction)
            .await?;
            // What cannot be read is learned again.
            let read =
                |text: &str| serde_json::from_str::<LearnedService>(text).unwrap_or_default();
            let services: BTreeMap<_, _> =
                rows.into_iter().map(|row| (row.service, read(&row.learned))).collect();
            let before = Learned { services };
            let mut after = before.clone();
            for seen in seen {
                after.observe(seen);
            }
            let is_new = |(name, service): &(&String, &LearnedService)| {
                before.services.get(*name) != Some(*service)
            };
            let (services, learned): (Vec<_>, Vec<_>) = after
                .services
                .iter()
                .filter(is_new)
                .filter_map(|(name, service)| {
                    Some((name.clone(), serde_json::to_string(service).ok()?))
                })
                .unzip();
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
            transaction.commit().await
        };
        learning.await.map_err(|error| self.error(error))
    }
}
