//! What the readers of traces have to know, and is not stored yet: losses, refusals, log records, unreadable exports.
//!
//! Each notice is sent until it is stored, the oldest first. Equal notices that wait are one message, so that the outbox stays small
//! however long NATS is away; and who waits for a notice does not wait for those of others that came later.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use model::{Project, TraceId};
use tokio::{sync::Notify, time::Instant};

use super::sharing::LateShare;
use crate::{Channel, Signal, refusals::BatchDigest};

/// The upper bound of notices about traces. Beyond it, batches are refused before they are sent, and records are not counted.
const TRACES_MAX: usize = 65_536;

/// How long a notice may wait until this process counts as one that does not share what it knows. With the time between two heartbeats
/// it is less than a sender waits for its answer.
const LATE: Duration = Duration::from_secs(2);

/// The projects of a sender; none stands for all.
type Projects = Option<Vec<Project>>;

#[derive(Debug, Default)]
pub(super) struct Outbox {
    notices: Mutex<Unsent>,
    /// There is something to send.
    news: Notify,
    /// Something was sent.
    sent: Notify,
}

#[derive(Debug, Default)]
struct Unsent {
    next: u64,
    /// The notices by their numbers, with the times at which they were added.
    queue: BTreeMap<u64, (Notice, Instant)>,
    /// The notices that are not being sent, and to which equal ones are added.
    open: HashMap<NoticeKind, u64>,
    /// The notices about traces.
    traces: usize,
}

/// What equal notices have in common.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum NoticeKind {
    Loss(Channel),
    Refused(Channel, BatchDigest),
    Log(Channel),
    Unread(Signal, Projects),
}

/// A message to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Notice {
    Loss(Channel),
    Refused(Channel, BatchDigest),
    Log(Channel, u64),
    Unread(Signal, Projects, u64),
}

/// The number of a notice in the outbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NoticeNumber(u64);

impl Outbox {
    pub(super) fn add(&self, notice: Notice) {
        self.unsent().add(notice);
        self.news.notify_one();
    }

    /// Waits for a notice, and returns the oldest; equal ones are not added to it any more.
    pub(super) async fn next(&self) -> (NoticeNumber, Notice) {
        loop {
            if let Some(first) = self.unsent().first() {
                return first;
            }
            self.news.notified().await;
        }
    }

    /// Removes a notice that is stored.
    pub(super) fn remove(&self, NoticeNumber(number): NoticeNumber) {
        let mut unsent = self.unsent();
        if let Some((notice, _)) = unsent.queue.remove(&number) {
            unsent.traces -= usize::from(notice.has_trace());
        }
        drop(unsent);
        self.sent.notify_waiters();
    }

    /// Waits until everything is stored that was added before.
    pub(super) async fn sent(&self) {
        let end = self.unsent().next;
        loop {
            let sent = self.sent.notified();
            if self.unsent().queue.first_key_value().is_none_or(|(first, _)| *first >= end) {
                return;
            }
            sent.await;
        }
    }

    /// Whether no loss or refusal waits, and nothing else has waited for long: there may be a flood of it.
    pub(super) fn is_current(&self) -> bool {
        let unsent = self.unsent();
        let oldest = unsent.queue.first_key_value();
        oldest.is_none_or(|(_, (_, added_at))| added_at.elapsed() < LATE)
            && !unsent.queue.values().any(|(notice, _)| notice.lost_trace().is_some())
    }

    /// Whether a notice waits that lets a run doubt its trace.
    pub(super) fn concerns(&self, trace: TraceId, project: &Project) -> bool {
        let is_of = |(notice, _): &(Notice, Instant)| match notice {
            Notice::Unread(Signal::Spans, projects, _) => {
                projects.as_ref().is_none_or(|projects| projects.contains(project))
            }
            _ => notice.lost_trace() == Some(trace),
        };
        self.unsent().queue.values().any(is_of)
    }

    pub(super) fn is_full(&self) -> bool {
        self.unsent().traces >= TRACES_MAX
    }

    fn unsent(&self) -> MutexGuard<'_, Unsent> {
        self.notices.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Unsent {
    fn add(&mut self, notice: Notice) {
        let kind = notice.kind();
        let open = self.open.get(&kind).and_then(|number| self.queue.get_mut(number));
        if let Some((known, _)) = open {
            return known.grow(&notice);
        }
        if matches!(notice, Notice::Log(..)) && self.traces >= TRACES_MAX {
            return;
        }
        self.traces += usize::from(notice.has_trace());
        self.queue.insert(self.next, (notice, Instant::now()));
        self.open.insert(kind, self.next);
        self.next += 1;
    }

    fn first(&mut self) -> Option<(NoticeNumber, Notice)> {
        let (number, (notice, _)) = self.queue.first_key_value()?;
        let (number, notice) = (*number, notice.clone());
        if self.open.get(&notice.kind()) == Some(&number) {
            self.open.remove(&notice.kind());
        }
        Some((NoticeNumber(number), notice))
    }
}

impl Notice {
    fn kind(&self) -> NoticeKind {
        match self {
            Self::Loss(channel) => NoticeKind::Loss(*channel),
            Self::Refused(channel, batch) => NoticeKind::Refused(*channel, *batch),
            Self::Log(channel, _) => NoticeKind::Log(*channel),
            Self::Unread(signal, projects, _) => NoticeKind::Unread(*signal, projects.clone()),
        }
    }

    /// Returns what is late for readers when the notice is stored; none if it is no reason for a doubt.
    pub(super) fn late_share(&self) -> Option<LateShare> {
        match self {
            Self::Loss(channel) | Self::Refused(channel, _) => {
                Some(LateShare::Trace(channel.trace))
            }
            Self::Unread(Signal::Spans, projects, _) => Some(LateShare::Projects(projects.clone())),
            Self::Unread(Signal::Logs, ..) | Self::Log(..) => None,
        }
    }

    /// Returns the trace whose spans were lost or refused, if the notice is about that.
    fn lost_trace(&self) -> Option<TraceId> {
        match self {
            Self::Loss(channel) | Self::Refused(channel, _) => Some(channel.trace),
            Self::Log(..) | Self::Unread(..) => None,
        }
    }

    fn has_trace(&self) -> bool {
        matches!(self, Self::Loss(_) | Self::Refused(..) | Self::Log(..))
    }

    /// Adds the count of an equal notice.
    fn grow(&mut self, other: &Self) {
        match (self, other) {
            (Self::Log(_, count), Self::Log(_, more))
            | (Self::Unread(_, _, count), Self::Unread(_, _, more)) => *count += more,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use model::{BusSlot, Project, TraceId};
    use tokio::time::{advance, timeout};

    use super::{LATE, Notice, Outbox};
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
        let (number, loss) = outbox.next().await;
        assert_eq!(loss, Notice::Loss(channel(1)));
        outbox.remove(number);
        outbox.add(Notice::Log(channel(1), 2));
        outbox.add(Notice::Log(channel(1), 3));
        let (number, log) = outbox.next().await;
        assert_eq!(log, Notice::Log(channel(1), 5));
        outbox.add(Notice::Log(channel(1), 1));
        assert_eq!(outbox.next().await, (number, log), "until it is stored");
        outbox.remove(number);
        let (number, log) = outbox.next().await;
        assert_eq!(log, Notice::Log(channel(1), 1));
        outbox.remove(number);
        let projects = Some(vec!["alpha".parse().expect("a name")]);
        outbox.add(Notice::Unread(Signal::Spans, projects.clone(), 1));
        outbox.add(Notice::Unread(Signal::Spans, None, 1));
        for of in [projects, None] {
            let (number, unread) = outbox.next().await;
            assert_eq!(unread, Notice::Unread(Signal::Spans, of, 1));
            outbox.remove(number);
        }
        outbox.sent().await;
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_for_notices_of_others_that_came_later() {
        let outbox = Outbox::default();
        outbox.add(Notice::Unread(Signal::Spans, None, 1));
        outbox.add(Notice::Loss(channel(1)));
        assert!(!outbox.is_current(), "a loss waits");
        let (project, other) = (Project::default(), channel(2).trace);
        assert!(outbox.concerns(channel(1).trace, &project));
        assert!(outbox.concerns(other, &project), "the unreadable export may have had its spans");
        let mut sent = std::pin::pin!(outbox.sent());
        for _ in 0..2 {
            assert!(timeout(Duration::ZERO, &mut sent).await.is_err(), "two have to be stored");
            let (number, _) = outbox.next().await;
            // A flood: there is always one more.
            outbox.add(Notice::Unread(Signal::Spans, None, 1));
            outbox.remove(number);
        }
        timeout(Duration::ZERO, &mut sent).await.expect("both are stored");
        assert!(outbox.is_current());
        advance(LATE).await;
        assert!(!outbox.is_current(), "one has waited for too long");
        let (number, _) = outbox.next().await;
        outbox.remove(number);
        assert!(outbox.is_current());
    }
}
