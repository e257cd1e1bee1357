//! Connections and requests.

use std::{convert::Infallible, future::pending, io::Read, sync::Arc, time::Instant};

use bytes::Bytes;
use http::{Request, Response, Version};
use http_body_util::BodyExt;
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
};
use opentelemetry_proto::tonic::collector::{
    logs::v1::ExportLogsServiceRequest, trace::v1::ExportTraceServiceRequest,
};
use prost::Message;
use rustls::ServerConfig;
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::Notify,
    task::JoinSet,
};
use tokio_rustls::TlsAcceptor;

use super::{Reply, Seen, State, reply::Answered};

/// One connection, shared by its requests.
#[derive(Clone)]
struct Connection {
    number: u64,
    is_known: bool,
    kill: Arc<Notify>,
    state: Arc<State>,
}

pub(super) async fn serve(
    listener: std::net::TcpListener,
    tls: Option<ServerConfig>,
    state: Arc<State>,
) {
    let listener = TcpListener::from_std(listener).expect("a listener");
    let tls = tls.map(|config| TlsAcceptor::from(Arc::new(config)));
    let mut connections = JoinSet::new();
    for number in 0.. {
        let Ok((stream, _)) = listener.accept().await else { break };
        let kill = Arc::new(Notify::new());
        let connection = Connection { number, is_known: false, kill, state: Arc::clone(&state) };
        connections.spawn(accept(stream, tls.clone(), connection));
        while connections.try_join_next().is_some() {}
    }
}

async fn accept(stream: TcpStream, tls: Option<TlsAcceptor>, mut connection: Connection) {
    let Some(tls) = tls else {
        reset_when_closed(&stream);
        return requests(stream, connection).await;
    };
    match tls.accept(stream).into_fallible().await {
        Ok(stream) => {
            reset_when_closed(stream.get_ref().0);
            connection.is_known = stream.get_ref().1.peer_certificates().is_some();
            requests(stream, connection).await;
        }
        // The alert is sent; closing the socket with unread data would reset it before the alert arrives.
        Err((_, mut stream)) => {
            drop(stream.shutdown().await);
            drop(tokio::io::copy(&mut stream, &mut tokio::io::sink()).await);
        }
    }
}

/// Makes closing the socket reset the connection, like a killed peer.
fn reset_when_closed(stream: &TcpStream) {
    stream.set_zero_linger().expect("a socket");
}

async fn requests<S>(stream: S, connection: Connection)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let kill = Arc::clone(&connection.kill);
    let service = service_fn(move |request| {
        let connection = connection.clone();
        async move { Ok::<_, Infallible>(respond(request, connection).await) }
    });
    let builder = auto::Builder::new(TokioExecutor::new());
    let served = builder.serve_connection(TokioIo::new(stream), service);
    tokio::select! {
        // Some tests end a connection with an error on purpose.
        ended = served => drop(ended),
        () = kill.notified() => {}
    }
}

async fn respond(request: Request<Incoming>, connection: Connection) -> Response<Answered> {
    let (mut reply, rules) = {
        let mut rules = connection.state.rules.lock().expect("no panic under this lock");
        let reply = rules.next.pop_front();
        (reply.unwrap_or_else(|| rules.always.clone()), rules.clone())
    };
    let (head, mut body) = request.into_parts();
    if matches!(reply, Reply::ResetInRequest) {
        drop(body.frame().await);
        connection.kill.notify_one();
        return pending().await;
    }
    let Ok(body) = body.collect().await else { return pending().await };
    let mut seen = read(&head, &body.to_bytes(), &connection);
    let is_grpc = seen.version == Version::HTTP_2;
    if rules.bytes_max.is_some_and(|max| seen.body.len() > max) {
        reply = match is_grpc {
            true => Reply::grpc(8, "grpc: received message larger than max (5000000 vs. 4194304)"),
            false => Reply::status(413),
        };
    } else if let Some((name, poisoned)) = rules.poison
        && seen.names().contains(&name)
    {
        reply = poisoned;
    } else if let Some((path, status)) = rules.path
        && seen.path == path
    {
        reply = Reply::status(status);
    }
    seen.is_accepted = reply.accepts();
    connection.state.seen.lock().expect("no panic under this lock").push(seen);
    connection.state.has_seen.notify_all();
    if matches!(reply, Reply::ResetBeforeAnswer) {
        connection.kill.notify_one();
    }
    match reply.answer(is_grpc, &connection.kill) {
        Some(response) => response,
        None => pending().await,
    }
}

#[expect(clippy::disallowed_methods, reason = "when something arrived is what is to be known")]
fn read(head: &http::request::Parts, wire: &Bytes, connection: &Connection) -> Seen {
    let is_grpc = head.version == Version::HTTP_2;
    let (is_gzip, message) = match is_grpc {
        true => (wire[0] == 1, wire.slice(5..)),
        false => (head.headers.contains_key("content-encoding"), wire.clone()),
    };
    let mut body = Vec::new();
    if is_gzip {
        flate2::read::GzDecoder::new(&message[..]).read_to_end(&mut body).expect("gzip");
    } else {
        body.extend_from_slice(&message);
    }
    let path = head.uri.path().to_owned();
    let (mut spans, mut logs) = (Vec::new(), Vec::new());
    if path.contains("race") {
        let request = ExportTraceServiceRequest::decode(&body[..]).expect("spans");
        let scopes = request.resource_spans.into_iter().flat_map(|it| it.scope_spans);
        spans = scopes.flat_map(|it| it.spans).collect();
    } else if path.contains("ogs") {
        let request = ExportLogsServiceRequest::decode(&body[..]).expect("logs");
        let scopes = request.resource_logs.into_iter().flat_map(|it| it.scope_logs);
        logs = scopes.flat_map(|it| it.log_records).collect();
    }
    Seen {
        at: Instant::now(),
        path,
        version: head.version,
        headers: head.headers.clone(),
        wire_bytes: message.len(),
        body,
        spans,
        logs,
        connection: connection.number,
        is_known: connection.is_known,
        is_accepted: false,
    }
}
