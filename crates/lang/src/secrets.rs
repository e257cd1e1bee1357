//! Texts that nobody may see, found again wherever they have got to.
//!
//! What is computed from a secret is shown as `***` where it is computed; but the same text comes back in answers, spans,
//! errors and the output of commands. Whoever tells of those asks here first.
//!
//! Deliberately absent: texts of fewer than [`CHARS_MIN`] characters, which would be found everywhere, and what somebody
//! made of a secret in other ways than those of [`spelled`], such as a hash.

use std::{borrow::Cow, collections::HashSet, fmt, ops::Range, sync::Arc};

use model::{Answer, Said, Secret, Trace, trace::TraceFull};
use regex::bytes::{Regex, RegexBuilder};

use crate::eval::resolve::Vars;

/// What stands for a secret.
pub(crate) const MASK: &str = "***";

/// Texts with fewer characters are not looked for.
const CHARS_MIN: usize = 6;

/// Lines of a secret with fewer characters are not looked for by themselves.
const LINE_CHARS_MIN: usize = 16;

/// Characters that are looked for together; of a longer text, each such part is.
const PART_CHARS: usize = 512;

/// Secrets that are known at a time. Those that were named longest ago are forgotten first.
const KNOWN_MAX: usize = 4096;

/// What is put behind a text that was cut.
const CUT: &str = "…";

/// Texts that nobody may see.
#[derive(Clone, Default)]
pub struct Secrets(Vec<Arc<Sought>>);

/// One text, and how it is found.
struct Sought {
    secret: Secret,
    patterns: Vec<Regex>,
}

impl Secrets {
    /// The values of secret variables. Where the environment has another value for a name, that is one too.
    pub fn of(vars: &Vars) -> Self {
        let values = vars.secrets.iter().flat_map(|name| {
            [&vars.variables, &vars.environment].into_iter().filter_map(move |from| from.get(name))
        });
        let mut secrets = Self::default();
        values.for_each(|value| secrets.add(value));
        secrets
    }

    /// Keeps a text secret, from now on.
    pub(crate) fn add(&mut self, text: &str) {
        let text = text.trim();
        let is_known = || self.0.iter().any(|sought| sought.secret.expose() == text);
        if text.chars().count() >= CHARS_MIN && !is_known() {
            self.0.push(Arc::new(Sought::new(text)));
        }
    }

    /// Keeps these secret too.
    pub fn extend(&mut self, others: &Self) {
        let named: HashSet<_> = others.0.iter().map(|sought| sought.secret.expose()).collect();
        self.0.retain(|sought| !named.contains(sought.secret.expose()));
        self.0.extend(others.0.iter().cloned());
        self.0.drain(..self.0.len().saturating_sub(KNOWN_MAX));
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The text with `***` for every secret in it.
    pub fn hide<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match self.hidden(text.as_bytes()) {
            None => Cow::Borrowed(text),
            Some(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
        }
    }

    /// Puts `***` for every secret in what is said.
    pub fn hide_all<'s>(&self, said: impl IntoIterator<Item = Said<'s>>) {
        if self.0.is_empty() {
            return;
        }
        for said in said {
            match said {
                Said::Text(text) => {
                    if let Cow::Owned(hidden) = self.hide(text) {
                        *text = hidden;
                    }
                }
                Said::Bytes(bytes) => {
                    if let Some(hidden) = self.hidden(bytes) {
                        *bytes = hidden;
                    }
                }
            }
        }
    }

    /// The answer as it may be told.
    pub fn masked(&self, answer: &Answer) -> Answer {
        let mut answer = answer.clone();
        self.hide_all(answer.said_mut());
        answer
    }

    /// The trace as it may be kept; none where no secret is in it.
    pub fn masked_trace(&self, trace: &Trace) -> Result<Option<Trace>, TraceFull> {
        let is_secret = |bytes: &[u8]| self.0.iter().any(|sought| sought.is_in(bytes));
        if !trace.may_say(is_secret) {
            return Ok(None);
        }
        trace.retold(|said| self.hide_all(said)).map(Some)
    }

    /// Whether a secret stands in a text.
    pub(crate) fn are_in(&self, text: &str) -> bool {
        !self.found(text.as_bytes()).is_empty()
    }

    /// The bytes with `***` for every secret in them; none where there is none.
    fn hidden(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let mut found = self.found(bytes);
        if found.is_empty() {
            return None;
        }
        found.sort_unstable_by_key(|range| range.start);
        let (mut hidden, mut told) = (Vec::with_capacity(bytes.len()), 0);
        for range in found {
            // One secret may begin in another: then they are hidden together.
            if range.start >= told {
                hidden.extend_from_slice(&bytes[told..range.start]);
                hidden.extend_from_slice(MASK.as_bytes());
            }
            told = told.max(range.end);
        }
        hidden.extend_from_slice(&bytes[told..]);
        Some(hidden)
    }

    /// Where secrets stand, in no order; one may begin in another.
    fn found(&self, bytes: &[u8]) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        for pattern in self.0.iter().flat_map(|sought| &sought.patterns) {
            let mut from = 0;
            while let Some(one) = pattern.find_at(bytes, from) {
                found.push(one.range());
                from = one.start() + 1;
            }
        }
        let cuts = bytes.windows(CUT.len()).enumerate().filter(|(_, it)| *it == CUT.as_bytes());
        for (end, _) in cuts {
            found.extend(self.0.iter().filter_map(|sought| sought.cut(&bytes[..end])));
        }
        found
    }
}

impl Sought {
    fn new(text: &str) -> Self {
        let lines = text.lines().map(str::trim);
        let lines = lines.filter(|line| line.chars().count() >= LINE_CHARS_MIN && *line != text);
        let patterns = [text].into_iter().chain(lines).flat_map(parts).map(|part| pattern(&part));
        Self { patterns: patterns.collect(), secret: Secret::new(text) }
    }

    /// Whether all of it stands there, or the beginning of it where a text was cut.
    fn is_in(&self, bytes: &[u8]) -> bool {
        let mut cuts = bytes.windows(CUT.len()).enumerate().filter(|(_, it)| *it == CUT.as_bytes());
        self.patterns.iter().any(|pattern| pattern.is_match(bytes))
            || cuts.any(|(end, _)| self.cut(&bytes[..end]).is_some())
    }

    /// Where the beginning of it stands at the end of a text that was cut there.
    fn cut(&self, bytes: &[u8]) -> Option<Range<usize>> {
        let text = self.secret.expose();
        let ends = text.char_indices().map(|(end, _)| end).skip(CHARS_MIN);
        let end = ends.filter(|end| bytes.ends_with(&text.as_bytes()[..*end])).last()?;
        Some(bytes.len() - end..bytes.len())
    }
}

/// A text in parts that are not too long for a pattern. The last is not shorter than what is looked for.
fn parts(text: &str) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    let mut parts: Vec<String> =
        chars.chunks(PART_CHARS).map(|part| part.iter().collect()).collect();
    if let Some(last) =
        parts.pop_if(|last| chars.len() > PART_CHARS && last.chars().count() < CHARS_MIN)
        && let Some(before) = parts.last_mut()
    {
        before.push_str(&last);
    }
    parts
}

fn pattern(part: &str) -> Regex {
    let pattern: String = part.chars().map(spelled).collect();
    // Bytes, since what stands around a secret need not be UTF-8.
    let built = RegexBuilder::new(&pattern).unicode(false).build();
    built.expect("characters that are escaped are a pattern, and they are few")
}

/// The forms in which a character is found: as it is, as JSON and Rust escape it, and as a URL does; each of them more
/// than once too, as in JSON within JSON.
fn spelled(c: char) -> String {
    let mut bytes = [0; 4];
    let plain = regex::escape(c.encode_utf8(&mut bytes));
    if c.is_ascii_alphanumeric() {
        return plain;
    }
    let short = match c {
        '"' | '\\' | '/' => format!(r"\\+{plain}"),
        '\n' => r"\\+n".to_owned(),
        '\r' => r"\\+r".to_owned(),
        '\t' => r"\\+t".to_owned(),
        // As a form sends it.
        ' ' => r"\+".to_owned(),
        _ => plain.clone(),
    };
    let units =
        c.encode_utf16(&mut [0; 2]).iter().map(|it| format!(r"\\+u{it:04x}")).collect::<String>();
    let braced = format!(r"\\+u\{{{:x}\}}", u32::from(c));
    let percent: String =
        bytes[..c.len_utf8()].iter().map(|byte| format!("%(?:25)*{byte:02x}")).collect();
    format!("(?:{plain}|{short}|(?i:{units}|{braced}|{percent}))")
}

/// Only how many: nobody may see them.
impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} secrets", self.0.len())
    }
}

#[cfg(test)]
mod tests {
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
        secrets(&["sup3r-s3cr3t"]).hide_all([Said::Bytes(&mut bytes)]);
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
}
