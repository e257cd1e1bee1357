//! Parses the arguments of a curl command into a request.
//!
//! Options that only affect the output of curl are ignored. An option that a test cannot express is an error that names
//! the option and an alternative; no part of the request is dropped silently. Deliberately absent: a shell. The shell has
//! removed the quotes before this program starts.

mod options;

use model::{ErrorCode, Fault, Faulty};
use thiserror::Error;

use options::{PASSED_OVER, PASSED_OVER_WITH_VALUE, REFUSED, has_value};

/// A request of a curl command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Curl {
    pub(crate) method: String,
    pub(crate) url: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Option<String>,
    /// The user and the password.
    pub(crate) basic: Option<(String, String)>,
    pub(crate) bearer: Option<String>,
    pub(crate) insecure: bool,
    /// The upper bound for redirects to follow.
    pub(crate) redirects: u32,
    /// The timeout in seconds, in the syntax of curl.
    pub(crate) seconds_max: Option<String>,
    pub(crate) ca_file: Option<String>,
    pub(crate) cert_file: Option<String>,
    pub(crate) key_file: Option<String>,
}

/// The reason why a command is not a supported request.
#[derive(Debug, PartialEq, Eq, Error)]
pub(crate) enum CurlError {
    #[error("expected a command such as `curl http://127.0.0.1:11634/products`, and not `{0}`")]
    NotCurl(String),
    #[error("no URL in the curl command")]
    NoUrl,
    #[error("more than one URL: `{0}` and `{1}`; a test fires one request")]
    Urls(String, String),
    #[error("`{0}` wants a value")]
    NoValue(String),
    #[error("`{option}` cannot be written in a test: {instead}")]
    Refused { option: String, instead: &'static str },
    #[error(
        "`{0}` is not an option that `new` knows: leave it out, or have a trigger of type `exec` run curl itself"
    )]
    Unknown(String),
    #[error("`{option}` has `{value}`: expected {expected}")]
    Value { option: String, value: String, expected: &'static str },
    #[error("cannot read `{path}`: {why}")]
    File { path: String, why: String },
    #[error("`{0}` would be taken for {1}: write the test by hand, with {2}")]
    Taken(String, &'static str, &'static str),
}

impl Faulty for CurlError {
    fn fault(&self) -> Fault {
        Fault::Invalid
    }

    fn code(&self) -> ErrorCode {
        match self {
            Self::File { .. } => ErrorCode::FileUnreadable,
            _ => ErrorCode::CurlUnsupported,
        }
    }
}

impl Curl {
    /// Checks that its strings have the same meaning in a document as for curl.
    fn means_itself(&self) -> Result<(), CurlError> {
        let mut texts = vec![&self.url];
        texts.extend(self.headers.iter().flat_map(|(name, value)| [name, value]));
        texts.extend(self.basic.iter().flat_map(|(user, password)| [user, password]));
        texts.extend(self.bearer.iter().chain(&self.body));
        if let Some(text) = texts.into_iter().find(|text| text.contains("${")) {
            let instead = "a variable that holds it";
            return Err(CurlError::Taken(text.clone(), "one with a variable in it", instead));
        }
        let is_path = |body: &&String| {
            (body.starts_with("./") || body.starts_with("../"))
                && !body.contains(char::is_whitespace)
        };
        match self.body.as_ref().filter(is_path) {
            Some(body) => Err(CurlError::Taken(body.clone(), "a file", "a variable that holds it")),
            None => Ok(()),
        }
    }
}

/// A function that reads a file of the command.
pub(crate) type ReadFn<'a> = &'a dyn Fn(&str) -> Result<String, String>;

/// The number of redirects that `-L` follows; curl itself would follow 50.
const REDIRECTS: u32 = 10;
/// The upper bound for redirects in a test.
const REDIRECTS_MAX: u32 = 20;

/// Parses a command, including the name of the program.
pub(crate) fn parse(words: &[String], read: ReadFn<'_>) -> Result<Curl, CurlError> {
    let Some((program, words)) = words.split_first() else {
        return Err(CurlError::NotCurl(String::new()));
    };
    let file = program.rsplit('/').next().unwrap_or(program);
    if !matches!(file, "curl" | "curl.exe") {
        return Err(CurlError::NotCurl(program.clone()));
    }
    let mut reader = Reader::new(read);
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if word.starts_with("--") && word.len() > 2 {
            reader.option(word, None, &mut words)?;
        } else if word.starts_with('-') && word.len() > 1 {
            reader.cluster(word, &mut words)?;
        } else {
            reader.url(word)?;
        }
    }
    reader.finish()
}

/// The state of the parser.
struct Reader<'a> {
    read: ReadFn<'a>,
    curl: Curl,
    method: Option<String>,
    url: Option<String>,
    /// The joined values of `-d` and similar options.
    data: Option<String>,
    is_json: bool,
    is_query: bool,
    is_head: bool,
    follows: bool,
    redirects_max: Option<u32>,
}

impl<'a> Reader<'a> {
    fn new(read: ReadFn<'a>) -> Self {
        Self {
            read,
            curl: Curl::default(),
            method: None,
            url: None,
            data: None,
            is_json: false,
            is_query: false,
            is_head: false,
            follows: false,
            redirects_max: None,
        }
    }

    /// Parses short options in one word: `-sSL`, `-XPOST`.
    fn cluster<'w>(
        &mut self,
        word: &str,
        words: &mut impl Iterator<Item = &'w String>,
    ) -> Result<(), CurlError> {
        let mut letters = word.chars().skip(1);
        while let Some(letter) = letters.next() {
            let option = format!("-{letter}");
            if has_value(&option) {
                let rest: String = letters.collect();
                return self.option(&option, Some(rest).filter(|rest| !rest.is_empty()), words);
            }
            self.option(&option, None, words)?;
        }
        Ok(())
    }

    fn option<'w>(
        &mut self,
        option: &str,
        attached: Option<String>,
        words: &mut impl Iterator<Item = &'w String>,
    ) -> Result<(), CurlError> {
        if let Some((_, instead)) = REFUSED.iter().find(|(names, _)| names.contains(&option)) {
            return Err(CurlError::Refused { option: option.to_owned(), instead });
        }
        if PASSED_OVER.contains(&option) {
            return Ok(());
        }
        match option {
            "-k" | "--insecure" => self.curl.insecure = true,
            "-L" | "--location" | "--location-trusted" => self.follows = true,
            "-G" | "--get" => self.is_query = true,
            "-I" | "--head" => self.is_head = true,
            option if has_value(option) => {
                let value = attached.or_else(|| words.next().cloned());
                let value = value.ok_or_else(|| CurlError::NoValue(option.to_owned()))?;
                if !PASSED_OVER_WITH_VALUE.contains(&option) {
                    return self.set_option(option, value);
                }
            }
            option => return Err(CurlError::Unknown(option.to_owned())),
        }
        Ok(())
    }

    /// Handles an option with its value.
    fn set_option(&mut self, option: &str, value: String) -> Result<(), CurlError> {
        let wrong = |value: String, expected| {
            Err(CurlError::Value { option: option.to_owned(), value, expected })
        };
        match option {
            "-X" | "--request" => self.method = Some(value),
            "--url" => self.url(&value)?,
            "-H" | "--header" => return self.header(option, value),
            "-A" | "--user-agent" => self.set("User-Agent", value),
            "-e" | "--referer" => self.set("Referer", value),
            "-b" | "--cookie" if value.contains('=') => self.set("Cookie", value),
            "-b" | "--cookie" => {
                return wrong(value, "`NAME=VALUE`, since a test keeps no cookies");
            }
            "-u" | "--user" => match value.split_once(':') {
                Some((user, password)) => {
                    self.curl.basic = Some((user.to_owned(), password.to_owned()));
                }
                None => {
                    return wrong(
                        value,
                        "`USER:PASSWORD`, since a test cannot prompt for a password",
                    );
                }
            },
            "--oauth2-bearer" => self.curl.bearer = Some(value),
            "-m" | "--max-time" => match value.parse::<f64>() {
                Ok(seconds) if seconds > 0.0 && seconds.is_finite() => {
                    self.curl.seconds_max = Some(value);
                }
                _ => return wrong(value, "a number of seconds"),
            },
            "--max-redirs" => match value.parse() {
                Ok(redirects) => self.redirects_max = Some(redirects),
                Err(_) => return wrong(value, "how many redirects are followed"),
            },
            "--cacert" => self.curl.ca_file = Some(value),
            "-E" | "--cert" => self.curl.cert_file = Some(value),
            "--key" => self.curl.key_file = Some(value),
            "--json" => {
                self.is_json = true;
                let text = self.content(value, Newlines::Kept)?;
                self.data.get_or_insert_default().push_str(&text);
            }
            "--data-raw" => self.add(value),
            "--data-binary" => {
                let text = self.content(value, Newlines::Kept)?;
                self.add(text);
            }
            "--data-urlencode" => {
                let text = self.encoded(&value)?;
                self.add(text);
            }
            // `-d`, `--data`, `--data-ascii`.
            _ => {
                let text = self.content(value, Newlines::Dropped)?;
                self.add(text);
            }
        }
        Ok(())
    }

    fn url(&mut self, url: &str) -> Result<(), CurlError> {
        match &self.url {
            Some(first) => Err(CurlError::Urls(first.clone(), url.to_owned())),
            None => {
                self.url = Some(url.to_owned());
                Ok(())
            }
        }
    }

    fn header(&mut self, option: &str, header: String) -> Result<(), CurlError> {
        if let Some((name, value)) = header.split_once(':') {
            // `Name:` removes a default header of curl, and a test adds none of these.
            if !value.trim().is_empty() {
                self.curl.headers.push((name.trim().to_owned(), value.trim().to_owned()));
            }
            return Ok(());
        }
        if let Some(name) = header.strip_suffix(';') {
            self.curl.headers.push((name.trim().to_owned(), String::new()));
            return Ok(());
        }
        let (option, expected) = (option.to_owned(), "`NAME: VALUE`");
        Err(CurlError::Value { option, value: header, expected })
    }

    /// Sets a header that has an option of its own.
    fn set(&mut self, name: &str, value: String) {
        self.curl.headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self.curl.headers.push((name.to_owned(), value));
    }

    fn add(&mut self, text: String) {
        match &mut self.data {
            Some(data) => {
                data.push('&');
                data.push_str(&text);
            }
            None => self.data = Some(text),
        }
    }

    /// Returns the value, or the content of the file after an `@`.
    fn content(&self, value: String, newlines: Newlines) -> Result<String, CurlError> {
        let Some(path) = value.strip_prefix('@') else { return Ok(value) };
        let text = self.file(path)?;
        Ok(match newlines {
            Newlines::Kept => text,
            Newlines::Dropped => text.replace(['\r', '\n'], ""),
        })
    }

    fn file(&self, path: &str) -> Result<String, CurlError> {
        let failed = |why: String| CurlError::File { path: path.to_owned(), why };
        if path == "-" {
            return Err(failed("standard input is not part of a command".to_owned()));
        }
        (self.read)(path).map_err(failed)
    }

    /// Encodes `content`, `=content`, `name=content`, `@file`, `name@file`.
    fn encoded(&self, value: &str) -> Result<String, CurlError> {
        let Some(at) = value.find(['=', '@']) else { return Ok(percent(value)) };
        let (name, rest) = value.split_at(at);
        let content = match rest.strip_prefix('@') {
            Some(path) => self.file(path)?,
            None => rest[1..].to_owned(),
        };
        let content = percent(&content);
        Ok(if name.is_empty() { content } else { format!("{name}={content}") })
    }

    fn finish(mut self) -> Result<Curl, CurlError> {
        let url = self.url.take().ok_or(CurlError::NoUrl)?;
        let mut url = if url.contains("://") { url } else { format!("http://{url}") };
        if self.is_query
            && let Some(data) = self.data.take()
        {
            url.push(if url.contains('?') { '&' } else { '?' });
            url.push_str(&data);
        }
        let by_data = if self.data.is_some() { "POST" } else { "GET" };
        let by_kind = if self.is_head { "HEAD" } else { by_data };
        if self.data.is_some() {
            let form = "application/x-www-form-urlencoded";
            self.default("Content-Type", if self.is_json { "application/json" } else { form });
        }
        if self.is_json {
            self.default("Accept", "application/json");
        }
        let redirects = self.redirects_max.unwrap_or(REDIRECTS).min(REDIRECTS_MAX);
        let curl = Curl {
            method: self.method.unwrap_or_else(|| by_kind.to_owned()).to_uppercase(),
            url,
            body: self.data,
            redirects: if self.follows { redirects } else { 0 },
            ..self.curl
        };
        curl.means_itself()?;
        Ok(curl)
    }

    /// Adds a default header of curl unless the command sets it.
    fn default(&mut self, name: &str, value: &str) {
        if !self.curl.headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(name)) {
            self.curl.headers.push((name.to_owned(), value.to_owned()));
        }
    }
}

/// Whether the newlines of a file are kept.
#[derive(Clone, Copy)]
enum Newlines {
    Kept,
    Dropped,
}

/// Percent-encodes a text for a URL: letters, digits and `-._~` stay as they are.
fn percent(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                encoded.push(char::from(byte));
            }
            byte => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}
