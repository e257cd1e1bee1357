//! One run, from a plan to its outcome: resolve, mint, fire, settle, judge.
//!
//! [`run`] continues from the stored state of the run ([`Progress`]), so that another worker can finish the run of a dead one.
//! A trigger is fired at most once: the attempt is stored durably before the first byte is sent.
//!
//! Deliberately absent: storage, publishing, printing, the clock and random numbers. The runner reaches them through [`Ports`],
//! and reports what happens as events.

mod clock;
pub mod diagnosis;
mod judging;
mod plant;
mod pool;
mod ports;
mod reasons;
mod rejudge;
mod sampled;
mod seed;
mod settle;
mod snapshot;
mod started;
mod subject;
pub mod suite;
mod trigger_span;
mod watch;

use std::{future::Future, sync::Arc, time::Duration};

use drivers::{Arrivals, arrivals::QueriedSource};
use lang::{Files, Plan, ResolveError, ResolvedPlan, Secrets, Seed, Vars};
use model::ErrorCode;
use model::{
    Answer, Attempt, Fault, Faulty, Judgement, LearnedProfile, LearnedTest, NoAnswer, NoAnswerKind,
    Outcome, Progress, Request, RunId, Settlement, SpanId, Step, StepTime, Timestamp, Trace, What,
    trace::{SpanData, TraceFull},
};
use thiserror::Error;
use tokio::time::{Instant, timeout_at};

#[cfg(feature = "planted")]
pub use plant::{plant, plants};
pub use pool::{Pool, Share};
pub use ports::{LeaseLost, Ports};
pub use rejudge::{RejudgeInput, rejudge};
pub use seed::seed;
pub use settle::Limits;
pub use snapshot::{SnapshotRequest, TraceSnapshot};
pub use started::{MARKER, StartedProcesses};
pub use trigger_span::{TRIGGER_SPAN_NAME, trigger_span};
pub use watch::{FinalRun, LateSpanMonitor, WatchEnd};

use clock::Clock;
use judging::JudgementContext;
use ports::tell;
use settle::{LingerState, Rules, SettleContext, SettledTrace, TraceBuffer, TraceEnd, settle};
use subject::{JudgedTrace, Subject, tellable};

/// A run to execute.
#[derive(Debug)]
pub struct Job<'a> {
    /// The run.
    pub run_id: RunId,
    /// The compiled test.
    pub plan: &'a Plan,
    /// Values for its variables.
    pub vars: &'a Vars,
    /// The contents of the files that it names.
    pub files: &'a Files,
    /// The progress that the database already holds.
    pub progress: Progress,
    /// The upper bounds of the stored trace.
    pub limits: Limits,
    /// The learned profile of earlier runs.
    pub learned: &'a LearnedProfile,
    /// The settings of the processes that were started for this run; none if it started none.
    pub started: Option<&'a StartedProcesses>,
    /// The timeout of the complete run. When it expires, the run is judged by the spans that arrived.
    pub timeout: Option<Duration>,
}

/// The result of a run.
#[derive(Debug)]
pub struct FinishedRun {
    /// Verdict and evidence. If it is provisional, `watch` must linger and conclude before the verdict is used.
    pub outcome: Outcome,
    /// The trace that was judged, including the trigger's own span; none if the test collects no trace. It is shared with
    /// `watch`, which copies it if a span arrives late while the caller holds it.
    pub trace: Option<Arc<Trace>>,
    /// The trigger's own span, for the application's trace store; none if nothing was fired.
    pub trigger: Option<SpanData>,
    /// How the trigger ended, including the secrets that the outcome masks: outputs are extracted from it.
    pub answer: Arc<Answer>,
    /// The secrets, for the caller that stores the trace.
    pub secrets: Secrets,
    /// The learned profile of this run: its observations about the system.
    pub seen: LearnedProfile,
    /// Continues to receive late spans; none if the test collects no trace.
    pub watch: Option<LateSpanMonitor>,
}

/// Why a run did not reach a verdict here.
#[derive(Debug, Error)]
pub enum RunError {
    /// The test cannot be resolved with these variables; nothing was sent.
    #[error(transparent)]
    Resolve(#[from] ResolveError),
    /// Another worker owns the run now; this worker must not send or write anything more.
    #[error(transparent)]
    Lost(#[from] LeaseLost),
    /// The trace exceeds the number of spans that can be indexed.
    #[error(transparent)]
    Full(#[from] TraceFull),
}

impl Faulty for RunError {
    fn fault(&self) -> Fault {
        match self {
            Self::Resolve(error) => error.fault(),
            Self::Lost(error) => error.fault(),
            Self::Full(error) => error.fault(),
        }
    }

    fn code(&self) -> ErrorCode {
        match self {
            Self::Resolve(error) => error.code(),
            Self::Lost(error) => error.code(),
            Self::Full(error) => error.code(),
        }
    }
}

/// Runs a test, or continues a run that another worker left.
pub async fn run<P: Ports>(job: Job<'_>, ports: &P) -> Result<FinishedRun, RunError> {
    let mut steps = Steps { ports, done: Vec::new() };
    let clock = Clock::new(ports.now());
    let ends = job.timeout.map(|timeout| Instant::now() + timeout);
    let seed = seed(job.run_id);
    let (request, resolved) = steps.time(Step::Resolve, || resolve(&job, &seed))?;
    let attempt = job.progress.attempt().unwrap_or_else(|| mint(&request, ports));
    // Listening starts before firing: a span that arrives at once must find a listener.
    let arrivals = match job.plan.skip_trace_collection() {
        true => None,
        false => Some(ports.spans(attempt.trace_id).await),
    };
    let (began, listening) = (ports.now(), Instant::now());
    let firing = fire(job.progress.clone(), attempt, &request, ports);
    let TriggerResult { attempt, fired_at, answer } = in_time(firing, attempt, ends, ports).await?;
    steps.add(Step::Trigger, began);
    let (resolved, answer) = (Arc::new(resolved), Arc::new(answer));
    let told = masked(&ports.share(), &resolved, &answer).await;
    let trigger = trigger_span((&attempt, fired_at), &request, &told);
    let judging = JudgementContext {
        resolved: Arc::clone(&resolved),
        trigger: trigger.as_ref().map(|trigger| trigger.id),
        answer: Arc::clone(&answer),
        share: ports.share(),
    };
    let (learned, lag) = known(job.learned, arrivals.as_ref());
    let rules = rules(&job, &attempt, &request, (clock, learned, lag));
    let subject = Arc::new(Subject {
        run_id: job.run_id,
        test: job.plan.name.clone(),
        attempt,
        request,
        told,
        judging,
        started: job.started.cloned(),
        began: listening,
        ends,
    });
    let secrets = resolved.secrets().clone();
    let finished = |outcome, trace, seen, watch| FinishedRun {
        outcome,
        trace,
        trigger: trigger.clone(),
        answer: Arc::clone(&answer),
        secrets,
        seen,
        watch,
    };
    let Some(arrivals) = arrivals else {
        let outcome = without_trace(&subject, steps).await;
        return Ok(finished(outcome, None, LearnedProfile::default(), None));
    };
    let reading = (clock, job.limits, ports.share());
    let gathering = TraceBuffer::new(&attempt, trigger.clone(), rules, reading)?;
    let rule = job.plan.settle(lag.unwrap_or_default());
    let expects = !job.plan.expected().is_empty();
    let (judging, since) = (&subject.judging, subject.since());
    let waiting = SettleContext { rule, judging, clock, ends, expects, since };
    let (judged, seen, watch) =
        trace(gathering, (&waiting, &subject), arrivals, &mut steps).await?;
    let mut watch = watch.of_test(job.plan.id.as_str());
    watch.is_cut = subject.is_out_of_time();
    let outcome = subject.outcome(ports, &judged, (steps.done, watch.is_cut)).await;
    watch.is_provisional = outcome.provisional;
    let judged_so = match outcome.provisional {
        true => What::Provisional { verdict: outcome.verdict },
        false => What::Judged { verdict: outcome.verdict },
    };
    tell(ports, judged_so);
    Ok(finished(outcome, judged.trace.clone(), watch.as_learned(seen), Some(watch)))
}

/// Returns the answer with its secrets masked.
async fn masked(share: &Share, resolved: &Arc<ResolvedPlan>, answer: &Arc<Answer>) -> Arc<Answer> {
    // Without secrets the answer stays the same.
    if resolved.secrets().is_empty() {
        return Arc::clone(answer);
    }
    let (resolved, answer) = (Arc::clone(resolved), Arc::clone(answer));
    share.run(move || Arc::new(resolved.secrets().masked(&answer))).await
}

/// Returns the outcome of a test that collects no trace: the response decides it.
async fn without_trace<P: Ports>(subject: &Arc<Subject>, mut steps: Steps<'_, P>) -> Outcome {
    let judgement = steps.judge(&subject.judging, None, None).await;
    let analysis = subject.judging.analysis(None, None).await;
    let judged = Arc::new(JudgedTrace { judgement, trace: None, settlement: None, analysis });
    tell(steps.ports, What::Judged { verdict: judged.judgement.verdict });
    subject.outcome(steps.ports, &judged, (steps.done, subject.is_out_of_time())).await
}

/// Resolves the request to fire, and the test that judges the run.
fn resolve(job: &Job<'_>, seed: &Seed) -> Result<(Request, ResolvedPlan), ResolveError> {
    let asked = lang::request(job.plan, job.vars, seed, job.files)?;
    let mut resolved = lang::resolve(job.plan, job.vars, seed)?;
    resolved.hide(&asked);
    Ok((asked.request, resolved))
}

/// Settles the trace, judges it, and prepares to listen for late spans.
async fn trace<P: Ports>(
    gathering: TraceBuffer,
    (waiting, subject): (&SettleContext<'_>, &Arc<Subject>),
    mut arrivals: Arrivals,
    steps: &mut Steps<'_, P>,
) -> Result<(Arc<JudgedTrace>, LearnedProfile, LateSpanMonitor), RunError> {
    let (ports, began) = (steps.ports, steps.ports.now());
    let SettledTrace { mut gathering, mut settlement, judgement, is_waited_out, span } =
        settle(gathering, waiting, &mut arrivals, ports).await;
    subject.add_doubts(ports, &gathering, &mut settlement).await?;
    steps.add(Step::Settle, began);
    let mut told = settlement.clone();
    let secrets = waiting.judging.resolved.secrets();
    secrets.hide_all(told.texts_mut());
    tell(ports, What::Settled(told));
    let trace = gathering.judged()?;
    let judgement = match judgement {
        Some(judgement) => steps.time(Step::Judge, || judgement),
        None => steps.judge(waiting.judging, Some(&trace), Some(&settlement)).await,
    };
    let seen = gathering.engine.seen(&gathering.trace, TraceEnd::of(&settlement, is_waited_out));
    let seen = tellable(seen, secrets);
    let (answered, deadline) = span;
    gathering.judged_now();
    let watch = LateSpanMonitor {
        gathering,
        arrivals,
        subject: Arc::clone(subject),
        lingering: LingerState {
            rule: waiting.rule,
            judging: waiting.judging.clone(),
            clock: waiting.clock,
            expects: waiting.expects,
            answered,
            deadline,
        },
        settlement: settlement.clone(),
        verdict: judgement.verdict,
        judged_at: Instant::now(),
        is_provisional: false,
        is_cut: false,
        test: String::new(),
        seen: seen.clone(),
    };
    let analysis = waiting.judging.analysis(Some(&trace), Some(&settlement)).await;
    let judged =
        JudgedTrace { judgement, trace: Some(trace), settlement: Some(settlement), analysis };
    Ok((Arc::new(judged), seen, watch))
}

/// Returns the names of queried sources.
pub(crate) fn names(sources: &[QueriedSource]) -> Vec<&str> {
    sources.iter().map(|source| source.name.as_str()).collect()
}

/// Returns the learned profile of the sources of a run, and the longest lag of those that are queried. What earlier runs have shown
/// has a margin.
fn known(
    learned: &LearnedProfile,
    arrivals: Option<&Arrivals>,
) -> (LearnedProfile, Option<Duration>) {
    let sources = arrivals.map_or(&[][..], Arrivals::sources);
    let learned = learned.through(&names(sources));
    let shown = learned.longest_delay().map(|delay| delay.saturating_mul(3) / 2);
    let lag = sources.iter().map(|source| source.lag.with(shown)).max();
    (learned, lag)
}

/// Returns the rules that the engine knows before the first span arrives.
fn rules(
    job: &Job<'_>,
    attempt: &Attempt,
    request: &Request,
    (clock, learned, lag): (Clock, LearnedProfile, Option<Duration>),
) -> Rules {
    let (is_queried, lag) = (lag.is_some(), lag.unwrap_or_default());
    let settle = job.plan.settle(lag);
    let known = learned.tests.get(job.plan.id.as_str());
    Rules {
        trigger: attempt.span_id,
        target: request.url().and_then(settle::authority),
        began: attempt.at,
        answered: clock.now(),
        is_fired: request.is_fired(),
        flush: settle.flush.map(|flush| flush + lag),
        is_queried,
        lag,
        quiet_max: settle::quiet_max(&settle) + lag,
        absent: job.plan.absent().iter().cloned().collect(),
        started: job.started.cloned(),
        gap: known.map_or(Duration::ZERO, LearnedTest::longest_gap),
        linger: settle::linger_of(known, &settle) + lag,
        learned,
    }
}

/// Returns the answer, unless the timeout of the complete run expires first.
async fn in_time<P: Ports>(
    firing: impl Future<Output = Result<TriggerResult, LeaseLost>>,
    attempt: Attempt,
    ends: Option<Instant>,
    ports: &P,
) -> Result<TriggerResult, LeaseLost> {
    let Some(ends) = ends else { return firing.await };
    match timeout_at(ends, firing).await {
        Ok(fired) => fired,
        Err(_) => {
            let message = "the time of the whole run was up before there was an answer".to_owned();
            let answer = Answer::NoAnswer(NoAnswer { kind: NoAnswerKind::Timeout, message });
            ports.answered(&answer).await?;
            Ok(TriggerResult::of_record(attempt, answer))
        }
    }
}

/// How a trigger ended.
struct TriggerResult {
    attempt: Attempt,
    /// When the request was sent: later than the attempt by the time that its record takes.
    fired_at: Timestamp,
    answer: Answer,
}

impl TriggerResult {
    /// Of a trigger that another worker fired, the record has the attempt only.
    fn of_record(attempt: Attempt, answer: Answer) -> Self {
        Self { attempt, fired_at: attempt.at, answer }
    }
}

/// Mints the ids of an attempt. An external trace id is used as it is.
fn mint<P: Ports>(request: &Request, ports: &P) -> Attempt {
    let (at, dice) = (ports.now(), ports.random());
    let [a, b, c, d, e, span @ ..] = dice;
    let span = span.first_chunk().copied().unwrap_or_default();
    let minted = || ports.mint(at, [a, b, c, d, e]);
    Attempt {
        trace_id: request.external_trace().unwrap_or_else(minted),
        span_id: SpanId::from_random(span),
        at,
    }
}

/// Fires the trigger if no worker fired it yet, and returns the attempt and the answer that the database now holds.
async fn fire<P: Ports>(
    progress: Progress,
    minted: Attempt,
    request: &Request,
    ports: &P,
) -> Result<TriggerResult, LeaseLost> {
    match progress {
        Progress::Answered(attempt, answer) => Ok(TriggerResult::of_record(attempt, answer)),
        // Nothing was sent, so nothing can be sent twice.
        Progress::Attempted(attempt) if !request.is_fired() => {
            ports.answered(&Answer::NotFired).await?;
            Ok(TriggerResult::of_record(attempt, Answer::NotFired))
        }
        Progress::Attempted(attempt) => {
            let answer = Answer::NoAnswer(NoAnswer {
                kind: NoAnswerKind::Unknown,
                message:
                    "outcome unknown: the worker that sent the request ended before it recorded an \
                          answer, and a request is never sent twice"
                        .to_owned(),
            });
            ports.answered(&answer).await?;
            Ok(TriggerResult::of_record(attempt, answer))
        }
        Progress::New => {
            ports.attempted(&minted).await?;
            let fired_at = ports.now();
            let answer = ports.fire(request, &minted).await?;
            ports.answered(&answer).await?;
            Ok(TriggerResult { attempt: minted, fired_at, answer })
        }
    }
}

/// The finished steps, each with its times.
struct Steps<'a, P> {
    ports: &'a P,
    done: Vec<StepTime>,
}

impl<P: Ports> Steps<'_, P> {
    fn add(&mut self, step: Step, began: Timestamp) {
        self.done.push(StepTime { step, began, ended: self.ports.now() });
    }

    fn time<T>(&mut self, step: Step, work: impl FnOnce() -> T) -> T {
        let began = self.ports.now();
        let result = work();
        self.add(step, began);
        result
    }

    async fn judge(
        &mut self,
        judging: &JudgementContext,
        trace: Option<&Arc<Trace>>,
        settlement: Option<&Settlement>,
    ) -> Judgement {
        let began = self.ports.now();
        let judgement = judging.judge(trace, settlement).await;
        self.add(Step::Judge, began);
        judgement
    }
}
