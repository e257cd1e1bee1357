//! The environment of a run whose spans are in a store: a system that does what it always does, and its test.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use drivers::{
    Arrivals,
    store::{QueryLimit, StoreClient, poll},
};
use lang::{Files, Plan, Vars};
use model::{
    Answer, Attempt, Body, KeyRing, LearnedProfile, Outcome, Progress, Request, Response, RunEvent,
    RunId, SpanId, Timestamp, Trace, TraceId, UnsettledReason,
    trace::{Kind, ResourceData, ScopeData, SpanData, Value},
};
use runner::{Job, LeaseLost, Limits, Ports};
use source::Text;
use tokio::{
    sync::mpsc,
    time::{Instant, sleep},
};

use super::{
    super::{
        chance::{Dice, between, percent},
        exit::{Exit, follow},
        stage::{EPOCH, random},
        system::{MS, SECOND},
    },
    store::{ScriptedStore, StoreState, StoredSpan, Trouble, USUAL_LAG},
};

/// How long a run is watched after its verdict.
const WATCHED: Duration = Duration::from_secs(600);

/// A system, the store of its spans, and a test of it.
#[derive(Debug)]
pub(super) struct Scenario {
    plan: Plan,
    /// The number of spans named `work` that the test demands.
    demanded: u64,
    /// How long after its end a span is sent to the store.
    delay: u64,
    /// The longest time for which the store hides a span.
    hides_max: u64,
    lag: Option<Duration>,
    services: u64,
}

/// A run that has ended.
#[derive(Debug)]
pub(super) struct QueriedRun {
    pub(super) outcome: Outcome,
    /// Whether the test truly passes.
    pub(super) truth: bool,
    pub(super) trouble: Trouble,
    /// The longest time for which the store hid a span.
    pub(super) hidden: u64,
    /// Whether a span changed the verdict after it was first given, and the run noticed.
    pub(super) is_marked: bool,
    pub(super) queries: u64,
    pub(super) seen: Vec<LearnedProfile>,
}

impl Scenario {
    pub(super) fn draw(dice: &mut Dice) -> Result<Self> {
        let delay = between(dice, 0, 4 * SECOND);
        let hides_max = match dice.below(6) {
            0 => 0,
            1 => between(dice, 0, 200 * MS),
            2 => between(dice, 0, SECOND),
            3 => between(dice, 0, USUAL_LAG.as_nanos() as u64),
            4 => between(dice, 0, 30 * SECOND),
            _ => between(dice, 0, 180 * SECOND),
        };
        let lag = match dice.below(10) {
            0..6 => Some(Duration::from_nanos(hides_max + between(dice, 0, hides_max / 2))),
            // The user is wrong.
            6 => Some(Duration::from_nanos(hides_max / between(dice, 2, 10))),
            _ => None,
        };
        let demanded = between(dice, 0, 4);
        let flush = percent(dice, 50).then(|| format!("flush: {}ms", delay / MS + 20));
        let timeout = percent(dice, 20).then(|| "timeout: 600s".to_owned());
        let settle: Vec<_> = flush.into_iter().chain(timeout).collect();
        let document = format!(
            "type: Test\nspec:\n  name: queried\n  settle: {{{}}}\n  trigger: {{type: http, httpRequest: {{method: GET, \
             url: 'http://shop/cart'}}}}\n  trace: ['count(span[name=\"work\"]) = {demanded}']\n",
            settle.join(", ")
        );
        let (mut plans, found) = lang::plans(&Text::new("queried.yaml", document));
        ensure!(found.is_empty(), "{}", source::draw(&found, source::Colour::Never));
        let plan = plans.pop().context("no test")?.plan;
        Ok(Self { plan, demanded, delay, hides_max, lag, services: between(dice, 1, 4) })
    }
}

struct QueriedStage<'a> {
    scenario: &'a Scenario,
    keys: &'a KeyRing,
    began: Instant,
    random: [u8; 32],
    store: Arc<Mutex<StoreState>>,
    client: Arc<StoreClient>,
    dice: Mutex<Dice>,
    /// The truth about the run, once it was fired.
    truth: Mutex<Option<(bool, u64)>>,
    /// Keeps the channel of pushed spans open.
    pushes: Mutex<Vec<mpsc::Sender<drivers::Arrival>>>,
}

/// Plays one run, and watches it.
pub(super) async fn perform(
    scenario: &Scenario,
    learned: &LearnedProfile,
    keys: &KeyRing,
    dice: &mut Dice,
) -> Result<QueriedRun> {
    let trouble = match dice.below(20) {
        0..10 => Trouble::None,
        10..18 => Trouble::Some,
        18 => Trouble::Lasting,
        _ => Trouble::Refusal,
    };
    let store = StoreState::new(trouble, Dice::new(dice.next()));
    let client = StoreClient {
        name: "prod".to_owned(),
        declared_lag: scenario.lag,
        store: Box::new(ScriptedStore::new(&store)),
        limit: QueryLimit::new(8, 50),
    };
    let stage = QueriedStage {
        scenario,
        keys,
        began: Instant::now(),
        random: random(dice),
        store,
        client: Arc::new(client),
        dice: Mutex::new(Dice::new(dice.next())),
        truth: Mutex::default(),
        pushes: Mutex::default(),
    };
    let job = Job {
        run_id: RunId::new(stage.now(), [1; 10]),
        plan: &scenario.plan,
        vars: &Vars::default(),
        files: &Files::default(),
        progress: Progress::New,
        limits: Limits::default(),
        learned,
        started: None,
        timeout: None,
    };
    let finished = Box::pin(runner::run(job, &stage)).await?;
    let exit = Box::pin(follow(finished, &stage, WATCHED)).await;
    let (truth, hidden) = lock(&stage.truth).context("nothing was fired")?;
    let queries = lock(&stage.store).queries;
    let Exit { outcome, first, overtaken, seen, .. } = exit;
    let is_marked = overtaken.is_some() || first != outcome.verdict;
    Ok(QueriedRun { outcome, truth, trouble, hidden, is_marked, queries, seen })
}

impl QueriedStage<'_> {
    /// Does the work of a request: its spans are on their way to the store. Returns how long the request took.
    fn work(&self, attempt: &Attempt) -> Result<Duration> {
        let (mut dice, fired) = (lock(&self.dice), Instant::now());
        let answered = between(&mut dice, MS, 200 * MS);
        // Mostly as demanded, sometimes one more or less.
        let wanted = self.scenario.demanded;
        let works = match dice.below(4) {
            0 => wanted + 1,
            1 => wanted.saturating_sub(1),
            _ => wanted,
        };
        let mut hidden = 0;
        let mut spans = Vec::new();
        for number in 0..=works {
            let (name, end) = match number {
                0 => ("GET /cart", answered),
                _ => ("work", between(&mut dice, 0, answered)),
            };
            let service =
                if number == 0 { 0 } else { between(&mut dice, 0, self.scenario.services - 1) };
            let hides = match dice.below(3) {
                0 => self.scenario.hides_max,
                1 => 0,
                _ => between(&mut dice, 0, self.scenario.hides_max),
            };
            hidden = hides.max(hidden);
            let visible = fired + Duration::from_nanos(end + self.scenario.delay + hides);
            let otlp = self.encoded(attempt, (number, name), (service, end))?.into();
            spans.push(StoredSpan { visible, otlp });
        }
        spans.sort_by_key(|span| span.visible);
        lock(&self.store).spans = spans;
        *lock(&self.truth) = Some((works == wanted, hidden));
        Ok(Duration::from_nanos(answered))
    }

    fn encoded(
        &self,
        attempt: &Attempt,
        (number, name): (u64, &str),
        (service, end): (u64, u64),
    ) -> Result<Vec<u8>> {
        let mut trace = Trace::new(attempt.trace_id);
        let service = Value::Str(format!("s{service}"));
        let attributes = vec![("service.name".to_owned(), service)];
        let resource = trace.resource(ResourceData { attributes, ..ResourceData::default() })?;
        let scope = trace.scope(ScopeData::default())?;
        let id = |number: u64| SpanId::from_random((number + 1).to_be_bytes());
        let parent = if number == 0 { attempt.span_id } else { id(0) };
        let mut span = SpanData::new(id(number), Some(parent), name);
        span.kind = if number == 0 { Kind::Server } else { Kind::Internal };
        let fired = Timestamp::from_nanos(EPOCH).plus(self.began.elapsed());
        (span.start, span.end) = (fired, fired.plus(Duration::from_nanos(end)));
        trace.push(resource, scope, span)?;
        Ok(otlp::encode(&trace))
    }
}

impl Ports for QueriedStage<'_> {
    fn now(&self) -> Timestamp {
        Timestamp::from_nanos(EPOCH).plus(self.began.elapsed())
    }

    fn random(&self) -> [u8; 32] {
        self.random
    }

    fn keys(&self) -> &KeyRing {
        self.keys
    }

    async fn spans(&self, trace: TraceId) -> Arrivals {
        let (sender, receiver) = mpsc::channel(1);
        lock(&self.pushes).push(sender);
        let mut arrivals = Arrivals::new(receiver);
        poll(&mut arrivals, Arc::clone(&self.client), trace);
        arrivals
    }

    fn has_lost_spans(&self, _trace: TraceId) -> bool {
        false
    }

    async fn attempted(&self, _attempt: &Attempt) -> Result<(), LeaseLost> {
        Ok(())
    }

    async fn fire(&self, _request: &Request, attempt: &Attempt) -> Result<Answer, LeaseLost> {
        let took = self.work(attempt).map_err(|error| LeaseLost(error.to_string()))?;
        // The clock is virtual, and the request takes this time.
        sleep(took).await;
        Ok(Answer::Response(Response {
            status: 200,
            headers: Vec::new(),
            body: Body::Text("".into()),
            duration_ns: took.as_nanos() as u64,
        }))
    }

    async fn answered(&self, _answer: &Answer) -> Result<(), LeaseLost> {
        Ok(())
    }

    fn tell(&self, _event: RunEvent) {}
}

impl QueriedRun {
    /// Returns the lag that the run used.
    pub(super) fn lag(&self) -> u64 {
        let settlement = self.outcome.settlement.as_ref();
        settlement.and_then(|it| it.stores.first()).map_or(0, |store| store.lag_ns)
    }

    /// Whether the reasons of an inconclusive run name the store.
    pub(super) fn names_store(&self) -> bool {
        use UnsettledReason::{StorePartial, StoreUnread};
        let unsettled = self.outcome.settlement.iter().flat_map(|it| &it.unsettled);
        unsettled.into_iter().any(|it| matches!(it, StoreUnread(_) | StorePartial(_)))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
