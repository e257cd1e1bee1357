//! `cargo xtask prove referee`: compares the language with a second implementation of its reference.
//!
//! Documents (`draw`) and traces (`trace`) are generated at random, including several hosts with their own clocks. The language
//! evaluates each question, and so does the referee, from the reference alone, by loops over all spans (`select`, `statement`,
//! `operand`, `aggregate`), over all possible clock offsets (`clocks`) and over all data that may have been dropped or may still
//! come (`truth`). Where the two differ, the document and the trace are shrunk as far as possible (`shrink`).
//!
//! The referee shares nothing with the evaluation of the language except its public interface. Cases that the reference leaves
//! open are not generated, or are read conservatively; `docs/language/reference.md` is the document that has to define them.

mod aggregate;
mod clocks;
mod document;
mod draw;
mod operand;
mod print;
mod select;
mod shrink;
mod statement;
mod trace;
mod truth;
mod value;

use std::{
    num::NonZero,
    ops::Range,
    sync::{Mutex, PoisonError},
    thread,
};

use anyhow::{Context, Result, bail, ensure};
use lang::{Document, Evidence, Seed, Vars};
use model::{Settlement, Timestamp, Trace, UnsettledReason, Verdict};
use source::{Colour, Text, draw as render};

use super::chance::Dice;
use crate::table::{self, Goal, Row};
use document::Question;
use select::{Court, Unsaid};
use trace::RefereeSpan;

const CASES: u64 = 100_000;
const CASES_SHORT: u64 = 5_000;
/// Questions about one trace.
const QUESTIONS: usize = 8;
/// Differences of each rule that are shrunk and shown.
const SHOWN_MAX: u64 = 5;

/// Features that are generated only on request, so that a difference is reported with its rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RefereeRule {
    /// Dropped data may include data that appears absent.
    Dropped,
    /// A span without an end has no duration.
    NoEnd,
    /// A failed client did not wait for its server.
    FailedClient,
    /// The order of spans, and self times, between hosts.
    OrderAcrossHosts,
    /// A path or pattern without a match is like an absent attribute.
    NothingFound,
    /// A pair consists of two different spans.
    Pair,
    /// The values of groups contain a list, or are in a list.
    GroupValues,
    /// A repeated key has one value.
    RepeatedKey,
}

const RULES: [RefereeRule; 8] = [
    RefereeRule::Dropped,
    RefereeRule::NoEnd,
    RefereeRule::FailedClient,
    RefereeRule::OrderAcrossHosts,
    RefereeRule::NothingFound,
    RefereeRule::Pair,
    RefereeRule::GroupValues,
    RefereeRule::RepeatedKey,
];

/// The rules with which a case is generated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RuleChoice {
    Plain,
    With(RefereeRule),
    All,
}

impl RuleChoice {
    fn has(self, rule: RefereeRule) -> bool {
        match self {
            Self::Plain => false,
            Self::With(one) => one == rule,
            Self::All => true,
        }
    }

    fn every() -> Vec<Self> {
        let rules = RULES.iter().map(|rule| Self::With(*rule));
        [Self::Plain, Self::All].into_iter().chain(rules).collect()
    }

    fn of(number: u64) -> Self {
        let every = Self::every();
        every[(number % every.len() as u64) as usize]
    }

    /// Whether a complete trace may leave more open than the order of spans of two hosts.
    fn has_doubt(self) -> bool {
        [RefereeRule::Dropped, RefereeRule::NoEnd, RefereeRule::OrderAcrossHosts]
            .iter()
            .any(|rule| self.has(*rule))
    }

    fn name(self) -> String {
        match self {
            Self::Plain => "plain".to_owned(),
            Self::With(rule) => format!("{rule:?}"),
            Self::All => "all rules".to_owned(),
        }
    }
}

/// A question about a trace.
#[derive(Clone, Debug)]
struct RefereeCase {
    spans: Vec<RefereeSpan>,
    rest: Rest,
    question: Question,
}

/// The rest of a trace.
#[derive(Clone, Debug)]
enum Rest {
    /// The trace is complete.
    None,
    /// The trace is partial, and any span may still come: presence decides, absence does not.
    Unknown,
    /// The trace is partial, and these spans will come: a decision now has to be true then.
    Known(Vec<RefereeSpan>),
}

/// A difference between the two evaluations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Difference {
    /// None where the language rejects the document.
    language: Option<Verdict>,
    referee: Verdict,
}

/// The results of the cases with one set of rules.
#[derive(Clone, Debug, Default)]
struct RefereeTally {
    asked: u64,
    decided: u64,
    /// Cases without a verdict of the referee.
    left_out: Vec<(Unsaid, u64)>,
    /// One passes and the other fails.
    opposite: u64,
    /// The language decides, and the referee leaves the case open.
    rash: u64,
    /// The language leaves the case open, and the referee decides, although there is no doubt.
    timid: u64,
    /// The language leaves the case open, and the referee decides by enumerating all possibilities of dropped data, clocks or
    /// later spans: the language is coarser, and no verdict is wrong.
    coarse: u64,
    refused: u64,
}

/// Runs many cases; with `--short` few, with `--cases N` N cases; `--seed N` reproduces one.
pub fn prove(arguments: &[String]) -> Result<String> {
    let words: Vec<_> = arguments.iter().map(String::as_str).collect();
    let numbers = match words.as_slice() {
        [] => 0..CASES,
        ["--short"] => 0..CASES_SHORT,
        ["--cases", cases] => 0..cases.parse().context("--cases needs a number")?,
        ["--seed", seed] => {
            let seed: u64 = seed.parse().context("--seed needs a number")?;
            seed..seed.saturating_add(1)
        }
        _ => bail!("expected nothing, --short, --cases N or --seed N"),
    };
    let tallies = play(numbers)?;
    let rows: Vec<Row> = tallies.iter().flat_map(|(drawn, tally)| tally.rows(*drawn)).collect();
    let text = table::render("prove referee", &rows);
    let is_right = tallies.iter().all(|(_, tally)| tally.differences() == 0);
    ensure!(is_right, "the language and its reference differ, see above\n{text}");
    Ok(text)
}

/// Returns the number of differences in this many cases, and the number of compared verdicts, for a test.
pub fn differences(cases: u64) -> Result<(u64, u64)> {
    let tallies = play(0..cases)?;
    let differences = tallies.iter().map(|(_, tally)| tally.differences()).sum();
    Ok((differences, tallies.iter().map(|(_, tally)| tally.asked).sum()))
}

fn play(numbers: Range<u64>) -> Result<Vec<(RuleChoice, RefereeTally)>> {
    let mut tallies: Vec<_> =
        RuleChoice::every().into_iter().map(|it| (it, RefereeTally::default())).collect();
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let next = Mutex::new(tallies.iter_mut());
    thread::scope(|scope| {
        let work = || -> Result<()> {
            loop {
                let kind = next.lock().unwrap_or_else(PoisonError::into_inner).next();
                let Some((drawn, tally)) = kind else { return Ok(()) };
                for number in numbers.clone().filter(|number| RuleChoice::of(*number) == *drawn) {
                    play_one(number, *drawn, tally)?;
                }
            }
        };
        let threads: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        threads.into_iter().try_for_each(|thread| match thread.join() {
            Ok(played) => played,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    })?;
    tallies.retain(|(_, tally)| tally.asked > 0);
    Ok(tallies)
}

/// Evaluates the questions about one trace, once for the complete trace and once while further spans may come.
fn play_one(number: u64, drawn: RuleChoice, tally: &mut RefereeTally) -> Result<()> {
    let mut dice = Dice::new(number.wrapping_mul(0x2545_f491_4f6c_dd1d));
    let spans = trace::draw(&mut dice, drawn);
    let (part, rest): (Vec<RefereeSpan>, Vec<RefereeSpan>) =
        spans.iter().cloned().partition(|_| !dice.once_in(3));
    for _ in 0..QUESTIONS {
        let question = draw::question(&mut dice, drawn, &spans);
        let case = |spans: &[RefereeSpan], rest| RefereeCase {
            spans: spans.to_vec(),
            rest,
            question: question.clone(),
        };
        tally.play(number, drawn, case(&spans, Rest::None))?;
        tally.play(number, drawn, case(&spans, Rest::Unknown))?;
        if !part.is_empty() {
            tally.play(number, drawn, case(&part, Rest::Known(rest.clone())))?;
        }
    }
    Ok(())
}

impl RefereeCase {
    /// Returns the verdict of the referee, or the reason why it has none.
    fn referee(&self) -> Result<Verdict, Unsaid> {
        let rest = if let Rest::Known(rest) = &self.rest { rest.as_slice() } else { &[] };
        let spans: Vec<RefereeSpan> = self.spans.iter().chain(rest).cloned().collect();
        let court = Court::new(&spans, !matches!(self.rest, Rest::Unknown));
        if court.clocks.contradict() {
            return Err(Unsaid::Contradiction);
        }
        let truths = court.question(&self.question);
        court.unsaid.get().map_or(Ok(truths.verdict()), Err)
    }

    /// Returns the verdict of the language; none where it rejects the document.
    fn language(&self) -> Result<Option<Verdict>> {
        let json = trace::otlp(&self.spans).to_string();
        let traces = otlp::read(json.as_bytes())?;
        let [trace] = traces.as_slice() else { bail!("one trace") };
        let text = print::document(std::slice::from_ref(&self.question));
        judge(&text, trace, matches!(self.rest, Rest::None)).map(|it| it.ok())
    }

    /// Whether it contains clocks of several hosts, which may leave an order open.
    fn has_clocks(&self) -> bool {
        self.spans.windows(2).any(|pair| pair[0].host != pair[1].host)
    }

    fn difference(&self) -> Result<Option<Difference>> {
        self.referee().map_or(Ok(None), |referee| self.difference_from(referee))
    }

    fn difference_from(&self, referee: Verdict) -> Result<Option<Difference>> {
        let language = self.language()?;
        let Rest::Known(rest) = &self.rest else {
            return Ok((language != Some(referee)).then_some(Difference { language, referee }));
        };
        // Later spans are not known yet, so the case may be left open. A span with dropped data may reopen a decided case.
        let is_open = language == Some(Verdict::Inconclusive);
        let is_opened = referee == Verdict::Inconclusive && rest.iter().any(RefereeSpan::withholds);
        let is_same = language == Some(referee) || is_open || is_opened;
        Ok((!is_same).then_some(Difference { language, referee }))
    }

    fn story(&self, number: u64, drawn: RuleChoice, difference: Difference) -> String {
        let text = print::document(std::slice::from_ref(&self.question));
        let language = match difference.language {
            Some(verdict) => verdict.as_str().to_owned(),
            None => "refused".to_owned(),
        };
        let rest = match &self.rest {
            Rest::None => "complete".to_owned(),
            Rest::Unknown => "a part".to_owned(),
            Rest::Known(rest) => format!("a part, and this will come: {}", trace::otlp(rest)),
        };
        format!(
            "--- seed {number}, {}: language {language}, referee {}\n{text}{}\nThe trace is {rest}\n",
            drawn.name(),
            difference.referee.as_str(),
            trace::otlp(&self.spans),
        )
    }
}

/// Returns the verdict of a document with one question, or the reason for its rejection.
fn judge(text: &str, trace: &Trace, is_complete: bool) -> Result<Result<Verdict, String>> {
    let (documents, mut found) = lang::read(&Text::new("test.yaml", text.to_owned()));
    let [Document::Test(test)] = documents.as_slice() else {
        return Ok(Err(render(&found, Colour::Never)));
    };
    let (plan, more) = lang::compile(test);
    found.extend(more);
    let Some(plan) = plan else { return Ok(Err(render(&found, Colour::Never))) };
    let seed = Seed { now: Timestamp::default(), random: [7; 32] };
    let resolved = lang::resolve(&plan, &Vars::default(), &seed)?;
    let unsettled = if is_complete { Vec::new() } else { vec![UnsettledReason::Partial] };
    let settlement = Settlement { spans: trace.len() as u64, unsettled, ..Settlement::default() };
    let evidence =
        Evidence { trace: Some(trace), trigger: None, answer: None, settlement: Some(&settlement) };
    Ok(Ok(lang::judge(&resolved, &evidence).verdict))
}

impl RefereeTally {
    fn play(&mut self, number: u64, drawn: RuleChoice, case: RefereeCase) -> Result<()> {
        let referee = match case.referee() {
            Ok(referee) => referee,
            Err(unsaid) => {
                self.leave_out(unsaid);
                return Ok(());
            }
        };
        self.asked += 1;
        self.decided += u64::from(referee != Verdict::Inconclusive);
        let Some(difference) = case.difference_from(referee)? else { return Ok(()) };
        match (difference.language, difference.referee) {
            (None, _) => self.refused += 1,
            (_, Verdict::Inconclusive) => self.rash += 1,
            (Some(Verdict::Inconclusive), _)
                if drawn.has_doubt() || case.has_clocks() || !matches!(case.rest, Rest::None) =>
            {
                self.coarse += 1;
                return Ok(());
            }
            (Some(Verdict::Inconclusive), _) => self.timid += 1,
            _ => self.opposite += 1,
        }
        if self.differences() <= SHOWN_MAX {
            say(&shrink::shrink(case, difference)?.story(number, drawn, difference));
        }
        Ok(())
    }

    fn leave_out(&mut self, unsaid: Unsaid) {
        match self.left_out.iter_mut().find(|(other, _)| *other == unsaid) {
            Some((_, times)) => *times += 1,
            None => self.left_out.push((unsaid, 1)),
        }
    }

    fn differences(&self) -> u64 {
        self.opposite + self.rash + self.timid + self.refused
    }

    fn rows(&self, drawn: RuleChoice) -> Vec<Row> {
        let name = drawn.name();
        let row = |what: &str, value: u64, goal: Option<f64>| Row {
            name: format!("{name}: {what}"),
            value: value as f64,
            unit: "verdicts",
            goal: goal.map(Goal::AtMost),
        };
        let mut rows = vec![
            row("compared", self.asked, None),
            row("decided by the referee", self.decided, None),
            row("opposite", self.opposite, Some(0.0)),
            row("decided by the language alone", self.rash, Some(0.0)),
            row("decided by the referee alone, without doubt", self.timid, Some(0.0)),
            row("refused", self.refused, Some(0.0)),
            row("left open by the language alone, in doubt", self.coarse, None),
        ];
        for (unsaid, times) in &self.left_out {
            rows.push(row(&format!("left out, {unsaid:?}"), *times, None));
        }
        rows
    }
}

/// Prints a finding at once: the table comes last.
#[expect(clippy::print_stderr, reason = "what is found is told before the table")]
fn say(line: &str) {
    eprintln!("{line}");
}
