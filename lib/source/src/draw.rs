//! Renders diagnostics as snippets: the line of the text with a mark under the location.

use std::{borrow::Cow, iter};

use annotate_snippets::{
    Annotation, AnnotationKind, Group, Level, Origin, Renderer, Snippet, normalize_untrusted_str,
};

use crate::{Diagnostic, Severity, Span, Text};

/// The maximum number of characters of a message, a label or a name that are shown.
const LINE_CHARS_MAX: usize = 400;

/// The maximum size of a snippet. The renderer processes its entire input, and needs seconds for megabytes. Locations
/// that are farther apart are rendered separately, and longer lines are cut before rendering. The renderer cuts shorter
/// lines itself, with a better result.
const WINDOW_BYTES_MAX: usize = 16 * 1024;

/// The replacement for hidden text.
const HIDDEN: &str = "***";

/// How many bytes of a long line are shown before the location; twice as many are shown behind it.
const AROUND_BYTES: usize = 60;

/// Whether the rendered snippets contain terminal colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    Never,
    Always,
}

/// A location and its label.
#[derive(Clone, Copy)]
struct Mark<'a> {
    kind: AnnotationKind,
    span: Span,
    label: &'a str,
}

/// Renders the diagnostics sorted by location, file by file, separated by empty lines.
///
/// ```text
/// error: unknown key `hots` in `postgres`
///  --> config.yaml:2:3
///   |
/// 2 |   hots: db
///   |   ^^^^
///   |
///   = help: did you mean `host`?
/// ```
pub fn draw(diagnostics: &[Diagnostic], colour: Colour) -> String {
    let renderer = match colour {
        Colour::Never => Renderer::plain(),
        Colour::Always => Renderer::styled(),
    };
    let mut sorted: Vec<&Diagnostic> = diagnostics.iter().collect();
    // The note about omitted diagnostics has no location, so it comes after the others.
    sorted.sort_by_key(|d| (d.text.name(), d.span.is_none(), d.span, d.severity));
    let pictures: Vec<String> = sorted
        .into_iter()
        .map(|diagnostic| {
            let picture = renderer.render(&[group(diagnostic)]);
            let lines: Vec<&str> = picture.lines().filter(|line| !is_nameless(line)).collect();
            lines.join("\n")
        })
        .collect();
    // The renderer passes through C1 control characters, which terminals interpret. The columns are already computed
    // here.
    let mut drawn =
        pictures.join("\n\n").replace(|c: char| ('\u{80}'..='\u{9f}').contains(&c), "\u{fffd}");
    if !drawn.is_empty() {
        drawn.push('\n');
    }
    drawn
}

fn group(diagnostic: &Diagnostic) -> Group<'_> {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Note => Level::NOTE,
    };
    let group = Group::with_title(level.primary_title(one_line(&diagnostic.message)));
    let group = match diagnostic.span {
        Some(span) => places(group, diagnostic, span),
        None => group.element(Origin::path(one_line(diagnostic.text.name()))),
    };
    let Some(help) = &diagnostic.help else { return group };
    let lines = iter::once(help).chain(&diagnostic.lines).map(|line| one_line(line));
    group.element(Level::HELP.message(lines.collect::<Vec<_>>().join("\n")))
}

/// Renders the lines from the first location to the last, or each location alone if that is too much text.
fn places<'a>(group: Group<'a>, diagnostic: &'a Diagnostic, span: Span) -> Group<'a> {
    let text = &diagnostic.text;
    let also = diagnostic.also.iter().map(|(span, label)| Mark {
        kind: AnnotationKind::Context,
        span: text.clamp(*span),
        label,
    });
    let first =
        Mark { kind: AnnotationKind::Primary, span: text.clamp(span), label: &diagnostic.label };
    let marks: Vec<Mark<'_>> = iter::once(first).chain(also).collect();
    let all = marks.iter().fold(marks[0].span, |all, mark| Span {
        start: all.start.min(mark.span.start),
        end: all.end.max(mark.span.end),
    });
    let in_one_part = all.end <= text.part_end(all.start);
    let (window, line) = text.lines_around(all);
    if in_one_part && window.len() <= WINDOW_BYTES_MAX {
        let shown = WindowText::new(text, window);
        let annotations = marks.iter().map(|mark| shown.annotation(mark)).collect::<Vec<_>>();
        let snippet = shown.snippet(line).annotations(annotations);
        let is_true = shown.has_true_column(marks[0].span);
        return located(group, text, marks[0].span.start, (snippet, is_true));
    }
    marks.into_iter().fold(group, |group, mark| alone(group, text, mark))
}

/// Renders the line on which a location starts, cut around the location if the line is long.
fn alone<'a>(group: Group<'a>, text: &'a Text, mark: Mark<'a>) -> Group<'a> {
    let start = mark.span.start;
    let (line, number) = text.lines_around(Span::at(start));
    let is_cut = line.len() > WINDOW_BYTES_MAX;
    let around = Span {
        start: start.saturating_sub(AROUND_BYTES).max(line.start),
        end: (start + 2 * AROUND_BYTES).min(line.end),
    };
    let window = if is_cut { text.clamp(around) } else { line };
    let span = text.first_line(Span { start, end: mark.span.end.min(window.end) });
    let shown = WindowText::new(text, window);
    let annotation = shown.annotation(&Mark { span, ..mark });
    let snippet = shown.snippet(number).annotation(annotation);
    let is_true = !is_cut && shown.has_true_column(span);
    located(group, text, start, (snippet, is_true))
}

/// Adds a snippet under the location of a byte. If the text before it on its line is not shown unchanged, the renderer
/// would compute a wrong column, so the location is rendered as a separate element.
fn located<'a>(
    group: Group<'a>,
    text: &'a Text,
    byte: usize,
    (snippet, is_true): (Snippet<'a, Annotation<'a>>, bool),
) -> Group<'a> {
    let name = one_line(text.name_at(byte));
    if is_true {
        return group.element(snippet.path(name));
    }
    let place = text.place(byte);
    let origin = Origin::path(name).line(place.line).char_column(place.column);
    group.element(origin).element(snippet)
}

/// The visible part of a window: its text, with `***` for hidden spans.
struct WindowText<'a> {
    text: &'a Text,
    window: Span,
    hidden: Vec<Span>,
}

impl<'a> WindowText<'a> {
    fn new(text: &'a Text, window: Span) -> Self {
        Self { text, window, hidden: text.hidden_in(window).collect() }
    }

    /// Returns whether a span is shown in the column that it has in the text: nothing before it on its line is hidden.
    fn has_true_column(&self, span: Span) -> bool {
        let (line, _) = self.text.lines_around(Span::at(span.start));
        !self.text.hides(Span { start: line.start, end: span.start })
    }

    fn snippet(&self, line: usize) -> Snippet<'a, Annotation<'a>> {
        let window = self.window;
        let mut source = Cow::Borrowed(self.text.slice(window));
        for hidden in self.hidden.iter().rev() {
            let start = hidden.start.max(window.start) - window.start;
            let end = hidden.end.min(window.end) - window.start;
            source.to_mut().replace_range(start..end, HIDDEN);
        }
        if window.end == self.text.part_end(window.start)
            && (source.is_empty() || source.ends_with('\n'))
        {
            // For the renderer a line break ends the text; a location behind it needs a further line.
            source.to_mut().push('\n');
        }
        Snippet::source(source).line_start(line)
    }

    fn annotation(&self, mark: &Mark<'a>) -> Annotation<'a> {
        let label = (!mark.label.is_empty()).then(|| one_line(mark.label));
        let start = self.shown_at(mark.span.start, Edge::Start);
        let end = self.shown_at(mark.span.end, Edge::End).max(start);
        mark.kind.span(start..end).label(label)
    }

    /// Maps a byte of the text to its offset in the shown text. A byte in a hidden span maps to an edge of the
    /// replacement.
    fn shown_at(&self, byte: usize, edge: Edge) -> usize {
        let mut shown = byte - self.window.start;
        for hidden in &self.hidden {
            let hidden = Span {
                start: hidden.start.max(self.window.start),
                end: hidden.end.min(self.window.end),
            };
            if byte <= hidden.start {
                break;
            }
            shown = match edge {
                Edge::Start if byte < hidden.end => shown - (byte - hidden.start),
                _ => shown - byte.min(hidden.end).saturating_sub(hidden.start) + HIDDEN.len(),
            };
        }
        shown
    }
}

/// The end of a mark that is being located.
#[derive(Clone, Copy)]
enum Edge {
    Start,
    End,
}

/// Returns whether a line only shows that a snippet has no name. The renderer emits it when the location is a separate
/// element.
fn is_nameless(line: &str) -> bool {
    let mut coloured = line.split('\u{1b}');
    let first = coloured.next().unwrap_or_default();
    let visible = coloured.map(|part| part.split_once('m').map_or(part, |(_, visible)| visible));
    iter::once(first).chain(visible).collect::<String>().trim() == ":::"
}

/// Formats a message as one line. It may quote the user's text: line breaks and control characters become visible, and
/// the length is limited.
fn one_line(words: &str) -> String {
    let mut line: String =
        words.chars().take(LINE_CHARS_MAX).map(|c| if c == '\n' { '␊' } else { c }).collect();
    if words.chars().nth(LINE_CHARS_MAX).is_some() {
        line.push('…');
    }
    normalize_untrusted_str(&line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DIAGNOSTICS_MAX, read_yaml};

    #[test]
    fn no_control_character_reaches_a_terminal() {
        let text = Text::new("t\u{9b}", "a: b\u{9b}31m\u{1b}c\u{85}d\n");
        let diagnostic = Diagnostic::error(&text, Span { start: 3, end: 8 }, "m\u{90}")
            .label("l\u{9d}")
            .help("h\u{80}");
        let drawn = draw(&[diagnostic], Colour::Never);
        let steering: Vec<_> = drawn.chars().filter(|c| c.is_control() && *c != '\n').collect();
        assert_eq!(steering, [], "{drawn}");
        assert!(drawn.contains("b\u{fffd}31m"), "{drawn}");
    }

    #[test]
    fn a_line_of_megabytes_is_cut_around_the_place() {
        let text =
            Text::new("t", format!("a\n{}HERE{}\nb", "日".repeat(500_000), "x".repeat(1_000_000)));
        let start = text.content().find("HERE").unwrap();
        let diagnostic = Diagnostic::error(&text, Span { start, end: start + 4 }, "m").label("l");
        let drawn = draw(&[diagnostic], Colour::Never);
        assert!(drawn.contains("--> t:2:500001\n") && drawn.contains("日HEREx"), "{drawn}");
        assert!(drawn.ends_with("^^^^ l\n") && drawn.len() < 1000, "{drawn}");
    }

    #[test]
    fn places_far_apart_are_drawn_apart() {
        let text = Text::new("t", format!("one: 1\n{}last\n", "word\n".repeat(100_000)));
        let end = text.content().len();
        let diagnostic = Diagnostic::error(&text, Span::at(end), "m").label("end");
        let diagnostic = diagnostic.also(Span { start: 0, end: 20 }, "start");
        let drawn = draw(&[diagnostic], Colour::Never);
        assert_eq!(
            drawn,
            "\
error: m
      --> t:100003:1
       |
100003 |
       | ^ end
       |
      ::: t:1:1
       |
     1 | one: 1
       | ------ start
"
        );
    }

    #[test]
    fn a_place_of_many_lines_is_drawn_by_its_first() {
        let text = Text::new("t", "word word\n".repeat(100_000));
        let span = Span { start: 5, end: text.content().len() };
        let drawn = draw(&[Diagnostic::error(&text, span, "m").label("l")], Colour::Never);
        assert!(drawn.ends_with("1 | word word\n  |      ^^^^ l\n"), "{drawn}");
    }

    #[test]
    fn many_places_far_apart_are_drawn() {
        // Each key is repeated, one document length behind its first occurrence. Rendering takes minutes if it
        // processes all text in between.
        let keys: String = (0..DIAGNOSTICS_MAX).map(|key| format!("k{key}: 1\n")).collect();
        let text = Text::new("t", format!("{keys}{}{keys}", "# word\n".repeat(200_000)));
        let (_, mistakes) = read_yaml(&text);
        let drawn = draw(&mistakes, Colour::Never);
        assert_eq!(drawn.matches("^ again here").count(), DIAGNOSTICS_MAX);
        assert_eq!(drawn.matches("- first here").count(), DIAGNOSTICS_MAX);
    }

    #[test]
    fn what_is_hidden_is_not_drawn_and_moves_no_place() {
        let text = Text::new("t", "a: {k: sécret, hots: 1}\nb: |\n  one\n  two\nc: 3\n");
        let at = |word: &str| {
            let start = text.content().find(word).unwrap();
            Span { start, end: start + word.len() }
        };
        let spans = [at("sécret"), at("cret"), at("hots"), at("two"), at("3")];
        let secrets = [at("sécret"), Span { start: at("one").start, end: at("two").end }];
        let hiding = text.hiding(secrets);
        let columns: Vec<_> = spans.iter().map(|span| text.place(span.start)).collect();
        for (span, place) in spans.iter().zip(columns) {
            let drawn =
                draw(&[Diagnostic::error(&hiding, *span, "m").also(at("c"), "x")], Colour::Never);
            assert!(drawn.contains(&format!("t:{}:{}\n", place.line, place.column)), "{drawn}");
            let coloured = draw(&[Diagnostic::error(&hiding, *span, "m")], Colour::Always);
            assert!(!drawn.contains(":::") && !coloured.contains(":::"), "{drawn}{coloured}");
            for secret in ["cret", "one", "two"] {
                assert!(!drawn.contains(secret), "{drawn}");
            }
        }
        assert_eq!(
            draw(
                &[Diagnostic::error(&hiding, at("sécret"), "m").also(at("hots"), "x")],
                Colour::Never
            ),
            "\
error: m
 --> t:1:8
  |
1 | a: {k: ***, hots: 1}
  |        ^^^  ---- x
"
        );
    }

    #[test]
    fn places_in_two_parts_are_drawn_under_their_names() {
        let (text, start) = Text::new("t.yaml", "a: ${A}").with_part("environment", "A=1\nB=2");
        let diagnostic = Diagnostic::error(&text, Span { start: 3, end: 7 }, "m");
        let diagnostic = diagnostic.also(Span { start: start + 6, end: start + 7 }, "x");
        assert_eq!(
            draw(&[diagnostic], Colour::Never),
            "\
error: m
 --> t.yaml:1:4
  |
1 | a: ${A}
  |    ^^^^
  |
 ::: environment:2:3
  |
2 | B=2
  |   - x
"
        );
    }

    #[test]
    fn what_is_about_the_whole_text_names_it() {
        let text = Text::new("t.yaml", "");
        let note = Diagnostic::note(&text, None, "n").help("h\nx");
        assert_eq!(draw(&[note], Colour::Never), "note: n\n--> t.yaml\n = help: h␊x\n");
        let note = Diagnostic::note(&text, None, "n").help_with("copy this:", ["a:", "  b: 1\n"]);
        let drawn = "note: n\n--> t.yaml\n = help: copy this:\n         a:\n           b: 1␊\n";
        assert_eq!(draw(&[note], Colour::Never), drawn);
        assert_eq!(draw(&[], Colour::Always), "");
    }
}
