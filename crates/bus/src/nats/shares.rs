//! The share of a stream that one project may use: half of it, so that no project can fill it for others.
//!
//! Each process counts what it stores for each project, and reports it to the others by plain messages, sealed. A process that starts again
//! counts from zero, and what several store within a moment may exceed the share by that: half of the stream is left for it.
//! Batches without a known project do not count. Deliberately absent: the loss of what exceeds the share, which `publish` reports.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use model::{Project, TraceId};

use super::{
    StreamLimits,
    wire::{self, PublisherId, StreamNumber},
};

/// A stream has to hold this many shares.
const SHARES: u64 = 2;
/// The number of periods in which messages are counted until they are too old for the stream.
const PERIODS: u32 = 16;
/// What a message takes in a stream beside its payload, at the most.
pub(super) const MESSAGE_BYTES: u64 = 160;
/// A project that has used less than this part of its share is not reported to others.
const REPORTED_PART: u64 = 256;
/// The upper bound of projects in a message, those with the most bytes first.
const REPORTED_MAX: usize = 1024;
/// The upper bound of processes that are counted.
const PEERS_MAX: usize = 4096;
/// The upper bound of traces whose loss is remembered; beyond it a loss is stored again.
const LOST_MAX: usize = 65_536;

/// What projects have used of the streams.
#[derive(Debug)]
pub(super) struct StreamShares(Mutex<ShareTable>);

/// A project on a stream.
type ShareKey = (StreamNumber, Project);

/// The counts, by times from any moment.
#[derive(Debug)]
struct ShareTable {
    share: u64,
    age_max: Duration,
    own: HashMap<ShareKey, UsedBytes>,
    peers: HashMap<PublisherId, PeerUse>,
    /// The traces whose loss is stored.
    lost: HashSet<TraceId>,
}

/// The bytes of each period that are in the stream yet, the oldest first.
#[derive(Debug, Default)]
struct UsedBytes(VecDeque<(u64, u64)>);

/// What another process has stored, as it last reported.
#[derive(Debug)]
struct PeerUse {
    at: Duration,
    used: HashMap<ShareKey, u64>,
}

impl StreamShares {
    pub(super) fn new(limits: &StreamLimits) -> Self {
        Self(Mutex::new(ShareTable {
            share: u64::try_from(limits.bytes_max).unwrap_or(u64::MAX) / SHARES,
            age_max: limits.age_max,
            own: HashMap::new(),
            peers: HashMap::new(),
            lost: HashSet::new(),
        }))
    }

    /// Counts bytes of a project; false if they exceed its share, and are not counted.
    pub(super) fn take(
        &self,
        stream: StreamNumber,
        project: &Project,
        bytes: u64,
        now: Duration,
    ) -> bool {
        let mut table = self.table();
        let key = (stream, project.clone());
        if table.used(&key, now).saturating_add(bytes) > table.share {
            return false;
        }
        let period = table.period(now);
        table.own.entry(key).or_default().add(period, bytes);
        true
    }

    /// Subtracts bytes that were counted and not stored.
    pub(super) fn give_back(&self, stream: StreamNumber, project: &Project, bytes: u64) {
        if let Some(used) = self.table().own.get_mut(&(stream, project.clone())) {
            used.subtract(bytes);
        }
    }

    /// Whether the loss of this trace is stored already.
    pub(super) fn is_lost(&self, trace: TraceId) -> bool {
        self.table().lost.contains(&trace)
    }

    /// Remembers that the loss of a trace is stored.
    pub(super) fn note_lost(&self, trace: TraceId) {
        let mut table = self.table();
        if table.lost.len() >= LOST_MAX {
            table.lost.clear();
        }
        table.lost.insert(trace);
    }

    /// Returns what this process has stored, for the others; empty if that is too little.
    pub(super) fn report(&self, now: Duration) -> Vec<u8> {
        let mut table = self.table();
        let (period, least) = (table.period(now), table.share / REPORTED_PART);
        table.own.retain(|_, used| used.sum(period) > 0);
        let mut used: Vec<_> =
            table.own.iter_mut().map(|(key, used)| (used.sum(period), key)).collect();
        used.retain(|(bytes, _)| *bytes >= least);
        used.sort_unstable_by_key(|(bytes, _)| std::cmp::Reverse(*bytes));
        used.truncate(REPORTED_MAX);
        let mut report = Vec::new();
        for (bytes, (stream, project)) in used {
            report.extend(stream.number().to_be_bytes());
            report.extend(bytes.to_be_bytes());
            report.extend(wire::write_projects(Some(std::slice::from_ref(project))));
        }
        report
    }

    /// Takes note of what another process has stored.
    pub(super) fn note_peer(&self, peer: PublisherId, report: &[u8], now: Duration) {
        let mut table = self.table();
        let age_max = table.age_max;
        table.peers.retain(|_, peer| peer.at + age_max > now);
        if table.peers.len() < PEERS_MAX || table.peers.contains_key(&peer) {
            table.peers.insert(peer, PeerUse { at: now, used: read(report) });
        }
    }

    fn table(&self) -> MutexGuard<'_, ShareTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ShareTable {
    /// Returns what all processes have stored of a project.
    fn used(&mut self, key: &ShareKey, now: Duration) -> u64 {
        let period = self.period(now);
        let own = self.own.get_mut(key).map_or(0, |used| used.sum(period));
        let fresh = self.peers.values().filter(|peer| peer.at + self.age_max > now);
        fresh.filter_map(|peer| peer.used.get(key)).fold(own, |sum, used| sum.saturating_add(*used))
    }

    fn period(&self, now: Duration) -> u64 {
        let period = (self.age_max / PERIODS).as_nanos().max(1);
        u64::try_from(now.as_nanos() / period).unwrap_or(u64::MAX)
    }
}

impl UsedBytes {
    fn add(&mut self, period: u64, bytes: u64) {
        match self.0.back_mut() {
            Some((last, sum)) if *last == period => *sum = sum.saturating_add(bytes),
            _ => self.0.push_back((period, bytes)),
        }
    }

    fn subtract(&mut self, mut bytes: u64) {
        for (_, sum) in self.0.iter_mut().rev() {
            let part = bytes.min(*sum);
            *sum -= part;
            bytes -= part;
        }
    }

    /// Returns the sum, without what is too old.
    fn sum(&mut self, period: u64) -> u64 {
        while self.0.front().is_some_and(|(first, _)| first + u64::from(PERIODS) < period) {
            self.0.pop_front();
        }
        self.0.iter().fold(0, |sum, (_, bytes)| sum.saturating_add(*bytes))
    }
}

/// Reads a report, up to what is damaged.
fn read(mut report: &[u8]) -> HashMap<ShareKey, u64> {
    let mut used = HashMap::new();
    while let Some((stream, rest)) = report.split_first_chunk()
        && let Some((bytes, rest)) = rest.split_first_chunk()
        && let Some((project, rest)) = wire::take_project(rest)
    {
        let stream = StreamNumber::from_number(u16::from_be_bytes(*stream));
        used.insert((stream, project), u64::from_be_bytes(*bytes));
        report = rest;
    }
    used
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use model::{Project, TraceId};

    use super::{LOST_MAX, StreamShares};
    use crate::nats::{
        StreamLimits,
        wire::{PublisherId, StreamNumber},
    };

    const MINUTE: Duration = Duration::from_secs(60);

    fn shares() -> StreamShares {
        let limits = StreamLimits { bytes_max: 200, age_max: 16 * MINUTE, replicas: 1, streams: 2 };
        StreamShares::new(&limits)
    }

    fn project(name: &str) -> Project {
        name.parse().expect("a name")
    }

    #[test]
    fn a_project_has_half_of_a_stream_until_its_messages_are_too_old() {
        let (shares, alpha, beta) = (shares(), project("alpha"), project("beta"));
        let [one, two] = [0, 1].map(StreamNumber::from_number);
        assert!(shares.take(one, &alpha, 60, MINUTE) && shares.take(one, &alpha, 40, MINUTE));
        assert!(!shares.take(one, &alpha, 1, 2 * MINUTE), "that was all");
        assert!(shares.take(one, &beta, 100, MINUTE), "another project");
        assert!(shares.take(two, &alpha, 100, MINUTE), "another stream");
        shares.give_back(one, &alpha, 30);
        assert!(!shares.take(one, &alpha, 31, 3 * MINUTE));
        assert!(shares.take(one, &alpha, 30, 3 * MINUTE), "what was not stored");
        // The stream discards a message when it is 16 minutes old; its period may have begun a minute before.
        assert!(!shares.take(one, &alpha, 1, 17 * MINUTE));
        assert!(shares.take(one, &alpha, 70, 18 * MINUTE), "the first ones are gone");
        assert!(!shares.take(one, &alpha, 1, 18 * MINUTE), "the later one is not");
    }

    #[test]
    fn what_other_processes_store_counts_while_it_is_in_the_stream() {
        let (here, there, alpha) = (shares(), shares(), project("alpha"));
        let stream = StreamNumber::from_number(0);
        assert!(there.report(MINUTE).is_empty());
        assert!(there.take(stream, &alpha, 70, MINUTE));
        let (peer, report) = (PublisherId([1; 8]), there.report(MINUTE));
        here.note_peer(peer, &report, MINUTE);
        here.note_peer(peer, &report, 2 * MINUTE);
        assert!(!here.take(stream, &alpha, 31, 2 * MINUTE), "twice the same is once");
        assert!(here.take(stream, &alpha, 30, 2 * MINUTE));
        here.note_peer(PublisherId([2; 8]), &report[..report.len() - 1], 2 * MINUTE);
        here.give_back(stream, &alpha, 30);
        assert!(here.take(stream, &alpha, 30, 3 * MINUTE), "a damaged report has nothing");
        assert!(here.take(stream, &alpha, 100, 60 * MINUTE), "the peer has gone long ago");
    }

    #[test]
    fn a_loss_is_stored_once_and_the_memory_of_that_is_bounded() {
        let shares = shares();
        let trace = |number: u32| {
            let mut id = [7; 16];
            id[..4].copy_from_slice(&number.to_be_bytes());
            TraceId::from_bytes(id).expect("not all zero")
        };
        shares.note_lost(trace(0));
        assert!(shares.is_lost(trace(0)) && !shares.is_lost(trace(1)));
        for number in 1..=LOST_MAX as u32 {
            shares.note_lost(trace(number));
        }
        assert!(!shares.is_lost(trace(0)) && shares.is_lost(trace(LOST_MAX as u32)));
    }
}
