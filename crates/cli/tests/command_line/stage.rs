//! A server with access on, a run, and callers of every role.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::process::ExitStatusExt,
    path::Path,
    process::{Output, Stdio},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use bench::parts::{Api, Database, Server, Target, answer, words};
use regex::Regex;
use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{process::Command, time::timeout};

use super::BINARY;

/// How long a command may take, on a busy machine.
pub(crate) const ENDED_MAX: Duration = Duration::from_secs(30);
/// The roles, each with more rights than the one before.
pub(crate) const ROLES: [&str; 4] = ["ingest", "viewer", "editor", "admin"];
/// A token that no server knows.
pub(crate) const WRONG_TOKEN: &str = "qtt_0000000000000000000000000000000000000000000";
/// The id of no run, no token and no session.
const NO_RUN: &str = "01a1f36f-d453-7b1c-81ba-9fa9ae4e1b76";

/// The server, and the folder of the commands.
pub(crate) struct Stage {
    pub(crate) folder: TempDir,
    database: Database,
    pub(crate) server: Server,
    /// The tokens by their roles.
    tokens: BTreeMap<&'static str, String>,
    run: String,
    _target: Target,
}

/// How a command ended.
pub(crate) struct Ended {
    /// The exit code; of one that a signal ended, that which a shell shows.
    pub(crate) code: i32,
    pub(crate) out: Vec<u8>,
    pub(crate) err: String,
}

/// A caller of a server.
#[derive(Clone, Copy)]
pub(crate) struct Caller<'a> {
    pub(crate) server: &'a str,
    pub(crate) token: Option<&'a str>,
}

/// Returns a command in a folder, without any variable of this process.
pub(crate) fn command(typed: &str, folder: &Path, caller: Caller<'_>) -> Command {
    let mut command = Command::new(BINARY);
    command.env_clear().args(words(typed)).current_dir(folder).kill_on_drop(true);
    command.env("XDG_CONFIG_HOME", folder.join("home")).env("QUALITYTRACE_SERVER", caller.server);
    command.envs(caller.token.map(|token| ("QUALITYTRACE_TOKEN", token)));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

impl From<Output> for Ended {
    fn from(Output { status, stdout, stderr }: Output) -> Self {
        let code = status.code().or_else(|| Some(128 + status.signal()?)).unwrap_or(-1);
        Self { code, out: stdout, err: String::from_utf8_lossy(&stderr).into_owned() }
    }
}

impl Stage {
    /// Starts a server, stores documents and runs a test.
    pub(crate) async fn set(purpose: &str) -> Result<Self> {
        let database = Database::create(purpose).await?;
        let configuration = format!(
            "{}\nserver: {{auth: {{mode: on, ingest: {{required: false}}}}, triggers: {{networks: {{allow: [loopback]}}}}}}\n",
            database.section()?
        );
        let server = Server::start_with(Path::new(BINARY), &configuration, "127.0.0.1:0").await?;
        let target = Target::start(Some(server.otlp_grpc)).await?;
        let folder = TempDir::new()?;
        let mut tokens = BTreeMap::new();
        for role in ROLES {
            let mut create = Command::new(BINARY);
            create.args(["token", "create", "--name", role, "--role", role, "--config"]);
            let output = create.arg(&server.config).output().await?;
            ensure!(output.status.success(), "{output:?}");
            tokens.insert(role, String::from_utf8(output.stdout)?.trim().to_owned());
        }
        let test = target.test(Duration::from_millis(100));
        for id in ["good", "spare", "test"] {
            let document = test.replace("id: cart", &format!("id: {id}"));
            fs::write(folder.path().join(format!("{id}.yaml")), document)?;
        }
        let run = String::new();
        let mut stage = Self { folder, database, server, tokens, run, _target: target };
        for (typed, code) in [
            ("apply good.yaml spare.yaml", 0),
            ("run good.yaml --revision r1 --server {server}", 0),
        ] {
            let ended = stage.ended(typed, stage.caller("admin"), &[]).await?;
            ensure!(ended.code == code, "{typed}: {}", ended.err);
        }
        let list = "runs list --limit 1 --format name";
        let ended = stage.ended(list, stage.caller("admin"), &[]).await?;
        stage.run = String::from_utf8(ended.out)?.trim().to_owned();
        let record = "shape record --run {run} -o good.shape";
        let ended = stage.ended(record, stage.caller("admin"), &[]).await?;
        ensure!(ended.code == 0, "{}", ended.err);
        Ok(stage)
    }

    /// Returns a caller of the server with the token of this role; another word is no role, and no token.
    pub(crate) fn caller(&self, role: &str) -> Caller<'_> {
        Caller { server: &self.server.api, token: self.tokens.get(role).map(String::as_str) }
    }

    /// Executes a command with these variables to its end.
    pub(crate) async fn ended(
        &self,
        typed: &str,
        caller: Caller<'_>,
        variables: &[(&str, &str)],
    ) -> Result<Ended> {
        let typed = self.filled(typed, caller.server).await?;
        let mut command = command(&typed, self.folder.path(), caller);
        let output = timeout(ENDED_MAX, command.envs(variables.iter().copied()).output());
        Ok(output.await.with_context(|| format!("{typed} does not end"))??.into())
    }

    /// Fills in what is there. A token and a session are new ones, since commands end them.
    pub(crate) async fn filled(&self, typed: &str, server: &str) -> Result<String> {
        let mut typed = typed.replace("{server}", server).replace("{run}", &self.run);
        typed = typed.replace("{no-run}", NO_RUN).replace("{nothing}", "nothing");
        for place in ["{token}", "{session}"] {
            if typed.contains(place) {
                let id = self.new_token(place.trim_matches(['{', '}'])).await?;
                typed = typed.replace(place, &id);
            }
        }
        Ok(typed)
    }

    /// Creates a token, and returns its id. One with the name `session` becomes a session: people begin those by a login.
    async fn new_token(&self, name: &str) -> Result<String> {
        let api = Api::new(&self.server.api)?;
        let admin = self.tokens.get("admin").context("an admin")?;
        let create = api.request(Method::POST, "/api/v1/tokens").bearer_auth(admin);
        let wanted = json!({"name": name, "role": "viewer", "expiresInDays": 1});
        let (status, created) = answer(create.body(wanted.to_string())).await?;
        ensure!(status == 201, "{created:#}");
        self.database.execute("update tokens set kind = 'session' where name = 'session'").await?;
        let id: &Value = &created["id"];
        Ok(id.as_str().context("an id")?.to_owned())
    }

    /// Returns what a command printed, without all that differs between two stages.
    pub(crate) fn masked(&self, ended: &Ended) -> Result<String> {
        let mut text = format!("exit {}\n", ended.code);
        match String::from_utf8(ended.out.clone()) {
            Ok(out) if out.contains('\0') => text.push_str("--- stdout\n{bytes}\n"),
            Ok(out) if out.is_empty() => {}
            Ok(out) => text.push_str(&format!("--- stdout\n{out}")),
            Err(_) => text.push_str("--- stdout\n{bytes}\n"),
        }
        // The body of a response ends as the server ended it.
        if !text.ends_with('\n') {
            text.push('\n');
        }
        if !ended.err.is_empty() {
            text.push_str(&format!("--- stderr\n{}", ended.err));
        }
        text = text.replace(&self.server.api, "{server}").replace(&self.run, "{run}");
        text = text.replace(&self.folder.path().display().to_string(), "{folder}");
        text = text.replace(env!("CARGO_PKG_VERSION"), "{version}");
        for (pattern, name) in [
            (r"http://127\.0\.0\.1:[0-9]+", "{url}"),
            (r"127\.0\.0\.1:[0-9]+", "{address}"),
            (r"qtt_[A-Za-z0-9_-]{20,}", "{secret}"),
            (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "{id}"),
            (r"\b[0-9a-f]{8}-[0-9a-f-]*…", "{id}…"),
            (r"\b[0-9a-f]{32}\b", "{trace}"),
            (r"\b20[0-9]{2}-[0-9]{2}-[0-9]{2}[T ]?[0-9:.]*Z?…?", "{time}"),
            (r"\b[0-9]+(\.[0-9]+)? (ns|µs|ms|s)\b", "{duration}"),
            (r"\b[0-9]+ bytes", "{bytes}"),
        ] {
            text = Regex::new(pattern)?.replace_all(&text, name).into_owned();
        }
        Ok(text)
    }

    pub(crate) async fn end(self) -> Result<()> {
        assert_eq!(self.server.terminate().await?, Some(0));
        self.database.remove().await
    }
}
