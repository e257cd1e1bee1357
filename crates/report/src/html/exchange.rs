//! The trigger of a run: its request and its response, as the run recorded them.
//!
//! Deliberately absent: the search for secrets, which were masked before, and what was recorded nowhere.

use model::{Answer, Body, Exit, NoAnswer, Outcome, RecordedRequest};

use crate::{
    points::{NAME_CHARS_MAX, PROSE_CHARS_MAX},
    text::{block, duration, markup, shown, status_words},
    totals::thousands,
};

/// The upper bound for a body that is shown, in characters.
const BODY_CHARS_MAX: usize = 8_000;
/// The upper bound for all headers of a request or a response together, in characters.
const HEADERS_CHARS_MAX: usize = 4_000;
/// The upper bound for the value of a header, in characters.
const HEADER_CHARS_MAX: usize = 400;
/// The upper bound for a URL or a command, in characters.
const TARGET_CHARS_MAX: usize = 2_000;
/// The upper bound for a body that is laid out by its JSON structure, in bytes.
const JSON_BYTES_MAX: usize = 64 << 10;
/// The upper bound for the indentation of JSON, in levels.
const JSON_LEVELS_MAX: usize = 12;

/// Returns the section of the trigger; empty if nothing is recorded of it.
pub(super) fn exchange(outcome: &Outcome) -> String {
    let request = outcome.request.as_ref().map(|it| side("Request", &request(it)));
    let response = outcome.answer.as_ref().map(|it| side("Response", &response(it)));
    if request.is_none() && response.is_none() {
        return String::new();
    }
    let sides: String = request.into_iter().chain(response).collect();
    format!(
        "<section class=\"exchange\">\n<h3>Trigger</h3>\n<div class=\"sides\">\n{sides}</div>\n</section>\n"
    )
}

fn request(request: &RecordedRequest) -> String {
    let RecordedRequest {
        protocol,
        method,
        target,
        fields,
        more_fields,
        body: sent,
        more_body_bytes,
    } = request;
    let is_program = protocol == "exec";
    let protocol = match protocol.as_str() {
        "http" => String::new(),
        protocol => {
            format!("<span class=\"note\">{}</span> ", markup(&shown(protocol, NAME_CHARS_MAX)))
        }
    };
    let method = match method.as_str() {
        "" => String::new(),
        method => format!("<b>{}</b> ", markup(&shown(method, TARGET_CHARS_MAX))),
    };
    let target = markup(&shown(target, TARGET_CHARS_MAX));
    let fields = pairs(fields, *more_fields, "header or field");
    format!(
        "<p>{protocol}{method}<code>{target}</code></p>\n{fields}{}",
        match (sent.is_empty(), is_program) {
            (true, true) => String::new(),
            (true, false) => "<p class=\"note\">no body</p>\n".to_owned(),
            (false, _) => body("Body of the request", sent, *more_body_bytes),
        }
    )
}

fn side(title: &str, content: &str) -> String {
    format!("<div class=\"side\">\n<h4>{title}</h4>\n{content}</div>\n")
}

fn response(answer: &Answer) -> String {
    match answer {
        Answer::Response(response) => {
            let status = status(answer, "");
            let body = body("Body of the response", &response.body, 0);
            format!("{status}{}{body}", pairs(&response.headers, 0, "header"))
        }
        Answer::Reply(reply) => {
            let protocol = shown(&reply.protocol, NAME_CHARS_MAX);
            let status = status(answer, &format!(" by {protocol}"));
            let body = body("Message of the response", &reply.body, 0);
            format!("{status}{}{body}", pairs(&reply.headers, 0, "header"))
        }
        Answer::Exit(exit) => exited(answer, exit),
        Answer::NotFired => {
            "<p class=\"note\">Nothing was fired: the run judges a trace that another program created.</p>\n"
                .to_owned()
        }
        Answer::NoAnswer(NoAnswer { kind, message }) => format!(
            "<p><b>no response</b> ({})</p>\n<p>{}</p>\n",
            kind.as_str(),
            markup(&shown(message, PROSE_CHARS_MAX))
        ),
    }
}

/// Returns the line with the status. An error is one by the rules of the protocol: a status of HTTP never is.
fn status(answer: &Answer, suffix: &str) -> String {
    let Some(status) = answer.status() else { return String::new() };
    let what = if status.is_program { "exit code" } else { "status" };
    let error = match answer.is_failure() {
        true => " <b class=\"badge failed\">! error</b>",
        false => "",
    };
    format!(
        "<p>{what} <b>{}</b> in {}{}{error}</p>\n",
        markup(&shown(&status_words(&status), NAME_CHARS_MAX)),
        duration(status.duration_ns),
        markup(suffix),
    )
}

fn exited(answer: &Answer, exit: &Exit) -> String {
    let stderr = Body::Text(exit.stderr.as_str().into());
    format!(
        "{}{}{}",
        status(answer, ""),
        body("Standard output", &exit.stdout, 0),
        body("Standard error", &stderr, 0),
    )
}

/// Returns names with their values; a note counts those that are not shown, and `unrecorded` ones.
fn pairs(pairs: &[(String, String)], unrecorded: u64, what: &str) -> String {
    if pairs.is_empty() {
        return format!("<p class=\"note\">no {what}</p>\n");
    }
    let (mut listed, mut left, mut room) = (String::new(), unrecorded, HEADERS_CHARS_MAX);
    for (name, value) in pairs {
        let (name, value) = (shown(name, NAME_CHARS_MAX), shown(value, HEADER_CHARS_MAX));
        let width = name.chars().count() + value.chars().count();
        if width > room {
            (left, room) = (left.saturating_add(1), 0);
            continue;
        }
        room -= width;
        let (name, value) = (markup(&name), markup(&value));
        listed.push_str(&format!("<div><dt>{name}</dt><dd>{value}</dd></div>\n"));
    }
    let more = match left {
        0 => String::new(),
        left => format!(
            "<p class=\"cut\">✂ {left} more not shown: the page shows up to {} characters of them.</p>\n",
            thousands(HEADERS_CHARS_MAX as u64)
        ),
    };
    format!("<dl class=\"headers\">\n{listed}</dl>\n{more}")
}

/// Returns a body up to the upper bound, with a mark where it is cut. `unrecorded` bytes of it were cut before.
fn body(title: &str, body: &Body, unrecorded: u64) -> String {
    let heading = format!("<h5>{title}</h5>\n");
    let bytes = (body.len() as u64).saturating_add(unrecorded);
    let text = match body {
        _ if body.is_empty() => return format!("{heading}<p class=\"note\">empty</p>\n"),
        Body::Bytes(_) => {
            return format!(
                "{heading}<p class=\"note\">{} bytes that are no text</p>\n",
                thousands(bytes)
            );
        }
        Body::Text(text) => laid_out(text),
    };
    let (text, is_cut) = block(&text, BODY_CHARS_MAX);
    let cut = match is_cut || unrecorded > 0 {
        true => format!(
            "<p class=\"cut\">✂ Cut here: the page shows up to {} characters of a body, and this one has {} bytes.</p>\n",
            thousands(BODY_CHARS_MAX as u64),
            thousands(bytes),
        ),
        false => String::new(),
    };
    format!(
        "{heading}<pre tabindex=\"0\" role=\"group\" aria-label=\"{title}\">{}</pre>\n{cut}",
        markup(&text)
    )
}

/// Returns JSON with a line for each value, in its own order and with its own numbers; any other text as it is.
fn laid_out(text: &str) -> String {
    let is_json = text.len() <= JSON_BYTES_MAX
        && text.trim_start().starts_with(['{', '['])
        && !text.trim().contains('\n')
        && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
    if !is_json {
        return text.to_owned();
    }
    let mut lines = String::with_capacity(2 * text.len());
    let (mut level, mut is_string, mut is_escaped) = (0_usize, false, false);
    let mut last = ' ';
    for c in text.chars() {
        if is_string {
            lines.push(c);
            is_string = is_escaped || c != '"';
            is_escaped = !is_escaped && c == '\\';
            last = c;
            continue;
        }
        match c {
            ' ' | '\t' | '\r' | '\n' => continue,
            '}' | ']' => {
                level = level.saturating_sub(1);
                if !matches!(last, '{' | '[') {
                    new_line(&mut lines, level);
                }
            }
            _ if matches!(last, '{' | '[' | ',') => new_line(&mut lines, level),
            _ => {}
        }
        lines.push(c);
        match c {
            '{' | '[' => level += 1,
            ':' => lines.push(' '),
            '"' => is_string = true,
            _ => {}
        }
        last = c;
    }
    lines
}

fn new_line(lines: &mut String, level: usize) {
    lines.push('\n');
    lines.push_str(&"  ".repeat(level.min(JSON_LEVELS_MAX)));
}
