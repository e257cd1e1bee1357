//! `shipping`: sends a parcel for each message of the queue, some time after the customer has received a response.

use std::time::Duration;

use serde_json::Value;
use telemetry::opentelemetry::{Context, KeyValue, trace::SpanKind};
use tokio::time::sleep;

use crate::{database::Statement, service::Staff};

/// How long it takes to pack a parcel.
const PACKING: Duration = Duration::from_millis(1);

const INSERT: Statement = Statement {
    operation: "INSERT",
    collection: "parcels",
    text: "INSERT INTO parcels (order_id, lines) VALUES ($1, $2)",
};

pub(crate) async fn ship(staff: &Staff, within: &Context, shipment: &Value) {
    let order = shipment["order"].as_str().unwrap_or_default().to_owned();
    let told = vec![KeyValue::new("shop.order.id", order)];
    let packing = staff.spans.start(within, SpanKind::Internal, "pack", told);
    sleep(PACKING).await;
    drop(packing);
    staff.database.ask(&staff.spans, within, INSERT, None).await;
}
