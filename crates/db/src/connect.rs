//! Configuration of the connection to Postgres.

use std::{fmt, time::Duration};

use sqlx::{
    ConnectOptions as _, Connection as _, Executor,
    postgres::{PgConnectOptions, PgPoolOptions, PgSslMode},
};

use crate::DbError;

/// The parameters that [`Connect::params`] accepts.
const PARAMS: &str = "`sslmode`, `sslrootcert`, `sslcert`, `sslkey`, `application_name`, `search_path`, `statement_timeout`";

/// Each connection plans every statement once, independent of its values. By default Postgres plans anew each time a run is
/// looked up among the monthly partitions, which takes longer than the lookup; and the plans that tests check are then the plans
/// that run. Lists of runs override this.
const PLANS: &str = "set plan_cache_mode = force_generic_plan";

/// How long a tested connection is used without another test.
const TESTED_FOR: Duration = Duration::from_secs(1);

/// Where Postgres is, and how to connect to it.
///
/// The driver fills in certificates and options that are not set here from the environment, as every client of Postgres does
/// (`PGSSLROOTCERT`, `PGSSLCERT`, `PGSSLKEY`, `PGOPTIONS`).
#[derive(Clone, PartialEq, Eq)]
pub struct Connect {
    /// A host name, an address, or the folder of a Unix socket.
    pub host: String,
    /// The port.
    pub port: u16,
    /// The role.
    pub user: String,
    /// Its password. `Debug` does not show it.
    pub password: String,
    /// The database.
    pub dbname: String,
    /// Parameters by their libpq names; an unknown one is an error.
    pub params: Vec<(String, String)>,
    /// The upper bound of connections.
    pub pool_max: u32,
    /// How long a call waits for a connection.
    pub acquire_timeout: Duration,
    /// The upper bound of a trace in bytes, uncompressed, on write and on read.
    pub trace_bytes_max: usize,
}

impl Default for Connect {
    fn default() -> Self {
        Self {
            host: "localhost".to_owned(),
            port: 5432,
            user: "postgres".to_owned(),
            password: "postgres".to_owned(),
            dbname: "qualitytrace".to_owned(),
            params: Vec::new(),
            pool_max: 10,
            acquire_timeout: Duration::from_secs(10),
            // A run stores at most 64 MiB of spans; the rest is for the messages around them.
            trace_bytes_max: 72 << 20,
        }
    }
}

impl Connect {
    pub(crate) fn at(&self) -> String {
        format!("{}:{}/{}", self.host, self.port, self.dbname)
    }

    pub(crate) fn pool(&self) -> Result<PgPoolOptions, DbError> {
        if self.pool_max == 0 {
            return Err(DbError::NoConnections);
        }
        Ok(PgPoolOptions::new()
            .max_connections(self.pool_max)
            .acquire_timeout(self.acquire_timeout)
            // A timeout is an error that the caller reports, and callers report slow requests themselves.
            .acquire_slow_threshold(self.acquire_timeout)
            // The pool tests a connection when it is released. It is tested again only after idle time, so that a busy server
            // does not need two round trips for each statement.
            .test_before_acquire(false)
            .before_acquire(|connection, meta| {
                Box::pin(async move {
                    if meta.idle_for >= TESTED_FOR {
                        connection.ping().await?;
                    }
                    Ok(true)
                })
            })
            .after_connect(|connection, _| {
                Box::pin(async move { connection.execute(PLANS).await.map(drop) })
            }))
    }

    pub(crate) fn options(&self) -> Result<PgConnectOptions, DbError> {
        let options = PgConnectOptions::new_without_pgpass()
            .host(&self.host)
            .port(self.port)
            .username(&self.user)
            .password(&self.password)
            .database(&self.dbname)
            .ssl_mode(PgSslMode::Prefer)
            .application_name("qualitytrace")
            // Statement texts are not logged; callers report slow requests themselves.
            .disable_statement_logging();
        self.params.iter().try_fold(options, |options, (name, value)| param(options, name, value))
    }
}

impl fmt::Debug for Connect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Connect({}@{})", self.user, self.at())
    }
}

fn param(options: PgConnectOptions, name: &str, value: &str) -> Result<PgConnectOptions, DbError> {
    Ok(match name {
        "sslmode" => {
            let mode = value.parse().map_err(|_| DbError::Param {
                name: name.to_owned(),
                expected: "`disable`, `allow`, `prefer`, `require`, `verify-ca` or `verify-full`",
            })?;
            options.ssl_mode(mode)
        }
        "sslrootcert" => options.ssl_root_cert(value),
        "sslcert" => options.ssl_client_cert(value),
        "sslkey" => options.ssl_client_key(value),
        "application_name" => options.application_name(value),
        "search_path" | "statement_timeout" => options.options([(name, value)]),
        _ => return Err(DbError::UnknownParam { name: name.to_owned(), known: PARAMS }),
    })
}

#[cfg(test)]
mod tests {
    use model::{Fault, Faulty};
    use sqlx::postgres::PgSslMode;

    use super::Connect;

    fn with(name: &str, value: &str) -> Connect {
        Connect { params: vec![(name.to_owned(), value.to_owned())], ..Connect::default() }
    }

    #[test]
    fn parameters_reach_the_driver() {
        let mode = |connect: &Connect| connect.options().map(|options| options.get_ssl_mode());
        assert!(matches!(mode(&Connect::default()), Ok(PgSslMode::Prefer)));
        assert!(matches!(mode(&with("sslmode", "disable")), Ok(PgSslMode::Disable)));
        assert!(matches!(mode(&with("sslmode", "verify-full")), Ok(PgSslMode::VerifyFull)));
        let named = with("application_name", "me").options().expect("known");
        assert_eq!(named.get_application_name(), Some("me"));
        let path = with("search_path", "mine").options().expect("known");
        assert!(path.get_options().is_some_and(|options| options.contains("search_path=mine")));
        for name in ["sslrootcert", "sslcert", "sslkey", "statement_timeout"] {
            with(name, "1").options().expect("known");
        }
    }

    #[test]
    fn what_is_wrong_is_refused_with_what_is_known() {
        let none = Connect { pool_max: 0, ..Connect::default() };
        let cases = [
            (with("sslmode", "on").options().map(drop), "`disable`, `allow`"),
            (with("ssl_mode", "disable").options().map(drop), "`sslmode`"),
            (none.pool().map(drop), "at least 1"),
        ];
        for (result, expected) in cases {
            let error = result.expect_err("refused");
            assert_eq!(error.fault(), Fault::Invalid);
            assert!(error.to_string().contains(expected), "{error}");
        }
    }

    #[test]
    fn the_password_is_not_shown() {
        let connect = Connect { password: "hunter2".to_owned(), ..Connect::default() };
        assert_eq!(format!("{connect:?}"), "Connect(postgres@localhost:5432/qualitytrace)");
    }
}
