//! One run, from a plan to its outcome: resolve, mint, fire, settle, judge.
//!
//! [`run`] goes on from whatever the record of the run holds ([`Progress`]), so that another worker can finish
//! what a dead one began. A trigger is fired at most once: the attempt is recorded, durably, before the first
//! byte leaves.
//!
//! Deliberately absent: storing, publishing, printing, the clock and the dice. The world is reached through
//! [`Ports`], and what happens is told to it as events.

mod ports;
mod settle;
mod trigger_span;

use lang::{Evidence, Plan, ResolveError, Seed, Vars};
use model::{
    Answer, Attempt, Event, Fault, Faulty, NoAnswer, NoAnswerKind, Outcome, Progress, Request,
    RunId, Settlement, SpanId, Step, StepTime, Timestamp, Trace, Unsettled, What,
    trace::{SpanData, TraceFull},
};
use thiserror::Error;

pub use ports::{Lost, Ports};
pub use settle::Limits;
pub use trigger_span::{TRIGGER_SPAN_NAME, trigger_span};

use settle::{Gathered, settle};

/// What is to be run.
#[derive(Debug)]
pub struct Job<'a> {
    /// The run.
    pub run_id: RunId,
    /// The compiled test.
    pub plan: &'a Plan,
    /// Values for its variables.
    pub vars: &'a Vars,
    /// What the record holds already.
    pub progress: Progress,
    /// How much of a trace is kept.
    pub limits: Limits,
}

/// What a run leaves.
#[derive(Debug)]
pub struct Finished {
    /// Verdict and evidence.
    pub outcome: Outcome,
    /// The trace that was judged, the trigger's own span included; none where the test asks for none.
    pub trace: Option<Trace>,
    /// The trigger's own span, for the application's trace store.
    pub trigger: SpanData,
}

/// Why a run did not get to a verdict here.
#[derive(Debug, Error)]
pub enum RunError {
    /// The test cannot be resolved with these variables; nothing was sent.
    #[error(transparent)]
    Resolve(#[from] ResolveError),
    /// The run is somebody else's now; nothing more may be sent or written.
    #[error(transparent)]
    Lost(#[from] Lost),
    /// The trace outgrew what can be told apart.
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
}

/// Runs a test, or goes on with a run that another worker left.
pub async fn run<P: Ports>(job: Job<'_>, ports: &P) -> Result<Finished, RunError> {
    let mut steps = Steps { ports, done: Vec::new() };
    let seed = seed(job.run_id);
    let (request, resolved) = steps.time(Step::Resolve, || {
        let request = lang::request(job.plan, job.vars, &seed)?;
        lang::resolve(job.plan, job.vars, &seed).map(|resolved| (request, resolved))
    })?;
    let attempt = job.progress.attempt().unwrap_or_else(|| mint(ports));
    // Listening starts before firing: a span that comes at once must find somebody.
    let arrivals = match job.plan.skip_trace_collection() {
        true => None,
        false => Some(ports.spans(attempt.trace_id).await),
    };
    let resumed = job.progress != Progress::New;
    let began = ports.now();
    let (attempt, answer) = fire(job.progress, attempt, &request, ports).await?;
    steps.add(Step::Trigger, began);
    let gathered = match arrivals {
        None => None,
        Some(arrivals) => {
            let began = ports.now();
            let mut gathered =
                settle(attempt, &answer, arrivals, &job.plan.settle(), &job.limits).await;
            // Spans are held in process, so those acknowledged before a restart are gone.
            let unsettled = &mut gathered.settlement.unsettled;
            if (resumed || ports.has_lost_spans(attempt.trace_id))
                && !unsettled.contains(&Unsettled::SpansLost)
            {
                unsettled.push(Unsettled::SpansLost);
            }
            steps.add(Step::Settle, began);
            tell(ports, What::Settled(gathered.settlement.clone()));
            Some(gathered)
        }
    };
    let trigger = trigger_span(&attempt, &request, &answer);
    let (trace, settlement) = with_trigger(gathered, &attempt, &trigger)?;
    let judgement = steps.time(Step::Judge, || {
        lang::judge(
            &resolved,
            &Evidence {
                trace: trace.as_ref(),
                trigger: Some(attempt.span_id),
                answer: Some(&answer),
                settlement: settlement.as_ref(),
            },
        )
    });
    let verdict = judgement.verdict;
    let reasons = reasons(&answer, settlement.as_ref());
    tell(ports, What::Judged { verdict });
    let outcome = Outcome {
        run_id: Some(job.run_id),
        test: job.plan.name.clone(),
        verdict,
        reasons,
        trace_id: Some(attempt.trace_id),
        answer: Some(answer),
        settlement,
        judgement,
        analysis: None,
        steps: steps.done,
    };
    Ok(Finished { outcome, trace, trigger })
}

/// Where a run's functions of chance and time draw from: its id, which the record keeps. A worker that goes on with the
/// run draws the same.
fn seed(run: RunId) -> Seed {
    let mut random = [0; 32];
    random[..16].copy_from_slice(run.as_uuid().as_bytes());
    Seed { now: run.created(), random }
}

fn mint<P: Ports>(ports: &P) -> Attempt {
    let (at, dice) = (ports.now(), ports.random());
    let [a, b, c, d, e, f, g, span @ ..] = dice;
    let span = span.first_chunk().copied().unwrap_or_default();
    Attempt {
        trace_id: ports.keys().mint(at, [a, b, c, d, e, f, g]),
        span_id: SpanId::from_random(span),
        at,
    }
}

/// Fires the trigger if nobody did, and tells what the record will say from now on.
async fn fire<P: Ports>(
    progress: Progress,
    minted: Attempt,
    request: &Request,
    ports: &P,
) -> Result<(Attempt, Answer), Lost> {
    match progress {
        Progress::Answered(attempt, answer) => Ok((attempt, answer)),
        Progress::Attempted(attempt) => {
            let answer = Answer::NoAnswer(NoAnswer {
                kind: NoAnswerKind::Unknown,
                message:
                    "outcome unknown: the worker that sent the request ended before it recorded an \
                          answer, and a request is never sent twice"
                        .to_owned(),
            });
            ports.answered(&answer).await?;
            Ok((attempt, answer))
        }
        Progress::New => {
            ports.attempted(&minted).await?;
            let answer = ports.fire(request, &minted).await?;
            ports.answered(&answer).await?;
            Ok((minted, answer))
        }
    }
}

/// The trace as it is judged: with the trigger's span, once, also where it came back through a Collector.
fn with_trigger(
    gathered: Option<Gathered>,
    attempt: &Attempt,
    trigger: &SpanData,
) -> Result<(Option<Trace>, Option<Settlement>), TraceFull> {
    let Some(Gathered { mut trace, settlement }) = gathered else {
        return Ok((None, None));
    };
    if trace.find(attempt.span_id).is_some() {
        trace = trace.without(attempt.span_id)?;
    }
    let resource = trace.resource(trigger_span::resource())?;
    let scope = trace.scope(trigger_span::scope())?;
    trace.push(resource, scope, trigger.clone())?;
    Ok((Some(trace), Some(settlement)))
}

/// What may keep a run from being conclusive, each with what to do about it.
fn reasons(answer: &Answer, settlement: Option<&Settlement>) -> Vec<String> {
    let mut reasons = Vec::new();
    if let Answer::NoAnswer(no_answer) = answer {
        reasons.push(no_answer_reason(no_answer.kind).to_owned());
    }
    if let Some(settlement) = settlement {
        // Without an answer, that no span came is no further riddle.
        let is_news =
            |it: &&Unsettled| answer.response().is_some() || **it != Unsettled::NoTelemetry;
        reasons.extend(settlement.unsettled.iter().filter(is_news).filter_map(reason));
    }
    reasons
}

fn no_answer_reason(kind: NoAnswerKind) -> &'static str {
    match kind {
        NoAnswerKind::Invalid => "the request cannot be sent as it stands: correct the trigger",
        NoAnswerKind::Refused | NoAnswerKind::Dns => {
            "the trigger did not reach the system: start it, or correct `httpRequest.url`"
        }
        NoAnswerKind::Tls => {
            "the system is not trusted: this machine's certificates must hold the one that signed its own"
        }
        NoAnswerKind::Connection => {
            "the connection broke after the request was on its way: look at the system's log"
        }
        NoAnswerKind::Timeout => {
            "the answer took too long: find out what the system waits for, or raise the trigger's `timeout`"
        }
        NoAnswerKind::TooLarge => "the answer is larger than a run keeps: ask the system for less",
        NoAnswerKind::Unknown => {
            "whether the system got the request is not known, and it is never sent twice: run the test again"
        }
    }
}

fn reason(unsettled: &Unsettled) -> Option<String> {
    Some(match unsettled {
        // The answer has said it already, and nobody says of a run that its trace is a part.
        Unsettled::NotAnswered | Unsettled::Partial => return None,
        Unsettled::NoTelemetry => "no span of the system came: check that it exports OTLP to the address \
                                   that Qualitytrace listens on, and that it continues the `traceparent` it gets"
            .to_owned(),
        Unsettled::ParentsAbsent(spans) => format!(
            "{} spans name a parent that never came, the first is `{}`: a service between them is not \
             instrumented, or its spans come later than `settle.timeout`",
            spans.len(),
            spans.first().map(ToString::to_string).unwrap_or_default()
        ),
        Unsettled::NotQuiet => {
            "spans were still arriving at the deadline: raise `settle.timeout`".to_owned()
        }
        Unsettled::TooLarge => "the trace is larger than a run may keep; the rest was not judged".to_owned(),
        Unsettled::SpansLost => {
            "spans may have been lost on their way, as when the server was restarted during the run: run it again".to_owned()
        }
    })
}

fn tell<P: Ports>(ports: &P, what: What) {
    ports.tell(Event { at: ports.now(), what });
}

/// The steps that are done, each with its times.
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
}
