//! The telemetry of one service: a resource and a pipeline of its own, even if all five share a process.
//!
//! Spans may be lost here: the shop has to respond to requests, and its old spans have no reader. So the buffer is small
//! and lossy, and the exporter retries every 100 ms, since a receiver may come and go.

use std::{sync::Arc, time::Duration};

use model::World;
use telemetry::{
    Host, Roles, Telemetry,
    config::{self, Defaults, Environment},
    opentelemetry::KeyValue,
    source::{Colour, Text, draw},
};

use crate::{StartError, fault::Fault, service::Service};

/// The default OTLP endpoint, if neither a flag nor the environment sets one.
pub const OTLP: &str = "http://127.0.0.1:4317";
/// How long a batch waits; with [`Fault::LateSpans`] the second applies, for two of the services.
const THROTTLE: Duration = Duration::from_millis(5);
const THROTTLE_LATE: Duration = Duration::from_millis(800);

/// The destination of a service's spans.
#[derive(Clone, Debug, Default)]
pub(crate) struct Destination {
    /// An OTLP endpoint, by gRPC. The default is the endpoint of OpenTelemetry's environment variables, then [`OTLP`].
    pub(crate) otlp: Option<String>,
    pub(crate) environment: Environment,
}

/// Starts the telemetry of a service. A receiver is not required.
pub(crate) fn start(
    service: Service,
    destination: &Destination,
    faults: &[Fault],
    world: World,
) -> Result<Arc<Telemetry>, StartError> {
    let text = Text::new("demo.yaml", configuration(service, destination, faults));
    let defaults = Defaults {
        service_name: service.as_str().to_owned(),
        directory: None,
        own_directory: None,
        environment: destination.environment.clone(),
    };
    let mut plan = config::plan(&text, &defaults)
        .map_err(|mistakes| StartError::Telemetry(draw(&mistakes, Colour::Never)))?;
    for exporter in &mut plan.exporters {
        // Overrides `OTEL_SERVICE_NAME` too: all five services inherit one environment.
        service.as_str().clone_into(&mut exporter.service_name);
    }
    let mut host = Host::new(concat!("qualitytrace-demo/", env!("CARGO_PKG_VERSION")));
    host.resource = resource(world);
    let telemetry = Telemetry::start(&plan, &Roles::default(), host);
    Ok(Arc::new(telemetry.map_err(|error| StartError::Telemetry(error.to_string()))?))
}

/// Returns the configuration of the pipeline, as YAML, in the format that every program uses.
fn configuration(service: Service, destination: &Destination, faults: &[Fault]) -> String {
    let late = faults.contains(&Fault::LateSpans)
        && matches!(service, Service::Payments | Service::Shipping);
    let throttle = if late { THROTTLE_LATE } else { THROTTLE };
    let told = ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"]
        .iter()
        .any(|name| destination.environment.get(name).is_some());
    let endpoint = match &destination.otlp {
        None if told => String::new(),
        asked => {
            let endpoint = asked.as_deref().unwrap_or(OTLP);
            // A JSON string is a valid YAML string too, for every input.
            let endpoint = serde_json::Value::from(endpoint);
            format!("    transport: grpc\n    endpoint: {endpoint}\n")
        }
    };
    format!(
        "tracer:
  shop:
    type: open-telemetry
{endpoint}    throttle: {throttle}ms
    lossy: true
    buffer: {{memory: 1MiB}}
    compression: none
    retry: {{initial: 20ms, max: 100ms}}
",
        throttle = throttle.as_millis()
    )
}

/// Returns the resource attributes beside `service.name`. All services run on one machine and share its clock, so they
/// have the same `host.name`.
fn resource(world: World) -> Vec<KeyValue> {
    let instance = uuid::Builder::from_random_bytes(world.random()).into_uuid();
    vec![
        KeyValue::new("host.name", "localhost"),
        KeyValue::new("process.pid", i64::from(std::process::id())),
        KeyValue::new("service.instance.id", instance.to_string()),
        KeyValue::new("service.namespace", "shop"),
        KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
        KeyValue::new("telemetry.sdk.language", "rust"),
        KeyValue::new("telemetry.sdk.name", "opentelemetry"),
    ]
}
