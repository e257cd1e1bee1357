//! Open calls: calls for which the other side (the server or consumer span) has not arrived.
//!
//! Each has a deadline until which the run waits for the other side: none for a leaf, some seconds for an unknown peer, and no
//! end for a peer that sends spans.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    time::Duration,
};

use model::{
    SpanId, Timestamp, UnansweredPeer,
    trace::{Kind, Span, StatusCode},
};

use super::{peer::peer, process::ProcessState, rules::Rules};
use crate::plant::{Plant, is_planted};

/// Open calls, and what this run knows about the called peers.
#[derive(Debug, Default)]
pub(super) struct Edges {
    peers: Vec<Peer>,
    /// By calling service and peer.
    by_name: HashMap<(String, String), usize>,
    open: HashMap<SpanId, Edge>,
    /// The same calls by their deadline.
    by_time: BTreeSet<(Timestamp, SpanId)>,
}

#[derive(Debug)]
pub(super) struct Peer {
    /// The service that calls the peer.
    pub(super) service: String,
    pub(super) name: String,
    known: PeerKind,
    /// Whether the peer sent a span in this run.
    pub(super) has_answered: bool,
    /// The calls of the peer that the run would wait for if the peer sent a span.
    calls: Vec<SpanId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PeerKind {
    /// The test declares that the peer sends no spans; this overrides everything else.
    Declared,
    Leaf,
    Instrumented,
    Nothing,
}

#[derive(Debug)]
struct Edge {
    until: Timestamp,
    /// None if the span does not name its peer.
    peer: Option<usize>,
    is_error: bool,
}

/// The service name of the trigger as a caller.
const TRIGGER_SERVICE: &str = "qualitytrace";

/// The upper bound of named peers that sent no span.
const UNANSWERED_MAX: usize = 256;

/// No deadline: the peer is known to send spans.
pub(super) const FOREVER: Timestamp = Timestamp::from_nanos(u64::MAX);

impl Edges {
    /// Opens the trigger's call.
    pub(super) fn open_trigger(&mut self, rules: &Rules) {
        let Some(target) = &rules.target else { return };
        let peer = self.peer_named(TRIGGER_SERVICE, target.clone(), rules);
        let until = match self.peers[peer].known {
            PeerKind::Declared | PeerKind::Leaf => Timestamp::default(),
            PeerKind::Instrumented => FOREVER,
            // A peer that responded is a process from which spans are expected.
            PeerKind::Nothing => rules.answered.plus(rules.flush.unwrap_or(rules.unknown())),
        };
        self.wait(rules.trigger, Edge { until, peer: Some(peer), is_error: false });
    }

    /// Opens a call that arrived.
    pub(super) fn open(
        &mut self,
        call: Span<'_>,
        at: Timestamp,
        caller: &ProcessState,
        rules: &Rules,
    ) {
        let peer = peer(call).map(|name| self.peer_named(&caller.service, name, rules));
        let is_error = call.status() == StatusCode::Error;
        let is_message = call.kind() == Kind::Producer;
        // When the call ended by our clock is unknown, but not after its arrival.
        let until = match peer.map_or(PeerKind::Nothing, |peer| self.peers[peer].known) {
            PeerKind::Declared => Timestamp::default(),
            _ if is_error => at.plus(self.quiet_of(peer, rules)),
            // A queue may be slower than anything observed: only the test can state that no consumer exists, or when it
            // consumes.
            _ if is_message => FOREVER,
            PeerKind::Leaf => Timestamp::default(),
            PeerKind::Instrumented => FOREVER,
            PeerKind::Nothing => at.plus(rules.unknown()),
        };
        self.wait(call.id(), Edge { until, peer, is_error });
    }

    fn wait(&mut self, call: SpanId, edge: Edge) {
        if let Some(peer) = edge.peer.map(|peer| &mut self.peers[peer])
            && matches!(peer.known, PeerKind::Leaf | PeerKind::Nothing)
        {
            peer.calls.push(call);
        }
        self.by_time.insert((edge.until, call));
        self.open.insert(call, edge);
    }

    /// Closes the trigger's call: its other side arrived.
    pub(super) fn answer_trigger(&mut self, rules: &Rules) {
        if let Some(target) = &rules.target {
            let peer = self.peer_named(TRIGGER_SERVICE, target.clone(), rules);
            self.came(rules.trigger, peer);
        }
    }

    /// Closes a call: its other side arrived, so that those of the other calls of this peer will arrive too.
    pub(super) fn answer(&mut self, call: Span<'_>, caller: &ProcessState, rules: &Rules) {
        match peer(call).map(|name| self.peer_named(&caller.service, name, rules)) {
            Some(peer) => self.came(call.id(), peer),
            None => self.close(call.id()),
        }
    }

    fn came(&mut self, call: SpanId, peer: usize) {
        self.close(call);
        let peer = &mut self.peers[peer];
        peer.has_answered = true;
        if peer.known == PeerKind::Declared {
            return;
        }
        peer.known = PeerKind::Instrumented;
        for call in std::mem::take(&mut peer.calls) {
            if let Some(edge) = self.open.get_mut(&call).filter(|edge| !edge.is_error) {
                self.by_time.remove(&(edge.until, call));
                edge.until = FOREVER;
                self.by_time.insert((edge.until, call));
            }
        }
    }

    /// Closes a call, for example if a nested call to the same peer waits in its stead.
    pub(super) fn close(&mut self, call: SpanId) {
        if let Some(edge) = self.open.remove(&call) {
            self.by_time.remove(&(edge.until, call));
        }
    }

    /// Returns the latest deadline of all open calls; none if one has no end.
    pub(super) fn complete_at(&self) -> Option<Timestamp> {
        match self.by_time.last() {
            _ if is_planted(Plant::EdgesOff) => Some(Timestamp::default()),
            None => Some(Timestamp::default()),
            Some((until, _)) => (*until != FOREVER).then_some(*until),
        }
    }

    /// Returns the calls that the run still waits for.
    pub(super) fn open_at(&self, now: Timestamp) -> impl Iterator<Item = SpanId> {
        let is_waited = move |until: Timestamp| until > now && !is_planted(Plant::EdgesOff);
        self.by_time.iter().rev().take_while(move |(until, _)| is_waited(*until)).map(|(_, id)| *id)
    }

    pub(super) fn peers(&self) -> &[Peer] {
        &self.peers
    }

    /// Returns the peers that never sent a span, although the run waited for the other side of a call.
    pub(super) fn silent_peers(&self) -> BTreeSet<usize> {
        let ended = self.open.values().filter(|edge| !edge.is_error);
        ended.filter_map(|edge| edge.peer).filter(|peer| !self.peers[*peer].has_answered).collect()
    }

    /// Returns the peers of calls without another side, sorted by name, except that of the trigger's own call.
    pub(super) fn unanswered(&self, trigger: SpanId) -> Vec<UnansweredPeer> {
        let mut calls: BTreeMap<Option<usize>, u64> = BTreeMap::new();
        for (_, edge) in self.open.iter().filter(|(call, _)| **call != trigger) {
            *calls.entry(edge.peer).or_default() += 1;
        }
        let unanswered = |(peer, calls): (Option<usize>, u64)| {
            let peer = peer.map(|peer| &self.peers[peer]);
            UnansweredPeer {
                service: peer.map_or_else(String::new, |peer| peer.service.clone()),
                peer: peer.map_or_else(String::new, |peer| peer.name.clone()),
                calls,
                declared: peer.is_some_and(|peer| peer.known == PeerKind::Declared),
            }
        };
        let mut peers: Vec<_> = calls.into_iter().map(unanswered).collect();
        peers.sort_by(|one, other| (&one.peer, &one.service).cmp(&(&other.peer, &other.service)));
        peers.truncate(UNANSWERED_MAX);
        peers
    }

    /// Returns the calls of these peers that are not declared, sorted by id; with or without those that failed.
    pub(super) fn unanswered_calls(&self, trigger: SpanId, with_failed: bool) -> Vec<SpanId> {
        let is_meant = |edge: &Edge| {
            let peer = edge.peer.map(|peer| self.peers[peer].known);
            peer != Some(PeerKind::Declared) && (with_failed || !edge.is_error)
        };
        let open = self.open.iter().filter(|(call, edge)| **call != trigger && is_meant(edge));
        let mut calls: Vec<_> = open.map(|(call, _)| *call).collect();
        calls.sort_unstable();
        calls
    }

    fn peer_named(&mut self, service: &str, name: String, rules: &Rules) -> usize {
        let name = (service.to_owned(), name);
        if let Some(known) = self.by_name.get(&name) {
            return *known;
        }
        let learned = rules.learned.services.get(service);
        let known = match learned {
            _ if rules.absent.contains(&name.1) => PeerKind::Declared,
            Some(learned) if learned.instrumented.contains(&name.1) => PeerKind::Instrumented,
            Some(learned) if learned.is_leaf(&name.1) => PeerKind::Leaf,
            _ => PeerKind::Nothing,
        };
        let (service, peer) = name.clone();
        self.by_name.insert(name, self.peers.len());
        let calls = Vec::new();
        self.peers.push(Peer { service, name: peer, known, has_answered: false, calls });
        self.peers.len() - 1
    }

    /// Returns the quiet period of the called peer, as far as its name identifies it.
    fn quiet_of(&self, peer: Option<usize>, rules: &Rules) -> Duration {
        let learned = peer.and_then(|peer| rules.learned(&self.peers[peer].name));
        rules.flush.or(learned).unwrap_or(rules.unknown())
    }
}
