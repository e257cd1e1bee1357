//! Diagnostics as pictures: the line of the text with a mark under the place.

use std::borrow::Cow;

use annotate_snippets::{
    Annotation, AnnotationKind, Group, Level, Origin, Renderer, Snippet, normalize_untrusted_str,
};

use crate::{Diagnostic, Severity, Span};

/// How much of a message, a label or a name is shown.
const LINE_CHARS_MAX: usize = 400;

/// Lines that are longer are cut before they are drawn; shorter ones the renderer cuts, and more prettily.
const LINE_BYTES_MAX: usize = 16 * 1024;

/// How much is kept before the place on such a line; twice as much behind it.
const AROUND_BYTES: usize = 60;

/// Whether the pictures hold terminal colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    Never,
    Always,
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
        Some(span) if stands_on_long_line(diagnostic, span) => {
            let place = diagnostic.text.place(span.start);
            let origin = Origin::path(one_line(diagnostic.text.name()));
            let origin = origin.line(place.line).char_column(place.column);
            group.element(origin).element(excerpt(diagnostic, span))
        }
        Some(span) => group.element(snippet(diagnostic, span)),
        None => group.element(Origin::path(one_line(diagnostic.text.name()))),
    };
    match &diagnostic.help {
        Some(help) => group.element(Level::HELP.message(one_line(help))),
        None => group,
    }
}

fn stands_on_long_line(diagnostic: &Diagnostic, span: Span) -> bool {
    let ends = |span: Span| [Span::at(span.start), Span::at(span.end)];
    let also = diagnostic.also.iter().flat_map(|(span, _)| ends(*span));
    let mut all = ends(span).into_iter().chain(also);
    all.any(|end| diagnostic.text.lines_around(diagnostic.text.clamp(end)).0.len() > LINE_BYTES_MAX)
}

/// What stands around a place on a very long line, cut by hand because the renderer needs seconds for megabytes. It
/// would then count columns from the cut, so that the place has to be told apart from the line.
fn excerpt(diagnostic: &Diagnostic, span: Span) -> Snippet<'_, Annotation<'_>> {
    let text = &diagnostic.text;
    let span = text.first_line(span);
    let (line, number) = text.lines_around(Span::at(span.start));
    let cut = text.clamp(Span {
        start: span.start.saturating_sub(AROUND_BYTES).max(line.start),
        end: (span.start + 2 * AROUND_BYTES).min(line.end),
    });
    let within = span.start - cut.start..span.end.min(cut.end) - cut.start;
    let label = (!diagnostic.label.is_empty()).then(|| one_line(&diagnostic.label));
    Snippet::source(text.slice(cut))
        .line_start(number)
        .annotation(AnnotationKind::Primary.span(within).label(label))
}

/// Hands the renderer no more than the lines that are needed: it looks at all it is given.
fn snippet(diagnostic: &Diagnostic, span: Span) -> Snippet<'_, Annotation<'_>> {
    let text = &diagnostic.text;
    let span = text.clamp(span);
    let also: Vec<(Span, &str)> =
        diagnostic.also.iter().map(|(span, label)| (text.clamp(*span), label.as_str())).collect();
    let all = also.iter().fold(span, |all, (span, _)| Span {
        start: all.start.min(span.start),
        end: all.end.max(span.end),
    });
    let (window, line) = text.lines_around(all);
    let mut source = Cow::Borrowed(text.slice(window));
    if all.end == text.content().len() && source.ends_with('\n') {
        // To the renderer a line break ends the text; a place behind it needs a line to stand on.
        source.to_mut().push('\n');
    }
    let within = |span: Span| span.start - window.start..span.end - window.start;
    let labelled = |label: &str| (!label.is_empty()).then(|| one_line(label));
    Snippet::source(source)
        .line_start(line)
        .path(one_line(text.name()))
        .annotation(AnnotationKind::Primary.span(within(span)).label(labelled(&diagnostic.label)))
        .annotations(
            also.into_iter().map(|(span, label)| {
                AnnotationKind::Context.span(within(span)).label(labelled(label))
            }),
        )
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
    use crate::Text;

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
    fn what_is_about_the_whole_text_names_it() {
        let text = Text::new("t.yaml", "");
        let note = Diagnostic::note(&text, None, "n").help("h\nx");
        assert_eq!(draw(&[note], Colour::Never), "note: n\n--> t.yaml\n = help: h␊x\n");
        assert_eq!(draw(&[], Colour::Always), "");
    }
}
