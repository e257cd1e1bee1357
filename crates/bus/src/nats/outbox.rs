//! What the readers of traces have to know, and is not stored yet: losses, log records, unreadable exports.
//!
//! Each notice is sent until it is stored. Equal notices are one message, so that the outbox stays small however long NATS is away.

use std::{
    collections::{HashMap, HashSet},
    sync::{Mutex, MutexGuard, PoisonError},
};

use model::Project;
use tokio::sync::Notify;

use crate::{Channel, Signal};

/// The upper bound of traces in the outbox. Beyond it, batches are refused before they are sent, and records are not counted.
const TRACES_MAX: usize = 65_536;

/// The projects of a sender; none stands for all.
type Projects = Option<Vec<Project>>;

#[derive(Debug, Default)]
pub(super) struct Outbox {
    notices: Mutex<Unsent>,
    /// There is something to send.
    news: Notify,
    /// Everything was sent.
    empty: Notify,
}

#[derive(Debug, Default)]
struct Unsent {
    losses: HashSet<Channel>,
    logs: HashMap<Channel, u64>,
    unread: HashMap<(Signal, Projects), u64>,
}

/// A message to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Notice {
    Loss(Channel),
    Log(Channel, u64),
    Unread(Signal, Projects, u64),
}

impl Outbox {
    pub(super) fn add(&self, notice: Notice) {
        let mut unsent = self.unsent();
        match notice {
            Notice::Loss(channel) => drop(unsent.losses.insert(channel)),
            Notice::Log(channel, records) if unsent.traces() < TRACES_MAX => {
                *unsent.logs.entry(channel).or_default() += records;
            }
            Notice::Log(..) => {}
            Notice::Unread(signal, projects, exports) => {
                *unsent.unread.entry((signal, projects)).or_default() += exports;
            }
        }
        drop(unsent);
        self.news.notify_one();
    }

    /// Waits for a notice.
    pub(super) async fn next(&self) -> Notice {
        loop {
            if let Some(notice) = self.unsent().first() {
                return notice;
            }
            self.empty.notify_waiters();
            self.news.notified().await;
        }
    }

    /// Removes a notice that is stored.
    pub(super) fn remove(&self, notice: &Notice) {
        let mut unsent = self.unsent();
        match notice {
            Notice::Loss(channel) => drop(unsent.losses.remove(channel)),
            Notice::Log(channel, records) => subtract(&mut unsent.logs, channel, *records),
            Notice::Unread(signal, projects, exports) => {
                subtract(&mut unsent.unread, &(*signal, projects.clone()), *exports);
            }
        }
        if unsent.first().is_none() {
            self.empty.notify_waiters();
        }
    }

    /// Waits until everything is stored that was added before.
    pub(super) async fn sent(&self) {
        loop {
            let empty = self.empty.notified();
            if self.unsent().first().is_none() {
                return;
            }
            empty.await;
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.unsent().first().is_none()
    }

    pub(super) fn is_full(&self) -> bool {
        self.unsent().traces() >= TRACES_MAX
    }

    fn unsent(&self) -> MutexGuard<'_, Unsent> {
        self.notices.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Unsent {
    fn traces(&self) -> usize {
        self.losses.len() + self.logs.len()
    }

    fn first(&self) -> Option<Notice> {
        let loss = self.losses.iter().next().map(|channel| Notice::Loss(*channel));
        let log = || self.logs.iter().next().map(|(channel, count)| Notice::Log(*channel, *count));
        let unread = || {
            let ((signal, projects), count) = self.unread.iter().next()?;
            Some(Notice::Unread(*signal, projects.clone(), *count))
        };
        loss.or_else(unread).or_else(log)
    }
}

/// Reduces a count; removes it if nothing is left.
fn subtract<K: std::hash::Hash + Eq>(counts: &mut HashMap<K, u64>, key: &K, by: u64) {
    if let Some(count) = counts.get_mut(key) {
        *count = count.saturating_sub(by);
        if *count == 0 {
            counts.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use model::{BusSlot, TraceId};

    use super::{Notice, Outbox};
    use crate::{Channel, Signal};

    fn channel(byte: u8) -> Channel {
        let trace = TraceId::from_bytes([byte; 16]).expect("not all zero");
        Channel { slot: BusSlot(1), trace }
    }

    #[tokio::test]
    async fn equal_notices_are_one_and_what_comes_meanwhile_stays() {
        let outbox = Outbox::default();
        outbox.add(Notice::Loss(channel(1)));
        outbox.add(Notice::Loss(channel(1)));
        outbox.remove(&outbox.next().await);
        outbox.add(Notice::Log(channel(1), 2));
        outbox.add(Notice::Log(channel(1), 3));
        let log = outbox.next().await;
        assert_eq!(log, Notice::Log(channel(1), 5));
        outbox.add(Notice::Log(channel(1), 1));
        outbox.remove(&log);
        assert_eq!(outbox.next().await, Notice::Log(channel(1), 1));
        outbox.remove(&Notice::Log(channel(1), 1));
        let projects = Some(vec!["alpha".parse().expect("a name")]);
        outbox.add(Notice::Unread(Signal::Spans, projects.clone(), 1));
        outbox.add(Notice::Unread(Signal::Spans, None, 1));
        for _ in 0..2 {
            outbox.remove(&outbox.next().await);
        }
        outbox.sent().await;
    }
}
