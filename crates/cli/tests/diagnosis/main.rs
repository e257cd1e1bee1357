//! Missing spans never count as a pass: each cause of missing telemetry and its diagnosis, with the built binary and a system.
//!
//! A scenario has a golden file: the exit code, the verdict and every diagnosis. Ids, ports and times differ between runs
//! and are masked. All diagnoses of a cause, without systems, are in `crates/runner/tests/diagnosis`.

mod scenario;
mod system;

use std::{path::Path, sync::Mutex, thread};

use anyhow::{Result, anyhow};
use golden::Golden;

use scenario::{Scenario, demo, scenario};
use system::Fault;

/// The concurrency of scenarios: they wait most of the time.
const AT_A_TIME: usize = 8;

#[expect(clippy::disallowed_methods, reason = "this is how a test tells its child that it is one")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// No test: the program that the scenarios start as the system under test.
#[test]
fn system_under_test() -> Result<()> {
    let (Some(fault), Some(port)) = (variable("SHOP_FAULT"), variable("SHOP_PORT")) else {
        return Ok(());
    };
    let fault = Fault::parse(&fault).ok_or_else(|| anyhow!("no fault is called `{fault}`"))?;
    system::serve(
        fault,
        port.parse()?,
        &variable("OTEL_EXPORTER_OTLP_ENDPOINT").unwrap_or_default(),
    )
}

#[test]
fn absence_never_passes() -> Result<()> {
    let scenarios = Mutex::new(scenarios());
    let ended = Mutex::new(Vec::new());
    // A closure of its own, since otherwise the lock would be held while the scenario runs.
    let next = || scenarios.lock().expect("no panic").pop();
    let work = || {
        while let Some(scenario) = next() {
            let shown = scenario.play();
            ended.lock().expect("no panic").push((scenario, shown));
        }
    };
    thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(work);
        }
    });
    let mut golden = Golden::default();
    let mut count = 0;
    for (scenario, shown) in ended.into_inner()? {
        let shown = shown.map_err(|error| anyhow!("{}: {error:#}", scenario.name))?;
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/diagnosis/golden");
        golden.compare(&file.join(scenario.name).with_extension("txt"), &shown);
        count += 1;
    }
    golden.finish(count);
    Ok(())
}

fn scenarios() -> Vec<Scenario> {
    vec![
        // No telemetry at all: nothing connected.
        scenario("uninstrumented", Fault::Uninstrumented),
        scenario("not-started-by-us", Fault::None).not_started(),
        scenario("sent-elsewhere", Fault::None)
            .with("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://127.0.0.1:9/v1/traces"),
        scenario("sampler-off", Fault::None).with("OTEL_TRACES_SAMPLER=always_off"),
        scenario("sampler-off-in-code", Fault::SampledAway),
        scenario("configured-by-file", Fault::Uninstrumented).with("OTEL_CONFIG_FILE=otel.yaml"),
        scenario("variables-not-passed-on", Fault::Uninstrumented).with("-i"),
        // Connected, and rejected.
        scenario("wrong-path", Fault::WrongPath),
        scenario("zipkin", Fault::Zipkin),
        scenario("wrong-content-type", Fault::WrongType),
        scenario("tls-to-plain", Fault::Tls),
        scenario("too-large", Fault::TooLarge),
        scenario("metrics-only", Fault::MetricsOnly),
        // Other traces arrived, but not ours.
        scenario("context-ignored", Fault::ContextIgnored),
        // Parts of the trace arrived.
        scenario("set-up-in-code", Fault::SetUpInCode),
        scenario("context-not-sent", Fault::ContextNotSent),
        scenario("context-not-kept", Fault::ContextNotKept)
            .settle("expect: ['span[name=\"audit\"]']"),
        demo("context-not-sent-in-the-demo", "lost-context")
            .saying("trace: ['count(span[service=\"payments\"]) >= 1']"),
        scenario("context-not-sent-though-whole", Fault::ContextNotSent)
            .whole()
            .settle("absent: [stock]")
            .saying("trace: ['count(span[name=\"GET /stock\"]) = 1']"),
        scenario("linked", Fault::Linked),
        scenario("other-side-uninstrumented", Fault::StockUninstrumented),
        scenario("caller-absent", Fault::Mesh),
        scenario("span-not-ended", Fault::Unended),
        scenario("clock-behind", Fault::ClockBehind).settle("expect: [stock]"),
        scenario("clock-of-the-called-behind", Fault::StockClockBehind)
            .whole()
            .saying("trace: ['span[name=\"audit\"] before span[name=\"GET /stock\"]']"),
        scenario("dropped-by-limits", Fault::None)
            .with("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT=1")
            .settle("expect: [stock]"),
        // Nothing is missing, or another part of the report states the reason.
        scenario("no-answer", Fault::NoAnswer),
        scenario("failed", Fault::None).whole().saying("trace: ['count(span[]) = 1']"),
        scenario("passed", Fault::None).whole(),
    ]
}
