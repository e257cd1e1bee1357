//! An empty database on the real Postgres.

use anyhow::{Context, Result};
use sqlx::{Connection, PgConnection};

use super::setting;

/// A database of its own for one test.
#[derive(Debug)]
pub struct Database {
    /// Where Postgres listens.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// The database.
    pub name: String,
    url: String,
}

impl Database {
    /// Makes an empty database whose name begins with `purpose`.
    pub async fn create(purpose: &str) -> Result<Self> {
        let url = setting("QUALITYTRACE_TEST_POSTGRES")?;
        let options: sqlx::postgres::PgConnectOptions = url.parse()?;
        let name = format!("{purpose}_{}_{}", std::process::id(), super::free_port()?);
        let mut connection = PgConnection::connect(&url)
            .await
            .with_context(|| format!("cannot connect to `{url}`"))?;
        let create = sqlx::AssertSqlSafe(format!("create database {name}"));
        sqlx::raw_sql(create).execute(&mut connection).await?;
        Ok(Self { host: options.get_host().to_owned(), port: options.get_port(), name, url })
    }

    /// One number out of this database.
    pub async fn count(&self, query: &'static str) -> Result<i64> {
        let options: sqlx::postgres::PgConnectOptions = self.url.parse()?;
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
