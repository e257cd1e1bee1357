//! A minimal proxy: it forwards requests, and connects tunnels.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, copy_bidirectional},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};
use tokio_rustls::{TlsAcceptor, rustls::ServerConfig};

/// The requests that a proxy received, each as its head.
type Heads = Arc<Mutex<Vec<String>>>;

/// A proxy, until it is dropped. It resolves every name to this machine.
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    heads: Heads,
    _tasks: JoinSet<()>,
}

impl Proxy {
    /// Starts a proxy; optionally with TLS, or with a fixed response to every request.
    pub(crate) async fn start(tls: Option<ServerConfig>, instead: Option<&'static str>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("bound");
        let address = listener.local_addr().expect("an address");
        let heads = Heads::default();
        let acceptor = tls.map(|tls| TlsAcceptor::from(Arc::new(tls)));
        let mut tasks = JoinSet::new();
        let kept = Arc::clone(&heads);
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.expect("accepted");
                let (acceptor, kept) = (acceptor.clone(), Arc::clone(&kept));
                connections.spawn(async move {
                    match acceptor {
                        None => pass_on(stream, &kept, instead).await,
                        Some(acceptor) => {
                            let Ok(stream) = acceptor.accept(stream).await else { return };
                            pass_on(stream, &kept, instead).await;
                        }
                    }
                });
            }
        });
        Self { address, heads, _tasks: tasks }
    }

    pub(crate) fn heads(&self) -> Vec<String> {
        self.heads.lock().expect("no panic").clone()
    }
}

async fn pass_on(
    mut client: impl AsyncRead + AsyncWrite + Unpin,
    heads: &Heads,
    instead: Option<&'static str>,
) {
    let mut read = Vec::new();
    let end = loop {
        if let Some(end) = read.windows(4).position(|four| four == b"\r\n\r\n") {
            break end + 4;
        }
        if client.read_buf(&mut read).await.unwrap_or(0) == 0 {
            return;
        }
    };
    let head = String::from_utf8_lossy(&read[..end]).into_owned();
    heads.lock().expect("no panic").push(head.clone());
    if let Some(instead) = instead {
        client.write_all(instead.as_bytes()).await.ok();
        return;
    }
    let mut words = head.split(' ');
    let (method, target) = (words.next().expect("a method"), words.next().expect("a target"));
    let is_tunnel = method == "CONNECT";
    let (host, path) = match target.strip_prefix("http://") {
        Some(rest) => rest.split_at(rest.find('/').expect("a path")),
        None => (target, ""),
    };
    let port = host.rsplit_once(':').expect("a port").1.parse().expect("a port");
    let Ok(mut server) = TcpStream::connect(("127.0.0.1", port)).await else { return };
    if is_tunnel {
        client.write_all(b"HTTP/1.1 200 Connected\r\n\r\n").await.ok();
        server.write_all(&read[end..]).await.ok();
    } else {
        let passed = head.replacen(target, path, 1).into_bytes();
        server.write_all(&[passed.as_slice(), &read[end..]].concat()).await.ok();
    }
    copy_bidirectional(&mut client, &mut server).await.ok();
}
