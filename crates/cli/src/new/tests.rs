//! Compares the documents from commands and traces with golden files.

use std::{
    fs,
    path::{Path, PathBuf},
};

use golden::Golden;
use lang::Seed;
use model::{Answer, Body, Response, Settlement, SpanId, Timestamp, Trace, Verdict};

use super::{Name, ObservedRun, curl, fired, judge, plan, proposed};

/// Commands, by the name of their golden file. The arguments are as a shell passes them.
const COMMANDS: &[(&str, &[&str])] = &[
    ("get", &["curl", "http://127.0.0.1:11634/products"]),
    ("no-scheme", &["/usr/bin/curl", "-sSLk", "shop.test:8443/a/b?c=d#e"]),
    ("json", &["curl", "-X", "PUT", "https://shop.test/orders/7", "--json", "{\"sku\":\"tea's\"}"]),
    (
        "json-lines",
        &[
            "curl",
            "https://shop.test/orders",
            "--json",
            "{\n  \"sku\": \"tea\",\n  \"note\": \"#1: it's\"\n}\n",
        ],
    ),
    (
        "json-twice",
        &[
            "curl",
            "--url",
            "shop.test",
            "--json",
            "[1,",
            "--json",
            "2]",
            "-H",
            "accept: text/plain",
        ],
    ),
    ("form", &["curl", "-dsku=tea", "-d", "quantity=2", "http://shop.test/orders"]),
    (
        "form-encoded",
        &[
            "curl",
            "http://shop.test/",
            "--data-urlencode",
            "q=tea & mugs",
            "--data-urlencode",
            "=ü",
            "--data-urlencode",
            "plain text",
        ],
    ),
    (
        "query",
        &["curl", "-G", "http://shop.test/find?a=b", "-d", "q=tea", "--data-urlencode", "r=1 2"],
    ),
    ("head", &["curl", "-I", "http://shop.test/"]),
    (
        "headers",
        &[
            "curl",
            "-H",
            "X-Empty;",
            "-H",
            "X-Removed:",
            "-H",
            "X-Two: a: b",
            "-A",
            "test/1.0",
            "-e",
            "http://from.test",
            "-b",
            "a=b; c=d",
            "http://shop.test/",
            "-H",
            "Yes: true",
        ],
    ),
    ("basic", &["curl", "-u", "ada:p:w", "--basic", "http://shop.test/"]),
    ("bearer", &["curl", "--oauth2-bearer", "t0ken", "http://shop.test/"]),
    (
        "tls",
        &[
            "curl",
            "--cacert",
            "ca.pem",
            "-E",
            "me.pem",
            "--key",
            "me.key",
            "https://shop.test/",
            "-m",
            "2.5",
        ],
    ),
    ("redirects", &["curl", "-L", "--max-redirs", "3", "http://shop.test/"]),
    (
        "passed-over",
        &[
            "curl",
            "-v",
            "-i",
            "-o",
            "/dev/null",
            "-w",
            "%{http_code}",
            "--compressed",
            "--retry",
            "3",
            "-XDELETE",
            "http://shop.test/a",
        ],
    ),
    ("data-file", &["curl", "-d", "@body.txt", "http://shop.test/"]),
    ("data-file-exact", &["curl", "--data-binary", "@body.txt", "http://shop.test/"]),
    ("control-characters", &["curl", "--data-raw", "a\tb\u{1}", "http://shop.test/"]),
    ("refused-form", &["curl", "-F", "file=@a.png", "http://shop.test/"]),
    ("refused-proxy", &["curl", "-x", "proxy:8080", "http://shop.test/"]),
    ("refused-upload", &["curl", "-T", "a.txt", "http://shop.test/"]),
    ("refused-next", &["curl", "http://shop.test/", "--next", "http://shop.test/"]),
    ("refused-cookie-file", &["curl", "-b", "cookies.txt", "http://shop.test/"]),
    ("refused-user", &["curl", "-u", "ada", "http://shop.test/"]),
    ("refused-stdin", &["curl", "-d", "@-", "http://shop.test/"]),
    ("refused-missing-file", &["curl", "-d", "@gone.txt", "http://shop.test/"]),
    ("refused-unknown", &["curl", "--frobnicate", "http://shop.test/"]),
    ("refused-no-value", &["curl", "http://shop.test/", "-H"]),
    ("refused-no-url", &["curl", "-s"]),
    ("refused-two-urls", &["curl", "http://shop.test/", "http://shop.test/b"]),
    ("refused-not-curl", &["wget", "http://shop.test/"]),
    ("refused-variable", &["curl", "http://shop.test/${id}"]),
    ("refused-path", &["curl", "http://shop.test/", "-d", "./a"]),
    ("refused-seconds", &["curl", "-m", "soon", "http://shop.test/"]),
];

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn folder(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/new").join(name)
}

fn file(path: &str) -> Result<String, String> {
    match path {
        "body.txt" => Ok("one\r\ntwo\n".to_owned()),
        _ => Err("there is no such file".to_owned()),
    }
}

fn seed() -> Seed {
    Seed { now: Timestamp::from_nanos(0), random: [0; 32] }
}

#[test]
fn a_curl_command_becomes_a_trigger_or_says_why_not() {
    let mut golden = Golden::default();
    for (name, command) in COMMANDS {
        let written = match curl::parse(&words(command), &file) {
            Ok(curl) => {
                let document = fired(&Name::of(&curl), &curl);
                if let Err(mistakes) = plan(&document, Path::new("new.yaml")) {
                    panic!("{name}: {mistakes}\n{document}");
                }
                document
            }
            Err(error) => format!("# error: {error}\n"),
        };
        let shown = command.join(" ").replace('\n', "\\n").replace('\u{1}', "\\u{1}");
        golden.compare(
            &folder("curl").join(format!("{name}.yaml")),
            &format!("# {shown}\n{written}"),
        );
    }
    golden.finish(COMMANDS.len());
}

#[test]
fn what_a_trace_shows_is_proposed_and_holds() {
    let mut golden = Golden::default();
    let traces = golden::files(&folder("proposals"), &["json", "pb"]);
    for recorded in &traces {
        let bytes = fs::read(recorded).expect("a trace");
        let trace = otlp::read(&bytes).expect("OTLP").remove(0);
        let document = drafted(&trace);
        golden.compare(&recorded.with_extension("yaml"), &document);
    }
    golden.finish(traces.len());
    assert!(traces.len() >= 3, "{traces:?}");
}

/// Returns a document from a trace; all its proposals hold for that trace.
fn drafted(trace: &Trace) -> String {
    let command = ["curl", "http://127.0.0.1:11634/orders", "--json", "{\"customer\":\"ada\"}"];
    let curl = curl::parse(&words(&command), &file).expect("a command");
    let body = "{\"order\":\"o-17\",\"total\":6000,\"a b\":1,\"state\":\"paid\"}\n";
    let answer = Answer::Response(Response {
        status: 201,
        headers: vec![("content-type".to_owned(), "application/json".to_owned())],
        body: Body::Text(body.into()),
        duration_ns: 20_000_000,
    });
    let settlement = Settlement { spans: trace.len() as u64, ..Settlement::default() };
    let trigger = SpanId::from_bytes([9; 8]).expect("not zero");
    let shown = ObservedRun { answer: &answer, trace, trigger, settlement: &settlement };
    let (_, document) = proposed(&Name::of(&curl), &curl, shown, &seed()).expect("it compiles");
    let judged = judge(&document, shown, &seed()).expect("it compiles");
    assert_eq!(judged.verdict, Verdict::Passed, "{document}");
    document
}
