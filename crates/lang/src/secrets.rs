//! Secrets, and how they are found and masked in any text.
//!
//! A value that is computed from a secret is shown as `***` where it is computed. But the same text comes back in responses,
//! spans, errors and the output of commands. Code that reports those masks them here first.
//!
//! Deliberately absent: texts of fewer than [`CHARS_MIN`] characters, which would match everywhere, and texts derived from a
//! secret in other ways than those of [`plain`], such as a hash.

mod automaton;
mod plain;

use std::{
    borrow::Cow,
    collections::HashSet,
    fmt,
    ops::Range,
    sync::{Arc, OnceLock},
};

use automaton::{Automaton, Place};
use model::{Answer, Body, Secret, TextMut, Trace, trace::TraceFull};
use plain::{Escapes, Unit, each, plain};

use crate::vars::Vars;

/// The replacement for a secret.
pub(crate) const MASK: &str = "***";

/// Texts with fewer characters are not searched for.
const CHARS_MIN: usize = 6;

/// Lines of a secret with fewer characters are not searched for separately.
const LINE_CHARS_MIN: usize = 16;

/// The length in characters of the parts into which a longer text is split; each part is searched for.
const PART_CHARS: usize = 512;

/// The maximum number of secrets at a time. The secrets that were added longest ago are discarded first.
const KNOWN_MAX: usize = 4096;

/// The suffix of a truncated text.
const CUT: &str = "…";

/// A set of secrets to mask.
#[derive(Clone, Default)]
pub struct Secrets {
    texts: Vec<Arc<Secret>>,
    /// The matcher for all secrets, built on first use.
    finder: OnceLock<Arc<SecretMatcher>>,
}

/// The automatons that find all secrets in one pass over a text.
struct SecretMatcher {
    /// The secrets as they are.
    exact: Automaton,
    /// The secrets in plain form, one automaton for each of [`Escapes`].
    letters: Automaton,
    backslash: Automaton,
    all: Automaton,
}

impl Secrets {
    /// Returns the values of secret variables. If the environment has another value for the name, that value is a secret too.
    pub fn of(vars: &Vars) -> Self {
        let values = vars.secrets.iter().flat_map(|name| {
            [&vars.variables, &vars.environment].into_iter().filter_map(move |from| from.get(name))
        });
        let mut secrets = Self::default();
        values.for_each(|value| secrets.add(value));
        secrets
    }

    /// Adds a secret.
    pub(crate) fn add(&mut self, text: &str) {
        let text = text.trim();
        let is_known = || self.texts.iter().any(|secret| secret.expose() == text);
        if text.chars().count() >= CHARS_MIN && !is_known() {
            self.texts.push(Arc::new(Secret::new(text)));
            self.finder = OnceLock::new();
        }
    }

    /// Adds all secrets of another set.
    pub fn extend(&mut self, others: &Self) {
        let named: HashSet<_> = others.texts.iter().map(|secret| secret.expose()).collect();
        self.texts.retain(|secret| !named.contains(secret.expose()));
        self.texts.extend(others.texts.iter().cloned());
        self.texts.drain(..self.texts.len().saturating_sub(KNOWN_MAX));
        self.finder = OnceLock::new();
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// Returns the text with every secret replaced by `***`.
    pub fn hide<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match self.hidden(text.as_bytes()) {
            None => Cow::Borrowed(text),
            Some(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
        }
    }

    /// Replaces every secret in these texts by `***`.
    pub fn hide_all<'s>(&self, said: impl IntoIterator<Item = TextMut<'s>>) {
        if self.texts.is_empty() {
            return;
        }
        for said in said {
            match said {
                TextMut::Text(text) => {
                    if let Cow::Owned(hidden) = self.hide(text) {
                        *text = hidden;
                    }
                }
                TextMut::Bytes(bytes) => {
                    if let Some(hidden) = self.hidden(bytes) {
                        *bytes = hidden;
                    }
                }
                TextMut::Body(body) => {
                    if let Some(hidden) = self.hidden(body.as_bytes()) {
                        *body = Body::from_bytes(hidden);
                    }
                }
            }
        }
    }

    /// Returns the response with every secret masked.
    pub fn masked(&self, answer: &Answer) -> Answer {
        let mut answer = answer.clone();
        self.hide_all(answer.texts_mut());
        answer
    }

    /// Returns the trace with every secret masked; `None` if it contains no secret.
    pub fn masked_trace(&self, trace: &Trace) -> Result<Option<Trace>, TraceFull> {
        let is_secret = |bytes: &[u8]| !self.found(bytes).is_empty();
        if !trace.may_say(is_secret) {
            return Ok(None);
        }
        trace.with_edited_texts(|said| self.hide_all(said)).map(Some)
    }

    /// Whether a text contains a secret.
    pub(crate) fn are_in(&self, text: &str) -> bool {
        !self.found(text.as_bytes()).is_empty()
    }

    /// Returns the bytes with every secret replaced by `***`; `None` if they contain no secret.
    fn hidden(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let found = self.found(bytes);
        if found.is_empty() {
            return None;
        }
        let (mut hidden, mut told) = (Vec::with_capacity(bytes.len()), 0);
        for range in found {
            hidden.extend_from_slice(&bytes[told..range.start]);
            hidden.extend_from_slice(MASK.as_bytes());
            told = range.end;
        }
        hidden.extend_from_slice(&bytes[told..]);
        Some(hidden)
    }

    /// Returns the ranges of the secrets, in order. Ranges that overlap or touch are merged.
    fn found(&self, bytes: &[u8]) -> Vec<Range<usize>> {
        if self.texts.is_empty() {
            return Vec::new();
        }
        let finder = self.finder.get_or_init(|| Arc::new(SecretMatcher::new(&self.texts)));
        finder.find(bytes)
    }
}

impl SecretMatcher {
    fn new(secrets: &[Arc<Secret>]) -> Self {
        let texts: Vec<&str> = secrets.iter().flat_map(|secret| parts(secret.expose())).collect();
        let automaton = |escapes| {
            let plain: Vec<_> = texts.iter().map(|text| plain(text, escapes)).collect();
            // A short text would match everywhere.
            let plain = plain.iter().map(Vec::as_slice).filter(|text| text.len() >= CHARS_MIN);
            Automaton::new(plain.collect())
        };
        Self {
            letters: automaton(Escapes::Letters),
            backslash: automaton(Escapes::Backslash),
            all: automaton(Escapes::All),
            exact: Automaton::new(texts.iter().map(|text| text.as_bytes()).collect()),
        }
    }

    fn find(&self, bytes: &[u8]) -> Vec<Range<usize>> {
        let mut walk = Walk::new(&self.exact, bytes);
        for (at, &byte) in bytes.iter().enumerate() {
            walk.read(Unit { byte, at: at..at + 1 });
        }
        let mut all = walk.found;
        let exact = all.len();
        for escapes in Escapes::in_text(bytes) {
            let automaton = match escapes {
                Escapes::Letters => &self.letters,
                Escapes::Backslash => &self.backslash,
                Escapes::All => &self.all,
            };
            let mut walk = Walk::new(automaton, bytes);
            each(bytes, escapes, |unit| walk.read(unit));
            all.extend(walk.found);
        }
        if all.len() == exact {
            return all;
        }
        all.sort_unstable_by_key(|range| range.start);
        let mut joined: Vec<Range<usize>> = Vec::with_capacity(all.len());
        for range in all {
            match joined.last_mut() {
                Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
                _ => joined.push(range),
            }
        }
        joined
    }
}

/// One pass over a text that collects the ranges of secrets.
struct Walk<'a> {
    automaton: &'a Automaton,
    bytes: &'a [u8],
    place: Place,
    /// A ring buffer of the start offsets of the last units, as many as the longest secret has.
    began: Vec<usize>,
    read: usize,
    found: Vec<Range<usize>>,
}

impl<'a> Walk<'a> {
    fn new(automaton: &'a Automaton, bytes: &'a [u8]) -> Self {
        let began = vec![0; automaton.depth_max().next_power_of_two()];
        Self { automaton, bytes, place: Place::default(), began, read: 0, found: Vec::new() }
    }

    fn read(&mut self, Unit { byte, at }: Unit) {
        // The text was truncated inside a secret: its beginning is before the truncation mark.
        if byte == CUT.as_bytes()[0] && self.bytes[at.start..].starts_with(CUT.as_bytes()) {
            let begun = self.automaton.begun(self.place);
            if begun >= CHARS_MIN {
                self.add(self.start_of(begun)..at.start);
            }
        }
        let last = self.began.len() - 1;
        self.began[self.read & last] = at.start;
        self.read += 1;
        self.place = self.automaton.step(self.place, byte);
        if let Some(length) = self.automaton.ended(self.place) {
            self.add(self.start_of(length)..at.end);
        }
    }

    /// Returns the start offset of the last `units` units.
    fn start_of(&self, units: usize) -> usize {
        self.began[(self.read - units) & (self.began.len() - 1)]
    }

    /// Adds a range. Ranges arrive ordered by their end, so those that the new range covers are the last ones.
    fn add(&mut self, mut range: Range<usize>) {
        while let Some(last) = self.found.pop_if(|last| last.end >= range.start) {
            range.start = range.start.min(last.start);
        }
        self.found.push(range);
    }
}

/// Returns the parts of a secret to search for: the complete text, split if it is long, and its lines.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    let lines = text.lines().map(str::trim);
    let lines = lines.filter(move |line| line.chars().count() >= LINE_CHARS_MIN && *line != text);
    [text].into_iter().chain(lines).flat_map(chunks)
}

/// Splits a text into parts of [`PART_CHARS`] characters. The last part is not shorter than [`CHARS_MIN`].
fn chunks(text: &str) -> Vec<&str> {
    let starts: Vec<usize> =
        text.char_indices().step_by(PART_CHARS).map(|(start, _)| start).collect();
    let is_short = |from: &usize| text[*from..].chars().count() < CHARS_MIN;
    let count = starts.len() - usize::from(starts.len() > 1 && starts.last().is_some_and(is_short));
    let ends = starts[1..count].iter().copied().chain([text.len()]);
    starts[..count].iter().zip(ends).map(|(start, end)| &text[*start..end]).collect()
}

/// Prints only the count: secrets must not be printed.
impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} secrets", self.texts.len())
    }
}

#[cfg(test)]
mod tests {
    use proptest::test_runner::Config as ProptestConfig;

    use super::*;

    fn secrets(texts: &[&str]) -> Secrets {
        let mut secrets = Secrets::default();
        texts.iter().for_each(|text| secrets.add(text));
        secrets
    }

    #[test]
    fn a_secret_is_found_in_every_form() {
        let secret = "pa\"s s\\w/ö\nrd1";
        let hidden = secrets(&[secret]);
        let json = serde_json::Value::from(secret).to_string();
        let inner = json[1..json.len() - 1].to_owned();
        let twice = serde_json::Value::from(json).to_string();
        for said in [
            secret.to_owned(),
            inner,
            r"pa\u0022s s\u005Cw\/\u00f6\u000Ard1".to_owned(),
            format!("{secret:?}").trim_matches('"').to_owned(),
            "pa%22s+s%5cw%2F%c3%B6%0Ard1".to_owned(),
            "pa%2522s%2520s%255Cw%252f%25C3%25B6%250ard1".to_owned(),
            twice[3..twice.len() - 3].to_owned(),
        ] {
            assert_eq!(hidden.hide(&format!("a {said} b")), "a *** b", "{said}");
        }
        assert_eq!(hidden.hide("pass sw/örd1"), "pass sw/örd1", "something else");
    }

    #[test]
    fn bytes_around_a_secret_need_not_be_text() {
        let mut bytes = b"caf\xe9 sup3r-s3cr3t\xff".to_vec();
        secrets(&["sup3r-s3cr3t"]).hide_all([TextMut::Bytes(&mut bytes)]);
        assert_eq!(bytes, b"caf\xe9 ***\xff");
    }

    #[test]
    fn secrets_that_overlap_are_cut_or_long_are_hidden_whole() {
        let long: String = (0..2_000).map(|at| char::from(b'a' + (at * at % 26) as u8)).collect();
        let key = "-----BEGIN KEY-----\nMIIBVQIBADANBgkqhkiG\n-----END KEY-----\n";
        let secrets = secrets(&["abcdefgh", "defghijk", "abcabcabc", &long, key, "short"]);
        for (said, told) in [
            ("1abcdefghijk2", "1***2"),
            ("abcabcabcabcabc", "***"),
            ("no secret: short", "no secret: short"),
            ("the value abcdefg… is cut", "the value ***… is cut"),
            ("| MIIBVQIBADANBgkqhkiG", "| ***"),
        ] {
            assert_eq!(secrets.hide(said), told);
        }
        assert!(!secrets.hide(&format!("x{long}x")).contains(&long[600..620]));
        assert_eq!(format!("{secrets:?}"), "5 secrets");
    }

    fn json(text: &str) -> String {
        let quoted = serde_json::Value::from(text).to_string();
        quoted[1..quoted.len() - 1].to_owned()
    }

    fn url(text: &str) -> String {
        let safe = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~".contains(byte);
        let one = |byte: u8| match safe(&byte) {
            true => char::from(byte).to_string(),
            false => format!("%{byte:02X}"),
        };
        text.bytes().map(one).collect()
    }

    fn debug(text: &str) -> String {
        let quoted = format!("{text:?}");
        quoted[1..quoted.len() - 1].to_owned()
    }

    fn form(text: &str) -> String {
        url(text).replace("%20", "+")
    }

    proptest::proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn no_way_to_write_a_secret_shows_it(
            secret in r#"[a-z0-9]{6}[a-z0-9 \\"/%+\n\tüé✓😀=&]{0,20}[a-z0-9]"#,
            ways in proptest::collection::vec(0..4_usize, 0..3),
            [before, after] in proptest::array::uniform2(r#"[ :\\"%,x]{0,4}"#),
        ) {
            // Encodings nested in any order are not supported: a URL may contain JSON, but not the reverse and back.
            let mut ways = ways;
            ways.sort_unstable();
            let way = [json, debug, url, form];
            // Two hexadecimal digits after a `%` are a character of a URL.
            let before = if ways.iter().any(|it| *it > 1) { "" } else { &before };
            let written = ways.iter().fold(secret.clone(), |text, it| way[*it](&text));
            let told = secrets(&[&secret]).hide(&format!("{before}{written}{after}")).into_owned();
            proptest::prop_assert!(!told.contains(&secret[..6]), "{} as {}: {}", secret, written, told);
        }
    }

    #[test]
    fn a_secret_that_looks_like_the_code_of_a_character_is_found_behind_a_backslash() {
        // A backslash followed by the secret, encoded as JSON.
        let written = serde_json::to_string("\\u00000\"0.").expect("a text is JSON");
        assert_eq!(secrets(&["u00000\"0"]).hide(&written), r#""***.""#);
    }

    #[test]
    fn what_it_takes_grows_with_the_text_and_not_with_what_is_found() {
        let all_a = "a".repeat(500);
        let nested: Vec<String> = (6..500).map(|length| "a".repeat(length)).collect();
        let mut secrets = secrets(&[&all_a]);
        nested.iter().for_each(|text| secrets.add(text));
        // With one step a match this would take two billion steps.
        let text = format!("{}…{}", "a".repeat(4_000_000), "…".repeat(10_000));
        assert_eq!(secrets.hide(&text), format!("***{}", "…".repeat(10_001)));
    }
}
