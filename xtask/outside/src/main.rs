//! A program outside this workspace, with the features that it selected: no `tracing`, and nothing from this repository's own
//! dependency table. Its only purpose is to compile.

use std::{
    error::Error,
    io::{self, Write},
    time::Duration,
};

use source::{Colour, Diagnostics, Fields, Text};
use telemetry::{
    Host, Roles, Telemetry, config,
    opentelemetry::{
        KeyValue,
        metrics::MeterProvider,
        trace::{Span, Tracer, TracerProvider},
    },
    plan::Plan,
};

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("the first argument is a configuration, YAML")?;
    let plan = plan(&path)?;
    write!(io::stdout(), "{}", config::describe(&plan))?;

    // A program with exporters assigns their roles; a tracer needs none.
    let own = plan.exporters.first().map(|exporter| exporter.name.clone());
    let mut host = Host::new("outside/0.0");
    host.resource.push(KeyValue::new("deployment.environment.name", "test"));
    let telemetry = Telemetry::start(&plan, &Roles { own, others: Vec::new() }, host)?;
    let meter = telemetry.meter_provider().meter("outside");
    meter.u64_counter("outside.steps").build().add(1, &[]);
    telemetry.tracer_provider().tracer("outside").start("step").end();
    write!(io::stdout(), "{}", telemetry.prometheus())?;

    let report = telemetry.shutdown(Duration::from_secs(5));
    writeln!(io::stdout(), "{report:#?}")?;
    if report.is_delivered() { Ok(()) } else { Err("not everything was delivered".into()) }
}

fn plan(path: &str) -> Result<Plan, Box<dyn Error>> {
    let text = Text::new(path, std::fs::read_to_string(path)?);
    let (documents, mistakes) = source::read_yaml(&text);
    let defaults = config::Defaults {
        service_name: "outside".to_owned(),
        directory: None,
        own_directory: None,
        environment: std::env::vars().collect(),
    };
    let overlay = config::Overlay {
        prefix: "OUTSIDE",
        keys: &[config::KEYS],
        environment: &defaults.environment,
        taken: &[],
    };
    let overlaid = overlay.apply(&text, documents.into_iter().next());
    let found: Diagnostics = overlaid.found(mistakes);
    let plan = Fields::of(&overlaid.root, "the configuration", &found).map(|mut root| {
        let plan = config::read(&mut root, &defaults, &found);
        root.finish();
        plan
    });
    let is_right = !found.has_errors();
    Ok(plan.filter(|_| is_right).ok_or_else(|| source::draw(&found.into_vec(), Colour::Never))?)
}
