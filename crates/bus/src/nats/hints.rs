//! Hints over NATS: a hint of this process reaches its own listeners at once, and all others by a plain message.

use std::{
    future::poll_fn,
    pin::Pin,
    sync::{Arc, OnceLock},
    time::Duration,
};

use async_nats::Client;
use bytes::Bytes;
use futures_core::Stream;
use tokio::{sync::mpsc, time::sleep};

use super::{connection::Connection, wire::PublisherId};
use crate::hints::{Sender, Subject};

/// The hints that may wait to be sent; a further one is lost, as hints may be.
const UNSENT_MAX: usize = 1024;

/// The pause between two tries to subscribe.
const PAUSE: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub(super) struct NatsHints {
    local: Sender,
    /// None until the process takes part.
    unsent: OnceLock<mpsc::Sender<Subject>>,
}

impl Default for NatsHints {
    fn default() -> Self {
        Self { local: Sender::new(), unsent: OnceLock::new() }
    }
}

impl NatsHints {
    /// Returns the task that exchanges hints with other processes.
    pub(super) fn exchange(
        &self,
        connection: &Arc<Connection>,
    ) -> impl Future<Output = ()> + use<> {
        let (unsent, receiver) = mpsc::channel(UNSENT_MAX);
        // It is set once.
        let _known = self.unsent.set(unsent);
        let (client, publisher) = (connection.client.clone(), connection.publisher);
        let subject = format!("{}.notify", connection.prefix);
        let others = self.local.clone();
        async move {
            tokio::join!(
                send(&client, &subject, publisher, receiver),
                listen(&client, &subject, publisher, &others)
            );
        }
    }

    pub(super) fn send(&self, subject: Subject) {
        // A hint that does not fit costs its reader a poll.
        self.unsent.get().map(|unsent| unsent.try_send(subject.clone()).ok());
        self.local.send(subject);
    }

    pub(super) fn listen(&self) -> crate::Hints {
        self.local.listen()
    }
}

async fn send(
    client: &Client,
    subject: &str,
    publisher: PublisherId,
    mut unsent: mpsc::Receiver<Subject>,
) {
    while let Some(hint) = unsent.recv().await {
        let payload = [&publisher.0[..], hint.0.as_bytes()].concat();
        // Without a connection the hint is lost, as hints may be.
        client.publish(subject.to_owned(), Bytes::from(payload)).await.ok();
    }
}

async fn listen(client: &Client, subject: &str, publisher: PublisherId, local: &Sender) {
    loop {
        if let Ok(mut messages) = client.subscribe(subject.to_owned()).await {
            while let Some(message) =
                poll_fn(|context| Pin::new(&mut messages).poll_next(context)).await
            {
                let Some((from, hint)) = message.payload.split_first_chunk() else { continue };
                if PublisherId(*from) != publisher {
                    local.send(Subject(String::from_utf8_lossy(hint).into_owned()));
                }
            }
        }
        sleep(PAUSE).await;
    }
}
