//! A proxy in front of a real store that cuts or holds back its answers.

use std::net::SocketAddr;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

/// What the proxy does with the answer of the store.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cut {
    /// Closes the connection after so many bytes.
    After(usize),
    /// Passes on nothing, and keeps the connection open.
    Hold,
}

/// Starts a proxy to this address. It ends with the set.
pub(crate) async fn cutter(to: SocketAddr, cut: Cut, tasks: &mut JoinSet<()>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    tasks.spawn(async move {
        let mut connections = JoinSet::new();
        while let Ok((client, _)) = listener.accept().await {
            connections.spawn(pass(client, to, cut));
        }
    });
    address
}

async fn pass(client: TcpStream, to: SocketAddr, cut: Cut) {
    let Ok(store) = TcpStream::connect(to).await else { return };
    let ((mut from_client, mut to_client), (mut from_store, mut to_store)) =
        (client.into_split(), store.into_split());
    let up = async move {
        let _end = tokio::io::copy(&mut from_client, &mut to_store).await;
        std::future::pending::<()>().await;
    };
    let down = async move {
        let mut left = match cut {
            Cut::After(bytes) => bytes,
            Cut::Hold => std::future::pending().await,
        };
        let mut buffer = [0; 4096];
        while left > 0 {
            let size = buffer.len().min(left);
            let Ok(read @ 1..) = from_store.read(&mut buffer[..size]).await else { return };
            if to_client.write_all(&buffer[..read]).await.is_err() {
                return;
            }
            left -= read;
        }
    };
    tokio::select! {
        () = up => {}
        () = down => {}
    }
}
