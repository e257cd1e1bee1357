//! The life of telemetry: start, change, pressure, end. An instance without globals; a program may have several.
//!
//! Deliberately absent: what runs on the program's threads (`pipeline`) and on those of the senders (`send`).

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::{
    Resource, logs::SdkLoggerProvider, metrics::SdkMeterProvider, trace::SdkTracerProvider,
};

use crate::{
    counts::{Counts, Report},
    exporter::{Running, StartError, check},
    host::Host,
    metrics::Reader,
    pipeline::{OUTLETS_MAX, Outlet, Pipeline, State},
    plan::{self, EXPORTERS_MAX, Plan, Roles},
    processor::{Logs, Sampler, Spans},
    self_metrics,
    span::FinishedSpan,
};

/// How long an exporter that a new plan no longer has may take to send what it holds.
const RETIRE_MAX: Duration = Duration::from_secs(10);
/// How long a swapped pipeline may still be in use by a producer before it is no longer waited for.
const SWAP_MAX: Duration = Duration::from_secs(1);

/// Where an emitted span goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum To<'a> {
    /// To all exporters that carry the program's own spans.
    Own,
    /// To the exporter of this name.
    Exporter(&'a str),
}

/// The telemetry of a program.
#[derive(Debug)]
pub struct Telemetry {
    state: Arc<State>,
    running: Mutex<Exporters>,
    reader: Reader,
    host: Host,
    traces: SdkTracerProvider,
    logs: SdkLoggerProvider,
    metrics: SdkMeterProvider,
}

/// The exporters at work.
#[derive(Debug, Default)]
struct Exporters {
    running: Vec<Running>,
    /// Exporters that an earlier plan had and that still send.
    retiring: Vec<thread::JoinHandle<Counts>>,
    last_slot: u8,
    ended: bool,
}

impl Telemetry {
    /// Starts by a plan. No destination needs to be there.
    pub fn start(plan: &Plan, roles: &Roles, mut host: Host) -> Result<Self, StartError> {
        let attributes = plan.resource.iter();
        host.resource
            .extend(attributes.map(|(key, value)| KeyValue::new(key.clone(), value.clone())));
        let state = Arc::new(State::new(host.scopes.clone()));
        let reader = Reader::new();
        let resource = Resource::builder_empty().with_attributes(host.resource.clone()).build();
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
        let telemetry = Self { state, running, reader, host, traces, logs, metrics };
        telemetry.reload(plan, roles)?;
        Ok(telemetry)
    }

    /// Goes on by another plan. It is checked first and applied as a whole: on an error nothing has changed. What was
    /// accepted is kept: an unchanged exporter goes on, a changed one gets a new sender on the same journal, and one that
    /// is gone sends what it holds for some seconds and leaves the rest on disk. Attributes of the resource are those of
    /// the start.
    pub fn reload(&self, plan: &Plan, roles: &Roles) -> Result<(), StartError> {
        let wanted = active(plan, roles)?;
        wanted.iter().try_for_each(|(plan, _)| check(plan, &self.host))?;
        let mut exporters = self.exporters();
        if exporters.ended {
            return Err(StartError::Ended);
        }
        // New journals first: they are what can fail.
        let mut opened = Vec::new();
        for (plan, own) in &wanted {
            let kept = exporters.running.iter().any(|running| is_kept(running, plan));
            if !kept {
                let slot = exporters.next_slot(&opened);
                opened.push(Running::open(plan.clone(), *own, slot, &self.host)?);
            }
        }
        let mut kept = Vec::new();
        let mut gone = Vec::new();
        for running in exporters.running.drain(..) {
            match wanted.iter().find(|(plan, _)| is_kept(&running, plan)) {
                Some(wanted) => kept.push((running, wanted.clone())),
                None => gone.push(running),
            }
        }
        let mut result = Ok(());
        for (mut running, (plan, own)) in kept {
            result = result.and(running.change(plan, own, &self.host, &self.reader));
            exporters.running.push(running);
        }
        for mut running in opened {
            result = result.and(running.start(&self.host, &self.reader));
            exporters.running.push(running);
        }
        let outlets = exporters.running.iter().map(|running| Arc::clone(&running.outlet));
        let old = self.state.pipeline.swap(Arc::new(Pipeline::new(outlets.collect())));
        self.retire(&mut exporters, gone, old);
        drop(exporters);
        #[cfg(feature = "tracing")]
        crate::bridge::levels_changed();
        result
    }

    /// The provider of tracers, for instrumentation and propagators.
    pub fn tracer_provider(&self) -> &SdkTracerProvider {
        &self.traces
    }

    /// The provider of loggers, for bridges of logging libraries.
    pub fn logger_provider(&self) -> &SdkLoggerProvider {
        &self.logs
    }

    /// The provider of meters.
    pub fn meter_provider(&self) -> &SdkMeterProvider {
        &self.metrics
    }

    /// Hands over a finished span with ids and times of the caller's choice. Like the end of any span, it holds the
    /// caller while the buffer of an exporter that is not lossy is full.
    pub fn emit(&self, to: To<'_>, span: FinishedSpan) {
        if !span.context.is_sampled() || Context::is_current_telemetry_suppressed() {
            return;
        }
        let said = (span.followed, span.level);
        let span = span.into_data();
        self.state.emitted(&span, said, |outlet: &Outlet| match to {
            To::Own => outlet.own,
            To::Exporter(name) => outlet.name == name,
        });
    }

    /// How full the fullest buffer is that would hold producers, from 0 to 1. A program that can refuse work should do so
    /// from 0.8 on: what is left is for the work under way.
    pub fn pressure(&self) -> f64 {
        let pipeline = self.state.pipeline.load();
        pipeline.outlets.iter().map(|outlet| outlet.pressure()).fold(0.0, f64::max)
    }

    /// What became of everything so far, exporter by exporter.
    pub fn counts(&self) -> Vec<Counts> {
        self.state.pipeline.load().outlets.iter().map(|outlet| outlet.counts()).collect()
    }

    /// All instruments in the text format of Prometheus.
    pub fn prometheus(&self) -> String {
        self.reader.prometheus()
    }

    /// Sends what is queued, for up to `max`, and ends. What was not delivered then is on disk and counts as queued, or
    /// without a directory is given up and counts as dropped. Blocks; spans that end later are not accepted.
    pub fn shutdown(&self, max: Duration) -> Report {
        let now = self.host.now;
        let until = now() + max;
        let mut exporters = std::mem::replace(
            &mut *self.exporters(),
            Exporters { ended: true, ..Exporters::default() },
        );
        let ending: Vec<_> = exporters
            .running
            .drain(..)
            .map(|running| thread::spawn(move || running.finish(until, now)))
            .collect();
        let ended = ending.into_iter().chain(exporters.retiring.drain(..));
        let counts = ended.filter_map(|thread| thread.join().ok()).collect();
        self.state.pipeline.store(Arc::default());
        // The SDK has nothing to deliver any more; it only learns that later spans are not wanted.
        drop((self.traces.shutdown(), self.logs.shutdown(), self.metrics.shutdown()));
        Report { exporters: counts }
    }

    #[cfg(feature = "tracing")]
    pub(crate) fn state(&self) -> &Arc<State> {
        &self.state
    }

    /// Ends exporters behind the back of the caller, once no producer can have them in hand.
    fn retire(&self, exporters: &mut Exporters, gone: Vec<Running>, old: Arc<Pipeline>) {
        exporters.retiring.retain(|thread| !thread.is_finished());
        let old = Arc::new(old);
        for running in gone {
            let (old, now) = (Arc::clone(&old), self.host.now);
            exporters.retiring.push(thread::spawn(move || {
                let began = now();
                while Arc::strong_count(&*old) > 1 && now() < began + SWAP_MAX {
                    thread::yield_now();
                }
                running.finish(began + RETIRE_MAX, now)
            }));
        }
    }

    fn exporters(&self) -> MutexGuard<'_, Exporters> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Telemetry {
    /// Ends without waiting: what is not written is written, what is not delivered stays.
    fn drop(&mut self) {
        drop(self.shutdown(Duration::ZERO));
    }
}

fn is_kept(running: &Running, plan: &plan::Exporter) -> bool {
    running.plan.name == plan.name && running.keeps_journal(plan)
}

/// The exporters of a plan that have something to carry, and whether that is the program's own.
fn active(plan: &Plan, roles: &Roles) -> Result<Vec<(plan::Exporter, bool)>, StartError> {
    let mut named = roles.own.iter().chain(&roles.others);
    if let Some(name) = named.find(|name| plan.exporters.iter().all(|own| own.name != **name)) {
        return Err(StartError::UnknownExporter(name.clone()));
    }
    let active: Vec<_> = plan
        .active(roles)
        .map(|exporter| {
            let (mut exporter, own) = (exporter.clone(), exporter.is_own(roles));
            if !own {
                exporter.signals.metrics = None;
            }
            (exporter, own)
        })
        .collect();
    // As many again may be retiring while a new plan starts.
    match active.len() {
        ..=EXPORTERS_MAX => Ok(active),
        more => Err(StartError::TooMany(more)),
    }
}

impl Exporters {
    /// A slot that nobody has, and that nobody had for as long as possible: spans under way may bear its mark.
    fn next_slot(&mut self, opened: &[Running]) -> u8 {
        let taken: HashSet<u8> =
            self.running.iter().chain(opened).map(|running| running.outlet.slot).collect();
        let after = (0..OUTLETS_MAX as u8).map(|step| (self.last_slot + step) % OUTLETS_MAX as u8);
        let free = after.skip(1).find(|slot| !taken.contains(slot));
        self.last_slot = free.unwrap_or_default();
        self.last_slot
    }
}
