//! `orders`: processes an order from its reservation to the queue of shipments.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
};

use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use telemetry::opentelemetry::{Context, KeyValue, trace::SpanKind};

use crate::{
    database::Statement,
    fault::Fault,
    queue,
    service::{Service, Staff},
    spans::Open,
    web::{Call, Question, Reply},
};

/// The upper bound for the attempts at a payment while `payments` is busy.
const CHARGES_MAX: u32 = 5;
/// The upper bound for stored orders; a further one evicts the oldest.
const ORDERS_MAX: usize = 1000;
/// The upper bound for the lines of an order.
const LINES_MAX: usize = 100;

const SELECT: Statement = Statement {
    operation: "SELECT",
    collection: "orders",
    text: "SELECT id, customer, total, state FROM orders WHERE id = $1",
};
const INSERT: Statement = Statement {
    operation: "INSERT",
    collection: "orders",
    text: "INSERT INTO orders (id, customer, total, state) VALUES ($1, $2, $3, 'new')",
};
const INSERT_LINES: Statement = Statement {
    operation: "INSERT",
    collection: "order_lines",
    text: "INSERT INTO order_lines (order_id, sku, quantity) SELECT * FROM unnest($1, $2, $3)",
};
const UPDATE: Statement = Statement {
    operation: "UPDATE",
    collection: "orders",
    text: "UPDATE orders SET state = $2 WHERE id = $1",
};

/// An order, as a customer sends it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Order {
    pub(crate) customer: String,
    /// The card `declined` is refused, every other card is charged.
    #[serde(default)]
    pub(crate) card: String,
    pub(crate) lines: Vec<Line>,
}

/// A line of an order.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Line {
    pub(crate) sku: String,
    pub(crate) quantity: u32,
}

/// The orders so far, in memory, since the simulated database stores nothing.
#[derive(Debug, Default)]
pub(crate) struct Ledger(Mutex<Orders>);

#[derive(Debug, Default)]
struct Orders {
    taken: u64,
    latest: VecDeque<(String, Value)>,
}

pub(crate) async fn handle(staff: &Staff, span: &mut Open, call: Call) -> Reply {
    if call.route == "GET /orders/{order}" {
        let found = staff.ledger.find(&call.parameter);
        staff.database.ask(&staff.spans, &span.context, SELECT, Some(found.iter().len())).await;
        return match found {
            Some(order) => Reply::new(StatusCode::OK, order),
            None => Reply::refuse(StatusCode::NOT_FOUND, "there is no such order"),
        };
    }
    match serde_json::from_slice::<Order>(&call.body) {
        Ok(order) => place(staff, span, &order).await.unwrap_or_else(|refusal| refusal),
        Err(error) => Reply::refuse(StatusCode::BAD_REQUEST, &format!("this is no order: {error}")),
    }
}

async fn place(staff: &Staff, span: &Open, order: &Order) -> Result<Reply, Reply> {
    let within = &span.context;
    check(staff, within, order)?;
    let lines = Some(json!({ "lines": order.lines }));
    let reservation = Question::new(Service::Stock, "/reservations", lines);
    let reserved = staff.caller.ask(staff, within, reservation).await;
    let (StatusCode::OK, Some(total)) = (reserved.status, reserved.body["total"].as_i64()) else {
        return Err(reserved);
    };
    let id = staff.ledger.next();
    span.note("shop.order.id", id.clone());
    span.note("shop.order.total", total);
    staff.database.ask(&staff.spans, within, INSERT, None).await;
    staff.database.ask(&staff.spans, within, INSERT_LINES, None).await;
    let charged = charge(staff, within, json!({ "amount": total, "card": order.card })).await;
    staff.database.ask(&staff.spans, within, UPDATE, None).await;
    if charged.status != StatusCode::OK {
        return Err(charged);
    }
    let shipment = json!({ "order": id, "lines": order.lines });
    let message = format!("m-{id}");
    if queue::send(staff, within, message, shipment).await.is_err() {
        return Err(Reply::refuse(StatusCode::BAD_GATEWAY, "the queue takes no messages"));
    }
    let placed =
        json!({ "order": id, "customer": order.customer, "total": total, "state": "paid" });
    staff.ledger.remember(id, placed.clone());
    Ok(Reply::new(StatusCode::CREATED, placed))
}

fn check(staff: &Staff, parent: &Context, order: &Order) -> Result<(), Reply> {
    let count = order.lines.len();
    let told = i64::try_from(count).unwrap_or(i64::MAX);
    let told = vec![KeyValue::new("shop.order.lines", told)];
    let _span = staff.spans.start(parent, SpanKind::Internal, "check order", told);
    if (1..=LINES_MAX).contains(&count) {
        return Ok(());
    }
    let why = format!("an order has 1 to {LINES_MAX} lines, not {count}");
    Err(Reply::refuse(StatusCode::UNPROCESSABLE_ENTITY, &why))
}

/// Requests the payment, and retries while `payments` is busy.
async fn charge(staff: &Staff, parent: &Context, mut body: Value) -> Reply {
    let mut resend = 0;
    loop {
        body["attempt"] = resend.into();
        let question = Question {
            resend,
            with_context: !staff.has(Fault::LostContext),
            ..Question::new(Service::Payments, "/charges", Some(body.clone()))
        };
        let reply = staff.caller.ask(staff, parent, question).await;
        resend += 1;
        if reply.status != StatusCode::SERVICE_UNAVAILABLE || resend == CHARGES_MAX {
            return reply;
        }
    }
}

impl Ledger {
    /// Returns the id of a further order.
    fn next(&self) -> String {
        let mut orders = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        orders.taken += 1;
        format!("o-{}", orders.taken)
    }

    fn remember(&self, id: String, order: Value) {
        let mut orders = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if orders.latest.len() == ORDERS_MAX {
            orders.latest.pop_front();
        }
        orders.latest.push_back((id, order));
    }

    fn find(&self, id: &str) -> Option<Value> {
        let orders = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = orders.latest.iter().find(|(known, _)| known == id);
        found.map(|(_, order)| order.clone())
    }
}
