//! Outcomes as one self-contained page: verdicts, their evidence, and the waterfall of each trace.
//!
//! The results and the trigger are static HTML that needs no script. A script of ours renders the waterfalls from JSON, a few
//! rows at a time, so that a page with thousands of spans opens at once. Every text of an untrusted sender is escaped in the HTML, and
//! the script sets it as text and never as markup. The page may load no resource and connect to no host.
//!
//! Deliberately absent: anything from another file or URL, and a framework.

mod details;
mod exchange;
mod waterfall;

use exchange::exchange;
use model::{Answer, Outcome, Verdict};

pub use waterfall::{Hide, WATERFALL_SPANS_MAX, Waterfall};

use crate::{
    analysis::{broken, score},
    format::Format,
    points::{NAME_CHARS_MAX, PROSE_CHARS_MAX, Point, VALUE_CHARS_MAX, checks, placed, urgency},
    text::{duration, markup, shown, status_words},
    totals::{Totals, counted, elapsed_ns, thousands},
    why::{unknown, whys},
};

/// For a person in a browser.
pub(crate) const HTML: Format = Format {
    accepted_as: &["text/html"],
    shows_traces: true,
    has_scripts: true,
    ..Format::new("html", "text/html; charset=utf-8", |input| {
        html(input.outcomes, input.waterfalls)
    })
};

/// The upper bound for all waterfalls of a page together; a note replaces those beyond it.
const WATERFALLS_BYTES_MAX: usize = 64 << 20;
/// The upper bound for assertions and claims of a test that are listed.
const POINTS_MAX: usize = 500;

const STYLE: &str = include_str!("page/page.css");
/// One script: each part uses the parts before it.
const SCRIPT: &str = concat!(
    include_str!("page/rows.js"),
    include_str!("page/axis.js"),
    include_str!("page/waterfall.js"),
    include_str!("page/row.js"),
    include_str!("page/details.js"),
    include_str!("page/page.js"),
);

/// Writes the page. Each outcome has its waterfall at the same index, or none.
fn html(outcomes: &[Outcome], waterfalls: &[Option<Waterfall>]) -> String {
    let totals = Totals::of(outcomes);
    let words =
        totals.words(|verdict, count| format!("<b class=\"{}\">{count}</b>", verdict.as_str()));
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; \
         script-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\">\n<title>Qualitytrace: {}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
         <header><h1>Qualitytrace</h1><p>{words}</p></header>\n<main>\n",
        totals.words(|_, count| count.to_owned()),
    );
    // The first test with the worst verdict is open. The tests keep their order.
    let worst = outcomes.iter().map(|outcome| urgency(outcome.verdict)).min();
    let first_open = outcomes.iter().position(|outcome| Some(urgency(outcome.verdict)) == worst);
    let mut room = WATERFALLS_BYTES_MAX;
    for (at, outcome) in outcomes.iter().enumerate() {
        let waterfall = waterfalls.get(at).and_then(Option::as_ref);
        let drawn = waterfall.filter(|waterfall| waterfall.json.len() <= room);
        room -= drawn.map_or(0, |waterfall| waterfall.json.len());
        page.push_str(&test(outcome, first_open == Some(at)));
        match (waterfall, drawn) {
            (Some(_), Some(waterfall)) => page.push_str(&section(waterfall)),
            (Some(_), None) => page.push_str(
                "<p class=\"note\">There is no room here for this trace: report this test alone.</p>\n",
            ),
            (None, _) => {}
        }
        page.push_str("</details>\n");
    }
    page.push_str(&format!("</main>\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n"));
    page
}

/// Returns the section of a trace, with its bound where the trace is longer.
fn section(waterfall: &Waterfall) -> String {
    let Waterfall { json, spans, left_out } = waterfall;
    let number = |number: usize| thousands(number as u64);
    let count = match left_out {
        0 if *spans == 1 => "1 span".to_owned(),
        0 => format!("{} spans", number(*spans)),
        more => format!(
            "{} of {} spans: the page shows up to {} spans of a trace, first those that decided a verdict",
            number(*spans),
            number(spans + more),
            number(WATERFALL_SPANS_MAX),
        ),
    };
    let script = match spans {
        0 => String::new(),
        _ => format!(
            "<noscript><p class=\"note\">The waterfall needs scripts.</p></noscript>\n\
             <script type=\"application/json\">{json}</script>"
        ),
    };
    format!(
        "<section class=\"waterfall\">\n<h3>Trace <span class=\"note\">{count}</span></h3>\n{script}</section>\n"
    )
}

/// Returns the HTML of a test up to its waterfall; its element is still open.
fn test(outcome: &Outcome, is_open: bool) -> String {
    let time = elapsed_ns(std::slice::from_ref(outcome)).map(duration).unwrap_or_default();
    let name = match shown(&outcome.test, NAME_CHARS_MAX) {
        none if none.is_empty() => "(no name)".to_owned(),
        name => name,
    };
    let open = if is_open { " open" } else { "" };
    let mut html = format!(
        "<details class=\"test\"{open}>\n<summary>{}<h2 class=\"name\">{}</h2>\
         <span class=\"time\">{time}</span></summary>\n",
        badge(outcome.verdict),
        markup(&name),
    );
    html.push_str(&facts(outcome));
    let whys = whys(outcome);
    if !whys.is_empty() {
        let items =
            whys.iter().map(|why| format!("<li>{}</li>\n", markup(&shown(why, PROSE_CHARS_MAX))));
        html.push_str(&format!(
            "<h3>Why, and what to do</h3>\n<ul class=\"whys\">\n{}</ul>\n",
            items.collect::<String>()
        ));
    }
    html.push_str(&checked(outcome));
    html.push_str(&exchange(outcome));
    if let Some(analysis) = &outcome.analysis {
        let rules = broken(analysis);
        let items = rules.iter().map(|rule| format!("<li>{}</li>\n", markup(rule)));
        html.push_str(&format!(
            "<h3>Analyzer: {}</h3>\n<ul>\n{}</ul>\n",
            markup(&score(analysis)),
            items.collect::<String>()
        ));
    }
    html
}

/// Returns a summary of the run.
fn facts(outcome: &Outcome) -> String {
    let mut facts = Vec::new();
    if let Some(status) = outcome.answer.as_ref().and_then(Answer::status) {
        let verb = if status.is_program { "ended with" } else { "answered" };
        facts.push(format!("{verb} {} in {}", status_words(&status), duration(status.duration_ns)));
    }
    if let Some(Answer::NoAnswer(_)) = &outcome.answer {
        facts.push("no answer".to_owned());
    }
    if let Some(settlement) = &outcome.settlement {
        let state = if settlement.is_whole() { "trace complete" } else { "trace incomplete" };
        facts.push(format!("{state}, {}", counted(settlement.spans, "span")));
        if !settlement.processes.is_empty() {
            facts.push(match settlement.processes.len() {
                1 => "1 process".to_owned(),
                number => format!("{number} processes"),
            });
        }
        if settlement.quiet_ns > 0 {
            let why = unknown(settlement).unwrap_or_default();
            facts.push(format!("quiet for {}{why}", duration(settlement.quiet_ns)));
        }
    }
    facts.extend(outcome.trace_id.map(|id| format!("trace {id}")));
    facts.extend(outcome.run_id.map(|id| format!("run {id}")));
    let facts: Vec<String> =
        facts.iter().map(|fact| format!("<span>{}</span>", markup(fact))).collect();
    format!("<p class=\"facts\">{}</p>\n", facts.join(" "))
}

/// Returns the assertions and claims, sorted by urgency.
fn checked(outcome: &Outcome) -> String {
    let mut points = checks(outcome);
    if points.is_empty() {
        return String::new();
    }
    points.sort_by_key(|point| urgency(point.verdict));
    let told: String = points.iter().take(POINTS_MAX).map(check).collect();
    let more = match points.len().saturating_sub(POINTS_MAX) {
        0 => String::new(),
        more => format!("<p class=\"note\">and {more} more</p>\n"),
    };
    format!("<h3>Assertions and claims</h3>\n{told}{more}")
}

fn check(point: &Point<'_>) -> String {
    let subject = match point.subject.as_str() {
        "" => String::new(),
        subject => format!("<b>{}</b> ", markup(subject)),
    };
    let mut html = format!(
        "<div class=\"check\">{}<div>{subject}<code>{}</code>",
        badge(point.verdict),
        markup(&point.words),
    );
    if let Some(place) = point.place {
        html.push_str(&format!("<span class=\"place\">{}</span>", markup(&placed(place))));
    }
    if let Some(reason) = &point.reason {
        html.push_str(&format!("<p>{}</p>", markup(reason)));
    }
    // A check that passed needs no evidence on the page; the waterfall marks its spans.
    if point.verdict != Verdict::Passed && !point.listed().is_empty() {
        html.push_str("<table>");
        for span in point.listed() {
            let id = span.span_id.map(|id| format!(" data-span=\"{id}\"")).unwrap_or_default();
            html.push_str(&format!(
                "<tr><td>{}</td><td{id}>{}</td><td><code>{}</code></td></tr>",
                badge(span.verdict),
                markup(&shown(&span.name, NAME_CHARS_MAX)),
                markup(&shown(&span.found, VALUE_CHARS_MAX)),
            ));
        }
        html.push_str("</table>");
        if let Some(more) = point.unlisted() {
            html.push_str(&format!("<p class=\"note\">{more}</p>"));
        }
    }
    html.push_str("</div></div>\n");
    html
}

/// Returns the badge of a verdict: a sign and a word, so that its colour adds nothing.
fn badge(verdict: Verdict) -> String {
    let (sign, word) = (mark(verdict), verdict.as_str());
    format!("<span class=\"badge {word}\">{sign} {word}</span>")
}

fn mark(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Passed => "✔",
        Verdict::Failed => "✘",
        Verdict::Inconclusive => "?",
    }
}
