//! The project file, by the built binary: what it gives to commands, and what a stranger's file cannot do.

use std::{fs, net::TcpListener, path::Path, process::Stdio, time::Duration};

use anyhow::Result;
use tempfile::TempDir;
use tokio::{io::AsyncWriteExt, process::Command, time::timeout};

const BINARY: &str = env!("CARGO_BIN_EXE_qualitytrace");
const ENDED_MAX: Duration = Duration::from_secs(60);

/// A trace of the tests of `new`.
const TRACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/new/proposals/retry-storm.pb");

const TEST: &str = "type: Test
spec:
  id: away
  name: A target that is away
  skipTraceCollection: true
  trigger: {type: http, httpRequest: {url: 'http://127.0.0.1:1/'}}
  specs: [{selector: 'span[name=\"Qualitytrace trigger\"]', assertions: ['attr:tracetest.response.status = 200']}]
";

/// A repository with a test and a project file.
struct Repository(TempDir);

impl Repository {
    fn new(project: &str) -> Result<Self> {
        let folder = TempDir::new()?;
        fs::create_dir(folder.path().join(".git"))?;
        fs::create_dir_all(folder.path().join("specs/below"))?;
        fs::write(folder.path().join("specs/away.yaml"), TEST)?;
        fs::write(folder.path().join("qualitytrace.toml"), project)?;
        Ok(Self(folder))
    }

    fn has(&self, file: &str) -> bool {
        self.0.path().join(file).exists()
    }

    /// Runs a command in this folder of the repository, with lines on its stdin.
    async fn run(
        &self,
        (program, arguments): (&str, &[&str]),
        (folder, typed): (&str, &str),
        variables: &[(&str, &str)],
    ) -> Result<(Option<i32>, String)> {
        let home = self.0.path().join("home");
        let mut command = Command::new(program);
        command.args(arguments).current_dir(self.0.path().join(folder)).kill_on_drop(true);
        command.env("XDG_CONFIG_HOME", &home).env_remove("CI").envs(variables.iter().copied());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(typed.as_bytes()).await?;
        }
        let output = timeout(ENDED_MAX, child.wait_with_output()).await??;
        let printed = [output.stdout, output.stderr].concat();
        Ok((output.status.code(), String::from_utf8_lossy(&printed).into_owned()))
    }

    async fn plain(&self, arguments: &[&str]) -> Result<(Option<i32>, String)> {
        self.run((BINARY, arguments), ("", ""), &[]).await
    }

    /// Runs a command on a terminal, where a person types this.
    async fn on_terminal(&self, arguments: &str, typed: &str) -> Result<(Option<i32>, String)> {
        let line = format!("{BINARY} {arguments}");
        self.run(
            ("script", &["--quiet", "--return", "--command", &line, "/dev/null"]),
            ("", typed),
            &[],
        )
        .await
    }
}

#[tokio::test]
async fn commands_need_no_flags() -> Result<()> {
    let repository = Repository::new(
        "tests = [\"specs\"]\n[run]\njobs = 3\nreport = [\"json=out.json\"]\n[profile.ci.run]\njobs = 1\n",
    )?;
    let (code, printed) = repository.plain(&["check"]).await?;
    assert_eq!(code, Some(0), "{printed}");
    let below = repository.run((BINARY, &["check"]), ("specs/below", ""), &[]).await?;
    assert_eq!(below.0, Some(0), "{}", below.1);
    let (code, printed) = repository.plain(&["run"]).await?;
    assert_eq!(code, Some(3), "the target is away: {printed}");
    assert!(fs::read_to_string(repository.0.path().join("out.json"))?.contains("away"));
    let (_, shown) = repository.plain(&["project", "show", "--profile", "ci"]).await?;
    for line in ["tests                 specs  ", "profile ci, qualitytrace.toml:6", "run.retries"]
    {
        assert!(shown.contains(line), "{line}: {shown}");
    }
    let variables = [("QUALITYTRACE_JOBS", "7")];
    let (_, shown) = repository.run((BINARY, &["project", "show"]), ("", ""), &variables).await?;
    assert!(shown.contains("variable QUALITYTRACE_JOBS"), "{shown}");
    let (code, printed) = repository.plain(&["run", "--profile", "cj"]).await?;
    assert_eq!(code, Some(2), "{printed}");
    assert!(printed.contains("no profile `cj`") && printed.contains("`ci`"), "{printed}");
    fs::write(repository.0.path().join("qualitytrace.toml"), "\n[run]\nretrys = 1\n")?;
    let (code, printed) = repository.plain(&["run"]).await?;
    assert_eq!(code, Some(2), "{printed}");
    assert!(
        printed.contains("qualitytrace.toml:3:1") && printed.contains("`retries`"),
        "{printed}"
    );
    assert_eq!(repository.plain(&["version"]).await?.0, Some(0), "it is of no use there");
    for flags in
        [&["version", "--trust"][..], &["explain", "span[]", "--trace", "x", "--profile", "ci"]]
    {
        let (code, printed) = repository.plain(flags).await?;
        assert!(code == Some(2) && printed.contains("has no effect on"), "{printed}");
    }
    Ok(())
}

#[tokio::test]
async fn the_file_of_a_stranger_does_nothing_before_it_is_trusted() -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    listener.set_nonblocking(true)?;
    let url = format!("http://{}", listener.local_addr()?);
    let project = format!(
        "tests = [\"specs\"]\n[system]\ncommand = [\"touch\", \"executed\"]\n[server]\nurl = \"{url}\"\n"
    );
    let repository = Repository::new(&project)?;
    let token = [("QUALITYTRACE_TOKEN", "qtt_secret")];
    for arguments in [
        &["run"][..],
        &["run", "specs/away.yaml"],
        &["apply"],
        &["list", "tests"],
        &["whoami"],
        &["status"],
    ] {
        let (code, printed) = repository.run((BINARY, arguments), ("", "y\n"), &token).await?;
        assert_eq!(code, Some(2), "{arguments:?}: {printed}");
        assert!(printed.contains("--trust") && printed.contains("QUALITYTRACE_TRUST"), "{printed}");
    }
    assert!(!repository.has("executed"), "nothing is executed");
    assert!(listener.accept().is_err(), "nothing is sent");

    // A server that is named is that one, and has its own authorities; a trace in a file is sent nowhere.
    let context =
        r#"{"current":null,"contexts":{"work":{"server":"http://127.0.0.1:1","token":"t"}}}"#;
    fs::create_dir_all(repository.0.path().join("home/qualitytrace"))?;
    fs::write(repository.0.path().join("home/qualitytrace/contexts.json"), context)?;
    let named = repository.plain(&["whoami", "--context", "work"]).await?;
    assert_eq!(named.0, Some(3), "{}", named.1);
    assert!(named.1.contains("127.0.0.1:1`"), "{}", named.1);
    let shape = repository.plain(&["shape", "record", TRACE]).await?;
    assert_eq!(shape.0, Some(0), "{}", shape.1);
    assert!(listener.accept().is_err(), "nothing is sent");

    // What does not use such a value needs no trust, and neither does one that is typed.
    assert_eq!(repository.plain(&["check"]).await?.0, Some(0));
    assert_eq!(repository.plain(&["run", "--", "true"]).await?.0, Some(3));
    let away = repository.plain(&["whoami", "--server", "http://127.0.0.1:1"]).await?;
    assert_eq!(away.0, Some(3), "{}", away.1);
    assert!(!repository.has("executed"));
    let trusted =
        repository.run((BINARY, &["run"]), ("", ""), &[("QUALITYTRACE_TRUST", "1")]).await?;
    assert_eq!(trusted.0, Some(3), "{}", trusted.1);
    assert!(repository.has("executed"), "{}", trusted.1);
    assert!(!repository.has("home/qualitytrace/trusted.json"), "a variable is not kept");
    Ok(())
}

/// Git stores links too: one that leads out of the repository is no path in it.
#[tokio::test]
async fn a_link_leads_to_no_file_elsewhere() -> Result<()> {
    let elsewhere = TempDir::new()?;
    let victim = elsewhere.path().join("victim");
    for (line, link) in [
        ("report = [\"json=link\"]", "link"),
        ("report = [\"json=folder/victim\"]", "folder"),
        ("report = [\"json=dangling\"]", "dangling"),
        ("vars = [\"link\"]", "link"),
    ] {
        fs::write(&victim, "before")?;
        let repository = Repository::new(&format!("tests = [\"specs\"]\n[run]\n{line}\n"))?;
        let target = match link {
            "link" => victim.clone(),
            "folder" => elsewhere.path().to_owned(),
            _ => elsewhere.path().join("new"),
        };
        std::os::unix::fs::symlink(target, repository.0.path().join(link))?;
        let (code, printed) = repository.plain(&["run"]).await?;
        assert_eq!(code, Some(2), "{line}: {printed}");
        assert!(
            printed.contains("qualitytrace.toml:3:") && printed.contains("a link leads elsewhere")
        );
        assert_eq!(fs::read_to_string(&victim)?, "before", "{line}");
        assert!(!elsewhere.path().join("new").exists(), "{line}");
    }
    let repository =
        Repository::new("tests = [\"specs\"]\n[run]\nreport = [\"json=out/a.json\"]\n")?;
    fs::create_dir(repository.0.path().join("real"))?;
    std::os::unix::fs::symlink("real", repository.0.path().join("out"))?;
    assert_eq!(repository.plain(&["run"]).await?.0, Some(3));
    assert!(repository.has("real/a.json"), "a link within the repository is a path in it");
    Ok(())
}

#[tokio::test]
async fn a_person_is_asked_once_and_again_after_a_change() -> Result<()> {
    let project =
        |file: &str| format!("tests = [\"specs\"]\n[system]\ncommand = [\"touch\", \"{file}\"]\n");
    let repository = Repository::new(&project("first"))?;
    let no = repository.on_terminal("run", "n\n").await?;
    assert_eq!(no.0, Some(2), "{}", no.1);
    assert!(no.1.contains("system.command = \"touch\" \"first\""), "{}", no.1);
    assert!(!repository.has("first"));
    let yes = repository.on_terminal("run", "y\n").await?;
    assert_eq!(yes.0, Some(3), "{}", yes.1);
    assert!(repository.has("first"), "{}", yes.1);
    fs::remove_file(repository.0.path().join("first"))?;
    let again = repository.plain(&["run"]).await?;
    assert!(again.0 == Some(3) && repository.has("first"), "it is known: {}", again.1);
    fs::write(repository.0.path().join("qualitytrace.toml"), project("second"))?;
    let changed = repository.plain(&["run"]).await?;
    assert_eq!(changed.0, Some(2), "{}", changed.1);
    assert!(!repository.has("second"));
    let copied = Repository::new(&project("first"))?;
    fs::create_dir_all(copied.0.path().join("home"))?;
    copy(
        &repository.0.path().join("home/qualitytrace"),
        &copied.0.path().join("home/qualitytrace"),
    )?;
    assert_eq!(copied.plain(&["run"]).await?.0, Some(2), "another folder is another repository");
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for file in fs::read_dir(from)? {
        let file = file?;
        fs::copy(file.path(), to.join(file.file_name()))?;
    }
    Ok(())
}
