//! Synthetic traffic: one trace of a shop under load, the same for the same size.
//!
//! A root starts batches, a batch starts checkouts, and a checkout is a tree of 17 spans over five services on four pods each, up
//! to eight levels deep, with 7 to 10 attributes per span. One checkout in fifty has a timeout.

use anyhow::{Context, Result};
use model::{
    SpanId, Timestamp, Trace, TraceId,
    trace::{
        EventData, Kind, LinkData, ResourceData, ResourceIx, ScopeData, ScopeIx, SpanData, Status,
        StatusCode, Value,
    },
};

use super::chance::Dice;

/// Checkouts of a batch.
const BATCH: usize = 50;
const PODS: usize = 4;
const MILLI: u64 = 1_000_000;
const BEGIN: u64 = 1_794_700_000_000_000_000;

const SERVICES: [&str; 5] = ["gateway", "orders", "stock", "payment", "audit"];
const GATEWAY: usize = 0;
const ORDERS: usize = 1;
const STOCK: usize = 2;
const PAYMENT: usize = 3;
const AUDIT: usize = 4;

/// A span of every checkout: the row of its parent (its own row for the first span, a child of a batch), its service, its
/// name, its kind, its start and end in milliseconds, and its attributes.
struct SpanTemplate(usize, usize, &'static str, Kind, (u64, u64), Holds);

/// The kind of its attributes.
#[derive(Clone, Copy)]
enum Holds {
    /// Method, route and status.
    Http(&'static str, &'static str, i64),
    /// Operation and table.
    Database(&'static str, &'static str),
    Cache,
    Work(&'static str),
    /// The operation.
    Message(&'static str),
}

#[rustfmt::skip]
const CHECKOUT: [SpanTemplate; 17] = [
    SpanTemplate(0, GATEWAY, "POST /checkout", Kind::Server, (0, 180), Holds::Http("POST", "/checkout", 201)),
    SpanTemplate(0, GATEWAY, "POST", Kind::Client, (2, 176), Holds::Http("POST", "/orders", 201)),
    SpanTemplate(1, ORDERS, "POST /orders", Kind::Server, (3, 175), Holds::Http("POST", "/orders", 201)),
    SpanTemplate(2, ORDERS, "transaction", Kind::Internal, (5, 120), Holds::Work("shop.orders.place")),
    SpanTemplate(3, ORDERS, "SELECT stock", Kind::Client, (6, 14), Holds::Database("SELECT", "stock")),
    SpanTemplate(3, ORDERS, "UPDATE stock", Kind::Client, (16, 22), Holds::Database("UPDATE", "stock")),
    SpanTemplate(3, ORDERS, "SELECT prices", Kind::Client, (24, 30), Holds::Database("SELECT", "prices")),
    SpanTemplate(3, ORDERS, "reserve", Kind::Internal, (32, 60), Holds::Work("shop.orders.reserve")),
    SpanTemplate(7, ORDERS, "fetch price", Kind::Client, (33, 58), Holds::Http("GET", "/prices/{sku}", 200)),
    SpanTemplate(8, STOCK, "GET /prices", Kind::Server, (34, 57), Holds::Http("GET", "/prices/{sku}", 200)),
    SpanTemplate(9, STOCK, "cache get", Kind::Client, (35, 37), Holds::Cache),
    SpanTemplate(3, ORDERS, "charge", Kind::Client, (64, 110), Holds::Http("POST", "/charges", 201)),
    SpanTemplate(11, PAYMENT, "POST /charges", Kind::Server, (65, 109), Holds::Http("POST", "/charges", 201)),
    SpanTemplate(12, PAYMENT, "INSERT charges", Kind::Client, (70, 80), Holds::Database("INSERT", "charges")),
    SpanTemplate(2, ORDERS, "order", Kind::Internal, (122, 140), Holds::Work("shop.orders.write")),
    SpanTemplate(2, ORDERS, "orders publish", Kind::Producer, (142, 150), Holds::Message("publish")),
    SpanTemplate(15, AUDIT, "process orders", Kind::Consumer, (155, 170), Holds::Message("process")),
];

/// A trace under construction.
struct Traffic {
    trace: Trace,
    dice: Dice,
    /// Pod by pod, service by service.
    resources: Vec<ResourceIx>,
    scope: ScopeIx,
    last_id: u64,
}

/// The data that the spans of a checkout share.
struct Checkout {
    number: usize,
    pod: usize,
    begin: u64,
    fails: bool,
    amount: i64,
    user: String,
}

/// Generates a trace of about this many spans: complete checkouts only.
pub(crate) fn trace(spans: usize) -> Result<Trace> {
    let mut trace = Trace::new(TraceId::from_bytes([7; 16]).context("an id")?);
    let mut resources = Vec::new();
    for pod in 0..PODS {
        for service in SERVICES {
            resources.push(trace.resource(resource(service, pod))?);
        }
    }
    let name = "io.opentelemetry.shop".to_owned();
    let version = "2.14.0".to_owned();
    let scope = trace.scope(ScopeData { name, version, ..ScopeData::default() })?;
    let mut traffic =
        Traffic { trace, dice: Dice::new(spans as u64), resources, scope, last_id: 0 };
    traffic.run(spans / CHECKOUT.len())?;
    Ok(traffic.trace)
}

impl Traffic {
    fn run(&mut self, checkouts: usize) -> Result<()> {
        let root = self.around(None, "import", checkouts)?;
        let mut batch = root;
        for number in 0..checkouts {
            if number % BATCH == 0 {
                batch = self.around(Some(root), "batch", number / BATCH)?;
            }
            self.checkout(batch, number)?;
        }
        Ok(())
    }

    /// Generates a parent span for others.
    fn around(&mut self, parent: Option<SpanId>, name: &str, number: usize) -> Result<SpanId> {
        let mut span = SpanData::new(self.id()?, parent, name);
        span.start = Timestamp::from_nanos(BEGIN);
        span.end = Timestamp::from_nanos(BEGIN + 1_900 * MILLI);
        span.kind = Kind::Internal;
        span.attributes = vec![
            attribute("import.file", text("orders.csv")),
            attribute("import.number", Value::Int(number as i64)),
        ];
        let id = span.id;
        self.trace.push(self.resources[GATEWAY], self.scope, span)?;
        Ok(id)
    }

    fn checkout(&mut self, batch: SpanId, number: usize) -> Result<()> {
        let of = Checkout {
            number,
            pod: self.dice.below(PODS),
            begin: BEGIN + (2 + self.dice.below(1_600) as u64) * MILLI,
            fails: number % 50 == 7,
            amount: 1 + self.dice.below(500) as i64,
            user: format!("u-{}", number % 5_000),
        };
        let mut ids: Vec<SpanId> = Vec::with_capacity(CHECKOUT.len());
        for shape @ SpanTemplate(parent, service, _, kind, ..) in &CHECKOUT {
            let mut span = self.span(shape, &of)?;
            span.parent = Some(ids.get(*parent).copied().unwrap_or(batch));
            if *kind == Kind::Consumer {
                let (trace_id, span_id) = (Some(self.trace.id()), span.parent);
                span.links = vec![LinkData { trace_id, span_id, ..LinkData::default() }];
            }
            ids.push(span.id);
            let resource = self.resources[of.pod * SERVICES.len() + service];
            self.trace.push(resource, self.scope, span)?;
        }
        Ok(())
    }

    fn span(&mut self, shape: &SpanTemplate, of: &Checkout) -> Result<SpanData> {
        let SpanTemplate(_, service, name, kind, (from, to), holds) = shape;
        let mut span = SpanData::new(self.id()?, None, *name);
        let jitter = self.dice.below(900_000) as u64;
        span.start = Timestamp::from_nanos(of.begin + from * MILLI);
        span.end = Timestamp::from_nanos(of.begin + to * MILLI - jitter);
        span.kind = *kind;
        span.attributes = self.attributes(name, *holds, of);
        if of.fails && *service == PAYMENT {
            span.status = Status { code: StatusCode::Error, message: "timed out".to_owned() };
            let attributes = vec![
                attribute("exception.type", text("TimeoutError")),
                attribute("exception.message", text("no answer within 30ms")),
                attribute("exception.escaped", Value::Bool(false)),
            ];
            span.events = vec![event(span.start, "exception", attributes)];
        } else if *kind == Kind::Client && self.dice.once_in(2) {
            let attributes = vec![attribute("pool.size", Value::Int(16))];
            span.events = vec![event(span.start, "connection acquired", attributes)];
        }
        Ok(span)
    }

    fn attributes(&mut self, name: &str, holds: Holds, of: &Checkout) -> Vec<(String, Value)> {
        let mut attributes = match holds {
            Holds::Http(method, route, status) => http(method, route, status),
            Holds::Database(operation, table) => {
                database(operation, table, self.dice.below(20) as i64)
            }
            Holds::Cache => self.cache(),
            Holds::Work(function) => self.work(function, of),
            Holds::Message(operation) => message(operation, of),
        };
        let amount = || attribute("amount", Value::Int(of.amount));
        match name {
            "POST /checkout" | "POST /orders" => {
                attributes.push(attribute("user.id", Value::Str(of.user.clone())));
                attributes.push(attribute("http.request.body.size", Value::Int(of.amount * 7)));
            }
            "charge" => {
                attributes.push(amount());
                attributes.push(attribute("http.request.resend_count", Value::Int(0)));
            }
            "POST /charges" => attributes.push(attribute("charge.currency", text("EUR"))),
            "order" => attributes.push(amount()),
            _ => {}
        }
        attributes
    }

    fn cache(&mut self) -> Vec<(String, Value)> {
        vec![
            attribute("db.system", text("redis")),
            attribute("db.operation.name", text("GET")),
            attribute("db.namespace", text("0")),
            attribute("cache.key", Value::Str(format!("price:{}", self.dice.below(100_000)))),
            attribute("cache.hit", Value::Bool(!self.dice.once_in(3))),
            attribute("cache.ratio", Value::Double(self.dice.below(100) as f64 / 100.0)),
            attribute("server.address", text("cache.internal")),
        ]
    }

    fn work(&mut self, function: &str, of: &Checkout) -> Vec<(String, Value)> {
        vec![
            attribute("code.function.name", text(function)),
            attribute("code.line.number", Value::Int(214)),
            attribute("thread.id", Value::Int(self.dice.below(64) as i64)),
            attribute("thread.name", text("worker")),
            attribute("order.id", Value::Str(format!("o-{}", of.number))),
            attribute("order.total", Value::Double(self.dice.below(50_000) as f64 / 100.0)),
            attribute("order.vip", Value::Bool(self.dice.once_in(10))),
            attribute("order.skus", Value::Array(vec![text("a-1"), text("b-2")])),
        ]
    }

    fn id(&mut self) -> Result<SpanId> {
        self.last_id += 1;
        SpanId::from_bytes(self.last_id.to_be_bytes()).context("an id")
    }
}

fn http(method: &str, route: &str, status: i64) -> Vec<(String, Value)> {
    vec![
        attribute("http.request.method", text(method)),
        attribute("http.route", text(route)),
        attribute("http.response.status_code", Value::Int(status)),
        attribute("url.scheme", text("http")),
        attribute("server.address", text("shop.internal")),
        attribute("server.port", Value::Int(8080)),
        attribute("network.protocol.version", text("1.1")),
    ]
}

fn database(operation: &str, table: &str, rows: i64) -> Vec<(String, Value)> {
    let statement = format!("{operation} FROM {table} WHERE sku = $1 AND region = $2");
    vec![
        attribute("db.system", text("postgresql")),
        attribute("db.namespace", text("orders")),
        attribute("db.operation.name", text(operation)),
        attribute("db.collection.name", text(table)),
        attribute("db.query.text", Value::Str(statement)),
        attribute("db.response.returned_rows", Value::Int(rows)),
        attribute("server.address", text("db.internal")),
        attribute("server.port", Value::Int(5432)),
    ]
}

fn message(operation: &str, of: &Checkout) -> Vec<(String, Value)> {
    vec![
        attribute("messaging.system", text("kafka")),
        attribute("messaging.destination.name", text("orders")),
        attribute("messaging.operation.type", text(operation)),
        attribute("messaging.message.id", Value::Str(format!("m-{}", of.number))),
        attribute("messaging.message.body.size", Value::Int(256)),
        attribute("messaging.kafka.offset", Value::Int(of.number as i64)),
        attribute("messaging.destination.partition.id", text("3")),
        attribute("messaging.client.id", text("shop")),
    ]
}

fn event(at: Timestamp, name: &str, attributes: Vec<(String, Value)>) -> EventData {
    EventData { at, name: name.to_owned(), attributes, dropped_attributes: 0 }
}

fn resource(service: &str, pod: usize) -> ResourceData {
    let owned = |key: &str, value: String| (key.to_owned(), Value::Str(value));
    let attributes = vec![
        owned("service.name", service.to_owned()),
        owned("service.version", "4.12.1".to_owned()),
        owned("service.instance.id", format!("{service}-{pod}")),
        owned("host.name", format!("node-{pod}")),
        owned("k8s.pod.name", format!("{service}-7d9c5f6b8-{pod}")),
        owned("deployment.environment.name", "staging".to_owned()),
    ];
    ResourceData { attributes, ..ResourceData::default() }
}

fn attribute(key: &str, value: Value) -> (String, Value) {
    (key.to_owned(), value)
}

fn text(text: &str) -> Value {
    Value::Str(text.to_owned())
}
