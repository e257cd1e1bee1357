//! The first bytes of a connection, which decide its protocol: every HTTP/2 client begins with the same preface.

use std::{
    future::Future,
    io,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
};

use hyper::rt::Executor;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf},
    task::JoinSet,
};

/// The connection preface of every HTTP/2 client.
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The first byte of a TLS client.
const TLS_HANDSHAKE: u8 = 0x16;

/// The protocol that the first bytes of a connection indicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Greeting {
    /// HTTP/1.1.
    Http1,
    /// HTTP/2 without a negotiation.
    Http2,
    /// TLS.
    Tls,
    /// Anything else.
    Garbage,
}

/// A stream from which some bytes were already read.
#[derive(Debug)]
pub struct Replay<T> {
    head: [u8; PREFACE.len()],
    at: usize,
    len: usize,
    stream: T,
}

/// The tasks of one connection's HTTP/2 streams. They are aborted when the last clone is dropped.
#[derive(Clone, Debug, Default)]
pub struct StreamTasks(Arc<Mutex<JoinSet<()>>>);

impl<T> Replay<T> {
    /// Returns a stream of which nothing was read yet.
    pub fn new(stream: T) -> Self {
        Self { head: [0; PREFACE.len()], at: 0, len: 0, stream }
    }

    /// Returns the stream without the bytes that were read.
    pub fn into_inner(self) -> T {
        self.stream
    }
}

impl<T: AsyncRead + Unpin> Replay<T> {
    /// Reads until the protocol is clear, which hyper would wait for without end. Returns none if the client sends nothing.
    pub async fn greeting(&mut self) -> Option<Greeting> {
        while self.len < PREFACE.len() && self.head[..self.len] == PREFACE[..self.len] {
            match self.stream.read(&mut self.head[self.len..]).await {
                Ok(more) if more > 0 => self.len += more,
                _ => return None,
            }
        }
        Some(match self.head {
            head if head == *PREFACE => Greeting::Http2,
            [TLS_HANDSHAKE, ..] => Greeting::Tls,
            // Every HTTP method in use is written in capital letters.
            [first, ..] if first.is_ascii_uppercase() => Greeting::Http1,
            _ => Greeting::Garbage,
        })
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Replay<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.at == self.len {
            return Pin::new(&mut self.stream).poll_read(context, into);
        }
        let end = self.len.min(self.at + into.remaining());
        into.put_slice(&self.head[self.at..end]);
        self.at = end;
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Replay<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

impl StreamTasks {
    /// Waits until all tasks have ended.
    pub async fn join(self) {
        let mut tasks = std::mem::take(&mut *self.lock());
        while tasks.join_next().await.is_some() {}
    }

    fn lock(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<F> Executor<F> for StreamTasks
where
    F: Future + Send + 'static,
{
    fn execute(&self, stream: F) {
        let mut tasks = self.lock();
        // Removes finished tasks here; otherwise a long connection would keep all of them.
        while tasks.try_join_next().is_some() {}
        tasks.spawn(async move {
            stream.await;
        });
    }
}
