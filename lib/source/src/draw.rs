//! Diagnostics as pictures: the line of the text with a mark under the place.

use std::{borrow::Cow, iter};

use annotate_snippets::{
    Annotation, AnnotationKind, Group, Level, Origin, Renderer, Snippet, normalize_untrusted_str,
};

use crate::{Diagnostic, Severity, Span, Text};

/// How much of a message, a label or a name is shown.
const LINE_CHARS_MAX: usize = 400;

/// The renderer looks at all it is given, and needs seconds for megabytes. Places that are farther apart are drawn
/// apart, and lines that are longer are cut before; shorter ones the renderer cuts, and more prettily.
const WINDOW_BYTES_MAX: usize = 16 * 1024;

/// How much of a long line is kept before the place; twice as much behind it.
const AROUND_BYTES: usize = 60;

/// Whether the pictures hold terminal colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    Never,
    Always,
}

/// A place and what stands under it.
#[derive(Clone, Copy)]
struct Mark<'a> {
    kind: AnnotationKind,
    span: Span,
    label: &'a str,
}

/// Draws the diagnostics in the order of their places, file by file, an empty line between them.
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
    // The note that some are missing has no place and stays behind the others.
    sorted.sort_by_key(|d| (d.text.name(), d.span.is_none(), d.span, d.severity));
    let pictures: Vec<String> =
        sorted.into_iter().map(|diagnostic| renderer.render(&[group(diagnostic)])).collect();
    let mut drawn = pictures.join("\n\n");
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
    match &diagnostic.help {
        Some(help) => group.element(Level::HELP.message(one_line(help))),
        None => group,
    }
}

/// Draws the lines from the first place to the last, or each place alone if that is too much.
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
    let (window, line) = text.lines_around(all);
    if window.len() <= WINDOW_BYTES_MAX {
        let snippet = snippet(text, window, line).path(one_line(text.name()));
        return group
            .element(snippet.annotations(marks.iter().map(|mark| mark.annotation(window))));
    }
    marks.into_iter().fold(group, |group, mark| alone(group, text, mark))
}

/// Draws the line on which a place starts, cut around it if it is long.
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
    let snippet =
        snippet(text, window, number).annotation(Mark { span, ..mark }.annotation(window));
    let name = one_line(text.name());
    if !is_cut {
        return group.element(snippet.path(name));
    }
    // The renderer would count columns from the cut, so that the place has to be told apart from the line.
    let place = text.place(start);
    group.element(Origin::path(name).line(place.line).char_column(place.column)).element(snippet)
}

fn snippet<'a>(text: &'a Text, window: Span, line: usize) -> Snippet<'a, Annotation<'a>> {
    let mut source = Cow::Borrowed(text.slice(window));
    if window.end == text.content().len() && (source.is_empty() || source.ends_with('\n')) {
        // To the renderer a line break ends the text; a place behind it needs a line to stand on.
        source.to_mut().push('\n');
    }
    Snippet::source(source).line_start(line)
}

impl<'a> Mark<'a> {
    fn annotation(&self, window: Span) -> Annotation<'a> {
        let label = (!self.label.is_empty()).then(|| one_line(self.label));
        self.kind.span(self.span.start - window.start..self.span.end - window.start).label(label)
    }
}

/// Words may quote the user's text: line breaks and control characters become visible, and length is bounded.
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
        // Each key again, a document's length behind the first; it takes minutes if all between is looked at.
        let keys: String = (0..DIAGNOSTICS_MAX).map(|key| format!("k{key}: 1\n")).collect();
        let text = Text::new("t", format!("{keys}{}{keys}", "# word\n".repeat(200_000)));
        let (_, mistakes) = read_yaml(&text);
        let drawn = draw(&mistakes, Colour::Never);
        assert_eq!(drawn.matches("^ again here").count(), DIAGNOSTICS_MAX);
        assert_eq!(drawn.matches("- first here").count(), DIAGNOSTICS_MAX);
    }

    #[test]
    fn what_is_about_the_whole_text_names_it() {
        let text = Text::new("t.yaml", "");
        let note = Diagnostic::note(&text, None, "n").help("h\nx");
        assert_eq!(draw(&[note], Colour::Never), "note: n\n--> t.yaml\n = help: h␊x\n");
        assert_eq!(draw(&[], Colour::Always), "");
    }
}
