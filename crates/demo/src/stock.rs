//! `stock`: lists the products, and reserves them for an order.

use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    database::Statement,
    fault::Fault,
    orders::Line,
    service::Staff,
    spans::Open,
    web::{Call, Reply},
};

/// The products: SKU, price in cents, and whether it is in stock.
const PRODUCTS: &[(&str, i64, bool)] = &[
    ("tea", 450, true),
    ("mug", 1200, true),
    ("kettle", 3900, true),
    ("biscuits", 320, true),
    ("samovar", 18_900, false),
];

const SELECT_ALL: Statement = Statement {
    operation: "SELECT",
    collection: "products",
    text: "SELECT sku, price, quantity FROM products ORDER BY sku",
};
const SELECT_THESE: Statement = Statement {
    operation: "SELECT",
    collection: "products",
    text: "SELECT sku, price, quantity FROM products WHERE sku = ANY($1)",
};
const SELECT_ONE: Statement = Statement {
    operation: "SELECT",
    collection: "products",
    text: "SELECT sku, price, quantity FROM products WHERE sku = $1",
};
const UPDATE: Statement = Statement {
    operation: "UPDATE",
    collection: "products",
    text: "UPDATE products SET quantity = quantity - r.quantity FROM unnest($1, $2) AS r (sku, quantity) WHERE products.sku = r.sku",
};

/// The request for a reservation, from `orders`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Reservation {
    lines: Vec<Line>,
}

pub(crate) async fn handle(staff: &Staff, span: &mut Open, call: Call) -> Reply {
    if call.route == "GET /products" {
        staff.database.ask(&staff.spans, &span.context, SELECT_ALL, Some(PRODUCTS.len())).await;
        let products: Vec<Value> = PRODUCTS
            .iter()
            .map(|(sku, price, available)| json!({ "sku": sku, "price": price, "available": available }))
            .collect();
        return Reply::new(StatusCode::OK, json!({ "products": products }));
    }
    match serde_json::from_slice::<Reservation>(&call.body) {
        Ok(reservation) => {
            reserve(staff, span, &reservation.lines).await.unwrap_or_else(|refusal| refusal)
        }
        Err(error) => {
            Reply::refuse(StatusCode::BAD_REQUEST, &format!("this is no reservation: {error}"))
        }
    }
}

async fn reserve(staff: &Staff, span: &Open, lines: &[Line]) -> Result<Reply, Reply> {
    let within = &span.context;
    if staff.has(Fault::NPlusOne) {
        for _ in lines {
            staff.database.ask(&staff.spans, within, SELECT_ONE, Some(1)).await;
        }
    } else {
        staff.database.ask(&staff.spans, within, SELECT_THESE, Some(lines.len())).await;
    }
    let mut total: i64 = 0;
    for line in lines {
        let Some((_, price, available)) = PRODUCTS.iter().find(|(sku, ..)| *sku == line.sku) else {
            let why = format!("there is no product `{}`", line.sku);
            return Err(Reply::refuse(StatusCode::UNPROCESSABLE_ENTITY, &why));
        };
        if !available {
            let why = format!("`{}` is sold out", line.sku);
            return Err(Reply::refuse(StatusCode::CONFLICT, &why));
        }
        total = total.saturating_add(price.saturating_mul(i64::from(line.quantity)));
    }
    staff.database.ask(&staff.spans, within, UPDATE, None).await;
    Ok(Reply::new(StatusCode::OK, json!({ "total": total })))
}
