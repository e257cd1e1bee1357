//! An OTLP receiver that stores all requests: HTTP/1.1 with protobuf, and nothing else.

use std::{
    convert::Infallible,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use model::{Trace, TraceId};
use tokio::{net::TcpListener, task::JoinSet};

/// A receiver that runs until it is dropped.
#[derive(Debug)]
pub(crate) struct Sink {
    pub(crate) address: SocketAddr,
    came: Arc<Mutex<Vec<Bytes>>>,
    _tasks: JoinSet<()>,
}

impl Sink {
    pub(crate) async fn start() -> Arc<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let came = Arc::new(Mutex::new(Vec::new()));
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, Arc::clone(&came)));
        Arc::new(Self { address, came, _tasks: tasks })
    }

    /// Returns the spans of a trace that were received so far.
    pub(crate) fn trace(&self, id: TraceId) -> Trace {
        let mut trace = Trace::new(id);
        for request in self.came.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            otlp::append(&mut trace, request).expect("OTLP");
        }
        trace
    }
}

async fn accept(listener: TcpListener, came: Arc<Mutex<Vec<Bytes>>>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let came = Arc::clone(&came);
        let keep = move |request: Request<Incoming>| {
            let came = Arc::clone(&came);
            async move {
                let body = request.into_body().collect().await.expect("a body").to_bytes();
                came.lock().unwrap_or_else(PoisonError::into_inner).push(body);
                let mut response = Response::new(Full::new(Bytes::new()));
                let protobuf = http::HeaderValue::from_static("application/x-protobuf");
                response.headers_mut().insert(http::header::CONTENT_TYPE, protobuf);
                Ok::<_, Infallible>(response)
            }
        };
        connections.spawn(async move {
            let connection = http1::Builder::new();
            // The shop ends before the sink does.
            let _closed = connection.serve_connection(TokioIo::new(stream), service_fn(keep)).await;
        });
    }
}
