//! The argument of `--ready`.

use std::str::FromStr;

use regex::Regex;
use url::Url;

/// The upper bound for a compiled pattern, in bytes.
const PATTERN_BYTES_MAX: usize = 1 << 20;

/// The condition for a command to be ready.
#[derive(Clone, Debug)]
pub(crate) enum Ready {
    /// This URL responds with a status below 400.
    Url(Url),
    /// This address accepts a connection.
    Tcp { host: String, port: u16 },
    /// A line of its output matches.
    Log(Regex),
}

impl FromStr for Ready {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(pattern) = text.strip_prefix("log:") {
            let mut builder = regex::RegexBuilder::new(pattern);
            let pattern = builder.size_limit(PATTERN_BYTES_MAX).build();
            return pattern.map(Self::Log).map_err(|error| error.to_string());
        }
        if let Some(address) = text.strip_prefix("tcp:") {
            let (host, port) = address.rsplit_once(':').unwrap_or(("", ""));
            let host = host.trim_start_matches('[').trim_end_matches(']');
            let refused = || "expected `tcp:HOST:PORT`, such as `tcp:127.0.0.1:8080`".to_owned();
            let port = port.parse().map_err(|_| refused())?;
            if host.is_empty() || port == 0 {
                return Err(refused());
            }
            return Ok(Self::Tcp { host: host.to_owned(), port });
        }
        match Url::parse(text) {
            Ok(url) if !url.username().is_empty() || url.password().is_some() => {
                Err("expected a URL without a user name and a password".to_owned())
            }
            Ok(url) if url.scheme() == "http" && url.has_host() => Ok(Self::Url(url)),
            Ok(url) if url.scheme() == "https" => {
                Err("only `http://` can be probed; `tcp:HOST:PORT` works for a port with TLS too"
                    .to_owned())
            }
            _ => Err("expected an `http://` URL, `tcp:HOST:PORT` or `log:REGEX`".to_owned()),
        }
    }
}
