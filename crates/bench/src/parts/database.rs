//! An empty database on the real Postgres.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use sqlx::{Connection, PgConnection, postgres::PgConnectOptions};
use tokio::process::Command;

use super::setting;

/// A database for one test.
#[derive(Debug)]
pub struct Database {
    name: String,
    url: String,
}

impl Database {
    /// Creates an empty database with a name that begins with `purpose`.
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

    /// Returns the `postgres` section of a configuration that names this database, on one line.
    pub fn section(&self) -> Result<String> {
        let options: PgConnectOptions = self.url.parse()?;
        self.section_at(options.get_port())
    }

    /// Returns the same section with another port.
    pub fn section_at(&self, port: u16) -> Result<String> {
        let options: PgConnectOptions = self.url.parse()?;
        // sqlx does not return the password of the URL.
        let password = setting("QUALITYTRACE_TEST_POSTGRES_PASSWORD")?;
        Ok(format!(
            "postgres: {{host: '{}', port: {port}, user: '{}', password: '{password}', dbname: {}}}",
            options.get_host(),
            options.get_username(),
            self.name
        ))
    }

    /// Returns its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the environment variables that Postgres's client programs need, including the `PATH` to them.
    pub fn client(&self) -> Result<[(&'static str, String); 5]> {
        let options: PgConnectOptions = self.url.parse()?;
        let bin = setting("QUALITYTRACE_TEST_POSTGRES_BIN")?;
        Ok([
            ("PGHOST", options.get_host().to_owned()),
            ("PGPORT", options.get_port().to_string()),
            ("PGUSER", options.get_username().to_owned()),
            ("PGPASSWORD", setting("QUALITYTRACE_TEST_POSTGRES_PASSWORD")?),
            ("PATH", format!("{bin}:{}", setting("PATH")?)),
        ])
    }

    /// Returns the address of Postgres.
    pub(crate) fn address(&self) -> Result<(String, u16)> {
        let options: PgConnectOptions = self.url.parse()?;
        Ok((options.get_host().to_owned(), options.get_port()))
    }

    /// Queries one number from this database.
    pub async fn count(&self, query: &'static str) -> Result<i64> {
        Ok(sqlx::query_scalar(query).fetch_one(&mut self.connect().await?).await?)
    }

    /// Queries one text from this database.
    pub async fn text(&self, query: &'static str) -> Result<String> {
        Ok(sqlx::query_scalar(query).fetch_one(&mut self.connect().await?).await?)
    }

    /// Executes a statement on this database, past the server.
    pub async fn execute(&self, statement: &'static str) -> Result<()> {
        sqlx::query(statement).execute(&mut self.connect().await?).await?;
        Ok(())
    }

    async fn connect(&self) -> Result<PgConnection> {
        let options: PgConnectOptions = self.url.parse()?;
        Ok(PgConnection::connect_with(&options.database(&self.name)).await?)
    }

    /// Restores a dump into this empty database.
    pub async fn restore(&self, file: &Path) -> Result<()> {
        self.tool("pg_restore", &["--no-owner", "--exit-on-error"], file).await
    }

    /// Dumps this database into a file, atomically.
    pub async fn dump(&self, file: &Path) -> Result<()> {
        let half = file.with_extension(format!("half-{}", std::process::id()));
        let path = half.to_str().context("a path that is text")?;
        self.tool("pg_dump", &["--format=custom", "--file", path], Path::new("")).await?;
        Ok(std::fs::rename(half, file)?)
    }

    /// Runs a client program of Postgres on this database.
    async fn tool(&self, name: &str, arguments: &[&str], file: &Path) -> Result<()> {
        let bin = PathBuf::from(setting("QUALITYTRACE_TEST_POSTGRES_BIN")?);
        let mut command = Command::new(bin.join(name));
        command.args(["--dbname", &self.name]).args(arguments).envs(self.client()?);
        if file != Path::new("") {
            command.arg(file);
        }
        let output = command.kill_on_drop(true).output().await?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "`{name}` ended with {}: {said}", output.status);
        Ok(())
    }

    /// Drops the database, even if clients are still connected.
    pub async fn remove(self) -> Result<()> {
        let mut connection = PgConnection::connect(&self.url).await?;
        let drop = sqlx::AssertSqlSafe(format!("drop database {} with (force)", self.name));
        sqlx::raw_sql(drop).execute(&mut connection).await?;
        Ok(())
    }
}
