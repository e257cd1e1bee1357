//! Checks a history: what was accepted exists and ended once, what was fired was fired once, verdicts equal the truth, and events
//! have no gaps.
//!
//! It reads nothing but the lines of the history, so that it shares no error with the server. The truth of a claim is counted from
//! the spans that the system emitted. A span that a call announces counts also if its export was late or given up: a run knows that
//! it is missing. Another span counts if its export was acknowledged before the response to the trigger, which is before any run may
//! conclude something; if not, the claim may count it or not.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    excuse::{FaultWindow, excuse},
    history::{ChaosTest, CountClaim, HistoryLine, RecordedRun, StreamEnd},
    schedule::FaultKind,
};

/// A broken promise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Violation {
    /// An accepted run is not in the database.
    LostRun(String),
    /// A key has several runs.
    KeyWithRuns(String, Vec<String>),
    /// A run does not have exactly one final verdict.
    FinalVerdicts(String, u64),
    /// A run was fired more than once.
    Triggers(String, u64),
    /// A trigger was fired without a record of it.
    UnrecordedTrigger(String),
    /// A claim has another verdict than the truth.
    WrongVerdict {
        /// The run.
        run: String,
        /// The number of the claim.
        claim: usize,
        /// Its verdict.
        verdict: String,
        /// The spans that the claim has to count.
        spans: u64,
    },
    /// A run is inconclusive for this reason, which no fault of its time explains.
    Unexplained(String, String),
    /// A reader got another event than the next one: the reader, the run, the last and the received number.
    EventOrder(u64, String, u64, u64),
    /// A reader got no end of its run, or not all events: the reader and the run.
    EventsMissing(u64, String),
}

impl Violation {
    /// Whether an accepted run is missing, or a key has several.
    pub fn is_loss(&self) -> bool {
        matches!(self, Self::LostRun(_) | Self::KeyWithRuns(..))
    }

    /// Whether a run has no final verdict, or several.
    pub fn is_final(&self) -> bool {
        matches!(self, Self::FinalVerdicts(..))
    }

    /// Whether a trigger was fired twice, or without a record.
    pub fn is_trigger(&self) -> bool {
        matches!(self, Self::Triggers(..) | Self::UnrecordedTrigger(_))
    }

    /// Whether a verdict is wrong.
    pub fn is_wrong(&self) -> bool {
        matches!(self, Self::WrongVerdict { .. })
    }

    /// Whether a run is inconclusive without a listed cause.
    pub fn is_unexplained(&self) -> bool {
        matches!(self, Self::Unexplained(..))
    }

    /// Whether events are missing or out of order.
    pub fn is_event(&self) -> bool {
        matches!(self, Self::EventOrder(..) | Self::EventsMissing(..))
    }
}

/// What a history shows.
#[derive(Clone, Debug, Default)]
pub struct ChaosFindings {
    /// Broken promises.
    pub violations: Vec<Violation>,
    /// Accepted runs.
    pub accepted: u64,
    /// Runs in the database.
    pub recorded: u64,
    /// Triggers that the system received.
    pub triggers: u64,
    /// Claims with the verdict passed or failed.
    pub decided: u64,
    /// Those of them that absence decided.
    pub by_absence: u64,
    /// Runs that several workers had.
    pub resumed: u64,
    /// Inconclusive runs whose worker died or lost its lease between attempt and response.
    pub unanswered: u64,
    /// Inconclusive runs at the time of the wipe.
    pub wiped: u64,
    /// All other inconclusive runs.
    pub inconclusive: u64,
    /// Inconclusive runs by fault and reason.
    pub excused: BTreeMap<String, u64>,
    /// Faults by kind and part.
    pub faults: BTreeMap<String, u64>,
    /// Exports of a trace that were sent more than once.
    pub export_retries: u64,
    /// Those that were given up.
    pub exports_lost: u64,
    /// Readers.
    pub readers: u64,
    /// Their connections beyond the first.
    pub reconnects: u64,
    /// Milliseconds from acceptance to the final verdict, sorted.
    pub delays_ms: Vec<u64>,
}

impl ChaosFindings {
    /// The share of inconclusive runs that count, in percent.
    pub fn inconclusive_percent(&self) -> f64 {
        100.0 * self.inconclusive as f64 / (self.recorded as f64).max(1.0)
    }
}

/// What clients, the system and readers saw, by key, run, trace and reader.
#[derive(Debug, Default)]
struct Observation<'h> {
    tests: BTreeMap<&'h str, &'h ChaosTest>,
    accepted: BTreeMap<&'h str, BTreeSet<&'h str>>,
    triggers: BTreeMap<&'h str, Vec<&'h str>>,
    emitted: BTreeMap<(&'h str, &'h str), SpanCertainty>,
    /// Spans that no call announces and whose export is not acknowledged yet: by trace and service.
    unannounced: BTreeMap<(&'h str, &'h str), &'h [String]>,
    faults: Vec<FaultWindow>,
    events: BTreeMap<u64, Vec<(&'h str, ReaderStep)>>,
    records: BTreeMap<&'h str, &'h RecordedRun>,
}

/// Spans with a name in a trace.
#[derive(Clone, Copy, Debug, Default)]
struct SpanCertainty {
    /// Those that a claim has to count.
    certain: u64,
    /// Those that it may count.
    possible: u64,
}

#[derive(Clone, Copy, Debug)]
enum ReaderStep {
    Event(u64, u32),
    End(StreamEnd),
}

/// Checks a history.
pub fn check(history: &[HistoryLine]) -> ChaosFindings {
    let mut findings = ChaosFindings::default();
    let observation = observe(history, &mut findings);
    check_acceptance(&observation, &mut findings);
    check_triggers(&observation, &mut findings);
    for record in observation.records.values() {
        check_run(record, &observation, &mut findings);
    }
    for (reader, steps) in &observation.events {
        check_reader(*reader, steps, &observation, &mut findings);
    }
    findings.delays_ms.sort_unstable();
    findings
}

fn observe<'h>(history: &'h [HistoryLine], findings: &mut ChaosFindings) -> Observation<'h> {
    let mut seen = Observation::default();
    for line in history {
        match line {
            HistoryLine::Begin { tests, .. } => {
                seen.tests.extend(tests.iter().map(|test| (test.id.as_str(), test)));
            }
            HistoryLine::Request { .. } => {}
            HistoryLine::Reply { key, status: Some(200..=299), run: Some(run), .. } => {
                seen.accepted.entry(key).or_default().insert(run);
            }
            HistoryLine::Reply { .. } => {}
            HistoryLine::Trigger { key, trace, .. } => {
                findings.triggers += 1;
                seen.triggers.entry(key).or_default().push(trace);
            }
            HistoryLine::Emission { trace, service, spans, is_announced, .. } => {
                seen.emit(trace, service, spans, *is_announced);
            }
            HistoryLine::Export { trace, service, tries, is_acknowledged, .. } => {
                findings.export_retries += u64::from(*tries > 1);
                findings.exports_lost += u64::from(!is_acknowledged);
                if *is_acknowledged {
                    seen.acknowledge(trace, service);
                }
            }
            HistoryLine::Response { trace, .. } => {
                // What is acknowledged from now on may come too late.
                seen.unannounced.retain(|(of, _), _| *of != trace);
            }
            HistoryLine::Fault { fault, component, from, to } => {
                let name = format!("{} {fault}", component.kind());
                *findings.faults.entry(name).or_default() += 1;
                let (kind, component) = (*fault, *component);
                seen.faults.push(FaultWindow { kind, component, from: *from, to: *to });
            }
            HistoryLine::Event { reader, connection, run, n, .. } => {
                let step = ReaderStep::Event(*n, *connection);
                seen.events.entry(*reader).or_default().push((run, step));
            }
            HistoryLine::StreamEnd { reader, run, end, .. } => {
                seen.events.entry(*reader).or_default().push((run, ReaderStep::End(*end)));
            }
            HistoryLine::Record(record) => {
                seen.records.insert(&record.run, record);
            }
        }
    }
    seen
}

impl<'h> Observation<'h> {
    fn emit(&mut self, trace: &'h str, service: &'h str, spans: &'h [String], is_announced: bool) {
        for span in spans {
            let count = self.emitted.entry((trace, span)).or_default();
            *(if is_announced { &mut count.certain } else { &mut count.possible }) += 1;
        }
        if !is_announced {
            self.unannounced.insert((trace, service), spans);
        }
    }

    /// Takes note of an acknowledgement before the response.
    fn acknowledge(&mut self, trace: &'h str, service: &'h str) {
        for span in self.unannounced.remove(&(trace, service)).into_iter().flatten() {
            let count = self.emitted.entry((trace, span)).or_default();
            count.possible = count.possible.saturating_sub(1);
            count.certain += 1;
        }
    }
}

impl CountClaim {
    fn is_true(&self, spans: u64) -> bool {
        spans >= self.least && self.most.is_none_or(|most| spans <= most)
    }

    /// Whether further spans could change it, so that absence decides it.
    fn is_open(&self, spans: u64) -> bool {
        if self.is_true(spans) { self.most.is_some() } else { spans < self.least }
    }
}

fn check_acceptance(seen: &Observation<'_>, findings: &mut ChaosFindings) {
    for (key, runs) in &seen.accepted {
        findings.accepted += runs.len() as u64;
        if runs.len() > 1 {
            let runs = runs.iter().map(|run| (*run).to_owned()).collect();
            findings.violations.push(Violation::KeyWithRuns((*key).to_owned(), runs));
        }
        for run in runs {
            if !seen.records.contains_key(run) {
                findings.violations.push(Violation::LostRun((*run).to_owned()));
            }
        }
    }
}

fn check_triggers(seen: &Observation<'_>, findings: &mut ChaosFindings) {
    let of_key = |key| seen.records.values().find(|record| record.key.as_deref() == Some(key));
    let attempted: BTreeSet<&str> = seen
        .records
        .values()
        .filter(|record| record.is_attempted)
        .filter_map(|record| record.key.as_deref())
        .collect();
    for (key, traces) in &seen.triggers {
        if traces.len() > 1 {
            let run = of_key(key).map_or_else(|| (*key).to_owned(), |record| record.run.clone());
            findings.violations.push(Violation::Triggers(run, traces.len() as u64));
        }
        if !attempted.contains(key) {
            findings.violations.push(Violation::UnrecordedTrigger((*key).to_owned()));
        }
    }
}

fn check_run(record: &RecordedRun, seen: &Observation<'_>, findings: &mut ChaosFindings) {
    findings.recorded += 1;
    findings.resumed += u64::from(record.owners > 1);
    if record.final_verdicts != 1 || record.verdict.is_none() {
        let verdicts = record.final_verdicts;
        findings.violations.push(Violation::FinalVerdicts(record.run.clone(), verdicts));
    }
    if let Some(ended) = record.ended_at {
        findings.delays_ms.push(ended.saturating_sub(record.accepted_at));
    }
    let traces = record.key.as_deref().and_then(|key| seen.triggers.get(key));
    let claims = seen.tests.get(record.test.as_str()).map_or(&[][..], |test| &test.claims);
    for (at, (verdict, claim)) in record.claims.iter().zip(claims).enumerate() {
        check_claim((record, at), (verdict, claim), traces, (seen, findings));
    }
    let is_open = |verdict: &String| verdict == "inconclusive";
    if record.verdict.as_ref().is_some_and(is_open) || record.claims.iter().any(is_open) {
        check_excuse(record, seen, findings);
    }
}

fn check_claim(
    (record, at): (&RecordedRun, usize),
    (verdict, claim): (&str, &CountClaim),
    traces: Option<&Vec<&str>>,
    (seen, findings): (&Observation<'_>, &mut ChaosFindings),
) {
    if verdict == "inconclusive" {
        return;
    }
    findings.decided += 1;
    let emitted = |trace: &&str| seen.emitted.get(&(*trace, claim.span.as_str())).copied();
    let emitted: Vec<SpanCertainty> = traces.into_iter().flatten().filter_map(emitted).collect();
    let certain: u64 = emitted.iter().map(|it| it.certain).sum();
    let possible: u64 = emitted.iter().map(|it| it.possible).sum();
    findings.by_absence += u64::from(claim.is_open(certain + possible));
    let is_right = (certain..=certain + possible)
        .any(|spans| verdict == if claim.is_true(spans) { "passed" } else { "failed" });
    // Without a trigger there is nothing to decide.
    if !is_right || traces.is_none() {
        let (run, verdict) = (record.run.clone(), verdict.to_owned());
        findings.violations.push(Violation::WrongVerdict {
            run,
            claim: at,
            verdict,
            spans: certain,
        });
    }
}

fn check_excuse(record: &RecordedRun, seen: &Observation<'_>, findings: &mut ChaosFindings) {
    let (excused, unexplained) = excuse(record, &seen.faults);
    for reason in unexplained {
        findings.violations.push(Violation::Unexplained(record.run.clone(), reason));
    }
    for name in &excused {
        *findings.excused.entry(name.clone()).or_default() += 1;
    }
    let is_at_wipe = |fault: &FaultWindow| fault.kind == FaultKind::Wipe && fault.is_of(record);
    if record.no_answer.as_deref() == Some("unknown") {
        findings.unanswered += 1;
    } else if seen.faults.iter().any(is_at_wipe) {
        findings.wiped += 1;
    } else {
        findings.inconclusive += 1;
    }
}

fn check_reader(
    reader: u64,
    steps: &[(&str, ReaderStep)],
    seen: &Observation<'_>,
    findings: &mut ChaosFindings,
) {
    findings.readers += 1;
    let Some((run, _)) = steps.first() else { return };
    let (mut last, mut connections, mut end) = (0, 0, None);
    for (_, step) in steps {
        match step {
            ReaderStep::Event(n, connection) => {
                if *n != last + 1 {
                    let order = Violation::EventOrder(reader, (*run).to_owned(), last, *n);
                    findings.violations.push(order);
                }
                (last, connections) = (*n, connections.max(*connection));
            }
            ReaderStep::End(of) => end = Some(*of),
        }
    }
    findings.reconnects += u64::from(connections);
    let judged_at = seen.records.get(run).map_or(0, |record| record.judged_at);
    if end != Some(StreamEnd::Complete) || last < judged_at {
        findings.violations.push(Violation::EventsMissing(reader, (*run).to_owned()));
    }
}

#[cfg(test)]
mod tests;
