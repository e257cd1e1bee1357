//! `tracing` in a single-threaded runtime, which shuts its telemetry down from within: the senders have their own
//! threads, so all ten spans arrive although this runtime is blocked meanwhile.
//!
//! `cargo run --example current_thread -p qualitytrace-telemetry -- http://localhost:4317`; a second argument `http`
//! selects OTLP over HTTP instead of gRPC.

use std::{
    env,
    error::Error,
    io::{self, Write},
    time::Duration,
};

use telemetry::{
    Host, Roles, Telemetry,
    config::{self, Defaults, Environment},
    plan::Plan,
    source::{Colour, Text, draw},
};
use tracing_subscriber::{layer::SubscriberExt, util::SubscriberInitExt};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let endpoint = env::args().nth(1).ok_or("the first argument is an OTLP endpoint")?;
    let transport = env::args().nth(2).unwrap_or_else(|| "grpc".to_owned());
    let plan = plan(&format!(
        "[tracer.otel]\ntype = 'open-telemetry'\ntransport = '{transport}'\nendpoint = '{endpoint}'\n"
    ))?;
    let telemetry = Telemetry::start(&plan, &Roles::default(), Host::new("current-thread/0.1"))?;
    tracing_subscriber::registry().with(telemetry.tracing_layer()).init();

    for number in 0..10 {
        step(number).await;
    }

    // Blocks the only thread of the runtime.
    let report = telemetry.shutdown(Duration::from_secs(5));
    let mut out = io::stdout();
    for counts in &report.exporters {
        let (name, accepted, delivered) = (&counts.exporter, counts.accepted, counts.delivered);
        writeln!(out, "{name}: {delivered} of {accepted} delivered")?;
    }
    if report.is_delivered() { Ok(()) } else { Err("not everything was delivered".into()) }
}

#[tracing::instrument]
async fn step(number: u32) {
    tokio::task::yield_now().await;
}

/// Parses a configuration text into a plan. Returns all diagnostics of the text, rendered, if it is invalid.
fn plan(toml: &str) -> Result<Plan, String> {
    let text = Text::new("configuration.toml", toml);
    let defaults = Defaults {
        service_name: "current-thread".to_owned(),
        directory: None,
        own_directory: None,
        // `std::env::vars().collect()` here applies OpenTelemetry's own variables.
        environment: Environment::default(),
    };
    config::plan(&text, &defaults).map_err(|mistakes| draw(&mistakes, Colour::Never))
}
