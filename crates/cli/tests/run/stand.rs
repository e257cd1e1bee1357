//! The fixture of the tests: a folder with documents, the binary in it, and a server with configurable responses.

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    process::Stdio,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use bench::parts::CommandResult;
use serde_json::Value;
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    process::{Child, Command},
    task::JoinSet,
    time::{Instant, sleep, timeout},
};

pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_qualitytrace");

/// The timeout for every wait. Far longer than usual: the machine may be busy.
pub(crate) const WAIT_MAX: Duration = Duration::from_secs(50);

/// A temporary folder in which the binary is run.
pub(crate) struct Stand {
    pub(crate) folder: TempDir,
}

impl Stand {
    pub(crate) fn new() -> Result<Self> {
        Ok(Self { folder: TempDir::new()? })
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> Result<()> {
        let path = self.folder.path().join(name);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        Ok(fs::write(path, text)?)
    }

    pub(crate) fn read(&self, name: &str) -> Result<String> {
        fs::read_to_string(self.folder.path().join(name)).with_context(|| name.to_owned())
    }

    /// Starts the binary.
    pub(crate) fn start(&self, arguments: &[&str]) -> Result<Child> {
        self.start_with(arguments, &[])
    }

    /// Starts the binary with these additional environment variables.
    pub(crate) fn start_with(
        &self,
        arguments: &[&str],
        variables: &[(&str, &str)],
    ) -> Result<Child> {
        let mut command = Command::new(BINARY);
        command.envs(variables.iter().copied());
        command.args(arguments).current_dir(self.folder.path()).kill_on_drop(true);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Ok(command.spawn()?)
    }

    /// Runs the binary to its end.
    pub(crate) async fn run(&self, arguments: &[&str]) -> Result<CommandResult> {
        finished(self.start(arguments)?).await
    }

    /// Waits until a file that another process writes contains a complete line, and returns it.
    pub(crate) async fn line_of(&self, name: &str) -> Result<String> {
        let began = Instant::now();
        loop {
            if let Ok(text) = self.read(name)
                && text.ends_with('\n')
            {
                return Ok(text.trim().to_owned());
            }
            ensure!(began.elapsed() < WAIT_MAX, "nobody has written `{name}`");
            sleep(Duration::from_millis(5)).await;
        }
    }
}

/// Waits for the end of the binary.
pub(crate) async fn finished(child: Child) -> Result<CommandResult> {
    let output = timeout(WAIT_MAX, child.wait_with_output()).await.context("it does not end")??;
    Ok(CommandResult {
        code: output.status.code(),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
}

/// Returns the outcomes that `--report json` wrote, in its order.
pub(crate) fn outcomes(finished: &CommandResult) -> Result<Vec<Value>> {
    let lines = finished.out.lines().map(|line| {
        let line: Value = serde_json::from_str(line).with_context(|| line.to_owned())?;
        Ok(line["outcome"].clone())
    });
    lines.collect()
}

/// Returns the names of the tests that were run, sorted.
pub(crate) fn names(finished: &CommandResult) -> Result<Vec<String>> {
    let mut names: Vec<_> = outcomes(finished)?
        .iter()
        .map(|it| it["test"].as_str().unwrap_or_default().to_owned())
        .collect();
    names.sort();
    Ok(names)
}

/// Returns a test that is judged only by the response, which has to be 200.
pub(crate) fn plain(name: &str, url: &str) -> String {
    format!(
        "type: Test
spec:
  name: {name}
  skipTraceCollection: true
  trigger: {{type: http, httpRequest: {{method: GET, url: '{url}'}}}}
  specs:
    - selector: span[name=\"Qualitytrace trigger\"]
      assertions: ['attr:tracetest.response.status = 200']
"
    )
}

/// Returns a test that expects exactly one span named `work`.
pub(crate) fn traced(name: &str, url: &str, settle: &str) -> String {
    format!(
        "type: Test
spec:
  name: {name}
  trigger: {{type: http, httpRequest: {{method: GET, url: '{url}'}}}}
  settle: {{{settle}}}
  specs:
    - selector: span[name=\"work\"]
      assertions: ['attr:tracetest.selected_spans.count = 1']
"
    )
}

/// Returns a test that requests the products from the demo on this address, and expects their spans.
pub(crate) fn products(name: &str, address: &str) -> String {
    format!(
        "type: Test
spec:
  name: {name}
  trigger: {{type: http, httpRequest: {{method: GET, url: 'http://{address}/products'}}}}
  specs:
    - selector: span[service.name=\"stock\" tracetest.span.type=\"http\"]
      assertions: ['attr:tracetest.selected_spans.count >= 1']
"
    )
}

/// Whether a process exists and is no zombie.
pub(crate) fn is_alive(pid: &str) -> bool {
    let Ok(stat) = fs::read_to_string(Path::new("/proc").join(pid).join("stat")) else {
        return false;
    };
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    !matches!(state, None | Some('Z' | 'X'))
}

/// Sends a signal, such as `-INT`.
pub(crate) async fn signal(child: &Child, name: &str) -> Result<()> {
    let pid = child.id().context("it runs")?.to_string();
    ensure!(Command::new("kill").args([name, &pid]).status().await?.success());
    Ok(())
}

/// A server with configurable responses that counts requests.
pub(crate) struct Answers {
    /// Such as `http://127.0.0.1:1234`.
    pub(crate) url: String,
    heard: Arc<Heard>,
    _tasks: JoinSet<()>,
}

#[derive(Default)]
struct Heard {
    paths: Mutex<BTreeMap<String, usize>>,
    /// The head of the last request for each path.
    heads: Mutex<BTreeMap<String, String>>,
    now: AtomicUsize,
    peak: AtomicUsize,
}

/// A response.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: String,
    pub(crate) after: Duration,
}

impl Answer {
    pub(crate) fn status(status: u16) -> Self {
        Self { status, body: String::new(), after: Duration::ZERO }
    }
}

impl Answers {
    /// Starts a server that responds by the path and the number of requests for it, from 1.
    pub(crate) async fn start(
        answer: impl Fn(&str, usize) -> Answer + Send + Sync + 'static,
    ) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?);
        let heard = Arc::new(Heard::default());
        let (answer, hearing) = (Arc::new(answer), Arc::clone(&heard));
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (answer, heard) = (Arc::clone(&answer), Arc::clone(&hearing));
                connections.spawn(async move { drop(one(stream, &*answer, &heard).await) });
            }
        });
        Ok(Self { url, heard, _tasks: tasks })
    }

    /// Returns the number of requests for each path.
    pub(crate) fn asked(&self) -> BTreeMap<String, usize> {
        self.heard.paths.lock().expect("nobody panicked").clone()
    }

    /// Returns the maximum of concurrent requests.
    pub(crate) fn peak(&self) -> usize {
        self.heard.peak.load(Ordering::SeqCst)
    }

    /// Returns the trace id and the span id in the request for a path.
    pub(crate) fn parent(&self, path: &str) -> Result<(String, String)> {
        let heads = self.heard.heads.lock().expect("nobody panicked");
        let head = heads.get(path).context("it was asked for")?;
        let mut lines = head.lines().filter_map(|line| line.strip_prefix("traceparent: 00-"));
        let (trace, rest) =
            lines.next().and_then(|line| line.split_once('-')).context("a parent")?;
        Ok((trace.to_owned(), rest.split('-').next().unwrap_or_default().to_owned()))
    }

    /// Waits until a client requests a path.
    pub(crate) async fn wait_for(&self, path: &str) -> Result<()> {
        let began = Instant::now();
        while !self.asked().contains_key(path) {
            ensure!(began.elapsed() < WAIT_MAX, "nobody asks for `{path}`");
            sleep(Duration::from_millis(5)).await;
        }
        Ok(())
    }
}

async fn one(
    mut stream: TcpStream,
    answer: &(impl Fn(&str, usize) -> Answer + Sync),
    heard: &Heard,
) -> Result<()> {
    let mut head = Vec::new();
    let mut chunk = [0; 1024];
    while !head.windows(4).any(|window| window == b"\r\n\r\n") {
        let read = stream.read(&mut chunk).await?;
        // A client that only checks whether the port accepts connections sends no request.
        ensure!(read > 0, "no request");
        head.extend_from_slice(&chunk[..read]);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
    heard.heads.lock().expect("nobody panicked").insert(path.clone(), head);
    let count = {
        let mut paths = heard.paths.lock().expect("nobody panicked");
        let count = paths.entry(path.clone()).or_default();
        *count += 1;
        *count
    };
    let now = heard.now.fetch_add(1, Ordering::SeqCst) + 1;
    heard.peak.fetch_max(now, Ordering::SeqCst);
    let Answer { status, body, after } = answer(&path, count);
    // The response is delayed as the test specifies.
    sleep(after).await;
    heard.now.fetch_sub(1, Ordering::SeqCst);
    let text = format!(
        "HTTP/1.1 {status} OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    Ok(stream.write_all(text.as_bytes()).await?)
}
