//! Appends arrivals to a trace, within the limits of a run, and feeds them to the engine.

use std::{collections::HashMap, sync::Arc};

use drivers::{AnswerGap, AppendError, Arrival, Batch, arrivals::QueriedSource};
use model::{
    Attempt, Settlement, SpanDetail, SpanId, StoreGap, StoreQueries, Timestamp, Trace,
    UnsettledReason,
    trace::{Span, SpanData, TraceFull},
};
use tokio::time::Instant;

use super::{engine::Engine, rules::Rules};
use crate::{
    clock::{Clock, nanos},
    plant::{Plant, is_planted},
    pool::Share,
    trigger_span,
};

/// The upper bounds of the trace of a run.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Spans.
    pub spans_max: usize,
    /// Bytes of OTLP.
    pub trace_bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { spans_max: 1_000_000, trace_bytes_max: 64 << 20 }
    }
}

/// A trace that is being collected: first the trigger's own span, then the spans that arrive.
#[derive(Debug)]
pub(crate) struct TraceBuffer {
    /// The trigger's own span; none if nothing was fired.
    trigger: Option<SpanData>,
    /// Shared with the judging threads; not shared when spans arrive.
    pub(crate) trace: Arc<Trace>,
    pub(crate) engine: Engine,
    clock: Clock,
    limits: Limits,
    /// The pool share that decodes large messages.
    share: Share,
    bytes: usize,
    has_overflowed: bool,
    has_lost: bool,
    /// The number of the first late span (late: after the verdict), and the time at which the first of them arrived.
    late: Option<(usize, Option<Timestamp>)>,
    /// What is proved of pushed spans, if that is needed.
    proof: Option<ProofState>,
    /// The queried sources.
    sources: Vec<SourceState>,
    /// If there are any, the source from which each span came first; none for pushed spans.
    origins: HashMap<SpanId, Option<usize>>,
}

/// What the answers of a queried source cover.
#[derive(Debug)]
struct SourceState {
    name: String,
    /// What it does not keep of spans.
    lacks: Vec<SpanDetail>,
    /// The beginning of its last complete answer.
    covered: Timestamp,
    /// Why its last answer covers nothing.
    gap: Option<AnswerGap>,
}

/// What is proved of pushed spans.
#[derive(Debug, Default)]
struct ProofState {
    /// All spans that were accepted until then are here.
    covered: Timestamp,
    /// Why no more is proved.
    doubt: Option<String>,
    /// Whether no later proof removes the doubt.
    is_lasting: bool,
}

/// The minimum size in bytes of a message that is decoded on a separate thread.
const LARGE_BYTES: usize = 1 << 20;

impl TraceBuffer {
    pub(crate) fn new(
        attempt: &Attempt,
        trigger: Option<SpanData>,
        rules: Rules,
        (clock, limits, share): (Clock, Limits, Share),
    ) -> Result<Self, TraceFull> {
        let mut trace = Trace::new(attempt.trace_id);
        if let Some(trigger) = &trigger {
            push_trigger(&mut trace, trigger)?;
        }
        Ok(Self {
            trigger,
            trace: Arc::new(trace),
            engine: Engine::new(rules),
            clock,
            limits,
            share,
            bytes: 0,
            has_overflowed: false,
            has_lost: false,
            late: None,
            proof: None,
            sources: Vec::new(),
            origins: HashMap::new(),
        })
    }

    /// Decodes the spans of an arrival and appends them, or moves the watermark.
    pub(crate) async fn take(mut self, arrival: Arrival) -> Self {
        let (source, at, bytes) = match arrival {
            Arrival::Spans { source, at, bytes } => (source, at, bytes),
            Arrival::Proof { began } => {
                let covered = self.clock.at(began);
                self.proof.get_or_insert_default().proved(covered);
                return self;
            }
            Arrival::Doubt { reason, is_lasting } => {
                self.proof.get_or_insert_default().doubted(reason, is_lasting);
                return self;
            }
            Arrival::Coverage { source, began } => {
                let source = &mut self.sources[source];
                source.covered = source.covered.max(self.clock.at(began));
                source.gap = None;
                return self;
            }
            Arrival::Lacks { source, lacks } => {
                self.sources[source].lacks = lacks;
                return self;
            }
            Arrival::Gap { source, gap } => {
                self.sources[source].gap = Some(gap);
                return self;
            }
        };
        if bytes.len() < LARGE_BYTES {
            self.read(source, at, &bytes);
            return self;
        }
        let share = self.share.clone();
        let read = move || {
            self.read(source, at, &bytes);
            self
        };
        share.run(read).await
    }

    /// Judges absence by the coverage of these sources from now on, and by proofs if they are needed: nothing is covered yet.
    pub(crate) fn require_coverage(&mut self, sources: &[QueriedSource], needs_proof: bool) {
        self.proof = needs_proof.then(ProofState::default);
        let uncovered = |source: &QueriedSource| SourceState {
            name: source.name.clone(),
            lacks: source.lacks.clone(),
            covered: Timestamp::from_nanos(0),
            gap: None,
        };
        self.sources = sources.iter().map(uncovered).collect();
    }

    /// Whether spans of the trace are pushed here: some were, or no source is queried.
    pub(crate) fn is_pushed(&self) -> bool {
        self.sources.is_empty() || self.origins.values().any(Option::is_none)
    }

    /// Returns what is proved of pushed spans, if the trace depends on that.
    fn needed_proof(&self) -> Option<&ProofState> {
        self.proof.as_ref().filter(|_| self.is_pushed())
    }

    /// Returns the time up to which absence is known in all sources. For spans that are pushed to this process alone it is now.
    pub(crate) fn watermark(&self) -> Timestamp {
        let now = self.clock.now();
        if is_planted(Plant::WatermarkNow) {
            return now;
        }
        // A doubt that lasts is a reason of its own, and nothing is gained by waiting.
        let proofs = self.needed_proof().filter(|proof| !proof.is_lasting);
        let covered = self.sources.iter().map(|source| source.covered);
        covered.chain(proofs.map(|proof| proof.covered)).fold(now, Timestamp::min)
    }

    fn read(&mut self, source: Option<usize>, at: Instant, bytes: &[u8]) {
        self.bytes += bytes.len();
        self.has_overflowed |= self.bytes > self.limits.trace_bytes_max;
        if self.has_overflowed {
            return;
        }
        let first_come = self.first_come(source, bytes);
        let bytes = first_come.as_ref().map_or(bytes, |batch| &*batch.bytes);
        let trace = Arc::make_mut(&mut self.trace);
        let from = trace.len();
        match drivers::append(trace, bytes) {
            Ok(_) => self.has_overflowed = trace.len() > self.limits.spans_max,
            Err(AppendError::Full(_)) => self.has_overflowed = true,
            // The component that forwarded these bytes has already decoded them once, so the loss is its own, not the sender's.
            Err(AppendError::Decode(_)) => self.has_lost = true,
        }
        let at = self.clock.at(at);
        if let Some((_, first @ None)) = &mut self.late
            && self.trace.len() > from
        {
            *first = Some(at);
        }
        self.engine.arrived(&self.trace, from, at);
    }

    /// Returns the spans of a message that no other source had before; none if all count. What several sources have is one span, though a store may
    /// have changed it: the first that came counts.
    fn first_come(&mut self, source: Option<usize>, bytes: &[u8]) -> Option<Batch> {
        if self.sources.is_empty() {
            return None;
        }
        let origins = &mut self.origins;
        let is_first = |id| *origins.entry(id).or_insert(source) == source;
        // What cannot be decoded is found where it is appended.
        drivers::only_ids(bytes, self.trace.id(), is_first).ok()
    }

    /// Marks the time of the verdict: spans that arrive from now on are late.
    pub(crate) fn judged_now(&mut self) {
        self.late = Some((self.trace.len(), None));
    }

    /// Returns the first late span, and its arrival time.
    pub(crate) fn first_late(&self) -> Option<(Timestamp, Span<'_>)> {
        let (from, at) = self.late?;
        Some((at?, self.trace.numbered_span(from)))
    }

    /// Whether no more spans count: there are too many, or a source refuses to be queried.
    pub(crate) fn is_closed(&self) -> bool {
        let is_refused = |source: &SourceState| matches!(source.gap, Some(AnswerGap::Refused(_)));
        self.has_overflowed || self.sources.iter().any(is_refused)
    }

    /// Returns why it is not known that no more spans came until a time: it has not come yet, or sources do not cover it.
    pub(crate) fn uncovered(&self, at: Timestamp) -> Vec<UnsettledReason> {
        if at > self.clock.now() {
            return vec![UnsettledReason::NotQuiet];
        }
        let behind = self.sources.iter().filter(|source| source.covered < at);
        let unproved = self.needed_proof().filter(|proof| proof.covered < at && !proof.is_lasting);
        let unproved = unproved.map(ProofState::reason);
        behind.map(SourceState::reason).chain(unproved).collect()
    }

    /// Returns the settlement of the trace at a time.
    pub(crate) fn settlement(&self, answered: Timestamp, now: Timestamp) -> Settlement {
        let mut unsettled = Vec::new();
        if self.has_overflowed {
            unsettled.push(UnsettledReason::TooLarge);
        }
        if self.has_lost {
            unsettled.push(UnsettledReason::SpansLost);
        }
        if let Some(proof) = self.needed_proof().filter(|proof| proof.is_lasting) {
            unsettled.push(proof.reason());
        }
        let known = self.watermark().min(now);
        unsettled.extend(self.unsettled(known));
        let processes = self.engine.processes(known);
        let last = self.engine.last();
        Settlement {
            unsettled,
            spans: self.engine.spans(),
            waited_ns: nanos(now.since(answered)),
            silent_ns: last.map(|last| nanos(now.since(last))),
            quiet_ns: processes.iter().map(|process| process.quiet_ns).max().unwrap_or(0),
            last_at: last,
            linger_ns: 0,
            logs: 0,
            drained: self.engine.is_drained(),
            processes,
            unanswered: self.engine.unanswered(),
            stores: self.sources.iter().map(|source| self.queries(source)).collect(),
        }
    }

    fn queries(&self, source: &SourceState) -> StoreQueries {
        let lacks = source.lacks.clone();
        StoreQueries { store: source.name.clone(), lag_ns: nanos(self.engine.lag()), lacks }
    }

    /// Returns why the trace is not complete. What is only unknown because a source did not answer has that reason.
    fn unsettled(&self, known: Timestamp) -> Vec<UnsettledReason> {
        let unsettled = self.engine.unsettled(&self.trace, known);
        let needed = self.needed_proof();
        if (self.sources.is_empty() && needed.is_none()) || unsettled.is_empty() {
            return unsettled;
        }
        let is_other = |reason: &UnsettledReason| *reason != UnsettledReason::NotQuiet;
        let has_gap = |source: &&SourceState| source.gap.is_some();
        let mut reasons: Vec<_> =
            self.sources.iter().filter(has_gap).map(SourceState::reason).collect();
        let has_doubt = |proof: &&ProofState| proof.doubt.is_some() && !proof.is_lasting;
        reasons.extend(needed.filter(has_doubt).map(ProofState::reason));
        if reasons.is_empty() && !unsettled.iter().all(is_other) {
            reasons = self.uncovered(self.engine.quiet_at());
        }
        reasons.extend(unsettled.into_iter().filter(is_other));
        reasons
    }

    /// Returns the announced spans that are missing now.
    pub(crate) fn missing(&self) -> Vec<UnsettledReason> {
        self.engine.missing(&self.trace, self.watermark())
    }

    /// Returns the trace to judge: with the trigger's span once, even if it came back through a Collector.
    pub(crate) fn judged(&self) -> Result<Arc<Trace>, TraceFull> {
        let Some(trigger) = self.trigger.as_ref().filter(|_| self.engine.has_trigger_come_back())
        else {
            return Ok(Arc::clone(&self.trace));
        };
        let mut trace = self.trace.without(trigger.id)?;
        push_trigger(&mut trace, trigger)?;
        Ok(Arc::new(trace))
    }
}

impl SourceState {
    /// Returns why the source covers no more.
    fn reason(&self) -> UnsettledReason {
        let gap =
            |message: &str| StoreGap { store: self.name.clone(), message: message.to_owned() };
        match &self.gap {
            Some(AnswerGap::Partial(why)) => UnsettledReason::StorePartial(gap(why)),
            Some(AnswerGap::Failed(why) | AnswerGap::Refused(why)) => {
                UnsettledReason::StoreUnread(gap(why))
            }
            None => UnsettledReason::StoreUnread(gap("no complete answer began late enough")),
        }
    }
}

impl ProofState {
    fn proved(&mut self, covered: Timestamp) {
        self.covered = self.covered.max(covered);
        if !self.is_lasting {
            self.doubt = None;
        }
    }

    fn doubted(&mut self, reason: String, is_lasting: bool) {
        if !self.is_lasting {
            (self.doubt, self.is_lasting) = (Some(reason), is_lasting);
        }
    }

    /// Returns why no more is proved.
    fn reason(&self) -> UnsettledReason {
        let none = "the bus of the servers gave no proof in time";
        UnsettledReason::Unproved(self.doubt.as_deref().unwrap_or(none).to_owned())
    }
}

fn push_trigger(trace: &mut Trace, trigger: &SpanData) -> Result<(), TraceFull> {
    let resource = trace.resource(trigger_span::resource())?;
    let scope = trace.scope(trigger_span::scope())?;
    trace.push(resource, scope, trigger.clone()).map(drop)
}
