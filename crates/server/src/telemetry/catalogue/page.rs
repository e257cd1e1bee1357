//! Renders the catalogue as a section of a documentation page.

use super::{EVENTS, EXCEPTION, Event, Instrument, METRICS, Metric, RUN, SPANS, Span, attribute};

/// Renders the catalogue as Markdown.
pub fn markdown() -> String {
    let list = |names: &[&str]| match names {
        [] => "none".to_owned(),
        names => names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", "),
    };
    let mut out = String::new();
    for span in SPANS {
        let Span { name, level, kind, parent, attributes, meaning } = span;
        let level = level.as_str();
        let parent = if *parent == RUN { format!("`{RUN}`") } else { (*parent).to_owned() };
        let attributes = list(attributes);
        out.push_str(&format!(
            "- **`{name}`** ({kind}, level {level}), below {parent}. {meaning} Attributes: {attributes}.\n"
        ));
    }
    out.push_str(&format!(
        "\nA span that failed has the status *error*, `{}`, and an event `{EXCEPTION}` with `{}`, without a message: messages quote values.\n",
        attribute::ERROR,
        attribute::EXCEPTION_TYPE
    ));
    out.push_str(
        "\n| event of the log | severity | attributes | when |\n| --- | --- | --- | --- |\n",
    );
    for event in EVENTS {
        let Event { name, severity, attributes, meaning } = event;
        out.push_str(&format!("| `{name}` | {severity} | {} | {meaning} |\n", list(attributes)));
    }
    out.push_str("\n| metric | instrument | unit | attributes | meaning |\n| --- | --- | --- | --- | --- |\n");
    for metric in METRICS {
        let Metric { name, instrument, unit, attributes, meaning } = metric;
        let instrument = match instrument {
            Instrument::Counter => "counter",
            Instrument::Gauge => "gauge",
            Instrument::Histogram => "histogram",
        };
        let attributes = list(attributes);
        out.push_str(&format!(
            "| `{name}` | {instrument} | `{unit}` | {attributes} | {meaning} |\n"
        ));
    }
    out
}
