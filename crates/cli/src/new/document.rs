//! Writes a test as a document in the style of a human author.
//!
//! Deliberately absent: a general YAML writer. The document has a handful of scalars, each quoted only if it must be.

use super::{curl::Curl, propose::Proposals};

/// A test to be written as text.
#[derive(Debug)]
pub(crate) struct Draft<'a> {
    pub(crate) id: &'a str,
    pub(crate) name: &'a str,
    pub(crate) curl: &'a Curl,
    /// Whether the test sets the number of redirects.
    pub(crate) redirects: bool,
    pub(crate) proposals: &'a Proposals,
}

impl Draft<'_> {
    /// Returns the complete document.
    pub(crate) fn text(&self) -> String {
        let mut out = Lines::default();
        out.line(0, "# Made by `qualitytrace new` from a curl command and the trace that it got. Read it, and say what you mean.");
        out.line(0, "type: Test");
        out.line(0, "spec:");
        out.line(2, &format!("id: {}", scalar(self.id)));
        out.line(2, &format!("name: {}", scalar(self.name)));
        self.trigger(&mut out);
        self.specs(&mut out);
        self.claims(&mut out);
        out.0
    }

    fn trigger(&self, out: &mut Lines) {
        let curl = self.curl;
        out.line(2, "trigger:");
        out.line(4, "type: http");
        if let Some(seconds) = &curl.seconds_max {
            out.line(4, &format!("timeout: {seconds}s"));
        }
        let files =
            [("caFile", &curl.ca_file), ("certFile", &curl.cert_file), ("keyFile", &curl.key_file)];
        if files.iter().any(|(_, file)| file.is_some()) {
            out.line(4, "tls:");
            for (key, file) in files {
                if let Some(file) = file {
                    out.line(6, &format!("{key}: {}", scalar(file)));
                }
            }
        }
        out.line(4, "httpRequest:");
        out.line(6, &format!("method: {}", curl.method));
        out.line(6, &format!("url: {}", scalar(&curl.url)));
        if curl.insecure {
            out.line(6, "sslVerification: false");
        }
        if self.redirects {
            out.line(6, &format!("redirects: {}", curl.redirects));
        }
        if !curl.headers.is_empty() {
            out.line(6, "headers:");
            for (name, value) in &curl.headers {
                out.line(8, &format!("- key: {}", scalar(name)));
                out.line(8, &format!("  value: {}", scalar(value)));
            }
        }
        self.auth(out);
        if let Some(body) = &curl.body {
            match block(body) {
                Some(lines) => {
                    out.line(6, if body.ends_with('\n') { "body: |" } else { "body: |-" });
                    lines.for_each(|line| out.line(8, line));
                }
                None => out.line(6, &format!("body: {}", scalar(body))),
            }
        }
    }

    fn auth(&self, out: &mut Lines) {
        if let Some((user, password)) = &self.curl.basic {
            out.line(6, "auth:");
            out.line(8, "type: basic");
            out.line(8, "basic:");
            out.line(10, &format!("username: {}", scalar(user)));
            out.line(10, &format!("password: {}", scalar(password)));
        } else if let Some(token) = &self.curl.bearer {
            out.line(6, "auth:");
            out.line(8, "type: bearer");
            out.line(8, "bearer:");
            out.line(10, &format!("token: {}", scalar(token)));
        }
    }

    fn specs(&self, out: &mut Lines) {
        if self.proposals.specs.is_empty() {
            return;
        }
        out.line(0, "");
        out.line(2, "# What each service did. Bounds of time are ten times what was seen, and at least 500 ms.");
        out.line(2, "specs:");
        for spec in &self.proposals.specs {
            out.line(4, &format!("- name: {}", scalar(&spec.name)));
            out.line(6, &format!("selector: {}", scalar(&spec.selector)));
            out.line(6, "assertions:");
            for assertion in &spec.assertions {
                out.line(8, &format!("- {}", scalar(assertion)));
            }
        }
    }

    fn claims(&self, out: &mut Lines) {
        if self.proposals.claims.is_empty() {
            return;
        }
        out.line(0, "");
        out.line(2, "# Claims about the response and the whole trace.");
        out.line(2, "trace:");
        for (name, claim) in &self.proposals.claims {
            match name {
                None => out.line(4, &format!("- {}", scalar(claim))),
                Some(name) => {
                    out.line(4, &format!("- name: {}", scalar(name)));
                    out.line(6, &format!("claim: {}", scalar(claim)));
                }
            }
        }
    }
}

/// Lines with their indentation.
#[derive(Default)]
struct Lines(String);

impl Lines {
    fn line(&mut self, indent: usize, text: &str) {
        if !text.is_empty() {
            self.0.push_str(&" ".repeat(indent));
            self.0.push_str(text);
        }
        self.0.push('\n');
    }
}

/// Returns the lines of a text that reads better as a YAML block: several lines, all of which a block preserves.
fn block(text: &str) -> Option<std::str::Lines<'_>> {
    let body = text.strip_suffix('\n').unwrap_or(text);
    let fits = body.contains('\n')
        && !body.ends_with('\n')
        && !body.starts_with([' ', '\n'])
        && text.chars().all(|c| c == '\n' || c == '\t' || !c.is_control())
        && !text.contains('\u{feff}');
    fits.then(|| body.lines())
}

/// Returns a scalar on one line, unquoted if that has the same value.
pub(super) fn scalar(text: &str) -> String {
    if is_plain(text) {
        return text.to_owned();
    }
    let is_printable =
        |c: char| !c.is_control() && !matches!(c, '\u{feff}' | '\u{2028}' | '\u{2029}');
    if text.chars().all(is_printable) {
        return format!("'{}'", text.replace('\'', "''"));
    }
    // JSON escapes are valid YAML escapes.
    serde_json::Value::from(text).to_string()
}

/// Whether a plain scalar parses as this string, and not as a number, boolean, null or anything else.
fn is_plain(text: &str) -> bool {
    let begins = text.chars().next().is_some_and(char::is_alphabetic);
    let ends = text.chars().next_back().is_some_and(|c| !c.is_whitespace() && c != ':');
    let is_word = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"]
        .iter()
        .any(|word| text.eq_ignore_ascii_case(word));
    begins
        && ends
        && !is_word
        && text
            .chars()
            .all(|c| !c.is_control() && !matches!(c, '\u{feff}' | '\u{2028}' | '\u{2029}'))
        && !text.contains(": ")
        && !text.contains(" #")
}
