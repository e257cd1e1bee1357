//! A format of a report, as data: its name, what its readers need, and the functions that write it.
//!
//! Each format is a value in the file that writes it. Callers read its fields and never name one of the formats. Deliberately
//! absent: the list of all formats, which is [`FORMATS`](crate::FORMATS).

use std::fmt;

use model::Outcome;
use source::Colour;

use crate::{FORMATS, html::Waterfall};

/// The media type of plain text.
pub(crate) const TEXT: &str = "text/plain; charset=utf-8";

/// A format of a report.
pub struct Format {
    /// The name that people type; no other format has it.
    pub name: &'static str,
    /// The media type of a report of one outcome.
    pub media_type: &'static str,
    /// The media type of a report of none or several outcomes, if it is another one.
    pub media_type_of_several: Option<&'static str>,
    /// The media types by which a client selects this format; no other format has one of them.
    pub accepted_as: &'static [&'static str],
    /// Whether a person reads it as it is written, and wants to see each outcome at once.
    pub is_for_people: bool,
    /// Whether it shows the waterfalls of the traces.
    pub shows_traces: bool,
    /// Whether a browser runs scripts in it, so that a server has to isolate it.
    pub has_scripts: bool,
    /// Writes a report of one outcome, if that is not its part and the rest.
    pub(crate) alone: Option<fn(&Outcome, Colour) -> String>,
    /// Writes one of several outcomes before the others are available; none in a format without incremental output.
    pub(crate) part: Option<fn(&Outcome, Colour) -> String>,
    /// Writes the remainder after every part.
    pub(crate) rest: fn(&ReportInput<'_>) -> String,
}

/// The input of a report, for any format.
#[derive(Clone, Copy, Debug)]
pub struct ReportInput<'a> {
    pub outcomes: &'a [Outcome],
    /// The waterfall of each outcome at the same index, or none. Only a format that [shows traces](Format::shows_traces) uses them.
    pub waterfalls: &'a [Option<Waterfall>],
    /// Only a format for a terminal uses colours.
    pub colour: Colour,
}

impl Format {
    /// Returns a format for programs that is written at the end, and that no media type selects. The file of a format sets what
    /// is different.
    pub(crate) const fn new(
        name: &'static str,
        media_type: &'static str,
        rest: fn(&ReportInput<'_>) -> String,
    ) -> Self {
        Self {
            name,
            media_type,
            media_type_of_several: None,
            accepted_as: &[],
            is_for_people: false,
            shows_traces: false,
            has_scripts: false,
            alone: None,
            part: None,
            rest,
        }
    }

    /// Parses the name of a format.
    pub fn parse(name: &str) -> Option<&'static Self> {
        FORMATS.iter().copied().find(|format| format.name == name)
    }

    /// Returns the names of all formats.
    pub fn names() -> impl Iterator<Item = &'static str> {
        FORMATS.iter().map(|format| format.name)
    }

    /// Returns the format that a client selects by this media type.
    pub fn of_media_type(media_type: &str) -> Option<&'static Self> {
        let is_named = |known: &&str| known.eq_ignore_ascii_case(media_type);
        FORMATS.iter().copied().find(|format| format.accepted_as.iter().any(is_named))
    }

    /// Returns the media type of a report of this many outcomes.
    pub fn media_type_of(&self, outcomes: usize) -> &'static str {
        match outcomes {
            1 => self.media_type,
            _ => self.media_type_of_several.unwrap_or(self.media_type),
        }
    }
}

/// Names are unique, so two formats with one name are the same.
impl PartialEq for Format {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Format {}

impl fmt::Debug for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::Format;
    use crate::FORMATS;

    #[test]
    fn every_name_is_read_back() {
        for format in FORMATS {
            assert_eq!(Format::parse(format.name), Some(*format));
        }
        let names: std::collections::BTreeSet<_> = Format::names().collect();
        assert_eq!(names.len(), FORMATS.len(), "each has a name of its own");
        assert_eq!(Format::parse("Pretty"), None);
    }

    #[test]
    fn a_media_type_selects_one_format_which_has_it() {
        for format in FORMATS {
            for media_type in format.accepted_as {
                assert_eq!(Format::of_media_type(media_type), Some(*format), "{media_type}");
            }
        }
        let named = |media_type| Format::of_media_type(media_type).map(|format| format.name);
        let cases = [
            ("application/json", Some("json")),
            ("application/x-ndjson", Some("ndjson")),
            ("application/xml", Some("junit")),
            ("text/xml", Some("junit")),
            ("text/markdown", Some("markdown")),
            ("Text/HTML", Some("html")),
            ("text/plain", Some("plain")),
            ("*/*", None),
        ];
        for (media_type, expected) in cases {
            assert_eq!(named(media_type), expected, "{media_type}");
        }
    }

    #[test]
    fn several_outcomes_may_have_another_media_type() {
        let plain = "text/plain; charset=utf-8";
        let cases = [
            ("pretty", plain, plain),
            ("plain", plain, plain),
            ("json", "application/json", "application/x-ndjson"),
            ("ndjson", "application/x-ndjson", "application/x-ndjson"),
            ("junit", "application/xml", "application/xml"),
            ("tap", plain, plain),
            ("markdown", "text/markdown; charset=utf-8", "text/markdown; charset=utf-8"),
            ("github", plain, plain),
            ("html", "text/html; charset=utf-8", "text/html; charset=utf-8"),
        ];
        for (name, one, several) in cases {
            let format = Format::parse(name).expect("it is a format");
            let types = [1, 0, 2].map(|outcomes| format.media_type_of(outcomes));
            assert_eq!(types, [one, several, several], "{name}");
        }
    }
}
