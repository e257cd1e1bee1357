//! A service: spans by `tracing`, `/metrics` for Prometheus, 503 while a buffer is nearly full, and a report at
//! shutdown.
//!
//! `cargo run --example axum -p qualitytrace-telemetry -- http://localhost:4317 grpc`; then `GET /work`, and Ctrl-C.

use std::{env, error::Error, io, io::Write, sync::Arc, time::Duration};

use axum::{
    Router,
    extract::{Request, State},
    http::StatusCode,
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::get,
};
use telemetry::{
    Host, Roles, Telemetry,
    config::{self, Defaults, Environment},
    plan::Plan,
    source::{Colour, Text, draw},
};
use tracing_subscriber::{layer::SubscriberExt, util::SubscriberInitExt};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let endpoint = env::args().nth(1).ok_or("the first argument is an OTLP endpoint")?;
    let transport = env::args().nth(2).unwrap_or_else(|| "grpc".to_owned());
    // A small buffer, so that `/work` is refused soon if no collector accepts the spans; the default is 32 MiB.
    let plan = plan(&format!(
        "tracer: {{otel: {{type: open-telemetry, transport: {transport}, endpoint: {endpoint:?}, buffer: {{memory: 1MiB}}}}}}"
    ))?;
    let telemetry = Arc::new(Telemetry::start(&plan, &Roles::default(), Host::new("shop/0.1"))?);
    tracing_subscriber::registry().with(telemetry.tracing_layer()).init();
    let router = Router::new()
        .route("/work", get(work))
        .layer(middleware::from_fn_with_state(Arc::clone(&telemetry), refuse_under_pressure))
        .route("/metrics", get(async |State(it): State<Arc<Telemetry>>| it.prometheus()))
        .with_state(Arc::clone(&telemetry));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    writeln!(io::stdout(), "listening on {}", listener.local_addr()?)?;
    let interrupted = async { drop(tokio::signal::ctrl_c().await) };
    axum::serve(listener, router).with_graceful_shutdown(interrupted).await?;

    let report = telemetry.shutdown(Duration::from_secs(5));
    for counts in &report.exporters {
        let (name, accepted, delivered) = (&counts.exporter, counts.accepted, counts.delivered);
        writeln!(io::stdout(), "{name}: {delivered} of {accepted} delivered")?;
    }
    if report.is_delivered() { Ok(()) } else { Err("not everything was delivered".into()) }
}

#[tracing::instrument]
async fn work() -> &'static str {
    "done\n"
}

/// Reserves the last fifth of a buffer for requests in progress: a full buffer blocks every thread that ends a span.
async fn refuse_under_pressure(state: State<Arc<Telemetry>>, call: Request, to: Next) -> Response {
    match state.pressure() < 0.8 {
        true => to.run(call).await,
        false => (StatusCode::SERVICE_UNAVAILABLE, [("retry-after", "1")]).into_response(),
    }
}

fn plan(yaml: &str) -> Result<Plan, Box<dyn Error>> {
    let text = Text::new("configuration.yaml", yaml);
    let defaults = Defaults {
        service_name: "shop".to_owned(),
        directory: None,
        own_directory: None,
        // `std::env::vars().collect()` here applies OpenTelemetry's own variables.
        environment: Environment::default(),
    };
    Ok(config::plan(&text, &defaults).map_err(|mistakes| draw(&mistakes, Colour::Never))?)
}
