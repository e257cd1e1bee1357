//! Rules on unencrypted connections, and on secrets in telemetry.

use std::collections::{HashMap, HashSet};

use model::trace::{Attributes, Kind, Span, ValueRef};

use super::{
    finding::{Findings, shown},
    secret::{Secret, card_within, secret_by_key, secret_key, secret_within},
    world::{AnalysisContext, AnalyzedSpan, Area, text},
};

/// Attributes that state the protocol. A span must have at least one of them, and each that it has must be safe.
const PROTOCOLS: &[&str] = &["url.scheme", "http.scheme", "url.full", "http.url"];

/// Headers that `no-api-key-leak` reports, also in the spelling of old conventions.
const LEAKS: &[&str] = &["authorization", "x-api-key", "x_api_key"];
const HEADERS: &[&str] = &["http.request.header.", "http.response.header."];

/// The maximum nesting depth of maps and lists in a value that is searched.
const DEPTH_MAX: usize = 8;

/// Endings of keys with long numbers as values that are not card numbers.
const NUMBERS: &[&str] =
    &["id", "ids", "time", "timestamp", "offset", "size", "bytes", "count", "sequence", "trace"];

pub(super) fn secure_https_protocol(world: &AnalysisContext<'_>, findings: &mut Findings) {
    for AnalyzedSpan { span, areas } in world.subjects() {
        if areas.main() != Some(Area::Http) {
            continue;
        }
        let told: Vec<_> =
            PROTOCOLS.iter().filter_map(|key| Some((*key, text(*span, key)?))).collect();
        let open = told.iter().find(|(_, value)| !is_https(value));
        // A span between the two ends of a call, or one of another area too, is HTTP only by an attribute.
        let is_end =
            matches!(span.kind(), Kind::Client | Kind::Server) && areas.iter().count() == 1;
        if let Some((key, _)) = open {
            findings.add(*span, || format!("does not speak `https` by `{key}`: call it over TLS"));
        } else if told.is_empty() && is_end {
            findings.add(*span, || {
                "does not tell its protocol: set `url.scheme` on a server's span, \
                 `url.full` on a client's"
                    .to_owned()
            });
        }
    }
}

fn is_https(value: &str) -> bool {
    value.split(':').next().is_some_and(|scheme| scheme.eq_ignore_ascii_case("https"))
}

pub(super) fn no_api_key_leak(world: &AnalysisContext<'_>, findings: &mut Findings) {
    for AnalyzedSpan { span, areas } in world.subjects() {
        if areas.main() != Some(Area::Http) {
            continue;
        }
        let leaks = |key: &str| {
            HEADERS
                .iter()
                .find_map(|prefix| key.strip_prefix(prefix))
                .is_some_and(|name| LEAKS.contains(&name))
        };
        let leak =
            span.attributes().iter().filter(|(key, _)| leaks(key)).find_map(|(key, value)| {
                let secret =
                    texts(value).find_map(|text| secret_by_key("an authorization header", text));
                Some((key, secret?))
            });
        if let Some((key, _)) = leak {
            findings.add(*span, || {
                format!("holds `{key}`: take it off the list of recorded headers, or redact it")
            });
        }
    }
}

/// Returns the strings of a value that is a string or a list of strings.
fn texts<'a>(value: ValueRef<'a>) -> impl Iterator<Item = &'a str> {
    let (one, list) = match value {
        ValueRef::Str(text) => (Some(text), None),
        ValueRef::Array(values) => (None, Some(values)),
        _ => (None, None),
    };
    let list = list.into_iter().flat_map(|values| values.iter());
    one.into_iter().chain(list.filter_map(|value| match value {
        ValueRef::Str(text) => Some(text),
        _ => None,
    }))
}

/// Reads the attributes of spans, events and links, and those of resources and scopes once, on their first span.
pub(super) fn no_secrets(world: &AnalysisContext<'_>, findings: &mut Findings) {
    let mut search = SecretSearch::default();
    let (mut resources, mut scopes) = (HashSet::new(), HashSet::new());
    for AnalyzedSpan { span, .. } in world.subjects() {
        search.tell(*span, span.attributes(), "", findings);
        for event in span.events() {
            search.tell(*span, event.attributes(), " of an event", findings);
        }
        for link in span.links() {
            search.tell(*span, link.attributes(), " of a link", findings);
        }
        if resources.insert(span.resource_ix()) {
            search.tell(*span, span.resource().attributes(), " of its resource", findings);
        }
        if scopes.insert(span.scope_ix()) {
            search.tell(*span, span.scope().attributes(), " of its scope", findings);
        }
    }
}

/// Memoized results for keys and texts. A trace stores each text once, so its address and length identify a text.
#[derive(Default)]
struct SecretSearch {
    keys: HashMap<(usize, usize), Option<&'static str>>,
    /// By text and kind: the secret that a text is under a key that implies this kind.
    meant: HashMap<((usize, usize), &'static str), Option<Secret>>,
    /// By text: the secret that is recognized by its format, and the card number in it.
    texts: HashMap<(usize, usize), (Option<Secret>, Option<Secret>)>,
}

impl SecretSearch {
    fn tell(&mut self, span: Span<'_>, all: Attributes<'_>, of: &str, findings: &mut Findings) {
        for (key, value) in all.iter() {
            if let Some(Secret { what, chars }) = self.secret(key, value, DEPTH_MAX) {
                findings.add(span, || {
                    let key = shown(key);
                    format!(
                        "holds {what} of {chars} characters in {key}{of}: \
                         redact it where the span is made, and replace it, since it is known now"
                    )
                });
            }
        }
    }

    fn secret(&mut self, key: &str, value: ValueRef<'_>, depth: usize) -> Option<Secret> {
        match value {
            ValueRef::Str(text) => self.secret_text(key, text),
            ValueRef::Int(number) if is_about_cards(key) => card_within(&number.to_string()),
            ValueRef::Array(values) if depth > 0 => {
                values.iter().find_map(|value| self.secret(key, value, depth - 1))
            }
            ValueRef::Map(entries) if depth > 0 => {
                entries.iter().find_map(|(inner, value)| self.secret(inner, value, depth - 1))
            }
            _ => None,
        }
    }

    fn secret_text(&mut self, key: &str, text: &str) -> Option<Secret> {
        let meant = *self.keys.entry(place(key)).or_insert_with(|| secret_key(key));
        let looked_at = || (secret_within(text), card_within(text));
        let (within, card) = *self.texts.entry(place(text)).or_insert_with(looked_at);
        let by_key = meant.and_then(|what| {
            let known = self.meant.entry((place(text), what));
            *known.or_insert_with(|| secret_by_key(what, text))
        });
        by_key.or(within).or(card.filter(|_| !is_number(key)))
    }
}

fn place(text: &str) -> (usize, usize) {
    (text.as_ptr() as usize, text.len())
}

fn last_word(key: &str) -> &str {
    key.rsplit(['.', '_', '-']).next().unwrap_or(key)
}

fn is_number(key: &str) -> bool {
    NUMBERS.iter().any(|ending| ending.eq_ignore_ascii_case(last_word(key)))
}

fn is_about_cards(key: &str) -> bool {
    let mut words = key.split(['.', '_', '-']);
    words.any(|word| {
        ["card", "pan", "credit", "creditcard"].iter().any(|it| it.eq_ignore_ascii_case(word))
    })
}
