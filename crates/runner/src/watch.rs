//! Receives late spans after the verdict.
//!
//! While a verdict is provisional, spans that arrive count: [`LateSpanMonitor::linger`] listens until it is final, and
//! [`LateSpanMonitor::conclude`] re-judges. After the final verdict [`LateSpanMonitor::until`] judges late spans without
//! storing the result, and returns whether they lead to another verdict.

use std::{future::Future, pin::pin, sync::Arc};

use drivers::{Arrival, Arrivals};
use model::{
    LearnedProfile, LearnedService, LearnedTest, Outcome, Overtaken, Settlement, SupersededVerdict,
    TextMut, Trace, UnsettledReason, Verdict, What,
};
use tokio::time::{Instant, sleep_until};

use crate::{
    clock::nanos,
    judging::JudgementContext,
    names,
    ports::{LeaseLost, Ports, tell},
    settle::{self, LingerState, TraceBuffer, TraceEnd},
    subject::{JudgedTrace, Subject, tellable},
};

/// A run that has its verdict, and still receives its spans.
#[derive(Debug)]
pub struct LateSpanMonitor {
    pub(crate) gathering: TraceBuffer,
    pub(crate) arrivals: Arrivals,
    pub(crate) subject: Arc<Subject>,
    pub(crate) lingering: LingerState,
    pub(crate) settlement: Settlement,
    pub(crate) verdict: Verdict,
    pub(crate) judged_at: Instant,
    /// Whether the verdict must linger.
    pub(crate) is_provisional: bool,
    /// Whether the run's own timeout ended it.
    pub(crate) is_cut: bool,
    /// The id of the test.
    pub(crate) test: String,
    /// The learned profile of the run so far.
    pub(crate) seen: LearnedProfile,
}

/// A run with a final verdict.
#[derive(Debug)]
pub struct FinalRun {
    /// The final outcome.
    pub outcome: Outcome,
    /// The trace by which it was judged.
    pub trace: Option<Arc<Trace>>,
    /// The learned profile of the run since its provisional verdict.
    pub seen: LearnedProfile,
}

/// The result of the watch after the verdict.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WatchEnd {
    /// The verdict with the late spans, if it differs.
    pub overtaken: Option<Overtaken>,
    /// The learned profile of the late spans, in addition to that of the run.
    pub seen: LearnedProfile,
}

/// The share of time that is spent on judging: one part in this many.
const JUDGING_SHARE: u32 = 20;

/// Late spans that were not judged yet: the arrival time and the number of the first.
struct News {
    at: Instant,
    from: usize,
}

impl LateSpanMonitor {
    /// Whether spans may still change the verdict.
    pub fn is_provisional(&self) -> bool {
        self.is_provisional
    }

    pub(crate) fn of_test(mut self, test: &str) -> Self {
        test.clone_into(&mut self.test);
        self
    }

    /// Listens until the verdict is final, calls `ready`, and continues until `end`. Spans that arrive are added to the trace.
    pub async fn linger(mut self, ready: impl FnOnce(), end: impl Future<Output = ()>) -> Self {
        let arrivals = &mut self.arrivals;
        self.gathering = match self.is_provisional {
            true => settle::linger(self.gathering, &self.lingering, arrivals, ready, end).await,
            false => {
                ready();
                settle::listen(self.gathering, arrivals, end).await
            }
        };
        self
    }

    /// Returns the final outcome, from the provisional one and the spans that arrived since. Reports the verdict as an event.
    pub async fn conclude<P: Ports>(
        &mut self,
        provisional: Outcome,
        ports: &P,
    ) -> Result<FinalRun, LeaseLost> {
        let concluded = self.final_run(provisional, ports).await?;
        Ok(FinalRun { seen: self.as_learned(concluded.seen), ..concluded })
    }

    /// Returns what this run has seen as a part of the complete profile: separate for each source of spans.
    pub(crate) fn as_learned(&self, seen: LearnedProfile) -> LearnedProfile {
        seen.seen_through(&names(self.arrivals.sources()))
    }

    async fn final_run<P: Ports>(
        &mut self,
        provisional: Outcome,
        ports: &P,
    ) -> Result<FinalRun, LeaseLost> {
        let mut concluded = FinalRun {
            trace: None,
            seen: self.seen_in_all(),
            outcome: Outcome { provisional: false, ..provisional },
        };
        let late = self.gathering.engine.spans() - self.settlement.spans;
        if self.is_final() || self.is_cut || !(self.is_provisional || late > 0) {
            return Ok(concluded);
        }
        let mut settlement = self.settlement_now().await;
        self.subject.add_doubts(ports, &self.gathering, &mut settlement).await?;
        if late == 0 && settlement.unsettled == self.settlement.unsettled {
            self.settlement.linger_ns = settlement.linger_ns;
            if let Some(told) = &mut concluded.outcome.settlement {
                told.linger_ns = settlement.linger_ns;
            }
        } else if let Some(judged) = self.rejudge(settlement).await {
            let steps = std::mem::take(&mut concluded.outcome.steps);
            let earlier = std::mem::take(&mut concluded.outcome.earlier);
            let before = concluded.outcome.verdict;
            let outcome = self.subject.outcome(ports, &judged, (steps, false)).await;
            let is_other = outcome.verdict != before;
            let superseded = is_other.then(|| self.superseded(before, late));
            if let Some(superseded) = &superseded {
                self.learn_superseded(superseded, &mut concluded.seen);
            }
            concluded.outcome = Outcome { provisional: false, superseded, earlier, ..outcome };
            let secrets = self.subject.judging.resolved.secrets();
            let superseded = concluded.outcome.superseded.iter_mut();
            secrets.hide_all(superseded.filter_map(|it| it.service.as_mut()).map(TextMut::Text));
            concluded.trace.clone_from(&judged.trace);
            self.settlement = judged.settlement.clone().unwrap_or_default();
        }
        self.verdict = concluded.outcome.verdict;
        self.judged_at = Instant::now();
        if std::mem::take(&mut self.is_provisional) {
            tell(ports, What::Judged { verdict: self.verdict });
        }
        Ok(concluded)
    }

    /// Returns the settlement of the trace at the end of its linger.
    async fn settlement_now(&self) -> Settlement {
        let LingerState { judging, clock, expects, answered, .. } = &self.lingering;
        let now = clock.now();
        let engine = &self.gathering.engine;
        let mut settlement = self.gathering.settlement(*answered, now);
        // A trace that still receives spans has not lingered.
        if settlement.is_whole() {
            let known = self.gathering.watermark();
            match engine.final_at() {
                Some(at) if at <= known => {}
                Some(at) => settlement.unsettled.extend(self.gathering.uncovered(at)),
                None => settlement.unsettled.push(UnsettledReason::NotQuiet),
            }
        }
        if *expects && engine.spans() > 0 {
            let missing = judging.expected_missing(&self.gathering.trace).await;
            if !missing.is_empty() {
                settlement.unsettled.push(UnsettledReason::ExpectedAbsent(missing));
            }
        }
        if !judging.answer.is_answered() {
            settlement.unsettled.insert(0, UnsettledReason::NotAnswered);
        }
        settlement.linger_ns = nanos(engine.linger());
        settlement
    }

    async fn rejudge(&self, settlement: Settlement) -> Option<Arc<JudgedTrace>> {
        let trace = self.gathering.judged().ok()?;
        let judgement = self.judging().judge(Some(&trace), Some(&settlement)).await;
        let analysis = self.judging().analysis(Some(&trace), Some(&settlement)).await;
        let settlement = Some(settlement);
        Some(Arc::new(JudgedTrace { judgement, trace: Some(trace), settlement, analysis }))
    }

    /// Returns the provisional verdict, and the spans that arrived after it.
    fn superseded(&self, verdict: Verdict, spans: u64) -> SupersededVerdict {
        let judged_at = self.lingering.clock.at(self.judged_at);
        let first = self.gathering.first_late();
        let service = first.and_then(|(_, span)| self.gathering.engine.service(span));
        SupersededVerdict {
            verdict,
            spans,
            after_ns: first.map(|(at, _)| nanos(at.since(judged_at))),
            service: service.map(str::to_owned),
        }
    }

    /// Learns that spans of a service arrived after its quiet period: they may do so again.
    fn learn_superseded(&self, superseded: &SupersededVerdict, seen: &mut LearnedProfile) {
        if let (Some(after), Some(service)) = (superseded.after_ns, &superseded.service) {
            let late = self.quiet_needed(service, after);
            seen.services.entry(service.clone()).or_default().late_ns = late;
        }
    }

    /// Returns the learned profile since the provisional verdict, with the longest gap between arrivals of the run.
    fn seen_in_all(&self) -> LearnedProfile {
        let mut seen = self.seen_late(None);
        let engine = &self.gathering.engine;
        let is_longer = engine.gap() > engine.known_gap();
        // A run that did not linger may have missed a longer gap, but a gap that it did see is real.
        if self.is_provisional || is_longer {
            let test = LearnedTest::of_run(engine.gap(), self.is_provisional);
            seen.tests.insert(self.test.clone(), test);
        }
        seen
    }

    fn judging(&self) -> &JudgementContext {
        &self.subject.judging
    }

    /// Listens until `end`, and returns whether the spans that arrived would have changed the verdict.
    pub async fn until(mut self, end: impl Future<Output = ()>) -> WatchEnd {
        self.arrivals.watch(self.judged_at);
        let mut end = pin!(end);
        let (mut overtaken, mut news) = (None, None);
        let shown = self.gathering.engine.gap().max(self.gathering.engine.known_gap());
        let mut not_before = Instant::now();
        let mut is_over = false;
        while !is_over {
            tokio::select! {
                biased;
                () = &mut end => is_over = true,
                () = sleep_until(not_before), if news.is_some() => {}
                arrival = self.arrivals.next() => match arrival {
                    Some(arrival) => self = self.take(arrival, &mut news).await,
                    None => {
                        end.as_mut().await;
                        is_over = true;
                    }
                },
            }
            // Spans that arrived together are judged together.
            while let Some(arrival) = self.arrivals.waiting() {
                self = self.take(arrival, &mut news).await;
            }
            if (is_over || Instant::now() >= not_before)
                && let Some(news) = news.take()
            {
                let began = Instant::now();
                overtaken = self.judge(overtaken, &news).await;
                not_before = Instant::now() + began.elapsed() * JUDGING_SHARE;
            }
        }
        let mut seen = self.seen_late(overtaken.as_ref());
        // The span arrived after the final verdict: the next run waits for it.
        let gap = self.gathering.engine.gap();
        if gap > shown {
            seen.tests.insert(self.test.clone(), LearnedTest::of_run(gap, false));
        }
        self.judging()
            .resolved
            .secrets()
            .hide_all(overtaken.iter_mut().flat_map(Overtaken::texts_mut));
        WatchEnd { seen: self.as_learned(seen), overtaken }
    }

    async fn take(mut self, arrival: Arrival, news: &mut Option<News>) -> Self {
        let came = match &arrival {
            Arrival::Spans { at, .. } => News { at: *at, from: self.gathering.trace.len() },
            Arrival::Proof { .. }
            | Arrival::Doubt { .. }
            | Arrival::Coverage { .. }
            | Arrival::Lacks { .. }
            | Arrival::Gap { .. } => return self,
        };
        let before = self.gathering.engine.spans();
        self.gathering = self.gathering.take(arrival).await;
        if self.gathering.engine.spans() > before {
            news.get_or_insert(came);
        }
        self
    }

    /// Re-judges the verdict with all spans that arrived.
    async fn judge(&self, before: Option<Overtaken>, news: &News) -> Option<Overtaken> {
        if self.is_final() {
            return None;
        }
        let trace = self.gathering.judged().ok()?;
        let settlement = self.settlement_after(&trace).await;
        let verdict = self.judging().judge(Some(&trace), Some(&settlement)).await.verdict;
        let spans = self.gathering.engine.spans() - self.settlement.spans;
        if verdict == self.verdict {
            return None;
        }
        let (after_ns, service) = match before {
            Some(overtaken) => (overtaken.after_ns, overtaken.service),
            None => {
                let first = self.gathering.trace.numbered_span(news.from);
                let service = self.gathering.engine.service(first).map(str::to_owned);
                (nanos(news.at.saturating_duration_since(self.judged_at)), service)
            }
        };
        Some(Overtaken { verdict, spans, after_ns, service })
    }

    /// Returns the current settlement of the trace. A complete trace stays complete: the run does not wait a second time.
    async fn settlement_after(&self, trace: &Arc<Trace>) -> Settlement {
        let mut settlement = self.settlement.clone();
        if settlement.is_whole() {
            return settlement;
        }
        let is_lasting = |unsettled: &UnsettledReason| {
            use UnsettledReason::{
                EdgesOpen, ExpectedAbsent, NoTelemetry, NotQuiet, ParentsAbsent,
            };
            !matches!(
                unsettled,
                EdgesOpen(_) | ExpectedAbsent(_) | NoTelemetry | NotQuiet | ParentsAbsent(_)
            )
        };
        settlement.unsettled.retain(is_lasting);
        settlement.unsettled.extend(self.gathering.missing());
        let expected = self.judging().expected_missing(trace).await;
        if !expected.is_empty() {
            settlement.unsettled.push(UnsettledReason::ExpectedAbsent(expected));
        }
        settlement
    }

    /// Returns the learned profile of the late spans: above all, how late they were.
    fn seen_late(&self, overtaken: Option<&Overtaken>) -> LearnedProfile {
        if self.gathering.engine.spans() == self.settlement.spans {
            return LearnedProfile::default();
        }
        let mut seen = self.gathering.engine.seen(&self.gathering.trace, TraceEnd::Early);
        for (name, service) in &mut seen.services {
            let known = self.seen.services.get(name).and_then(|known| known.delays_ns.last());
            service.delays_ns.retain(|delay| Some(delay) > known);
        }
        if let Some(overtaken) = overtaken
            && let Some(service) = &overtaken.service
        {
            seen.services.entry(service.clone()).or_default().late_ns =
                self.quiet_needed(service, overtaken.after_ns);
        }
        seen.services.retain(|_, service| *service != LearnedService::default());
        tellable(seen, self.judging().resolved.secrets())
    }

    /// Returns the quiet period with which the run would have received the late spans.
    fn quiet_needed(&self, service: &str, after_ns: u64) -> u64 {
        let processes = self.settlement.processes.iter().filter(|it| it.service == service);
        let silent = processes.map(|process| process.silent_ns).max();
        silent.unwrap_or(self.settlement.waited_ns).saturating_add(after_ns)
    }

    /// Whether the present spans decided everything: that decision stays.
    fn is_final(&self) -> bool {
        self.settlement.unsettled.contains(&UnsettledReason::NotWaited)
    }
}
