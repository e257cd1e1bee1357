//! The offsets between host clocks that causality allows, and the relations that hold for them.
//!
//! A clock's offset is the amount that has to be added to its times to get the true ones. Each rule gives an upper bound of the
//! difference of two offsets; the bounds are closed transitively over all paths between hosts.

use std::collections::HashMap;

use super::{
    trace::{RefereeKind, RefereeSpan, Status},
    truth::{Member, Truths},
};

/// A value far beyond every time of a trace, for "no bound".
const UNBOUNDED: i128 = i128::MAX / 8;

#[derive(Debug)]
pub(super) struct Clocks {
    host_of: Vec<usize>,
    /// By two hosts: the upper bound of the offset of the first minus the offset of the second.
    most: Vec<Vec<i128>>,
}

impl Clocks {
    pub(super) fn new(spans: &[RefereeSpan]) -> Self {
        let mut hosts = HashMap::new();
        let host_of: Vec<usize> = spans
            .iter()
            .map(|span| {
                let next = hosts.len();
                *hosts.entry(span.host.as_str()).or_insert(next)
            })
            .collect();
        let mut most = vec![vec![UNBOUNDED; hosts.len()]; hosts.len()];
        for (host, row) in most.iter_mut().enumerate() {
            row[host] = 0;
        }
        for (child, span) in spans.iter().enumerate() {
            let parent = spans.iter().position(|it| Some(it.id) == span.parent);
            let Some(parent) = parent else { continue };
            let (above, below) = (host_of[parent], host_of[child]);
            if above == below {
                continue;
            }
            let mut bound = |first: usize, second: usize, most_of: i128| {
                most[first][second] = most[first][second].min(most_of);
            };
            let caller = &spans[parent];
            // A parent starts before its child.
            bound(above, below, i128::from(span.start) - i128::from(caller.start));
            // A server works while its client waits, unless the client failed.
            let is_call = caller.kind == RefereeKind::Client && span.kind == RefereeKind::Server;
            if let (true, Some(waited), Some(served)) = (is_call, caller.end, span.end)
                && !has_failed(caller)
                && served - span.start <= waited - caller.start
            {
                bound(below, above, i128::from(waited) - i128::from(served));
            }
        }
        close(&mut most);
        Self { host_of, most }
    }

    /// Whether no offsets at all satisfy the bounds.
    pub(super) fn contradict(&self) -> bool {
        self.most.iter().enumerate().any(|(host, row)| row[host] < 0)
    }

    pub(super) fn is_one_host(&self, first: usize, second: usize) -> bool {
        self.host_of[first] == self.host_of[second]
    }

    pub(super) fn host(&self, span: usize) -> usize {
        self.host_of[span]
    }

    /// Returns the minimum and the maximum shift of the first span's times for a comparison with times of the second; none where
    /// there is no bound.
    pub(super) fn shift(&self, first: usize, second: usize) -> (Option<i128>, Option<i128>) {
        self.shift_of_hosts(self.host_of[first], self.host_of[second])
    }

    pub(super) fn shift_of_hosts(
        &self,
        first: usize,
        second: usize,
    ) -> (Option<i128>, Option<i128>) {
        let bound = |most: i128| (most < UNBOUNDED).then_some(most);
        (bound(self.most[second][first]).map(|most| -most), bound(self.most[first][second]))
    }

    /// Evaluates a relation of two spans for the allowed shifts of the first span's times: it can only change where two times
    /// coincide, so it is evaluated there, beside there, and at the bounds.
    pub(super) fn relation(
        &self,
        first: usize,
        second: usize,
        times: [&[i128]; 2],
        holds: impl Fn(i128) -> bool,
    ) -> Truths {
        let mut truths = Truths::EMPTY;
        for shift in shifts(self.shift(first, second), times) {
            truths |= Truths::of(holds(shift));
        }
        truths
    }

    /// Whether the first span starts before the second one.
    pub(super) fn starts_before(
        &self,
        spans: &[RefereeSpan],
        first: usize,
        second: usize,
    ) -> Member {
        let start = |span: usize| i128::from(spans[span].start);
        let (a, b) = (start(first), start(second));
        let (least, most) = self.shift(first, second);
        // At the bound of an interval both may start at the same time; a parent is still the first then.
        let always = most.is_some_and(|most| a + most <= b) && least != Some(b - a);
        let never = least.is_some_and(|least| a + least >= b);
        match (always, never) {
            (true, _) => Member::Yes,
            (_, true) => Member::No,
            _ => Member::Maybe,
        }
    }
}

/// Returns the shifts within the bounds where a relation may change.
pub(super) fn shifts(
    (least, most): (Option<i128>, Option<i128>),
    [moved, fixed]: [&[i128]; 2],
) -> Vec<i128> {
    let mut all: Vec<i128> = least.into_iter().chain(most).collect();
    for from in moved {
        for to in fixed {
            all.extend([to - from - 1, to - from, to - from + 1]);
        }
    }
    all.retain(|shift| {
        least.is_none_or(|least| *shift >= least) && most.is_none_or(|most| *shift <= most)
    });
    all.sort_unstable();
    all.dedup();
    all
}

fn has_failed(client: &RefereeSpan) -> bool {
    client.status == Status::Error || client.attributes.iter().any(|(key, _)| key == "error.type")
}

fn close(most: &mut [Vec<i128>]) {
    let hosts = most.len();
    for middle in 0..hosts {
        for first in 0..hosts {
            for second in 0..hosts {
                let way = most[first][middle].saturating_add(most[middle][second]);
                if most[first][middle] < UNBOUNDED && most[middle][second] < UNBOUNDED {
                    most[first][second] = most[first][second].min(way);
                }
            }
        }
    }
}
