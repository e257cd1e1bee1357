//! Early ends of a run: the command crashes, a user presses Ctrl-C, sends SIGTERM or closes the terminal.

use std::{process::Stdio, time::Duration};

use anyhow::Result;
use bench::parts::free_port;
use tokio::{process::Command, time::Instant};

use crate::stand::{
    Answer, Answers, BINARY, Stand, finished, is_alive, names, outcomes, plain, signal, traced,
};

#[tokio::test]
async fn a_command_that_ends_at_once_leaves_every_test_open() -> Result<()> {
    let stand = Stand::new()?;
    for name in ["a", "b"] {
        stand.write(&format!("t/{name}.yaml"), &plain(name, "http://127.0.0.1:1/"))?;
    }
    let script = "echo cannot bind >&2; exit 7";
    let run = ["run", "t", "--report", "json", "--", "sh", "-c", script];
    let finished = stand.run(&run).await?;
    assert_eq!(finished.code, Some(3), "{finished:?}");
    let outcomes = outcomes(&finished)?;
    assert_eq!(outcomes.len(), 2);
    for outcome in outcomes {
        let reason = outcome["reasons"][0].to_string();
        assert!(reason.contains("exit status: 7; it wrote: cannot bind"), "{reason}");
    }
    assert!(finished.err.contains("  | cannot bind"), "{}", finished.err);
    Ok(())
}

#[tokio::test]
async fn a_command_that_ends_under_a_test_ends_its_waiting() -> Result<()> {
    let answers = Answers::start(|_, _| Answer::status(200)).await?;
    let stand = Stand::new()?;
    stand.write("a.yaml", &traced("silent", &answers.url, ""))?;
    let script = "echo ready; sleep 1; echo out of memory; exit 9";
    let began = Instant::now();
    let run =
        ["run", "a.yaml", "--ready", "log:ready", "--report", "json", "--", "sh", "-c", script];
    let finished = stand.run(&run).await?;
    assert!(began.elapsed() < Duration::from_secs(15), "not the 30 s of its settling");
    assert_eq!(finished.code, Some(3), "{finished:?}");
    let reasons = outcomes(&finished)?[0]["reasons"].to_string();
    assert!(reasons.contains("exit status: 9") && reasons.contains("out of memory"), "{reasons}");
    Ok(())
}

#[tokio::test]
async fn signals_stop_everything_and_keep_what_ended() -> Result<()> {
    for (name, code) in [("-INT", 130), ("-TERM", 143), ("-HUP", 143), ("-QUIT", 143)] {
        let answers = Answers::start(|path, _| {
            let after = if path == "/slow" { Duration::from_secs(60) } else { Duration::ZERO };
            Answer { after, ..Answer::status(200) }
        })
        .await?;
        let stand = Stand::new()?;
        stand.write("t/a.yaml", &plain("quick", &format!("{}/quick", answers.url)))?;
        stand.write("t/b.yaml", &plain("slow", &format!("{}/slow", answers.url)))?;
        let script = "sleep 300 & echo $! > child; echo $$ > leader; echo ready; wait";
        let run = ["run", "t", "--jobs", "1", "--ready", "log:ready", "--report", "json=out.json"];
        // The parent of these tests may ignore SIGHUP, which would be inherited.
        let mut command = Command::new("env");
        command.args(["--default-signal=HUP", BINARY]).args(run).args(["--", "sh", "-c", script]);
        command.current_dir(stand.folder.path()).kill_on_drop(true).stdin(Stdio::null());
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        answers.wait_for("/slow").await?;
        let began = Instant::now();
        signal(&child, name).await?;
        let finished = finished(child).await?;
        assert!(began.elapsed() < Duration::from_secs(10), "{name}: {:?}", began.elapsed());
        assert_eq!(finished.code, Some(code), "{finished:?}");
        assert!(finished.err.contains("not run: 1 test"), "{}", finished.err);
        let report = stand.read("out.json")?;
        assert!(report.contains("\"quick\"") && !report.contains("\"slow\""), "{report}");
        for name in ["leader", "child"] {
            assert!(!is_alive(&stand.line_of(name).await?), "{name} is left");
        }
    }
    Ok(())
}

/// As with `nohup`.
#[tokio::test]
async fn a_hangup_that_is_ignored_stays_ignored() -> Result<()> {
    let slow = |_: &str, _| Answer { after: Duration::from_secs(1), ..Answer::status(200) };
    let answers = Answers::start(slow).await?;
    let stand = Stand::new()?;
    stand.write("a.yaml", &plain("a", &format!("{}/slow", answers.url)))?;
    let script = "trap '' HUP; exec \"$0\" run a.yaml --otlp 127.0.0.1:0";
    let mut command = Command::new("sh");
    command.args(["-c", script, BINARY]).current_dir(stand.folder.path()).kill_on_drop(true);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn()?;
    answers.wait_for("/slow").await?;
    signal(&child, "-HUP").await?;
    let finished = finished(child).await?;
    assert_eq!(finished.code, Some(0), "{finished:?}");
    Ok(())
}

#[tokio::test]
async fn verdicts_that_were_reached_when_a_signal_comes_are_told() -> Result<()> {
    let answers = Answers::start(|path, _| match path {
        // More than a pipe buffers: the writer blocks until the test reads.
        "/0" => Answer { body: "x".repeat(500_000), ..Answer::status(200) },
        "/9" => Answer { after: Duration::from_secs(60), ..Answer::status(200) },
        _ => Answer { after: Duration::from_millis(500), ..Answer::status(200) },
    })
    .await?;
    let stand = Stand::new()?;
    for number in 0..10 {
        let test = plain(&format!("test {number}"), &format!("{}/{number}", answers.url));
        stand.write(&format!("t/{number}.yaml"), &test)?;
    }
    let run = ["run", "t", "--otlp", "127.0.0.1:0", "--jobs", "10", "--report", "json"];
    let child = stand.start(&run)?;
    answers.wait_for("/9").await?;
    // The verdicts cannot be observed while the writer is blocked; the last response is sent after 500 ms.
    tokio::time::sleep(Duration::from_secs(2)).await;
    signal(&child, "-INT").await?;
    // The writer is still blocked when the signal is handled, which cannot be observed either.
    tokio::time::sleep(Duration::from_millis(200)).await;
    let finished = finished(child).await?;
    assert_eq!(finished.code, Some(130), "{}", finished.err);
    let expected: Vec<_> = (0..9).map(|number| format!("test {number}")).collect();
    assert_eq!(names(&finished)?, expected, "{}", finished.err);
    Ok(())
}

#[tokio::test]
async fn a_report_that_cannot_be_written_swallows_no_ctrl_c() -> Result<()> {
    for watch in [&[][..], &["--watch"]] {
        let slow = |_: &str, _| Answer { after: Duration::from_secs(60), ..Answer::status(200) };
        let answers = Answers::start(slow).await?;
        let stand = Stand::new()?;
        stand.write("t/a.yaml", &plain("slow", &format!("{}/slow", answers.url)))?;
        let run = ["run", "t", "--otlp", "127.0.0.1:0", "--report", "junit=nowhere/out.xml"];
        let child = stand.start(&[&run[..], watch].concat())?;
        answers.wait_for("/slow").await?;
        signal(&child, "-INT").await?;
        let finished = finished(child).await?;
        assert_eq!(finished.code, Some(130), "{finished:?}");
        assert!(finished.err.contains("cannot be written"), "{}", finished.err);
    }
    Ok(())
}

#[tokio::test]
async fn a_second_ctrl_c_does_not_wait() -> Result<()> {
    let answers =
        Answers::start(|_, _| Answer { after: Duration::from_secs(60), ..Answer::status(200) })
            .await?;
    let stand = Stand::new()?;
    stand.write("a.yaml", &plain("slow", &format!("{}/slow", answers.url)))?;
    let script =
        "trap 'echo TERM > told' TERM; echo $$ > deaf; echo ready; while :; do sleep 0.1; done";
    let child =
        stand.start(&["run", "a.yaml", "--ready", "log:ready", "--", "sh", "-c", script])?;
    answers.wait_for("/slow").await?;
    let began = Instant::now();
    signal(&child, "-INT").await?;
    assert_eq!(stand.line_of("told").await?, "TERM", "the first one is handled");
    signal(&child, "-INT").await?;
    let finished = finished(child).await?;
    assert!(
        began.elapsed() < Duration::from_secs(4),
        "it does not get its 5 s: {:?}",
        began.elapsed()
    );
    assert_eq!(finished.code, Some(130), "{finished:?}");
    let deaf = stand.line_of("deaf").await?;
    let gone = Instant::now();
    while is_alive(&deaf) {
        assert!(gone.elapsed() < Duration::from_secs(3), "the deaf one is left");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Ok(())
}

#[tokio::test]
async fn ctrl_c_while_the_command_is_not_ready() -> Result<()> {
    let stand = Stand::new()?;
    stand.write("a.yaml", &plain("a", "http://127.0.0.1:1/"))?;
    let script = "echo $$ > leader; exec sleep 300";
    let child =
        stand.start(&["run", "a.yaml", "--ready", "log:never", "--", "sh", "-c", script])?;
    let leader = stand.line_of("leader").await?;
    signal(&child, "-INT").await?;
    let finished = finished(child).await?;
    assert_eq!(finished.code, Some(130), "{finished:?}");
    assert!(!is_alive(&leader));
    Ok(())
}

/// Returns a command that responds to one request with 200 and exports one span of it, then runs the `then` script.
fn one_answer(port: u16, then: &str) -> String {
    format!(
        "import http.server, json, os, signal, sys, threading, time, urllib.request
class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *words): pass
    def do_GET(self):
        trace, parent = self.headers['traceparent'].split('-')[1:3]
        now = time.time_ns()
        span = dict(traceId=trace, spanId='00000000000000b1', parentSpanId=parent, name='GET', kind=2,
                    startTimeUnixNano=str(now), endTimeUnixNano=str(now + 1000))
        pairs = dict(pair.split('=') for pair in os.environ['OTEL_RESOURCE_ATTRIBUTES'].split(','))
        told = [dict(key=key, value=dict(stringValue=value)) for key, value in pairs.items()]
        told.append(dict(key='service.name', value=dict(stringValue='shop')))
        export = dict(resourceSpans=[dict(resource=dict(attributes=told), scopeSpans=[dict(spans=[span])])])
        url = os.environ['OTEL_EXPORTER_OTLP_ENDPOINT'] + '/v1/traces'
        head = {{'content-type': 'application/json'}}
        urllib.request.urlopen(urllib.request.Request(url, json.dumps(export).encode(), head)).read()
        self.send_response(200)
        self.send_header('content-length', '0')
        self.end_headers()
        {then}
http.server.ThreadingHTTPServer(('127.0.0.1', {port}), Handler).serve_forever()
"
    )
}

/// Returns a test that expects no span named `work`: absence decides.
fn absent(url: &str) -> String {
    traced("absent", url, "timeout: 20s").replace("count = 1", "count = 0")
}

#[tokio::test]
async fn nothing_is_concluded_from_the_silence_of_a_dead_command() -> Result<()> {
    let crash = "threading.Timer(0.005, lambda: os._exit(7)).start()";
    let quits = "signal.signal(signal.SIGTERM, lambda *_: os._exit(0))";
    let deaf = "signal.signal(signal.SIGTERM, signal.SIG_IGN)";
    let cases: [(&str, &str, &[&str], i32, &str); 5] = [
        ("", "pass", &[], 0, ""),
        ("", crash, &[], 3, "exit status: 7"),
        (quits, "pass", &["--drain"], 0, ""),
        ("", "pass", &["--drain"], 3, "let it handle SIGTERM"),
        (deaf, "pass", &["--drain"], 3, "did not end within 5 s"),
    ];
    for (first, then, flags, code, words) in cases {
        let port = free_port()?;
        let stand = Stand::new()?;
        let script =
            one_answer(port, then).replace("class Handler", &format!("{first}\nclass Handler"));
        stand.write("shop.py", &script)?;
        stand.write("a.yaml", &absent(&format!("http://127.0.0.1:{port}/")))?;
        let run = [&["run", "a.yaml", "--report", "json"], flags, &["--", "python3", "shop.py"]];
        let finished = stand.run(&run.concat()).await?;
        assert_eq!(finished.code, Some(code), "{first} {then} {flags:?}: {finished:?}");
        let reasons = outcomes(&finished)?[0]["reasons"].to_string();
        assert!(reasons.contains(words), "{first} {then} {flags:?}: {reasons}");
    }
    Ok(())
}

#[tokio::test]
async fn what_is_not_whole_does_not_become_so_by_being_tried_again() -> Result<()> {
    let port = free_port()?;
    let stand = Stand::new()?;
    let script = one_answer(port, "pass");
    stand.write(
        "shop.py",
        &script.replace("parentSpanId=parent", "parentSpanId='00000000000000ee'"),
    )?;
    let test = absent(&format!("http://127.0.0.1:{port}/"));
    stand.write("a.yaml", &test.replace("timeout: 20s", "timeout: 1s, flush: 100ms"))?;
    let run = ["run", "a.yaml", "--retries", "4", "--report", "json", "--", "python3", "shop.py"];
    let finished = stand.run(&run).await?;
    assert_eq!(finished.code, Some(3), "{finished:?}");
    let tries = outcomes(&finished)?[0]["earlier"].as_array().map(Vec::len);
    assert_eq!(tries, Some(4), "{finished:?}");
    Ok(())
}
