//! Detects when the command under test is ready for its first request.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU16, Ordering},
    },
    time::Duration,
};

use http::Request;
use http_body_util::Full;
use net::{
    HttpClient, HttpVersion,
    tls::{self, RootCertStore},
};
use regex::Regex;
use tokio::{
    net::TcpStream,
    time::{sleep, timeout},
};

use url::Url;

use super::output::ProcessOutput;
use crate::args::Ready;

/// The retry interval.
const TRY: Duration = Duration::from_millis(10);
/// The timeout of one attempt.
const TRY_MAX: Duration = Duration::from_secs(2);

impl Ready {
    /// Returns the condition that the port of a test's URL accepts a connection.
    pub(crate) fn target(url: &str) -> Option<Self> {
        let url = Url::parse(url).ok()?;
        let host = url.host_str()?.trim_start_matches('[').trim_end_matches(']').to_owned();
        Some(Self::Tcp { host, port: url.port_or_known_default()? })
    }

    /// Returns the pattern that a line of output has to match.
    pub(crate) fn pattern(&self) -> Option<&Regex> {
        if let Self::Log(pattern) = self { Some(pattern) } else { None }
    }

    /// Returns the awaited address, if another program accepts connections there already.
    pub(crate) async fn taken(&self) -> Option<String> {
        let Self::Tcp { host, port } = self else { return None };
        accepts(host, *port).await.then(|| format!("{host}:{port}"))
    }

    /// Describes the condition, as the rest of a sentence after "until".
    pub(crate) fn awaited(&self) -> String {
        match self {
            Self::Url(url) => format!("`{url}` answers with a status below 400"),
            Self::Tcp { host, port } => format!("`{host}:{port}` accepts a connection"),
            Self::Log(pattern) => format!("a line of its output matches `{pattern}`"),
        }
    }

    /// Waits until the condition holds, without a timeout; `met` receives the last other response status.
    pub(crate) async fn wait(&self, output: &ProcessOutput, met: &AtomicU16) {
        match self {
            Self::Log(_) => output.matched().await,
            Self::Tcp { host, port } => {
                while !accepts(host, *port).await {
                    sleep(TRY).await;
                }
            }
            Self::Url(url) => {
                // Each request has a new connection, and no certificate is needed for `http`.
                let tls = tls::anonymous(Arc::new(RootCertStore::empty()), &[]);
                let client = HttpClient::new(tls, HttpVersion::Http1, Duration::ZERO);
                loop {
                    let status = timeout(TRY_MAX, status(&client, url)).await.ok().flatten();
                    let status = status.unwrap_or(0);
                    if (1..400).contains(&status) {
                        return;
                    }
                    met.store(status, Ordering::Relaxed);
                    sleep(TRY).await;
                }
            }
        }
    }
}

/// Returns the status of the response, if there is one.
async fn status(client: &HttpClient, url: &Url) -> Option<u16> {
    let request = Request::get(url.as_str()).body(Full::default()).ok()?;
    Some(client.send(request).await.ok()?.status().as_u16())
}

async fn accepts(host: &str, port: u16) -> bool {
    matches!(timeout(TRY_MAX, TcpStream::connect((host, port))).await, Ok(Ok(_)))
}

/// Describes a condition that did not occur.
impl std::fmt::Display for Ready {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Url(url) => write!(f, "`{url}` did not answer with a status below 400"),
            Self::Tcp { host, port } => write!(f, "nothing listened on `{host}:{port}`"),
            Self::Log(pattern) => write!(f, "no line of its output matched `{pattern}`"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Ready;

    #[test]
    fn what_is_typed_is_understood_or_refused() {
        let cases = [
            ("http://127.0.0.1:8080/health", Ok("`http://127.0.0.1:8080/health` did not")),
            ("tcp:localhost:8080", Ok("on `localhost:8080`")),
            ("tcp:[::1]:8080", Ok("on `::1:8080`")),
            ("log:ready in \\d+ ms", Ok("matched `ready in \\d+ ms`")),
            ("log:(", Err("unclosed group")),
            ("tcp:8080", Err("tcp:127.0.0.1:8080")),
            ("tcp:host:0", Err("tcp:127.0.0.1:8080")),
            ("https://localhost/", Err("only `http://` can be probed")),
            ("http://ada:pass@localhost/", Err("without a user name and a password")),
            ("localhost:8080", Err("log:REGEX")),
        ];
        for (typed, expected) in cases {
            match (typed.parse::<Ready>(), expected) {
                (Ok(ready), Ok(words)) => assert!(ready.to_string().contains(words), "{ready}"),
                (Err(why), Err(words)) => assert!(why.contains(words), "{typed}: {why}"),
                (got, _) => panic!("{typed}: {got:?}"),
            }
        }
    }
}
