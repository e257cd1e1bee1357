//! The log events of the server itself, by the names of the catalogue.
//!
//! An event of a request or a run is logged in the context of its span, so that it has the trace id and span id. An event of a
//! thread with suppressed telemetry ([`telemetry::suppress_this_thread`]) reaches exporters through a separate thread, which a
//! full buffer may block.
//!
//! Deliberately absent: any text that a test, a response or a person wrote, except names and ids.

use std::{
    fmt,
    sync::mpsc::{Receiver, SyncSender, sync_channel},
    thread,
    time::Duration,
};

use db::{AppliedDocument, NewDocument, RunLease};
use model::{DocumentKind, Outcome, Overtaken, Project, RunId, Settlement, TestId};
use telemetry::opentelemetry::logs::{AnyValue, LogRecord as _, Logger, LoggerProvider, Severity};

use crate::telemetry::catalogue::{SCOPE, attribute, event};

/// The maximum number of events in the queue to the exporter thread. The log on stderr has all of them.
const WAITING_MAX: usize = 64;

pub(crate) fn run_accepted(run: RunId, project: &Project, test: &TestId) {
    tracing::info!(
        name: event::RUN_ACCEPTED,
        { {attribute::RUN_ID} = %run, {attribute::PROJECT} = %project, {attribute::TEST_ID} = %test },
        "a run was accepted"
    );
}

pub(crate) fn run_debug(run: RunId, note: fmt::Arguments<'_>) {
    tracing::debug!(name: event::RUN_DEBUG, { {attribute::RUN_ID} = %run }, "{note}");
}

pub(crate) fn run_ended(taken: &RunLease, outcome: &Outcome) {
    let reason = outcome.settlement.as_ref().map(Settlement::reason);
    tracing::info!(
        name: event::RUN_ENDED,
        {
            {attribute::RUN_ID} = %taken.run_id,
            {attribute::PROJECT} = %taken.project,
            {attribute::TEST_ID} = %taken.test.id,
            {attribute::TEST_CASE} = outcome.test,
            {attribute::VERDICT} = outcome.verdict.as_str(),
            {attribute::SETTLE_REASON} = reason
        },
        "a run ended"
    );
    if let Some(superseded) = &outcome.superseded {
        tracing::info!(
            name: event::RUN_SUPERSEDED,
            {
                {attribute::RUN_ID} = %taken.run_id,
                {attribute::VERDICT} = outcome.verdict.as_str(),
                {attribute::PROVISIONAL} = superseded.verdict.as_str()
            },
            "spans replaced the provisional verdict of a run before it was final"
        );
    }
}

pub(crate) fn run_overtaken(run: RunId, overtaken: &Overtaken) {
    tracing::warn!(
        name: event::RUN_OVERTAKEN,
        { {attribute::RUN_ID} = %run, {attribute::VERDICT} = overtaken.verdict.as_str() },
        "spans that came after the final verdict of a run would have changed it"
    );
}

pub(crate) fn logged_in() {
    tracing::info!(name: event::LOGIN, { {attribute::OUTCOME} = "success" }, "a person logged in");
}

pub(crate) fn login_failed() {
    tracing::warn!(
        name: event::LOGIN,
        { {attribute::OUTCOME} = "failure" },
        "a login failed; the audit log has the reason"
    );
}

/// Logs an event for each applied document that has a new version.
pub(crate) fn documents_applied(documents: &[NewDocument], applied: &[AppliedDocument]) {
    for (document, applied) in documents.iter().zip(applied).filter(|(_, it)| it.changed) {
        let NewDocument { project, kind, id, .. } = document;
        document_changed(project, (*kind, id), Some(applied.version), "a document was changed");
    }
}

pub(crate) fn document_deleted(project: &Project, kind: DocumentKind, id: &TestId) {
    document_changed(project, (kind, id), None, "a document was deleted");
}

fn document_changed(
    project: &Project,
    (kind, id): (DocumentKind, &TestId),
    version: Option<i32>,
    message: &str,
) {
    tracing::info!(
        name: event::DOCUMENT_CHANGED,
        {
            {attribute::PROJECT} = %project,
            {attribute::DOCUMENT_KIND} = kind.as_str(),
            {attribute::DOCUMENT_ID} = %id,
            {attribute::DOCUMENT_VERSION} = version
        },
        "{message}"
    );
}

/// An event that is logged on a thread with suppressed telemetry.
#[derive(Debug)]
pub(crate) struct LogEvent {
    pub(crate) name: &'static str,
    pub(crate) severity: Severity,
    pub(crate) body: String,
    pub(crate) attributes: Vec<(&'static str, String)>,
}

enum Entry {
    Event(LogEvent),
    Flush(SyncSender<()>),
}

/// The queue that passes events of threads with suppressed telemetry to exporters.
#[derive(Clone, Debug)]
pub(crate) struct EventQueue(SyncSender<Entry>);

/// The receiving end of the queue, until exporters exist.
pub(crate) struct EventReader(Receiver<Entry>);

pub(crate) fn event_queue() -> (EventQueue, EventReader) {
    let (sender, receiver) = sync_channel(WAITING_MAX);
    (EventQueue(sender), EventReader(receiver))
}

impl EventQueue {
    /// Queues an event without waiting. If the queue is full, the event is on stderr only.
    pub(crate) fn push(&self, event: LogEvent) {
        drop(self.0.try_send(Entry::Event(event)));
    }

    /// Waits up to `max` until queued events have reached the exporters.
    pub(crate) fn flush(&self, max: Duration) {
        let (done, is_done) = sync_channel(1);
        if self.0.try_send(Entry::Flush(done)).is_ok() {
            let _is_late = is_done.recv_timeout(max);
        }
    }
}

impl EventReader {
    /// Starts the thread; it ends with the last queue.
    pub(crate) fn start(
        self,
        logs: &impl LoggerProvider<Logger: Send + 'static>,
    ) -> std::io::Result<()> {
        let logger = logs.logger(SCOPE);
        let hand_on = move || {
            for entry in self.0 {
                match entry {
                    Entry::Event(event) => emit(&logger, event),
                    // The waiting caller may be gone.
                    Entry::Flush(done) => drop(done.try_send(())),
                }
            }
        };
        thread::Builder::new().name("telemetry-events".to_owned()).spawn(hand_on).map(drop)
    }
}

fn emit(logger: &impl Logger, event: LogEvent) {
    let mut record = logger.create_log_record();
    record.set_event_name(event.name);
    record.set_severity_number(event.severity);
    record.set_severity_text(event.severity.name());
    record.set_body(AnyValue::from(event.body));
    for (key, value) in event.attributes {
        record.add_attribute(key, value);
    }
    logger.emit(record);
}
