//! The settle engine: computes from spans and arrival times when the trace is complete.
//!
//! It never reads a clock. The cost of an arrival depends only on the new spans: the engine neither builds a tree nor visits
//! earlier spans again.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    time::Duration,
};

use model::{
    AbsentParents, LearnedProfile, LearnedService, ProcessQuiet, Settlement, SpanId, Timestamp,
    Trace, UnansweredPeer, UnsettledReason, trace::Span,
};

use super::{
    edges::{Edges, FOREVER},
    parents::Parents,
    peer::{is_call, is_entry, may_enter, peer},
    process::Processes,
    rules::Rules,
};

/// The state of a trace that is being collected.
#[derive(Debug)]
pub(crate) struct Engine {
    rules: Rules,
    /// The quiet period of an unknown process.
    unknown_quiet: Duration,
    processes: Processes,
    parents: Parents,
    edges: Edges,
    /// Spans that have not arrived and that the other side of a call links to.
    linked: HashMap<SpanId, usize>,
    /// The process of the first other side of each call that has one.
    answered: HashMap<SpanId, usize>,
    /// Processes with a span that named a parent of another process, and that parent arrived.
    present_parents: HashSet<usize>,
    /// Processes that were entered without a call that announced it, each after the process that entered it.
    unannounced: BTreeSet<(usize, usize)>,
    /// Processes that the trigger entered.
    entered: BTreeSet<usize>,
    spans: u64,
    last: Option<Timestamp>,
    /// The longest time from the last arrival, or from the response if that is later, to the next arrival.
    gap: Duration,
    has_trigger_come_back: bool,
    /// When the system had flushed all its spans on request.
    drained: Option<Timestamp>,
}

/// How a run ended, as far as it determines what can be learned from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TraceEnd {
    /// The trace was complete.
    Whole,
    /// The timeout expired, and no more spans were arriving.
    Late,
    /// More spans may have been on their way: the run did not wait for them, or they were lost.
    Early,
}

/// The upper bound of spans that one reason names.
const NAMED_MAX: usize = 1000;

/// The upper bound of nested spans for one call.
const NESTED_MAX: usize = 16;

impl Engine {
    pub(crate) fn new(rules: Rules) -> Self {
        let mut edges = Edges::default();
        edges.open_trigger(&rules);
        Self {
            unknown_quiet: rules.unknown_quiet(),
            rules,
            processes: Processes::default(),
            parents: Parents::default(),
            edges,
            linked: HashMap::new(),
            answered: HashMap::new(),
            present_parents: HashSet::new(),
            unannounced: BTreeSet::new(),
            entered: BTreeSet::new(),
            spans: 0,
            last: None,
            gap: Duration::ZERO,
            has_trigger_come_back: false,
            drained: None,
        }
    }

    /// Processes the spans from this number on, which arrived together.
    pub(crate) fn arrived(&mut self, trace: &Trace, from: usize, at: Timestamp) {
        for number in from..trace.len() {
            let span = trace.numbered_span(number);
            if span.id() == self.rules.trigger {
                self.has_trigger_come_back = true;
                continue;
            }
            self.gap = self.gap.max(at.since(self.last_moment()));
            self.last = self.last.max(Some(at));
            self.spans += 1;
            self.span(trace, span, at);
        }
    }

    /// Notes that the system was requested to flush its spans, and did.
    pub(crate) fn drained(&mut self, at: Timestamp) {
        self.drained = Some(at);
    }

    /// Returns when the trace is complete if no more spans arrive; none while an announced span is missing.
    pub(crate) fn whole_at(&self) -> Option<Timestamp> {
        if self.spans == 0 {
            return None;
        }
        let complete_at = self.parents.closed_at()?.max(self.edges.complete_at()?);
        Some(complete_at.max(self.quiet_at()).max(self.rules.answered))
    }

    /// Returns when a verdict on the trace is final if no more spans arrive; none while an announced span is missing.
    pub(crate) fn final_at(&self) -> Option<Timestamp> {
        self.whole_at().map(|at| at.max(self.linger_at()))
    }

    /// Returns until when the run waits for unannounced work. This also applies if all started processes have exited: a
    /// component between them and us may hold back their spans.
    fn linger_at(&self) -> Timestamp {
        self.last_moment().plus(self.rules.linger)
    }

    /// Returns how long a verdict is provisional.
    pub(crate) fn linger(&self) -> Duration {
        self.rules.linger
    }

    /// Returns the lag of the queried sources.
    pub(crate) fn lag(&self) -> Duration {
        self.rules.lag
    }

    /// Returns the longest gap between arrivals in this run.
    pub(crate) fn gap(&self) -> Duration {
        self.gap
    }

    /// Returns the longest gap of earlier runs.
    pub(crate) fn known_gap(&self) -> Duration {
        self.rules.gap
    }

    /// Returns the time of the last arrival, or of the response if that is later.
    fn last_moment(&self) -> Timestamp {
        self.last.map_or(self.rules.answered, |last| last.max(self.rules.answered))
    }

    /// Returns the peers that were called and sent no span, sorted by name.
    pub(crate) fn unanswered(&self) -> Vec<UnansweredPeer> {
        self.edges.unanswered(self.rules.trigger)
    }

    /// Returns the calls without another side that the test does not declare as absent, sorted by id.
    pub(crate) fn unanswered_calls(&self) -> Vec<SpanId> {
        self.edges.unanswered_calls(self.rules.trigger, true)
    }

    /// Returns those of them whose other side a query by trace id would not show if it had started a new trace: all that did not
    /// fail, if a source is queried. The receiver would see such a trace.
    pub(crate) fn unverifiable_calls(&self) -> Vec<SpanId> {
        let mut calls = match self.rules.is_queried {
            true => self.edges.unanswered_calls(self.rules.trigger, false),
            false => Vec::new(),
        };
        calls.truncate(NAMED_MAX);
        calls
    }

    /// Returns when every process of this run, and of earlier runs, has been quiet for its quiet period.
    pub(crate) fn quiet_at(&self) -> Timestamp {
        if let Some(drained) = self.drained {
            return drained.plus(self.rules.lag);
        }
        let quiet_at = self.processes.quiet_at();
        let unannounced_at = self.processes.unannounced_at(&self.rules);
        quiet_at.max(unannounced_at).unwrap_or(self.rules.answered)
    }

    /// Returns the quiet period of an unknown process.
    pub(crate) fn unknown_quiet(&self) -> Duration {
        self.unknown_quiet
    }

    /// Returns how long the run waits for a first span. It can never be wrong, since nothing is concluded from it.
    pub(crate) fn patience(&self) -> Duration {
        let (started, lag) = (self.rules.started.as_ref(), self.rules.lag);
        let quiet = started.map_or(self.unknown_quiet, |started| started.batch_delay * 2 + lag);
        self.rules.unknown().max(quiet * 2 - lag)
    }

    /// Returns why the trace is not complete.
    pub(crate) fn unsettled(&self, trace: &Trace, now: Timestamp) -> Vec<UnsettledReason> {
        if self.spans == 0 {
            return vec![UnsettledReason::NoTelemetry];
        }
        let mut unsettled = self.missing(trace, now);
        if self.quiet_at() > now {
            unsettled.push(UnsettledReason::NotQuiet);
        }
        unsettled
    }

    /// Returns the same, without checking the quiet periods.
    pub(crate) fn missing(&self, trace: &Trace, now: Timestamp) -> Vec<UnsettledReason> {
        let mut missing = Vec::new();
        let orphans = self.parents.open_at(now).into_iter().take(NAMED_MAX);
        let orphans: Vec<_> = orphans.map(|number| trace.numbered_span(number).id()).collect();
        if !orphans.is_empty() {
            missing.push(UnsettledReason::ParentsAbsent(orphans));
        }
        let calls: Vec<_> = self.edges.open_at(now).take(NAMED_MAX).collect();
        if !calls.is_empty() {
            missing.push(UnsettledReason::EdgesOpen(calls));
        }
        missing
    }

    pub(crate) fn processes(&self, now: Timestamp) -> Vec<ProcessQuiet> {
        self.processes.report(now)
    }

    /// Returns the number of spans that arrived, without the trigger's own span.
    pub(crate) fn spans(&self) -> u64 {
        self.spans
    }

    /// Returns the time of the last arrival.
    pub(crate) fn last(&self) -> Option<Timestamp> {
        self.last
    }

    pub(crate) fn is_drained(&self) -> bool {
        self.drained.is_some()
    }

    /// Whether the trigger's own span came back, for example through a Collector.
    pub(crate) fn has_trigger_come_back(&self) -> bool {
        self.has_trigger_come_back
    }

    /// Returns the service of a span that arrived.
    pub(crate) fn service(&self, span: Span<'_>) -> Option<&str> {
        let service = &self.processes.get(self.processes.known(span)?).service;
        (!service.is_empty()).then_some(service)
    }

    /// Returns the learned profile of this run.
    pub(crate) fn seen(&self, trace: &Trace, ending: TraceEnd) -> LearnedProfile {
        let mut seen = Services { services: BTreeMap::new() };
        let is_waited = matches!(ending, TraceEnd::Whole | TraceEnd::Late);
        for (service, (delay, is_started)) in self.processes.delays() {
            // A delay that we configured does not predict the next one. A delay that the run did not wait out may be too short,
            // but not too long.
            let known = self.rules.learned.services.get(service);
            let known = known.and_then(|known| known.delays_ns.iter().max().copied());
            let delay = crate::clock::nanos(delay);
            if !is_started && (is_waited || Some(delay) > known) {
                seen.of(service).delays_ns.push(delay);
                seen.of(service).runs = u32::from(is_waited);
            }
        }
        for peer in self.edges.peers().iter().filter(|peer| peer.has_answered) {
            seen.of(&peer.service).instrumented.insert(peer.name.clone());
        }
        if ending == TraceEnd::Whole {
            for peer in self.edges.silent_peers() {
                let peer = &self.edges.peers()[peer];
                seen.of(&peer.service).leaves.insert(peer.name.clone(), 1);
            }
        }
        for process in &self.present_parents {
            seen.of(self.service_of(*process)).present_parents = 1;
        }
        self.see_unannounced(&mut seen);
        if is_waited {
            let orphans = self.parents.all().map(|number| trace.numbered_span(number));
            let entered = orphans.filter(|span| may_enter(*span));
            let entered: BTreeSet<_> = entered.filter_map(|span| self.service(span)).collect();
            for service in entered {
                seen.of(service).absent_parents = 1;
                for other in self.processes.services() {
                    seen.unannounced(other, service);
                }
            }
        }
        LearnedProfile {
            services: seen.services.into_iter().filter(|(name, _)| !name.is_empty()).collect(),
            ..LearnedProfile::default()
        }
    }

    fn see_unannounced(&self, seen: &mut Services) {
        for (above, below) in &self.unannounced {
            seen.unannounced(self.service_of(*above), self.service_of(*below));
        }
        for one in &self.entered {
            for other in &self.entered {
                seen.unannounced(self.service_of(*one), self.service_of(*other));
            }
        }
    }

    fn service_of(&self, process: usize) -> &str {
        &self.processes.get(process).service
    }

    fn span(&mut self, trace: &Trace, span: Span<'_>, at: Timestamp) {
        let process = self.processes.arrived(span, at, &self.rules);
        let number = span.ix().number();
        // Of several spans with the same id, the first is the parent of all children.
        let is_first = trace.find(span.id()).is_none_or(|first| first.ix() == span.ix());
        if is_first {
            if is_call(span) {
                self.edges.open(span, at, self.processes.get(process), &self.rules);
                if self.answered.contains_key(&span.id()) {
                    self.edges.close(span.id());
                }
                if let Some(other) = self.linked.remove(&span.id()) {
                    self.answer(trace, span, other);
                }
            }
            for child in self.parents.came(span.id()) {
                self.pair(trace, span, trace.numbered_span(child));
            }
        }
        if let Some(parent) = span.parent() {
            // Some of the spans that arrived together are not processed yet.
            match trace.find(parent).filter(|parent| parent.ix().number() <= number) {
                Some(parent) => self.pair(trace, parent, span),
                None => self.parents.wait(number, parent, self.parent_until(span, at)),
            }
        }
        if is_entry(span) {
            self.links(trace, span, process);
        }
    }

    /// Connects a span with its parent: both have arrived.
    fn pair(&mut self, trace: &Trace, parent: Span<'_>, child: Span<'_>) {
        let Some(below) = self.processes.known(child) else { return };
        if parent.id() == self.rules.trigger {
            self.edges.answer_trigger(&self.rules);
            self.entered.insert(below);
            return;
        }
        let Some(above) = self.processes.known(parent) else { return };
        let is_remote = above != below;
        if is_remote {
            self.processes.called((above, parent), (below, child));
            if may_enter(child) {
                self.present_parents.insert(below);
            }
        }
        if is_call(parent) && (is_remote || is_entry(child)) {
            self.answer(trace, parent, below);
        } else if is_remote {
            self.unannounced.insert((above, below));
        } else if is_call(parent) && is_call(child) {
            // The call continues in the nested call, which waits in its stead if it names the same peer.
            if let Some(other) = self.answered.get(&child.id()) {
                self.goes_through(trace, child, (above, *other));
            } else if peer(parent).is_some_and(|one| peer(child) == Some(one)) {
                self.edges.close(parent.id());
            }
        }
    }

    /// Closes a call: its other side arrived, in this process.
    fn answer(&mut self, trace: &Trace, call: Span<'_>, other: usize) {
        let Some(process) = self.processes.known(call) else { return };
        let first = *self.answered.entry(call.id()).or_insert(other);
        if first != other {
            // One call has several other sides: it announces one of them.
            self.unannounced.extend([(process, first), (process, other)]);
        }
        self.edges.answer(call, self.processes.get(process), &self.rules);
        self.goes_through(trace, call, (process, other));
    }

    /// Closes the outer calls of a call in its own process: they have no other side than that of the call.
    fn goes_through(&mut self, trace: &Trace, call: Span<'_>, (process, other): (usize, usize)) {
        let mut inner = call;
        for _ in 0..NESTED_MAX {
            let outer = inner.parent().and_then(|id| trace.find(id));
            let is_same = |outer: &Span<'_>| self.processes.known(*outer) == Some(process);
            let Some(outer) = outer.filter(|outer| is_call(*outer) && is_same(outer)) else {
                break;
            };
            // The span may be part of the same message and not processed yet.
            self.answered.entry(outer.id()).or_insert(other);
            self.edges.close(outer.id());
            inner = outer;
        }
    }

    /// Closes the calls of which a span is the other side by a link, without being their child.
    fn links(&mut self, trace: &Trace, span: Span<'_>, process: usize) {
        for link in span.links().filter(|link| link.trace_id() == Some(trace.id())) {
            let Some(id) = link.span_id() else { continue };
            if id == self.rules.trigger {
                self.edges.answer_trigger(&self.rules);
                continue;
            }
            match trace.find(id).filter(|call| call.ix() < span.ix()) {
                Some(call) if is_call(call) => self.answer(trace, call, process),
                Some(_) => {}
                None => drop(self.linked.insert(id, process)),
            }
        }
    }

    /// Returns until when the run waits for the parent of a span: the service may be behind a component without spans.
    fn parent_until(&self, span: Span<'_>, at: Timestamp) -> Timestamp {
        let Some(service) = self.service(span).filter(|_| may_enter(span)) else { return FOREVER };
        let learned = self.rules.learned.services.get(service);
        let learned = learned.map_or(AbsentParents::Unknown, LearnedService::absent_parents);
        match learned {
            _ if self.rules.absent.contains(service) => Timestamp::default(),
            AbsentParents::Always => Timestamp::default(),
            // If there is a parent that sends spans, it arrives within its quiet period.
            AbsentParents::Sometimes => at.plus(self.unknown_quiet),
            AbsentParents::Unknown => FOREVER,
        }
    }
}

impl TraceEnd {
    /// Derives how a run ended from its settlement and from whether the run waited until its timeout.
    pub(crate) fn of(settlement: &Settlement, is_waited_out: bool) -> Self {
        let is_calm = |unsettled: &UnsettledReason| {
            use UnsettledReason::{EdgesOpen, ExpectedAbsent, ParentsAbsent};
            matches!(unsettled, ParentsAbsent(_) | EdgesOpen(_) | ExpectedAbsent(_))
        };
        match settlement.unsettled.as_slice() {
            [] => Self::Whole,
            unsettled if is_waited_out && unsettled.iter().all(is_calm) => Self::Late,
            _ => Self::Early,
        }
    }
}

impl Rules {
    /// Returns the declared quiet period, else the longest known one, and at least that of an unknown process.
    fn unknown_quiet(&self) -> Duration {
        self.flush.unwrap_or_else(|| {
            let services = self.learned.services.keys();
            services.filter_map(|service| self.learned(service)).fold(self.unknown(), Duration::max)
        })
    }
}

struct Services {
    services: BTreeMap<String, LearnedService>,
}

impl Services {
    fn of(&mut self, service: &str) -> &mut LearnedService {
        self.services.entry(service.to_owned()).or_default()
    }

    /// Notes a service that appeared in a run together with another, without a call that announced it.
    fn unannounced(&mut self, other: &str, service: &str) {
        if other != service && !service.is_empty() {
            self.of(other).unannounced.insert(service.to_owned());
        }
    }
}
