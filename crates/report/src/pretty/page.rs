//! The output buffer: its lines, its symbols and its colours.

use model::Verdict;
use source::Colour;

use crate::{
    points::PROSE_CHARS_MAX,
    text::{self, no_command, shown, wrapped},
};

/// The column at which prose is wrapped.
const PROSE_COLUMNS: usize = 100;

/// The separator between two columns.
pub(super) const GAP: &str = "  ";

/// The symbols for verdicts and trees.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Signs {
    /// Unicode symbols and lines.
    Drawn,
    /// Words and ASCII, for logs and screen readers.
    Words,
}

#[derive(Clone, Copy)]
pub(super) enum Paint {
    Good,
    Bad,
    Doubt,
    Strong,
    Faint,
}

/// The text so far, and its style.
pub(super) struct Page {
    pub(super) text: String,
    pub(super) signs: Signs,
    /// The indentation of every line.
    pub(super) margin: usize,
    colour: Colour,
}

impl Page {
    pub(super) fn new(signs: Signs, colour: Colour) -> Self {
        Self { text: String::new(), signs, margin: 0, colour }
    }

    /// Writes a line, unless it is empty.
    pub(super) fn line(&mut self, indent: usize, line: &str) {
        let line = no_command(line);
        let line = match self.signs {
            Signs::Drawn => line,
            Signs::Words => line.replace('…', "..."),
        };
        let line = line.trim_end();
        if !line.is_empty() {
            self.text.push_str(&format!("{}{line}\n", " ".repeat(self.margin + indent)));
        }
    }

    pub(super) fn gap(&mut self) {
        self.text.push('\n');
    }

    /// Writes a sentence after a `lead`; the lines after the first one are indented further.
    pub(super) fn prose(&mut self, indent: usize, lead: &str, sentence: &str) {
        let line = shown(sentence, PROSE_CHARS_MAX);
        let columns = PROSE_COLUMNS - self.margin - indent - 2;
        for (at, part) in wrapped(&format!("{lead}{line}"), columns).iter().enumerate() {
            self.line(if at == 0 { indent } else { indent + 2 }, part);
        }
    }

    pub(super) fn paint(&self, paint: Paint, text: &str) -> String {
        let code = match paint {
            Paint::Good => "32",
            Paint::Bad => "31",
            Paint::Doubt => "33",
            Paint::Strong => "1",
            Paint::Faint => "2",
        };
        match self.colour {
            Colour::Always if !text.is_empty() => format!("\u{1b}[{code}m{text}\u{1b}[0m"),
            Colour::Always | Colour::Never => text.to_owned(),
        }
    }

    /// Returns the mark of a verdict.
    pub(super) fn mark(&self, verdict: Verdict) -> String {
        self.paint(verdict_paint(verdict), self.bare_mark(verdict))
    }

    /// Returns the mark without its colour.
    pub(super) fn bare_mark(&self, verdict: Verdict) -> &'static str {
        match (self.signs, verdict) {
            (Signs::Drawn, Verdict::Passed) => "✔",
            (Signs::Drawn, Verdict::Failed) => "✘",
            (Signs::Drawn, Verdict::Inconclusive) => "?",
            (Signs::Words, Verdict::Passed) => "passed:",
            (Signs::Words, Verdict::Failed) => "failed:",
            (Signs::Words, Verdict::Inconclusive) => "inconclusive:",
        }
    }

    pub(super) fn duration(&self, nanos: u64) -> String {
        let time = text::duration(nanos);
        match self.signs {
            Signs::Drawn => time,
            Signs::Words => time.replace('µ', "u"),
        }
    }
}

pub(super) fn verdict_paint(verdict: Verdict) -> Paint {
    match verdict {
        Verdict::Passed => Paint::Good,
        Verdict::Failed => Paint::Bad,
        Verdict::Inconclusive => Paint::Doubt,
    }
}

/// Returns the width of the widest cell.
pub(super) fn columns<'a>(cells: impl IntoIterator<Item = &'a str>) -> usize {
    cells.into_iter().map(|cell| cell.chars().count()).max().unwrap_or_default()
}
