//! The cost of decoding a span: OTLP bytes into `model::Trace`, compared with `prost` into its own structs.
//!
//! Each is measured in its own process, in turns, so that they share no memory and have the same machine. To count instructions,
//! which do not depend on other load, run such a process under callgrind: the difference between `decode:trace 3000` and
//! `decode:trace 1000` is 2,000 spans, less the preparation, which is `decode:nothing`.

use std::{fs, hint::black_box};

use anyhow::{Context, Result, bail, ensure};
use model::{Trace, TraceId};
use opentelemetry_proto::tonic::{
    common::v1::{AnyValue, InstrumentationScope, KeyValue, any_value::Value},
    resource::v1::Resource,
    trace::v1::{ResourceSpans, ScopeSpans, Span, Status, TracesData, span::Event},
};
use prost::Message;
use tokio::process::Command;

use crate::{
    layout::resident,
    table::{Goal, Row, median},
};

/// The number of decoded spans.
const SPANS: u64 = 100_000;
/// Spans of one request.
const BATCH: u64 = 100;
/// Repetitions, of which the median counts.
const ROUNDS: usize = 9;
/// The upper bound of the CPU time relative to `prost`.
const CPU_RATIO_MAX: f64 = 0.6;
const RESIDENT_BYTES_MAX: f64 = 700.0;

const SERVICES: [&str; 3] = ["storefront", "checkout", "inventory"];
const METHODS: [&str; 3] = ["POST", "GET", "PUT"];
const ROUTES: [&str; 7] = [
    "/api/orders/{orderId}/items",
    "/api/carts/{cartId}",
    "/api/products/{sku}/stock",
    "/api/customers/{customerId}/addresses",
    "/api/payments",
    "/api/search",
    "/internal/reservations/{id}",
];
const STATUSES: [i64; 5] = [201, 200, 200, 204, 404];

/// Measures both, each in its own process.
pub async fn measure() -> Result<Vec<Row>> {
    let (mut trace_ns, mut prost_ns, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    let mut resident = Vec::new();
    for _ in 0..ROUNDS {
        let trace = alone("decode:trace").await?;
        let prost = alone("decode:prost").await?;
        trace_ns.push(trace.cpu_ns);
        prost_ns.push(prost.cpu_ns);
        ratios.push(trace.cpu_ns / prost.cpu_ns);
        resident.push(trace.resident_bytes);
    }
    let row = |name: &str, value: f64, unit, goal| Row { name: name.to_owned(), value, unit, goal };
    let wire: usize = requests(SPANS).iter().map(Vec::len).sum();
    let cpu_goal = Some(Goal::AtMost(CPU_RATIO_MAX));
    let memory_goal = Some(Goal::AtMost(RESIDENT_BYTES_MAX));
    Ok(vec![
        row("on the wire", wire as f64 / SPANS as f64, "bytes/span", None),
        row("into model::Trace, CPU", median(trace_ns), "ns/span", None),
        row("prost into its structs, CPU", median(prost_ns), "ns/span", None),
        row("model::Trace over prost, CPU", median(ratios), "ratio", cpu_goal),
        row("model::Trace, resident", median(resident), "bytes/span", memory_goal),
    ])
}

/// The cost of a span.
struct DecodeCost {
    cpu_ns: f64,
    resident_bytes: f64,
}

/// Decodes this number of spans, into a trace that is kept or into the structs of `prost` one request after the other, and
/// returns the cost of a span: CPU time in nanoseconds, and bytes by which the process grew.
pub fn decode(kind: &str, spans: &str) -> Result<String> {
    let spans: u64 = spans.parse()?;
    let requests = requests(spans);
    let mut trace = Trace::new(TraceId::from_bytes([7; 16]).context("an id")?);
    let (cpu_before, resident_before) = (cpu_ns()?, resident()?);
    match kind {
        "nothing" => {}
        "trace" => {
            for request in &requests {
                otlp::append(&mut trace, request)?;
            }
            ensure!(trace.len() as u64 == spans, "every span is in the trace");
        }
        "prost" => {
            for request in &requests {
                black_box(TracesData::decode(request.as_slice())?);
            }
        }
        _ => bail!("there is no decoding into `{kind}`"),
    }
    let (cpu, resident) = (cpu_ns()? - cpu_before, resident()? - resident_before);
    black_box(trace);
    Ok(format!("{} {}", cpu / spans as f64, resident / spans as f64))
}

async fn alone(name: &str) -> Result<DecodeCost> {
    let mut command = Command::new(std::env::current_exe()?);
    let output = command.args([name, &SPANS.to_string()]).output().await?;
    ensure!(output.status.success(), "`{name}` failed");
    let output = String::from_utf8(output.stdout)?;
    let (cpu_ns, resident_bytes) = output.trim().split_once(' ').context("two figures")?;
    Ok(DecodeCost { cpu_ns: cpu_ns.parse()?, resident_bytes: resident_bytes.parse()? })
}

/// Returns the CPU time of this process, in nanoseconds.
pub(crate) fn cpu_ns() -> Result<f64> {
    let figures = fs::read_to_string("/proc/self/schedstat")?;
    Ok(figures.split_whitespace().next().context("a figure")?.parse()?)
}

fn requests(spans: u64) -> Vec<Vec<u8>> {
    let starts = (0..spans).step_by(BATCH as usize);
    starts.map(|start| request(start, (start + BATCH).min(spans))).collect()
}

/// Returns an export of a Collector with spans of three services of a shop.
pub(crate) fn request(start: u64, end: u64) -> Vec<u8> {
    let of_service = |(service, name): (u64, &&str)| {
        let resource = Resource {
            attributes: vec![
                text("service.name", name),
                text("service.version", "4.12.1"),
                text("service.instance.id", "6f1e7a52-5b0c-4a35-9a1f-0d7c6a1b22c4"),
                text("deployment.environment.name", "staging"),
                text("host.name", "shop-7d9c5f6b8-x2lqp"),
                text("telemetry.sdk.language", "java"),
            ],
            ..Resource::default()
        };
        let scope = InstrumentationScope {
            name: "io.opentelemetry.http-server".to_owned(),
            version: "2.14.0".to_owned(),
            ..InstrumentationScope::default()
        };
        let schema_url = "https://opentelemetry.io/schemas/1.30.0".to_owned();
        let spans = (start..end).filter(|number| number % 3 == service).map(span).collect();
        let scope_spans =
            vec![ScopeSpans { scope: Some(scope), spans, schema_url: schema_url.clone() }];
        ResourceSpans { resource: Some(resource), scope_spans, schema_url }
    };
    let resource_spans = (0..).zip(&SERVICES).map(of_service).collect();
    TracesData { resource_spans }.encode_to_vec()
}

fn span(number: u64) -> Span {
    let pick = |from: &[&'static str]| from[number as usize % from.len()];
    let (method, route) = (pick(&METHODS), pick(&ROUTES));
    let start = 1_780_000_000_000_000_000 + number * 1_137_211;
    // Every order has a unique id.
    let order = format!("{:016x}", (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    Span {
        trace_id: vec![7; 16],
        span_id: (number + 1).to_be_bytes().to_vec(),
        parent_span_id: if number == 0 { Vec::new() } else { number.to_be_bytes().to_vec() },
        flags: 0x101,
        name: format!("{method} {route}"),
        kind: 2,
        start_time_unix_nano: start,
        end_time_unix_nano: start + 750_000 + number * 7_919,
        attributes: vec![
            text("http.request.method", method),
            text("http.route", route),
            whole("http.response.status_code", STATUSES[number as usize % STATUSES.len()]),
            text("server.address", pick(&SERVICES)),
            whole("server.port", 8080),
            text("order.id", &order),
            attribute("cart.total", Value::DoubleValue(number as f64 * 1.37 + 4.95)),
            attribute("customer.returning", Value::BoolValue(number.is_multiple_of(4))),
        ],
        events: vec![Event {
            time_unix_nano: start + 300_000 + number * 131,
            name: "order.reserved".to_owned(),
            attributes: vec![whole("order.items", number as i64 % 9)],
            ..Event::default()
        }],
        status: Some(Status::default()),
        ..Span::default()
    }
}

fn text(key: &str, value: &str) -> KeyValue {
    attribute(key, Value::StringValue(value.to_owned()))
}

fn whole(key: &str, value: i64) -> KeyValue {
    attribute(key, Value::IntValue(value))
}

fn attribute(key: &str, value: Value) -> KeyValue {
    let value = Some(AnyValue { value: Some(value) });
    KeyValue { key: key.to_owned(), value, ..KeyValue::default() }
}
