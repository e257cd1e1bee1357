//! The text protocol of NATS over one connection, as little of it as a request and its answer need.

use anyhow::{Context, Result, ensure};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
    task::JoinSet,
    time::Instant,
};

/// As long as a notification of a server.
const PAYLOAD: &[u8] = &[b'x'; 24];

/// A connection.
struct BareNats {
    stream: BufReader<TcpStream>,
}

/// A requester, and another connection that answers it, until it is dropped.
pub(super) struct NatsRound {
    requester: BareNats,
    _responder: JoinSet<Result<()>>,
}

impl NatsRound {
    /// Connects both to the node at this URL.
    pub(super) async fn connect(url: &str) -> Result<Self> {
        let mut responder = BareNats::connect(url).await?;
        responder.subscribe("bare.request").await?;
        let mut requester = BareNats::connect(url).await?;
        requester.subscribe("bare.answer").await?;
        let mut responding = JoinSet::new();
        responding.spawn(async move {
            loop {
                let reply = responder.next().await?.context("a request has a reply subject")?;
                responder.publish(&reply, "").await?;
            }
        });
        Ok(Self { requester, _responder: responding })
    }

    /// Sends a request, waits for the answer, and returns how long it took, in milliseconds.
    pub(super) async fn take(&mut self) -> Result<f64> {
        let began = Instant::now();
        self.requester.publish("bare.request", "bare.answer ").await?;
        self.requester.next().await?;
        Ok(began.elapsed().as_secs_f64() * 1e3)
    }
}

impl BareNats {
    async fn connect(url: &str) -> Result<Self> {
        let stream = TcpStream::connect(url.trim_start_matches("nats://")).await?;
        stream.set_nodelay(true)?;
        let mut nats = Self { stream: BufReader::new(stream) };
        ensure!(nats.line().await?.starts_with("INFO"), "NATS sends its facts first");
        nats.send(b"CONNECT {\"verbose\":false,\"pedantic\":false}\r\n").await?;
        Ok(nats)
    }

    async fn subscribe(&mut self, subject: &str) -> Result<()> {
        self.send(format!("SUB {subject} 1\r\nPING\r\n").as_bytes()).await?;
        let answer = self.line().await?;
        ensure!(answer == "PONG", "NATS answered `{answer}`");
        Ok(())
    }

    /// Publishes with this reply subject, which ends with a space, or without one.
    async fn publish(&mut self, subject: &str, reply: &str) -> Result<()> {
        let head = format!("PUB {subject} {reply}{}\r\n", PAYLOAD.len());
        self.send(&[head.as_bytes(), PAYLOAD, b"\r\n"].concat()).await
    }

    /// Waits for a message, and returns its reply subject.
    async fn next(&mut self) -> Result<Option<String>> {
        loop {
            let line = self.line().await?;
            let words: Vec<_> = line.split(' ').collect();
            let (reply, length) = match words.as_slice() {
                ["PING"] => {
                    self.send(b"PONG\r\n").await?;
                    continue;
                }
                ["MSG", _, _, length] => (None, length),
                ["MSG", _, _, reply, length] => (Some((*reply).to_owned()), length),
                _ => continue,
            };
            let mut payload = vec![0; length.parse::<usize>()? + 2];
            self.stream.read_exact(&mut payload).await?;
            return Ok(reply);
        }
    }

    async fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        ensure!(self.stream.read_line(&mut line).await? > 0, "NATS closed the connection");
        Ok(line.trim_end().to_owned())
    }

    async fn send(&mut self, bytes: &[u8]) -> Result<()> {
        Ok(self.stream.write_all(bytes).await?)
    }
}
