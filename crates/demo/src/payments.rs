//! `payments`: charges a card, once for each order.

use http::StatusCode;
use serde::Deserialize;
use serde_json::json;
use telemetry::opentelemetry::{KeyValue, trace::SpanKind};

use crate::{
    database::Statement,
    fault::Fault,
    service::Staff,
    spans::Open,
    web::{Call, Reply},
};

/// With [`Fault::RetryStorm`], the number of attempts that are refused as busy before the charge succeeds.
const BUSY: u32 = 4;

const INSERT: Statement = Statement {
    operation: "INSERT",
    collection: "charges",
    text: "INSERT INTO charges (amount, card, at) VALUES ($1, $2, now())",
};

/// The request for a charge, from `orders`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Charge {
    amount: i64,
    card: String,
    /// The number of earlier attempts.
    attempt: u32,
}

pub(crate) async fn handle(staff: &Staff, span: &mut Open, call: Call) -> Reply {
    let charge: Charge = match serde_json::from_slice(&call.body) {
        Ok(charge) => charge,
        Err(error) => {
            let why = format!("this is no charge: {error}");
            return Reply::refuse(StatusCode::BAD_REQUEST, &why);
        }
    };
    span.note("shop.charge.amount", charge.amount);
    if staff.has(Fault::RetryStorm) && charge.attempt < BUSY {
        return Reply::refuse(StatusCode::SERVICE_UNAVAILABLE, "busy, try again");
    }
    if !is_good(staff, span, &charge) {
        return Reply::refuse(StatusCode::PAYMENT_REQUIRED, "the card is declined");
    }
    staff.database.ask(&staff.spans, &span.context, INSERT, None).await;
    Reply::new(StatusCode::OK, json!({ "charged": charge.amount }))
}

fn is_good(staff: &Staff, span: &Open, charge: &Charge) -> bool {
    let network = vec![KeyValue::new("shop.card.network", "visa")];
    let span = staff.spans.start(&span.context, SpanKind::Internal, "check card", network);
    let good = charge.card != "declined";
    if !good {
        span.fail("declined", "the card is declined".to_owned());
    }
    good
}
