//! `gateway`: the service that customers call. It looks up the session and forwards the request.

use http::StatusCode;
use telemetry::opentelemetry::{Context, KeyValue, trace::SpanKind};

use crate::{
    database::Statement,
    orders::Order,
    service::{Service, Staff},
    spans::Open,
    web::{Call, Question, Reply},
};

const SESSION: Statement =
    Statement { operation: "GET", collection: "session", text: "GET session:?" };

pub(crate) async fn handle(staff: &Staff, span: &mut Open, call: Call) -> Reply {
    match call.route {
        "GET /products" => {
            let question = Question::new(Service::Stock, "/products", None);
            staff.caller.ask(staff, &span.context, question).await
        }
        "GET /orders/{order}" => {
            let path = format!("/orders/{}", call.parameter);
            let question = Question::new(Service::Orders, &path, None);
            staff.caller.ask(staff, &span.context, question).await
        }
        _ => {
            let order: Order = match serde_json::from_slice(&call.body) {
                Ok(order) => order,
                Err(error) => {
                    let why = format!(
                        "this is no order: {error}; send such as {}",
                        r#"{"customer":"ada","lines":[{"sku":"tea","quantity":2}]}"#
                    );
                    return Reply::refuse(StatusCode::BAD_REQUEST, &why);
                }
            };
            span.name_customer(&order.customer);
            authorize(staff, &span.context).await;
            let body = serde_json::to_value(&order).unwrap_or_default();
            let question = Question::new(Service::Orders, "/orders", Some(body));
            staff.caller.ask(staff, &span.context, question).await
        }
    }
}

/// Looks up the session, and authorizes every request.
async fn authorize(staff: &Staff, parent: &Context) {
    let known = vec![KeyValue::new("enduser.known", true)];
    let span = staff.spans.start(parent, SpanKind::Internal, "authorize", known);
    staff.database.ask(&staff.spans, &span.context, SESSION, Some(1)).await;
}
