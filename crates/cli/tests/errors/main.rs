//! The errors by their names. `cases.txt` has for most a command that provokes it, and one that follows the advice of its page, and
//! works; [`states`] has those that need a server in a certain state.

mod states;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File},
    path::Path,
    process::{Output, Stdio},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use bench::parts::{Database, Server, Target, free_port, words};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    process::Command,
    task::JoinSet,
    time::{Instant, sleep, timeout},
};

const BINARY: &str = env!("CARGO_BIN_EXE_qualitytrace");
const ENDED_MAX: Duration = Duration::from_secs(30);
/// Cases that are checked at once.
const AT_ONCE: usize = 3;

/// A case: the name of an error, what provokes it, and what its page advises.
struct ErrorCase<'a> {
    name: &'a str,
    wrong: &'a str,
    advice: Vec<&'a str>,
}

/// What the placeholders of the cases stand for, and what has to live as long.
struct Stand {
    values: BTreeMap<&'static str, String>,
    databases: Vec<Database>,
    servers: Vec<Server>,
    _targets: Vec<Target>,
    _taken: TcpListener,
    _tasks: JoinSet<()>,
}

fn cases() -> Result<Vec<ErrorCase<'static>>> {
    const TEXT: &str = include_str!("cases.txt");
    let mut cases = Vec::new();
    for block in TEXT.split("\n\n").filter(|block| !block.starts_with('#')) {
        let (first, second) = block.trim().split_once('\n').context(block)?;
        let (name, wrong) = first.split_once(": ").context(first)?;
        let advice = second.strip_prefix("advice: ").context(second)?;
        cases.push(ErrorCase { name, wrong, advice: advice.split(" ; ").collect() });
    }
    Ok(cases)
}

impl Stand {
    async fn start() -> Result<Self> {
        let open = Database::create("errors").await?;
        let server = Server::start_with(Path::new(BINARY), &open.section()?, "127.0.0.1:0").await?;
        let closed = Database::create("errors_access").await?;
        let key = "0123456789abcdef".repeat(4);
        let configuration = format!(
            "{}\nserver: {{auth: {{mode: on}}}}\nsecrets: {{keys: ['first:{key}']}}\n",
            closed.section()?
        );
        let guarded = Server::start_with(Path::new(BINARY), &configuration, "127.0.0.1:0").await?;
        let target = Target::start(None).await?;
        let receives = format!("127.0.0.1:{}", free_port()?);
        let traced =
            Target::start(receives.rsplit(':').next().and_then(|it| it.parse().ok())).await?;
        let taken = TcpListener::bind("127.0.0.1:0").await?;
        let greeter = TcpListener::bind("127.0.0.1:0").await?;
        let greeter_address = greeter.local_addr()?.to_string();
        let mut tasks = JoinSet::new();
        tasks.spawn(hello(greeter));
        let own = Database::create("errors_own").await?;
        let section = own.section()?;
        let host = |url: &str| url.trim_start_matches("http://").trim_end_matches('/').to_owned();
        let mut values = BTreeMap::from([
            ("postgres-away", own.section_at(free_port()?)?),
            ("postgres-denied", section.replace("password: '", "password: 'not ")),
            ("postgres-missing", section.replace("dbname: ", "dbname: no_")),
            ("postgres", section),
            ("taken", taken.local_addr()?.to_string()),
            ("closed", format!("127.0.0.1:{}", free_port()?)),
            ("target", host(&target.url)),
            ("traced", host(&traced.url)),
            ("receives", receives),
            ("hello", greeter_address),
            ("server", server.api.clone()),
            ("guarded", guarded.api.clone()),
        ]);
        let config = TempDir::new()?;
        let config_file = config.path().join("config.yaml");
        fs::write(&config_file, &configuration)?;
        for role in ["admin", "viewer"] {
            let mut create = Command::new(BINARY);
            create.args(["token", "create", "--name", role, "--role", role]);
            let output = create.arg("--config").arg(&config_file).output().await?;
            ensure!(output.status.success(), "{output:?}");
            let token = String::from_utf8(output.stdout)?;
            values.insert(role, token.trim().to_owned());
        }
        let databases = vec![open, closed, own];
        let (servers, targets) = (vec![server, guarded], vec![target, traced]);
        Ok(Self { values, databases, servers, _targets: targets, _taken: taken, _tasks: tasks })
    }

    fn filled(&self, text: &str) -> Result<String> {
        let mut text = text.to_owned();
        for (name, value) in &self.values {
            text = text.replace(&format!("{{{name}}}"), value);
        }
        while text.contains("{free}") {
            text = text.replacen("{free}", &format!("127.0.0.1:{}", free_port()?), 1);
        }
        Ok(text)
    }

    /// Returns a folder with all inputs.
    fn folder(&self) -> Result<TempDir> {
        let folder = TempDir::new()?;
        let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
        self.copy(&tests.join("offline/inputs"), folder.path())?;
        self.copy(&tests.join("errors/inputs"), folder.path())?;
        let trace = tests.join("../../../docs/language/example/checkout.json");
        fs::copy(trace, folder.path().join("checkout.json"))?;
        // Above it, no project file is looked for.
        for repository in ["project/.git", "wrong-project/.git", ".git"] {
            fs::create_dir(folder.path().join(repository))?;
        }
        let large = "#".repeat(1 << 21);
        fs::write(folder.path().join("large.yaml"), large)?;
        Ok(folder)
    }

    fn copy(&self, from: &Path, to: &Path) -> Result<()> {
        for entry in fs::read_dir(from)? {
            let from = entry?.path();
            let to = to.join(from.file_name().context("a name")?);
            if from.is_dir() {
                fs::create_dir(&to)?;
                self.copy(&from, &to)?;
            } else {
                fs::write(&to, self.filled(&fs::read_to_string(&from)?)?)?;
            }
        }
        Ok(())
    }

    async fn check(&self, case: &ErrorCase<'_>) -> Result<()> {
        let folder = self.folder()?;
        let (code, printed) = self.run(case.wrong, folder.path()).await?;
        ensure!(code != Some(0) && code.is_some(), "exit {code:?}: {printed}");
        let name = format!("[{}]", case.name);
        let last = printed.trim_end().lines().rfind(|line| line.ends_with(']'));
        ensure!(last.is_some_and(|line| line.ends_with(&name)), "not {name} last: {printed}");
        ensure!(!printed.contains("panicked"), "{printed}");
        for command in &case.advice {
            let (code, printed) = self.run(command, folder.path()).await?;
            ensure!(
                code == Some(0) && !printed.contains(&name),
                "`{command}`, {code:?}: {printed}"
            );
        }
        Ok(())
    }

    /// Runs a command line; returns its exit code and what it printed. A server is stopped once it is ready.
    async fn run(&self, line: &str, folder: &Path) -> Result<(Option<i32>, String)> {
        let line = self.filled(line)?;
        let mut words = words(&line);
        let mut command = Command::new(BINARY);
        command.env_remove("CI").env("XDG_CONFIG_HOME", folder.join("home")).kill_on_drop(true);
        command.current_dir(folder).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        while let Some(first) = words.first().cloned() {
            match (first.strip_prefix('@'), first.split_once('=')) {
                (Some(below), _) => command.current_dir(folder.join(below)),
                (None, Some((name, value))) => command.env(name, value),
                (None, None) => break,
            };
            words.remove(0);
        }
        if words[0] == "serve" {
            for flag in ["--http", "--otlp-grpc", "--otlp-http"] {
                if !words.iter().any(|word| word == flag) {
                    words.extend([flag.to_owned(), "127.0.0.1:0".to_owned()]);
                }
            }
            command.args(&words);
            return served(command, folder).await.with_context(|| line.clone());
        }
        let output = timeout(ENDED_MAX, command.args(&words).output()).await;
        let Output { status, stdout, stderr } = output.with_context(|| line.clone())??;
        let printed = String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned();
        Ok((status.code(), printed))
    }
}

/// Runs a server until it ends, or is ready and stopped.
async fn served(mut command: Command, folder: &Path) -> Result<(Option<i32>, String)> {
    let log = folder.join("serve.log");
    let file = File::create(&log)?;
    command.stdout(file.try_clone()?).stderr(file);
    let mut child = command.spawn()?;
    let began = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        let is_ready = fs::read_to_string(&log)?.contains("ready: ");
        if let Some(id) = child.id().filter(|_| is_ready) {
            let stop = Command::new("kill").args(["-TERM", &id.to_string()]).status().await?;
            ensure!(stop.success(), "{stop}");
            break timeout(ENDED_MAX, child.wait()).await??;
        }
        ensure!(began.elapsed() < ENDED_MAX, "{}", fs::read_to_string(&log)?);
        sleep(Duration::from_millis(20)).await;
    };
    Ok((status.code(), fs::read_to_string(&log)?))
}

/// Answers every request with a text.
async fn hello(listener: TcpListener) {
    while let Ok((mut stream, _)) = listener.accept().await {
        let mut request = [0; 1 << 12];
        let _read = stream.read(&mut request).await;
        let response = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: close\r\n\r\nhello";
        let _written = stream.write_all(response).await;
    }
}

/// Cases that need the one address to which the system under test exports are checked one after the other.
fn chains() -> Result<Vec<Vec<ErrorCase<'static>>>> {
    let mut chains: Vec<Vec<_>> = (0..=AT_ONCE).map(|_| Vec::new()).collect();
    for (number, case) in cases()?.into_iter().enumerate() {
        let needs = |line: &str| line.contains("{receives}");
        let is_last = needs(case.wrong) || case.advice.iter().any(|line| needs(line));
        chains[if is_last { AT_ONCE } else { number % AT_ONCE }].push(case);
    }
    Ok(chains)
}

#[tokio::test(flavor = "multi_thread")]
async fn each_error_has_its_name_and_its_advice_works() -> Result<()> {
    let names: BTreeSet<_> = cases()?.iter().map(|case| case.name).collect();
    let count = cases()?.len();
    assert_eq!(names.len(), count, "each name once");
    assert!(count >= 50, "{count} cases");
    let stand = Arc::new(Stand::start().await?);
    let mut checks = JoinSet::new();
    for chain in chains()? {
        let stand = Arc::clone(&stand);
        checks.spawn(async move {
            let mut wrong = Vec::new();
            for case in &chain {
                if let Err(error) = stand.check(case).await {
                    wrong.push(format!("{}: {error:#}", case.name));
                }
            }
            wrong
        });
    }
    let wrong = checks.join_all().await.concat();
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong.join("\n\n"));
    let stand = Arc::into_inner(stand).context("all checks ended")?;
    for server in stand.servers {
        assert_eq!(server.terminate().await?, Some(0));
    }
    for database in stand.databases {
        database.remove().await?;
    }
    Ok(())
}
