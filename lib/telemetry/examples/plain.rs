//! A program with neither tokio nor `tracing`: a tracer of the provider, ten spans, and the report.
//!
//! `cargo run --example plain -p qualitytrace-telemetry -- http://localhost:4317`; a second argument `http` selects
//! OTLP over HTTP instead of gRPC.

use std::{
    env,
    error::Error,
    io::{self, Write},
    time::Duration,
};

use telemetry::{
    Host, Roles, Telemetry,
    config::{self, Defaults, Environment},
    opentelemetry::{
        KeyValue,
        trace::{Span, Tracer, TracerProvider},
    },
    plan::Plan,
    source::{Colour, Text, draw},
};

fn main() -> Result<(), Box<dyn Error>> {
    let endpoint = env::args().nth(1).ok_or("the first argument is an OTLP endpoint")?;
    let transport = env::args().nth(2).unwrap_or_else(|| "grpc".to_owned());
    let plan = plan(&format!(
        "tracer: {{otel: {{type: open-telemetry, transport: {transport}, endpoint: {endpoint:?}}}}}"
    ))?;
    // A tracer always carries all spans of the program; roles are for `telemetry.exporters`.
    let telemetry = Telemetry::start(&plan, &Roles::default(), Host::new("plain/0.1"))?;

    let tracer = telemetry.tracer_provider().tracer("plain");
    for number in 0..10 {
        let mut span = tracer.start("step");
        span.set_attribute(KeyValue::new("step.number", number));
        span.end();
    }

    let report = telemetry.shutdown(Duration::from_secs(5));
    let mut out = io::stdout();
    for counts in &report.exporters {
        let (name, accepted, delivered) = (&counts.exporter, counts.accepted, counts.delivered);
        writeln!(out, "{name}: {delivered} of {accepted} delivered")?;
    }
    if report.is_delivered() { Ok(()) } else { Err("not everything was delivered".into()) }
}

/// Parses a configuration text into a plan. Returns all diagnostics of the text, rendered, if it is invalid.
fn plan(yaml: &str) -> Result<Plan, String> {
    let text = Text::new("configuration.yaml", yaml);
    let defaults = Defaults {
        service_name: "plain".to_owned(),
        directory: None,
        own_directory: None,
        // `std::env::vars().collect()` here applies OpenTelemetry's own variables.
        environment: Environment::default(),
    };
    config::plan(&text, &defaults).map_err(|mistakes| draw(&mistakes, Colour::Never))
}
