//! Golden tests of documents and their compiled form. A golden file that differs is reported with its new content.

use std::{
    fmt::Write,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use golden::Golden;
use lang::{Document, Files, Plan, Seed, SettleProfile, Vars, compile, plans, read, request};
use model::{Propagator, Request, Timestamp, Tls};
use source::{Colour, Text, draw};

/// Each error of `err/*.yaml` renders as in `err/*.txt`, and no document of it compiles.
#[test]
fn mistakes_are_pictures() {
    let mut golden = Golden::default();
    for file in files("err") {
        let (planned, found) = plans(&text(&file));
        let pictures = draw(&found, Colour::Never);
        assert!(pictures.contains("error: "), "{}: no mistake found", file.display());
        assert!(planned.is_empty(), "{}: a plan with a mistake", file.display());
        golden.compare(&file.with_extension("txt"), &pictures);
    }
    golden.finish(150);
}

/// `ok/*.txt` has the compiled form of `ok/*.yaml`, and its warnings.
#[test]
fn documents_that_are_right() {
    let mut golden = Golden::default();
    for file in files("ok") {
        let (documents, mut found) = read(&text(&file));
        let mut shown = String::new();
        for document in &documents {
            match document {
                Document::Test(test) => {
                    let (plan, mistakes) = compile(test);
                    found.extend(mistakes);
                    let Some(plan) = plan else { panic!("{}", draw(&found, Colour::Never)) };
                    shown.push_str(&show(&plan));
                }
                other => writeln!(shown, "{other:#?}").expect("a string"),
            }
        }
        assert!(!documents.is_empty(), "{}: nothing found", file.display());
        assert!(!found.iter().any(source::Diagnostic::is_error), "{}", file.display());
        shown.push_str(&draw(&found, Colour::Never));
        golden.compare(&file.with_extension("txt"), &shown);
    }
    golden.finish(50);
}

/// A document extracted from its file gives the same result, with the same locations.
#[test]
fn a_document_stands_alone() {
    let mut seen = 0;
    for file in files("ok").into_iter().chain(files("err")) {
        let name = text(&file).name().to_owned();
        for document in read(&text(&file)).0 {
            let Document::Test(test) = document else { continue };
            let (alone, _) = read(&Text::new(&name, test.document()));
            let [Document::Test(alone)] = alone.as_slice() else { panic!("{}", test.document()) };
            let (first, second) = (compile(&test), compile(alone));
            let told = |found: &[source::Diagnostic]| draw(found, Colour::Never);
            assert_eq!(told(&first.1), told(&second.1));
            // Errors of other documents of the file are not reported for it.
            assert!(first.0.is_none() || second.0.is_some(), "{}", test.document());
            seen += 1;
        }
        for planned in plans(&text(&file)).0 {
            let (alone, _) = plans(&Text::new(&name, &planned.document));
            let [alone] = alone.as_slice() else { panic!("{}", planned.document) };
            assert_eq!((&alone.plan.id, &alone.document), (&planned.plan.id, &planned.document));
        }
    }
    assert!(seen > 40, "{seen} tests");
}

#[test]
fn what_cannot_be_fired_names_its_place() {
    let variables = [("HOST", "/x"), ("BREAK", "a\nb"), ("FTP", "ftp://x"), ("PORT", "99999")];
    let missing = "has no value: set it, or take it out of the test";
    let url = "is not complete: expected `http://` or `https://` and a host";
    let control = "its value holds a line break or another control character";
    let unread = "is not at hand: a server keeps documents without the files beside them; write what it holds into the \
                  document, or run the test locally";
    for (given, expected) in [
        ("httpRequest: {url: \"http://x\", body: \"${env:HOME}\"}", String::new()),
        (
            "httpRequest: {url: \"http://x/${var:NOPE}\"}",
            format!("the variable `NOPE` at t.yaml:6:36 {missing}"),
        ),
        (
            "httpRequest: {url: \"http://x\", body: \"${var:HOME}\"}",
            format!("the variable `HOME` at t.yaml:6:45 {missing}"),
        ),
        ("httpRequest: {url: \"${var:HOST}\"}", format!("the URL at t.yaml:6:25 {url}")),
        ("httpRequest: {url: \"${var:FTP}\"}", format!("the URL at t.yaml:6:25 {url}")),
        (
            "httpRequest: {url: \"http://x:${var:PORT}/\"}",
            "the port of the URL at t.yaml:6:25 is none: expected a number up to 65535".to_owned(),
        ),
        (
            "httpRequest: {url: \"http://x\", headers: [{key: X Y, value: z}]}",
            "the header at t.yaml:6:52 cannot be sent: its name may hold letters, digits and `-` only"
                .to_owned(),
        ),
        (
            "httpRequest: {url: \"http://x\", headers: [{key: X, value: \"${var:BREAK}\"}]}",
            format!("the header at t.yaml:6:52 cannot be sent: {control}"),
        ),
        (
            "httpRequest: {url: \"http://x\", auth: {type: bearer, bearer: {token: \"${var:BREAK}\"}}}",
            format!("the header at t.yaml:6:74 cannot be sent: {control}"),
        ),
        (
            "httpRequest: {url: \"http://x\", body: ./x.json}",
            format!("the file `./x.json`, named at t.yaml:6:42, {unread}"),
        ),
        (
            "tls: {caFile: ./ca.pem}\n    httpRequest: {url: \"http://x\"}",
            format!("the file `./ca.pem`, named at t.yaml:6:19, {unread}"),
        ),
        (
            "traceid: {id: \"${var:HOST}\"}",
            "the id of the trace at t.yaml:6:20 is not one: expected 32 hexadecimal digits".to_owned(),
        ),
    ] {
        let kind = if given.starts_with("traceid") { "traceid" } else { "http" };
        let yaml =
            format!("type: Test\nspec:\n  name: x\n  trigger:\n    type: {kind}\n    {given}\n");
        let (planned, found) = plans(&Text::new("t.yaml", yaml));
        let [planned] = planned.as_slice() else { panic!("{}", draw(&found, Colour::Never)) };
        let fired = request(&planned.plan, &vars(&variables), &seed(), &Files::default());
        assert_eq!(fired.err().map_or(String::new(), |e| e.to_string()), expected, "{given}");
    }
}

/// The content of a file is filled in like a text of the document, or sent unchanged, or rejected with its location.
#[test]
fn what_a_file_holds_is_filled_in_or_refused() {
    let tls = "tls: {caFile: ./ca.pem}\n    type: http\n    httpRequest: {url: \"http://x\"}";
    let http = "type: http\n    httpRequest: {url: \"http://x\", body: ./b.json}";
    let query = "type: graphql\n    graphql: {url: \"http://x\", body: {query: ./q.graphql}}";
    let binary: &[u8] = b"\xff${var:HOST}";
    for (given, content, expected) in [
        (http, "a ${var:HOST}\n100% $x".as_bytes(), "a shop\n100% $x"),
        (http, binary, "\u{fffd}${var:HOST}"),
        (http, b"one\n  ${var:NOPE}", "the variable `NOPE` at ./b.json:2:5 has no value"),
        (
            http,
            b"one\n  ${1 +}",
            "the file `./b.json`, named at t.yaml:6:42, cannot be filled in:\n",
        ),
        (http, b"one\n  ${1 +}", " --> ./b.json:2:8\n"),
        (query, b"{ ${var:HOST} }", "{\"query\":\"{ shop }\"}"),
        (query, binary, "the file `./q.graphql`, named at t.yaml:6:46, is not text"),
        (
            tls,
            binary,
            "the file `./ca.pem`, named at t.yaml:5:19, is not PEM: expected `-----BEGIN …-----`",
        ),
        (
            tls,
            b"{}",
            "the file `./ca.pem`, named at t.yaml:5:19, is not PEM: expected `-----BEGIN …-----`",
        ),
    ] {
        let yaml = format!("type: Test\nspec:\n  name: x\n  trigger:\n    {given}\n");
        let (planned, found) = plans(&Text::new("t.yaml", yaml));
        let [planned] = planned.as_slice() else { panic!("{}", draw(&found, Colour::Never)) };
        let mut files = Files::default();
        planned.plan.files().into_iter().for_each(|file| files.insert(file, content.to_vec()));
        let fired = match request(&planned.plan, &vars(&[("HOST", "shop")]), &seed(), &files) {
            Ok(asked) => match asked.request {
                Request::Http(http) => String::from_utf8_lossy(http.body.as_bytes()).into_owned(),
                request => panic!("{request:?}"),
            },
            Err(error) => error.to_string(),
        };
        assert!(fired.contains(expected), "{fired}");
    }
}

#[test]
fn a_polling_profile_says_how_long_unless_the_test_does() {
    let profile = SettleProfile {
        id: None,
        name: None,
        is_default: false,
        timeout: Some(std::time::Duration::from_secs(7)),
    };
    for (settle, expected) in [("", 7), ("settle: {timeout: 9s}", 9), ("settle: {flush: 1s}", 7)] {
        let yaml = format!(
            "type: Test\nspec:\n  name: x\n  pollingProfile: slow\n  {settle}\n  trigger:\n    type: http\n    \
             httpRequest: {{url: http://x}}\n"
        );
        let (planned, found) = plans(&Text::new("t.yaml", yaml));
        let [planned] = planned.as_slice() else { panic!("{}", draw(&found, Colour::Never)) };
        let mut plan = planned.plan.clone();
        plan.wait_as(&profile);
        assert_eq!(plan.settle(Duration::ZERO).timeout.as_secs(), expected, "{settle}");
    }
}

/// Renders the public parts of a plan.
fn show(plan: &Plan) -> String {
    let settle = plan.settle(Duration::ZERO);
    let mut shown = format!("{} `{}`\n", plan.id, plan.name);
    let mut line = |what: &str, value: String| {
        if !value.is_empty() {
            writeln!(shown, "{what}: {value}").expect("a string");
        }
    };
    line("tags", plan.tags.join(", "));
    // The quiet period for a process without a learned profile.
    let flush = settle.flush.unwrap_or(std::time::Duration::from_secs(6));
    line("settle", format!("timeout {:?}, flush {flush:?}", settle.timeout));
    line("expected", plan.expected().join(" | "));
    line("absent", plan.absent().join(", "));
    line("polling profile", plan.settle_profile().map(|p| format!("{p:?}")).unwrap_or_default());
    line("skip trace", plan.skip_trace_collection().to_string());
    for file in plan.files() {
        let at = &file.place;
        line("file", format!("{} named at {}:{}", file.path, at.line, at.column));
    }
    let vars = vars(&[("NAME", "meowth")]);
    let mut given = Files::default();
    for file in plan.files() {
        let content = match file.path.ends_with(".pem") || file.path.ends_with(".key") {
            true => "-----BEGIN …",
            false => "{\"name\": \"${var:NAME}\"}",
        };
        given.insert(file, content.into());
    }
    match request(plan, &vars, &seed(), &given).map(|asked| asked.request) {
        Ok(Request::Http(request)) => show_http(&request, &mut line),
        Ok(request) => line("request", format!("{request:#?}")),
        Err(error) => line("request", error.to_string()),
    }
    shown
}

/// Renders a request, with its non-default parts below it.
fn show_http(request: &model::HttpRequest, line: &mut dyn FnMut(&str, String)) {
    #[derive(Debug)]
    #[expect(dead_code, reason = "they are shown")]
    struct HttpRequest<'a> {
        method: &'a str,
        url: &'a str,
        headers: &'a [(String, String)],
        body: String,
        timeout: Duration,
    }
    let model::HttpRequest { method, url, headers, auth, body, timeout, .. } = request;
    let body = String::from_utf8_lossy(body.as_bytes()).into_owned();
    let shown = HttpRequest { method, url, headers, body, timeout: *timeout };
    line("request", format!("{shown:#?}"));
    line("auth", auth.as_ref().map(|auth| format!("{auth:?}")).unwrap_or_default());
    if request.propagation != [Propagator::W3c] {
        line("propagation", format!("{:?}", request.propagation));
    }
    if request.tls != Tls::default() {
        line("tls", format!("{:#?}", request.tls));
    }
    if request.redirects_max != 10 {
        line("redirects", request.redirects_max.to_string());
    }
}

fn vars(variables: &[(&str, &str)]) -> Vars {
    let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    Vars {
        variables: variables.iter().map(owned).collect(),
        environment: [
            ("POKESHOP", "http://pokeshop.test"),
            ("TOKEN", "s3cr3t"),
            ("NAME", "no"),
            ("HOME", "/root"),
            ("TRACE_ID", "0af7651916cd43dd8448eb211c80319c"),
        ]
        .iter()
        .map(owned)
        .collect(),
        ..Vars::default()
    }
}

fn seed() -> Seed {
    Seed { now: Timestamp::from_nanos(1_700_000_000_000_000_000), random: [7; 32] }
}

fn text(file: &Path) -> Text {
    let name = file.file_name().and_then(|name| name.to_str()).expect("a name in letters");
    Text::new(name, fs::read_to_string(file).expect("a case can be read"))
}

/// Returns the documents of a golden folder, sorted.
fn files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(folder);
    golden::files(&folder, &["yaml"])
}
