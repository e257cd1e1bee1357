//! What earlier runs of a system have truly shown, kept apart from what the run believes to have learned.

use std::collections::{HashMap, HashSet};

use super::{
    play::Parent,
    stage::{Ended, Script},
};

/// As many runs as count.
const RUNS_MAX: usize = 50;

#[derive(Default)]
pub(super) struct Memory {
    /// The largest true delay of each run, by service.
    delays: HashMap<usize, Vec<u64>>,
    /// Peers, by the service that calls, whose other side was heard.
    instrumented: HashSet<(usize, String)>,
}

impl Memory {
    /// The largest delay of a service, if it was ever heard.
    pub(super) fn delay(&self, service: usize) -> Option<u64> {
        self.delays.get(&service)?.iter().max().copied()
    }

    pub(super) fn is_instrumented(&self, service: usize, peer: &str) -> bool {
        self.instrumented.contains(&(service, peer.to_owned()))
    }

    /// Keeps what was heard until nobody listened any more.
    pub(super) fn keep(&mut self, script: &Script<'_>, ended: &Ended) {
        let (spans, fates) = (&script.played.spans, &script.travel.fates);
        let heard = |number: usize| fates[number].at.is_some_and(|at| at < ended.watched_to);
        let mut largest: HashMap<usize, u64> = HashMap::new();
        for (number, span) in spans.iter().enumerate().filter(|(number, _)| heard(*number)) {
            let process = &script.system.processes[span.process];
            if let (Some(at), Some(end), false) = (fates[number].at, span.end, process.is_marked) {
                let delay = largest.entry(process.service).or_default();
                *delay = at.saturating_sub(end).max(*delay);
            }
            if let Some(caller) = span.caller.filter(|caller| heard(*caller))
                && (span.parent == Parent::Span(caller) || span.link == Some(caller))
                && let Some(peer) = spans[caller].peer()
            {
                let service = script.system.processes[spans[caller].process].service;
                self.instrumented.insert((service, peer));
            }
        }
        for (service, delay) in largest {
            let delays = self.delays.entry(service).or_default();
            delays.push(delay);
            if delays.len() > RUNS_MAX {
                delays.remove(0);
            }
        }
    }
}
