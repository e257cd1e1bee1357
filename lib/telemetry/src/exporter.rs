//! A running exporter: its journal, the outlet for producers, and the sender behind it.
//!
//! Deliberately absent: which exporters exist. That is `life`.

use std::{
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use journal::{Full, Journal, Options};
use thiserror::Error;

use crate::{
    counts::Counts,
    encode,
    host::{Host, Notice, Topic},
    metrics::Reader,
    pipeline::{Outlet, threshold},
    plan::{self, Durability, Signal},
    send::{self, Lane, PreparedSender, SendHost, Sender},
};

/// The minimum time for stopping a sender, regardless of the deadline: it discards the requests in progress.
const END_MAX: Duration = Duration::from_millis(250);

/// Why telemetry cannot start. In this case nothing was changed.
#[derive(Debug, Error)]
pub enum StartError {
    /// A role names an exporter that the plan does not have.
    #[error("no exporter is named `{0}`: add it to the configuration, or name another one")]
    UnknownExporter(String),
    /// The plan has more exporters than the limit.
    #[error("{0} exporters are more than the {max} that one program may have", max = crate::plan::EXPORTERS_MAX)]
    TooMany(usize),
    /// The folder of a buffer cannot be used.
    #[error("`{exporter}` cannot keep its buffer in `{directory}`: {reason}")]
    Buffer {
        /// The name of the exporter.
        exporter: String,
        /// Its folder.
        directory: PathBuf,
        /// The error.
        reason: journal::OpenError,
    },
    /// A destination with an invalid configuration.
    #[error("`{exporter}`: {reason}")]
    Destination {
        /// The name of the exporter.
        exporter: String,
        /// The error.
        reason: String,
    },
    /// The thread that monitors the exporters cannot be started.
    #[error("cannot start a thread: {0}")]
    Thread(std::io::Error),
    /// Telemetry was shut down, and cannot start again.
    #[error("telemetry has been shut down")]
    Ended,
}

/// The suffix of an exporter's name for the journal of its logs.
pub(crate) const LOGS: &str = ".logs";

/// A running exporter.
#[derive(Debug)]
pub(crate) struct RunningExporter {
    pub(crate) plan: plan::Exporter,
    pub(crate) own: bool,
    pub(crate) outlet: Arc<Outlet>,
    sender: Option<Sender>,
}

/// The identity of an exporter's journal: its records stay as long as a plan contains such an exporter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JournalId {
    name: String,
    directory: Option<PathBuf>,
}

impl JournalId {
    /// Logs without spans have a separate journal, so that neither waits for the other.
    pub(crate) fn of(plan: &plan::Exporter) -> Self {
        let has_logs_alone = plan.signals.logs && !plan.signals.spans;
        let logs = if has_logs_alone { LOGS } else { "" };
        let directory = plan.buffer.directory.clone();
        Self { name: format!("{}{logs}", plan.name), directory }
    }

    /// Its folder, if it is on disk.
    fn folder(&self) -> Option<PathBuf> {
        self.directory.as_ref().map(|directory| directory.join(file_name(&self.name)))
    }
}

/// The new plan of an exporter, prepared so that it can be applied.
pub(crate) struct Change {
    pub(crate) plan: plan::Exporter,
    pub(crate) own: bool,
    sender: PreparedSender,
}

impl RunningExporter {
    /// Opens the journal. Nothing is sent before the first [`change`](Self::change).
    pub(crate) fn open(
        plan: plan::Exporter,
        own: bool,
        slot: u8,
        host: &Host,
    ) -> Result<Self, StartError> {
        let directory = folder(&plan);
        let options = options(&plan, directory.clone(), host);
        let journal =
            Journal::open(options, &head(&plan, host)).map_err(|reason| StartError::Buffer {
                exporter: plan.name.clone(),
                directory: directory.clone().unwrap_or_default(),
                reason,
            })?;
        let journal = Arc::new(journal);
        let letters = directory.map(|directory| directory.join("dead-letters"));
        let lane = Arc::new(Lane::new(Arc::clone(&journal), letters));
        let outlet = Arc::new(outlet(&plan, own, slot, (journal, lane)));
        Ok(Self { plan, own, outlet, sender: None })
    }

    /// Returns whether this is the exporter of that plan, with a journal that can be reused.
    pub(crate) fn keeps_journal(&self, plan: &plan::Exporter) -> bool {
        JournalId::of(&self.plan) == JournalId::of(plan)
    }

    /// Returns whether the exporter already runs with exactly this plan.
    pub(crate) fn does(&self, plan: &plan::Exporter, own: bool) -> bool {
        let is_sending = self.sender.as_ref().is_some_and(Sender::is_alive);
        is_sending && self.own == own && self.plan == *plan
    }

    /// Signals the sender to end by this time, and does not wait for it.
    pub(crate) fn signal_stop(&self, until: Instant) {
        if let Some(sender) = &self.sender {
            sender.signal_stop(until);
        }
    }

    /// Continues with another plan and the same journal, after its sender has ended, which may take until `until`.
    pub(crate) fn change(
        &mut self,
        change: Change,
        until: Instant,
        host: &Host,
    ) -> Result<(), StartError> {
        if let Some(sender) = self.sender.take() {
            sender.stop(until);
        }
        let (journal, lane) = (Arc::clone(&self.outlet.journal), Arc::clone(&self.outlet.lane));
        (self.plan, self.own) = (change.plan, change.own);
        let parts = (Arc::clone(&journal), Arc::clone(&lane));
        self.outlet = Arc::new(outlet(&self.plan, self.own, self.outlet.slot, parts));
        journal.set_head(&head(&self.plan, host));
        journal.set_full(full(&self.plan));
        let bounds = options(&self.plan, self.folder(), host);
        journal.set_bounds(&bounds).map_err(|reason| refused(&self.plan, &reason.into()))?;
        let sender = change.sender.start(lane).map_err(|reason| refused(&self.plan, &reason))?;
        self.sender = Some(sender);
        Ok(())
    }

    /// Sends without waiting for the throttle, until no item is left or until this time.
    pub(crate) fn drain(&self, until: Instant) {
        if let Some(sender) = self.sender.as_ref().filter(|sender| sender.is_alive()) {
            sender.drain(until);
        }
    }

    /// Sends queued items until `until`, then ends.
    pub(crate) fn finish(mut self, until: Instant, now: fn() -> Instant) -> Counts {
        self.drain(until);
        if let Some(sender) = self.sender.take() {
            sender.stop(until.max(now() + END_MAX));
        }
        self.outlet.lane.close();
        self.outlet.counts()
    }

    /// The folder of its journal, if it is on disk.
    pub(crate) fn folder(&self) -> Option<PathBuf> {
        folder(&self.plan)
    }
}

impl Change {
    /// Prepares the steps that can fail, without any change.
    pub(crate) fn prepare(
        plan: &plan::Exporter,
        own: bool,
        host: &Host,
        reader: &Reader,
    ) -> Result<Self, StartError> {
        let sender = Sender::prepare(plan, &send_host(host, reader))
            .map_err(|reason| refused(plan, &reason))?;
        Ok(Self { plan: plan.clone(), own, sender })
    }
}

fn refused(plan: &plan::Exporter, reason: &send::SenderError) -> StartError {
    StartError::Destination { exporter: plan.name.clone(), reason: reason.to_string() }
}

fn outlet(
    plan: &plan::Exporter,
    own: bool,
    slot: u8,
    (journal, lane): (Arc<Journal>, Arc<Lane>),
) -> Outlet {
    Outlet {
        name: plan.name.clone(),
        destinations: Signal::ALL.map(|signal| plan.destination.of(signal)),
        folder: folder(plan),
        throttle: plan.throttle,
        slot,
        own,
        spans: plan.signals.spans,
        logs: plan.signals.logs,
        threshold: threshold(plan.sampling),
        level: plan.level,
        lossy: plan.lossy,
        journal,
        lane,
    }
}

/// The folder of an exporter's journal in the directory of the buffers.
fn folder(plan: &plan::Exporter) -> Option<PathBuf> {
    JournalId::of(plan).folder()
}

/// Converts a name to one path segment: characters that are not allowed are encoded as `%xx`.
fn file_name(name: &str) -> String {
    let mut safe = String::new();
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' => safe.push(char::from(byte)),
            b'.' if !safe.is_empty() => safe.push('.'),
            _ => safe.push_str(&format!("%{byte:02x}")),
        }
    }
    safe
}

fn options(plan: &plan::Exporter, directory: Option<PathBuf>, host: &Host) -> Options {
    let mut options = match directory {
        Some(directory) => Options::in_directory(directory, host.now),
        None => Options::in_memory(plan.buffer.memory, host.now),
    };
    options.memory_max = plan.buffer.memory;
    options.disk_max = plan.buffer.disk;
    options.segment_max = Options::segment_max_of(plan.buffer.disk);
    options.durability = match plan.buffer.durability {
        Durability::Memory => journal::Durability::Memory,
        Durability::Process => journal::Durability::Process,
        Durability::WriteThrough => journal::Durability::WriteThrough,
        Durability::Host => journal::Durability::Host,
    };
    options.full = full(plan);
    options
}

fn full(plan: &plan::Exporter) -> Full {
    match plan.buffer.hold {
        _ if plan.lossy => Full::Count,
        None => Full::Hold,
        Some(max) => Full::HoldFor(max),
    }
}

/// Encodes the resource, as the head of each segment and of each request.
pub(crate) fn head(plan: &plan::Exporter, host: &Host) -> Vec<u8> {
    let resource = host.resource().with_service_name(plan.service_name.clone()).build();
    let mut head = Vec::new();
    encode::resource(&mut head, &resource);
    head
}

fn send_host(host: &Host, reader: &Reader) -> SendHost {
    let notice = Arc::clone(&host.notice);
    SendHost {
        now: host.now,
        wall: host.wall,
        random: host.random,
        user_agent: host.user_agent.clone(),
        notice: Arc::new(move |exporter, message| {
            notice(&Notice { exporter, topic: Topic::Refusal, is_over: false, message });
        }),
        metrics: Some(reader.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::file_name;

    #[test]
    fn a_name_becomes_one_part_of_a_path_whatever_it_holds() {
        assert_eq!(file_name("tracer.otel"), "tracer.otel");
        assert_eq!(file_name("../../etc"), "%2e.%2f..%2fetc");
        assert_eq!(file_name("."), "%2e");
        assert_eq!(file_name("a/b\0"), "a%2fb%00");
    }
}
