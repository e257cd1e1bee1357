//! Input that `run` refuses, with its error messages: nothing is started, and the exit code is 2.

use std::net::TcpListener;

use anyhow::Result;

use crate::stand::{Stand, plain};

#[tokio::test]
async fn combinations_without_sense_are_refused() -> Result<()> {
    let stand = Stand::new()?;
    stand.write("a.yaml", &plain("a", "http://127.0.0.1:1"))?;
    for (typed, words) in [
        ("a.yaml --repeat 3 --retries 2", "cannot be used with"),
        ("a.yaml --drain", "COMMAND"),
        ("a.yaml --ready tcp:127.0.0.1:1", "COMMAND"),
        ("a.yaml --protocol grpc", "COMMAND"),
        ("a.yaml --drain --jobs 2 -- true", "cannot be used with"),
        ("a.yaml --quiet --verbose", "cannot be used with"),
        ("a.yaml --server http://127.0.0.1:1 -- true", "cannot be used with"),
        ("a.yaml --server http://127.0.0.1:1 --vars a.yaml", "cannot be used with"),
        ("a.yaml --server http://127.0.0.1:1 --watch", "cannot be used with"),
        ("a.yaml --project shop", "`--project` is for a run on a server"),
        ("a.yaml --token x", "`--token` is for a run on a server"),
        ("a.yaml --context x -- true", "cannot be used with"),
        ("a.yaml --jobs 0", "1..=256"),
        ("a.yaml --repeat 0", "--repeat"),
        ("a.yaml --shard 3/2", "I from 1 to N"),
        ("a.yaml --shard 0/2", "I from 1 to N"),
        ("a.yaml --timeout soon", "expected a time"),
        ("a.yaml --ready somewhere -- true", "expected an `http://` URL"),
        ("a.yaml --ready log:( -- true", "unclosed group"),
        ("a.yaml --otlp localhost:4317", "such as `127.0.0.1:4317`"),
        ("a.yaml --secret TOKEN=x", "`--set TOKEN=…`"),
        ("a.yaml --report junitt", "formats are"),
        ("nowhere.yaml", "cannot read `nowhere.yaml`"),
        ("", "there is no folder `qualitytrace`"),
        ("a.yaml -- ./no-such-program", "cannot start `./no-such-program`"),
    ] {
        let arguments: Vec<_> = ["run"].into_iter().chain(typed.split_whitespace()).collect();
        let finished = stand.run(&arguments).await?;
        assert_eq!(finished.code, Some(2), "{typed}: {finished:?}");
        assert_eq!(finished.out, "", "{typed}: nothing that looks like a result");
        assert!(finished.err.contains(words), "{typed}: `{words}` is not in:\n{}", finished.err);
    }
    Ok(())
}

#[tokio::test]
async fn a_command_that_cannot_be_started_is_told_once() -> Result<()> {
    let stand = Stand::new()?;
    for name in ["a", "b", "c"] {
        stand.write(&format!("{name}.yaml"), &plain(name, "http://127.0.0.1:1"))?;
    }
    let finished = stand.run(&["run", ".", "--", "./no-such-program"]).await?;
    assert_eq!(finished.code, Some(2), "{finished:?}");
    for (words, count) in [("cannot start", 1), (": running", 0), ("not run: 2 tests", 1)] {
        assert_eq!(finished.err.matches(words).count(), count, "{words}: {}", finished.err);
    }
    let empty = stand.run(&["run", "a.yaml", "--shard", "2/2", "--", "./no-such-program"]).await?;
    assert_eq!(empty.code, Some(0), "nothing is started for nothing: {empty:?}");
    Ok(())
}

#[tokio::test]
async fn a_taken_port_is_refused_with_what_to_do() -> Result<()> {
    let stand = Stand::new()?;
    stand.write("a.yaml", &plain("a", "http://127.0.0.1:1"))?;
    let taken = TcpListener::bind("127.0.0.1:0")?;
    let address = taken.local_addr()?.to_string();
    let finished = stand.run(&["run", "a.yaml", "--otlp", &address]).await?;
    assert_eq!(finished.code, Some(2), "{finished:?}");
    for words in [&format!("`{address}` is taken")[..], "Collector", "--otlp", "-- COMMAND"] {
        assert!(finished.err.contains(words), "`{words}` is not in:\n{}", finished.err);
    }
    Ok(())
}
