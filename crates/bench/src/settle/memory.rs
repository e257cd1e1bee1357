//! The true observations of earlier runs of a system, separate from the learned profile of the engine.

use std::collections::{HashMap, HashSet};

use super::{
    lateness::{FRESH, FRESH_RUNS, longest_gap},
    play::Parent,
    stage::{Script, StagedRun},
};

/// The upper bound of runs that count.
const RUNS_MAX: usize = 50;

#[derive(Default)]
pub(super) struct Memory {
    /// The largest true delay of each run, by service.
    delays: HashMap<usize, Vec<u64>>,
    /// Peers, by the calling service, with spans of their own.
    instrumented: HashSet<(usize, String)>,
    /// The longest gap before an arrival of each run, by test.
    gaps: HashMap<usize, Vec<u64>>,
}

impl Memory {
    /// Returns the largest delay of a service, if a span of it ever arrived.
    pub(super) fn delay(&self, service: usize) -> Option<u64> {
        self.delays.get(&service)?.iter().max().copied()
    }

    /// Whether a test has too few runs for a learned profile.
    pub(super) fn is_fresh(&self, test: usize) -> bool {
        self.gaps.get(&test).is_none_or(|gaps| gaps.len() < FRESH_RUNS)
    }

    /// Returns how long a run of a test has to linger after the last arrival: the longest gap of any of its runs, and on a fresh
    /// machine at least the fresh linger.
    pub(super) fn linger(&self, test: usize) -> u64 {
        let shown = self.gaps.get(&test).and_then(|gaps| gaps.iter().max().copied());
        let shown = shown.unwrap_or_default();
        if self.is_fresh(test) { shown.max(FRESH) } else { shown }
    }

    pub(super) fn is_instrumented(&self, service: usize, peer: &str) -> bool {
        self.instrumented.contains(&(service, peer.to_owned()))
    }

    /// Records the spans that arrived while the run received spans.
    pub(super) fn keep(&mut self, script: &Script<'_>, ended: &StagedRun) {
        let (spans, fates) = (&script.played.spans, &script.travel.fates);
        let heard = |number: usize| {
            let is_in_time = fates[number].at.is_some_and(|at| at < ended.watched_to);
            is_in_time && spans[number].trace == 0
        };
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
            push(self.delays.entry(service).or_default(), delay);
        }
        let gaps = self.gaps.entry(script.test.number).or_default();
        push(gaps, longest_gap(script, ended.watched_to));
    }
}

/// Appends the value of a run, and drops the oldest one beyond the bound.
fn push(shown: &mut Vec<u64>, one: u64) {
    shown.push(one);
    if shown.len() > RUNS_MAX {
        shown.remove(0);
    }
}
