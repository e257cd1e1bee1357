//! Requests from one process to all others on the bus, by plain messages. Each process answers for itself; one that is not there, or
//! that is slow, does not answer. Both sides are sealed, and authenticate the subject of the answers, which is used once.

use std::{future::poll_fn, pin::Pin, sync::Arc, time::Duration};

use async_nats::{Message, Subscriber};
use bytes::Bytes;
use futures_core::Stream;
use tokio::time::{Instant, sleep, timeout_at};

use super::{
    Membership, Nats,
    publish::Publisher,
    wire::{Head, PublisherId},
};
use crate::{SealKeys, seal::Opener};

/// The pause between two tries to subscribe.
const PAUSE: Duration = Duration::from_millis(100);

/// The requests of other processes.
#[derive(Debug)]
pub struct PeerRequests {
    subject: String,
    publisher: Arc<Publisher>,
    keys: SealKeys,
    messages: Option<Subscriber>,
}

/// A request of another process.
#[derive(Debug)]
pub struct PeerRequest {
    /// What it requests.
    pub body: Vec<u8>,
    reply: async_nats::Subject,
    publisher: Arc<Publisher>,
}

impl Nats {
    /// Sends a request to all other processes, and returns their answers until these are enough, or the time is over. None without
    /// a connection.
    pub async fn gather(
        &self,
        body: &[u8],
        within: Duration,
        mut is_enough: impl FnMut(&[Vec<u8>]) -> bool,
    ) -> Vec<Vec<u8>> {
        let (mut answers, until) = (Vec::new(), Instant::now() + within);
        let Some(Membership { publisher, keys, .. }) = self.membership.get() else {
            return answers;
        };
        let connection = &publisher.connection;
        let inbox = connection.client.new_inbox();
        let gathering = async {
            let mut messages = connection.client.subscribe(inbox.clone()).await.ok()?;
            let head = connection.write(Head::Request(connection.publisher));
            let request = Bytes::from(publisher.seal(head, inbox.as_bytes(), body));
            let subject = subject(&connection.prefix);
            let sent = connection.client.publish_with_reply(subject, inbox.clone(), request);
            sent.await.ok()?;
            let mut opener = keys.opener();
            while !is_enough(&answers) {
                let message = next(&mut messages).await?;
                let opened = open(&mut opener, &message.payload, inbox.as_bytes());
                if let Some((Head::Answer(_), body)) = opened {
                    answers.push(body);
                }
            }
            Some(())
        };
        // What came until then counts.
        let _complete = timeout_at(until, gathering).await;
        answers
    }

    /// Returns the requests of other processes from now on; none before the process takes part.
    pub async fn requests(&self) -> Option<PeerRequests> {
        let Membership { publisher, keys, .. } = self.membership.get()?;
        let (subject, publisher) = (subject(&publisher.connection.prefix), Arc::clone(publisher));
        let mut requests = PeerRequests { subject, publisher, keys: keys.clone(), messages: None };
        requests.subscribe().await;
        Some(requests)
    }
}

impl PeerRequests {
    /// Waits for the next request.
    pub async fn next(&mut self) -> PeerRequest {
        loop {
            let Some(messages) = &mut self.messages else {
                sleep(PAUSE).await;
                self.subscribe().await;
                continue;
            };
            let Some(message) = next(messages).await else {
                self.messages = None;
                continue;
            };
            if let Some(request) = self.read(message) {
                return request;
            }
        }
    }

    async fn subscribe(&mut self) {
        let client = &self.publisher.connection.client;
        self.messages = client.subscribe(self.subject.clone()).await.ok();
        // The node has the subscription when this returns: requests that are sent later arrive.
        client.flush().await.ok();
    }

    fn read(&mut self, message: Message) -> Option<PeerRequest> {
        let reply = message.reply?;
        let opened = open(&mut self.keys.opener(), &message.payload, reply.as_bytes());
        let Some((Head::Request(from), body)) = opened else { return None };
        let own: PublisherId = self.publisher.connection.publisher;
        (from != own).then(|| PeerRequest { body, reply, publisher: Arc::clone(&self.publisher) })
    }
}

impl PeerRequest {
    /// Answers it. Without a connection the answer is lost.
    pub async fn answer(self, body: &[u8]) {
        let connection = &self.publisher.connection;
        let head = connection.write(Head::Answer(connection.publisher));
        let answer = self.publisher.seal(head, self.reply.as_bytes(), body);
        connection.client.publish(self.reply, Bytes::from(answer)).await.ok();
    }
}

/// Opens a message whose answers have this subject.
pub(super) fn open(opener: &mut Opener, payload: &[u8], reply: &[u8]) -> Option<(Head, Vec<u8>)> {
    let (head, sealed) = Head::read(payload)?;
    let prefix = [&payload[..payload.len() - sealed.len()], reply].concat();
    Some((head, opener.open(&prefix, sealed)?))
}

fn subject(prefix: &str) -> String {
    format!("{prefix}.requests")
}

pub(super) async fn next(messages: &mut Subscriber) -> Option<Message> {
    poll_fn(|context| Pin::new(&mut *messages).poll_next(context)).await
}
