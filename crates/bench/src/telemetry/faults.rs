//! Faults around telemetry, injected on purpose.
//!
//! Each fault drives the public interface of `lib/telemetry`, in this process or in its own, and ends with one invariant:
//! accepted = delivered + queued + rejected + dropped, and every span arrived that should have. Deliberately absent: a fault that
//! only checks internals; those are tests of the two libraries.

mod answers;
mod ceiling;
mod clock;
mod collector;
mod disk;
mod ends;
mod files;
mod held;
mod kill;
mod limits;
mod neighbours;
#[path = "../../../../lib/telemetry/tests/peer/mod.rs"]
#[expect(dead_code, reason = "the tests of the library use the rest of it")]
mod peer;
mod program;
mod reloads;
mod resized;
mod tls;

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Result, bail};
use telemetry::Counts;

use super::{progress, stand::together};
use crate::{
    parts::SpanId,
    table::{Goal, Row},
};

pub use ceiling::child;

/// The faults that mount a disk of their own, which only root may.
pub const OF_ROOT: &[&str] = &["read-only", "full-disk"];

/// The faults, by their names for `--only`, the quick ones first.
pub const NAMES: &[&str] = &[
    "later",
    "refused",
    "unauthorized",
    "partial",
    "reset",
    "tls",
    "clock",
    "runtimes",
    "ends",
    "held",
    "resized",
    "one-dead",
    "read-only",
    "removed",
    "full-disk",
    "torn",
    "shared",
    "limits",
    "collector-killed",
    "collector-hung",
    "collector-restarted",
    "reloads",
    "killed",
    "killed-write-through",
    "ceiling",
    "ceiling-lossy",
];

/// The environment of a fault.
#[derive(Clone, Debug)]
pub struct Ground {
    /// This benchmark's own program, for processes that are killed.
    pub program: PathBuf,
    /// Seconds in place of minutes.
    pub short: bool,
}

/// The result of a fault.
#[derive(Clone, Debug, Default)]
pub struct Fault {
    /// Accepted spans, over all exporters and processes.
    pub accepted: u64,
    /// Accepted spans that should have arrived and did not.
    pub lost: u64,
    /// Exporters with counts that do not add up.
    pub unbalanced: u64,
    /// Other broken promises.
    pub broken: Vec<String>,
    /// Figures without a goal, as text.
    pub notes: Vec<String>,
}

/// Injects one fault.
pub async fn run(name: &str, ground: &Ground) -> Result<Fault> {
    match name {
        "later" => answers::later(ground).await,
        "refused" => answers::refused(ground).await,
        "unauthorized" => answers::unauthorized(ground).await,
        "partial" => answers::partial(ground).await,
        "reset" => answers::reset(ground).await,
        "tls" => tls::tls(ground).await,
        "clock" => clock::steps(ground).await,
        "runtimes" => ends::runtimes(ground).await,
        "ends" => ends::ends(ground).await,
        "held" => held::held(ground).await,
        "resized" => resized::resized(ground).await,
        "one-dead" => neighbours::one_dead(ground).await,
        "read-only" => disk::read_only(ground).await,
        "removed" => disk::removed(ground).await,
        "full-disk" => disk::full(ground).await,
        "torn" => files::torn(ground).await,
        "shared" => files::shared(ground).await,
        "limits" => limits::limits(ground).await,
        "collector-killed" => collector::killed(ground).await,
        "collector-hung" => collector::hung(ground).await,
        "collector-restarted" => collector::restarted(ground).await,
        "reloads" => reloads::storm(ground).await,
        "killed" => kill::process(ground).await,
        "killed-write-through" => kill::write_through(ground).await,
        "ceiling" => ceiling::held(ground).await,
        "ceiling-lossy" => ceiling::lossy(ground).await,
        _ => bail!("there is no fault `{name}`"),
    }
}

/// Returns the row of one fault.
pub(crate) async fn rows(name: &str, program: &Path, short: bool) -> Result<Vec<Row>> {
    let ground = Ground { program: program.to_owned(), short };
    let fault = run(name, &ground).await?;
    progress(&format!("{name}: {fault:?}"));
    let Fault { accepted, lost, unbalanced, broken, .. } = fault;
    let broken = broken.len() as u64;
    Ok(vec![Row {
        name: format!(
            "{name}: {accepted} accepted, {lost} lost, {unbalanced} unbalanced, {broken} broken"
        ),
        value: (lost + unbalanced + broken) as f64,
        unit: "wrong",
        goal: Some(Goal::AtMost(0.0)),
    }])
}

impl Fault {
    /// Whether all promises hold.
    pub fn is_well(&self) -> bool {
        self.accepted > 0 && self.lost == 0 && self.unbalanced == 0 && self.broken.is_empty()
    }

    /// Adds the counts of exporters that ended, or continue.
    fn balance<'a>(&mut self, counts: impl IntoIterator<Item = &'a Counts>) {
        for counts in counts {
            // Recovered spans were accepted before.
            self.accepted += counts.accepted - counts.recovered;
            if !counts.is_balanced() {
                self.unbalanced += 1;
                self.broken.push(format!("unbalanced: {counts:?}"));
            }
        }
    }

    /// Counts the expected spans that did not arrive.
    fn arrived<'a>(
        &mut self,
        owed: impl IntoIterator<Item = &'a SpanId>,
        received: &HashSet<SpanId>,
    ) {
        self.lost += owed.into_iter().filter(|id| !received.contains(*id)).count() as u64;
    }

    /// Checks a promise.
    fn promise(&mut self, kept: bool, otherwise: impl FnOnce() -> String) {
        if !kept {
            self.broken.push(otherwise());
        }
    }

    /// Runs several faults concurrently, and adds their results.
    async fn of(runs: Vec<impl Future<Output = Result<Self>> + Send + 'static>) -> Result<Self> {
        let mut all = Self::default();
        for fault in together(runs, Duration::ZERO).await? {
            all.accepted += fault.accepted;
            all.lost += fault.lost;
            all.unbalanced += fault.unbalanced;
            all.broken.extend(fault.broken);
            all.notes.extend(fault.notes);
        }
        Ok(all)
    }

    /// Adds a figure without a goal.
    fn note(&mut self, figure: impl Into<String>) {
        self.notes.push(figure.into());
    }
}
