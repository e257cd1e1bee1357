//! The processes of a trace, and the quiet that each has to keep.
//!
//! A process is `service.name` with `service.instance.id`, else with host and pid. Clocks differ, so that delays are
//! corrected by what cannot be: a span does not start before the trigger was fired, nor end after it arrived.
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

use super::Rules;
use crate::{
    MARKER,
    clock::nanos,
    plant::{Plant, is_planted},
};

/// How many processes are told apart. Further ones count as one, which has to be as quiet as each of them.
pub(super) const PROCESSES_MAX: usize = 256;

/// The least that is ever waited.
pub(super) const LEAST: Duration = Duration::from_millis(20);

/// What is waited for a process of which nothing is known: longer than SDKs keep their spans by default.
pub(super) const UNKNOWN: Duration = Duration::from_secs(6);

/// The processes that sent spans, in the order they came.
#[derive(Debug, Default)]
pub(super) struct Processes {
    list: Vec<ProcessState>,
    by_name: HashMap<(String, Option<String>), usize>,
    by_resource: HashMap<ResourceIx, usize>,
    /// The names of all their services.
    services: HashSet<String>,
}

#[derive(Debug)]
pub(super) struct ProcessState {
    pub(super) service: String,
    instance: Option<String>,
    /// Whether each of its resources says that we started it.
    is_started: bool,
    /// What it has to keep at most for being late.
    quiet_max: Duration,
    /// What it has to keep whatever this run shows.
    base: (Duration, Because),
    spans: u64,
    last: Timestamp,
    /// From a span's end by its clock to its arrival by ours: the least and the most.
    lags: Option<(i128, i128)>,
    /// By how much its clock is ahead of ours at most: nothing starts before what called it, nor before the trigger.
    head: Option<i128>,
    /// From the begin of the run to its last arrival: no span took longer.
    elapsed: Duration,
}

impl Processes {
    /// Takes note of a span that arrived, and says whose it is.
    pub(super) fn arrived(&mut self, span: Span<'_>, at: Timestamp, rules: &Rules) -> usize {
        let index = self.of(span, rules);
        let process = &mut self.list[index];
        process.spans += 1;
        process.last = process.last.max(at);
        process.elapsed = process.last.since(rules.began);
        // Zero means that nobody said when.
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

    /// A span was called by one of another process, so that it did not start before that.
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

    /// Until when services are waited for that came unannounced in earlier runs, and have not come in this one.
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

    /// The services of those that are told apart.
    pub(super) fn services(&self) -> BTreeSet<&str> {
        self.named().map(|process| process.service.as_str()).collect()
    }

    /// Whose a span is that was taken note of.
    pub(super) fn known(&self, span: Span<'_>) -> Option<usize> {
        self.by_resource.get(&span.resource_ix()).copied()
    }

    pub(super) fn get(&self, index: usize) -> &ProcessState {
        &self.list[index]
    }

    /// When the last of them has been quiet for long enough.
    pub(super) fn quiet_at(&self) -> Option<Timestamp> {
        self.list.iter().map(|process| process.last.plus(process.quiet().0)).max()
    }

    /// The largest delay of each service, and whether it keeps its spans for no longer than it was told.
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
            }
        };
        self.list.iter().map(report).collect()
    }

    /// Those that are told apart.
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
        let index = self.named_so((service, instance(attributes)), rules.quiet_max);
        let process = &mut self.list[index];
        process.is_started &= is_started;
        if base.0 >= process.base.0 {
            process.base = base;
        }
        self.by_resource.insert(span.resource_ix(), index);
        index
    }

    fn named_so(&mut self, name: (String, Option<String>), quiet_max: Duration) -> usize {
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
            quiet_max,
            base: (Duration::ZERO, Because::Least),
            spans: 0,
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

    /// For how long it has to be quiet, and why.
    fn quiet(&self) -> (Duration, Because) {
        let seen = (self.delay().saturating_mul(3) / 2, Because::Seen);
        let seen = (seen.0.min(self.quiet_max), seen.1);
        // Of equals the first is named, which is the one that holds in every run.
        [self.base, seen].into_iter().fold((LEAST, Because::Least), |most, one| {
            if one.0 > most.0 || (one.0 == most.0 && one.1 == self.base.1) { one } else { most }
        })
    }

    /// The longest from a span's end to its arrival, never less than it was.
    fn delay(&self) -> Duration {
        let Some((_, most)) = self.lags else { return Duration::ZERO };
        duration(most.saturating_add(self.ahead())).min(self.elapsed)
    }

    /// How far its clock is ahead of ours, at most.
    ///
    /// What we started has our clock unless it cannot. Spans that were written with times of long ago contradict the others and say
    /// nothing about a clock. What is far from the least that it must be is rather a service that was called late.
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
    /// What a process of this service has to keep whatever this run shows, and why.
    fn base(&self, service: &str, is_started: bool) -> (Duration, Because) {
        let known = self.known(service, is_started);
        // Once its spans came later than anyone could know, they may again.
        let late = self.learned.services.get(service).map_or(0, |learned| learned.late_ns);
        let late = self.with_margin(Duration::from_nanos(late));
        if late > known.0 { (late, Because::Learned) } else { known }
    }

    fn known(&self, service: &str, is_started: bool) -> (Duration, Because) {
        if let Some(flush) = self.flush {
            return (flush, Because::Declared);
        }
        if let Some(started) = self.started.as_ref().filter(|_| is_started) {
            return (started.batch_delay * 2, Because::Started);
        }
        match self.learned(service) {
            // What an exporter shows is no reason to wait for less than the work has needed.
            Some(quiet) => (quiet.max(self.gap.min(self.quiet_max)), Because::Learned),
            // What lengthens a wait counts at once.
            None => match self.shown(service) {
                Some(shown) if shown > UNKNOWN => (shown, Because::Learned),
                _ => (UNKNOWN, Because::Unknown),
            },
        }
    }

    /// The quiet that the longest delay of a service asks for, however few runs have shown it.
    fn shown(&self, service: &str) -> Option<Duration> {
        let longest = self.learned.services.get(service)?.delays_ns.iter().max()?;
        Some(self.with_margin(Duration::from_nanos(*longest)))
    }

    /// The quiet that earlier runs ask of a service.
    pub(super) fn learned(&self, service: &str) -> Option<Duration> {
        let service = self.learned.services.get(service);
        let delay = match is_planted(Plant::LearnsEarly) {
            true => service.and_then(|it| it.delays_ns.last().copied().map(Duration::from_nanos)),
            false => service.and_then(model::LearnedService::delay),
        };
        delay.map(|delay| self.with_margin(delay))
    }

    fn with_margin(&self, delay: Duration) -> Duration {
        (delay.saturating_mul(3) / 2).min(self.quiet_max)
    }

    fn is_started(&self, resource: Attributes<'_>) -> bool {
        let marker = self.started.as_ref().map(|started| started.marker.as_str());
        marker.is_some()
            && matches!(resource.get(MARKER), Some(ValueRef::Str(it)) if Some(it) == marker)
    }
}

/// Which process of its service it is, as far as it says.
fn instance(resource: Attributes<'_>) -> Option<String> {
    let id = text(resource, "service.instance.id");
    id.or_else(|| match (text(resource, "host.name"), text(resource, "process.pid")) {
        (None, None) => None,
        (host, pid) => Some(format!("{}:{}", host.unwrap_or_default(), pid.unwrap_or_default())),
    })
}

/// The value of a key as text, if it is a text or a number.
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
