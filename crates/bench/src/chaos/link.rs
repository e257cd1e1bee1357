//! A TCP connection path that can be held: while it is, no byte and no end of a connection passes, in either direction.
//!
//! For both sides this is a network that lost every packet: silence, and no reset. It needs no rights, and the same works on every
//! machine, which a network namespace does not.

use anyhow::Result;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::watch,
    task::JoinSet,
};

/// The bytes that are read at a time.
const CHUNK_BYTES: usize = 1 << 16;
/// The connections of a path.
const CONNECTIONS_MAX: usize = 4_096;

/// A path to one port of this machine, until it is dropped.
#[derive(Debug)]
pub(super) struct HoldableLink {
    /// The port to connect to.
    pub(super) port: u16,
    is_held: watch::Sender<bool>,
    _tasks: JoinSet<()>,
}

impl HoldableLink {
    /// Opens a path to a port.
    pub(super) async fn open(to: u16) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        let (is_held, held) = watch::channel(false);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                while connections.try_join_next().is_some() {}
                if connections.len() >= CONNECTIONS_MAX {
                    connections.join_next().await;
                }
                if let Ok((client, _)) = listener.accept().await {
                    connections.spawn(carry(client, to, held.clone()));
                }
            }
        });
        Ok(Self { port, is_held, _tasks: tasks })
    }

    /// Holds everything.
    pub(super) fn hold(&self) {
        self.is_held.send_replace(true);
    }

    /// Lets everything pass, beginning with what was held.
    pub(super) fn release(&self) {
        self.is_held.send_replace(false);
    }
}

async fn carry(client: TcpStream, to: u16, held: watch::Receiver<bool>) {
    pass(&held).await;
    let Ok(server) = TcpStream::connect(("127.0.0.1", to)).await else { return };
    // A small message must not wait for the acknowledgement of the last one.
    let _delayed = (client.set_nodelay(true), server.set_nodelay(true));
    let ((from_client, to_client), (from_server, to_server)) =
        (client.into_split(), server.into_split());
    tokio::join!(
        forward(from_client, to_server, held.clone()),
        forward(from_server, to_client, held)
    );
}

async fn forward(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, held: watch::Receiver<bool>) {
    let mut buffer = vec![0; CHUNK_BYTES];
    loop {
        let read = from.read(&mut buffer).await;
        pass(&held).await;
        let Ok(count @ 1..) = read else { break };
        if to.write_all(&buffer[..count]).await.is_err() {
            break;
        }
    }
    // An error means that the other side is closed already.
    let _closed = to.shutdown().await;
}

/// Waits until nothing is held.
async fn pass(held: &watch::Receiver<bool>) {
    let mut held = held.clone();
    // Without its sender the path is gone, and this task is about to be aborted.
    drop(held.wait_for(|is_held| !*is_held).await);
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    const SOON: Duration = Duration::from_millis(200);

    #[tokio::test]
    async fn a_held_path_is_silent_and_then_delivers_everything() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let link = HoldableLink::open(listener.local_addr().unwrap().port()).await.unwrap();
        let mut client = TcpStream::connect(("127.0.0.1", link.port)).await.unwrap();
        let (mut server, _) = listener.accept().await.unwrap();
        let mut buffer = [0; 2];
        client.write_all(b"ab").await.unwrap();
        server.read_exact(&mut buffer).await.unwrap();

        link.hold();
        client.write_all(b"cd").await.unwrap();
        drop(server.write_all(b"ef").await);
        assert!(timeout(SOON, server.read_exact(&mut buffer)).await.is_err(), "nothing arrives");
        assert!(timeout(SOON, client.read_exact(&mut buffer)).await.is_err(), "either way");
        let mut late = TcpStream::connect(("127.0.0.1", link.port)).await.unwrap();
        late.write_all(b"gh").await.unwrap();
        assert!(timeout(SOON, listener.accept()).await.is_err(), "nor is there a connection");

        link.release();
        server.read_exact(&mut buffer).await.unwrap();
        assert_eq!(&buffer, b"cd");
        client.read_exact(&mut buffer).await.unwrap();
        assert_eq!(&buffer, b"ef");
        let (mut other, _) = listener.accept().await.unwrap();
        other.read_exact(&mut buffer).await.unwrap();
        assert_eq!(&buffer, b"gh");
    }

    #[tokio::test]
    async fn the_death_of_the_server_is_not_seen_while_the_path_is_held() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let link = HoldableLink::open(listener.local_addr().unwrap().port()).await.unwrap();
        let mut client = TcpStream::connect(("127.0.0.1", link.port)).await.unwrap();
        let (server, _) = listener.accept().await.unwrap();
        link.hold();
        drop(server);
        let mut buffer = [0; 1];
        assert!(timeout(SOON, client.read(&mut buffer)).await.is_err(), "silence and no end");
        link.release();
        assert_eq!(client.read(&mut buffer).await.unwrap(), 0);
    }
}
