//! The queue between `orders` and `shipping`: one line of JSON for a message, over a local socket, and one line back to
//! acknowledge it.
//!
//! Only its spans are those of a broker: it stores no message, and the sender keeps a message that is not acknowledged.

use std::{collections::BTreeMap, io, net::SocketAddr, sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use telemetry::opentelemetry::{Context, KeyValue, trace::SpanKind};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    sync::{Semaphore, watch},
    task::JoinSet,
    time::{sleep, timeout},
};

use crate::{
    service::{Service, Staff},
    shipping,
    spans::{Properties, PropertiesMut, pass_on, remote},
};

/// The name of the queue.
pub(crate) const DESTINATION: &str = "shipments";
/// The upper bound for a message.
const MESSAGE_BYTES_MAX: u64 = 64 * 1024;
/// The upper bound for messages processed concurrently; further ones wait.
const MESSAGES_MAX: usize = 64;
/// The timeout for sending.
const SEND_MAX: Duration = Duration::from_secs(5);
/// How long to wait when the operating system cannot provide a socket.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);
/// The acknowledgement of a message.
const TAKEN: &[u8] = b"taken\n";

/// A message in the queue.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Message {
    pub(crate) id: String,
    /// The headers; they carry the trace context.
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Value,
}

/// Sends a message, and creates a span for it.
pub(crate) async fn send(
    staff: &Staff,
    parent: &Context,
    id: String,
    body: Value,
) -> io::Result<()> {
    let mut attributes = messaging_attributes("send", &id);
    let size = i64::try_from(body.to_string().len()).unwrap_or(i64::MAX);
    attributes.push(KeyValue::new("messaging.message.body.size", size));
    let span = staff.spans.start(parent, SpanKind::Producer, "send shipments", attributes);
    let mut message = Message { id, headers: BTreeMap::new(), body };
    pass_on(&span.context, &mut PropertiesMut(&mut message.headers));
    let sent = timeout(SEND_MAX, transfer(staff.book.of(Service::Shipping), &message)).await;
    let sent = sent.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
    if let Err(error) = &sent {
        span.fail("queue", error.to_string());
    }
    sent
}

async fn transfer(to: SocketAddr, message: &Message) -> io::Result<()> {
    let mut stream = TcpStream::connect(to).await?;
    let line = format!("{}\n", serde_json::to_string(message)?);
    stream.write_all(line.as_bytes()).await?;
    let mut taken = [0; TAKEN.len()];
    stream.read_exact(&mut taken).await?;
    Ok(())
}

/// Accepts messages until the stop signal, then finishes those that were accepted.
pub(crate) async fn serve(listener: TcpListener, staff: Arc<Staff>, mut stop: watch::Receiver<()>) {
    let places = Arc::new(Semaphore::new(MESSAGES_MAX));
    let mut work = JoinSet::new();
    loop {
        let accepted = async {
            let place = Arc::clone(&places).acquire_owned().await;
            (listener.accept().await, place)
        };
        let (stream, place) = tokio::select! {
            _ = stop.changed() => break,
            (accepted, place) = accepted => match accepted {
                Ok((stream, _)) => (stream, place),
                Err(_) => {
                    sleep(ACCEPT_RETRY).await;
                    continue;
                }
            },
        };
        while work.try_join_next().is_some() {}
        let staff = Arc::clone(&staff);
        work.spawn(async move {
            // An incomplete message was not acknowledged, so its sender knows that it was not accepted.
            if let Ok(Ok(message)) = timeout(SEND_MAX, take(stream)).await {
                consume(&staff, message).await;
            }
            drop(place);
        });
    }
    drop(listener);
    while work.join_next().await.is_some() {}
}

async fn take(mut stream: TcpStream) -> io::Result<Message> {
    let mut line = String::new();
    BufReader::new((&mut stream).take(MESSAGE_BYTES_MAX)).read_line(&mut line).await?;
    let message = serde_json::from_str(&line)?;
    stream.write_all(TAKEN).await?;
    Ok(message)
}

async fn consume(staff: &Staff, message: Message) {
    let producer = remote(&Properties(&message.headers));
    let span = staff.spans.consume(
        &producer,
        "process shipments",
        messaging_attributes("process", &message.id),
    );
    shipping::ship(staff, &span.context, &message.body).await;
}

/// Returns the attributes that the spans of both sides have.
fn messaging_attributes(operation: &'static str, id: &str) -> Vec<KeyValue> {
    vec![
        KeyValue::new("messaging.system", "shop_queue"),
        KeyValue::new("messaging.destination.name", DESTINATION),
        KeyValue::new("messaging.operation.name", operation),
        KeyValue::new("messaging.operation.type", operation),
        KeyValue::new("messaging.message.id", id.to_owned()),
        KeyValue::new("server.address", "queue"),
    ]
}
