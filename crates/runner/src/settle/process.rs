//! The processes of a trace, and the quiet period of each.
//!
//! A process is `service.name` with `service.instance.id`, else with host and pid. Clocks differ, so delays are corrected by
//! causality: a span does not start before the trigger was fired, nor end after it arrived.
//!
//! Deliberately absent: comparing the clocks of two processes with each other.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    time::Duration,
};

use model::{
    Because, ProcessQuiet, Timestamp,
    trace::{Attributes, ResourceIx, Span, ValueRef},
};

use super::{arrival_counts::ArrivalCounts, rules::Rules};
use crate::{
    clock::nanos,
    plant::{Plant, is_planted},
    started::MARKER,
};

/// The upper bound of processes that are distinguished. Further ones count as one, which must be as quiet as each of them.
pub(super) const PROCESSES_MAX: usize = 256;

/// The minimum wait.
pub(super) const LEAST: Duration = Duration::from_millis(20);

/// The wait for an unknown process: longer than the default batch delay of SDKs.
pub(super) const UNKNOWN: Duration = Duration::from_secs(6);

/// The processes that sent spans, in order of arrival.
#[derive(Debug, Default)]
pub(super) struct Processes {
    list: Vec<ProcessState>,
    by_name: HashMap<(String, Option<String>), usize>,
    by_resource: HashMap<ResourceIx, usize>,
    /// The names of all services of these processes.
    services: HashSet<String>,
}

#[derive(Debug)]
pub(super) struct ProcessState {
    pub(super) service: String,
    instance: Option<String>,
    /// Whether each of its resources carries the marker of a process that we started.
    is_started: bool,
    /// The upper bound of the quiet period that it gets for being late.
    quiet_max: Duration,
    /// The lag of the queried sources.
    lag: Duration,
    /// The quiet period that applies whatever this run shows.
    base: (Duration, Because),
    spans: u64,
    arrivals: ArrivalCounts,
    last: Timestamp,
    /// The time from a span's end by its clock to its arrival by ours: minimum and maximum.
    lags: Option<(i128, i128)>,
    /// The upper bound by which its clock is ahead of ours: no span starts before its caller, nor before the trigger.
    head: Option<i128>,
    /// The time from the start of the run to its last arrival: no span took longer.
    elapsed: Duration,
}

impl Processes {
    /// Processes a span that arrived, and returns the index of its process.
    pub(super) fn arrived(&mut self, span: Span<'_>, at: Timestamp, rules: &Rules) -> usize {
        let index = self.of(span, rules);
        let process = &mut self.list[index];
        process.spans += 1;
        process.arrivals.add(at);
        process.last = process.last.max(at);
        process.elapsed = process.last.since(rules.began);
        // Zero means that the sender set no end time.
        if span.end() != Timestamp::default() {
            let lag = difference(at, span.end());
            let (least, most) = process.lags.unwrap_or((lag, lag));
            process.lags = Some((least.min(lag), most.max(lag)));
        }
        if rules.is_fired && span.start() != Timestamp::default() {
            process.starts_after(difference(span.start(), rules.began));
        }
        index
    }

    /// Notes that a span of another process called a span, so that it did not start earlier.
    pub(super) fn called(
        &mut self,
        (above, parent): (usize, Span<'_>),
        (below, child): (usize, Span<'_>),
    ) {
        let is_told = [parent, child].iter().all(|span| span.start() != Timestamp::default());
        if let Some(head) = self.list[above].head.filter(|_| is_told) {
            let later = difference(child.start(), parent.start());
            self.list[below].starts_after(head.saturating_add(later));
        }
    }

    /// Returns until when to wait for services that appeared unannounced in earlier runs, and have not appeared in this one.
    pub(super) fn unannounced_at(&self, rules: &Rules) -> Option<Timestamp> {
        let mut last: Option<Timestamp> = None;
        for process in self.named() {
            let Some(learned) = rules.learned.services.get(&process.service) else { continue };
            for service in &learned.unannounced {
                if !self.services.contains(service) {
                    let quiet = rules.base(service, false).0.max(LEAST);
                    last = last.max(Some(process.last.max(rules.answered).plus(quiet)));
                }
            }
        }
        last
    }

    /// Returns the services of the distinguished processes.
    pub(super) fn services(&self) -> BTreeSet<&str> {
        self.named().map(|process| process.service.as_str()).collect()
    }

    /// Returns the index of the process of a span that was processed.
    pub(super) fn known(&self, span: Span<'_>) -> Option<usize> {
        self.by_resource.get(&span.resource_ix()).copied()
    }

    pub(super) fn get(&self, index: usize) -> &ProcessState {
        &self.list[index]
    }

    /// Returns when the last process completes its quiet period.
    pub(super) fn quiet_at(&self) -> Option<Timestamp> {
        self.list.iter().map(|process| process.last.plus(process.quiet().0)).max()
    }

    /// Returns the largest delay of each service, and whether the service keeps its spans no longer than we configured.
    pub(super) fn delays(&self) -> BTreeMap<&str, (Duration, bool)> {
        let mut delays: BTreeMap<&str, (Duration, bool)> = BTreeMap::new();
        for process in self.named() {
            let known = delays.entry(&process.service).or_insert((Duration::ZERO, true));
            *known = (known.0.max(process.delay()), known.1 && process.is_started);
        }
        delays
    }

    pub(super) fn report(&self, now: Timestamp) -> Vec<ProcessQuiet> {
        let report = |process: &ProcessState| {
            let (quiet, because) = process.quiet();
            ProcessQuiet {
                service: process.service.clone(),
                instance: process.instance.clone(),
                spans: process.spans,
                delay_ns: nanos(process.delay()),
                silent_ns: nanos(now.since(process.last)),
                quiet_ns: nanos(quiet),
                because,
                arrivals: process.arrivals.report(now),
            }
        };
        self.list.iter().map(report).collect()
    }

    /// Returns the processes that are distinguished.
    fn named(&self) -> impl Iterator<Item = &ProcessState> {
        self.list.iter().take(PROCESSES_MAX)
    }

    fn of(&mut self, span: Span<'_>, rules: &Rules) -> usize {
        if let Some(index) = self.known(span) {
            return index;
        }
        let attributes = span.resource().attributes();
        let service = text(attributes, "service.name").unwrap_or_default();
        let is_started = rules.is_started(attributes);
        let base = rules.base(&service, is_started);
        self.services.insert(service.clone());
        let index = self.named_so((service, instance(attributes)), rules);
        let process = &mut self.list[index];
        process.is_started &= is_started;
        if base.0 >= process.base.0 {
            process.base = base;
        }
        self.by_resource.insert(span.resource_ix(), index);
        index
    }

    fn named_so(&mut self, name: (String, Option<String>), rules: &Rules) -> usize {
        if let Some(index) = self.by_name.get(&name) {
            return *index;
        }
        if self.list.len() > PROCESSES_MAX {
            return PROCESSES_MAX;
        }
        let is_rest = self.list.len() == PROCESSES_MAX;
        let (service, instance) = if is_rest { Default::default() } else { name.clone() };
        if !is_rest {
            self.by_name.insert(name, self.list.len());
        }
        self.list.push(ProcessState {
            service,
            instance,
            is_started: true,
            quiet_max: rules.quiet_max,
            lag: rules.lag,
            base: (Duration::ZERO, Because::Least),
            spans: 0,
            arrivals: ArrivalCounts::default(),
            last: Timestamp::default(),
            lags: None,
            head: None,
            elapsed: Duration::ZERO,
        });
        self.list.len() - 1
    }
}

impl ProcessState {
    fn starts_after(&mut self, head: i128) {
        self.head = Some(self.head.map_or(head, |known| known.min(head)));
    }

    /// Returns the quiet period of the process, and its reason.
    fn quiet(&self) -> (Duration, Because) {
        let seen = self.delay().saturating_mul(3) / 2 + self.lag;
        let seen = (seen.min(self.quiet_max), Because::Seen);
        // Of equal periods the first is named, which applies in every run.
        [self.base, seen].into_iter().fold((LEAST, Because::Least), |most, one| {
            if one.0 > most.0 || (one.0 == most.0 && one.1 == self.base.1) { one } else { most }
        })
    }

    /// Returns the longest time from a span's end to its arrival. It is never underestimated.
    fn delay(&self) -> Duration {
        let Some((_, most)) = self.lags else { return Duration::ZERO };
        duration(most.saturating_add(self.ahead())).min(self.elapsed)
    }

    /// Returns the upper bound by which its clock is ahead of ours.
    ///
    /// A process that we started has our clock unless that is impossible. Spans that were written with old times contradict the
    /// others and are no evidence about a clock. A bound far above the required minimum rather means that the service was
    /// called late.
    fn ahead(&self) -> i128 {
        let least = self.lags.map_or(0, |(least, _)| -least);
        match self.head {
            Some(0..) | None if self.is_started && least <= 0 => 0,
            Some(most) if most >= least => {
                most.min(least.max(0).saturating_add_unsigned(UNKNOWN.as_nanos()))
            }
            _ => least.max(0),
        }
    }
}

impl Rules {
    /// Returns the quiet period of a service that applies whatever this run shows, and its reason.
    fn base(&self, service: &str, is_started: bool) -> (Duration, Because) {
        let known = self.known(service, is_started);
        // If its spans once arrived later than any rule predicted, they may do so again.
        let late = self.learned.services.get(service).map_or(0, |learned| learned.late_ns);
        let late = self.with_margin(Duration::from_nanos(late));
        if late > known.0 { (late, Because::Learned) } else { known }
    }

    fn known(&self, service: &str, is_started: bool) -> (Duration, Because) {
        if let Some(flush) = self.flush {
            return (flush, Because::Declared);
        }
        if let Some(started) = self.started.as_ref().filter(|_| is_started) {
            return (started.batch_delay * 2 + self.lag, Because::Started);
        }
        match self.learned(service) {
            // The delay of an exporter is no reason to wait less than the work has needed.
            Some(quiet) => (quiet.max(self.gap.min(self.quiet_max)), Because::Learned),
            // An observation that lengthens a wait counts at once.
            None => match self.shown(service) {
                Some(shown) if shown > self.unknown() => (shown, Because::Learned),
                _ => (self.unknown(), Because::Unknown),
            },
        }
    }

    /// Returns the quiet period that follows from the longest delay of a service, however few runs have shown it.
    fn shown(&self, service: &str) -> Option<Duration> {
        let longest = self.learned.services.get(service)?.delays_ns.iter().max()?;
        Some(self.with_margin(Duration::from_nanos(*longest)))
    }

    /// Returns the quiet period of a service from the learned profile.
    pub(super) fn learned(&self, service: &str) -> Option<Duration> {
        let service = self.learned.services.get(service);
        let delay = match is_planted(Plant::LearnsEarly) {
            true => service.and_then(|it| it.delays_ns.last().copied().map(Duration::from_nanos)),
            false => service.and_then(model::LearnedService::delay),
        };
        delay.map(|delay| self.with_margin(delay))
    }

    /// Returns the quiet period that follows from a delay. A delay that was seen through a store does not bound how long the
    /// store hides the next span.
    fn with_margin(&self, delay: Duration) -> Duration {
        (delay.saturating_mul(3) / 2 + self.lag).min(self.quiet_max)
    }

    fn is_started(&self, resource: Attributes<'_>) -> bool {
        let marker = self.started.as_ref().map(|started| started.marker.as_str());
        marker.is_some()
            && matches!(resource.get(MARKER), Some(ValueRef::Str(it)) if Some(it) == marker)
    }
}

/// Returns the instance of a service, if its resource identifies it.
fn instance(resource: Attributes<'_>) -> Option<String> {
    let id = text(resource, "service.instance.id");
    id.or_else(|| match (text(resource, "host.name"), text(resource, "process.pid")) {
        (None, None) => None,
        (host, pid) => Some(format!("{}:{}", host.unwrap_or_default(), pid.unwrap_or_default())),
    })
}

/// Returns the value of a key as text, if it is a non-empty text or an integer.
pub(crate) fn text(attributes: Attributes<'_>, key: &str) -> Option<String> {
    match attributes.get(key)? {
        ValueRef::Str(text) if !text.is_empty() => Some(text.to_owned()),
        ValueRef::Int(number) => Some(number.to_string()),
        _ => None,
    }
}

fn difference(later: Timestamp, earlier: Timestamp) -> i128 {
    i128::from(later.as_nanos()) - i128::from(earlier.as_nanos())
}

fn duration(nanos: i128) -> Duration {
    Duration::from_nanos(u64::try_from(nanos.max(0)).unwrap_or(u64::MAX))
}
