//! An empty database on the real Postgres.

use anyhow::{Context, Result};
use sqlx::{Connection, PgConnection, postgres::PgConnectOptions};

use super::setting;

/// A database of its own for one test.
#[derive(Debug)]
pub struct Database {
    name: String,
    url: String,
}

impl Database {
    /// Makes an empty database whose name begins with `purpose`.
    pub async fn create(purpose: &str) -> Result<Self> {
        let url = setting("QUALITYTRACE_TEST_POSTGRES")?;
        let name = format!("{purpose}_{}_{}", std::process::id(), super::free_port()?);
        let mut connection = PgConnection::connect(&url)
            .await
            .context("cannot connect to the Postgres of the tests")?;
        let create = sqlx::AssertSqlSafe(format!("create database {name}"));
        sqlx::raw_sql(create).execute(&mut connection).await?;
        Ok(Self { name, url })
    }

    /// The `postgres` section of a configuration that names this database, on one line.
    pub fn section(&self) -> Result<String> {
        let options: PgConnectOptions = self.url.parse()?;
        // sqlx does not give back the one in the URL.
        let password = setting("QUALITYTRACE_TEST_POSTGRES_PASSWORD")?;
        Ok(format!(
            "postgres: {{host: '{}', port: {}, user: '{}', password: '{password}', dbname: {}}}",
            options.get_host(),
            options.get_port(),
            options.get_username(),
            self.name
        ))
    }

    /// One number out of this database.
    pub async fn count(&self, query: &'static str) -> Result<i64> {
        let options: PgConnectOptions = self.url.parse()?;
        let mut connection = PgConnection::connect_with(&options.database(&self.name)).await?;
        Ok(sqlx::query_scalar(query).fetch_one(&mut connection).await?)
    }

    /// Removes the database, whoever is still connected.
    pub async fn remove(self) -> Result<()> {
        let mut connection = PgConnection::connect(&self.url).await?;
        let drop = sqlx::AssertSqlSafe(format!("drop database {} with (force)", self.name));
        sqlx::raw_sql(drop).execute(&mut connection).await?;
        Ok(())
    }
}
