//! The formats of a report, by name.

/// A format of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// For a person at a terminal: see [`pretty`](crate::pretty()).
    Pretty,
    /// The same in words and ASCII characters: see [`plain`](crate::plain()).
    Plain,
    /// All fields, one outcome per line: see [`json`](crate::json()).
    Json,
    /// One item per line: see [`ndjson`](crate::ndjson()).
    Ndjson,
    /// JUnit XML: see [`junit`](crate::junit()).
    Junit,
    /// The Test Anything Protocol, version 14: see [`tap`](crate::tap()).
    Tap,
    /// For a summary or a comment on GitHub: see [`markdown`](crate::markdown()).
    Markdown,
    /// Annotations of a GitHub workflow: see [`github`](crate::github()).
    Github,
    /// A page with the waterfall of each trace: see [`html`](crate::html()).
    Html,
}

impl Format {
    /// Every format.
    pub const ALL: [Self; 9] = [
        Self::Pretty,
        Self::Plain,
        Self::Json,
        Self::Ndjson,
        Self::Junit,
        Self::Tap,
        Self::Markdown,
        Self::Github,
        Self::Html,
    ];

    /// Parses the name of a format.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.as_str() == name)
    }

    /// Returns the name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pretty => "pretty",
            Self::Plain => "plain",
            Self::Json => "json",
            Self::Ndjson => "ndjson",
            Self::Junit => "junit",
            Self::Tap => "tap",
            Self::Markdown => "markdown",
            Self::Github => "github",
            Self::Html => "html",
        }
    }

    /// Returns the purpose in a few words.
    pub fn purpose(self) -> &'static str {
        match self {
            Self::Pretty => "for a person at a terminal",
            Self::Plain => "the same in plain words, for logs and screen readers",
            Self::Json => "everything, one object for each test",
            Self::Ndjson => "one object for each assertion, claim, output and finding",
            Self::Junit => "JUnit XML, for CI systems",
            Self::Tap => "Test Anything Protocol 14",
            Self::Markdown => "for `$GITHUB_STEP_SUMMARY` and pull requests",
            Self::Github => "annotations of a GitHub workflow",
            Self::Html => "one page with the waterfall of each trace",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Format;

    #[test]
    fn every_name_is_read_back() {
        for format in Format::ALL {
            assert_eq!(Format::parse(format.as_str()), Some(format));
        }
        assert_eq!(Format::parse("Pretty"), None);
    }
}
