//! The shared resources of local runs: the receiver, the triggers, the learned profile, and the system if we start it.
//!
//! A session outlives its tests, and may run several concurrently. Deliberately absent: which tests, how often, and reports.

use std::{
    net::SocketAddr,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use drivers::{
    inbox::{self, Inbox},
    receiver::{self, Receiver},
    store::{InvalidStore, QueryResult, StoreClient, StoreDialer},
    trigger::{self, Triggers},
};
use lang::{Files, Plan, Vars};
use model::{
    ErrorCode, Fault, Faulty, Key, KeyRing, LearnedProfile, Progress, RunId, StoreConfig, TraceId,
    World,
};
use runner::{FinishedRun, Job, Limits, Pool, RunError, StartedProcesses};
use thiserror::Error;
use tokio::{runtime::Handle, time::sleep};

use crate::{
    args::Ready,
    files::{self, FileError},
};

use super::{
    ports::{LocalPorts, ResponseNotifier, Stage},
    progress::Line,
    system::{Life, RunningSystem, System, SystemError},
};

/// How long spans may still arrive after the command has ended by itself.
const AFTERLIFE: Duration = Duration::from_secs(1);

/// How often a store is queried before the tests, and the pause between.
const STORE_TRIES: u32 = 3;
const STORE_PAUSE: Duration = Duration::from_millis(500);

/// The limits of a trace. In a local run one person waits for one trace, which may be large.
const LIMITS: Limits = Limits { spans_max: 4_000_000, trace_bytes_max: TRACE_BYTES_MAX };
const INBOX: inbox::Limits = inbox::Limits {
    traces_max: 1024,
    trace_bytes_max: TRACE_BYTES_MAX,
    bytes_max: TRACE_BYTES_MAX,
    messages_max: 4096,
};
const TRACE_BYTES_MAX: usize = 1 << 30;

/// An environment to run tests in.
#[derive(Debug)]
pub(crate) struct Session {
    pub(super) world: World,
    pub(super) keys: KeyRing,
    pub(super) inbox: Arc<Inbox>,
    pub(super) receiver: Receiver,
    pub(super) triggers: Triggers,
    pub(super) system: Option<System>,
    pub(super) started: Option<StartedProcesses>,
    /// The upper bound for the duration of a test.
    timeout: Option<Duration>,
    known: Mutex<LearnedState>,
    dialer: StoreDialer,
    /// The stores that were queried so far, each with its configuration.
    stores: Mutex<Vec<(StoreConfig, Arc<StoreClient>)>>,
    /// The pool in which tests are judged.
    pub(super) pool: Pool,
}

/// The learned profile of the system.
#[derive(Debug)]
struct LearnedState {
    /// The current profile.
    learned: Arc<LearnedProfile>,
    /// The part that runs of this session have observed and that is not stored yet.
    seen: LearnedProfile,
}

/// A session with a listening receiver, and without a system yet.
#[derive(Debug)]
pub(crate) struct Open {
    session: Session,
}

/// The reason why a session cannot start.
#[derive(Debug, Error)]
pub(crate) enum OpenError {
    #[error(transparent)]
    Receiver(#[from] receiver::StartError),
    #[error(
        "`{0}` is taken: likely an OpenTelemetry Collector, Jaeger or another `qualitytrace` listens there; stop it, or \
         receive elsewhere by `--otlp 127.0.0.1:PORT` and have the system export to that, or let `-- COMMAND` start the \
         system, which is told a free port"
    )]
    Taken(SocketAddr),
}

/// The reason why a test has no verdict.
#[derive(Debug, Error)]
pub(crate) enum SessionError {
    #[error(transparent)]
    Run(#[from] RunError),
    #[error(transparent)]
    System(#[from] SystemError),
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Store(#[from] InvalidStore),
}

impl Faulty for OpenError {
    fn fault(&self) -> Fault {
        match self {
            Self::Receiver(error) => error.fault(),
            Self::Taken(_) => Fault::Conflict,
        }
    }

    fn code(&self) -> ErrorCode {
        match self {
            Self::Receiver(error) => error.code(),
            Self::Taken(_) => ErrorCode::OtlpPortInUse,
        }
    }
}

impl Faulty for SessionError {
    fn fault(&self) -> Fault {
        match self {
            Self::Run(error) => error.fault(),
            Self::System(error) => error.fault(),
            Self::File(error) => error.fault(),
            Self::Store(error) => error.fault(),
        }
    }

    fn code(&self) -> ErrorCode {
        match self {
            Self::Run(error) => error.code(),
            Self::System(error) => error.code(),
            Self::File(error) => error.code(),
            Self::Store(error) => error.code(),
        }
    }
}

impl Open {
    /// Listens for OTLP on these addresses.
    pub(crate) async fn listen(
        addresses: Vec<SocketAddr>,
        learned: LearnedProfile,
        environment: Vec<(String, String)>,
        world: World,
    ) -> Result<Self, OpenError> {
        let keys = KeyRing::new(Key::from_bytes(world.random()), Vec::new());
        let inbox = Arc::new(Inbox::new(keys.clone(), INBOX));
        let receiving = receiver::Config::new(addresses);
        let receiver = receiver::start(receiving, Arc::clone(&inbox)).await;
        let receiver = receiver.map_err(|error| match error {
            receiver::StartError::Taken(address) => OpenError::Taken(address),
            error @ receiver::StartError::Address { .. } => OpenError::Receiver(error),
        })?;
        let limits = trigger::TriggerLimits::default();
        let commands = trigger::Commands::All;
        let dialer = StoreDialer::new(&environment, None);
        let triggers =
            Triggers::new(trigger::TriggerConfig { limits, environment, commands, networks: None });
        let known = Mutex::new(LearnedState {
            learned: Arc::new(learned),
            seen: LearnedProfile::default(),
        });
        let session = Session {
            world,
            keys,
            inbox,
            receiver,
            triggers,
            system: None,
            started: None,
            timeout: None,
            known,
            dialer,
            stores: Mutex::default(),
            // All local runs have one owner, and one owner gets half of the pool.
            pool: Pool::new(2 * Handle::current().metrics().num_workers()),
        };
        Ok(Self { session })
    }

    /// Returns the listen addresses.
    pub(crate) fn addresses(&self) -> Vec<SocketAddr> {
        self.session.receiver.addresses().to_vec()
    }

    /// Sets the time after which a test is judged by the spans received so far.
    pub(crate) fn with_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.session.timeout = timeout;
        self
    }

    /// Returns a session for a system that runs already.
    pub(crate) fn session(self) -> Session {
        self.session
    }

    /// Returns a session for a system that is started with the first test, and identified by its marker.
    pub(crate) fn with_system(mut self, system: System, started: StartedProcesses) -> Session {
        self.session.system = Some(system);
        self.session.started = Some(started);
        self.session
    }
}

impl Session {
    /// Starts the system, if it is shared by all tests and does not run, and waits until it is ready.
    pub(crate) async fn begin(&self, target: Option<Ready>) -> Result<(), SystemError> {
        match &self.system {
            Some(system) if system.life() == Life::Shared => {
                system.forget_ended().await;
                system.running(target).await.map(drop)
            }
            _ => Ok(()),
        }
    }

    /// Returns the system that was started last, if we start it.
    pub(crate) fn running(&self) -> Option<Arc<RunningSystem>> {
        self.system.as_ref().and_then(System::last)
    }

    /// Returns the addresses on which spans are received.
    pub(crate) fn addresses(&self) -> &[SocketAddr] {
        self.receiver.addresses()
    }

    /// Runs one test, and returns the system that it ran on.
    pub(crate) async fn run(
        &self,
        plan: &Plan,
        vars: &Vars,
        line: &Line,
        answered: Option<ResponseNotifier>,
    ) -> Result<(FinishedRun, Option<Arc<RunningSystem>>), SessionError> {
        let files = files::read(plan)?;
        let running = match &self.system {
            Some(system) => Some(system.running(self.target(plan, vars)).await?),
            None => None,
        };
        let mut ports = LocalPorts::new(self, running.as_deref(), line, Stage::Running);
        ports.stores = self.stores(plan)?;
        *ports.answered.lock().unwrap_or_else(PoisonError::into_inner) = answered;
        let finished = self.run_on(&ports, (plan, vars, &files)).await;
        match (&self.system, &running) {
            (Some(system), Some(running)) if system.life() == Life::PerTest => {
                running.stop().await;
            }
            _ => {}
        }
        let finished = finished?;
        Ok((finished, running))
    }

    async fn run_on(
        &self,
        ports: &LocalPorts<'_>,
        (plan, vars, files): (&Plan, &Vars, &Files),
    ) -> Result<FinishedRun, SessionError> {
        let (running, line) = (ports.running, ports.line);
        let learned = Arc::clone(&self.known().learned);
        let run_id = RunId::new(self.world.now(), self.world.random());
        line.keep_secret(&lang::secrets(plan, vars, &runner::seed(run_id), files));
        let job = Job {
            run_id,
            plan,
            vars,
            files,
            progress: Progress::New,
            limits: LIMITS,
            learned: &learned,
            started: self.started.as_ref(),
            timeout: self.timeout,
        };
        let lost = async {
            let ended = match running {
                Some(running) => running.ends_early().await,
                None => std::future::pending().await,
            };
            sleep(AFTERLIFE).await;
            ended
        };
        let mut run = pin!(runner::run(job, ports));
        let mut finished = tokio::select! {
            finished = &mut run => finished?,
            _ = lost => {
                ports.let_go();
                run.await?
            }
        };
        let ended = running.and_then(RunningSystem::ended_early).map(|ended| ended.to_string());
        finished.outcome.reasons.extend(ended.or_else(|| ports.take_undrained()));
        Ok(finished)
    }

    /// Returns the stores that a test queries. Each is opened once in a session.
    fn stores(&self, plan: &Plan) -> Result<Vec<Arc<StoreClient>>, InvalidStore> {
        let mut opened = self.stores.lock().unwrap_or_else(PoisonError::into_inner);
        let mut stores = Vec::new();
        for config in plan.queried() {
            let known = opened.iter().find(|(known, _)| known == config);
            stores.push(match known {
                Some((_, store)) => Arc::clone(store),
                None => {
                    let store = Arc::new(self.dialer.open(config)?);
                    opened.push((config.clone(), Arc::clone(&store)));
                    store
                }
            });
        }
        Ok(stores)
    }

    /// Queries each store of these tests once, for a trace that does not exist. The error is the first store that cannot be read, and
    /// why.
    pub(crate) async fn check_stores<'a>(
        &self,
        plans: impl Iterator<Item = &'a Plan>,
    ) -> Result<(), InvalidStore> {
        let mut checked: Vec<Arc<StoreClient>> = Vec::new();
        for plan in plans {
            for store in self.stores(plan)? {
                if !checked.iter().any(|known| Arc::ptr_eq(known, &store)) {
                    self.check_store(&store).await?;
                    checked.push(store);
                }
            }
        }
        Ok(())
    }

    /// Queries a store until it answers; a failure that time may mend is tried again for a short time.
    async fn check_store(&self, client: &StoreClient) -> Result<(), InvalidStore> {
        let unknown = TraceId::from_random(self.world.random());
        let mut tries = 1;
        loop {
            let reason = match client.store.query(unknown, Some(self.world.now())).await {
                QueryResult::Nothing | QueryResult::Spans { .. } => return Ok(()),
                QueryResult::Failed { retry_after, .. } if tries < STORE_TRIES => {
                    tries += 1;
                    sleep(retry_after.unwrap_or_default().clamp(STORE_PAUSE, STORE_PAUSE * 4))
                        .await;
                    continue;
                }
                QueryResult::Failed { message, .. } | QueryResult::Refused { message } => message,
            };
            return Err(InvalidStore { store: client.name.clone(), reason });
        }
    }

    /// Adds the observations of a run to the learned profile.
    ///
    /// Runs that are inconclusive because parents are absent show that parents are absent. Several of those within one command
    /// count as one, and only for later commands: a retry must not turn a verdict into a pass.
    pub(crate) fn learn(&self, seen: &LearnedProfile) {
        let mut known = self.known();
        known.seen.observe(seen);
        for service in known.seen.all_services_mut() {
            service.absent_parents = service.absent_parents.min(1);
        }
        let mut seen = seen.clone();
        for service in seen.all_services_mut() {
            service.absent_parents = 0;
        }
        Arc::make_mut(&mut known.learned).observe(&seen);
    }

    /// Takes the observations of runs since the last call; none if there are none.
    pub(crate) fn take_seen(&self) -> Option<LearnedProfile> {
        let seen = std::mem::take(&mut self.known().seen);
        (!seen.is_empty()).then_some(seen)
    }

    fn known(&self) -> MutexGuard<'_, LearnedState> {
        // No operation under the lock can fail in between.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the target of a test's trigger, as far as it is known before the run.
    pub(crate) fn target(&self, plan: &Plan, vars: &Vars) -> Option<Ready> {
        let seed = lang::Seed { now: self.world.now(), random: [0; 32] };
        let files = files::read(plan).ok()?;
        Ready::target(lang::request(plan, vars, &seed, &files).ok()?.request.url()?)
    }

    /// Stops the system, if we started it.
    pub(crate) async fn stop_system(&self) {
        if let Some(running) = self.running() {
            running.stop().await;
        }
    }
}
