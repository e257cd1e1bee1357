//! A program with telemetry in this process: its plan, its spans, and its notices to the operator.

use std::{
    collections::HashSet,
    fmt,
    path::Path,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use anyhow::{Context, Result, anyhow, bail};
use opentelemetry::{
    KeyValue,
    trace::{Span, Tracer, TracerProvider},
};
use telemetry::{
    Counts, Host, Report, Roles, Telemetry,
    plan::{
        Buffer, Compression, Destination, Durability, Endpoints, Exporter, Otlp, Plan, Retry,
        Signals, Tls, Transport,
    },
};
use tokio::time::{Instant, sleep};

use super::peer::Peer;
use crate::parts::{SpanId, unix_nanos};

/// Both transports.
pub(super) const BOTH: [Transport; 2] = [Transport::Grpc, Transport::Http];
/// The default name of a span.
pub(super) const NAME: &str = "step";
/// The timeout for a condition that must become true.
pub(super) const SOON: Duration = Duration::from_secs(20);
/// The polling interval of a condition.
const LOOK: Duration = Duration::from_millis(10);

/// A program with telemetry.
pub(super) struct Program {
    pub(super) telemetry: Telemetry,
    said: Arc<Mutex<Vec<String>>>,
    ended: Mutex<Vec<SpanId>>,
}

/// Threads that emit at a steady rate until they are stopped.
pub(super) struct SteadyLoad {
    stop: Arc<AtomicBool>,
    threads: Vec<thread::JoinHandle<()>>,
}

impl Program {
    /// Starts with these exporters.
    pub(super) fn start(exporters: Vec<Exporter>) -> Result<Arc<Self>> {
        Self::start_on(exporters, Host::new("faults/1.0"))
    }

    /// Starts with these exporters on this host.
    pub(super) fn start_on(exporters: Vec<Exporter>, mut host: Host) -> Result<Arc<Self>> {
        let said = Arc::<Mutex<Vec<String>>>::default();
        let hears = Arc::clone(&said);
        host.notice = Arc::new(move |notice| locked(&hears).push(notice.message.to_owned()));
        let telemetry = Telemetry::start(&plan(exporters), &Roles::default(), host)?;
        Ok(Arc::new(Self { telemetry, said, ended: Mutex::default() }))
    }

    /// Reloads with other exporters.
    pub(super) fn reload(&self, exporters: Vec<Exporter>) -> Result<()> {
        Ok(self.telemetry.reload(&plan(exporters), &Roles::default())?)
    }

    /// Emits this many small spans.
    pub(super) fn emit(&self, count: u64) {
        for _ in 0..count {
            self.one(NAME, 0);
        }
    }

    /// Emits a span of this name, with an attribute of this many bytes that do not compress.
    pub(super) fn one(&self, name: &'static str, bytes: usize) -> SpanId {
        let tracer = self.telemetry.tracer_provider().tracer("faults");
        let mut span = tracer.start(name);
        let id = span.span_context().span_id().to_bytes();
        span.set_attribute(KeyValue::new("http.route", "/items/{item}"));
        if bytes > 0 {
            span.set_attribute(KeyValue::new("noise", noise(bytes)));
        }
        span.end();
        locked(&self.ended).push(id);
        id
    }

    /// Returns the ids of all ended spans.
    pub(super) fn ended(&self) -> Vec<SpanId> {
        locked(&self.ended).clone()
    }

    /// Returns the same, and clears the list.
    pub(super) fn take_ended(&self) -> Vec<SpanId> {
        std::mem::take(&mut *locked(&self.ended))
    }

    /// Returns the notices to the operator.
    pub(super) fn lines(&self) -> Vec<String> {
        locked(&self.said).clone()
    }

    /// Waits for a notice that contains this word, and returns all notices.
    pub(super) async fn wait_for_line(&self, word: &str) -> Result<Vec<String>> {
        let began = Instant::now();
        loop {
            let said = self.lines();
            if said.iter().any(|line| line.contains(word)) {
                return Ok(said);
            }
            if began.elapsed() > SOON {
                bail!("waited {SOON:?} for `{word}`: {said:?}");
            }
            sleep(LOOK).await;
        }
    }

    /// Returns the counts of the first exporter.
    pub(super) fn counts(&self) -> Counts {
        self.telemetry.counts().into_iter().next().unwrap_or_default()
    }

    /// Waits until the counts of the first exporter satisfy the condition.
    pub(super) async fn until(
        &self,
        what: &str,
        max: Duration,
        is_so: impl Fn(&Counts) -> bool,
    ) -> Result<Counts> {
        let began = Instant::now();
        loop {
            let counts = self.counts();
            if is_so(&counts) {
                return Ok(counts);
            }
            if began.elapsed() > max {
                bail!("waited {max:?} for {what}: {counts:?}; said: {:?}", self.lines());
            }
            sleep(LOOK).await;
        }
    }

    /// Shuts it down, without blocking a thread of the runtime meanwhile.
    pub(super) async fn end(self: Arc<Self>, max: Duration) -> Result<Report> {
        Ok(tokio::task::spawn_blocking(move || self.telemetry.shutdown(max)).await?)
    }
}

impl SteadyLoad {
    /// Starts this many threads, each with `rate` spans per second.
    pub(super) fn start(program: &Arc<Program>, threads: usize, rate: u64) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let run = |_| {
            let (program, stop) = (Arc::clone(program), Arc::clone(&stop));
            thread::spawn(move || {
                let began = unix_nanos();
                let mut emitted = 0;
                while !stop.load(Ordering::Relaxed) {
                    let elapsed = unix_nanos().saturating_sub(began);
                    let due = u128::from(elapsed) * u128::from(rate) / 1_000_000_000;
                    while emitted < due && !stop.load(Ordering::Relaxed) {
                        program.emit(1);
                        emitted += 1;
                    }
                    pause(Duration::from_millis(1));
                }
            })
        };
        let threads = (0..threads).map(run).collect();
        Self { stop, threads }
    }

    /// Stops, and waits until the active spans have ended.
    pub(super) async fn stop(self) -> Result<()> {
        tokio::task::spawn_blocking(move || self.join()).await?
    }

    /// The same, for a thread that may block.
    pub(super) fn join(mut self) -> Result<()> {
        self.stop.store(true, Ordering::Relaxed);
        for thread in std::mem::take(&mut self.threads) {
            thread.join().map_err(|_| anyhow!("a thread that emits has panicked"))?;
        }
        Ok(())
    }
}

impl Drop for SteadyLoad {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Program").field("telemetry", &self.telemetry).finish_non_exhaustive()
    }
}

/// Returns an exporter of spans to this endpoint, in memory, with the defaults of a configuration except for a shorter throttle.
pub(super) fn exporter(name: &str, transport: Transport, endpoint: &str) -> Result<Exporter> {
    let uri = |path: &str| format!("{endpoint}{path}").parse().context("it is an URL");
    let endpoints = Endpoints {
        traces: uri("/v1/traces")?,
        logs: uri("/v1/logs")?,
        metrics: uri("/v1/metrics")?,
    };
    Ok(Exporter {
        name: name.to_owned(),
        service_name: "faults".to_owned(),
        always: true,
        signals: Signals { spans: true, ..Signals::default() },
        sampling: 100.0,
        level: None,
        throttle: Duration::from_millis(200),
        lossy: false,
        buffer: Buffer::default(),
        destination: Destination::Otlp(Otlp {
            transport,
            endpoints,
            headers: Vec::new(),
            tls: Tls::default(),
            timeout: Duration::from_secs(10),
            compression: Compression::Gzip,
            retry: Retry::default(),
            concurrency: 4,
        }),
    })
}

/// Returns the exporter with a folder.
pub(super) fn kept_in(exporter: Exporter, directory: &Path, durability: Durability) -> Exporter {
    let directory = Some(directory.to_owned());
    Exporter { buffer: Buffer { directory, durability, ..exporter.buffer.clone() }, ..exporter }
}

/// Returns the exporter with changed OTLP settings.
pub(super) fn with_otlp(mut exporter: Exporter, change: impl FnOnce(&mut Otlp)) -> Exporter {
    if let Destination::Otlp(otlp) = &mut exporter.destination {
        change(otlp);
    }
    exporter
}

/// Returns the endpoint of a local port.
pub(super) fn local(port: u16) -> String {
    format!("http://127.0.0.1:{port}")
}

/// Returns the ids of all spans that a peer has accepted.
pub(super) fn received(peer: &Peer) -> HashSet<SpanId> {
    let seen = peer.seen();
    let spans = seen.iter().filter(|seen| seen.is_accepted).flat_map(|seen| &seen.spans);
    spans.filter_map(|span| SpanId::try_from(span.span_id.clone()).ok()).collect()
}

#[expect(clippy::disallowed_methods, reason = "the pace of a load is the real clock's")]
pub(super) fn pause(time: Duration) {
    thread::sleep(time);
}

pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn plan(exporters: Vec<Exporter>) -> Plan {
    Plan { exporters, ..Plan::default() }
}

/// Generates random text of 64 letters, which does not compress to much less than three quarters.
fn noise(bytes: usize) -> String {
    let mut state = 0x2545_f491_4f6c_dd1d_u64 ^ unix_nanos();
    let letter = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(b'0' + (state >> 58) as u8)
    };
    (0..bytes).map(letter).collect()
}
