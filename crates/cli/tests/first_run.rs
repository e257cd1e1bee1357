//! The demo shop in the process of a server: opened, broken, mended and closed by its API, on loopback and where access is on.

use std::{path::Path, time::Duration};

use anyhow::{Context, Result};
use bench::parts::{Api, Database, Server, answer, free_port, qualitytrace};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};

const BINARY: &str = env!("CARGO_BIN_EXE_qualitytrace");
/// How long a run may take to end.
const ENDED_MAX: Duration = Duration::from_secs(30);

async fn demo(api: &Api, method: Method, body: &Value) -> Result<(u16, Value)> {
    answer(api.request(method, "/api/v1/demo").body(body.to_string())).await
}

/// Runs the first test of the shop, and returns its verdict.
async fn verdict(api: &Api) -> Result<Value> {
    let run = api.start("checkout", &json!({})).await?;
    let ended = api.ended(&run, ENDED_MAX).await?;
    Ok(ended["verdict"].clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_shop_is_opened_broken_mended_and_closed() -> Result<()> {
    let database = Database::create("first_run").await?;
    let server = Server::start_with(Path::new(BINARY), &database.section()?, "127.0.0.1:0").await?;
    let api = Api::new(&server.api)?;
    let (status, closed) = demo(&api, Method::GET, &Value::Null).await?;
    assert_eq!((status, &closed["isOffered"], &closed["url"]), (200, &json!(true), &Value::Null));
    let (status, open) = demo(&api, Method::POST, &Value::Null).await?;
    assert_eq!(status, 200, "{open:#}");
    assert_eq!(open["test"], json!({"id": "checkout", "version": 1, "isOfShop": true}));
    assert_eq!(verdict(&api).await?, "passed");
    let (_, broken) = demo(&api, Method::POST, &json!({"faults": ["n-plus-one"]})).await?;
    assert_eq!((&broken["url"], &broken["test"]["version"]), (&open["url"], &json!(1)));
    assert_eq!(verdict(&api).await?, "failed");
    let (_, mended) = demo(&api, Method::POST, &json!({})).await?;
    assert_eq!(mended["faults"], json!([]));
    assert_eq!(verdict(&api).await?, "passed");
    let (_, gone) = demo(&api, Method::DELETE, &Value::Null).await?;
    assert_eq!(gone["url"], Value::Null);
    let address = open["url"].as_str().context("an URL")?.trim_start_matches("http://");
    assert!(TcpStream::connect(address).await.is_err(), "nothing listens at {address}");
    assert_eq!(verdict(&api).await?, "inconclusive");
    // A server that shuts down takes its shop with it.
    let (_, open) = demo(&api, Method::POST, &json!({})).await?;
    let address = open["url"].as_str().context("an URL")?.trim_start_matches("http://").to_owned();
    TcpStream::connect(&address).await?;
    server.terminate().await?;
    assert!(TcpStream::connect(&address).await.is_err(), "nothing listens at {address}");
    database.remove().await
}

/// Where access is on, the shop is offered by configuration only, it sends its spans with a token of its own, and triggers reach
/// its port and no other one of this machine.
#[tokio::test(flavor = "multi_thread")]
async fn with_access_the_shop_is_offered_by_configuration_and_opens_one_port() -> Result<()> {
    for is_on in [false, true] {
        let database = Database::create(&format!("first_run_access_{is_on}")).await?;
        let demo_key = if is_on { ", demo: true" } else { "" };
        let configuration =
            format!("{}\nserver: {{auth: {{mode: on}}{demo_key}}}\n", database.section()?);
        let server = Server::start_with(Path::new(BINARY), &configuration, "127.0.0.1:0").await?;
        let config = server.config.to_str().context("a path that is text")?;
        let token = async |role: &str| {
            let create = ["token", "create", "--config", config, "--role", role, "--name", role];
            let made = qualitytrace(Path::new(BINARY), &create).await?;
            let token = made.out.split_whitespace().find(|word| word.starts_with("qtt_"));
            anyhow::Ok(token.with_context(|| format!("a token: {made:?}"))?.to_owned())
        };
        let (viewer, editor) = (token("viewer").await?, token("editor").await?);
        let api = Api::new(&server.api)?;
        let send = async |token: &str, method: Method, path: &str, body: String| {
            answer(api.request(method, path).bearer_auth(token).body(body)).await
        };
        let path = "/api/v1/demo";
        let (status, _) = send(&viewer, Method::POST, path, String::new()).await?;
        assert_eq!(status, 403, "a viewer opens no shop");
        let (status, opened) = send(&editor, Method::POST, path, String::new()).await?;
        let (_, facts) = send(&editor, Method::GET, "/api/v1/server", String::new()).await?;
        if !is_on {
            assert_eq!((status, &facts["demo"]), (404, &json!("off")));
            let detail = opened["detail"].as_str().context("a detail")?;
            assert!(detail.contains("set `server.demo: true`"), "{detail}");
            let (status, state) = send(&viewer, Method::GET, path, String::new()).await?;
            assert_eq!((status, &state["isOffered"]), (200, &json!(false)));
        } else {
            assert_eq!((status, &facts["demo"]), (200, &json!("offered")), "{opened:#}");
            let run = async |test: &str| {
                let runs = format!("/api/v1/tests/{test}/runs");
                let (status, run) = send(&editor, Method::POST, &runs, String::new()).await?;
                assert_eq!(status, 202, "{run:#}");
                let path = format!("/api/v1/runs/{}", run["id"].as_str().context("an id")?);
                let began = tokio::time::Instant::now();
                loop {
                    let (_, run) = send(&editor, Method::GET, &path, String::new()).await?;
                    if run["state"] == "ended" || began.elapsed() > ENDED_MAX {
                        return anyhow::Ok(run);
                    }
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            };
            let green = run("checkout").await?;
            assert_eq!(green["verdict"], "passed", "{green:#}");
            // Another port of the same address is still forbidden, though a program listens there.
            let other = TcpListener::bind(("127.0.0.1", free_port()?)).await?;
            let url = format!("http://{}/", other.local_addr()?);
            let test = format!(
                "type: Test\nspec: {{id: other, name: other, trigger: {{type: http, httpRequest: {{method: GET, url: '{url}'}}}}}}\n"
            );
            let put = "/api/v1/tests/other";
            let (status, put) = send(&editor, Method::PUT, put, test).await?;
            assert_eq!(status, 201, "{put:#}");
            let refused = run("other").await?;
            assert_eq!(refused["verdict"], "inconclusive", "{refused:#}");
            assert!(refused.to_string().contains("server.triggers.networks.allow"), "{refused:#}");
        }
        server.terminate().await?;
        database.remove().await?;
    }
    Ok(())
}

/// A configuration that turns the shop on where it cannot work is refused at the start.
#[tokio::test(flavor = "multi_thread")]
async fn a_shop_that_cannot_work_is_refused_at_the_start() -> Result<()> {
    let database = Database::create("first_run_refused").await?;
    let section = database.section()?;
    let cases = [
        ("server: {demo: true, triggers: {networks: {deny: [loopback]}}}", "networks.deny"),
        ("server: {demo: maybe}", "`true` or `false`"),
    ];
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("quality-trace-config.yaml");
    for (server, reason) in cases {
        std::fs::write(&file, format!("{section}\n{server}\n"))?;
        let path = file.to_str().context("a path that is text")?;
        let checked =
            qualitytrace(Path::new(BINARY), &["config", "check", "--config", path]).await?;
        let printed = format!("{checked:?}");
        assert!(printed.contains(reason), "{server}: {printed}");
    }
    database.remove().await
}
