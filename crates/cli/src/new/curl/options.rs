//! The known options of curl, grouped by their handling.

/// Options without a value that do not change the request.
pub(super) const PASSED_OVER: &[&str] = &[
    "-s",
    "--silent",
    "-S",
    "--show-error",
    "-v",
    "--verbose",
    "-i",
    "--include",
    "--show-headers",
    "-f",
    "--fail",
    "--fail-with-body",
    "--compressed",
    "-N",
    "--no-buffer",
    "-#",
    "--progress-bar",
    "--no-progress-meter",
    "-0",
    "--http1.0",
    "--http1.1",
    "--http2",
    "--http2-prior-knowledge",
    "-4",
    "--ipv4",
    "-6",
    "--ipv6",
    "-g",
    "--globoff",
    "-O",
    "--remote-name",
    "--basic",
    "--path-as-is",
    "--tcp-nodelay",
    "--no-keepalive",
    "-q",
    "--disable",
];

/// Options with a value that do not change the request.
pub(super) const PASSED_OVER_WITH_VALUE: &[&str] = &[
    "-o",
    "--output",
    "-w",
    "--write-out",
    "-D",
    "--dump-header",
    "-c",
    "--cookie-jar",
    "--connect-timeout",
    "--retry",
    "--retry-delay",
    "--retry-max-time",
    "--stderr",
    "--trace",
    "--trace-ascii",
    "--limit-rate",
    "--keepalive-time",
];

/// Options with a value that change the request.
const SAID_WITH_VALUE: &[&str] = &[
    "-X",
    "--request",
    "-H",
    "--header",
    "-d",
    "--data",
    "--data-ascii",
    "--data-raw",
    "--data-binary",
    "--data-urlencode",
    "--json",
    "-u",
    "--user",
    "-b",
    "--cookie",
    "-A",
    "--user-agent",
    "-e",
    "--referer",
    "--url",
    "--oauth2-bearer",
    "-m",
    "--max-time",
    "--max-redirs",
    "--cacert",
    "-E",
    "--cert",
    "--key",
];

/// Options that a test cannot express, and the alternative.
pub(super) const REFUSED: &[(&[&str], &str)] = &[
    (
        &["-F", "--form", "--form-string"],
        "a multipart body has parts and a boundary of its own; have a trigger of type `exec` run curl itself",
    ),
    (&["-T", "--upload-file"], "name the file as body in the test: `body: ./FILE`"),
    (&["-K", "--config"], "write its options out"),
    (&["-:", "--next"], "a test fires one request: make one test of each, and a suite of both"),
    (
        &["-x", "--proxy", "--socks5", "--socks5-hostname"],
        "a run takes its proxy from HTTP_PROXY, HTTPS_PROXY and NO_PROXY",
    ),
    (
        &["--digest", "--ntlm", "--negotiate", "--anyauth", "--aws-sigv4"],
        "a test knows basic auth, bearer tokens and API keys; have a trigger of type `exec` run curl itself",
    ),
    (
        &["--unix-socket", "--abstract-unix-socket", "--resolve", "--connect-to", "--interface"],
        "a test connects to the host of its URL; have a trigger of type `exec` run curl itself",
    ),
    (&["-Z", "--parallel"], "`qualitytrace run --repeat` and `--jobs` run a test several times"),
];

/// Whether an option takes the next argument as its value.
pub(super) fn has_value(option: &str) -> bool {
    PASSED_OVER_WITH_VALUE.contains(&option) || SAID_WITH_VALUE.contains(&option)
}
