//! Reports to other processes what this one has stored for each project, and reads their reports.

use std::{sync::Arc, time::Duration};

use async_nats::Subscriber;
use bytes::Bytes;
use tokio::time::{Instant, interval, sleep};

use super::{publish::Publisher, requests, wire::Head};
use crate::SealKeys;

/// How often a change is reported.
const CHANGED: Duration = Duration::from_millis(250);
/// How often it is reported all the same, for processes that have started meanwhile.
const AGAIN: Duration = Duration::from_secs(5);
/// The pause between two tries to subscribe.
const PAUSE: Duration = Duration::from_millis(100);

impl Publisher {
    /// Exchanges usage with other processes until the bus is closed.
    pub(super) async fn exchange_usage(self: Arc<Self>, keys: SealKeys) {
        let subject = format!("{}.usage", self.connection.prefix);
        tokio::join!(self.report_usage(&subject), self.follow_usage(&subject, &keys));
    }

    async fn report_usage(&self, subject: &str) {
        let (mut ticks, mut reported, mut reported_at) =
            (interval(CHANGED), Vec::new(), Instant::now());
        loop {
            ticks.tick().await;
            let report = self.shares.report(self.began.elapsed());
            if report == reported && reported_at.elapsed() < AGAIN {
                continue;
            }
            reported_at = Instant::now();
            if report.is_empty() && reported.is_empty() {
                continue;
            }
            let head = self.connection.write(Head::Usage(self.connection.publisher));
            let payload = Bytes::from(self.seal(head, subject.as_bytes(), &report));
            // Without a connection it is lost, and reported again.
            self.connection.client.publish(subject.to_owned(), payload).await.ok();
            reported = report;
        }
    }

    async fn follow_usage(&self, subject: &str, keys: &SealKeys) {
        loop {
            if let Ok(mut messages) = self.connection.client.subscribe(subject.to_owned()).await {
                self.note_usage(&mut messages, (subject, keys)).await;
            }
            sleep(PAUSE).await;
        }
    }

    async fn note_usage(&self, messages: &mut Subscriber, (subject, keys): (&str, &SealKeys)) {
        let mut opener = keys.opener();
        while let Some(message) = requests::next(messages).await {
            let opened = requests::open(&mut opener, &message.payload, subject.as_bytes());
            if let Some((Head::Usage(from), report)) = opened
                && from != self.connection.publisher
            {
                self.shares.note_peer(from, &report, self.began.elapsed());
            }
        }
    }
}
