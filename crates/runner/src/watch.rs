//! Listening on, after the verdict: a span that comes now may show that the verdict came too early.
//!
//! The verdict stays. What came late is judged in the shadow, and told if that comes to another verdict.

use std::{future::Future, pin::pin, sync::Arc};

use drivers::{Arrival, Arrivals};
use model::{Learned, LearnedService, Overtaken, Settlement, Trace, Unsettled, Verdict};
use tokio::time::{Instant, sleep_until};

use crate::{
    clock::nanos,
    judging::Judging,
    settle::{Ending, Gathering},
    tellable,
};

/// A run that has its verdict, and still hears its spans.
#[derive(Debug)]
pub struct Watch {
    pub(crate) gathering: Gathering,
    pub(crate) arrivals: Arrivals,
    pub(crate) judging: Judging,
    pub(crate) settlement: Settlement,
    pub(crate) verdict: Verdict,
    pub(crate) judged_at: Instant,
    /// What the run has shown already.
    pub(crate) seen: Learned,
}

/// What became of a run after its verdict.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Watched {
    /// What the spans that came late would have made of the verdict, if they would have changed it.
    pub overtaken: Option<Overtaken>,
    /// What they have shown of the system, beyond what the run itself showed.
    pub seen: Learned,
}

/// Of how many moments one is spent on judging.
const JUDGING_SHARE: u32 = 20;

/// Spans that came late and were not judged yet: when, and the number of the first.
struct News {
    at: Instant,
    from: usize,
}

impl Watch {
    /// Listens until `end`, and tells whether what came would have changed the verdict.
    pub async fn until(mut self, end: impl Future<Output = ()>) -> Watched {
        let mut end = pin!(end);
        let (mut overtaken, mut news) = (None, None);
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
            // What has come together is judged together.
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
        let seen = self.seen_late(overtaken.as_ref());
        self.judging
            .resolved
            .secrets()
            .hide_all(overtaken.iter_mut().flat_map(Overtaken::said_mut));
        Watched { seen, overtaken }
    }

    async fn take(mut self, arrival: Arrival, news: &mut Option<News>) -> Self {
        let came = News { at: arrival.at, from: self.gathering.trace.len() };
        let before = self.gathering.engine.spans();
        self.gathering = self.gathering.take(arrival).await;
        if self.gathering.engine.spans() > before {
            news.get_or_insert(came);
        }
        self
    }

    /// What has become of the verdict with all that has come.
    async fn judge(&self, before: Option<Overtaken>, news: &News) -> Option<Overtaken> {
        if self.is_final() {
            return None;
        }
        let trace = self.gathering.judged().ok()?;
        let settlement = self.settlement_now(&trace).await;
        let verdict = self.judging.judge(Some(&trace), Some(&settlement)).await.verdict;
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

    /// What is known of the trace by now. What was whole is judged as whole: nobody waits a second time.
    async fn settlement_now(&self, trace: &Arc<Trace>) -> Settlement {
        let mut settlement = self.settlement.clone();
        if settlement.is_whole() {
            return settlement;
        }
        let is_lasting = |unsettled: &Unsettled| {
            use Unsettled::{EdgesOpen, ExpectedAbsent, NoTelemetry, NotQuiet, ParentsAbsent};
            !matches!(
                unsettled,
                EdgesOpen(_) | ExpectedAbsent(_) | NoTelemetry | NotQuiet | ParentsAbsent(_)
            )
        };
        settlement.unsettled.retain(is_lasting);
        settlement.unsettled.extend(self.gathering.missing());
        let expected = self.judging.expected_missing(trace).await;
        if !expected.is_empty() {
            settlement.unsettled.push(Unsettled::ExpectedAbsent(expected));
        }
        settlement
    }

    /// What the late spans have shown: above all, how late they were.
    fn seen_late(&self, overtaken: Option<&Overtaken>) -> Learned {
        if self.gathering.engine.spans() == self.settlement.spans {
            return Learned::default();
        }
        let mut seen = self.gathering.engine.seen(&self.gathering.trace, Ending::Early);
        for (name, service) in &mut seen.services {
            let known = self.seen.services.get(name).and_then(|known| known.delays_ns.last());
            service.delays_ns.retain(|delay| Some(delay) > known);
        }
        if let Some(overtaken) = overtaken
            && let Some(service) = &overtaken.service
        {
            seen.services.entry(service.clone()).or_default().late_ns =
                self.quiet_needed(service, overtaken);
        }
        seen.services.retain(|_, service| *service != LearnedService::default());
        tellable(seen, self.judging.resolved.secrets())
    }

    /// The quiet after which the run would have seen what overtook it.
    fn quiet_needed(&self, service: &str, overtaken: &Overtaken) -> u64 {
        let processes = self.settlement.processes.iter().filter(|it| it.service == service);
        let silent = processes.map(|process| process.silent_ns).max();
        silent.unwrap_or(self.settlement.waited_ns).saturating_add(overtaken.after_ns)
    }

    /// Whether presence decided everything: that stays decided.
    fn is_final(&self) -> bool {
        self.settlement.unsettled.contains(&Unsettled::NotWaited)
    }
}
