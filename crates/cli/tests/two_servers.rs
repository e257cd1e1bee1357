//! Two servers on one database: one is suspended past its lease, the other ends its run, and the resumed one does nothing.

use std::{path::Path, time::Duration};

use anyhow::Result;
use bench::parts::{Api, Database, Gate, Hold, Server, Target};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

const BINARY: &str = env!("CARGO_BIN_EXE_qualitytrace");
/// A fragment of the statement that stores an attempt.
const ATTEMPT: &str = "attempted_epoch = epoch";
/// Selects everything about runs in the database.
const EVERYTHING: &str = "select concat((select string_agg(runs::text, '|') from runs),
                                        (select string_agg(open_runs::text, '|') from open_runs),
                                        (select string_agg(events::text, '|' order by n) from events),
                                        (select string_agg(traces::text, '|') from traces))";

/// The result of a run with a suspended owner.
struct Ended {
    run: Value,
    /// The number of requests that the target received.
    fired: u64,
}

async fn stopped(hold: Hold) -> Result<Ended> {
    let database = Database::create("stopped").await?;
    let gate = Gate::start(&database, ATTEMPT, hold).await?;
    let target = Target::start(None).await?;
    let by_gate = database.section_at(gate.port)?;
    let first = Server::start_with(Path::new(BINARY), &by_gate, "127.0.0.1:0").await?;
    let api = Api::new(&first.api)?;
    api.apply(&document(&target.url)).await?;
    let id = api.start("cart", &json!({})).await?;
    timeout(Duration::from_secs(20), gate.held()).await?;
    first.signal("-STOP").await?;
    assert_eq!(target.requests(), 0, "nothing was sent yet");

    let section = database.section()?;
    let second = Server::start_with(Path::new(BINARY), &section, "127.0.0.1:0").await?;
    let run = Api::new(&second.api)?.ended(&id, Duration::from_secs(40)).await?;
    assert_eq!(run["state"], "ended", "the other goes on: {run:#}");
    let (before, fired) = (database.text(EVERYTHING).await?, target.requests());

    first.signal("-CONT").await?;
    gate.release();
    // That nothing happens takes time: longer than it takes to connect, to send and to write, and than the interval of
    // lease renewals.
    sleep(Duration::from_secs(5)).await;
    assert_eq!(target.requests(), fired, "the woken one sends nothing");
    assert_eq!(database.text(EVERYTHING).await?, before, "and writes nothing");
    let again = Api::new(&first.api)?.run(&id).await?;
    assert_eq!(again["verdict"], run["verdict"], "it lives, and tells what the other wrote");
    assert_eq!(first.terminate().await?, Some(0));
    assert_eq!(second.terminate().await?, Some(0));
    database.remove().await?;
    Ok(Ended { run, fired })
}

fn document(url: &str) -> String {
    format!(
        "type: Test
spec:
  id: cart
  name: the cart
  skipTraceCollection: true
  trigger: {{type: http, httpRequest: {{method: GET, url: '{url}/cart'}}}}
  specs:
    - selector: span[name=\"Qualitytrace trigger\"]
      assertions: ['attr:tracetest.response.status = 200']
"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_that_is_stopped_before_the_attempts_record() -> Result<()> {
    let Ended { run, fired } = stopped(Hold::Statement).await?;
    assert_eq!((fired, &run["verdict"]), (1, &json!("passed")), "the other fires: {run:#}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_that_is_stopped_between_record_and_first_byte() -> Result<()> {
    let Ended { run, fired } = stopped(Hold::Answer).await?;
    assert_eq!((fired, &run["verdict"]), (0, &json!("inconclusive")), "nobody fires: {run:#}");
    let unknown = &run["outcome"]["answer"]["noAnswer"];
    assert_eq!(unknown["kind"], "unknown", "{run:#}");
    assert!(unknown["message"].to_string().contains("outcome unknown"), "{run:#}");
    Ok(())
}
