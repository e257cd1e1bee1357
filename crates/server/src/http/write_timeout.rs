//! A write timeout: a connection ends when its peer does not read.
//!
//! An unread response holds its bytes, and the permit of its request. A slow reader reads some bytes now and then; a
//! peer that reads none for this long is gone, or hostile.

use std::{
    io::{self, ErrorKind, IoSlice},
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Instant, Sleep, sleep},
};

/// A stream with writes that fail when the peer has read no byte for `max`.
#[derive(Debug)]
pub(crate) struct WriteTimeout<T> {
    stream: T,
    max: Duration,
    timer: Pin<Box<Sleep>>,
    is_waiting: bool,
}

impl<T> WriteTimeout<T> {
    pub(crate) fn new(stream: T, max: Duration) -> Self {
        Self { stream, max, timer: Box::pin(sleep(max)), is_waiting: false }
    }

    /// Returns the result of a write, or a timeout error if the peer has read nothing for too long.
    fn unless_timed_out<R>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<R>>,
    ) -> Poll<io::Result<R>> {
        if written.is_ready() {
            self.is_waiting = false;
            return written;
        }
        if !self.is_waiting {
            self.is_waiting = true;
            self.timer.as_mut().reset(Instant::now() + self.max);
        }
        ready!(self.timer.as_mut().poll(context));
        Poll::Ready(Err(io::Error::new(ErrorKind::TimedOut, "the peer does not read")))
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for WriteTimeout<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, into)
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for WriteTimeout<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.unless_timed_out(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, pieces);
        self.unless_timed_out(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.unless_timed_out(context, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = Pin::new(&mut self.stream).poll_shutdown(context);
        self.unless_timed_out(context, shut)
    }
}

#[cfg(test)]
mod tests {
    use std::{io::ErrorKind, time::Duration};

    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt, duplex},
        time::{Instant, sleep},
    };

    use super::WriteTimeout;

    #[tokio::test(start_paused = true)]
    async fn who_reads_slowly_reads_and_who_does_not_is_let_go() {
        let (near, mut far) = duplex(10);
        let mut near = WriteTimeout::new(near, Duration::from_secs(20));
        let reads = async {
            for _ in 0..5 {
                // Slow, but within the limit, by the paused clock.
                sleep(Duration::from_secs(15)).await;
                far.read_exact(&mut [0; 10]).await.expect("it is written");
            }
        };
        let writes = async {
            near.write_all(&[1; 50]).await.expect("it is read");
            near.write_all(&[1; 10]).await.expect("there is room");
        };
        tokio::join!(reads, writes);
        let began = Instant::now();
        let error = near.write_all(&[1; 50]).await.expect_err("nobody reads");
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        assert_eq!(began.elapsed().as_secs(), 20);
    }
}
