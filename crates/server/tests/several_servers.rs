//! Two servers with clocks that differ by an hour, on one real Postgres: what they agree on uses the database's clock.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use anyhow::{Context, Result};
use bench::parts::{Api, Database, Target};
use model::{Timestamp, World};
use serde_json::json;
use server::{
    Handle, Telemetry,
    config::{self, Config, Environment},
};
use source::Text;
use tempfile::TempDir;
use tokio::{runtime, time::sleep};

const HOUR: u64 = 60 * 60 * 1_000_000_000;
/// The timeout for the end of a run.
const ENDED_MAX: Duration = Duration::from_secs(20);

fn now() -> Timestamp {
    #[expect(clippy::disallowed_methods, reason = "a test is a main of its own")]
    let now =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_nanos(u64::try_from(now.as_nanos()).unwrap_or(u64::MAX))
}

fn ahead() -> Timestamp {
    Timestamp::from_nanos(now().as_nanos() + HOUR)
}

fn behind() -> Timestamp {
    Timestamp::from_nanos(now().as_nanos() - HOUR)
}

fn random() -> [u8; 32] {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).expect("the system has randomness");
    bytes
}

async fn start(database: &Database, data: &TempDir, world: World) -> Result<Handle> {
    let more =
        format!("server: {{dataDirectory: '{}'}}\nworkers: {{poll: 60s}}", data.path().display());
    let text = Text::new("config.yaml", format!("{}\n{more}\n", database.section()?));
    let mut config: Config =
        config::read(&text, &Environment::default()).config.context("no mistakes")?;
    let any: SocketAddr = "127.0.0.1:0".parse()?;
    config.listen = config::Listen { http: any, otlp_grpc: any, otlp_http: any, probes: None };
    let telemetry = Arc::new(Telemetry::start(&config, server::host())?);
    Ok(server::start(config, telemetry, world, runtime::Handle::current(), None).await?)
}

/// Returns the verdict of a run on this server, and how many other servers it reports.
async fn run(on: &Handle, url: &str) -> Result<(String, usize)> {
    let api = Api::new(&format!("http://{}", on.addresses().http))?;
    let document = format!(
        "type: Test
spec:
  id: cart
  name: the cart
  trigger: {{type: http, httpRequest: {{method: GET, url: '{url}/cart'}}}}
  settle: {{timeout: 5s, flush: 300ms}}
  trace: ['count(span[name=\"delete customer\"]) = 0']
"
    );
    api.apply(&document).await?;
    let id = api.start("cart", &json!({})).await?;
    let run = api.ended(&id, ENDED_MAX).await?;
    let unsettled = run["outcome"]["settlement"]["unsettled"].as_array().context("it settled")?;
    let others = unsettled.iter().find_map(|it| it["otherServers"].as_array()).map_or(0, Vec::len);
    Ok((run["verdict"].as_str().unwrap_or_default().to_owned(), others))
}

#[tokio::test(flavor = "multi_thread")]
async fn clocks_that_differ_change_nothing() -> Result<()> {
    let in_time = "select count(*) from servers
                   where heartbeat_at between now() - interval '30 s' and now() + interval '1 s'
                     and counts_until between now() and now() + interval '11 s'";
    for (here, there) in [(now as fn() -> _, ahead as fn() -> _), (now, behind), (behind, ahead)] {
        let database = Database::create("clocks").await?;
        let (data, data_there) = (TempDir::new()?, TempDir::new()?);
        let one = start(&database, &data, World::new(here, random)).await?;
        let target = Target::start(Some(one.addresses().otlp_grpc.port())).await?;
        assert_eq!(run(&one, &target.url).await?, ("passed".to_owned(), 0), "alone");
        let other = start(&database, &data_there, World::new(there, random)).await?;
        assert_eq!(database.count(in_time).await?, 2, "by the database's clock");
        assert_eq!(run(&one, &target.url).await?, ("inconclusive".to_owned(), 1));
        assert_eq!(run(&other, &target.url).await?, ("inconclusive".to_owned(), 1));
        drop(other.shutdown().await);
        assert_eq!(database.count(in_time).await?, 1, "its end as well");
        // A server that has ended counts for a second, since it may have received spans until then.
        sleep(Duration::from_millis(1500)).await;
        assert_eq!(run(&one, &target.url).await?, ("passed".to_owned(), 0), "alone again");
        drop(one.shutdown().await);
        database.remove().await?;
    }
    Ok(())
}
