//! A private Postgres cluster, which can be stopped and restarted.

use std::{
    fs::{self, File, Permissions},
    os::unix::fs::{PermissionsExt, chown},
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use sqlx::{
    Connection, PgConnection,
    postgres::{PgConnectOptions, PgSslMode},
};
use tempfile::TempDir;
use tokio::{
    process::{Child, Command},
    time::{Instant, sleep, timeout},
};

use super::{free_port, proc, setting};

/// The file in its folder with its stderr, since the last start.
const LOG: &str = "postgres.log";
/// The timeout of one connection while it starts.
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// The timeout for readiness.
const READY_MAX: Duration = Duration::from_secs(30);

/// A cluster that runs or not, on a fixed port.
#[derive(Debug)]
pub struct Cluster {
    bin: PathBuf,
    /// Postgres refuses to run as root.
    user: Option<(u32, u32)>,
    port: u16,
    password: String,
    child: Option<Child>,
    folder: TempDir,
}

impl Cluster {
    /// Creates an empty cluster, without starting it.
    pub async fn create() -> Result<Self> {
        let bin = PathBuf::from(setting("QUALITYTRACE_TEST_POSTGRES_BIN")?);
        let folder = TempDir::new()?;
        let user = other_user().await?;
        let secret = folder.path().join("password");
        let password = setting("QUALITYTRACE_TEST_POSTGRES_PASSWORD")?;
        fs::write(&secret, &password)?;
        if let Some((uid, gid)) = user {
            chown(folder.path(), Some(uid), Some(gid))?;
            chown(&secret, Some(uid), Some(gid))?;
        }
        let cluster = Self { bin, user, port: free_port()?, password, child: None, folder };
        let mut initdb = cluster.program("initdb");
        initdb.args([
            "-N",
            "-U",
            "postgres",
            "-A",
            "scram-sha-256",
            "-E",
            "UTF8",
            "--locale=C.UTF-8",
        ]);
        let made = initdb.arg("--pwfile").arg(&secret).stdout(Stdio::null()).status().await?;
        ensure!(made.success(), "`initdb` failed: {made}");
        fs::remove_file(secret)?;
        Ok(cluster)
    }

    /// Writes a file that its user alone may read, such as the key of its certificate, and returns the path.
    pub fn file(&self, name: &str, content: &str) -> Result<PathBuf> {
        let path = self.folder.path().join(name);
        fs::write(&path, content)?;
        fs::set_permissions(&path, Permissions::from_mode(0o600))?;
        if let Some((uid, gid)) = self.user {
            chown(&path, Some(uid), Some(gid))?;
        }
        Ok(path)
    }

    /// Starts it, and waits until it accepts connections.
    pub async fn start(&mut self) -> Result<()> {
        // An acknowledged commit survives the process; it need not survive the machine, which makes it fast.
        self.start_with(&["fsync=off"]).await
    }

    /// Starts it with these settings and the defaults of Postgres for the others.
    pub async fn start_with(&mut self, settings: &[&str]) -> Result<()> {
        let mut postgres = self.program("postgres");
        postgres.args(["-p", &self.port.to_string()]);
        let here = ["listen_addresses=127.0.0.1", "unix_socket_directories="];
        for setting in here.iter().chain(settings) {
            postgres.args(["-c", setting]);
        }
        let log = File::create(self.folder.path().join(LOG))?;
        self.child = Some(postgres.stderr(log).kill_on_drop(true).spawn()?);
        let began = Instant::now();
        loop {
            let error = match timeout(CONNECT_MAX, self.connect()).await {
                Ok(Ok(_)) => return Ok(()),
                Ok(Err(error)) => error,
                Err(late) => late.into(),
            };
            if began.elapsed() > READY_MAX {
                let log = fs::read_to_string(self.folder.path().join(LOG)).unwrap_or_default();
                return Err(error.context(format!("the cluster did not get ready: {log}")));
            }
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// Stops it and disconnects all clients, as `pg_ctl stop` does.
    pub async fn stop(&mut self) -> Result<()> {
        self.end("-INT").await
    }

    /// Stops it like a crash; the next start recovers.
    pub async fn crash(&mut self) -> Result<()> {
        self.end("-QUIT").await
    }

    async fn end(&mut self, signal: &str) -> Result<()> {
        let Some(mut child) = self.child.take() else { bail!("the cluster does not run") };
        let id = child.id().context("the cluster runs")?;
        Command::new("kill").arg(signal).arg(id.to_string()).status().await?;
        child.wait().await?;
        Ok(())
    }

    /// Returns the `postgres` section of a configuration that names it, on one line.
    pub fn section(&self) -> String {
        self.section_of("postgres")
    }

    /// Returns the same section for another of its databases.
    pub fn section_of(&self, dbname: &str) -> String {
        self.section_by(self.port, dbname)
    }

    /// Returns the section with another port, such as that of a proxy.
    pub(crate) fn section_at(&self, port: u16) -> String {
        self.section_by(port, "postgres")
    }

    /// Returns its port.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    fn section_by(&self, port: u16, dbname: &str) -> String {
        format!(
            "postgres: {{host: 127.0.0.1, port: {port}, user: postgres, password: '{}', dbname: {dbname}}}",
            self.password
        )
    }

    /// Queries one number.
    pub async fn count(&self, query: &'static str) -> Result<i64> {
        Ok(sqlx::query_scalar(query).fetch_one(&mut self.connect().await?).await?)
    }

    /// Returns the CPU time of all its processes, including those that ended.
    pub(crate) fn cpu(&self) -> Result<Duration> {
        let id = self.child.as_ref().and_then(Child::id).context("the cluster runs")?;
        let mut sum = proc::cpu_with_ended(id)?;
        // A process that ends in between is counted by its parent the next time.
        for child in proc::children(id)? {
            sum += proc::cpu(child).unwrap_or_default();
        }
        Ok(sum)
    }

    /// Returns the password of its user `postgres`.
    pub(crate) fn password(&self) -> &str {
        &self.password
    }

    /// Returns the options for a connection to it.
    pub(crate) fn options(&self) -> PgConnectOptions {
        let options = PgConnectOptions::new_without_pgpass().host("127.0.0.1").port(self.port);
        let options = options.username("postgres").password(&self.password).database("postgres");
        options.ssl_mode(PgSslMode::Disable)
    }

    pub(crate) async fn connect(&self) -> Result<PgConnection> {
        Ok(PgConnection::connect_with(&self.options()).await?)
    }

    fn program(&self, name: &str) -> Command {
        let mut command = Command::new(self.bin.join(name));
        if let Some((uid, gid)) = self.user {
            command.uid(uid).gid(gid);
        }
        command.arg("-D").arg(self.data()).current_dir(self.folder.path());
        command
    }

    fn data(&self) -> PathBuf {
        Path::new(self.folder.path()).join("cluster")
    }
}

/// Returns the user and group to switch to, if this process runs as root.
async fn other_user() -> Result<Option<(u32, u32)>> {
    if number(&["-u"]).await? != 0 {
        return Ok(None);
    }
    Ok(Some((number(&["-u", "postgres"]).await?, number(&["-g", "postgres"]).await?)))
}

async fn number(arguments: &[&str]) -> Result<u32> {
    let output = Command::new("id").args(arguments).output().await?;
    Ok(String::from_utf8(output.stdout)?.trim().parse()?)
}
