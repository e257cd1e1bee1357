//! Provisioning: at every start, the provisioned documents are those in the server's own files.

use std::{fs, net::SocketAddr, path::Path, sync::Arc};

use anyhow::{Context, Result};
use bench::parts::Database;
use model::{Timestamp, World};
use reqwest::Client;
use serde_json::Value;
use server::{
    Handle, StartError, Telemetry,
    config::{self, Config, Environment},
};
use source::Text;
use tokio::runtime;

const WORLD: World = World::new(|| Timestamp::from_nanos(1_794_708_000_123_456_789), random);

fn random() -> [u8; 32] {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).expect("the system has randomness");
    bytes
}

async fn start(database: &Database, files: &Path) -> Result<Result<Handle, StartError>> {
    let rest = format!(
        "server: {{provisioning: {}}}\nsecrets: {{keys: ['one:{}']}}\n",
        files.display(),
        "07".repeat(32)
    );
    let text = Text::new("config.yaml", format!("{}\n{rest}", database.section()?));
    let read = config::read(&text, &Environment::default());
    let told = source::draw(&read.diagnostics, source::Colour::Never);
    let mut config: Config = read.config.context(told)?;
    let any: SocketAddr = "127.0.0.1:0".parse()?;
    config.listen = config::Listen { http: any, otlp_grpc: any, otlp_http: any, probes: None };
    config.data_directory = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("provision");
    let telemetry = Arc::new(Telemetry::start(&config, server::host())?);
    let server = server::start(config, telemetry, WORLD, runtime::Handle::current(), None).await;
    if let Ok(server) = &server {
        // On a busy machine the database is opened only after the start.
        server.ready().await;
    }
    Ok(server)
}

/// The ids of a collection, each with its version.
async fn ids(server: &Handle, collection: &str) -> Result<Vec<String>> {
    let url = format!("http://{}/api/v1/{collection}", server.addresses().http);
    let answer = Client::builder().no_proxy().build()?.get(url).send().await?;
    let page: Value = serde_json::from_slice(&answer.error_for_status()?.bytes().await?)?;
    let items = page["items"].as_array().context("items")?;
    Ok(items.iter().map(|item| format!("{} {}", item["id"], item["version"])).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn every_start_makes_what_the_files_say() -> Result<()> {
    let database = Database::create("provision").await?;
    let folder = tempfile::TempDir::new()?;
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text);
    fs::create_dir(folder.path().join("below"))?;
    write("gates.yaml", "type: QualityGate\nspec: {id: release}\n")?;
    write(
        "below/sets.yml",
        "type: VariableSet\nspec: {id: staging, values: [{key: A, value: b}]}\n",
    )?;
    write(".hidden.yaml", "not a document")?;
    write("notes.txt", "not a document")?;

    let server = start(&database, folder.path()).await??;
    assert_eq!(ids(&server, "quality-gates").await?, ["\"release\" 1"]);
    assert_eq!(ids(&server, "variable-sets").await?, ["\"staging\" 1"]);
    assert!(server.shutdown().await.is_delivered());

    fs::remove_file(folder.path().join("below/sets.yml"))?;
    write(
        "gates.yaml",
        "type: QualityGate\nspec: {id: release, requiredGates: []}\n---\ntype: QualityGate\nspec: {id: nightly}\n",
    )?;
    let server = start(&database, folder.path()).await??;
    assert_eq!(ids(&server, "quality-gates").await?, ["\"nightly\" 1", "\"release\" 2"]);
    assert_eq!(ids(&server, "variable-sets").await?, [""; 0], "no file names it any more");
    assert!(server.shutdown().await.is_delivered());

    let server = start(&database, &folder.path().join("gates.yaml")).await??;
    assert_eq!(
        ids(&server, "quality-gates").await?,
        ["\"nightly\" 1", "\"release\" 2"],
        "a file will do"
    );
    assert!(server.shutdown().await.is_delivered());
    database.remove().await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_the_files_ends_the_start() -> Result<()> {
    let database = Database::create("provision_wrong").await?;
    let cases = [
        ("a.yaml", "type: QualityGate\nspec: {requiredGate: []}\n", "unknown key `requiredGate`"),
        ("b.yaml", "type: QualityGate\nspec: {id: twice}\n", "both hold the quality gate `twice`"),
    ];
    for (name, text, words) in cases {
        let folder = tempfile::TempDir::new()?;
        fs::write(folder.path().join(name), text)?;
        fs::write(folder.path().join("twice.yaml"), "type: QualityGate\nspec: {id: twice}\n")?;
        let error = start(&database, folder.path()).await?.err().context("refused")?.to_string();
        assert!(error.contains(words) && error.contains(name), "{error}");
    }
    let error =
        start(&database, Path::new("/nowhere")).await?.err().context("refused")?.to_string();
    assert!(error.contains("`/nowhere`"), "{error}");
    database.remove().await
}
