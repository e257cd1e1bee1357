//! Hints over NATS: a hint of this process reaches its own listeners at once, and all others by a plain message. A hint for one
//! process goes to one member of a queue group, which a process leaves while it is not available.

use std::{
    future::{Future, pending, poll_fn},
    pin::Pin,
    sync::{Arc, OnceLock},
    time::Duration,
};

use async_nats::{Client, Subscriber};
use bytes::Bytes;
use futures_core::Stream;
use tokio::{
    sync::{mpsc, watch},
    time::sleep,
};

use super::{connection::Connection, wire::PublisherId};
use crate::hints::{Sender, Subject};

/// The hints that may wait to be sent; a further one is lost, as hints may be.
const UNSENT_MAX: usize = 1024;

/// The pause between two tries to subscribe.
const PAUSE: Duration = Duration::from_millis(100);

/// The queue group of processes that are available.
const GROUP: &str = "available";

#[derive(Debug)]
pub(super) struct NatsHints {
    local: Sender,
    available: watch::Sender<bool>,
    /// None until the process takes part.
    unsent: OnceLock<mpsc::Sender<UnsentHint>>,
}

/// A hint for all processes, or for one of them.
#[derive(Debug)]
struct UnsentHint {
    subject: Subject,
    is_for_one: bool,
}

/// The connection, and the subjects of hints.
struct Exchange {
    client: Client,
    publisher: PublisherId,
    all: String,
    one: String,
    local: Sender,
}

impl Default for NatsHints {
    fn default() -> Self {
        let available = watch::Sender::new(false);
        Self { local: Sender::new(), available, unsent: OnceLock::new() }
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
        let exchange = Exchange {
            client: connection.client.clone(),
            publisher: connection.publisher,
            all: format!("{}.notify.all", connection.prefix),
            one: format!("{}.notify.one", connection.prefix),
            local: self.local.clone(),
        };
        let available = self.available.subscribe();
        async move {
            tokio::join!(
                exchange.send(receiver),
                exchange.listen(),
                exchange.listen_while(available)
            );
        }
    }

    pub(super) fn send(&self, subject: Subject) {
        self.publish(UnsentHint { subject: subject.clone(), is_for_one: false });
        self.local.send(subject);
    }

    pub(super) fn send_one(&self, subject: Subject) {
        match *self.available.borrow() {
            true => self.local.send(subject),
            false => self.publish(UnsentHint { subject, is_for_one: true }),
        }
    }

    fn publish(&self, hint: UnsentHint) {
        // A hint that does not fit costs its reader a poll.
        self.unsent.get().map(|unsent| unsent.try_send(hint).ok());
    }

    pub(super) fn set_available(&self, is_available: bool) {
        self.available
            .send_if_modified(|before| std::mem::replace(before, is_available) != is_available);
    }

    pub(super) fn listen(&self) -> crate::Hints {
        self.local.listen()
    }
}

impl Exchange {
    async fn send(&self, mut unsent: mpsc::Receiver<UnsentHint>) {
        while let Some(UnsentHint { subject, is_for_one }) = unsent.recv().await {
            let payload = [&self.publisher.0[..], subject.0.as_bytes()].concat();
            let to = if is_for_one { &self.one } else { &self.all };
            // Without a connection the hint is lost, as hints may be.
            self.client.publish(to.clone(), Bytes::from(payload)).await.ok();
        }
    }

    async fn listen(&self) {
        loop {
            if let Ok(mut messages) = self.client.subscribe(self.all.clone()).await {
                while self.pass_on(&mut messages).await {}
            }
            sleep(PAUSE).await;
        }
    }

    /// Is a member of the queue group while the process is available.
    async fn listen_while(&self, mut available: watch::Receiver<bool>) {
        loop {
            becomes(&mut available, true).await;
            let group = self.client.queue_subscribe(self.one.clone(), GROUP.to_owned()).await;
            let Ok(mut messages) = group else {
                sleep(PAUSE).await;
                continue;
            };
            loop {
                tokio::select! {
                    is_open = self.pass_on(&mut messages) => if !is_open { break },
                    () = becomes(&mut available, false) => break,
                }
            }
        }
    }

    /// Passes the next hint of another process on; returns false if there will be none.
    async fn pass_on(&self, messages: &mut Subscriber) -> bool {
        let next = poll_fn(|context| Pin::new(&mut *messages).poll_next(context));
        let Some(message) = next.await else { return false };
        if let Some((from, hint)) = message.payload.split_first_chunk()
            && PublisherId(*from) != self.publisher
        {
            self.local.send(Subject(String::from_utf8_lossy(hint).into_owned()));
        }
        true
    }
}

/// Waits until the process is available, or is not; forever if the bus was dropped.
async fn becomes(available: &mut watch::Receiver<bool>, expected: bool) {
    let is_dropped = available.wait_for(|is_available| *is_available == expected).await.is_err();
    if is_dropped {
        pending::<()>().await;
    }
}
