//! The lifecycle of telemetry: start, reload, pressure, shutdown. An instance without globals; a program may have
//! several.
//!
//! Deliberately absent: the code on the program's threads (`pipeline`) and on those of the senders (`send`).

use std::{
    collections::HashSet,
    iter,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::{
    logs::SdkLoggerProvider, metrics::SdkMeterProvider, trace::SdkTracerProvider,
};

use crate::{
    counts::{Counts, Report},
    draining::{DrainEnd, DrainingExporter, EndedExporter},
    exporter::{Change, RunningExporter, StartError},
    host::{Host, Notice},
    leftovers,
    metrics::Reader,
    pipeline::{OUTLETS_MAX, Outlet, Pipeline, State},
    plan::{self, Destination, EXPORTERS_MAX, Plan, Roles, Signals},
    processor::{Logs, Sampler, Spans},
    self_metrics,
    span::FinishedSpan,
    watch::{Status, Watch, Watcher},
};

/// How long a replaced sender may wait for the responses to its requests: each response prevents that a batch is sent
/// twice.
const STOP_MAX: Duration = Duration::from_millis(900);
/// The longest shutdown. A clock cannot represent the end of an unlimited one.
const SHUTDOWN_MAX: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// The callback for notices.
type Listener = dyn Fn(&Notice<'_>) + Send + Sync;

/// The destination of an emitted span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum To<'a> {
    /// All exporters that carry the program's own spans.
    Own,
    /// The exporter of this name.
    Exporter(&'a str),
}

/// The telemetry of a program.
#[derive(Debug)]
pub struct Telemetry {
    state: Arc<State>,
    running: Mutex<Exporters>,
    watch: Arc<Watch>,
    watcher: Mutex<Option<Watcher>>,
    reader: Reader,
    host: Host,
    traces: SdkTracerProvider,
    logs: SdkLoggerProvider,
    metrics: SdkMeterProvider,
}

/// The running exporters.
#[derive(Debug, Default)]
struct Exporters {
    running: Vec<RunningExporter>,
    /// Exporters of an earlier plan that are still sending.
    retiring: Vec<DrainingExporter>,
    /// Exporters of an earlier plan that have ended.
    ended: Vec<EndedExporter>,
    last_slot: u8,
    is_over: bool,
}

impl Telemetry {
    /// Starts telemetry with a plan. No destination needs to be reachable.
    pub fn start(plan: &Plan, roles: &Roles, mut host: Host) -> Result<Self, StartError> {
        host.notice = unbroken(host.notice);
        let attributes = plan.resource.iter();
        host.resource
            .extend(attributes.map(|(key, value)| KeyValue::new(key.clone(), value.clone())));
        let state = Arc::new(State::new(host.scopes.clone(), host.crates.clone()));
        let reader = Reader::new();
        let resource = host.resource().build();
        let traces = SdkTracerProvider::builder()
            .with_resource(resource.clone())
            .with_sampler(Sampler(Arc::clone(&state)))
            .with_span_processor(Spans(Arc::clone(&state)))
            .build();
        let logs = SdkLoggerProvider::builder()
            .with_resource(resource.clone())
            .with_log_processor(Logs(Arc::clone(&state)))
            .build();
        let metrics =
            SdkMeterProvider::builder().with_resource(resource).with_reader(reader.clone()).build();
        self_metrics::register(&metrics, &state);
        let running = Mutex::new(Exporters::default());
        let watch = Arc::<Watch>::default();
        let watcher = watch.start(&state, &host).map_err(StartError::Thread)?;
        let watcher = Mutex::new(Some(watcher));
        let telemetry =
            Self { state, running, watch, watcher, reader, host, traces, logs, metrics };
        telemetry.reload(plan, roles)?;
        leftovers::report(&telemetry.exporters().running, &telemetry.host);
        Ok(telemetry)
    }

    /// Continues with another plan. Steps that can fail run first: on an error nothing has changed. Accepted items are
    /// kept. An unchanged exporter continues. A changed exporter gets a new sender on the same journal. A removed
    /// exporter sends its queued items for some seconds and leaves the rest on disk; if a plan contains it again before
    /// that, it continues as if it had never been removed. Another `directory` makes another exporter. The attributes
    /// of the resource stay those of the start.
    pub fn reload(&self, plan: &Plan, roles: &Roles) -> Result<(), StartError> {
        let wanted = active(plan, roles)?;
        // Clients are created and dropped here, and their own telemetry is not the program's.
        let _suppressed = Context::enter_telemetry_suppressed_scope();
        let mut exporters = self.exporters();
        if exporters.is_over {
            return Err(StartError::Ended);
        }
        // A recalled exporter continues to send even if the rest of the plan cannot be applied; the next plan decides.
        exporters.recall(&wanted);
        let mut opened = Vec::new();
        let mut changes = Vec::new();
        for (plan, own) in &wanted {
            let known = exporters.running.iter().find(|running| running.keeps_journal(plan));
            if known.is_some_and(|running| running.does(plan, *own)) {
                continue;
            }
            changes.push(Change::prepare(plan, *own, &self.host, &self.reader)?);
            if known.is_none() {
                let slot = exporters.next_slot(&opened);
                opened.push(RunningExporter::open(plan.clone(), *own, slot, &self.host)?);
            }
        }
        // From here on the only possible error is a lack of threads.
        opened.iter().for_each(|running| exporters.hand_over(running));
        exporters.running.append(&mut opened);
        let is_gone = |running: &mut RunningExporter| {
            wanted.iter().all(|(plan, _)| !running.keeps_journal(plan))
        };
        let gone: Vec<_> = exporters.running.extract_if(.., is_gone).collect();
        let result = exporters.change(changes, &self.host);
        let outlets = exporters.running.iter().map(|running| Arc::clone(&running.outlet));
        let left = self.state.swap(Pipeline::new(outlets.collect()));
        for running in gone {
            let retiree = DrainingExporter::start(running, Arc::downgrade(&left), &self.host);
            exporters.retiring.push(retiree);
        }
        drop(exporters);
        #[cfg(feature = "tracing")]
        crate::bridge::levels_changed();
        result
    }

    /// The tracer provider, for instrumentation and propagators.
    pub fn tracer_provider(&self) -> &SdkTracerProvider {
        &self.traces
    }

    /// The logger provider, for bridges of logging libraries.
    pub fn logger_provider(&self) -> &SdkLoggerProvider {
        &self.logs
    }

    /// The meter provider.
    pub fn meter_provider(&self) -> &SdkMeterProvider {
        &self.metrics
    }

    /// Exports a finished span with ids and times of the caller's choice. Like the end of any span, it blocks the
    /// caller while the buffer of an exporter that is not lossy is full.
    pub fn emit(&self, to: To<'_>, span: FinishedSpan) {
        if !span.context.is_sampled() || Context::is_current_telemetry_suppressed() {
            return;
        }
        self.state.emitted(span, |outlet: &Outlet| match to {
            To::Own => outlet.own,
            To::Exporter(name) => outlet.name == name,
        });
    }

    /// Returns how full the fullest buffer is that would block producers, from 0 to 1. A program that can reject
    /// requests should do so from 0.8 on: the remaining room is for requests in progress.
    pub fn pressure(&self) -> f64 {
        let pipeline = self.state.pipeline.load();
        pipeline.outlets.iter().map(|outlet| outlet.pressure()).fold(0.0, f64::max)
    }

    /// Returns the counts of each exporter of the plan.
    pub fn counts(&self) -> Vec<Counts> {
        self.state.pipeline.load().counts()
    }

    /// Returns the status of each exporter of the plan.
    pub fn status(&self) -> Vec<Status> {
        self.watch.status(&self.state, (self.host.now)())
    }

    /// Returns whether a producer waited for room in a full buffer within the last `last`: this explains operations
    /// that took long.
    pub fn was_held_within(&self, last: Duration) -> bool {
        let now = (self.host.now)();
        self.watch.was_held_since(now.checked_sub(last).unwrap_or(now))
    }

    /// Returns all instruments in the text format of Prometheus.
    pub fn prometheus(&self) -> String {
        self.reader.prometheus()
    }

    /// Sends queued items, for up to `max`, and ends. Undelivered items are then on disk and count as queued, or
    /// without a directory are discarded and count as dropped. The report includes exporters of earlier plans. Blocks;
    /// spans that end later are not accepted.
    pub fn shutdown(&self, max: Duration) -> Report {
        let _suppressed = Context::enter_telemetry_suppressed_scope();
        // From here on the report replaces the notices.
        drop(self.watcher.lock().unwrap_or_else(PoisonError::into_inner).take());
        let now = self.host.now;
        let until = now() + max.min(SHUTDOWN_MAX);
        let over = Exporters { is_over: true, ..Exporters::default() };
        let mut exporters = std::mem::replace(&mut *self.exporters(), over);
        exporters.retiring.iter().for_each(|retiree| retiree.end_by(until));
        let ending: Vec<_> = exporters
            .running
            .drain(..)
            .map(|running| {
                thread::spawn(move || {
                    let _suppressed = Context::enter_telemetry_suppressed_scope();
                    running.finish(until, now)
                })
            })
            .collect();
        let mut report = Report::default();
        for counts in ending.into_iter().filter_map(|thread| thread.join().ok()) {
            report.add(counts);
        }
        exporters.reap(|_| true);
        for ended in exporters.ended {
            report.add(ended.counts);
        }
        drop(self.state.swap(Pipeline::default()));
        // The SDK has nothing left to deliver; it only has to reject later spans.
        drop((self.traces.shutdown(), self.logs.shutdown(), self.metrics.shutdown()));
        report
    }

    #[cfg(feature = "tracing")]
    pub(crate) fn state(&self) -> &Arc<State> {
        &self.state
    }

    fn exporters(&self) -> MutexGuard<'_, Exporters> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Telemetry {
    /// Shuts down without waiting: unwritten items are written, undelivered items stay.
    fn drop(&mut self) {
        drop(self.shutdown(Duration::ZERO));
    }
}

/// Checks whether a plan can be applied: reads the files that its exporters name, and starts nothing.
pub fn validate(plan: &Plan, roles: &Roles, host: &Host) -> Result<(), StartError> {
    let reader = Reader::new();
    let active = active(plan, roles)?;
    active.iter().try_for_each(|(plan, own)| Change::prepare(plan, *own, host, &reader).map(drop))
}

/// Returns the exporters of a plan with the signals that they carry by their roles, and whether these are the program's
/// own.
pub(crate) fn carriers(plan: &Plan, roles: &Roles) -> impl Iterator<Item = (plan::Exporter, bool)> {
    plan.active(roles).map(|exporter| {
        let (mut exporter, own) = (exporter.clone(), exporter.is_own(roles));
        if !own {
            exporter.signals.metrics = None;
        }
        (exporter, own)
    })
}

/// Returns the exporters of a plan that carry a signal, or an error if the plan cannot be applied.
fn active(plan: &Plan, roles: &Roles) -> Result<Vec<(plan::Exporter, bool)>, StartError> {
    let mut named = roles.own.iter().chain(&roles.others);
    if let Some(name) = named.find(|name| plan.exporters.iter().all(|own| own.name != **name)) {
        return Err(StartError::UnknownExporter(name.clone()));
    }
    let active: Vec<_> = carriers(plan, roles).collect();
    match active.len() {
        ..=EXPORTERS_MAX => Ok(active.into_iter().flat_map(apart).collect()),
        more => Err(StartError::TooMany(more)),
    }
}

/// Splits an exporter of spans and logs into two, each with a journal and a sender: a destination may accept only one
/// of the signals, and the other must not wait for the rejected one. A file or standard output accepts both or none,
/// and has one writer.
fn apart((exporter, own): (plan::Exporter, bool)) -> impl Iterator<Item = (plan::Exporter, bool)> {
    let (mut rest, mut logs) = (exporter, None);
    if rest.signals.spans && rest.signals.logs && matches!(rest.destination, Destination::Otlp(_)) {
        rest.signals.logs = false;
        let signals = Signals { logs: true, ..Signals::default() };
        logs = Some(plan::Exporter { signals, ..rest.clone() });
    }
    iter::once(rest).chain(logs).map(move |exporter| (exporter, own))
}

impl Exporters {
    /// Recalls the exporters that the plan contains again, and collects those that have ended.
    fn recall(&mut self, wanted: &[(plan::Exporter, bool)]) {
        let is_wanted =
            |retiree: &DrainingExporter| wanted.iter().any(|(plan, _)| retiree.keeps_journal(plan));
        self.retiring
            .iter()
            .filter(|retiree| is_wanted(retiree))
            .for_each(DrainingExporter::recall);
        self.reap(|retiree| retiree.is_finished() || is_wanted(retiree));
    }

    /// Waits until these draining exporters end or are returned.
    fn reap(&mut self, which: impl Fn(&DrainingExporter) -> bool) {
        let left: Vec<_> = self.retiring.extract_if(.., |retiree| which(retiree)).collect();
        for left in left.into_iter().filter_map(DrainingExporter::join) {
            match left {
                DrainEnd::Recalled(running) => self.running.push(*running),
                DrainEnd::Ended(ended) => self.note(ended),
            }
        }
    }

    fn note(&mut self, ended: EndedExporter) {
        let same = |known: &&mut EndedExporter| {
            known.counts.exporter == ended.counts.exporter && known.folder == ended.folder
        };
        match self.ended.iter_mut().find(same) {
            Some(known) => known.counts.add(&ended.counts),
            None => self.ended.push(ended),
        }
    }

    /// Moves the counts of items that an ended exporter left to the exporter that recovered them.
    fn hand_over(&mut self, opened: &RunningExporter) {
        let (folder, found) = (opened.folder(), opened.outlet.counts().recovered);
        for ended in self.ended.iter_mut().filter(|it| it.folder.is_some() && it.folder == folder) {
            let handed = ended.counts.queued.min(found);
            ended.counts.queued -= handed;
            ended.counts.accepted -= handed;
        }
    }

    /// Applies new plans to exporters. Signals all of them before it waits for the first.
    fn change(&mut self, changes: Vec<Change>, host: &Host) -> Result<(), StartError> {
        let until = (host.now)() + STOP_MAX;
        for change in &changes {
            if let Some(running) = self.of(&change.plan) {
                running.signal_stop(until);
            }
        }
        let mut result = Ok(());
        for change in changes {
            if let Some(running) = self.of(&change.plan) {
                result = result.and(running.change(change, until, host));
            }
        }
        result
    }

    fn of(&mut self, plan: &plan::Exporter) -> Option<&mut RunningExporter> {
        self.running.iter_mut().find(|running| running.keeps_journal(plan))
    }

    /// Returns a slot that no exporter uses, and that was unused for as long as possible: active spans may carry its
    /// mark.
    fn next_slot(&mut self, opened: &[RunningExporter]) -> u8 {
        let taken: HashSet<u8> =
            self.running.iter().chain(opened).map(|running| running.outlet.slot).collect();
        let retiring: HashSet<u8> = self.retiring.iter().map(|retiree| retiree.slot).collect();
        let after = (1..=OUTLETS_MAX as u8).map(|step| (self.last_slot + step) % OUTLETS_MAX as u8);
        let free: Vec<u8> = after.filter(|slot| !taken.contains(slot)).collect();
        let unused = free.iter().find(|slot| !retiring.contains(slot));
        self.last_slot = unused.or(free.first()).copied().unwrap_or_default();
        self.last_slot
    }
}

/// Wraps a listener so that its panic only loses the notice that it handled.
fn unbroken(notice: Arc<Listener>) -> Arc<Listener> {
    Arc::new(move |said| drop(catch_unwind(AssertUnwindSafe(|| notice(said)))))
}
