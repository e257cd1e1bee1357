//! Renders one run so that a developer can follow it.

use std::fmt::Write;

use anyhow::{Context, Result};

use super::{
    RUNS_OF_SYSTEM, Run,
    excuse::Excuses,
    play::{Parent, SimulatedSpan},
    referee::{self, SettleCase},
    statement::There,
    system::{Identity, MS, System},
    virtual_clock,
};

/// Reproduces a run, with those before it, and renders its story.
pub(super) fn tell(seed: u64) -> Result<String> {
    let (number, run) = (seed / RUNS_OF_SYSTEM, seed % RUNS_OF_SYSTEM);
    let mut story = None;
    virtual_clock()?.block_on(super::system(number, run + 1, |run| {
        if run.seed == seed {
            story = Some(write(run));
        }
    }))?;
    story.context("the run was not reached")?.context("the story could not be written")
}

/// Renders the story of a run.
pub(super) fn write(run: &Run<'_, '_>) -> Result<String, std::fmt::Error> {
    let mut to = String::new();
    let case = &run.case;
    let all = There::all(case.script.system, &case.script.played);
    let there = referee::there(case, &all);
    let excuses = Excuses::new(case, &there);
    writeln!(to, "seed {}, weather {:?}", run.seed, run.weather)?;
    if let Some(crash) = case.script.played.crash {
        writeln!(to, "process {} dies at {} ms", crash.process, ms(crash.at))?;
    }
    if !case.script.noise.is_silent() {
        writeln!(to, "others call the system meanwhile")?;
    }
    let linger = ms(case.memory.linger(case.script.test.number));
    writeln!(to, "{:?}, to linger {linger} ms", case.script.system.troubles)?;
    system(&mut to, case.script.system, &excuses)?;
    declared(&mut to, case)?;
    writeln!(to, "\nspans (id, start..end ms, arrival ms; * there at the verdict)")?;
    for (number, span) in case.script.played.spans.iter().enumerate() {
        if matches!(span.parent, Parent::Trigger | Parent::Absent(_)) {
            tree(&mut to, case, &there, (number, 0), span)?;
        }
    }
    writeln!(to, "\narrivals")?;
    for piece in &case.script.travel.pieces {
        let copy = if piece.is_copy { " again" } else { "" };
        writeln!(
            to,
            "  {:>8} ms  process {} {:?}{copy}",
            ms(piece.at),
            piece.process,
            piece.spans
        )?;
    }
    let (script, ended) = (case.script, case.ended);
    writeln!(to, "\nanswer {:?} at {} ms", script.played.status, ms(script.played.answer_at))?;
    let verdict = ended.outcome.verdict.as_str();
    let first = ended.first.as_str();
    writeln!(to, "verdict {first}, at last {verdict} at {} ms", ms(ended.verdict_at))?;
    writeln!(to, "watched until {} ms: {:?}", ms(ended.watched_to), ended.overtaken)?;
    writeln!(to, "{:#?}", ended.outcome.settlement)?;
    let verdicts = referee::verdicts(ended);
    for (statement, verdict) in script.test.statements.iter().zip(&verdicts) {
        let (truly, by_there) = (statement.holds(&all), statement.holds(&there));
        let verdict = verdict.as_str();
        writeln!(to, "`{statement}`\n   {verdict}; truly {truly}, by what was there {by_there}")?;
    }
    for (number, excuse) in excuses.missing() {
        writeln!(to, "missing #{number}: {excuse:?}")?;
    }
    let ruling = &run.ruling;
    writeln!(to, "truly passes: {}; lateness {:?}", ruling.truth, ruling.lateness)?;
    writeln!(to, "{:?}", ruling.withheld)?;
    for (_, rule, words) in &ruling.wrong {
        writeln!(to, "WRONG ({rule:?}): {words}")?;
    }
    if let Some(words) = run.ruling.missed {
        writeln!(to, "WRONG: {words}")?;
    }
    Ok(to)
}

fn system(to: &mut String, system: &System, excuses: &Excuses<'_, '_>) -> std::fmt::Result {
    writeln!(to, "processes (H as it should be)")?;
    for (number, process) in system.processes.iter().enumerate() {
        let identity = match process.identity {
            Identity::Instance(id) => format!("instance {id:016x}"),
            Identity::HostAndPid(host, pid) => format!("host-{host}, pid {pid}"),
            Identity::Unsaid => "does not say which it is".to_owned(),
        };
        let marked = if process.is_marked { ", marked" } else { "" };
        let kind = if process.batch.is_periodic { "every" } else { "after" };
        writeln!(
            to,
            "  process {number}: s{}, {identity}, sends {kind} {} ms, clock {:+} ms{marked}, H {} ms",
            process.service,
            ms(process.batch.delay),
            process.skew / MS as i64,
            ms(excuses.quiet(number)),
        )?;
    }
    Ok(())
}

fn declared(to: &mut String, case: &SettleCase<'_, '_>) -> std::fmt::Result {
    let test = &case.script.test;
    writeln!(to, "flush {:?} ms, absent {:?}", test.flush.map(ms), test.absent)?;
    writeln!(to, "expected {:?}, drains {}", test.plan.expected(), case.script.system.drains)?;
    writeln!(to, "learned")?;
    for (name, it) in &case.learned.services {
        writeln!(to, "  {name}: {it:?}")?;
    }
    Ok(())
}

/// Renders a span and its descendants; `at` is its number and its depth.
fn tree(
    to: &mut String,
    case: &SettleCase<'_, '_>,
    there: &There<'_, '_>,
    at: (usize, usize),
    span: &SimulatedSpan<'_>,
) -> std::fmt::Result {
    let (number, depth) = at;
    let fate = case.script.travel.fates[number];
    let is_there = if there.is_there[number] { "*" } else { " " };
    let mut notes = String::new();
    for (is, note) in [
        (span.is_error, " ERROR"),
        (span.has_exception, " exception"),
        (span.is_dropping, " DROPPING"),
        (span.has_given_up, " GAVE UP"),
        (matches!(span.parent, Parent::Absent(_)), " behind a gateway"),
        (matches!(span.parent, Parent::Lost(_)), " CONTEXT LOST"),
    ] {
        notes.push_str(if is { note } else { "" });
    }
    if let Some(loss) = fate.loss {
        write!(notes, " {loss:?}")?;
    }
    if let Some(link) = span.link {
        write!(notes, " link to #{link}")?;
    }
    if let Some(peer) = span.peer() {
        write!(notes, " -> {peer}")?;
    }
    writeln!(
        to,
        "{is_there} {:indent$}#{number} {} {} `{}` v={:?} {}..{} arrives {}{notes}",
        "",
        case.script.system.service_of(span.process).name,
        span.kind.as_str(),
        span.name,
        span.value,
        ms(span.start),
        span.end.map_or("never".to_owned(), |end| ms(end).to_string()),
        fate.at.map_or("never".to_owned(), |at| ms(at).to_string()),
        indent = 2 * depth,
    )?;
    for (child, span) in case.script.played.spans.iter().enumerate() {
        if matches!(span.parent, Parent::Span(parent) | Parent::Lost(parent) if parent == number) {
            tree(to, case, there, (child, depth + 1), span)?;
        }
    }
    Ok(())
}

fn ms(nanos: u64) -> f64 {
    nanos as f64 / MS as f64
}
